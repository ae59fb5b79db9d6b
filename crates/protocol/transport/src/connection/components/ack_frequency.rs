//! How often packets are acknowledged, by agreement: what the peer asks of us, and what we ask of it.
//!
//! The sender of data knows its window and its round trip, the receiver knows what acknowledgements cost; so the sender
//! asks. We ask for four acknowledgements a window, by count and by time, and for eight if the window is small, but never
//! for one in more than 64 packets or later than 25 ms. In slow start it is sixteen a window, because HyStart++ wants eight
//! samples of the round trip a round. It is eight as well where packets hardly wait and the window is what holds the flow back: the receiver keeps
//! half of an acknowledgement's packets to itself on average, an eighth of the window with four, which a queue makes up for that is as long. For 32 round trips
//! after a loss it is as often as the peer's timer is good for, sixteen times a window and a round trip at most: where packets are lost
//! acknowledgements are, too, and a run of losses takes all of a window's if these are eight. By BBR it is 32 times a window of less than 128 packets then, but in Startup, since runs of
//! sixteen come as well, and a flow whose window is full waits for its probes until one has passed (docs/decisions/008-bursts.md). The same follows an ACK frame that acknowledges more
//! than twice what was asked for: others before it are missing. Where the worker has many connections and wants to be woken seldom, it is as
//! rarely as that, but twice a window, whatever its
//! size and however late: the window opens by what is acknowledged, so that acknowledgements are as rare as trains are long. What is
//! asked for holds until the count, the delay or the round trip has doubled or halved; there is one request on its way at most.
//!
//! Data structure: the terms last asked for, their announcement, and the number of the last request of the peer's. A flood
//! of requests changes numbers, nothing grows.
//!
//! Rejected: asking with every change of the window (the request costs what it saves); reordering thresholds other than
//! loss detection's own (a lower one hastens acknowledgements that declare nothing lost); leaving the peer's delay out of
//! the probe timeout when more packets are in flight than the threshold (a lost tail is when it matters).
//!
//! Source: draft-ietf-quic-ack-frequency.

#[cfg(test)]
mod tests;

use crate::announce::Announce;
use crate::builder::PacketBuilder;
use crate::config::{Switch, TransportConfig};
use crate::error::TransportError;
use crate::sent::SentFrame;
use base::time::{Duration, Instant};
use recovery::ack::{AckPolicy, Chooser};
use recovery::congestion::{Algorithm, Controller};
use recovery::rtt::{PACKET_THRESHOLD, Rtt};
use wire::error::Code;
use wire::frame;
use wire::transport_parameters::TransportParameters;

/// The shortest delay that we can keep to: what the timers of a worker are good for.
const MIN_ACK_DELAY: Duration = Duration::from_millis(1);
/// Delays from here on are no max_ack_delay. Source: RFC 9000 §18.2.
const TOO_LONG: Duration = Duration::from_millis(1 << 14);
/// max_ack_delay where the peer says nothing. Source: RFC 9000 §18.2.
const DEFAULT_MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// Acknowledgements a window, and a round trip, that are asked for.
const PARTS: u64 = 4;
/// The same for a worker that wants to be woken seldom.
const LEAST_PARTS: u64 = 2;
/// Acknowledgements a window in slow start, twice what HyStart++ needs a round, and after losses. Source: RFC 9406 §4.3.
const MOST_PARTS: u64 = 16;
/// The same for a window of less than this many packets, or one that fills no queue: it is short of every round trip that is prolonged, and there is
/// little to save.
const SMALL_WINDOW_PARTS: u64 = 8;
const FEW: u64 = 64;
/// Acknowledgements that BBR asks for after losses, but in Startup, where a window has less than so many packets.
const LOSSY_PARTS: u64 = 32;
const SHORT_OF_ACKS: u64 = 128;
/// So many round trips after a loss another one is expected.
const LOSSY_ROUNDS: u64 = 32;
/// Fewer packets than this for one acknowledgement are not worth a first request.
const WORTHWHILE: u64 = 4;
/// At least and at most this many ack-eliciting packets for one acknowledgement.
const LEAST_EVERY: u64 = 2;
const MOST_EVERY: u64 = 64;
/// The longest delay that is asked for.
const LONGEST: Duration = DEFAULT_MAX_ACK_DELAY;

/// What the sender wants, besides what its window and the round trip say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Its packets have so many bytes.
    pub(crate) packet_size: u16,
    /// To be woken once in so long, where the worker has many connections; zero elsewhere.
    pub(crate) span: Duration,
}

/// A window of the flow, and the path.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Packets of the window.
    window: u64,
    /// The window is acknowledged in so many parts at least.
    parts: u64,
    /// Packets or acknowledgements were lost of late.
    is_lossy: bool,
    rtt: Duration,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Terms {
    /// One acknowledgement for this many ack-eliciting packets.
    every: u64,
    delay: Duration,
    reordering: u64,
    /// The round trip that this suits.
    rtt: Duration,
}

impl Terms {
    /// What suits this flow, a peer that cannot wait for less than `floor`, and a worker that wants to be woken once in `span`.
    fn of(Flow { window, parts, is_lossy, rtt }: Flow, [floor, span]: [Duration; 2]) -> Terms {
        //= ack-frequency/4#3
        let usual = if window < FEW { SMALL_WINDOW_PARTS } else { PARTS };
        let usual = if is_lossy {
            // As often as the peer's timer is good for.
            rtt.as_nanos().checked_div(floor.as_nanos()).unwrap_or(MOST_PARTS).clamp(usual, MOST_PARTS)
        } else {
            usual
        };
        let of_span = rtt.as_nanos().checked_div(span.as_nanos()).unwrap_or(usual);
        let of_rtt = of_span.clamp(LEAST_PARTS, usual);
        let delay = (rtt / of_rtt).min(LONGEST.max(span)).max(floor);
        Terms {
            every: (window / parts.max(of_rtt)).clamp(LEAST_EVERY, MOST_EVERY),
            delay,
            // Draft §8.1: where the peer's timer is slower than the path, gaps must not wait for it.
            //= ack-frequency/9#1
            reordering: if delay > rtt { 1 } else { PACKET_THRESHOLD },
            rtt,
        }
    }

    /// Whether `self` is so much better than `old` that the peer must be told.
    fn replaces(&self, old: &Terms) -> bool {
        let apart = |a: u64, b: u64| a >= b.saturating_mul(2) || b >= a.saturating_mul(2);
        let other_time = (self.delay, self.reordering) != (old.delay, old.reordering);
        // Where there have come to be many connections, or few, neither the count nor the round trip need be another.
        let is_other_delay =
            self.delay.max(old.delay) > LONGEST && apart(self.delay.as_nanos(), old.delay.as_nanos());
        apart(self.every, old.every)
            || is_other_delay
            || (other_time && apart(self.rtt.as_nanos(), old.rtt.as_nanos()))
    }
}

/// Whether packets wait for less than an eighth of a round trip, of which the peer's timer is good for an eighth. On shorter paths acknowledgements are
/// what they cost.
fn waits_hardly(rtt: &Rtt, floor: Duration) -> bool {
    let part = rtt.smoothed() / SMALL_WINDOW_PARTS;
    part >= floor && rtt.smoothed().saturating_sub(rtt.min()) < part
}

/// In how many parts at least a window of so many packets is acknowledged, by the controller in use, in slow start or not.
fn least_parts(
    (in_use, is_in_slow_start): (Algorithm, bool),
    window: u64,
    is_lossy: bool,
    waits_hardly: impl FnOnce() -> bool,
) -> u64 {
    match in_use {
        _ if is_in_slow_start => MOST_PARTS,
        Algorithm::Bbr if is_lossy && window < SHORT_OF_ACKS => LOSSY_PARTS,
        Algorithm::Bbr => LEAST_PARTS,
        _ if waits_hardly() => SMALL_WINDOW_PARTS,
        _ => LEAST_PARTS,
    }
}

/// A request on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    sequence: u64,
    terms: Terms,
}

impl Request {
    fn frame(&self) -> frame::AckFrequency {
        frame::AckFrequency {
            sequence: self.sequence,
            ack_eliciting_threshold: self.terms.every - 1,
            requested_max_ack_delay_us: self.terms.delay.as_micros(),
            reordering_threshold: self.terms.reordering,
        }
    }
}

/// Both directions of the agreement, for one connection.
#[derive(Debug)]
pub(crate) struct AckFrequency {
    /// What we told the peer that we can keep to; `None` when we take no requests.
    offered: Option<Duration>,
    /// One more than the number of the last request that we complied with.
    next_of_peer: u64,
    /// What the peer can keep to; `None` when it takes no requests, or we make none.
    floor: Option<Duration>,
    /// The peer's max_ack_delay, as far as it is known to have changed it.
    peer_max_ack_delay: Duration,
    /// What we have asked for, if anything. Boxed, because short connections ask for nothing.
    ours: Option<Box<OwnRequests>>,
}

/// The requests that we have made.
#[derive(Debug)]
struct OwnRequests {
    /// What was asked for last.
    asked: Terms,
    request: Announce<Request>,
    next_sequence: u64,
    /// What was asked for was for another path.
    is_stale: bool,
    /// Losses are expected until then.
    lossy_until: Instant,
}

impl OwnRequests {
    fn ask(&mut self, terms: Terms) {
        //= ack-frequency/4#4
        self.request.request(Request { sequence: self.next_sequence, terms });
        self.next_sequence += 1;
        self.asked = terms;
        self.is_stale = false;
    }
}

impl AckFrequency {
    pub(crate) fn new(config: &TransportConfig) -> AckFrequency {
        // In whole milliseconds, as the peer will see it.
        //= ack-frequency/3#1
        let max_ack_delay = Duration::from_millis(config.max_ack_delay.as_millis());
        AckFrequency {
            offered: (config.ack_frequency == Switch::On).then_some(MIN_ACK_DELAY.min(max_ack_delay)),
            next_of_peer: 0,
            floor: None,
            peer_max_ack_delay: DEFAULT_MAX_ACK_DELAY,
            ours: None,
        }
    }

    /// The request that the peer is not known to have heard of.
    #[inline]
    fn request(&self) -> Option<&Request> {
        match &self.ours.as_deref()?.request {
            Announce::Idle => None,
            Announce::Pending(request) | Announce::InFlight(request) => Some(request),
        }
    }

    pub(crate) fn fill_parameters(&self, parameters: &mut TransportParameters) {
        parameters.min_ack_delay_us = self.offered.map(Duration::as_micros);
    }

    pub(crate) fn on_peer_parameters(&mut self, peer: &TransportParameters) {
        self.peer_max_ack_delay = Duration::from_millis(peer.max_ack_delay_ms);
        //= ack-frequency/3#3
        let is_on = self.offered.is_some();
        self.floor = peer.min_ack_delay_us.filter(|_| is_on).map(Duration::from_micros);
    }

    /// Whether the peer may ask.
    pub(crate) fn is_offered(&self) -> bool {
        self.offered.is_some()
    }

    /// The peer asks. Returns how to acknowledge from now on; `None` when it has asked for something later already.
    pub(crate) fn on_frame(
        &mut self,
        asked: &frame::AckFrequency,
    ) -> Result<Option<AckPolicy>, TransportError> {
        let delay = Duration::from_micros(asked.requested_max_ack_delay_us);
        //= ack-frequency/4#1
        if delay >= TOO_LONG || self.offered.is_none_or(|least| delay < least) {
            return Err(TransportError::new(
                Code::PROTOCOL_VIOLATION,
                "asks for an ack delay that cannot be",
            ));
        }
        //= ack-frequency/4#2
        if asked.sequence < self.next_of_peer {
            return Ok(None);
        }
        self.next_of_peer = asked.sequence.saturating_add(1);
        let every = asked.ack_eliciting_threshold.saturating_add(1);
        Ok(Some(AckPolicy {
            eliciting_threshold: u32::try_from(every).unwrap_or(u32::MAX),
            max_ack_delay: delay,
            reordering_threshold: asked.reordering_threshold,
            chooser: Chooser::Sender,
        }))
    }

    /// The longest that the peer may wait before it acknowledges: what it is known to have agreed to, or what it may have
    /// agreed to by now, whichever is longer.
    #[inline]
    pub(crate) fn peer_max_ack_delay(&self) -> Duration {
        //= ack-frequency/7#1
        match self.request() {
            None => self.peer_max_ack_delay,
            Some(request) => self.peer_max_ack_delay.max(request.terms.delay),
        }
    }

    /// Packets of the active path were lost.
    pub(crate) fn on_losses(&mut self, now: Instant, rtt: &Rtt) {
        if let Some(ours) = &mut self.ours {
            ours.lossy_until = now + rtt.smoothed() * LOSSY_ROUNDS;
        }
    }

    /// An ACK frame has acknowledged so many packets. Where it is more than twice what was asked for, others before it are missing.
    #[inline]
    pub(crate) fn on_acknowledged(&mut self, now: Instant, packets: u64, rtt: &Rtt) {
        if self.ours.as_ref().is_some_and(|ours| packets > ours.asked.every * 2) {
            self.on_losses(now, rtt);
        }
    }

    /// Whether more losses are expected.
    fn is_lossy(&self, now: Instant) -> bool {
        self.ours.as_ref().is_some_and(|ours| now < ours.lossy_until)
    }

    /// The window or the round trip of the active path may have changed.
    #[inline]
    pub(crate) fn on_path_state(&mut self, now: Instant, congestion: &Controller, rtt: &Rtt, wanted: Wanted) {
        let Some(floor) = self.floor.filter(|_| self.request().is_none()) else { return };
        let window = congestion.window() / u64::from(wanted.packet_size.max(1));
        let is_lossy = self.is_lossy(now);
        let is_alone = wanted.span.is_zero();
        let controller = (congestion.in_use(), congestion.is_in_slow_start());
        let parts =
            least_parts(controller, window, is_alone && is_lossy, || is_alone && waits_hardly(rtt, floor));
        self.consider(Terms::of(Flow { window, parts, is_lossy, rtt: rtt.smoothed() }, [floor, wanted.span]));
    }

    fn consider(&mut self, terms: Terms) {
        match &mut self.ours {
            Some(ours) if ours.is_stale || terms.replaces(&ours.asked) => ours.ask(terms),
            None if terms.every >= WORTHWHILE => self.ask_first(terms),
            Some(_) | None => {}
        }
    }

    #[cold]
    fn ask_first(&mut self, terms: Terms) {
        let mut ours = OwnRequests {
            asked: terms,
            request: Announce::Idle,
            next_sequence: 0,
            is_stale: false,
            lossy_until: Instant::ZERO,
        };
        ours.ask(terms);
        self.ours = Some(Box::new(ours));
    }

    /// The active path is another one: what was asked for does not suit it. Source: draft §8.4.
    pub(crate) fn on_path_changed(&mut self) {
        self.ours.iter_mut().for_each(|ours| ours.is_stale = true);
    }

    /// Requests made so far.
    #[cfg(test)]
    pub(crate) fn requests(&self) -> usize {
        self.ours.as_ref().map_or(0, |ours| ours.next_sequence as usize)
    }

    #[inline]
    pub(crate) fn wants(&self) -> bool {
        self.ours.as_ref().is_some_and(|ours| ours.request.is_pending())
    }

    pub(crate) fn write(&mut self, packet: &mut PacketBuilder<'_>) {
        let Some(ours) = &mut self.ours else { return };
        let Some(request) = ours.request.pending() else { return };
        let (frame, sequence) = (request.frame(), request.sequence);
        if packet.remaining() >= frame.size() {
            frame.write(&mut packet.writer);
            packet.sent(SentFrame::AckFrequency { sequence });
            ours.request.on_sent();
        }
    }

    /// Whether the peer takes requests.
    #[inline]
    pub(crate) fn may_ask(&self) -> bool {
        self.floor.is_some()
    }

    /// Asks for an acknowledgement of this packet at once, if the peer understands that. Source: draft §5, §7, §8.3.
    pub(crate) fn write_immediate_ack(&self, packet: &mut PacketBuilder<'_>) {
        //= ack-frequency/3#2
        if self.may_ask() && packet.remaining() > 0 {
            packet.writer.varint(frame::ty::IMMEDIATE_ACK);
            packet.sent_unremembered();
        }
    }

    pub(crate) fn on_acked(&mut self, acked: u64) {
        let Some(ours) = &mut self.ours else { return };
        if let Announce::Pending(request) | Announce::InFlight(request) = ours.request
            && request.sequence == acked
        {
            self.peer_max_ack_delay = request.terms.delay;
            ours.request.on_value_acked(&request);
        }
    }

    pub(crate) fn on_lost(&mut self, lost: u64) {
        let Some(ours) = &mut self.ours else { return };
        if let Announce::InFlight(request) = ours.request
            && request.sequence == lost
        {
            ours.request.on_value_lost(&request);
        }
    }
}
