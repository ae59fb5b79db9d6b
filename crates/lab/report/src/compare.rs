//! Two runs side by side: what differs in their surroundings, and every series of trials that both have.
//!
//! Rows are matched by study, table, row and column. A difference is called one only if the interval of the ratio excludes 1;
//! figures without trials are not judged.

use crate::model::{Block, Cell, Row, Run, Study, Table};
use crate::stats::{Ratio, Summary};
use serde::Serialize;
use std::collections::BTreeMap;

/// From this many series on, some are bound to differ by chance.
const MANY: usize = 20;
/// So many series are named at most; of more the tables have each, and a sentence says how many.
const MOST_NAMED: usize = 12;

/// What two runs say of each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// When each began.
    pub began: [String; 2],
    /// Whether each was a quick look.
    pub is_quick: [bool; 2],
    /// What is not alike in their surroundings: name, value of the first, value of the second; absent where one lacks it.
    pub surroundings: Vec<(String, [Option<String>; 2])>,
    /// Every series that both have, in the order of the second run.
    pub pairs: Vec<Pair>,
    /// Series of the first run that the second has not.
    pub only_first: Vec<SeriesLocation>,
    /// Series of the second run that the first has not.
    pub only_second: Vec<SeriesLocation>,
}

/// Where a series stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SeriesLocation {
    /// The study's id.
    pub study: String,
    /// The table's title.
    pub table: String,
    /// The column's head.
    pub column: String,
    /// The row's name.
    pub row: String,
}

/// A series in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Where it stands in both.
    pub place: SeriesLocation,
    /// Its trials in each.
    pub trials: [Summary; 2],
    /// The second over the first; absent with fewer than two trials on a side, and where there is nothing to divide by.
    pub ratio: Option<Ratio>,
    /// Whether the interval excludes 1.
    pub has_changed: bool,
    /// How many digits are worth showing.
    #[serde(skip)]
    pub digits: u8,
}

impl Comparison {
    /// Of the second run with the first.
    pub fn of(first: &Run, second: &Run) -> Comparison {
        let (before, after) = (series(first), series(second));
        let mut known: BTreeMap<&SeriesLocation, &Summary> = BTreeMap::new();
        for (place, summary, _) in &before {
            known.entry(place).or_insert(summary);
        }
        let mut comparison = Comparison {
            began: [first, second].map(|run| run.began.clone()),
            is_quick: [first, second].map(|run| run.is_quick),
            surroundings: differences(first, second),
            ..Comparison::default()
        };
        let mut seen = BTreeMap::new();
        for (place, summary, digits) in &after {
            if seen.insert(place, ()).is_some() {
                continue;
            }
            match known.get(place) {
                Some(old) => comparison.pairs.push(Pair::of(place, old, summary, *digits)),
                None => comparison.only_second.push(place.clone()),
            }
        }
        let gone = before.iter().map(|(place, ..)| place).filter(|place| !seen.contains_key(place));
        comparison.only_first = gone.cloned().collect();
        comparison
    }

    /// As a run that can be shown like any other: the surroundings first, then a study for each that both have.
    pub fn as_run(&self, names: [&str; 2]) -> Run {
        let mut studies = vec![self.overview(names)];
        for pair in &self.pairs {
            let id = &pair.place.study;
            if studies.last().is_none_or(|study| study.id != *id) {
                let question = format!("Is {} different from {}?", names[1], names[0]);
                studies.push(Study {
                    id: id.clone(),
                    title: "side by side".to_owned(),
                    question,
                    ..Study::default()
                });
            }
            if let Some(study) = studies.last_mut() {
                add(study, pair, names);
            }
        }
        let environment = [0, 1].map(|side| (names[side].to_owned(), format!("begun {}", self.began[side])));
        let [_, began] = &self.began;
        let is_quick = self.is_quick.contains(&true);
        Run { began: began.clone(), is_quick, environment: environment.to_vec(), studies, ..Run::default() }
    }

    fn overview(&self, names: [&str; 2]) -> Study {
        let rows = self.surroundings.iter().map(|(name, values)| Row {
            name: name.clone(),
            is_published: false,
            cells: values.iter().map(|value| Cell::from(value.as_deref().unwrap_or("–"))).collect(),
        });
        let table = Table {
            title: "What differs in the surroundings".to_owned(),
            corner: "what".to_owned(),
            columns: names.map(str::to_owned).to_vec(),
            rows: rows.collect(),
        };
        let blocks = if table.rows.is_empty() { Vec::new() } else { vec![Block::Table(table)] };
        Study {
            id: "all".to_owned(),
            title: format!("{} and {}", names[0], names[1]),
            findings: self.findings(),
            blocks,
            notes: self.notes(names),
            ..Study::default()
        }
    }

    fn findings(&self) -> Vec<String> {
        let judged = self.pairs.iter().filter(|pair| pair.ratio.is_some()).count();
        let changed: Vec<&Pair> = self.pairs.iter().filter(|pair| pair.has_changed).collect();
        let surroundings = match self.surroundings.len() {
            0 => "The surroundings are alike.".to_owned(),
            1 => "One thing differs in the surroundings.".to_owned(),
            count => {
                format!("{count} things differ in the surroundings: differences below may come from them.")
            }
        };
        let mut findings = vec![surroundings, format!("{} of {judged} series differ.", changed.len())];
        if changed.len() <= MOST_NAMED {
            let named = |pair: &&Pair| Some(format!("{}, {}", pair.place.study, pair.finding()?));
            findings.extend(changed.iter().filter_map(named));
        } else {
            findings.extend(by_study(&changed, |pair| &pair.place).filter_map(|(study, pairs)| {
                let furthest =
                    pairs.iter().max_by(|one, other| one.distance().total_cmp(&other.distance()))?;
                Some(format!("{study}: {} differ, the furthest is {}.", pairs.len(), furthest.finding()?))
            }));
        }
        findings
    }

    fn notes(&self, names: [&str; 2]) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_quick[0] != self.is_quick[1] {
            notes
                .push("Only one of the two was a quick look: sizes differ, so ratios say little.".to_owned());
        }
        for (name, places) in names.iter().zip([&self.only_first, &self.only_second]) {
            let said: Vec<String> = if places.len() <= MOST_NAMED {
                places
                    .iter()
                    .map(|place| format!("{}, {}, {}", place.study, place.row, place.column))
                    .collect()
            } else {
                let of_study =
                    |(study, places): (&str, Vec<_>)| format!("{} series of {study}", places.len());
                by_study(places, |place| place).map(of_study).collect()
            };
            if !said.is_empty() {
                notes.push(format!("Only in {name}: {}.", said.join("; ")));
            }
        }
        let judged = self.pairs.iter().filter(|pair| pair.ratio.is_some()).count();
        if judged >= MANY {
            let chance = judged as f64 * 0.05;
            notes.push(format!(
                "Of {judged} series, {chance:.0} or more differ by chance alone: with few trials the intervals are too narrow rather than \
                 too wide. Measure again what surprises."
            ));
        }
        let single = self.pairs.iter().filter(|pair| pair.ratio.is_none()).count();
        if single > 0 {
            notes.push(format!("{single} series have too few trials to be judged."));
        }
        notes
    }
}

impl Pair {
    fn of(place: &SeriesLocation, old: &Summary, new: &Summary, digits: u8) -> Pair {
        let ratio = Ratio::of(&new.values, &old.values).filter(|ratio| ratio.ratio.is_finite());
        let has_changed = ratio.is_some_and(|ratio| !ratio.spans_one());
        Pair { place: place.clone(), trials: [old.clone(), new.clone()], ratio, has_changed, digits }
    }

    /// Row, column and ratio; `None` without a ratio.
    fn finding(&self) -> Option<String> {
        let (ratio, SeriesLocation { row, column, .. }) = (self.ratio?, &self.place);
        Some(format!("{row}, {column}: {:.2} ({:.2} to {:.2})", ratio.ratio, ratio.low, ratio.high))
    }

    /// How far the second run is from the first, whichever is larger.
    fn distance(&self) -> f64 {
        self.ratio.map_or(0.0, |ratio| ratio.ratio.ln().abs())
    }
}

/// What lies together by studies, in their order.
fn by_study<'a, T>(
    all: &'a [T],
    place: impl Fn(&T) -> &SeriesLocation + Copy + 'a,
) -> impl Iterator<Item = (&'a str, Vec<&'a T>)> {
    all.chunk_by(move |one, other| place(one).study == place(other).study).filter_map(move |part| {
        let study = part.first().map(|first| place(first).study.as_str())?;
        Some((study, part.iter().collect()))
    })
}

/// Puts a pair into the table of its column, which is the last one if there is one.
fn add(study: &mut Study, pair: &Pair, names: [&str; 2]) {
    let title = format!("{}: {}", pair.place.table, pair.place.column);
    let is_there = |block: &Block| matches!(block, Block::Table(table) if table.title == title);
    if !study.blocks.iter().any(is_there) {
        let columns = [names[0], names[1], "second / first"].map(str::to_owned).to_vec();
        study.blocks.push(Block::Table(Table { title: title.clone(), columns, ..Table::default() }));
    }
    let tables = study.blocks.iter_mut().filter_map(|block| match block {
        Block::Table(table) if table.title == title => Some(table),
        _ => None,
    });
    let [old, new] = &pair.trials;
    let cells = vec![
        Cell::Trials(old.clone(), pair.digits),
        Cell::Trials(new.clone(), pair.digits),
        pair.ratio.into(),
    ];
    for table in tables {
        table.rows.push(Row { name: pair.place.row.clone(), is_published: false, cells: cells.clone() });
    }
}

/// Every series of trials that was measured in a run.
fn series(run: &Run) -> Vec<(SeriesLocation, Summary, u8)> {
    let mut all = Vec::new();
    for study in &run.studies {
        for block in &study.blocks {
            let Block::Table(table) = block else { continue };
            for row in table.rows.iter().filter(|row| !row.is_published) {
                for (column, cell) in table.columns.iter().zip(&row.cells) {
                    let Cell::Trials(summary, digits) = cell else { continue };
                    let place = SeriesLocation {
                        study: study.id.clone(),
                        table: table.title.clone(),
                        column: column.clone(),
                        row: row.name.clone(),
                    };
                    all.push((place, summary.clone(), *digits));
                }
            }
        }
    }
    all
}

/// What is not alike, in the order of the first run, then what only the second has.
fn differences(first: &Run, second: &Run) -> Vec<(String, [Option<String>; 2])> {
    let value = |run: &Run, name: &str| {
        run.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in first.environment.iter().chain(&second.environment) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let both = names.into_iter().map(|name| (name.clone(), [value(first, name), value(second, name)]));
    both.filter(|(_, [a, b])| a != b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{html, sample, text};

    fn two() -> [Run; 2] {
        let first = sample::run();
        let mut second = first.clone();
        second.began = "2026-11-22T08:00:00Z".to_owned();
        second.environment =
            vec![("Kernel".to_owned(), "Linux 6.19".to_owned()), ("NUMA".to_owned(), "1".to_owned())];
        let Some(Block::Table(table)) = second.studies[0].blocks.first_mut() else { panic!("no table") };
        table.rows[0].cells[0] = Cell::Trials(Summary::of([262.0, 260.0, 265.0]), 1);
        table.rows.remove(1);
        table.rows[1].name = "gso, new".to_owned();
        [first, second]
    }

    #[test]
    fn only_what_the_interval_shows_has_changed() {
        let [first, second] = two();
        let comparison = Comparison::of(&first, &second);
        assert_eq!(comparison.pairs.len(), 1, "the published row is not compared: {comparison:?}");
        let pair = &comparison.pairs[0];
        let ratio = pair.ratio.unwrap();
        assert!(pair.has_changed && ratio.low > 1.9 && ratio.high < 2.1, "{pair:?}");
        let place = |place: &SeriesLocation| place.row.clone();
        assert_eq!(comparison.only_first.iter().map(place).collect::<Vec<_>>(), ["mmsg", sample::HOSTILE]);
        assert_eq!(comparison.only_second.iter().map(place).collect::<Vec<_>>(), ["gso, new"]);
        let same = Comparison::of(&first, &first);
        assert!(same.pairs.len() == 3 && same.pairs.iter().all(|pair| !pair.has_changed), "{same:?}");
        assert!(same.surroundings.is_empty());
    }

    #[test]
    fn surroundings_come_first() {
        let [first, second] = two();
        let run = Comparison::of(&first, &second).as_run(["old", "new"]);
        let told = text::run(&run, text::Colours::None);
        let at = |part: &str| told.find(part).unwrap_or_else(|| panic!("{part} is missing in\n{told}"));
        assert!(
            at("Linux 6.19") < at("262.3") && at("3 things differ") < at("1 of 1 series differ"),
            "{told}"
        );
        assert!(told.contains("Only in old: e1, mmsg") && told.contains("e1, plain, MB/s: 2.00"), "{told}");
        let page = html::comparison(&run);
        assert!(page.contains("id=\"all\"") && !page.contains("<script"), "{page}");
    }

    /// Deleted, two runs of all studies would have hundreds of findings above the tables that say the same.
    #[test]
    fn many_differences_are_counted_by_study() {
        let pair = |study: &str, row: usize, new: f64| {
            let place = SeriesLocation {
                study: study.to_owned(),
                row: row.to_string(),
                column: "MB/s".to_owned(),
                ..SeriesLocation::default()
            };
            Pair::of(&place, &Summary::of([1.0, 1.01]), &Summary::of([new, new * 1.01]), 1)
        };
        let mut comparison = Comparison::of(&sample::run(), &sample::run());
        comparison.pairs = (0..MOST_NAMED).map(|row| pair("e1", row, 2.0)).collect();
        comparison.only_first = comparison.pairs.iter().map(|pair| pair.place.clone()).collect();
        assert_eq!(comparison.findings().len(), 2 + MOST_NAMED);
        assert!(comparison.notes(["old", "new"])[0].starts_with("Only in old: e1, 0, MB/s; e1, 1"));
        comparison.pairs.push(pair("e2", 7, 0.2));
        comparison.pairs.push(pair("e2", 8, 3.0));
        comparison.only_first.push(comparison.pairs[MOST_NAMED].place.clone());
        let findings = comparison.findings();
        assert!(findings[2].starts_with("e1: 12 differ, the furthest is"), "{findings:?}");
        assert!(findings[3].starts_with("e2: 2 differ, the furthest is 7, MB/s: 0.20"), "{findings:?}");
        assert_eq!(comparison.notes(["old", "new"])[0], "Only in old: 12 series of e1; 1 series of e2.");
    }

    #[test]
    fn a_single_trial_is_not_judged() {
        let pair = Pair::of(&SeriesLocation::default(), &Summary::of([1.0]), &Summary::of([2.0]), 1);
        assert!(pair.ratio.is_none() && !pair.has_changed);
        let nothing =
            Pair::of(&SeriesLocation::default(), &Summary::of([0.0, 0.0]), &Summary::of([2.0, 1.0]), 1);
        assert!(nothing.ratio.is_none(), "division by zero says nothing");
    }
}
