//! The ablation: for each technique a lane with it and one without, as one table, one picture and sentences.

use bench::stats::Ratio;
use report::model::{Axis, Cell, Plot, PlotKind, Point, Row, Series, Table};

use crate::ceiling::Ceiling;
use crate::downloads::{DownloadSeries, saving};

/// Columns of the table.
pub(super) const COLUMNS: [&str; 8] = [
    "server CPU with, s/GB",
    "without, s/GB",
    "without over with",
    "client CPU without, s/GB",
    "client, without over with",
    "without, MB/s",
    "share of roofline, %",
    "published",
];

/// A technique, measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pairing<'a> {
    /// What it is like without.
    pub(super) name: &'a str,
    /// What was claimed for it.
    pub(super) published: Option<&'static str>,
    pub(super) with: &'a DownloadSeries,
    pub(super) without: &'a DownloadSeries,
}

impl Pairing<'_> {
    /// The server's CPU time without the technique over that with it.
    fn server(&self) -> Option<Ratio> {
        self.without.cost_over(self.with)
    }

    /// The client's.
    fn client(&self) -> Option<Ratio> {
        let cost = |lane: &DownloadSeries| lane.values(|trial| trial.client_cpu_s_per_gb);
        Ratio::by_rounds(&cost(self.without), &cost(self.with))
    }

    fn row(&self, ceiling: &Ceiling) -> Row {
        let Pairing { with, without, .. } = self;
        Row {
            name: self.name.to_owned(),
            is_published: false,
            cells: vec![
                with.cell(3, |trial| trial.server_cpu_s_per_gb),
                without.cell(3, |trial| trial.server_cpu_s_per_gb),
                self.server().into(),
                without.cell(3, |trial| trial.client_cpu_s_per_gb),
                self.client().into(),
                without.cell(0, |trial| trial.megabytes_per_second),
                ceiling.share(without.values(|trial| trial.megabytes_per_second)),
                self.published.map_or(Cell::Empty, Cell::from),
            ],
        }
    }
}

/// A row for each.
pub(super) fn table(pairings: &[Pairing<'_>], ceiling: &Ceiling) -> Table {
    let measured = pairings.iter().filter(|pairing| pairing.server().is_some());
    Table {
        title: "What each technique is worth: with it, and without it or with another instead".to_owned(),
        corner: "left out".to_owned(),
        columns: COLUMNS.map(str::to_owned).to_vec(),
        rows: measured
            .map(|pairing| pairing.row(ceiling))
            .chain(ceiling.row(COLUMNS.len(), [5, 6, 0]))
            .collect(),
    }
}

/// What leaving a technique out costs the server, as a ratio with its interval.
pub(super) fn plot(pairings: &[Pairing<'_>]) -> Plot {
    let measured: Vec<(&str, Ratio)> =
        pairings.iter().filter_map(|pairing| Some((pairing.name, pairing.server()?))).collect();
    let point = |(place, (_, ratio)): (usize, &(&str, Ratio))| Point {
        x: place as f64,
        y: ratio.ratio,
        interval: Some([ratio.low, ratio.high]),
    };
    Plot {
        title: "The server's CPU time without a technique, over that with it".to_owned(),
        kind: PlotKind::Bars(measured.iter().map(|(name, _)| (*name).to_owned()).collect()),
        x: Axis { label: "left out".to_owned(), ..Axis::default() },
        y: Axis { label: "times".to_owned(), ..Axis::default() },
        series: vec![Series {
            name: "without over with".to_owned(),
            is_published: false,
            points: measured.iter().enumerate().map(point).collect(),
        }],
    }
}

/// What techniques are worth to the server, and then to the client.
pub(super) fn findings(pairings: &[Pairing<'_>]) -> Vec<String> {
    let server: Vec<_> =
        pairings.iter().filter_map(|pairing| Some((pairing.name, pairing.server()?))).collect();
    let client: Vec<_> =
        pairings.iter().filter_map(|pairing| Some((pairing.name, pairing.client()?))).collect();
    [worth("server", &server), worth("client", &client)].concat()
}

/// A sentence on what is worth most at this end, one on what else is worth something, dearest first, and one on what is not. The table has
/// the figures.
fn worth(end: &str, ratios: &[(&str, Ratio)]) -> Vec<String> {
    let mut clear: Vec<&(&str, Ratio)> = ratios.iter().filter(|(_, ratio)| !ratio.spans_one()).collect();
    clear.sort_by(|(_, a), (_, b)| b.ratio.total_cmp(&a.ratio));
    let open: Vec<&str> =
        ratios.iter().filter(|(_, ratio)| ratio.spans_one()).map(|(name, _)| *name).collect();
    let mut sentences = Vec::new();
    if let Some(((name, ratio), others)) = clear.split_first() {
        sentences.push(format!("{name}: the {end}'s CPU time was {}.", saving(ratio)));
        let others: Vec<&str> = others.iter().map(|(name, _)| *name).collect();
        if !others.is_empty() {
            sentences.push(format!("A smaller difference to the {end}: {}.", others.join("; ")));
        }
    }
    if !open.is_empty() {
        sentences.push(format!("No measurable difference to the {end}: {}.", open.join("; ")));
    }
    sentences
}
