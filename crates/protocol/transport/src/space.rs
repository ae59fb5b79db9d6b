//! A packet-number space: what was sent, what was received, and the handshake bytes that travel in it.
//! Source: RFC 9000 §12.3.

use crate::builder::PacketBuilder;
use crate::crypto_stream::CryptoStream;
use crate::lane_id::LaneId;
use crate::sent::SentFrame;
use base::rng::SparseRng;
use base::time::{Duration, Instant};
use recovery::ack::{AckTracker, AckUrgency};
use recovery::ledger::Ledger;
use recovery::packet::PacketFlags;
pub(crate) use recovery::packet::Space as SpaceId;
use recovery::timers::SpaceTimers;
use wire::frame;

/// After this many packets that only acknowledge, one asks for an acknowledgement itself, so that the peer's answer lets us
/// forget what we have reported.
const ACKS_WITHOUT_ANSWER: u32 = 64;

/// The unit of the ACK frame's delay is 2^3 µs, the default, so the parameter need not be sent. Source: RFC 9000 §18.2.
pub(crate) const ACK_DELAY_EXPONENT: u8 = 3;

/// The gap between packet numbers that are skipped, so that a peer which acknowledges what it never received is found
/// out: random between this and twice as much. Source: RFC 9000 §21.4.
const SKIP_GAP: u64 = 4_096;

/// One space.
pub(crate) struct Space {
    /// What was sent and not yet acknowledged.
    pub ledger: Ledger<SentFrame>,
    /// What was received and must be acknowledged.
    pub acks: AckTracker,
    /// CRYPTO frames, both ways.
    pub crypto: CryptoStream,
    next_pn: u64,
    skip_at: u64,
    probes_owed: u8,
    acks_without_answer: u32,
    /// Whether a probe repeats an ACK frame.
    pub repeats_acks: bool,
    /// Whose packets these are.
    lane: LaneId,
}

impl Space {
    pub(crate) fn new(acks: AckTracker, rng: &mut SparseRng) -> Space {
        Space {
            ledger: Ledger::new(),
            acks,
            crypto: CryptoStream::default(),
            next_pn: 0,
            skip_at: 64 + rng.below(SKIP_GAP),
            probes_owed: 0,
            acks_without_answer: 0,
            repeats_acks: true,
            lane: LaneId::FIRST,
        }
    }

    /// The Initial space of a server. Its probes hold the ServerHello, which tells that the ClientHello has come. A late ACK frame beside it
    /// would be the first round trip that a client measures, and a second too long (RFC 9002 §5.3).
    pub(crate) fn of_server_hello(self) -> Space {
        Space { repeats_acks: false, ..self }
    }

    /// The space of another lane than the first.
    pub(crate) fn of_lane(self, lane: LaneId) -> Space {
        Space { lane, ..self }
    }

    /// The packet number that comes next in order from the peer.
    #[inline]
    pub(crate) fn next_expected(&self) -> u64 {
        self.acks.largest().map_or(0, |largest| largest + 1)
    }

    /// Gives back what only packets to come need.
    pub(crate) fn release_memory(&mut self, now: Instant, forget_after: Duration) {
        self.ledger.release_memory(now, forget_after);
        self.acks.release_memory();
    }

    /// The number of the next packet to be sent.
    #[inline]
    pub(crate) fn next_packet_number(&mut self, rng: &mut SparseRng) -> u64 {
        //= rfc9000/21.4#1
        if self.next_pn == self.skip_at {
            self.next_pn += 1;
            self.skip_at = self.next_pn + SKIP_GAP + rng.below(SKIP_GAP);
        }
        self.next_pn
    }

    /// The packet with the number handed out last has been sent.
    pub(crate) fn on_sent(&mut self) {
        //= rfc9000/12.3#1
        self.next_pn += 1;
    }

    /// The number of the next packet, and how many follow each other from it on before one is skipped.
    #[inline]
    pub(crate) fn next_packet_numbers(&self) -> (u64, u64) {
        (self.next_pn, self.skip_at.saturating_sub(self.next_pn))
    }

    /// The number so many packets later is skipped.
    #[cfg(test)]
    pub(crate) fn skip_after(&mut self, packets: u64) {
        self.skip_at = self.next_pn + packets;
    }

    /// Packets with this many of those numbers have been sent.
    #[inline]
    pub(crate) fn on_run_sent(&mut self, count: u64) {
        self.next_pn += count;
    }

    /// A timeout asks for this many packets whatever congestion control says. Source: RFC 9002 §6.2.4.
    pub(crate) fn owe_probes(&mut self, count: u8) {
        self.probes_owed = count;
    }

    pub(crate) fn owes_probe(&self) -> bool {
        self.probes_owed > 0
    }

    pub(crate) fn on_ack_eliciting_sent(&mut self) {
        self.probes_owed = self.probes_owed.saturating_sub(1);
        self.acks_without_answer = 0;
    }

    /// Acknowledges what was received, if anything waits for it. A probe does so in any case: the ACK frame before it may be
    /// lost, and by the acknowledgement of a later packet the peer knows what of its own is lost.
    #[inline]
    pub(crate) fn write_ack(&mut self, now: Instant, packet: &mut PacketBuilder<'_>) {
        if self.acks.urgency(now) != AckUrgency::None || (self.owes_probe() && self.repeats_acks) {
            self.write_ack_now(now, packet);
        }
    }

    fn write_ack_now(&mut self, now: Instant, packet: &mut PacketBuilder<'_>) {
        let delay = recovery::rtt::encode_ack_delay(self.acks.ack_delay(now), ACK_DELAY_EXPONENT);
        let Some(largest) = self.acks.largest() else { return };
        let counts = self.acks.ecn_counts();
        let counts = (!counts.is_zero()).then_some(frame::EcnCounts {
            ect0: counts.ect0,
            ect1: counts.ect1,
            ce: counts.ce,
        });
        let written = match self.lane {
            LaneId::FIRST => frame::write_ack(&mut packet.writer, self.acks.ranges(), delay, counts),
            //= multipath/2.3#1
            LaneId(path) => {
                frame::write_path_ack(&mut packet.writer, path.into(), self.acks.ranges(), delay, counts)
            }
        };
        if written > 0 {
            packet.sent_ack(largest);
            self.acks.on_ack_sent();
        }
    }

    /// Adds a PING to a packet that only acknowledges, once in a while.
    fn elicit_ack_now_and_then(&mut self, packet: &mut PacketBuilder<'_>) {
        self.acks_without_answer += 1;
        //= rfc9000/13.2.1#6
        if self.acks_without_answer >= ACKS_WITHOUT_ANSWER && packet.remaining() > 0 {
            write_ping(packet);
        }
    }

    /// What the loss detection timer needs to know.
    #[inline]
    pub(crate) fn timers(&self) -> SpaceTimers {
        SpaceTimers {
            loss_time: self.ledger.loss_time(),
            last_ack_eliciting_at: self.ledger.last_ack_eliciting_at(),
            ack_eliciting_in_flight: self.ledger.ack_eliciting_in_flight(),
        }
    }

    /// A probe must be ack-eliciting: when nothing else was, a PING is.
    pub(crate) fn settle_probe(&mut self, packet: &mut PacketBuilder<'_>) {
        if packet.flags().has(PacketFlags::ACK_ELICITING) {
            return;
        }
        //= rfc9002/6.2.4#2
        if self.probes_owed > 0 && packet.remaining() > 0 {
            write_ping(packet);
        } else if !packet.is_empty() {
            self.elicit_ack_now_and_then(packet);
        }
    }
}

/// A PING: the smallest ack-eliciting frame.
pub(crate) fn write_ping(packet: &mut PacketBuilder<'_>) {
    packet.writer.varint(frame::ty::PING);
    packet.sent_unremembered();
}

/// The spaces of a connection. Those of the handshake go when their keys go.
pub(crate) struct Spaces {
    early: [Option<Box<Space>>; 2],
    pub application: Space,
}

impl Spaces {
    pub(crate) fn new(early: [Space; 2], application: Space) -> Spaces {
        Spaces { early: early.map(|space| Some(Box::new(space))), application }
    }

    #[inline]
    pub(crate) fn space(&self, id: SpaceId) -> Option<&Space> {
        match id {
            SpaceId::Application => Some(&self.application),
            SpaceId::Initial => self.early[0].as_deref(),
            SpaceId::Handshake => self.early[1].as_deref(),
        }
    }

    #[inline]
    pub(crate) fn space_mut(&mut self, id: SpaceId) -> Option<&mut Space> {
        match id {
            SpaceId::Application => Some(&mut self.application),
            SpaceId::Initial => self.early[0].as_deref_mut(),
            SpaceId::Handshake => self.early[1].as_deref_mut(),
        }
    }

    /// The space's keys are gone, so is the space. Source: RFC 9002 §6.4.
    pub(crate) fn discard(&mut self, id: SpaceId) -> Option<Box<Space>> {
        self.early.get_mut(id.index()).and_then(Option::take)
    }

    /// Whether a handshake space is still there.
    #[inline]
    pub(crate) fn handshaking(&self) -> bool {
        self.early.iter().any(Option::is_some)
    }

    /// Bytes in flight over all spaces.
    #[inline]
    pub(crate) fn in_flight_bytes(&self) -> u64 {
        let early: u64 = self.early.iter().flatten().map(|space| space.ledger.in_flight_bytes()).sum();
        early + self.application.ledger.in_flight_bytes()
    }

    /// When the latest packet of the other spaces was sent that was acknowledged, as long as there are other spaces.
    #[inline]
    pub(crate) fn acked_sent_at_beside(&self, id: SpaceId) -> Option<Instant> {
        let others = || self.iter().filter(|(other, _)| *other != id);
        if self.handshaking() {
            others().filter_map(|(_, space)| space.ledger.acked_sent_at()).max()
        } else {
            None
        }
    }

    pub(crate) fn owes_probe(&self) -> bool {
        self.application.owes_probe() || self.early.iter().flatten().any(|space| space.owes_probe())
    }

    /// Whether the peer has all that was said in the Handshake space, and can say something there itself.
    pub(crate) fn is_handshake_acked(&self) -> bool {
        let is_acked = |space: &Space| {
            space.acks.largest().is_some()
                && space.ledger.last_ack_eliciting_at().is_some()
                && space.ledger.ack_eliciting_in_flight() == 0
                && !space.crypto.wants()
        };
        self.space(SpaceId::Handshake).is_some_and(is_acked)
    }

    /// Whether handshake bytes wait while no timer runs that would send them: none of their space is in flight, and no
    /// timeout is armed for 1-RTT packets before the handshake is confirmed (RFC 9002 §6.2.1).
    pub(crate) fn is_handshake_stranded(&self) -> bool {
        let in_flight = |space: &Space| space.ledger.ack_eliciting_in_flight() > 0;
        let early = || self.early.iter().flatten();
        early().any(|space| space.crypto.wants()) && !early().any(|space| in_flight(space))
    }

    /// What the loss detection timer needs to know of each space; nothing of a space that is gone.
    pub(crate) fn timers(&self) -> [SpaceTimers; 3] {
        SpaceId::ALL.map(|id| self.space(id).map_or(SpaceTimers::default(), Space::timers))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SpaceId, &Space)> {
        SpaceId::ALL.into_iter().filter_map(|id| Some((id, self.space(id)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recovery::ack::AckPolicy;
    use wire::writer::Writer;

    /// RFC 9000 §13.2.1, §13.2.4: never, and the peer keeps what we report for ever; always, and two ends acknowledge each other
    /// without end.
    #[test]
    fn who_only_acknowledges_asks_now_and_then() {
        let mut space = Space::new(AckTracker::new(AckPolicy::EVERY_SECOND), &mut SparseRng::from_u64(1));
        let mut asked = 0;
        for _ in 0..1_000 {
            let (mut room, mut frames) = ([0; 50], Vec::new());
            let mut packet = PacketBuilder::new(Writer::new(&mut room), &mut frames);
            space.elicit_ack_now_and_then(&mut packet);
            if packet.flags().has(PacketFlags::ACK_ELICITING) {
                space.on_ack_eliciting_sent();
                asked += 1;
            }
        }
        assert_eq!(asked, 1_000 / ACKS_WITHOUT_ANSWER);
    }
}
