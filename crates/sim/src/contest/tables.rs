//! The tables of the study.

use super::course::Course;
use super::grid::{ALL, LINKS, Part, pairs};
use super::record::{Record, marking, millis, name};
use recovery::congestion::Algorithm;
use report::model::{Cell, Row, Table};

/// A figure of a record.
type Figure = fn(&Record) -> f64;

/// What is shown of one flow, with its unit and digits after the point.
const FIGURES: [(&str, Figure, u8); 4] = [
    ("used, %", |record| record.outcome.utilisation() * 100.0, 1),
    ("wait p50, ms", |record| millis(record.outcome.wait_p50), 1),
    ("wait p95, ms", |record| millis(record.outcome.wait_p95), 1),
    ("lost, %", |record| record.outcome.lost() * 100.0, 2),
];

/// A table for each rate, then the marking queues, the beginnings, and the pairs.
pub(super) fn tables(records: &[Record]) -> Vec<Table> {
    let mut tables: Vec<Table> = LINKS
        .iter()
        .map(|(megabits, _)| {
            let title = format!("One flow, {}", rate(megabits * 1_000_000));
            let is_of = |record: &Record| record.course.bits_per_second == megabits * 1_000_000;
            single(title, records, |record| record.part == Part::Alone && is_of(record))
        })
        .collect();
    let marked = single("One flow, queues that mark (4 products deep)".to_owned(), records, |record| {
        record.part == Part::Marked
    });
    let starts =
        single("One flow, its first three seconds".to_owned(), records, |record| record.part == Part::Start);
    tables.extend([marked, starts, shares(records)]);
    tables.push(jain(records));
    tables
}

/// A row for each course, and for each figure a column for each controller.
fn single(title: String, records: &[Record], is_shown: impl Fn(&Record) -> bool) -> Table {
    let shown: Vec<&Record> = records.iter().filter(|record| is_shown(record)).collect();
    let columns = FIGURES.iter().flat_map(|(figure, ..)| ALL.map(|kind| format!("{} {figure}", name(kind))));
    let row = |course: &Course| {
        let cells = FIGURES.iter().flat_map(|(_, figure, digits)| {
            ALL.map(|kind| {
                let found = shown.iter().find(|record| record.course == *course && record.is_of(&[kind]));
                found.map_or(Cell::Empty, |record| Cell::Number(figure(record), *digits))
            })
        });
        Row { name: describe(course), is_published: false, cells: cells.collect() }
    };
    let rows = courses(&shown).iter().map(row).collect();
    Table { title, corner: "link".to_owned(), columns: columns.collect(), rows }
}

/// The courses of these records, each once.
fn courses(records: &[&Record]) -> Vec<Course> {
    let mut courses: Vec<Course> = Vec::new();
    for record in records {
        if !courses.contains(&record.course) {
            courses.push(record.course);
        }
    }
    courses
}

/// Shares of two flows: a row for each pair, a column for each link.
fn shares(records: &[Record]) -> Table {
    let cell = |record: &Record| {
        let shares: Vec<String> =
            record.outcome.flows.iter().map(|flow| format!("{:.0}", flow.share * 100.0)).collect();
        Cell::Text(shares.join(" + "))
    };
    of_pairs("Two flows: the share of each, in % of the link".to_owned(), records, cell)
}

fn jain(records: &[Record]) -> Table {
    let cell = |record: &Record| Cell::Number(record.outcome.jain(), 2);
    of_pairs(
        "Two flows: Jain's index of their shares (1 is even, 0.5 is one alone)".to_owned(),
        records,
        cell,
    )
}

fn of_pairs(title: String, records: &[Record], cell: impl Fn(&Record) -> Cell) -> Table {
    let shown: Vec<&Record> = records.iter().filter(|record| record.part == Part::Pair).collect();
    let courses = courses(&shown);
    let row = |both: [Algorithm; 2]| {
        let cells = courses.iter().map(|course| {
            let found = shown.iter().find(|record| record.course == *course && record.is_of(&both));
            found.map_or(Cell::Empty, |record| cell(record))
        });
        Row { name: both.map(name).join(" + "), is_published: false, cells: cells.collect() }
    };
    let rows = pairs().map(row).collect();
    Table { title, corner: "flows".to_owned(), columns: courses.iter().map(describe).collect(), rows }
}

/// A rate as people say it.
pub(super) fn rate(bits_per_second: u64) -> String {
    match bits_per_second / 1_000_000 {
        megabits @ 0..1_000 => format!("{megabits} Mbit/s"),
        megabits => format!("{} Gbit/s", megabits / 1_000),
    }
}

/// A course in a few words.
pub(super) fn describe(course: &Course) -> String {
    let mut text =
        format!("{}, {} ms, queue {}", rate(course.bits_per_second), course.rtt.as_millis(), course.queue);
    if course.loss_ppm > 0 {
        text += &format!(", loss {} %", f64::from(course.loss_ppm) / 1e4);
    }
    if course.marking != super::course::Marking::None {
        text += &format!(", marks: {}", marking(course.marking));
    }
    text
}
