//! What is measured: thirty cells of the simulator's study, each with one download, so that both can be laid side by side.
//!
//! The rates are those at which two slow cores are not what limits, and no download takes minutes with the best contestant.

use std::time::Duration;

use base::time::Duration as Span;
use netns::emulator::{LinkOptions, Reorder};
use sim::Node;
use sim::networks::{Axis, Cell, NetworkProfile, Work, cells};

use crate::contestants::LARGE;
use crate::context::Effort;

/// A download that takes longer is not there.
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

/// Cells by axis and name, and what is downloaded. Those of a quick run first.
const CHOSEN: [(Axis, &str, Work); 30] = [
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
];
/// Cells of a quick run.
const QUICK: usize = 6;
/// Downloads of a fast cell at a time: the cores have work.
const AT_ONCE_FAST: usize = 2;
/// Downloads of another cell at a time: nearly all of their time is waiting.
const AT_ONCE: usize = 5;
/// From this rate on a cell without losses is fast.
const FAST: u64 = 50_000_000;

/// A cell, and what is downloaded over it.
#[derive(Clone, Debug)]
pub(super) struct PlannedCell {
    pub(super) cell: Cell,
    pub(super) work: Work,
}

/// A run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) cells: Vec<PlannedCell>,
    /// One for each round.
    pub(super) seeds: Vec<u64>,
}

impl Plan {
    pub(super) fn new(effort: Effort) -> Plan {
        let (count, seeds) = match effort {
            Effort::Full => (CHOSEN.len(), vec![1, 2, 3]),
            Effort::Quick => (QUICK, vec![1]),
        };
        let known = cells();
        let planned = CHOSEN.iter().take(count).filter_map(|(axis, name, work)| {
            let cell = known.iter().find(|cell| cell.axis == *axis && cell.name == *name)?;
            Some(PlannedCell { cell: cell.clone(), work: *work })
        });
        Plan { cells: planned.collect(), seeds }
    }
}

impl PlannedCell {
    /// As tables have it.
    pub(super) fn name(&self) -> String {
        let work = self.work.name();
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
            // None of the cells here has it.
            Work::Large => Vec::new(),
        }
    }

    /// Content of all of them, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        match self.work {
            Work::Page => PAGE.iter().map(|(_, size)| size).sum::<u64>() * PAGE_REPEATS as u64,
            Work::Megabyte => MEGABYTE.1,
            Work::Bulk => LARGE.1,
            Work::Large => 0,
        }
    }

    /// Downloads that may run at a time, each on a link of its own.
    pub(super) fn at_once(&self) -> usize {
        let profile = &self.cell.profile;
        let is_fast = profile.bits_per_second >= FAST && profile.loses_nothing();
        if is_fast { AT_ONCE_FAST } else { AT_ONCE }
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
