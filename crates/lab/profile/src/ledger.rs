//! The ledger: which share of a process's CPU time went into each part of its work. All shares add up to one, what is not
//! explained included.

use crate::inlines::Function;
use crate::parts::{self, Part};
use report::model::{Cell, Row, Table};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// How many names of unexplained functions are kept.
const NAMED: usize = 5;

/// Samples by part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// All samples.
    pub samples: u64,
    /// Of each part, in the order of [`Part::ALL`].
    pub lines: Vec<Line>,
    /// The share of all that was spent on delivery to the receiver within calls that send: a virtual link's way.
    pub delivery: f64,
    /// Where the unexplained time went, by innermost function, most first: name and share of all.
    pub unexplained: Vec<(String, f64)>,
    /// CPU seconds that the process used meanwhile, from the operating system, and packets that it sent, where known.
    pub work: Option<Work>,
}

/// A part's line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The part.
    pub part: Part,
    /// How many samples.
    pub samples: u64,
    /// Their share of all.
    pub share: f64,
}

/// What the process did while it was watched.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Seconds of CPU.
    pub cpu_seconds: f64,
    /// Packets sent.
    pub packets: u64,
}

impl Ledger {
    /// Of these stacks, each with how often it was seen.
    pub fn of<'a>(stacks: impl IntoIterator<Item = (&'a [Function], u64)>) -> Ledger {
        let (mut counts, mut unknown) = (BTreeMap::new(), BTreeMap::new());
        let (mut samples, mut delivered) = (0, 0);
        for (functions, count) in stacks {
            let part = parts::part(functions);
            samples += count;
            *counts.entry(part).or_insert(0) += count;
            if part == Part::KernelSend && parts::is_delivery(functions) {
                delivered += count;
            }
            if part == Part::Unexplained {
                let name = functions.first().map_or("[nothing known]", |function| function.name.as_str());
                *unknown.entry(name.to_owned()).or_insert(0) += count;
            }
        }
        let share = |count: u64| if samples == 0 { 0.0 } else { count as f64 / samples as f64 };
        let line = |part: Part| {
            let samples = counts.get(&part).copied().unwrap_or(0);
            Line { part, samples, share: share(samples) }
        };
        let mut unexplained: Vec<(String, f64)> =
            unknown.into_iter().map(|(name, count)| (name, share(count))).collect();
        unexplained.sort_by(|a, b| b.1.total_cmp(&a.1));
        unexplained.truncate(NAMED);
        let lines = Part::ALL.map(line).to_vec();
        Ledger { samples, lines, delivery: share(delivered), unexplained, work: None }
    }

    /// The same with what the process did meanwhile, so that there are nanoseconds per packet.
    #[must_use]
    pub fn with_work(self, work: Work) -> Ledger {
        Ledger { work: Some(work).filter(|work| work.packets > 0 && work.cpu_seconds > 0.0), ..self }
    }

    /// The share of a part.
    pub fn share(&self, part: Part) -> f64 {
        self.lines.iter().find(|line| line.part == part).map_or(0.0, |line| line.share)
    }

    /// Nanoseconds of CPU per packet for a share, if it is known how many packets there were.
    pub fn nanoseconds(&self, share: f64) -> Option<f64> {
        self.work.map(|work| share * work.cpu_seconds * 1e9 / work.packets as f64)
    }

    /// In a line, largest part first.
    pub fn sentence(&self) -> String {
        let mut lines = self.lines.clone();
        lines.sort_by(|a, b| b.share.total_cmp(&a.share));
        let said = lines.iter().filter(|line| line.samples > 0);
        let said: Vec<String> =
            said.map(|line| format!("{} {:.1} %", line.part.name(), line.share * 100.0)).collect();
        said.join(", ")
    }

    /// The part with most samples, and its share of all; `None` without samples.
    pub fn largest(&self) -> Option<(&'static str, f64)> {
        let largest =
            self.lines.iter().filter(|line| line.samples > 0).max_by(|a, b| a.share.total_cmp(&b.share))?;
        Some((largest.part.name(), largest.share))
    }

    /// Several ledgers beside each other: a column of shares for each, and one of nanoseconds per packet where they are known.
    pub fn table(title: &str, ledgers: &[(&str, &Ledger)]) -> Table {
        let mut columns = Vec::new();
        for (name, ledger) in ledgers {
            columns.push(format!("{name}, % of CPU"));
            if ledger.work.is_some() {
                columns.push(format!("{name}, ns per packet"));
            }
        }
        let cells = |share: &dyn Fn(&Ledger) -> f64| {
            let pair = |(_, ledger): &(&str, &Ledger)| {
                let share = share(ledger);
                let nanoseconds = ledger.nanoseconds(share).map(|value| Cell::Number(value, 0));
                std::iter::once(Cell::Number(share * 100.0, 1)).chain(nanoseconds)
            };
            ledgers.iter().flat_map(pair).collect()
        };
        let row = |name: &str, cells| Row { name: name.to_owned(), is_published: false, cells };
        let mut rows: Vec<Row> =
            Part::ALL.iter().map(|part| row(part.name(), cells(&|ledger| ledger.share(*part)))).collect();
        rows.push(row("all", cells(&|ledger| ledger.lines.iter().map(|line| line.share).sum())));
        if ledgers.iter().any(|(_, ledger)| ledger.delivery > 0.0) {
            // Below the line that it is a part of, which is the first.
            rows.insert(1, row("– of it delivery", cells(&|ledger| ledger.delivery)));
        }
        Table { title: title.to_owned(), corner: "part of the work".to_owned(), columns, rows }
    }
}

/// For a terminal.
impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Line { part, share, samples } in &self.lines {
            let bar = "█".repeat((share * 40.0).round() as usize);
            write!(f, "{:18} {:>5.1} %", part.name(), share * 100.0)?;
            if let Some(nanoseconds) = self.nanoseconds(*share) {
                write!(f, " {nanoseconds:>7.0} ns per packet")?;
            }
            writeln!(f, " {samples:>7}  {bar}")?;
        }
        let all = self.nanoseconds(1.0).map_or_else(String::new, |all| format!(" {all:>7.0} ns per packet"));
        writeln!(f, "{:18} {:>5.1} %{all} {:>7} samples", "all", 100.0, self.samples)?;
        if self.delivery > 0.0 {
            let delivery = self.delivery * 100.0;
            writeln!(
                f,
                "Kernel send holds {delivery:.1} % for delivery to the other end: virtual links do it in the sender's call."
            )?;
        }
        for (name, share) in &self.unexplained {
            writeln!(f, "Unexplained: {:.1} % in {name}", share * 100.0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Side;

    fn stack(names: &[&str]) -> Vec<Function> {
        names.iter().map(|name| Function { name: (*name).to_owned(), side: Side::User }).collect()
    }

    fn ledger() -> Ledger {
        let (seal, turn, odd) =
            (stack(&["crypto::packet::seal"]), stack(&["worker::turn"]), stack(&["strange", "main"]));
        Ledger::of([(seal.as_slice(), 50), (turn.as_slice(), 30), (odd.as_slice(), 20)])
    }

    #[test]
    fn shares_add_up_and_the_unexplained_is_named() {
        let ledger = ledger();
        let sum: f64 = ledger.lines.iter().map(|line| line.share).sum();
        assert!((sum - 1.0).abs() < 1e-12 && ledger.samples == 100);
        assert_eq!(ledger.share(Part::PacketProtection), 0.5);
        assert_eq!(ledger.unexplained, [("strange".to_owned(), 0.2)]);
        assert_eq!(ledger.sentence(), "packet protection 50.0 %, transport 30.0 %, unexplained 20.0 %");
        assert_eq!(ledger.largest(), Some(("packet protection", 0.5)));
        assert_eq!(Ledger::of([]).share(Part::Transport), 0.0, "nothing is no division by nothing");
    }

    #[test]
    fn nanoseconds_come_from_the_operating_systems_account() {
        let ledger = ledger().with_work(Work { cpu_seconds: 2.0, packets: 1_000_000 });
        assert_eq!(ledger.nanoseconds(ledger.share(Part::PacketProtection)), Some(1_000.0));
        assert!(ledger.to_string().contains("50.0 %    1000 ns per packet"), "{ledger}");
        let table = Ledger::table("Ledger", &[("gso", &ledger), ("xdp", &self::ledger())]);
        assert_eq!(table.columns, ["gso, % of CPU", "gso, ns per packet", "xdp, % of CPU"]);
        assert!(table.rows.iter().all(|row| row.cells.len() == 3));
        let all = table.rows.iter().find(|row| row.name == "all").unwrap();
        assert_eq!(all.cells[1], Cell::Number(2_000.0, 0));
        assert_eq!(self::ledger().with_work(Work { cpu_seconds: 1.0, packets: 0 }).work, None);
    }
}
