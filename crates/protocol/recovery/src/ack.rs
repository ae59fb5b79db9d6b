//! What was received in one packet-number space: duplicates, and what to acknowledge when.
//!
//! Data structure: a set of at most [`MAX_RANGES`] ranges of packet numbers. In order, a packet extends the last range.
//! Everything below `floor` counts as received: it was, or it is too old to be told apart, and is dropped as a
//! duplicate (RFC 9000 §13.2.3 asks exactly that of a receiver that forgets).
//!
//! RFC 9000 §13.2, §13.4.1; draft-ietf-quic-ack-frequency §6.

#[cfg(test)]
mod tests;

use crate::ecn::EcnCounts;
use base::net::Ecn;
use base::ranges::RangeSet;
use base::time::{Duration, Instant};
use core::ops::Range;

/// Ranges that are remembered, and sent at most.
pub const MAX_RANGES: usize = 64;

/// A receiver that chooses for itself acknowledges every second packet until this many ack-eliciting ones have come in without a
/// gap. A sender's window needs that early; by then it has left slow start's first rounds behind.
pub const STEADY_AFTER: u32 = 100;

/// The same after a gap. Where packets are lost more often than this, windows are so small that ten packets are half of one.
pub const STEADY_AGAIN_AFTER: u32 = 500;

/// What "every second packet" means while the path is not steady. Source: RFC 9000 §13.2.2.
const UNSTEADY_THRESHOLD: u32 = 2;

/// Where the receiver acknowledges more rarely than that, what would have been due then waits no longer than this part of the
/// round trip: a sender whose window is smaller than the threshold is not to wait for a timer.
const THINNED_PARTS: u64 = 4;
/// Nor is a timer set for less: what a worker's wheel is good for.
const LEAST_DELAY: Duration = Duration::from_micros(50);

/// Who chose a policy, and what follows from that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chooser {
    /// The receiver, who does not know what the sender needs: frugal only on a steady path, each CE mark reported at once,
    /// and so is the end of a stream. Source: RFC 9000 §13.2.
    Receiver,
    /// The sender, by an ACK_FREQUENCY frame: as it asks; of CE marks in a row the first is reported at once.
    /// Source: draft-ietf-quic-ack-frequency §6.
    Sender,
}

/// When acknowledgements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPolicy {
    /// Send one when this many ack-eliciting packets have come in since the last. At least 1.
    pub eliciting_threshold: u32,
    /// Send one this long after the first unacknowledged ack-eliciting packet came in.
    pub max_ack_delay: Duration,
    /// Send one at once when a packet is missing that lies this many numbers below the largest; 1 is any gap, 0 is never.
    pub reordering_threshold: u64,
    /// Who chose it.
    pub chooser: Chooser,
}

impl AckPolicy {
    /// Initial and Handshake packets: at once. Source: RFC 9000 §13.2.1.
    pub const IMMEDIATE: AckPolicy = AckPolicy {
        eliciting_threshold: 1,
        max_ack_delay: Duration::ZERO,
        reordering_threshold: 1,
        chooser: Chooser::Receiver,
    };
    /// 1-RTT packets by default: every second one, or after 25 ms. Source: RFC 9000 §13.2.2, §18.2.
    pub const EVERY_SECOND: AckPolicy = AckPolicy {
        eliciting_threshold: 2,
        max_ack_delay: Duration::from_millis(25),
        reordering_threshold: 1,
        chooser: Chooser::Receiver,
    };

    /// Whether a mark on a packet is reported at once. Source: draft-ietf-quic-ack-frequency §6.3.
    #[inline]
    fn is_mark_urgent(&self, last: Ecn) -> bool {
        //= ack-frequency/6.3#1
        self.chooser == Chooser::Receiver || self.eliciting_threshold <= 2 || last != Ecn::Ce
    }
}

impl Default for AckPolicy {
    fn default() -> AckPolicy {
        AckPolicy::EVERY_SECOND
    }
}

/// Whether a received packet is ack-eliciting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eliciting {
    /// It must be acknowledged.
    Yes,
    /// It is acknowledged along with others.
    No,
}

/// When an acknowledgement is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckUrgency {
    /// Nothing to acknowledge.
    None,
    /// At [`AckTracker::next_timeout`], or earlier with whatever else is sent.
    Delayed,
    /// Now.
    Immediate,
}

/// The received packets of one space.
#[derive(Clone, Debug)]
pub struct AckTracker {
    received: RangeSet,
    /// One more than the largest received; also what comes next in order.
    next: u64,
    /// Below, everything counts as received.
    floor: u64,
    largest_at: Instant,
    counts: EcnCounts,
    policy: AckPolicy,
    urgency: AckUrgency,
    /// Ack-eliciting packets since the last acknowledgement.
    eliciting: u32,
    /// Largest ack-eliciting packet, plus one.
    eliciting_next: u64,
    /// Largest acknowledged in the last ACK frame sent, plus one.
    reported_next: u64,
    timeout: Option<Instant>,
    /// Ack-eliciting packets to come before the path counts as steady.
    unsteady: u32,
    /// The mark of the packet received last.
    last_mark: Ecn,
    /// The packet whose frames are being taken in is to be acknowledged at once.
    expedited: bool,
    /// How long a second packet waits at most where the receiver has chosen to acknowledge fewer than every second one.
    thinned_delay: Duration,
}

impl AckTracker {
    /// Gives back what only packets to come need.
    pub fn release_memory(&mut self) {
        self.received.shrink();
    }

    /// Nothing received yet.
    pub const fn new(policy: AckPolicy) -> AckTracker {
        AckTracker {
            received: RangeSet::new(),
            next: 0,
            floor: 0,
            largest_at: Instant::ZERO,
            counts: EcnCounts { ect0: 0, ect1: 0, ce: 0 },
            policy,
            urgency: AckUrgency::None,
            eliciting: 0,
            eliciting_next: 0,
            reported_next: 0,
            timeout: None,
            unsteady: STEADY_AFTER,
            last_mark: Ecn::NotEct,
            expedited: false,
            thinned_delay: Duration::MAX,
        }
    }

    /// The path's round trip, as smoothed.
    #[inline]
    pub fn set_round_trip(&mut self, rtt: Duration) {
        self.thinned_delay = (rtt / THINNED_PARTS).max(LEAST_DELAY);
    }

    /// The policy from now on. What waits already waits no longer than if the policy had always held.
    pub fn set_policy(&mut self, policy: AckPolicy) {
        let saved = self.policy.max_ack_delay.saturating_sub(policy.max_ack_delay);
        self.timeout =
            self.timeout.map(|at| Instant::from_nanos(at.as_nanos().saturating_sub(saved.as_nanos())));
        self.policy = policy;
    }

    /// The policy in force.
    pub const fn policy(&self) -> AckPolicy {
        self.policy
    }

    /// Whether packet `pn` was received before, or is too old to tell. Ask after decryption, before its frames.
    #[inline]
    pub fn is_duplicate(&self, pn: u64) -> bool {
        pn < self.next && (pn < self.floor || self.received.contains(pn))
    }

    /// A packet that was not a duplicate was received and its frames were taken in. Returns how urgent it is now to
    /// acknowledge. A peer that acknowledges in an old packet what it could not know yet has made that packet too old.
    #[inline]
    pub fn on_received(&mut self, now: Instant, pn: u64, eliciting: Eliciting, ecn: Ecn) -> AckUrgency {
        if pn < self.floor || self.received.insert(pn..pn + 1) == 0 {
            return self.urgency;
        }
        let expected = self.next;
        if pn >= self.next {
            self.next = pn + 1;
            self.largest_at = now;
        }
        if self.received.count() > MAX_RANGES {
            self.forget_lowest();
        }
        //= rfc9000/13.4.1#1
        self.counts.add(ecn);
        //= rfc9000/13.2.1#5
        if eliciting == Eliciting::Yes {
            self.on_eliciting(now, pn, expected);
        }
        // RFC 9000 §13.2.1: a mark is reported without delay.
        //= rfc9000/13.2.1#4
        if ecn == Ecn::Ce && self.eliciting > 0 && self.policy.is_mark_urgent(self.last_mark) {
            self.urgency = AckUrgency::Immediate;
        }
        self.last_mark = ecn;
        self.urgency
    }

    /// The number of the packet that comes next, if all so far came in order: ack-eliciting packets from it on may be taken in
    /// together, by [`AckTracker::on_run_received`].
    #[inline]
    pub fn next_in_order(&self) -> Option<u64> {
        let is_plain =
            self.eliciting_next == self.next && self.policy.reordering_threshold <= 1 && !self.expedited;
        (is_plain && self.next > 0).then_some(self.next)
    }

    /// `count` ack-eliciting packets were received that follow each other from [`AckTracker::next_in_order`] on, in one train:
    /// as [`AckTracker::on_received`] for each of them. None of them is marked CE.
    #[inline]
    pub fn on_run_received(&mut self, now: Instant, count: u64, ecn: Ecn) {
        debug_assert!(self.next_in_order().is_some() && ecn != Ecn::Ce, "a run goes on in order");
        if count == 0 {
            return;
        }
        self.received.insert(self.next..self.next + count);
        self.next += count;
        self.eliciting_next = self.next;
        self.largest_at = now;
        self.counts.add_all(ecn, count);
        self.last_mark = ecn;
        let timeout = self.timeout.unwrap_or(now + self.policy.max_ack_delay);
        let chooses = self.policy.chooser == Chooser::Receiver;
        let before = self.eliciting;
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.eliciting = before.saturating_add(count);
        // While the path is not steady the threshold is a lower one.
        let unsteady = count.min(self.unsteady.saturating_sub(1));
        let is_due_early = chooses
            && unsteady > 0
            && before.saturating_add(unsteady) >= self.policy.eliciting_threshold.min(UNSTEADY_THRESHOLD);
        self.unsteady = self.unsteady.saturating_sub(count);
        if is_due_early || self.eliciting >= self.policy.eliciting_threshold {
            self.urgency = AckUrgency::Immediate;
        } else if self.urgency == AckUrgency::None {
            self.urgency = AckUrgency::Delayed;
        }
        let is_second = before < UNSTEADY_THRESHOLD && self.eliciting >= UNSTEADY_THRESHOLD;
        let latest = if is_second && chooses { now + self.thinned_delay } else { timeout };
        self.timeout = Some(timeout.min(latest));
    }

    #[inline]
    fn on_eliciting(&mut self, now: Instant, pn: u64, expected: u64) {
        self.eliciting = self.eliciting.saturating_add(1);
        if self.timeout.is_none() {
            //= rfc9000/13.2.1#1
            self.timeout = Some(now + self.policy.max_ack_delay);
        }
        // In order, and the one before was ack-eliciting too: nothing is missing that is not known to be.
        let is_plain =
            pn == expected && self.eliciting_next == expected && self.policy.reordering_threshold <= 1;
        let is_out_of_order = !is_plain && self.is_reordering(pn);
        self.eliciting_next = self.eliciting_next.max(pn + 1);
        // The next gap may be the next loss: the sender is to hear more often for a while.
        self.unsteady = if is_out_of_order { STEADY_AGAIN_AFTER } else { self.unsteady.saturating_sub(1) };
        let is_expedited = core::mem::take(&mut self.expedited);
        //= ack-frequency/6#1
        if is_out_of_order || is_expedited || self.eliciting >= self.eliciting_threshold() {
            self.urgency = AckUrgency::Immediate;
        } else if self.urgency == AckUrgency::None {
            self.urgency = AckUrgency::Delayed;
        }
        if self.eliciting == UNSTEADY_THRESHOLD && self.policy.chooser == Chooser::Receiver {
            //= rfc9000/13.2.2#1
            let latest = now + self.thinned_delay;
            self.timeout = self.timeout.map(|timeout| timeout.min(latest));
        }
    }

    /// The policy's, once the path is steady if the receiver chose it.
    #[inline]
    fn eliciting_threshold(&self) -> u32 {
        let asked = self.policy.eliciting_threshold;
        match self.policy.chooser {
            Chooser::Receiver if self.unsteady > 0 => asked.min(UNSTEADY_THRESHOLD),
            Chooser::Receiver | Chooser::Sender => asked,
        }
    }

    /// Whether an ack-eliciting packet that is not the expected one has to be acknowledged at once.
    fn is_reordering(&self, pn: u64) -> bool {
        match self.policy.reordering_threshold {
            //= ack-frequency/6.2#1
            0 => false,
            // RFC 9000 §13.2.1: it is below an ack-eliciting one, or there are gaps between that one and it.
            //= rfc9000/13.2.1#3
            1 => pn < self.eliciting_next || self.is_missing_any(self.eliciting_next, pn),
            // draft-ietf-quic-ack-frequency §6.2: it is so late that the sender has given it up.
            //= ack-frequency/6.2#3
            threshold if pn.saturating_add(threshold) < self.reported_next => true,
            // The oldest gap not reported yet has become this old.
            //= ack-frequency/6.2#2
            threshold => {
                let largest = self.eliciting_next.saturating_sub(1).max(pn);
                let reported = self.reported_next.saturating_sub(threshold);
                let oldest_gap = self.first_missing(reported.max(self.floor));
                largest.saturating_sub(oldest_gap) >= threshold
            }
        }
    }

    fn is_missing_any(&self, from: u64, to: u64) -> bool {
        self.first_missing(from.max(self.floor)) < to
    }

    /// The lowest number from `from` on that was not received.
    fn first_missing(&self, from: u64) -> u64 {
        self.received.iter().rev().find(|range| range.contains(&from)).map_or(from, |range| range.end)
    }

    #[cold]
    fn forget_lowest(&mut self) {
        self.received.keep_highest(MAX_RANGES);
        //= rfc9000/13.2.3#1
        self.floor = self.floor.max(self.received.first().map_or(0, |range| range.start));
    }

    /// How urgent an acknowledgement is, by what was received and, once the timer has run out, by `now`.
    #[inline]
    pub fn urgency(&self, now: Instant) -> AckUrgency {
        if self.timeout.is_some_and(|timeout| timeout <= now) { AckUrgency::Immediate } else { self.urgency }
    }

    /// The packet whose frames are being taken in holds an IMMEDIATE_ACK frame. However many there are, one acknowledgement
    /// answers them. Source: draft-ietf-quic-ack-frequency §5.
    pub fn expedite(&mut self) {
        self.expedited = true;
    }

    /// The packet whose frames are being taken in ends a stream: the sender may have nothing more to send, and would wait for
    /// the delay to pass. One that has asked for a frequency has thought of that.
    #[inline]
    pub fn on_end_of_stream(&mut self) {
        self.expedited |= self.policy.chooser == Chooser::Receiver;
    }

    /// The acknowledgements sent so far may be lost: the next packet that leaves repeats them, and waits for nothing.
    pub fn repeat(&mut self) {
        if self.next > 0 && self.urgency == AckUrgency::None {
            self.urgency = AckUrgency::Delayed;
        }
    }

    /// What to acknowledge, descending as on the wire. Empty if nothing was received.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = Range<u64>> + '_ {
        self.received.iter().rev()
    }

    /// The largest received, which the frame's ACK Delay refers to.
    pub const fn largest(&self) -> Option<u64> {
        self.next.checked_sub(1)
    }

    /// How long ago the largest was received.
    pub fn ack_delay(&self, now: Instant) -> Duration {
        //= rfc9000/13.2.5#1
        now.saturating_since(self.largest_at)
    }

    /// The ECN counts to report; a plain ACK frame will do if they are zero.
    pub const fn ecn_counts(&self) -> EcnCounts {
        self.counts
    }

    /// An ACK frame was written with the highest of [`AckTracker::ranges`].
    pub fn on_ack_sent(&mut self) {
        self.urgency = AckUrgency::None;
        self.eliciting = 0;
        self.timeout = None;
        self.reported_next = self.next;
    }

    /// The peer acknowledged a packet with an ACK frame of ours whose Largest Acknowledged was `largest`: what that
    /// frame could report need not be reported again. Source: RFC 9000 §13.2.4.
    pub fn on_ack_of_ack(&mut self, largest: u64) {
        // The last range stays whole: a frame always has at least one.
        let keep_from = self.received.last().map_or(0, |range| range.start);
        let floor = largest.saturating_add(1).min(keep_from);
        if floor > self.floor {
            //= rfc9000/13.2.4#1
            self.received.remove(0..floor);
            self.floor = floor;
        }
    }

    /// When a delayed acknowledgement is due; `None` if none is waiting.
    pub const fn next_timeout(&self) -> Option<Instant> {
        self.timeout
    }
}
