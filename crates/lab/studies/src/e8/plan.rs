//! What is measured: cells of the simulator's study, each with one download, so that both can be laid side by side; in some of them
//! small requests are made meanwhile.
//!
//! The rates are those at which two slow cores are not what limits, and no download takes minutes with the best contestant.

use std::time::Duration;

use base::time::Duration as Span;
use netns::emulator::{LinkOptions, Reorder};
use sim::Node;
use sim::networks::beside::SMALL;
use sim::networks::{Axis, Cell, NetworkProfile, Work, cells};

use crate::contestants::LARGE;
use crate::context::{CellChoice, Effort};

/// No download is waited for longer.
pub(super) const LIMIT: Duration = Duration::from_secs(30);
/// The files of a page, of which each is asked for as often as [`PAGE_REPEATS`] says: 30 resources, 600 kB in all, as in the simulator.
pub(super) const PAGE: [(&str, u64); 6] = [
    ("page-1", 2_000),
    ("page-2", 4_000),
    ("page-3", 8_000),
    ("page-4", 16_000),
    ("page-5", 30_000),
    ("page-6", 60_000),
];
/// How often each file of a page is asked for.
const PAGE_REPEATS: usize = 5;
/// The file of [`Work::Megabyte`].
pub(super) const MEGABYTE: (&str, u64) = ("megabyte", 1_000_000);

/// The file of [`Work::Large`].
pub(super) const HUNDRED: (&str, u64) = ("hundred-megabytes", 100_000_000);
/// The response to a small request.
pub(super) const RESPONSE: (&str, u64) = ("response", SMALL);

/// Cells by axis and name, and what is downloaded. Those of a quick run first.
const DOWNLOADS: [(Axis, &str, Work); 35] = [
    (Axis::Rate, "10 Mbit/s", Work::Megabyte),
    (Axis::Loss, "3 %", Work::Page),
    (Axis::Reordering, "30 % by 20 ms", Work::Bulk),
    (Axis::Policer, "20 Mbit/s, 25 kB at once", Work::Megabyte),
    (Axis::Outage, "1 s", Work::Megabyte),
    (Axis::Pairs, "mobile: 10 Mbit/s, 150 ms, 3 % loss", Work::Page),
    (Axis::Rate, "1 Mbit/s", Work::Page),
    (Axis::Rate, "100 Mbit/s", Work::Bulk),
    (Axis::RoundTrip, "5 ms", Work::Bulk),
    (Axis::RoundTrip, "150 ms", Work::Page),
    (Axis::RoundTrip, "600 ms", Work::Megabyte),
    (Axis::Loss, "0.1 %", Work::Bulk),
    (Axis::Loss, "1 %", Work::Megabyte),
    (Axis::Loss, "10 %", Work::Page),
    (Axis::Loss, "30 %", Work::Page),
    (Axis::Bursts, "1 % in runs of 8", Work::Megabyte),
    (Axis::Bursts, "10 % in runs of 16", Work::Page),
    (Axis::Reordering, "1 % by 8 ms", Work::Bulk),
    (Axis::Reordering, "10 % by 8 ms", Work::Page),
    (Axis::Jitter, "up to 20 ms", Work::Bulk),
    (Axis::Queue, "0.1 products", Work::Bulk),
    (Axis::Queue, "10 products", Work::Bulk),
    (Axis::Policer, "20 Mbit/s, 250 kB at once", Work::Bulk),
    (Axis::Outage, "0.2 s", Work::Page),
    (Axis::Outage, "5 s", Work::Megabyte),
    (Axis::Pairs, "20 ms, 30 % late by 8 ms", Work::Bulk),
    (Axis::Pairs, "mobile: 10 Mbit/s, 150 ms, 10 % loss", Work::Page),
    (Axis::Pairs, "bufferbloat: the same, 1 % loss", Work::Megabyte),
    (Axis::Pairs, "satellite: 20 Mbit/s, 600 ms, 1 % loss", Work::Page),
    (Axis::Pairs, "Wi-Fi: 50 Mbit/s, 5 ms, 1 % in runs of 8, jitter", Work::Bulk),
    (Axis::Rate, "100 Mbit/s", Work::Large),
    (Axis::Rate, "500 Mbit/s", Work::Large),
    (Axis::Loss, "1 %", Work::Large),
    (Axis::Reordering, "10 % by 8 ms", Work::Large),
    (Axis::Pairs, "500 Mbit/s, 3 % loss", Work::Large),
];
/// Cells in which small requests are made beside a download of 10 MB, which takes longer than all of them. That of a quick run first.
const BESIDE: [(Axis, &str); 3] = [
    (Axis::Pairs, "bufferbloat: 10 Mbit/s, 10 products"),
    (Axis::Rate, "10 Mbit/s"),
    (Axis::Pairs, "mobile: 10 Mbit/s, 150 ms, 3 % loss"),
];
/// Cells of a quick run with a download alone, and with requests beside it.
const QUICK: [usize; 2] = [6, 1];
/// What a download may take beside twice the time for which the line alone is busy with it, where it is long.
const SPARE: Duration = Duration::from_secs(5);
/// Downloads of a fast cell at a time: the cores have work.
const AT_ONCE_FAST: usize = 2;
/// Downloads of another cell at a time: nearly all of their time is waiting.
const AT_ONCE: usize = 5;
/// Lines of downloads of 100 MB at a time have this rate together, in bits a second.
const RATE_AT_ONCE: u64 = 500_000_000;
/// 100 MB are downloaded in one of so many rounds: chance weighs less in so many packets, and the time of a round is bounded.
const ROUNDS_OF_LARGE: usize = 2;
/// Downloads with requests beside them at a time: they are of 10 Mbit/s.
const AT_ONCE_BESIDE: usize = 6;
/// From this rate on a cell without losses is fast.
const FAST: u64 = 50_000_000;

/// What happens beside a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    Nothing,
    /// Small requests at times of their own, on the download's connection and on another one.
    Requests,
}

/// A cell, and what is downloaded over it.
#[derive(Clone, Debug)]
pub(super) struct PlannedCell {
    pub(super) cell: Cell,
    pub(super) work: Work,
    pub(super) beside: Beside,
}

/// A run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) cells: Vec<PlannedCell>,
    /// One for each round.
    pub(super) seeds: Vec<u64>,
}

impl Plan {
    pub(super) fn new(effort: Effort, choice: &CellChoice) -> Plan {
        let ([alone, beside], rounds) = match effort {
            Effort::Full => ([DOWNLOADS.len(), BESIDE.len()], 3),
            Effort::Quick => (QUICK, 1),
        };
        let downloads =
            DOWNLOADS.iter().take(alone).map(|(axis, name, work)| (axis, name, *work, Beside::Nothing));
        let requests =
            BESIDE.iter().take(beside).map(|(axis, name)| (axis, name, Work::Bulk, Beside::Requests));
        let known = cells();
        let planned = downloads.chain(requests).filter_map(|(axis, name, work, beside)| {
            let cell = known.iter().find(|cell| cell.axis == *axis && cell.name == *name)?;
            Some(PlannedCell { cell: cell.clone(), work, beside })
        });
        let is_chosen = |cell: &PlannedCell| {
            let name = cell.name().to_lowercase();
            choice.only.iter().all(|word| name.contains(&word.to_lowercase()))
        };
        let rounds = choice.rounds.unwrap_or(rounds) as u64;
        Plan { cells: planned.filter(is_chosen).collect(), seeds: (1..=rounds).collect() }
    }
}

impl PlannedCell {
    /// As tables have it.
    pub(super) fn name(&self) -> String {
        let work = match self.beside {
            Beside::Nothing => self.work.name().to_owned(),
            Beside::Requests => format!("{}, requests beside", self.work.name()),
        };
        match self.cell.axis {
            Axis::Pairs => format!("{}; {work}", self.cell.name),
            axis => format!("{}: {}; {work}", axis.name(), self.cell.name),
        }
    }

    /// Names of the files that are asked for at once.
    pub(super) fn files(&self) -> Vec<&'static str> {
        match self.work {
            Work::Page => {
                let names = PAGE.iter().map(|(name, _)| *name);
                names.cycle().take(PAGE.len() * PAGE_REPEATS).collect()
            }
            Work::Megabyte => vec![MEGABYTE.0],
            Work::Bulk => vec![LARGE.0],
            Work::Large => vec![HUNDRED.0],
        }
    }

    /// Content of all of them, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        match self.work {
            Work::Page => PAGE.iter().map(|(_, size)| size).sum::<u64>() * PAGE_REPEATS as u64,
            Work::Megabyte => MEGABYTE.1,
            Work::Bulk => LARGE.1,
            Work::Large => HUNDRED.1,
        }
    }

    /// A download that takes longer is not there. Long ones get less than [`LIMIT`]: where most senders need it, a round would take
    /// minutes for a few cells.
    pub(super) fn limit(&self) -> Duration {
        let line = self.bytes() as f64 * 8.0 / self.cell.profile.bits_per_second as f64;
        let is_long = self.work == Work::Large || self.beside == Beside::Requests;
        if is_long { SPARE + Duration::from_secs_f64(2.0 * line) } else { LIMIT }
    }

    /// Whether it is measured in a round; rounds count from 0.
    pub(super) fn is_due(&self, round: usize) -> bool {
        self.work != Work::Large || round.is_multiple_of(ROUNDS_OF_LARGE)
    }

    /// Whether a client comes again: small downloads, whose time is their beginning. An outage is over by then, and the link another.
    pub(super) fn is_visited_twice(&self) -> bool {
        let is_small = matches!(self.work, Work::Page | Work::Megabyte);
        is_small && self.beside == Beside::Nothing && self.cell.profile.silence().is_none()
    }

    /// In how many of so many rounds it is measured.
    pub(super) fn times(&self, rounds: usize) -> usize {
        (0..rounds).filter(|round| self.is_due(*round)).count()
    }

    /// Downloads that may run at a time, each on a link of its own.
    pub(super) fn at_once(&self) -> usize {
        let profile = &self.cell.profile;
        if self.work == Work::Large {
            // Where packets are lost few senders reach the rate.
            let least = if profile.loses_nothing() { 1 } else { AT_ONCE_FAST };
            return ((RATE_AT_ONCE / profile.bits_per_second) as usize).clamp(least, AT_ONCE);
        }
        let is_fast = profile.bits_per_second >= FAST && profile.loses_nothing();
        match self.beside {
            Beside::Requests => AT_ONCE_BESIDE,
            Beside::Nothing if is_fast => AT_ONCE_FAST,
            Beside::Nothing => AT_ONCE,
        }
    }

    /// The link's way to the client and its way to the server.
    pub(super) fn link(&self, seed: u64) -> [LinkOptions; 2] {
        let profile = &self.cell.profile;
        let mut to_client = direction(profile, profile.queue, 2 * seed);
        to_client.events.extend(profile.policer.map(|policer| Node::Police {
            bits_per_second: policer.bits_per_second,
            burst_bytes: policer.burst_bytes,
        }));
        [to_client, direction(profile, 1.0, 2 * seed + 1)]
    }
}

/// What strikes both directions, and a queue of so many products.
fn direction(profile: &NetworkProfile, queue: f64, seed: u64) -> LinkOptions {
    let outage = profile.silence().map(|(from, to)| Node::Blackhole { from, to });
    let reorder = profile.reordering;
    LinkOptions {
        delay: span(profile.rtt) / 2,
        jitter: profile.jitter.map(span).unwrap_or_default(),
        rate_bits: Some(profile.bits_per_second),
        queue_bytes: profile.queue_bytes(queue),
        reorder: reorder.map(|(ppm, by)| Reorder { share: f64::from(ppm) / 1e6, by: span(by) }),
        events: outage.into_iter().chain(profile.loss.map(Node::Loss)).collect(),
        seed,
        ..LinkOptions::default()
    }
}

fn span(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}
