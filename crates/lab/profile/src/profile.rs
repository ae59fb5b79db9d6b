//! A profile: the ledger, the flame graph, and the stacks that they were made from.

use crate::flame;
use crate::inlines::{Function, Inlines};
use crate::ledger::Ledger;
use crate::recorder::{Recorder, Target};
use crate::script::{Side, Stack};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::atomic::AtomicBool;

/// With fewer samples a share is uncertain by several per cent.
const FEW: u64 = 500;

/// Where a process spent its time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// By what the time was for.
    pub ledger: Ledger,
    /// A flame graph, as an SVG document that opens by itself and can be searched and zoomed.
    pub svg: String,
    /// A line for each stack, as other tools read it: names from the outermost to the innermost, and how often.
    pub folded: String,
    /// What makes it doubtful.
    pub notes: Vec<String>,
}

/// Watches a target for `seconds`, or to its end, or until `stop` is set.
///
/// # Errors
/// There is no such process; perf is missing or refused; nothing was seen, since the process did not run.
pub fn record(target: &Target, seconds: Option<f64>, title: &str, stop: &AtomicBool) -> io::Result<Profile> {
    let stacks = Recorder::start(target, seconds)?.finish(stop)?;
    Profile::of(&stacks, title)
}

impl Profile {
    /// Of samples.
    ///
    /// # Errors
    /// There are none.
    pub fn of(samples: &[Stack], title: &str) -> io::Result<Profile> {
        if samples.is_empty() {
            return Err(io::Error::other("no samples: the process used no CPU meanwhile"));
        }
        let mut inlines = Inlines::default();
        let mut stacks: BTreeMap<(String, Vec<Function>), u64> = BTreeMap::new();
        for sample in samples {
            *stacks.entry((sample.thread.clone(), inlines.expand(sample))).or_insert(0) += 1;
        }
        let ledger = Ledger::of(stacks.iter().map(|((_, functions), count)| (functions.as_slice(), *count)));
        let mut folded = String::new();
        for ((thread, functions), count) in &stacks {
            folded.push_str(&plain(thread));
            for function in functions.iter().rev() {
                let _ = write!(folded, ";{}", plain(&function.name));
            }
            let _ = writeln!(folded, " {count}");
        }
        let all: Vec<(&[Function], u64)> =
            stacks.iter().map(|((_, functions), count)| (functions.as_slice(), *count)).collect();
        let svg = flame::svg(&folded, &all, &ledger, title)?;
        let notes = notes(samples, &ledger);
        Ok(Profile { ledger, svg, folded, notes })
    }
}

/// Semicolons separate names.
fn plain(name: &str) -> String {
    name.replace(';', ":")
}

fn notes(samples: &[Stack], ledger: &Ledger) -> Vec<String> {
    let mut notes = Vec::new();
    if ledger.samples < FEW {
        notes.push(format!("Only {} samples: shares are rough.", ledger.samples));
    }
    let kernel = || samples.iter().flat_map(|stack| &stack.frames).filter(|frame| frame.side == Side::Kernel);
    let hidden = kernel().filter(|frame| frame.symbol.is_empty()).count();
    if hidden * 10 > kernel().count() {
        notes.push("The kernel hides its names: set sysctl kernel.kptr_restrict=0, or be root.".to_owned());
    }
    notes
}
