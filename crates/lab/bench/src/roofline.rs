//! The roofline: what a transfer costs when there is no protocol.
//!
//! Two processes on two cores do only what no implementation can avoid. The sender copies payload from a large source
//! into trains, seals every packet, protects the headers of a train in one pass and hands full trains to the kernel. The
//! receiver takes merged trains, removes the protection and copies the payload out. Instead of congestion control
//! the receiver returns credit, so that nothing is lost and the queue between the two stays short enough for the
//! cache. How far a real transfer is from this is the price of its protocol.
//!
//! With [`Work::Kernel`] the two only move bytes: the price of the system calls of each [`Variant`].
//!
//! The library does not know how its program is started again, so the caller lends a way: a function from arguments to
//! a command that ends up in [`child()`].

mod child;
mod protect;

use std::io::{self, BufRead, BufReader, Read};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};
use udp::{BindOptions, Variant};

pub use child::child;

/// How much of a transfer is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Copy, seal, protect, send; receive, unprotect, open, copy.
    Whole,
    /// Send and receive, without touching the bytes.
    Kernel,
}

/// What is measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RooflinePlan {
    /// Bytes of UDP payload in each datagram.
    pub datagram_size: usize,
    /// Datagrams of one trial.
    pub datagrams: u64,
    /// Trials; the result is their median.
    pub trials: usize,
    /// How much is done.
    pub work: Work,
    /// The name of a [`Variant`].
    pub variant: String,
    /// The cores of sender and receiver.
    pub cores: [usize; 2],
    /// Bytes that may be on their way at once.
    pub window: usize,
    /// Bytes that leave in one flush at most.
    pub send_memory: usize,
    /// Messages taken in by one call at most.
    pub receive_batch: usize,
}

impl RooflinePlan {
    /// `gigabytes` (10^9 bytes of UDP payload) in datagrams of `datagram_size`, three trials on the first two cores that
    /// there are (or on the only one).
    pub fn new(datagram_size: usize, gigabytes: f64, work: Work, variant: Variant) -> RooflinePlan {
        let port = BindOptions::new((Ipv4Addr::LOCALHOST, 0).into(), variant);
        RooflinePlan {
            datagram_size,
            datagrams: (gigabytes * 1e9 / datagram_size as f64) as u64,
            trials: 3,
            work,
            variant: variant.name().to_owned(),
            cores: cpu::first_two(),
            window: 1 << 20,
            send_memory: port.send_memory,
            receive_batch: port.receive_batch,
        }
    }
}

/// What one side used in one trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Used {
    /// Seconds from its first datagram to its last.
    pub seconds: f64,
    /// CPU seconds, its own and the kernel's.
    pub cpu_seconds: f64,
    /// System calls that carried data.
    pub calls: u64,
    /// Units that the kernel took or gave: trains, or datagrams.
    pub trains: u64,
    /// Datagrams.
    pub datagrams: u64,
    /// Application bytes: UDP payload less header and tag where there is protection.
    pub bytes: u64,
}

/// One side's median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Side {
    /// CPU seconds per 10^9 application bytes.
    pub cpu_seconds_per_gb: f64,
    /// CPU nanoseconds per datagram.
    pub nanoseconds_per_datagram: f64,
    /// Datagrams per system call.
    pub datagrams_per_call: f64,
    /// Share of the time that the side was busy; the slower side is near 1.
    pub busy: f64,
}

/// The result.
#[derive(Clone, Debug, Serialize)]
pub struct Roofline {
    /// What was measured.
    pub plan: RooflinePlan,
    /// Application bytes per second, in 10^9 bits; the median.
    pub gbit_per_second: f64,
    /// The sender's medians.
    pub sender: Side,
    /// The receiver's medians.
    pub receiver: Side,
    /// Sender and receiver of every trial.
    pub trials: Vec<[Used; 2]>,
}

/// Measures. `launch` makes a command that starts this program again such that it calls [`child()`] with the given
/// argument.
///
/// # Errors
/// When a process cannot be started, or one of the two fails: a datagram that was lost or damaged, a core that does not
/// exist.
pub fn run(plan: &RooflinePlan, launch: &dyn Fn(&str) -> io::Result<Command>) -> io::Result<Roofline> {
    let mut trials = Vec::new();
    for _ in 0..plan.trials.max(1) {
        trials.push(trial(plan, launch)?);
    }
    let rate = |used: &Used| used.bytes as f64 * 8.0 / 1e9 / used.seconds;
    let side = |index: usize| {
        let all: Vec<Used> = trials.iter().map(|trial: &[Used; 2]| trial[index]).collect();
        Side {
            cpu_seconds_per_gb: median(all.iter().map(|used| used.cpu_seconds * 1e9 / used.bytes as f64)),
            nanoseconds_per_datagram: median(
                all.iter().map(|used| used.cpu_seconds * 1e9 / used.datagrams as f64),
            ),
            datagrams_per_call: median(all.iter().map(|used| used.datagrams as f64 / used.calls as f64)),
            busy: median(all.iter().map(|used| used.cpu_seconds / used.seconds)),
        }
    };
    Ok(Roofline {
        plan: plan.clone(),
        gbit_per_second: median(trials.iter().map(|[sender, _]| rate(sender))),
        sender: side(0),
        receiver: side(1),
        trials,
    })
}

/// The middle value; of an even number the lower middle.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

/// What a child process is told, as JSON in one argument.
#[derive(Debug, Serialize, Deserialize)]
struct Role {
    plan: RooflinePlan,
    /// The receiver's port for a sender, none for a receiver.
    peer: Option<u16>,
}

fn trial(plan: &RooflinePlan, launch: &dyn Fn(&str) -> io::Result<Command>) -> io::Result<[Used; 2]> {
    let start = |peer| -> io::Result<Child> {
        let role = serde_json::to_string(&Role { plan: plan.clone(), peer })?;
        launch(&role)?.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()
    };
    let mut receiver = Running(start(None)?);
    let mut answers = BufReader::new(receiver.0.stdout.take().ok_or_else(silent)?);
    let mut line = String::new();
    answers.read_line(&mut line)?;
    let port = line.trim().parse().map_err(|_| io::Error::other("the receiver could not start"))?;
    let mut sender = Running(start(Some(port))?);
    let mut sent = String::new();
    sender.0.stdout.take().ok_or_else(silent)?.read_to_string(&mut sent)?;
    let mut received = String::new();
    answers.read_to_string(&mut received)?;
    sender.finish("sender")?;
    receiver.finish("receiver")?;
    Ok([serde_json::from_str(&sent)?, serde_json::from_str(&received)?])
}

fn silent() -> io::Error {
    io::Error::other("a process without output")
}

/// A child that does not outlive us.
struct Running(Child);

impl Running {
    fn finish(&mut self, name: &str) -> io::Result<()> {
        let status = self.0.wait()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("the {name} failed: {status}"))) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail when it has already ended, which is what they are for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_an_outlier() {
        assert_eq!(median([3.0, 900.0, 2.0].into_iter()), 3.0);
        assert_eq!(median([1.0, 2.0].into_iter()), 1.0);
        assert!(median(std::iter::empty()).is_nan());
    }
}
