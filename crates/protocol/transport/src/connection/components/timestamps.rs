//! How long packets take each way: our clock beside acknowledgements, and the peer's beside its own.
//!
//! A TIMESTAMP frame follows each ACK frame of a 1-RTT packet, if the peer wants it. What the peer's frames tell of
//! the delays is for the embedder: neither loss detection nor congestion control goes by it, as it is the peer's claim.
//!
//! Data structure: what the packet that is being read has said, as the two frames come in either order, and an estimate. There is
//! none of it on a connection that does without.
//!
//! On a connection that uses several paths at once, ours are sent and the peer's are not measured by.
//!
//! Source: draft-huitema-quic-ts.

#[cfg(test)]
mod tests;

use crate::builder::PacketBuilder;
use crate::space::ACK_DELAY_EXPONENT;
use base::time::{Duration, Instant};
use recovery::one_way::{OneWay, OneWayDelays, Sample};
use wire::frame;
use wire::transport_parameters::{TimestampSupport, TransportParameters};

/// The packet that is being read.
#[derive(Debug, Default)]
struct Packet {
    number: u64,
    /// The peer's clock when it left.
    peer_clock: Option<Duration>,
    acked: Option<Acked>,
}

/// A newly acknowledged packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) acked_at: Instant,
    /// Since it was sent.
    pub(crate) took: Duration,
    /// As the peer reports it.
    pub(crate) ack_delay: Duration,
}

/// Both directions, for one connection.
#[derive(Debug, Default)]
pub(crate) struct Timestamps {
    /// The peer wants ours.
    is_wanted: bool,
    /// What ours count from: the first one, so that they do not tell for how long this machine has run.
    epoch: Option<Instant>,
    /// The peer's exponent.
    exponent: u32,
    packet: Packet,
    one_way: OneWay,
}

impl Timestamps {
    pub(crate) fn fill_parameters(parameters: &mut TransportParameters) {
        parameters.timestamps = Some(TimestampSupport::Both);
    }

    pub(crate) fn on_peer_parameters(&mut self, peer: &TransportParameters) {
        //= quic-ts/2.1#2
        self.is_wanted = matches!(peer.timestamps, Some(TimestampSupport::Receives | TimestampSupport::Both));
        self.exponent = peer.ack_delay_exponent as u32;
    }

    /// The path in use is another one.
    pub(crate) fn on_path_changed(&mut self) {
        self.one_way = OneWay::default();
    }

    /// Follows an ACK frame.
    pub(crate) fn write(&mut self, now: Instant, packet: &mut PacketBuilder<'_>) {
        //= quic-ts/2.2#1
        if !self.is_wanted || !packet.has_ack() {
            return;
        }
        let since = now.saturating_since(*self.epoch.get_or_insert(now));
        let frame = frame::Timestamp { time: since.as_micros() >> ACK_DELAY_EXPONENT };
        if frame.size() <= packet.remaining() {
            // Neither ack-eliciting nor sent again.
            //= quic-ts/2.3#1
            frame.write(&mut packet.writer);
        }
    }

    /// A frame of the 1-RTT packet with this number is read.
    pub(crate) fn begin(&mut self, number: u64) {
        if self.packet.number != number {
            self.packet = Packet { number, ..Packet::default() };
        }
    }

    /// A TIMESTAMP frame of the packet.
    pub(crate) fn on_frame(&mut self, frame: &frame::Timestamp) {
        let micros = frame.time.saturating_mul(1_u64.checked_shl(self.exponent).unwrap_or(u64::MAX));
        let clock = Duration::from_micros(micros);
        //= quic-ts/2.2#2
        self.packet.peer_clock = self.packet.peer_clock.max(Some(clock));
        self.settle();
    }

    /// An ACK frame of the packet gives a sample of the round trip.
    pub(crate) fn on_acked(&mut self, acked: Acked) {
        self.packet.acked = Some(acked);
        self.settle();
    }

    fn settle(&mut self) {
        //= quic-ts/2.5#1
        let Some(peer_clock) = self.packet.peer_clock else { return };
        if let Some(Acked { acked_at, took, ack_delay }) = self.packet.acked.take() {
            self.one_way.on_sample(&Sample { acked_at, took, ack_delay, peer_clock });
        }
    }

    pub(crate) fn delays(&self) -> Option<OneWayDelays> {
        self.one_way.delays()
    }
}
