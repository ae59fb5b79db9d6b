//! One path: a pair of addresses, whether the peer is there, and what recovery keeps for it. Source: RFC 9000 §9, RFC 9002.

use super::amplification::{AddressState, AmplificationBudget};
use super::probe::ProbeWait;
use super::validation::{ChallengeResult, Data, DatagramSize, Validation, ValidationTimeouts};
use crate::builder::PacketBuilder;
use crate::config::{MIN_PACKET_SIZE, Switch, TransportConfig};
use crate::sent::SentFrame;
use base::net::Addresses;
use base::rng::SparseRng;
use base::time::{Duration, Instant};
use recovery::congestion::{Algorithm, Controller, SavedParameters};
use recovery::ecn::EcnValidator;
use recovery::mtu::{Headers, MtuSearch};
use recovery::pacer::{Burst, Pacer, Pacing, Release, Savings};
use recovery::reordering::Reordering;
use recovery::rtt::{LossThresholds, Rtt};
use recovery::timers::AmplificationLimit;
use std::sync::Arc;
use wire::frame;

/// Names a path of a connection. Never reused within the connection, so an old one finds nothing instead of another path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathId(pub(super) u64);

/// Challenges of the peer that may wait to be answered; when more come, the oldest are forgotten. A peer whose challenges
/// arrive faster than we may send cannot make us remember more.
const MAX_RESPONSES: usize = 3;

/// Parts of a window between which a sender looks at what has arrived.
const FLIGHTS: u64 = 4;
/// Bytes that leave without such a look, 16 packets of Ethernet: a smaller part costs more system calls than it is worth.
const LEAST_FLIGHT: u64 = 16 * 1_472;

/// So many round trips after a loss trains are short.
const ROUNDS_OF_SHORT_TRAINS: u64 = 4;

/// A datagram smaller than this holds no challenge and no response: header, frames and tag of one packet.
const MIN_PROBE: u64 = 64;

/// A datagram smaller than this is not worth a packet of the handshake.
const MIN_HANDSHAKE_DATAGRAM: u64 = 128;

/// What the first state of a path is made from.
#[derive(Clone, Debug)]
pub(super) struct Template {
    config: Arc<TransportConfig>,
    initial_packet_size: u16,
    max_packet_size: u16,
    pub(super) congestion: Algorithm,
    /// What is known of the path.
    pub(super) saved: Option<Box<SavedParameters>>,
    pub(super) release: Release,
}

impl Template {
    pub(super) fn new(config: &Arc<TransportConfig>) -> Template {
        Template {
            config: Arc::clone(config),
            initial_packet_size: config.initial_packet_size,
            max_packet_size: config.max_packet_size,
            congestion: config.congestion,
            saved: None,
            release: Release::OnTime,
        }
    }

    /// The same for a path of which nothing is known.
    pub(super) fn of_unknown(&self) -> Template {
        Template { saved: None, ..self.clone() }
    }

    /// The controller of a path that has carried nothing yet, and what watches over its marks.
    fn control(&self, size: u16) -> (Controller, EcnValidator) {
        let congestion = Controller::new(self.congestion, size).with_slow_start(self.config.slow_start);
        let congestion = if self.config.remembers_paths() {
            congestion.with_resume(self.saved.as_deref().copied(), size)
        } else {
            congestion
        };
        let ecn = match self.config.ecn {
            Switch::On => EcnValidator::new().with_mark(congestion.ecn_mark()),
            Switch::Off => EcnValidator::disabled(),
        };
        (congestion, ecn)
    }

    /// How that controller's window is spread: as was set, or as suits it.
    fn pacing(&self, congestion: &Controller) -> Pacing {
        let burst = congestion.longest_burst().map(|span| Burst { packets: None, span: Some(span) });
        match burst {
            Some(burst) if self.config.pacing == Pacing::default() => Pacing::On(burst),
            _ => self.config.pacing,
        }
    }

    /// The peer, or our own interface, takes no packets larger than this.
    pub(super) fn on_size_limit(&mut self, limit: u16) {
        self.initial_packet_size = self.initial_packet_size.min(limit);
        self.max_packet_size = self.max_packet_size.min(limit);
    }
}

/// A path.
#[derive(Debug)]
pub(crate) struct Path {
    id: PathId,
    /// Both ends.
    pub(crate) addresses: Addresses,
    /// The round-trip time.
    pub(crate) rtt: Rtt,
    /// How far packets arrive out of order.
    pub(crate) reordering: Reordering,
    /// The congestion controller.
    pub(crate) congestion: Controller,
    /// The pacer, which follows the congestion controller (`repace`).
    pub(crate) pacer: Pacer,
    /// Trains are short until then, since packets were lost.
    short_trains_until: Instant,
    /// Whether the path carries ECN marks.
    pub(crate) ecn: EcnValidator,
    /// The largest UDP payload that may be sent at present, in bytes.
    pub(crate) max_packet_size: u16,
    /// The sender had nothing more to send while the window had room. Source: RFC 9002 §7.8.
    pub(crate) app_limited: bool,
    /// 1-RTT packets with a lower number left when another path was the active one: they tell nothing about this one.
    pub(crate) first_pn: u64,
    amplification: AmplificationBudget,
    validation: Validation,
    responses: [Option<Data>; MAX_RESPONSES],
    /// The search for larger packets (mtu.rs).
    pub(super) mtu: MtuSearch,
    /// Whether data waits for a probe of it.
    pub(super) probe_wait: ProbeWait,
    /// Congestion control before full packets began to be lost of which none that left later arrived, and until when that
    /// may be gone back to.
    pub(super) before_hole: Option<Box<(Instant, Controller)>>,
}

impl PathId {
    /// Paths are numbered from 0, the path of the handshake.
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

impl Path {
    pub(super) fn new(
        now: Instant,
        id: PathId,
        addresses: Addresses,
        template: &Template,
        state: AddressState,
    ) -> Path {
        let headers =
            if addresses.peer.ip().to_canonical().is_ipv4() { Headers::Ipv4 } else { Headers::Ipv6 };
        let sizes = (template.initial_packet_size, template.max_packet_size);
        let mtu = MtuSearch::new(template.config.mtu, headers, sizes);
        let size = mtu.size();
        let (congestion, ecn) = template.control(size);
        let mut pacer = Pacer::new(now, size).with_pacing(template.pacing(&congestion));
        pacer.set_release(template.release);
        Path {
            id,
            addresses,
            rtt: Rtt::new(template.config.initial_rtt),
            reordering: Reordering::default(),
            congestion,
            pacer,
            short_trains_until: Instant::ZERO,
            ecn,
            max_packet_size: size,
            app_limited: false,
            first_pn: 0,
            amplification: AmplificationBudget::new(state),
            validation: Validation::default(),
            responses: [None; MAX_RESPONSES],
            mtu,
            probe_wait: ProbeWait::No,
            before_hole: None,
        }
    }

    #[inline]
    pub(crate) fn id(&self) -> PathId {
        self.id
    }

    /// Datagrams of this many bytes came from the peer's address.
    #[inline]
    pub(super) fn on_received(&mut self, bytes: u64) {
        self.amplification.on_received(bytes);
    }

    /// Datagrams of this many bytes left.
    #[inline]
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.amplification.on_sent(bytes);
    }

    /// Bytes that may be sent before the peer's address must be validated. Source: RFC 9000 §8.1.
    #[inline]
    pub(crate) fn amplification(&self) -> u64 {
        self.amplification.available()
    }

    /// Whether the peer has proved to be at its address.
    #[inline]
    pub(crate) fn is_validated(&self) -> bool {
        self.amplification.is_lifted()
    }

    /// Whether a datagram of the smallest size may not be sent, so that timers must wait for the peer.
    /// Source: RFC 9002 §6.2.2.1.
    #[inline]
    pub(crate) fn is_amplification_limited(&self) -> bool {
        self.amplification() < u64::from(MIN_PACKET_SIZE)
    }

    /// The same for the loss detection timer.
    #[inline]
    pub(crate) fn amplification_limit(&self) -> AmplificationLimit {
        if self.is_amplification_limited() { AmplificationLimit::Reached } else { AmplificationLimit::Clear }
    }

    /// Whether a datagram without an Initial packet may be sent that is large enough for a packet of the handshake.
    #[inline]
    pub(crate) fn affords_handshake_packet(&self) -> bool {
        self.amplification() >= MIN_HANDSHAKE_DATAGRAM
    }

    pub(super) fn on_validated(&mut self) {
        self.amplification.lift();
    }

    /// The template has changed; nothing was sent on the path.
    pub(super) fn begin_again(&mut self, template: &Template) {
        (self.congestion, self.ecn) = template.control(self.max_packet_size);
        self.pacer = self.pacer.with_pacing(template.pacing(&self.congestion));
        self.repace();
    }

    /// The thresholds of loss detection.
    #[inline]
    pub(crate) fn loss_thresholds(&self, now: Instant) -> LossThresholds {
        self.reordering.widen(now, self.rtt.loss_thresholds())
    }

    /// The window or the round-trip time has changed.
    #[inline]
    pub(crate) fn repace(&mut self) {
        self.pacer.set_rate(self.congestion.pacing_rate(&self.rtt), self.max_packet_size);
    }

    /// Packets were acknowledged, of which the controller has heard. Trains are long where nothing was lost of late; in slow start a flow is
    /// short of every round trip, and has no train to wait for.
    #[inline]
    pub(crate) fn on_acknowledged(&mut self, now: Instant) {
        if self.rtt.has_sample() {
            let has_short_trains = now < self.short_trains_until || self.congestion.is_in_slow_start();
            let shortest = self.rtt.min();
            let wait = self.rtt.smoothed().saturating_sub(shortest);
            self.pacer.set_long_trains(if has_short_trains { Duration::ZERO } else { shortest }, wait);
        }
        self.repace();
    }

    /// Packets were lost, which is news to [`Path::reordering`] and the pacer.
    pub(crate) fn on_losses(&mut self, now: Instant) {
        let round_trip = self.rtt.smoothed();
        self.reordering.on_losses(now, round_trip);
        self.short_trains_until = now + round_trip * ROUNDS_OF_SHORT_TRAINS;
        self.pacer.set_long_trains(Duration::ZERO, Duration::ZERO);
    }

    /// How much of its rate it may save up for a train, as far as the path permits.
    pub(super) fn set_train_span(&mut self, span: Duration) {
        let (window, packet) = (self.congestion.window(), self.max_packet_size);
        self.pacer.set_savings(Savings::of(span, window, packet, &self.rtt));
    }

    /// Bytes that leave before the sender looks at what has arrived: a part of the window, so that the peer receives one part
    /// and acknowledges another while a third is made. At least 1.
    #[inline]
    pub(crate) fn longest_flight(&self) -> u64 {
        let least = LEAST_FLIGHT.max(u64::from(self.max_packet_size));
        (self.congestion.window() / FLIGHTS).max(least)
    }

    /// Takes over what another path has learned, where both are likely the same but for a translated port.
    /// Source: RFC 9000 §9.4.
    pub(super) fn inherit(&mut self, other: &Path) {
        self.rtt = other.rtt;
        self.reordering = other.reordering;
        self.congestion = other.congestion.clone();
        self.pacer = other.pacer;
        self.ecn = other.ecn.clone();
        self.mtu = other.mtu;
        self.mtu.on_path_change();
        self.max_packet_size = other.max_packet_size;
    }
}

/// Probing whether the peer is there.
impl Path {
    pub(super) fn start_validation(&mut self, now: Instant, timeouts: ValidationTimeouts) {
        self.validation.start(now, timeouts);
    }

    pub(super) fn cancel_validation(&mut self) {
        self.validation.cancel();
    }

    pub(super) fn is_validating(&self) -> bool {
        self.validation.is_running()
    }

    pub(super) fn has_failed(&self, now: Instant) -> bool {
        self.validation.deadline().is_some_and(|deadline| now >= deadline)
    }

    /// The peer challenges us here.
    pub(super) fn owe_response(&mut self, data: Data) {
        match self.responses.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(data),
            None => {
                self.responses.rotate_left(1);
                if let Some(last) = self.responses.last_mut() {
                    *last = Some(data);
                }
            }
        }
    }

    pub(super) fn on_response(&mut self, now: Instant, data: Data) -> ChallengeResult {
        let proof = self.validation.on_response(now, data);
        if proof != ChallengeResult::None {
            self.amplification.lift();
        }
        proof
    }

    /// Whether a datagram with a challenge or a response should, and may, leave.
    #[inline]
    pub(super) fn wants_probe(&self, now: Instant) -> bool {
        (self.owes_response() || self.validation.is_due(now)) && self.amplification() >= MIN_PROBE
    }

    /// Whether a challenge of the peer waits for its answer.
    #[inline]
    pub(super) fn owes_response(&self) -> bool {
        matches!(self.responses, [Some(_), ..])
    }

    /// When validation next needs attention.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let deadline = self.validation.deadline()?;
        // Without credit a challenge that is due waits for the peer, not for time.
        let may_send = self.amplification() >= MIN_PROBE;
        Some(self.validation.next_at().filter(|_| may_send).map_or(deadline, |next| next.min(deadline)))
    }

    /// When validation has failed.
    pub(super) fn validation_ends(&self) -> Option<Instant> {
        self.validation.deadline()
    }

    /// Writes the responses owed and the challenge that is due. The datagram will be as large as the credit allows, up to
    /// 1,200 bytes.
    pub(super) fn write_probe(&mut self, now: Instant, rng: &mut SparseRng, packet: &mut PacketBuilder<'_>) {
        for place in &mut self.responses {
            let Some(data) = place.filter(|_| packet.remaining() >= frame::PathResponse::SIZE) else { break };
            frame::PathResponse(data).write(&mut packet.writer);
            packet.sent_unremembered();
            *place = None;
        }
        self.close_ranks();
        if self.validation.is_due(now) && packet.remaining() >= frame::PathChallenge::SIZE {
            //= rfc9000/8.2.1#1
            let data = rng.bytes();
            let extent =
                if self.is_amplification_limited() { DatagramSize::Small } else { DatagramSize::Full };
            frame::PathChallenge(data).write(&mut packet.writer);
            packet.sent(SentFrame::PathChallenge);
            self.validation.on_sent(now, data, extent);
        }
    }

    /// Owed responses stand at the front.
    fn close_ranks(&mut self) {
        let answered = self.responses.iter().take_while(|place| place.is_none()).count();
        self.responses.rotate_left(answered % MAX_RESPONSES);
    }
}
