//! What an embedder is told of the paths that a connection uses at once, and has used.
//!
//! Counts of a lane are differences of the connection's counters: those of the time in which the lane was the current one. So
//! nothing is counted twice, and nothing at all where there is one path.

use super::counters::Counters;
use crate::lane_id::LaneId;
use base::net::Addresses;
use base::time::Duration;
use wire::error::Code;

/// A path of a connection that can use several at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathInfo {
    /// Which it is.
    pub id: LaneId,
    /// Both ends.
    pub addresses: Addresses,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// How long an acknowledgement is waited for: the probe timeout. Source: RFC 9002 §6.2.1.
    pub probe_timeout: Duration,
    /// Bytes that may be under way: the congestion window.
    pub congestion_window: u64,
    /// Whether both ends have proved to be there.
    pub is_validated: bool,
    /// Whether either end wants it to be used only when no other can be.
    pub is_backup: bool,
    /// Why it is over; `None` while it is in use.
    pub ended: Option<Code>,
    /// What it has carried; zeros where several paths at once are not possible.
    pub counters: PathCounters,
}

/// What one of several paths has carried since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounters {
    /// Bytes that arrived, as UDP payload; on the first path without those of the handshake.
    pub received_bytes: u64,
    /// Packets that were authentic and new.
    pub received_packets: u64,
    /// Bytes that were sent, as UDP payload.
    pub sent_bytes: u64,
    /// Packets that were sent.
    pub sent_packets: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
}

impl PathCounters {
    /// With what the connection has counted between two moments.
    fn plus(self, since: &Counters, now: &Counters) -> PathCounters {
        PathCounters {
            received_bytes: self.received_bytes,
            received_packets: self.received_packets + (now.received_packets - since.received_packets),
            sent_bytes: self.sent_bytes + (now.sent_bytes - since.sent_bytes),
            sent_packets: self.sent_packets + (now.sent_packets - since.sent_packets),
            lost_packets: self.lost_packets + (now.lost_packets - since.lost_packets),
        }
    }
}

/// Paths that are over and still known, at most.
const MAX_PAST: usize = 4;

/// The counts of lanes.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// What the connection had counted when the current lane became that.
    since: Counters,
    /// Paths that are over, the latest last.
    past: Vec<PathInfo>,
}

impl Tally {
    /// What the current lane has carried in all, where it had carried `before` when it became that.
    pub(super) fn of_current(&self, before: PathCounters, now: &Counters) -> PathCounters {
        before.plus(&self.since, now)
    }

    /// Another lane becomes the current one.
    pub(super) fn begin(&mut self, now: &Counters) {
        self.since = *now;
    }

    /// A path is over. As many are known as there are lanes at a time.
    pub(super) fn keep_past(&mut self, info: PathInfo) {
        if self.past.len() >= MAX_PAST {
            self.past.remove(0);
        }
        self.past.push(info);
    }

    /// The paths that are over, the latest last.
    pub(super) fn past(&self) -> &[PathInfo] {
        &self.past
    }
}
