//! Time: which deadlines a connection has, and what happens when one passes.
//!
//! Deadlines are computed when asked for, from the state of the components; none is armed or cancelled, so none can be
//! forgotten. A worker asks once per turn, not once per packet.

use super::Connection;
use super::close::close_period;
use super::cut_off::Received;
use super::lanes::LaneUse;
use super::own_moves::SILENT_PTOS;
use crate::event::CloseReason;
use crate::path::Expiry;
use crate::space::{Space, SpaceId};
use base::time::{Duration, Instant};
use recovery::timers::{
    Action, AmplificationLimit, Inputs, PROBES, Probes, SpaceTimers, Timeout, next_timeout,
};
use wire::Side;
use wire::error::Code;

/// Probe timeouts in a row after which packets go in the base size again. Source: RFC 8899 §4.3.
const BLACK_HOLE_PTOS: u32 = 3;

/// Probe timeouts in a row after which one of several paths is given up. The last two of them are waits of eight and of sixteen times
/// the first.
const LANE_PTOS: u32 = 5;

/// A server asks for the client's Finished as after so many probe timeouts: the client's own come first. To one whose 1-RTT packets fill
/// its window the acknowledgement beside the question would be the loss of the Finished, for which it then has no room.
const FINISHED_PTOS: u32 = 3;

/// How long a client that waits for an answer listens before it sends a PING.
const LISTEN: Duration = Duration::from_secs(3);
/// PINGs in a row that only acknowledgements answer, after which no more follow: a server that lives but never answers does
/// not keep its client for ever.
const MAX_PINGS: u32 = 60;

impl Connection {
    /// When `on_timeout` must be called at the latest; `None` when nothing waits.
    pub fn next_timeout(&self) -> Option<Instant> {
        if self.lifecycle.is_over() {
            return self.lifecycle.deadline();
        }
        let ends = [
            self.idle_deadline(),
            self.timers.handshake_deadline,
            self.loss_timer().map(|timer| timer.at),
            self.paths.next_timeout(&self.components.peer_cids),
        ];
        let quiet_at = self.timers.quiet_at().filter(|_| self.handshake.is_complete());
        let of_lanes = self
            .components
            .lanes
            .as_ref()
            .and_then(|lanes| lanes.next_timeout(self.components.ack_frequency.peer_max_ack_delay()));
        ends.into_iter().chain(self.departures()).chain([quiet_at, of_lanes]).flatten().min()
    }

    /// When something should leave. Nothing may as long as the amplification limit is reached: it then waits for the peer,
    /// not for time. The same is true of a step of the handshake that is out.
    fn departures(&self) -> [Option<Instant>; 5] {
        let path = self.paths.active();
        if self.amplification_limit() == AmplificationLimit::Reached || self.handshake.is_waiting() {
            return [None; 5];
        }
        [
            self.keep_alive_at(),
            self.cut_off_at(),
            self.spaces.iter().filter_map(|(_, space)| space.acks.next_timeout()).min(),
            path.pacer.next_release().filter(|_| self.carries_data()),
            path.probe_wait_ends(),
        ]
    }

    /// Whether the current lane carries data.
    #[inline]
    fn carries_data(&self) -> bool {
        self.components.lanes.as_ref().is_none_or(|lanes| lanes.current_use() == LaneUse::Data)
    }

    /// Time has passed, for the connection and for the current lane.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.lifecycle.is_over() {
            if self.lifecycle.deadline().is_some_and(|deadline| now >= deadline) {
                self.lifecycle = super::Lifecycle::Gone;
            }
            return;
        }
        if self.idle_deadline().is_some_and(|deadline| now >= deadline) {
            // RFC 9000 §10.1: closed in silence.
            self.finish(CloseReason::IdleTimeout);
            return;
        }
        if self.timers.handshake_deadline.is_some_and(|deadline| now >= deadline) {
            //= rfc9000/21.6#1
            self.finish(CloseReason::HandshakeTimeout);
            return;
        }
        self.expire_lane(now);
        if self.cut_off_at().is_some_and(|at| now >= at) {
            self.on_cut_off(now);
        }
        if self.keep_alive_at().is_some_and(|at| now >= at) {
            self.components.control_frames.ping();
            self.timers.pings = self.timers.pings.saturating_add(1);
        }
        self.keys.on_time(now);
        if self.timers.quiet_at().is_some_and(|at| now >= at) && self.handshake.is_complete() {
            self.timers.on_quiet();
            self.release_memory(now);
        }
    }

    /// Whether the connection has been idle for so long that it has given memory back which packets would use again. Who keeps memory for
    /// it can do the same.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.timers.is_quiet()
    }

    /// Gives back what is there so that packets need not make it. What waits for something stays.
    fn release_memory(&mut self, now: Instant) {
        self.components.streams.release_memory();
        self.components.local_cids.release_memory();
        self.components.peer_cids.release_memory();
        self.paths.release_memory();
        self.events.shrink_to_fit();
        self.frames = Vec::new();
        if self.side.is_server() && self.handshake.is_confirmed() && self.trace.is_none() {
            self.handshake.release_memory();
        }
        if !self.spaces.handshaking() {
            self.paths.forget_handshake();
            let forget_after = close_period(&self.paths, &self.components);
            self.spaces.application.release_memory(now, forget_after);
        }
        if self.components.lanes.is_none()
            && self.handshake.is_confirmed()
            && self.spaces.in_flight_bytes() == 0
        {
            self.keys.sleep();
        }
    }

    /// Time has passed for the current lane.
    pub(super) fn expire_lane(&mut self, now: Instant) {
        if let Some(timer) = self.loss_timer().filter(|timer| now >= timer.at) {
            self.on_loss_timer(now, timer.action);
        }
        self.paths.active_mut().on_probe_wait_timeout(now);
        if self.side.is_client() && self.paths.has_failed(now) && self.end_lane() {
            return;
        }
        match self.paths.on_timeout(now) {
            Expiry::Nothing => {}
            Expiry::Reverted => self.on_path_changed(),
            // The client alone decides: if nothing comes through on any path, each end could keep one that the other has ended.
            Expiry::NoPath if self.side.is_client() && self.end_lane() => {}
            // The path may have begun while nothing came through: it is asked again until the client ends it, or the idle timeout.
            Expiry::NoPath if self.components.lanes.is_some() => self.paths.validate(now),
            Expiry::NoPath => self.finish(CloseReason::PathLost),
            Expiry::MoveFailed(addresses) => self.on_move_failed(addresses),
        }
    }

    /// The current lane has had another probe timeout, this long after the one before. It ends if another one is heard of meanwhile,
    /// which is asked first.
    fn end_silent_lane(&mut self, now: Instant, since: Duration) {
        let Some(lanes) = &self.components.lanes else { return };
        let timeouts = self.timers.back_off.timeouts();
        if timeouts + 1 < LANE_PTOS || !lanes.has_fit_beside() {
            return;
        }
        if timeouts < LANE_PTOS || !lanes.hears_beside(now, since) {
            self.components.control_frames.ping();
        } else {
            self.end_lane();
        }
    }

    /// The current lane ends where others are open; whether it does.
    fn end_lane(&mut self) -> bool {
        let Some(lanes) = &mut self.components.lanes else { return false };
        lanes.end(lanes.current, Code::PATH_UNSTABLE_OR_POOR)
    }

    /// Source: RFC 9000 §10.1: at least three PTO, so that a lossy path does not look idle.
    fn idle_deadline(&self) -> Option<Instant> {
        let timeout = self.timers.idle_timeout;
        if timeout.is_zero() {
            return None;
        }
        let pto = self.paths.active().rtt.pto(self.components.ack_frequency.peer_max_ack_delay());
        //= rfc9000/10.1#2
        let longest = if self.handshake.is_complete() { timeout.max(pto * 3) } else { timeout };
        Some(self.timers.active_at + longest)
    }

    fn keep_alive_at(&self) -> Option<Instant> {
        // A PING that congestion control holds back is not asked for again.
        let may_ask =
            self.handshake.is_complete() && !self.timers.asked && !self.components.control_frames.owes_ping();
        if !may_ask {
            return None;
        }
        let keep_alive = self.timers.keep_alive.map(|interval| interval.min(self.longest_quiet()));
        let interval = [keep_alive, self.patience()].into_iter().flatten().min()?;
        Some(self.timers.active_at + interval)
    }

    /// Sends a PING when the connection was quiet for so long, or for a third of the idle timeout of both ends if that is less. `None`:
    /// as the configuration says. Source: RFC 9000 §10.1.2.
    pub fn set_keep_alive(&mut self, interval: Option<Duration>) {
        self.timers.keep_alive = interval.or(self.config.keep_alive);
    }

    /// How quiet a connection may be that is kept alive.
    fn longest_quiet(&self) -> Duration {
        let idle = self.timers.idle_timeout;
        if idle.is_zero() { Duration::MAX } else { idle / 3 }
    }

    /// How long a client that waits for an answer listens before it asks whether the server still reaches it. Where an address
    /// translator has dropped its binding, only a packet of the client makes a new one, and tells the server of it.
    fn patience(&self) -> Option<Duration> {
        let is_waiting = self.side.is_client() && self.components.streams.awaits_answers();
        if !is_waiting || self.timers.pings >= MAX_PINGS {
            return None;
        }
        let pto = self.paths.active().rtt.pto(self.components.ack_frequency.peer_max_ack_delay());
        let idle = self.timers.idle_timeout;
        let part = if idle.is_zero() { LISTEN } else { LISTEN.min(idle / 4) };
        Some(part.max(pto * 3))
    }

    /// What has come of a transfer to this end.
    #[inline]
    fn received(&self) -> Received {
        let packets = self.counters.received_packets as u32;
        let parts =
            if self.side.is_client() { packets } else { (self.components.streams.received() >> 10) as u32 };
        Received { packets, repeated: self.components.streams.repeated(), parts }
    }

    /// When an end that waits for the rest of an answer or of a request looks whether it was cut off, or asks again.
    #[inline]
    fn cut_off_at(&self) -> Option<Instant> {
        let (cut_off, received) = (&self.timers.cut_off, self.received());
        let is_asking = cut_off.is_asking(received);
        let waits = match self.side {
            Side::Client => {
                let streams = &self.components.streams;
                streams.awaits_answers() && (is_asking || !self.timers.asked || streams.retained() == 0)
            }
            Side::Server => {
                (is_asking || cut_off.would_be_cut_off(received)) && self.components.lanes.is_none()
            }
        };
        let may_ask = waits
            && self.handshake.is_confirmed()
            && !self.components.control_frames.owes_ping()
            && !self.paths.has_left_one();
        if !may_ask {
            return None;
        }
        let ack_delay = self.components.ack_frequency.peer_max_ack_delay();
        let rtt = &self.paths.active().rtt;
        let pto = rtt.pto(ack_delay);
        if is_asking {
            cut_off.again_at(rtt.loss_delay(), pto + ack_delay)
        } else {
            cut_off.look_at(self.timers.active_at(), received, pto, rtt.loss_delay())
        }
    }

    fn on_cut_off(&mut self, now: Instant) {
        let (active_at, received) = (self.timers.active_at(), self.received());
        let is_open = || self.side.is_client() || self.components.streams.awaits_rest();
        let cut_off = &mut self.timers.cut_off;
        if cut_off.is_asking(received) {
            cut_off.on_asked(now);
        } else if !cut_off.look(now, active_at, received, is_open) {
            return;
        }
        self.components.control_frames.ping();
        self.spaces.application.acks.repeat();
    }

    /// The loss detection timer. Source: RFC 9002 appendix A.8.
    pub(super) fn loss_timer(&self) -> Option<Timeout> {
        if self.spaces.handshaking() {
            let mut spaces = self.spaces.timers();
            if self.paths.active().is_amplification_limited() {
                // No probe with an Initial packet may go; a smaller one of the other spaces may.
                spaces[SpaceId::Initial.index()].ack_eliciting_in_flight = 0;
            }
            let mut doublings = self.timers.back_off.timeouts();
            if self.awaits_finished() {
                // The Finished stands for an answer to our last packet that is not there: a PING asks for it.
                spaces[SpaceId::Handshake.index()].ack_eliciting_in_flight = 1;
                doublings = doublings.max(FINISHED_PTOS);
            }
            self.loss_timer_of(&spaces, doublings)
        } else {
            self.loss_timer_of(
                &[self.spaces.application.timers()],
                self.timers.back_off.doublings(self.is_heard()),
            )
        }
    }

    #[inline]
    fn loss_timer_of(&self, spaces: &[SpaceTimers], doublings: u32) -> Option<Timeout> {
        let path = self.paths.active();
        next_timeout(&Inputs {
            spaces,
            rtt: &path.rtt,
            max_ack_delay: self.components.ack_frequency.peer_max_ack_delay(),
            doublings,
            handshake: self.handshake.confirmation(),
            address_validation: self.address_validation(),
            amplification: self.amplification_limit(),
        })
    }

    /// Whether nothing may be sent. While the handshake lasts, less than a datagram of 1,200 bytes is of use.
    #[inline]
    fn amplification_limit(&self) -> AmplificationLimit {
        let path = self.paths.active();
        if path.is_amplification_limited() && self.spaces.handshaking() && path.affords_handshake_packet() {
            return AmplificationLimit::Clear;
        }
        path.amplification_limit()
    }

    /// Whether the peer was heard since something was sent that it should acknowledge; with several lanes it is unknown on which.
    #[inline]
    fn is_heard(&self) -> bool {
        !self.timers.asked && self.components.lanes.is_none()
    }

    /// If the peer is heard after probe timeouts, by an acknowledgement of what left before them: what was in flight then is most likely lost, and
    /// probes carry some of it at once. New data, for which there may be room, would begin another timeout.
    #[inline]
    pub(super) fn answer_late_acks(&mut self, now: Instant) {
        if !self.timers.take_answer() || self.spaces.handshaking() {
            return;
        }
        match self.loss_timer() {
            Some(timer) if now >= timer.at => self.on_loss_timer(now, timer.action),
            Some(_) => self.owe_probes(SpaceId::Application, PROBES),
            None => {}
        }
    }

    /// Source: RFC 9002 appendix A.9.
    fn on_loss_timer(&mut self, now: Instant, action: Action) {
        let probed = match action {
            Action::DetectLosses(id) => return self.detect_losses(now, id),
            Action::Probe(id) | Action::ProbeForPeer(id) => id,
        };
        //= rfc9002/6.2.1#3
        let probes = match self.spaces.handshaking() {
            true => self.timers.back_off.on_timeout(),
            false => self.timers.back_off.on_expiry(self.is_heard()),
        };
        if !matches!(probes, Probes::OfTimeout(_)) {
            return self.owe_probes(probed, probes.count());
        }
        let since = now.saturating_since(core::mem::replace(&mut self.timers.probed_at, now));
        self.counters.probe_timeouts += 1;
        let path = self.paths.active_mut();
        path.ecn.on_pto();
        let timeouts = self.timers.back_off.timeouts();
        if timeouts == BLACK_HOLE_PTOS {
            path.on_black_hole(now);
        }
        if timeouts == SILENT_PTOS {
            self.look_back(now);
        }
        self.end_silent_lane(now, since);
        self.owe_probes(probed, probes.count());
        // RFC 9002 §6.2.4: what other handshake spaces wait for goes along, coalesced. With 1-RTT keys a client asks there in
        // any case: a server that is done with the handshake hears nothing else, and if the client's address has changed
        // just then, it must hear of that.
        for id in SpaceId::ALL {
            let in_flight = |space: &Space| space.ledger.ack_eliciting_in_flight() > 0;
            let waits = self.spaces.space(id).is_some_and(in_flight)
                || (id == SpaceId::Application && self.side.is_client());
            if id != probed && waits && self.keys.has(id) && self.spaces.handshaking() {
                self.owe_probes(id, probes.count());
            }
        }
    }
}
