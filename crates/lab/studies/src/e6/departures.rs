//! Departure times: the kernel holds trains back until they are due, so that the sender wakes once for several of them.
//!
//! It needs the queueing discipline fq, and a path that is paced at all, which one with a round trip below a millisecond is not: so
//! this is measured over a longer one, that both ends make by holding what they receive.

use std::io;

use bench::method::Method;
use bench::pair::ProgramPair;
use bench::site::{End, Site};

use super::techniques::SIZE;
use crate::context::Context;
use crate::downloads::{DownloadRun, DownloadSeries};

/// How long each end holds what it receives, in microseconds: a round trip of 10 ms.
const HOLD: [&str; 2] = ["--hold-received", "5000"];

/// Without the technique, as the table has it.
pub(super) const NAME: &str = "without departure times, round trip 10 ms";

/// The lanes with and without, or a note that says why there are none.
///
/// # Errors
/// [`io::ErrorKind::Interrupted`] when all shall end.
pub(super) fn lanes(
    context: &mut Context<'_>,
    (bytes, trials): (u64, usize),
) -> io::Result<Result<[DownloadSeries; 2], String>> {
    let site = match prepare() {
        Ok(site) => site,
        Err(reason) => return Ok(Err(unmeasured(&reason))),
    };
    let program = context.program.clone();
    let pair = ProgramPair::new(&program, &site, context.stop)?;
    let flags = [&SIZE[..], &HOLD].concat();
    let without = [&flags[..], &["--without", "departure-times"]].concat();
    let mut lanes = [
        DownloadSeries::apart("with departure times, round trip 10 ms", Method::Gso, &flags, &flags),
        DownloadSeries::apart(NAME, Method::Gso, &without, &flags),
    ];
    let downloads = DownloadRun { pair: &pair, cores: context.cores, bytes, trials, place: "fq" };
    downloads.run(&mut lanes, context)?;
    let problem = lanes.iter().find_map(|lane| lane.problem.clone());
    let held = |lane: &DownloadSeries| {
        !lane.trials.is_empty() && lane.trials.iter().all(|trial| trial.departure_times)
    };
    let [with, without] = &lanes;
    Ok(match problem {
        Some(problem) => Err(unmeasured(&problem)),
        None if held(with) && !held(without) => Ok(lanes),
        None => Err(unmeasured(
            "the server did not find its interface to keep departure times, or used them in both rows",
        )),
    })
}

/// Two ends, of which the server's keeps departure times.
fn prepare() -> Result<Site, String> {
    let site = Site::veth(1).map_err(|error| error.to_string())?;
    site.set_queueing(End::Server, "fq")
        .map_err(|error| format!("the kernel gives the link no queueing discipline fq ({error})"))?;
    Ok(site)
}

fn unmeasured(reason: &str) -> String {
    format!("Departure times were not measured: {reason}.")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::context::{CellChoice, Effort, Profiles};

    /// Deleted, a machine without fq could get a row that compares the same with itself, or lose the whole study.
    #[test]
    fn without_fq_the_report_says_why_there_is_no_row() {
        let (stop, mut tell) = (AtomicBool::new(false), |_: &str| {});
        let mut context = Context {
            program: "/nowhere/tercel".into(),
            cores: cpu::first_two(),
            effort: Effort::Quick,
            cells: CellChoice::default(),
            profiles: Profiles::None,
            stop: &stop,
            progress: &mut tell,
        };
        // With fq, it is the program that is missing.
        let note = lanes(&mut context, (1_000, 1)).unwrap().unwrap_err();
        assert!(note.starts_with("Departure times were not measured: "), "{note}");
    }
}
