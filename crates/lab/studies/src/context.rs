//! What every study is given: the program, the cores, how much time to take, and whom to tell.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// The surroundings of a study.
pub struct Context<'a> {
    /// The tercel program.
    pub program: PathBuf,
    /// The cores of server and client.
    pub cores: [usize; 2],
    /// How much is measured.
    pub effort: Effort,
    /// Only these cells, and how often.
    pub cells: CellChoice,
    /// Whether studies also say where CPU time goes.
    pub profiles: Profiles,
    /// Set when all shall end: the study then returns what it has.
    pub stop: &'a AtomicBool,
    /// Hears a line for each step.
    pub progress: &'a mut dyn FnMut(&str),
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// As the study was published.
    Full,
    /// Scaled to two minutes at most, for a look.
    Quick,
}

/// Which cells a study has that has many; others do not look at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellChoice {
    /// Only those whose names contain all of these words, in whatever case.
    pub only: Vec<String>,
    /// Rounds over all of them, where not as many as the study has.
    pub rounds: Option<usize>,
}

/// Whether CPU time is looked into, where a study knows how: it needs perf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profiles {
    /// Flame graphs and ledgers, for which transfers are repeated.
    Taken,
    /// Only what is measured from outside.
    None,
}

impl Context<'_> {
    /// Whether all shall end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// `full` in a full run, `quick` in a quick one.
    pub fn scaled<T>(&self, full: T, quick: T) -> T {
        if self.effort == Effort::Full { full } else { quick }
    }

    /// Tells the caller.
    pub fn tell(&mut self, line: &str) {
        (self.progress)(line);
    }
}
