//! Two downloads through one bottleneck.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bench::process::Running;
use bench::site::{End, Site};
use netns::emulator::LinkOptions;
use serde::Serialize;

use super::CONTENT;
use crate::contestants::{Installed, TestSite};

/// The link: bits a second, and the time each way.
const RATE: u64 = 20_000_000;
const EACH_WAY: Duration = Duration::from_millis(20);
/// The second download begins so much after the first.
pub(super) const LATER: Duration = Duration::from_millis(500);
/// After so long sizes are read, and then after this long again.
pub(super) const SETTLED: Duration = Duration::from_secs(6);
pub(super) const MEASURED: Duration = Duration::from_secs(15);
/// How often it is looked whether all shall end.
const STEP: Duration = Duration::from_millis(100);

/// A sender, by its congestion controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Flow {
    Tercel(&'static str),
    /// nginx over the kernel's TCP.
    Tcp(&'static str),
}

impl Flow {
    pub(super) fn name(self) -> String {
        match self {
            Flow::Tercel("auto") => "tercel auto".to_owned(),
            Flow::Tercel(name) => format!("tercel {}", name.to_uppercase()),
            Flow::Tcp(name) => format!("TCP {}", name.to_uppercase()),
        }
    }
}

/// Two downloads that meet over a link with such a queue, in bandwidth-delay products. The second is by the kernel's TCP.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Meeting {
    pub(super) first: Flow,
    /// The second's controller, by the kernel's name of it.
    pub(super) tcp: &'static str,
    pub(super) queue: f64,
}

impl Meeting {
    /// Both flows.
    pub(super) fn pair(&self) -> String {
        format!("{} + {}", self.first.name(), Flow::Tcp(self.tcp).name())
    }
}

/// How the link was shared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Outcome {
    /// Of what the link carries: the first download and the second.
    pub(super) shares: [f64; 2],
    /// Frames that the emulator missed: if there are any, the outcome is not valid.
    pub(super) missed: u64,
    /// How long after its time the emulator's latest frame left, in milliseconds.
    pub(super) worst_late_ms: f64,
}

impl Outcome {
    /// Jain's index of fairness: 1 for equal shares, 0.5 where one of the two has all.
    pub(super) fn jain(&self) -> f64 {
        let [first, second] = self.shares;
        let squares = 2.0 * (first * first + second * second);
        if squares == 0.0 { 1.0 } else { (first + second).powi(2) / squares }
    }
}

/// What all trials have.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) tercel: &'a Installed,
    pub(super) nginx: &'a Installed,
    pub(super) ground: &'a TestSite,
    /// The tercel program, which is the client.
    pub(super) program: &'a Path,
    pub(super) cores: [usize; 2],
    pub(super) stop: &'a AtomicBool,
}

impl Surroundings<'_> {
    /// Two downloads over a link of their own.
    ///
    /// # Errors
    /// There is no link, a program does not start or ends early, or all shall end.
    pub(super) fn share(&self, meeting: &Meeting) -> io::Result<Outcome> {
        let product = RATE as f64 / 8.0 * EACH_WAY.as_secs_f64() * 2.0;
        let link = |queue: f64| LinkOptions {
            delay: EACH_WAY,
            rate_bits: Some(RATE),
            queue_bytes: (product * queue) as u64,
            ..LinkOptions::default()
        };
        let site = Site::linked(&link(meeting.queue), &link(1.0)).map_err(io::Error::other)?;
        let ground = self.ground.on_other(site)?;
        let core = (self.cores[0], self.stop);
        let nginx = self.nginx.start_with(&ground, &[], core)?;
        let tercel = match meeting.first {
            Flow::Tercel(name) => Some(self.tercel.start_with(&ground, &["--congestion", name], core)?),
            Flow::Tcp(_) => None,
        };
        let files = [ground.fresh("first"), ground.fresh("second")];
        // A connection of TCP keeps the controller that its namespace had when it was accepted.
        let (first, http) = match meeting.first {
            Flow::Tercel(_) => (tercel.as_ref().unwrap_or(&nginx), "3"),
            Flow::Tcp(name) => {
                ground.site().set_tcp_congestion(name)?;
                (&nginx, "2")
            }
        };
        let mut clients = vec![self.client(&ground, (&first.url(CONTENT.0), http), &files[0])?];
        self.wait(LATER)?;
        ground.site().set_tcp_congestion(meeting.tcp)?;
        clients.push(self.client(&ground, (&nginx.url(CONTENT.0), "2"), &files[1])?);
        self.wait(SETTLED)?;
        let (before, began) = (files.each_ref().map(size), cpu::clock_seconds());
        self.wait(MEASURED)?;
        let (after, seconds) = (files.each_ref().map(size), cpu::clock_seconds() - began);
        drop(clients);
        let share =
            |before: u64, after: u64| after.saturating_sub(before) as f64 * 8.0 / seconds / RATE as f64;
        let shares = [share(before[0], after[0]), share(before[1], after[1])];
        if after.iter().any(|size| *size == 0 || *size >= CONTENT.1) {
            return Err(io::Error::other("a download had not begun, or was over, before all was measured"));
        }
        let faults = ground.site().link_faults();
        let worst_late_ms = faults.worst_late.as_secs_f64() * 1e3;
        Ok(Outcome { shares, missed: faults.missed, worst_late_ms })
    }

    fn client(&self, ground: &TestSite, (url, http): (&str, &str), folder: &Path) -> io::Result<Running> {
        let mut command = Command::new(self.program);
        command.args(["get", "--insecure", "--quiet", "--timeout", "0", "--http", http, "--output"]);
        std::fs::create_dir_all(folder)?;
        command.arg(folder.join("content")).arg(url);
        ground.start(End::Client, "tercel get", self.cores[1], &mut command)
    }

    fn wait(&self, span: Duration) -> io::Result<()> {
        let end = cpu::clock_seconds() + span.as_secs_f64();
        while cpu::clock_seconds() < end {
            if self.stop.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            std::thread::sleep(STEP);
        }
        Ok(())
    }
}

/// Bytes of a folder's files: a download under way may have another name.
fn size(folder: &PathBuf) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
}
