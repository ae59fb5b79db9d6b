//! Study shares: a download by tercel and one by the kernel's TCP through the same bottleneck, each by its controllers: who gets what of it.
//!
//! The simulator has tercel's flows beside each other (`docs/controllers`); what a network has beside them is the kernel's TCP. Both
//! downloads write files, whose growth is their share: sizes are read after the flows have had time to settle, and once more at the end.
//! Some trials run at a time, each on a link of its own: nearly all of the time is waiting. All meetings take place once in each round.

#[cfg(test)]
mod tests;
mod trial;
mod words;

use std::io;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};

use bench::site::Site;
use netns::emulator::LinkOptions;
use report::model::{Block, Study};
use report::stats::Summary;

use crate::contestants::{Contestant, Http, TestSite, look};
use crate::context::{Context, Effort};
use trial::{Flow, Meeting, Outcome, Surroundings};

/// The kernel's controllers of TCP.
const KERNEL_HAS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// What is downloaded: more than the link carries in all of a trial.
const CONTENT: (&str, u64) = ("share", 80_000_000);
/// Queues in bandwidth-delay products.
const QUEUES: [f64; 3] = [0.25, 1.0, 4.0];
/// tercel's controllers.
const OURS: [&str; 3] = ["auto", "cubic", "bbr"];
/// The kernel's.
const THEIRS: [&str; 2] = ["cubic", "bbr"];
/// Trials at a time.
const AT_ONCE: usize = 3;
/// Of a full run and of a quick one.
const ROUNDS: [usize; 2] = [5, 2];

/// What a meeting came to, over all rounds.
#[derive(Clone, Debug, serde::Serialize)]
struct Series {
    meeting: Meeting,
    outcomes: Vec<Outcome>,
    /// Why trials failed.
    problems: Vec<String>,
}

impl Series {
    fn of(meeting: Meeting) -> Series {
        Series { meeting, outcomes: Vec::new(), problems: Vec::new() }
    }

    /// A figure of the trials in which the emulator missed nothing; `None` if there are none.
    fn summary(&self, figure: impl Fn(&Outcome) -> f64) -> Option<Summary> {
        let valid: Vec<f64> =
            self.outcomes.iter().filter(|outcome| outcome.missed == 0).map(figure).collect();
        (!valid.is_empty()).then(|| Summary::of(valid))
    }
}

/// Runs the study.
///
/// # Errors
/// Nothing can be measured at all.
pub fn run(context: &mut Context<'_>) -> io::Result<Study> {
    let began = cpu::clock_seconds();
    let cable = LinkOptions::default();
    drop(Site::linked(&cable, &cable).map_err(io::Error::other)?);
    let ground = TestSite::on(Site::Loopback, None)?;
    ground.add(CONTENT)?;
    let field = look(&context.program, &Http::ALL);
    let find = |who| field.installed.iter().find(|server| server.who == who);
    let missing = || io::Error::other("nginx, which sends over the kernel's TCP, is not installed");
    let nginx = find(Contestant::Nginx).ok_or_else(missing)?;
    let tercel = find(Contestant::Tercel).ok_or_else(|| io::Error::other("there is no tercel"))?;
    let kernel = std::fs::read_to_string(KERNEL_HAS).unwrap_or_default();
    let mut all = plan(context.effort, &kernel);
    let rounds = context.scaled(ROUNDS[0], ROUNDS[1]);
    let program = context.program.clone();
    let (cores, stop) = (context.cores, context.stop);
    let around = Surroundings { tercel, nginx, ground: &ground, program: &program, cores, stop };
    measure(&mut all, rounds, around, context);
    let problem =
        context.is_stopped().then(|| crate::contestants::words::problem(io::ErrorKind::Interrupted.into()));
    Ok(Study {
        id: "shares".to_owned(),
        title: "Beside the kernel's TCP".to_owned(),
        question: "How do a download by tercel and one by the kernel's TCP share a bottleneck?".to_owned(),
        method: words::method(&all, rounds),
        findings: words::findings(&all),
        blocks: vec![
            Block::Table(words::shares(&all)),
            Block::Table(words::indices(&all)),
            Block::Plot(words::plot(&all)),
        ],
        notes: words::notes(&all, &kernel),
        problem,
        seconds: cpu::clock_seconds() - began,
        raw: serde_json::json!({ "meetings": all }),
    })
}

/// Who meets whom over which queue; a quick run has the queue of one product.
fn plan(effort: Effort, kernel: &str) -> Vec<Series> {
    let theirs = || THEIRS.into_iter().filter(|name| kernel.split_whitespace().any(|known| known == *name));
    let firsts: Vec<Flow> = OURS.map(Flow::Tercel).into_iter().chain(theirs().map(Flow::Tcp)).collect();
    let queues: &[f64] = match effort {
        Effort::Quick => &[1.0],
        Effort::Full => &QUEUES,
    };
    let over = |tcp: &'static str, first: Flow| queues.iter().map(move |queue| (tcp, first, *queue));
    let of_second = |tcp: &'static str| firsts.iter().flat_map(move |first| over(tcp, *first));
    theirs()
        .flat_map(of_second)
        .map(|(tcp, first, queue)| Series::of(Meeting { first, tcp, queue }))
        .collect()
}

/// All of them in each round, some at a time.
fn measure(all: &mut [Series], rounds: usize, around: Surroundings<'_>, context: &mut Context<'_>) {
    let mut due: Vec<(usize, Meeting)> = (0..rounds)
        .flat_map(|_| all.iter().enumerate().map(|(place, series)| (place, series.meeting)))
        .collect();
    let trials = due.len();
    due.reverse();
    let due = Mutex::new(due);
    let next = || due.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let (says, heard) = channel();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            let (says, next) = (says.clone(), &next);
            scope.spawn(move || {
                while let Some((place, meeting)) = next() {
                    let outcome = around.share(&meeting);
                    if around.stop.load(std::sync::atomic::Ordering::Relaxed) {
                        return;
                    }
                    // There is no listener after a panic of the study.
                    let _ = says.send((place, outcome));
                }
            });
        }
        drop(says);
        for (count, (place, outcome)) in (1..).zip(heard) {
            let Some(series) = all.get_mut(place) else { continue };
            context.tell(&format!("{count}/{trials}: {}", words::line(&series.meeting, &outcome)));
            match outcome {
                Ok(outcome) => series.outcomes.push(outcome),
                Err(error) => series.problems.push(error.to_string()),
            }
        }
    });
}
