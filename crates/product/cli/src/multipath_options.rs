//! Several paths at once: the flags of get, and the schedulers that it and serve may be told.

use clap::{Args, ValueEnum};
use client::error::GetError;
use client::{Builder, LocalPlace};

/// Paths of a connection at a time.
const MAX_PATHS: usize = 4;

/// Which of several paths carries data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scheduler {
    /// The one with the lowest round-trip time until its window is full, then the next.
    LowestRtt,
    /// Each in turn.
    RoundRobin,
    /// As lowest-rtt, but what is little goes on all paths.
    Redundant,
}

impl From<Scheduler> for transport::Scheduler {
    fn from(scheduler: Scheduler) -> transport::Scheduler {
        match scheduler {
            Scheduler::LowestRtt => transport::Scheduler::LowestRtt,
            Scheduler::RoundRobin => transport::Scheduler::RoundRobin,
            Scheduler::Redundant => transport::Scheduler::Redundant,
        }
    }
}

/// From where a client has paths.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "QUIC")]
pub(crate) struct PathsArgs {
    /// Use several paths at once: one from each of these interfaces or local addresses, up to four, separated by commas.
    ///
    /// The connection begins on the first. The server must offer it: tercel serve --multipath does. Where it does not, the download goes
    /// over the first path alone, and a warning says so. What leaves from a place leaves by its interface, whatever the routes say.
    /// For kernel UDP.
    #[arg(long, value_name = "INTERFACE|ADDRESS,...", value_delimiter = ',', value_parser = place, conflicts_with = "migrate_to", hide_short_help = true)]
    paths: Vec<LocalPlace>,
    /// Which of several paths carries requests, while more than one can; for responses the server decides.
    #[arg(
        long,
        value_enum,
        default_value = "lowest-rtt",
        value_name = "NAME",
        requires = "paths",
        hide_short_help = true
    )]
    scheduler: Scheduler,
}

impl PathsArgs {
    /// How many paths are asked for; `None` without the flag.
    pub(crate) fn count(&self) -> Option<usize> {
        Some(self.paths.len()).filter(|count| *count > 0)
    }

    /// With the paths that were asked for.
    ///
    /// # Errors
    /// There are too many, or one is not of this machine.
    pub(crate) fn apply(&self, builder: Builder) -> Result<Builder, GetError> {
        if self.paths.is_empty() {
            return Ok(builder);
        }
        let usage = |text: String| Err(GetError::Usage(format!("--paths: {text}")));
        if self.paths.len() > MAX_PATHS {
            return usage(format!(
                "{} places are named, and a connection has four paths at most",
                self.paths.len()
            ));
        }
        for (at, place) in self.paths.iter().enumerate() {
            if self.paths.iter().take(at).any(|before| before == place) {
                return usage(format!("{place} is named twice"));
            }
            if let Err(error) = place.addresses() {
                return usage(error.to_string());
            }
        }
        Ok(builder.paths(&self.paths, self.scheduler.into()))
    }
}

fn place(text: &str) -> Result<LocalPlace, String> {
    let text = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if text.is_empty() { Err("a name is empty".to_owned()) } else { Ok(LocalPlace::parse(text)) }
}
