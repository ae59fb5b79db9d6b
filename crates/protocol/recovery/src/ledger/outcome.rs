//! What an event at the ledger brought to light.

use crate::packet::SentPacket;
use base::time::{Duration, Instant};

/// The largest packet that an ACK frame newly acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargestAcked {
    /// Its packet number.
    pub pn: u64,
    /// When it was sent.
    pub sent_at: Instant,
    /// Whether the ACK frame's Largest Acknowledged field names this packet.
    pub is_frame_largest: bool,
}

/// What an ACK frame newly acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckOutcome {
    /// Packets newly acknowledged, of any kind.
    pub packets: u64,
    /// Ack-eliciting packets among them.
    pub ack_eliciting: u64,
    /// Bytes that left flight: what the congestion controller is told.
    pub bytes: u64,
    /// The largest newly acknowledged packet; `None` if the frame said nothing new.
    pub largest: Option<LargestAcked>,
    /// When the earliest newly acknowledged packet was sent; `None` if the frame said nothing new.
    pub earliest_sent_at: Option<Instant>,
    /// Whether the frame's Largest Acknowledged is higher than that of any before: only then ECN counts are looked at.
    pub is_largest_raised: bool,
    /// How many numbers the farthest packet that came late lies below the largest acknowledged before; 0 if none came late. Late is an
    /// ack-eliciting one that had been declared lost, or of a frame that acknowledges nothing larger than those before.
    pub overtaken_by: u64,
    /// When the earliest of those was sent.
    pub overtaken_from: Option<Instant>,
    /// Newly acknowledged packets that left marked ECT(0).
    pub ect0: u64,
    /// Newly acknowledged packets that left marked ECT(1).
    pub ect1: u64,
    /// Ack-eliciting packets among them whose loss was declared, and was a sign of congestion: the declaration was wrong. Their
    /// bytes had left flight before.
    pub spurious: u64,
    /// When the earliest of those was sent.
    pub spurious_from: Option<Instant>,
}

impl AckOutcome {
    /// Adds what one range brought; `last` is its largest newly acknowledged packet. Ranges descend, so the first that
    /// brings anything holds the largest of all.
    #[inline]
    pub(super) fn merge(&mut self, new: AckOutcome, last: Option<SentPacket>) {
        self.packets += new.packets;
        self.ack_eliciting += new.ack_eliciting;
        self.bytes += new.bytes;
        self.ect0 += new.ect0;
        self.ect1 += new.ect1;
        self.spurious += new.spurious;
        self.overtake(new.overtaken_by, new.overtaken_from);
        self.earliest_sent_at = earlier(self.earliest_sent_at, new.earliest_sent_at);
        self.spurious_from = earlier(self.spurious_from, new.spurious_from);
        if let Some(SentPacket { pn, sent_at, .. }) = last
            && self.largest.is_none_or(|largest| largest.pn < pn)
        {
            self.largest = Some(LargestAcked { pn, sent_at, is_frame_largest: false });
        }
    }

    /// A packet came late, or there is none: so many numbers below the largest, sent then.
    pub(super) fn overtake(&mut self, by: u64, from: Option<Instant>) {
        self.overtaken_by = self.overtaken_by.max(by);
        self.overtaken_from = earlier(self.overtaken_from, from);
    }

    /// The round-trip sample of this frame, if it gives one. Source: RFC 9002 §5.1.
    pub fn rtt_sample(&self, now: Instant) -> Option<Duration> {
        //= rfc9002/5.1#1
        let largest = self.largest.filter(|largest| largest.is_frame_largest && self.ack_eliciting > 0)?;
        Some(now.saturating_since(largest.sent_at))
    }
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// What loss detection declared lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossOutcome {
    /// Packets declared lost, of any kind.
    pub packets: u64,
    /// Bytes that left flight.
    pub bytes: u64,
    /// When the latest lost packet was sent whose loss is a sign of congestion; `None` if there is none.
    /// MTU probes and packets that were not in flight are no sign.
    pub congestion: Option<Instant>,
    /// Packets lost that are a sign of congestion.
    pub congestion_packets: u64,
    /// Their bytes.
    pub congestion_bytes: u64,
    /// Runs of such packets with no other number between them.
    pub congestion_ranges: u64,
    /// Lost packets that left marked ECT(0) or ECT(1), without MTU probes.
    pub ect: u64,
    /// The longest span between the sending of two ack-eliciting packets that are lost with nothing between them
    /// acknowledged. Source: RFC 9002 §7.6.2.
    pub persistent_span: Option<Duration>,
}

/// What is wrong with an ACK frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckError {
    /// It acknowledges this packet number, which was skipped or is yet to be sent: PROTOCOL_VIOLATION.
    /// Source: RFC 9000 §13.1.
    NeverSent(u64),
}
