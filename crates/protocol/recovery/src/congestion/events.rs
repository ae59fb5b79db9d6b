//! What a controller is told: acknowledgements and signs of congestion, each summed over one event.
//!
//! One struct each, so that a controller which needs more of an event (counts of marks, the latest round trip) costs the
//! others nothing but a field they do not read.

use crate::ledger::{AckOutcome, LossOutcome};
use base::time::{Duration, Instant};

/// What the peer acknowledged, as one ACK frame tells it.
#[derive(Clone, Copy, Debug)]
pub struct AckedBytes {
    /// Bytes that left flight.
    pub bytes: u64,
    /// Newly acknowledged packets.
    pub packets: u64,
    /// When the latest of the packets was sent.
    pub largest_sent_at: Instant,
    /// Whether the sender had nothing more to send while the window had room. Waiting for the pacer does not count.
    pub app_limited: bool,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The round trip that this frame measured, the peer's delay included; `None` if it measured none.
    pub latest_rtt: Option<Duration>,
    /// The part of it that the peer says it waited with the frame, as far as it may.
    pub ack_delay: Duration,
    /// Bytes in flight after the event, over all spaces.
    pub in_flight: u64,
    /// Packets that the frame newly reports as marked CE.
    pub ce: u64,
    /// Ack-eliciting packets among them whose loss had been declared and was a sign of congestion. Their bytes left flight before.
    pub spurious: u64,
    /// When the earliest of those was sent.
    pub spurious_from: Option<Instant>,
}

/// The kind of a sign of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionCause {
    /// Packets were lost.
    Loss,
    /// The peer reported more packets marked CE.
    EcnCe,
}

/// A sign of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionEvent {
    /// Of which kind.
    pub cause: CongestionCause,
    /// When the latest of the packets was sent that are the sign, or may be.
    pub sent_at: Instant,
    /// When the earliest packet was sent that may be marked. Which ones were lost is known: then it is `sent_at`.
    pub earliest_sent_at: Instant,
    /// How many packets were lost or marked.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Runs of lost packets with consecutive numbers; for marks, the packets.
    pub ranges: u64,
}

impl CongestionEvent {
    /// The sign that losses are; `None` if they are none.
    pub fn of_losses(outcome: &LossOutcome) -> Option<CongestionEvent> {
        let sent_at = outcome.congestion?;
        Some(CongestionEvent {
            cause: CongestionCause::Loss,
            sent_at,
            earliest_sent_at: sent_at,
            packets: outcome.congestion_packets,
            bytes: outcome.congestion_bytes,
            ranges: outcome.congestion_ranges,
        })
    }

    /// The peer reports this many more packets marked CE, in the frame that had this outcome; `None` if the frame acknowledged
    /// nothing new. `packet_size` is the usual size of a packet in bytes: which ones were marked is not said.
    pub fn of_marks(outcome: &AckOutcome, packets: u64, packet_size: u16) -> Option<CongestionEvent> {
        let bytes = packets.saturating_mul(u64::from(packet_size));
        let (sent_at, earliest_sent_at) = (outcome.largest?.sent_at, outcome.earliest_sent_at?);
        Some(CongestionEvent {
            cause: CongestionCause::EcnCe,
            sent_at,
            earliest_sent_at,
            packets,
            bytes,
            ranges: packets,
        })
    }
}
