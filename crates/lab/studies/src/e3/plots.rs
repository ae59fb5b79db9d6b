//! The pictures of the study: one line for each variant.

use report::model::{Axis, Plot, PlotKind, Point, Scale, Series};

use super::series::VariantTrials;
use super::trial::PERCENTILES;

fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), scale }
}

fn lines(title: String, x: Axis, y: Axis, series: Vec<Series>) -> Plot {
    Plot { title, kind: PlotKind::Lines, x, y, series }
}

fn series(lane: &VariantTrials, points: Vec<Point>) -> Option<Series> {
    (!points.is_empty()).then(|| Series { name: lane.variant.name.to_owned(), is_published: false, points })
}

fn point(x: f64, y: f64) -> Point {
    Point { x, y, interval: None }
}

/// Requests a second against outstanding requests.
pub(super) fn rates(title: &str, lanes: &[VariantTrials]) -> Plot {
    let of = |lane: &VariantTrials| {
        let points = lane.points.keys();
        series(lane, points.filter_map(|x| Some(point(*x as f64, lane.rate(*x)?))).collect())
    };
    lines(
        title.to_owned(),
        axis("outstanding requests on each connection", Scale::Logarithmic),
        axis("requests/s", Scale::Linear),
        lanes.iter().filter_map(of).collect(),
    )
}

/// A percentile of the latency against outstanding requests.
pub(super) fn latencies(lanes: &[VariantTrials], which: usize) -> Plot {
    let name = PERCENTILES.get(which).map_or("", |(name, _)| name);
    let of = |lane: &VariantTrials| {
        let points = lane.points.keys();
        series(lane, points.filter_map(|x| Some(point(*x as f64, lane.percentile(*x, which)?))).collect())
    };
    lines(
        format!("Latency at {name} against outstanding requests"),
        axis("outstanding requests on the connection", Scale::Logarithmic),
        axis("µs", Scale::Logarithmic),
        lanes.iter().filter_map(of).collect(),
    )
}

/// The distribution of the latency at this many outstanding requests.
pub(super) fn distribution(lanes: &[VariantTrials], outstanding: usize) -> Plot {
    let of = |lane: &VariantTrials| {
        let trial = lane.typical(outstanding)?;
        series(lane, trial.curve.iter().map(|[percentile, us]| point(*percentile, *us)).collect())
    };
    lines(
        format!("Latency by percentile, {outstanding} outstanding"),
        axis("percentile", Scale::Percentile),
        axis("µs", Scale::Logarithmic),
        lanes.iter().filter_map(of).collect(),
    )
}
