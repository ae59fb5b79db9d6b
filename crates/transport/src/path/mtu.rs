//! The search for the largest packet that a path carries. Source: RFC 9000 §14.3, §14.4; RFC 8899 §5.
//!
//! The search starts at the largest size that both ends would take, since most paths carry it; when [`TRIES`] probes of a
//! size are lost it goes on half-way down to the size in use, until the two are closer than [`STEP`]. One probe is under way
//! at a time. A path that stops carrying what it carried (a black hole) falls back to the base size. It may merely have
//! stopped carrying anything for a while, so that it is probed again after [`FIRST_REST`], twice as long after each further
//! black hole, at most [`REST`]. A black hole shows when, round after round, packets above the base size are lost of which none that left later
//! arrives, while small ones do; congestion loses some and lets later ones of the same size through. Messages by ICMP play no part: anyone can forge them (CVE-2024-53259).

use base::time::{Duration, Instant};

/// Probes of one size that are lost before a smaller one is tried. Source: RFC 8899 §5.1.2 (MAX_PROBES).
const TRIES: u8 = 3;
/// A gain smaller than this is not worth a probe.
const STEP: u16 = 24;
/// How long a finished search rests before it tries larger sizes again. Source: RFC 8899 §5.1.1 (PMTU_RAISE_TIMER).
const REST: Duration = Duration::from_secs(600);

/// How long a search rests after the first black hole.
const FIRST_REST: Duration = Duration::from_secs(2);
/// Black holes from which on it rests for [`REST`].
const MAX_HOLES: u8 = 9;

/// The search on one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct MtuSearch {
    /// What every path is assumed to carry.
    base: u16,
    /// Known to arrive.
    works: u16,
    /// The largest that both ends take.
    ceiling: u16,
    /// The smallest that is known not to arrive; above the ceiling as long as none is.
    fails: u16,
    state: State,
    /// The highest packet number of those above the base size that arrived.
    proven: u64,
    /// Rounds of loss since then in which none of that size arrived.
    dark_rounds: u8,
    /// Black holes of late, and when the last one was found.
    holes: u8,
    hole_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The handshake is not confirmed.
    Waiting,
    /// A probe of this size should leave; so many were lost.
    Due { size: u16, lost: u8 },
    /// A probe of this size is under way.
    UnderWay { size: u16, lost: u8 },
    /// Nothing more to find until then.
    Resting { until: Instant },
}

impl MtuSearch {
    pub(super) const fn new(base: u16, ceiling: u16) -> MtuSearch {
        let fails = ceiling.saturating_add(1);
        MtuSearch {
            base,
            works: base,
            ceiling,
            fails,
            state: State::Waiting,
            proven: 0,
            dark_rounds: 0,
            holes: 0,
            hole_at: Instant::ZERO,
        }
    }

    /// Largest packet that may be sent.
    pub(super) const fn size(&self) -> u16 {
        self.works
    }

    /// The peer takes no packets larger than this. Source: RFC 9000 §18.2 (max_udp_payload_size).
    pub(super) fn on_peer_limit(&mut self, limit: u16) {
        //= rfc9000/14.2#1
        self.ceiling = self.ceiling.min(limit);
        self.base = self.base.min(limit);
        self.works = self.works.min(limit);
        self.fails = self.fails.min(self.ceiling.saturating_add(1));
    }

    /// The handshake is confirmed: probes may leave.
    pub(super) fn start(&mut self, now: Instant) {
        if self.state == State::Waiting {
            self.go_on(now);
        }
    }

    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        match self.state {
            State::Due { .. } => true,
            State::Resting { until } => now >= until && self.ceiling.saturating_sub(self.works) >= STEP,
            State::Waiting | State::UnderWay { .. } => false,
        }
    }

    /// The size of the probe that is due.
    pub(super) const fn probe_size(&self) -> u16 {
        match self.state {
            State::Due { size, .. } | State::UnderWay { size, .. } => size,
            State::Waiting | State::Resting { .. } => self.ceiling,
        }
    }

    pub(super) fn on_probe_sent(&mut self) {
        let size = self.probe_size();
        let lost = match self.state {
            State::Due { lost, .. } => lost,
            State::Waiting | State::UnderWay { .. } | State::Resting { .. } => {
                // A new search: what failed long ago may work by now.
                self.fails = self.ceiling.saturating_add(1);
                0
            }
        };
        self.state = State::UnderWay { size, lost };
    }

    /// A probe of so many bytes arrived: the one under way, or one that was thought lost.
    pub(super) fn on_probe_acked(&mut self, now: Instant, size: u16) {
        let is_searching = !matches!(self.state, State::Waiting | State::Resting { .. });
        if is_searching && size > self.works && size <= self.ceiling {
            self.works = size;
            self.fails = self.fails.max(size.saturating_add(1));
            self.go_on(now);
        }
    }

    /// A probe of so many bytes was lost.
    pub(super) fn on_probe_lost(&mut self, now: Instant, size: u16) {
        let State::UnderWay { lost, .. } = self.state else { return };
        if size != self.probe_size() {
            return;
        }
        if lost + 1 < TRIES {
            self.state = State::Due { size, lost: lost + 1 };
        } else {
            self.fails = size;
            self.go_on(now);
        }
    }

    /// Whether a packet says something about sizes above the base.
    #[inline]
    pub(super) const fn is_large(&self, size: u16) -> bool {
        size > self.base
    }

    /// A large packet arrived.
    #[inline]
    pub(super) fn on_large_acked(&mut self, pn: u64) {
        self.proven = self.proven.max(pn);
        self.dark_rounds = 0;
    }

    /// Large packets were lost, the latest of them this one, and they were no probes. Returns whether that makes a black
    /// hole.
    pub(super) fn on_large_lost(&mut self, pn: u64) -> bool {
        if self.works == self.base || pn <= self.proven {
            return false;
        }
        self.dark_rounds += 1;
        self.dark_rounds >= TRIES
    }

    /// Packets of the size in use do not arrive any more. Source: RFC 8899 §4.3.
    pub(super) fn on_black_hole(&mut self, now: Instant) {
        self.works = self.base;
        self.dark_rounds = 0;
        if now.saturating_since(self.hole_at) > REST {
            self.holes = 0;
        }
        let rest = FIRST_REST.saturating_shl(u32::from(self.holes)).min(REST);
        self.holes = (self.holes + 1).min(MAX_HOLES);
        self.hole_at = now;
        self.state = State::Resting { until: now + rest };
    }

    /// The next size: the ceiling, or, once that failed, half-way between what works and what fails.
    fn go_on(&mut self, now: Instant) {
        let gap = self.fails.saturating_sub(self.works);
        let size = if self.fails > self.ceiling { self.ceiling } else { self.works.saturating_add(gap / 2) };
        self.state = if size.saturating_sub(self.works) < STEP {
            State::Resting { until: now + REST }
        } else {
            State::Due { size, lost: 0 }
        };
    }
}
