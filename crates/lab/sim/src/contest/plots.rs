//! The pictures of the study.

use super::course::{Course, Marking};
use super::grid::{ALL, LOSSES, Part, QUEUES, SHARED, pairs};
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
    let names = [
        "shares-shallow",
        "shares-one-product",
        "shares-deep",
        "shares-fast",
        "shares-l4s",
        "shares-classic-ecn",
    ];
    for (name, (megabits, rtt_ms, queue, marking)) in names.into_iter().zip(SHARED) {
        plots.push((name, shares(records, &Course::new(megabits, rtt_ms, queue).with_marking(marking))));
    }
    plots
}

fn find<'a>(records: &'a [Record], part: Part, course: &Course, flows: &[Algorithm]) -> Option<&'a Record> {
    records.iter().find(|record| record.part == part && record.course == *course && record.is_of(flows))
}

fn axis(label: &str) -> Axis {
    Axis { label: label.to_owned(), scale: Scale::Linear }
}

/// Bars of every controller, a group for each course.
fn bars(
    records: &[Record],
    part: Part,
    (title, y): (&str, &str),
    groups: &[(String, Course)],
    figure: fn(&Record) -> f64,
) -> Plot {
    let series = ALL.map(|kind| {
        let point = |(place, (_, course)): (usize, &(String, Course))| {
            let y = figure(find(records, part, course, &[kind])?);
            Some(Point { x: place as f64, y, interval: None })
        };
        let points = groups.iter().enumerate().filter_map(point).collect();
        Series { name: name(kind).to_owned(), is_published: false, points }
    });
    let kind = PlotKind::Bars(groups.iter().map(|(name, _)| name.clone()).collect());
    Plot { title: title.to_owned(), kind, x: Axis::default(), y: axis(y), series: series.to_vec() }
}

fn by_loss(records: &[Record]) -> Plot {
    let course = Course::new(100, 50, 1.0);
    let none = ("no loss".to_owned(), course);
    let some = LOSSES.map(|ppm| (format!("{} % lost", f64::from(ppm) / 1e4), course.with_loss(ppm)));
    let groups: Vec<_> = core::iter::once(none).chain(some).collect();
    let text = ("Loss by chance: 100 Mbit/s, 50 ms, a queue of one product", "used, % of the link");
    bars(records, Part::Alone, text, &groups, |record| record.outcome.utilisation() * 100.0)
}

fn by_queue(records: &[Record]) -> Plot {
    let groups = QUEUES.map(|queue| (format!("queue of {queue}"), Course::new(100, 50, queue)));
    let text = ("Waiting in the queue: 100 Mbit/s, 50 ms", "wait p95, ms");
    bars(records, Part::Alone, text, &groups, |record| millis(record.outcome.wait_p95))
}

fn by_marking(records: &[Record]) -> Plot {
    let course = |marking| Course::new(100, 50, 4.0).with_marking(marking);
    let groups = [
        ("L4S queue".to_owned(), course(Marking::L4s)),
        ("classic ECN queue".to_owned(), course(Marking::Classic)),
    ];
    let text = ("Queues that mark: 100 Mbit/s, 50 ms", "wait p95, ms");
    bars(records, Part::Marked, text, &groups, |record| millis(record.outcome.wait_p95))
}

fn by_rtt(records: &[Record]) -> Plot {
    let series = ALL.map(|kind| {
        let point = |rtt_ms: u64| {
            let found = find(records, Part::Alone, &Course::new(100, rtt_ms, 0.25), &[kind])?;
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
fn shares(records: &[Record], course: &Course) -> Plot {
    let series = ["first", "second"].into_iter().enumerate().map(|(which, name)| {
        let point = |(place, both): (usize, [Algorithm; 2])| {
            let record = find(records, Part::Pair, course, &both)?;
            let flow = record.outcome.flows.get(which)?;
            Some(Point { x: place as f64, y: flow.share * 100.0, interval: None })
        };
        let points = pairs().enumerate().filter_map(point).collect();
        Series { name: format!("the {name} flow"), is_published: false, points }
    });
    Plot {
        title: format!("Two flows: {}", describe(course)),
        kind: PlotKind::Bars(pairs().map(|both| both.map(name).join(" + ")).collect()),
        x: Axis::default(),
        y: axis("% of the link"),
        series: series.collect(),
    }
}
