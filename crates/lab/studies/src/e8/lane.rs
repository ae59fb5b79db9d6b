//! What a sender's downloads over a cell came to, and how the senders stand. Arithmetic only.

use bench::course::Interval;
use netns::emulator::Waits;
use serde::Serialize;

use super::answers::{SmallRequests, round};

/// A ratio up to this is as good as the best.
pub(super) const NEAR: f64 = 1.1;

/// One download.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Attempt {
    pub(super) seed: u64,
    /// From the client's start to the last byte; none if it was not there in time.
    pub(super) seconds: Option<f64>,
    /// What the client said, if it gave up by itself.
    pub(super) fault: Option<String>,
    /// Frames that the emulator missed.
    pub(super) missed: u64,
    /// How long after its time the emulator's latest frame left, in milliseconds.
    pub(super) worst_late_ms: f64,
    /// What waited for the line on the way to the client.
    pub(super) queue: QueueWait,
    /// The small requests beside it, where there were any.
    pub(super) requests: Option<SmallRequests>,
    /// The same download once more, over a new connection to the same server right after this one, where there was any.
    pub(super) second: Option<SecondVisit>,
    /// What the sender did meanwhile: too much for the results of a thousand downloads.
    #[serde(skip)]
    pub(super) course: Vec<Interval>,
}

/// A download of a client that comes again; figures as in [`Attempt`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct SecondVisit {
    pub(super) seconds: Option<f64>,
    pub(super) fault: Option<String>,
    /// Frames that the emulator missed since the first one was over.
    pub(super) missed: u64,
    /// The emulator's latest frame of both.
    pub(super) worst_late_ms: f64,
}

/// How long datagrams waited in the queue of the bottleneck until their first bit was sent, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct QueueWait {
    pub(super) mean_ms: f64,
    /// 99 of 100 waited no longer.
    pub(super) p99_ms: f64,
}

impl QueueWait {
    /// As the emulator has counted.
    pub(super) fn of(waits: &Waits) -> QueueWait {
        let ms = |nanos: u64| round(nanos as f64 / 1e6, 3);
        QueueWait { mean_ms: ms(waits.mean().as_nanos()), p99_ms: ms(waits.percentile(99).as_nanos()) }
    }
}

/// A sender's downloads over a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Lane {
    pub(super) sender: String,
    pub(super) attempts: Vec<Attempt>,
    /// Why it was left out.
    pub(super) problem: Option<String>,
}

/// The median of a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Outcome {
    /// Nothing was measured.
    Unknown,
    /// Most downloads were not there in time.
    NotThere,
    /// Seconds.
    Seconds(f64),
}

impl Lane {
    pub(super) fn new(sender: &str) -> Lane {
        Lane { sender: sender.to_owned(), ..Lane::default() }
    }

    /// The middle attempt, or the faster of the two in the middle.
    pub(super) fn median(&self) -> Outcome {
        match self.middle(|attempt| attempt.seconds.unwrap_or(f64::INFINITY)) {
            None => Outcome::Unknown,
            Some(seconds) if seconds.is_finite() => Outcome::Seconds(seconds),
            Some(_) => Outcome::NotThere,
        }
    }

    /// The medians of what waited in the bottleneck's queue, downloads that were not there included.
    pub(super) fn queue(&self) -> Option<QueueWait> {
        let mean_ms = self.middle(|attempt| attempt.queue.mean_ms)?;
        Some(QueueWait { mean_ms, p99_ms: self.middle(|attempt| attempt.queue.p99_ms)? })
    }

    /// The small requests of all attempts.
    pub(super) fn requests(&self) -> Option<SmallRequests> {
        let mut all: Option<SmallRequests> = None;
        for each in self.attempts.iter().filter_map(|attempt| attempt.requests.as_ref()) {
            let all = all.get_or_insert_default();
            all.same.join(&each.same);
            all.other.join(&each.other);
        }
        all
    }

    /// The figure in the middle, or the lower of the two there.
    fn middle(&self, figure: impl Fn(&Attempt) -> f64) -> Option<f64> {
        let mut figures: Vec<f64> = self.attempts.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len().saturating_sub(1) / 2).copied()
    }

    /// Whether another of `rounds` attempts can change the median: not if more than half of them were not there.
    pub(super) fn is_open(&self, rounds: usize) -> bool {
        let late = self.attempts.iter().filter(|attempt| attempt.seconds.is_none()).count();
        self.problem.is_none() && 2 * late <= rounds
    }
}

/// All senders over a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct CellResult {
    pub(super) name: String,
    /// In the order of the senders.
    pub(super) lanes: Vec<Lane>,
}

impl CellResult {
    /// Frames that the emulator missed in all of its downloads: if there are any, the cell is not valid.
    pub(super) fn missed(&self) -> u64 {
        self.lanes.iter().flat_map(|lane| &lane.attempts).map(|attempt| attempt.missed).sum()
    }

    /// The best median of the senders that `counts`, in seconds.
    pub(super) fn best(&self, counts: impl Fn(&str) -> bool) -> Option<f64> {
        let times = self.lanes.iter().filter(|lane| counts(&lane.sender)).filter_map(|lane| {
            let Outcome::Seconds(seconds) = lane.median() else { return None };
            Some(seconds)
        });
        times.min_by(f64::total_cmp)
    }

    /// A sender's downloads.
    pub(super) fn lane(&self, sender: &str) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.sender == sender)
    }

    /// A sender's median.
    pub(super) fn outcome(&self, sender: &str) -> Outcome {
        self.lane(sender).map_or(Outcome::Unknown, Lane::median)
    }

    /// A sender's median over the best of the senders that `counts`: infinite where it was not there and another was.
    pub(super) fn ratio(&self, sender: &str, counts: impl Fn(&str) -> bool) -> Option<f64> {
        let best = self.best(counts)?;
        match self.outcome(sender) {
            Outcome::Unknown => None,
            Outcome::NotThere => Some(f64::INFINITY),
            Outcome::Seconds(seconds) => Some(seconds / best),
        }
    }
}

/// How a sender stands over all valid cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Standing {
    /// Cells that it was measured in.
    pub(super) cells: usize,
    /// Those in which it is the best.
    pub(super) best: usize,
    /// Those in which it takes at most [`NEAR`] of the best time.
    pub(super) near: usize,
    /// Those in which it was not there, though another was.
    pub(super) not_there: usize,
    /// The geometric mean of its ratios, where it was there.
    pub(super) mean: f64,
    /// Its largest ratio, where it was there, and in which cell.
    pub(super) worst: Option<(f64, String)>,
    /// What its datagrams waited in the bottleneck's queue: the mean over the cells.
    pub(super) queue: QueueWait,
}

impl Standing {
    /// Of `sender`, beside the senders that `counts`.
    pub(super) fn of(cells: &[CellResult], sender: &str, counts: impl Fn(&str) -> bool) -> Standing {
        let mut standing = Standing::default();
        let mut logs = Vec::new();
        let mut waits: Vec<QueueWait> = Vec::new();
        for cell in cells.iter().filter(|cell| cell.missed() == 0) {
            let Some(ratio) = cell.ratio(sender, &counts) else { continue };
            standing.cells += 1;
            waits.extend(cell.lane(sender).and_then(Lane::queue));
            standing.best += usize::from(ratio <= 1.0);
            standing.near += usize::from(ratio <= NEAR);
            if ratio.is_infinite() {
                standing.not_there += 1;
                continue;
            }
            logs.push(ratio.ln());
            if standing.worst.as_ref().is_none_or(|(worst, _)| ratio > *worst) {
                standing.worst = Some((ratio, cell.name.clone()));
            }
        }
        let mean =
            |figure: fn(&QueueWait) -> f64| waits.iter().map(figure).sum::<f64>() / waits.len().max(1) as f64;
        standing.queue = QueueWait { mean_ms: mean(|wait| wait.mean_ms), p99_ms: mean(|wait| wait.p99_ms) };
        standing.mean = (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp();
        standing
    }
}
