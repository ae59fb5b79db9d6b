//! The pictures of the study.

use super::grid::{ALL, LOSSES, Part, QUEUES, SHARED, pairs};
use super::link_profile::{Dropping, LinkProfile, Marking};
use super::record::{Record, millis, name};
use super::tables::describe;
use recovery::congestion::Algorithm;
use report::model::{Axis, Plot, PlotKind, Point, Scale, Series};

/// Pictures with the names of their files.
pub(super) fn plots(records: &[Record]) -> Vec<(&'static str, Plot)> {
    let mut plots = vec![
        ("utilisation-by-loss", by_loss(records)),
        ("wait-by-queue", by_queue(records)),
        ("utilisation-by-rtt", by_rtt(records)),
        ("wait-where-queues-mark", by_marking(records)),
    ];
    plots.extend(SHARED.map(|(name, link_profile)| (name, shares(records, &link_profile))));
    plots
}

fn find<'a>(
    records: &'a [Record],
    part: Part,
    link_profile: &LinkProfile,
    flows: &[Algorithm],
) -> Option<&'a Record> {
    records
        .iter()
        .find(|record| record.part == part && record.link_profile == *link_profile && record.is_of(flows))
}

fn axis(label: &str) -> Axis {
    Axis { label: label.to_owned(), scale: Scale::Linear }
}

/// Bars of every controller, a group for each course.
fn bars(
    records: &[Record],
    part: Part,
    (title, y): (&str, &str),
    groups: &[(String, LinkProfile)],
    figure: fn(&Record) -> f64,
) -> Plot {
    let series = ALL.map(|kind| {
        let point = |(place, (_, link_profile)): (usize, &(String, LinkProfile))| {
            let y = figure(find(records, part, link_profile, &[kind])?);
            Some(Point { x: place as f64, y, interval: None })
        };
        let points = groups.iter().enumerate().filter_map(point).collect();
        Series { name: name(kind).to_owned(), is_published: false, points }
    });
    let kind = PlotKind::Bars(groups.iter().map(|(name, _)| name.clone()).collect());
    Plot { title: title.to_owned(), kind, x: Axis::default(), y: axis(y), series: series.to_vec() }
}

fn by_loss(records: &[Record]) -> Plot {
    let link_profile = LinkProfile::new(100, 50, 1.0);
    let none = ("no loss".to_owned(), link_profile);
    let some = LOSSES.map(|ppm| (format!("{} % lost", f64::from(ppm) / 1e4), link_profile.with_loss(ppm)));
    let groups: Vec<_> = core::iter::once(none).chain(some).collect();
    let text = ("Loss by chance: 100 Mbit/s, 50 ms, a queue of one product", "used, % of the link");
    bars(records, Part::Alone, text, &groups, |record| record.outcome.utilisation() * 100.0)
}

fn by_queue(records: &[Record]) -> Plot {
    let groups = QUEUES.map(|queue| (format!("queue of {queue}"), LinkProfile::new(100, 50, queue)));
    let text = ("Waiting in the queue: 100 Mbit/s, 50 ms", "wait p95, ms");
    bars(records, Part::Alone, text, &groups, |record| millis(record.outcome.wait_p95))
}

fn by_marking(records: &[Record]) -> Plot {
    let link_profile = LinkProfile::new(100, 50, 4.0);
    let groups = [
        ("L4S queue".to_owned(), link_profile.with_marking(Marking::L4s)),
        ("classic ECN queue".to_owned(), link_profile.with_marking(Marking::Classic)),
        ("CoDel".to_owned(), link_profile.with_dropping(Dropping::CoDel)),
        ("PIE".to_owned(), link_profile.with_dropping(Dropping::Pie)),
    ];
    let text = ("Queues that mark or drop early: 100 Mbit/s, 50 ms", "wait p95, ms");
    bars(records, Part::Marked, text, &groups, |record| millis(record.outcome.wait_p95))
}

fn by_rtt(records: &[Record]) -> Plot {
    let series = ALL.map(|kind| {
        let point = |rtt_ms: u64| {
            let found = find(records, Part::Alone, &LinkProfile::new(100, rtt_ms, 0.25), &[kind])?;
            Some(Point { x: rtt_ms as f64, y: found.outcome.utilisation() * 100.0, interval: None })
        };
        let points = [1, 10, 50, 100, 300].into_iter().filter_map(point).collect();
        Series { name: name(kind).to_owned(), is_published: false, points }
    });
    Plot {
        title: "A queue of a quarter of a product: 100 Mbit/s".to_owned(),
        kind: PlotKind::Lines,
        x: Axis { label: "round trip, ms".to_owned(), scale: Scale::Logarithmic },
        y: axis("used, % of the link"),
        series: series.to_vec(),
    }
}

/// What two flows get: a group of two bars for each pair.
fn shares(records: &[Record], link_profile: &LinkProfile) -> Plot {
    let series = ["first", "second"].into_iter().enumerate().map(|(which, name)| {
        let point = |(place, both): (usize, [Algorithm; 2])| {
            let record = find(records, Part::Pair, link_profile, &both)?;
            let flow = record.outcome.flows.get(which)?;
            Some(Point { x: place as f64, y: flow.share * 100.0, interval: None })
        };
        let points = pairs().enumerate().filter_map(point).collect();
        Series { name: format!("the {name} flow"), is_published: false, points }
    });
    Plot {
        title: format!("Two flows: {}", describe(link_profile)),
        kind: PlotKind::Bars(pairs().map(|both| both.map(name).join(" + ")).collect()),
        x: Axis::default(),
        y: axis("% of the link"),
        series: series.collect(),
    }
}
