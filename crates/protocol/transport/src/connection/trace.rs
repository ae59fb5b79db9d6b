//! What a traced connection records of its packets, and what it remembers to tell what has changed (trace_state.rs).
//!
//! Packets are decoded once more from their plaintext, in functions that are not on the path of a connection without a trace: it
//! pays one test of a pointer for each packet. Source: draft-ietf-quic-qlog-quic-events.

use crate::event::CloseReason;
use crate::lane_id::LaneId;
use crate::space::{ACK_DELAY_EXPONENT, SpaceId};
use base::net::Addresses;
use base::time::Instant;
use qlog::{
    Beginning, ConnectionStarted, Event, Initiator, LossTrigger, PacketKind, PacketLost, PacketReceived,
    PacketSent, PacketsAcked, ParametersSet, RecoveryMetrics, RecoveryParametersSet, Tracer, TupleAssigned,
};
use recovery::congestion::Choice;
use recovery::ecn::EcnState;
use recovery::packet::{PacketFlags, SentPacket};
use recovery::timers::Timeout;
use wire::Side;
use wire::cid::ConnectionId;
use wire::transport_parameters::TransportParameters;
use wire::version::Version;

/// The trace of a connection.
pub(super) struct Tracing {
    pub(super) log: qlog::Trace,
    pub(super) last: Snapshot,
    /// By which the peer scales the delays of its acknowledgements.
    pub(super) peer_exponent: u8,
    /// Numbers of packets that the ACK frame at hand acknowledges for the first time.
    acked: Vec<u64>,
    /// Packets that the ACK frame or the timeout at hand has shown to be lost.
    lost: Vec<SentPacket>,
    /// Why the connection has ended, until that is recorded.
    pub(super) closed: Option<CloseReason>,
}

/// What a trace has told of a connection so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Snapshot {
    pub(super) stage: Option<qlog::ConnectionState>,
    pub(super) version: Option<Version>,
    pub(super) path: Option<(u64, Addresses)>,
    pub(super) is_path_valid: bool,
    pub(super) peer_cid: Option<ConnectionId>,
    pub(super) mtu: u16,
    pub(super) ecn: Option<EcnState>,
    pub(super) congestion: Option<&'static str>,
    pub(super) choice: Option<Choice>,
    pub(super) metrics: RecoveryMetrics,
    pub(super) timer: Option<Timeout>,
    pub(super) has_handshake_keys: bool,
    pub(super) key_phase: Option<u64>,
    pub(super) has_peer_parameters: bool,
    pub(super) has_alpn: bool,
    pub(super) dropped: [u64; 5],
}

/// What is recorded at the very beginning.
pub(super) struct Opening<'a> {
    pub(super) now: Instant,
    pub(super) side: Side,
    pub(super) addresses: Addresses,
    pub(super) original: ConnectionId,
    pub(super) local_cid: ConnectionId,
    pub(super) peer_cid: ConnectionId,
    pub(super) recovery: RecoveryParametersSet,
    /// Our transport parameters, encoded.
    pub(super) parameters: &'a [u8],
}

/// A packet of either direction, as its plaintext has it.
pub(super) struct Plain<'a> {
    pub(super) space: SpaceId,
    /// The packet has a long header, of this version.
    pub(super) long: Option<Version>,
    /// How often the 1-RTT keys were updated.
    pub(super) key_phase: u64,
    pub(super) pn: u64,
    pub(super) dcid: ConnectionId,
    pub(super) len: usize,
    pub(super) payload: &'a [u8],
}

impl Plain<'_> {
    fn event(&self, ack_delay_exponent: u8) -> PacketSent<'_> {
        let Plain { space, long, key_phase, pn, dcid, len, payload } = *self;
        let kind = match (space, long) {
            (SpaceId::Initial, _) => PacketKind::Initial,
            (SpaceId::Handshake, _) => PacketKind::Handshake,
            (SpaceId::Application, Some(_)) => PacketKind::ZeroRtt,
            (SpaceId::Application, None) => PacketKind::OneRtt { key_phase },
        };
        PacketSent { kind, pn, version: long, dcid, len, payload, ack_delay_exponent }
    }
}

impl Tracing {
    /// The trace of a connection that begins, if `tracer` wants one.
    #[cold]
    pub(super) fn begin(tracer: &dyn Tracer, opening: &Opening<'_>) -> Option<Box<Tracing>> {
        let Opening { now, side, addresses, original, local_cid, peer_cid, .. } = *opening;
        let beginning = Beginning { now, side, original_dcid: original.as_slice(), wall_clock_ms: None };
        let mut log = tracer.begin(&beginning)?;
        log.record(now, &ConnectionStarted { addresses, local_cid, peer_cid });
        if let Ok(parameters) = TransportParameters::parse(opening.parameters, side) {
            let initiator = Initiator::Local;
            log.record(now, &ParametersSet { initiator, parameters: &parameters, tls_cipher: None });
        }
        log.record(now, &opening.recovery);
        Some(Box::new(Tracing {
            log,
            last: Snapshot { peer_cid: Some(peer_cid), ..Snapshot::default() },
            peer_exponent: ACK_DELAY_EXPONENT,
            acked: Vec::new(),
            lost: Vec::new(),
            closed: None,
        }))
    }

    /// A packet was built; `at` is when it departs.
    #[cold]
    #[inline(never)]
    pub(super) fn on_sent(&mut self, at: Instant, packet: &Plain<'_>) {
        self.log.record(at, &packet.event(ACK_DELAY_EXPONENT));
    }

    /// A packet was opened.
    #[cold]
    #[inline(never)]
    pub(super) fn on_received(&mut self, now: Instant, packet: &Plain<'_>) {
        self.log.record(now, &PacketReceived(packet.event(self.peer_exponent)));
    }

    #[cold]
    pub(super) fn on_acked(&mut self, pn: u64) {
        self.acked.push(pn);
    }

    /// An ACK frame was worked through.
    #[cold]
    pub(super) fn settle_acked(&mut self, now: Instant, space: SpaceId) {
        if !self.acked.is_empty() {
            self.acked.sort_unstable();
            self.log.record(now, &PacketsAcked { kind: kind(space), numbers: &self.acked });
            self.acked.clear();
        }
    }

    #[cold]
    pub(super) fn on_lost(&mut self, packet: &SentPacket) {
        self.lost.push(*packet);
    }

    /// Losses were looked for; packets `reordered` below the largest acknowledged one are lost by their number alone.
    #[cold]
    pub(super) fn settle_lost(
        &mut self,
        now: Instant,
        space: SpaceId,
        (largest_acked, reordered): (Option<u64>, u64),
    ) {
        for packet in self.lost.drain(..) {
            let is_reordered = largest_acked.is_some_and(|largest| packet.pn + reordered <= largest);
            let event = PacketLost {
                kind: kind(space),
                pn: packet.pn,
                trigger: if is_reordered { LossTrigger::Reordering } else { LossTrigger::Time },
                is_mtu_probe: packet.flags.has(PacketFlags::MTU_PROBE),
            };
            self.log.record(now, &event);
        }
    }

    /// A path begins beside the first one.
    #[cold]
    pub(super) fn on_path(&mut self, now: Instant, id: LaneId, addresses: Addresses) {
        let id = tuple_of(id).unwrap_or_default();
        self.log.record(now, &TupleAssigned { id, addresses });
    }

    /// The packets that follow go and come on this path.
    #[cold]
    pub(super) fn enter_path(&mut self, id: LaneId) {
        self.log.set_tuple(tuple_of(id));
    }

    pub(super) fn record(&mut self, now: Instant, event: &impl Event) {
        self.log.record(now, event);
    }
}

/// The name of a path that is used beside others, above those that the first one has as it moves.
fn tuple_of(id: LaneId) -> Option<u64> {
    (id != LaneId::FIRST).then(|| 1_000 * u64::from(id.0))
}

fn kind(space: SpaceId) -> PacketKind {
    match space {
        SpaceId::Initial => PacketKind::Initial,
        SpaceId::Handshake => PacketKind::Handshake,
        SpaceId::Application => PacketKind::OneRtt { key_phase: 0 },
    }
}
