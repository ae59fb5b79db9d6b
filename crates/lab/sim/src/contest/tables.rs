//! The tables of the study.

use super::grid::{ALL, LINKS, Part, pairs};
use super::link_profile::{Dropping, LinkProfile, Marking};
use super::record::{Record, dropping, marking, millis, name};
use recovery::congestion::Algorithm;
use report::model::{Cell, Row, Table};

/// What the cells of a flow alone hold.
const FIGURES: &str = "used; wait of half and of 95 % of the packets; lost";

/// A table for each rate, then the marking queues, the beginnings, and the pairs.
pub(super) fn tables(records: &[Record]) -> Vec<Table> {
    let mut tables: Vec<Table> = LINKS
        .iter()
        .map(|(megabits, _)| {
            let title = format!("One flow, {}: {FIGURES}", rate(megabits * 1_000_000));
            let is_of = |record: &Record| record.link_profile.bits_per_second == megabits * 1_000_000;
            single(title, records, |record| record.part == Part::Alone && is_of(record))
        })
        .collect();
    let marked = single(format!("One flow, queues that mark or drop early: {FIGURES}"), records, |record| {
        record.part == Part::Marked
    });
    let starts = single(format!("One flow, its first three seconds: {FIGURES}"), records, |record| {
        record.part == Part::Start
    });
    tables.extend([marked, starts, shares(records)]);
    tables.push(jain(records));
    tables
}

/// A row for each course, and a column for each controller.
fn single(title: String, records: &[Record], is_shown: impl Fn(&Record) -> bool) -> Table {
    let shown: Vec<&Record> = records.iter().filter(|record| is_shown(record)).collect();
    let row = |link_profile: &LinkProfile| {
        let cells = ALL.map(|kind| {
            let found =
                shown.iter().find(|record| record.link_profile == *link_profile && record.is_of(&[kind]));
            found.map_or(Cell::Empty, |record| Cell::Text(figures(record)))
        });
        Row { name: describe(link_profile), is_published: false, cells: cells.to_vec() }
    };
    let rows = courses(&shown).iter().map(row).collect();
    let columns = ALL.map(|kind| name(kind).to_owned()).to_vec();
    Table { title, corner: "link".to_owned(), columns, rows }
}

/// One flow in one cell: a row of the table is a link, and its four cells are what is to be compared.
fn figures(record: &Record) -> String {
    let outcome = &record.outcome;
    let (half, most) = (millis(outcome.wait_p50), millis(outcome.wait_p95));
    let digits = if most < 10.0 { 1 } else { 0 };
    let (used, lost) = (outcome.utilisation() * 100.0, outcome.lost() * 100.0);
    format!("{used:.1} %; {half:.digits$}, {most:.digits$} ms; {lost:.2} %")
}

/// The courses of these records, each once.
fn courses(records: &[&Record]) -> Vec<LinkProfile> {
    let mut courses: Vec<LinkProfile> = Vec::new();
    for record in records {
        if !courses.contains(&record.link_profile) {
            courses.push(record.link_profile);
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
        let cells = courses.iter().map(|link_profile| {
            let found =
                shown.iter().find(|record| record.link_profile == *link_profile && record.is_of(&both));
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
pub(super) fn describe(link_profile: &LinkProfile) -> String {
    let mut text = format!(
        "{}, {} ms, queue {}",
        rate(link_profile.bits_per_second),
        link_profile.rtt.as_millis(),
        link_profile.queue
    );
    if link_profile.loss_ppm > 0 {
        text += &format!(", loss {} %", f64::from(link_profile.loss_ppm) / 1e4);
    }
    if link_profile.marking != Marking::None {
        text += &format!(", marks: {}", marking(link_profile.marking));
    }
    if link_profile.dropping != Dropping::Tail {
        text += &format!(", {}", dropping(link_profile.dropping));
    }
    text
}
