//! Plots over time: what servers did in the course of each trial, a small plot for each contestant with a line for each round.

use bench::course::Interval;
use report::model::{Axis, Block, Plot, PlotGrid, Point, Series};

/// With fewer intervals than this a trial was over before there was a course of it.
const ENOUGH: usize = 5;

/// The trials of a contestant, in the order of rounds.
pub(crate) struct Rounds<'a> {
    pub(crate) name: String,
    pub(crate) courses: Vec<&'a [Interval]>,
}

/// Which figure of an interval, and what its axis is called.
type Figure = (&'static str, fn(&Interval) -> Option<f64>);

const SHARE: Figure = ("% of a core", |interval| Some(interval.core_share * 100.0));
const SENT: Figure = ("MB/s", |interval| interval.sent_mb_per_second);

/// The server's share of its core, and what left its interface where that is its own. Nothing of contestants whose trials were short.
pub(crate) fn blocks(contestants: &[Rounds<'_>]) -> Vec<Block> {
    [
        shares(contestants),
        sent("What left the server in the course of each trial, headers included", contestants),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The first of them alone.
pub(crate) fn shares(contestants: &[Rounds<'_>]) -> Option<Block> {
    grid("The server's share of its core in the course of each trial", contestants, SHARE)
}

/// The second of them alone, under this title.
pub(crate) fn sent(title: &str, contestants: &[Rounds<'_>]) -> Option<Block> {
    grid(title, contestants, SENT)
}

fn grid(title: &str, contestants: &[Rounds<'_>], figure: Figure) -> Option<Block> {
    let plots: Vec<Plot> = contestants.iter().filter_map(|contestant| plot(contestant, figure)).collect();
    let title = format!("{title}; a line for each round");
    (!plots.is_empty()).then_some(Block::Grid(PlotGrid { title, plots }))
}

fn plot(contestant: &Rounds<'_>, (label, figure): Figure) -> Option<Plot> {
    let line = |course: &&[Interval]| {
        let point =
            |interval: &Interval| Some(Point { x: interval.at_s, y: figure(interval)?, interval: None });
        let points: Vec<Point> = course.iter().filter_map(point).collect();
        (points.len() >= ENOUGH).then(|| Series { points, ..Series::default() })
    };
    let series: Vec<Series> = contestant.courses.iter().filter_map(line).collect();
    (!series.is_empty()).then(|| Plot {
        title: contestant.name.clone(),
        x: Axis { label: "s".to_owned(), ..Axis::default() },
        y: Axis { label: label.to_owned(), ..Axis::default() },
        series,
        ..Plot::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(count: u32, sent: Option<f64>) -> Vec<Interval> {
        let interval = |number: u32| Interval {
            at_s: f64::from(number) / 10.0,
            core_share: 0.5,
            sent_mb_per_second: sent,
        };
        (0..count).map(interval).collect()
    }

    /// Deleted, rounds could be left out, or a trial of a moment drawn as if it had a course.
    #[test]
    fn each_contestant_has_a_plot_with_a_line_for_each_round_that_lasted() {
        let (long, short, unknown) = (course(20, Some(3.0)), course(2, Some(3.0)), course(9, None));
        let contestant = |name: &str, courses| Rounds { name: name.to_owned(), courses };
        let all = [
            contestant("steady", vec![&long[..], &short, &long]),
            contestant("hasty", vec![&short[..]]),
            contestant("loopback", vec![&unknown[..]]),
        ];
        let blocks = blocks(&all);
        let [Block::Grid(shares), Block::Grid(sent)] = &blocks[..] else { panic!("{blocks:?}") };
        let shown = |grid: &PlotGrid| -> Vec<(String, usize)> {
            grid.plots.iter().map(|plot| (plot.title.clone(), plot.series.len())).collect()
        };
        assert_eq!(shown(shares), [("steady".to_owned(), 2), ("loopback".to_owned(), 1)]);
        assert_eq!(shown(sent), [("steady".to_owned(), 2)]);
        assert_eq!((shares.plots[0].series[0].points[3].y, sent.plots[0].series[0].points[3].y), (50.0, 3.0));
        assert!(super::blocks(&all[1..2]).is_empty());
    }
}
