//! What has changed on a traced connection: its state is compared with what the trace has told before, after each train that
//! arrived, each flight that was built and each timeout. So no component knows that there are traces.

use super::Connection;
use super::close::Lifecycle;
use super::trace::{Snapshot, Tracing};
use crate::error::TransportError;
use crate::event::CloseReason;
use crate::space::SpaceId;
use base::time::Instant;
use qlog::{
    AlpnInformation, CongestionStateUpdated, ConnectionClosed, ConnectionIdUpdated, ConnectionState,
    ConnectionStateUpdated, DropTrigger, EcnStateUpdated, Ended, Initiator, KeyUpdated, MigrationState,
    MigrationStateUpdated, MtuUpdated, PacketDropped, ParametersSet, RecoveryMetrics, TimerEvent,
    TimerUpdated, TupleAssigned, VersionInformation,
};
use recovery::congestion::{Algorithm, Cause};
use recovery::ecn::EcnState;
use recovery::timers::{Action, Timeout};
use wire::Side;
use wire::error::Code;
use wire::version::Version;

impl Connection {
    /// Records what has changed since the last call.
    #[cold]
    #[inline(never)]
    pub(super) fn trace_state(&mut self, now: Instant) {
        let Some(mut trace) = self.trace.take() else { return };
        let before = trace.last;
        let state = self.snapshot(&before);
        self.trace_handshake(now, &before, &state, &mut trace);
        self.trace_drops(now, &before, &state, &mut trace);
        trace_path(now, &before, &state, &mut trace);
        trace_recovery(now, &before, &state, &mut trace);
        trace.last = state;
        if let Some(reason) = trace.closed.take() {
            trace.record(now, &closing(&reason, self.side));
            let counters = &self.counters;
            trace.log.on_ended(
                now,
                Ended {
                    is_error: is_error(&reason),
                    sent_packets: counters.sent_packets,
                    lost_packets: counters.lost_packets,
                },
            );
        }
        self.trace = Some(trace);
    }

    fn snapshot(&self, before: &Snapshot) -> Snapshot {
        let path = self.paths.active();
        let has_sample = path.rtt.has_sample();
        let metrics = RecoveryMetrics {
            min_rtt: path.rtt.min(),
            smoothed_rtt: if has_sample { path.rtt.smoothed() } else { before.metrics.smoothed_rtt },
            latest_rtt: path.rtt.latest(),
            rtt_variance: if has_sample { path.rtt.variation() } else { before.metrics.rtt_variance },
            pto_count: self.timers.back_off.timeouts(),
            congestion_window: path.congestion.window(),
            bytes_in_flight: self.spaces.in_flight_bytes(),
            ssthresh: path.congestion.ssthresh(),
            pacing_rate: Some(path.congestion.pacing_rate(&path.rtt))
                .filter(|rate| !rate.is_unlimited())
                .map(|rate| (rate.bytes_per_second() * 8.0) as u64),
        };
        let counters = &self.counters;
        Snapshot {
            stage: Some(self.stage()),
            version: Some(self.handshake.version),
            path: Some((path.id().number(), path.addresses)),
            is_path_valid: path.is_validated(),
            peer_cid: Some(self.components.peer_cids.active()),
            mtu: path.max_packet_size,
            ecn: Some(path.ecn.state()),
            congestion: Some(if path.congestion.is_in_slow_start() {
                "slow_start"
            } else {
                "congestion_avoidance"
            }),
            choice: path.congestion.choice(),
            metrics,
            timer: self.loss_timer().filter(|_| !self.lifecycle.is_over()),
            has_handshake_keys: before.has_handshake_keys || self.keys.has(SpaceId::Handshake),
            key_phase: self.keys.one_rtt.as_ref().map(|keys| keys.updates()).or(before.key_phase),
            has_peer_parameters: self.handshake.peer_parameters().is_some(),
            has_alpn: self.handshake.is_complete(),
            dropped: [
                counters.dropped_path,
                counters.dropped_malformed,
                counters.dropped_forged,
                counters.dropped_duplicate,
                counters.dropped_no_keys,
            ],
        }
    }

    fn stage(&self) -> ConnectionState {
        match self.lifecycle {
            Lifecycle::Closing(_) => ConnectionState::Closing,
            Lifecycle::Draining { .. } => ConnectionState::Draining,
            Lifecycle::Gone => ConnectionState::Closed,
            Lifecycle::Alive if self.handshake.is_confirmed() => ConnectionState::HandshakeConfirmed,
            Lifecycle::Alive if self.handshake.is_complete() => ConnectionState::HandshakeComplete,
            Lifecycle::Alive if self.keys.has(SpaceId::Handshake) => ConnectionState::HandshakeStarted,
            Lifecycle::Alive => ConnectionState::Attempted,
        }
    }

    fn trace_handshake(&self, now: Instant, before: &Snapshot, state: &Snapshot, trace: &mut Tracing) {
        let handshake = &self.handshake;
        let peer = handshake.peer_parameters();
        if before.version != state.version || before.has_peer_parameters != state.has_peer_parameters {
            let offered = peer.and_then(|peer| peer.version_information.as_ref());
            let local = &Version::SUPPORTED;
            let peer = offered.map_or(&[][..], |offered| offered.available.as_slice());
            let chosen = handshake.version;
            trace.record(now, &VersionInformation { side: self.side, local, peer, chosen });
        }
        if let Some(parameters) = peer.filter(|_| !before.has_peer_parameters) {
            let suite = handshake.tls.suite().map(|suite| suite.to_string());
            let initiator = Initiator::Remote;
            trace.peer_exponent = parameters.ack_delay_exponent.min(20) as u8;
            trace.record(now, &ParametersSet { initiator, parameters, tls_cipher: suite.as_deref() });
        }
        if let Some(chosen) = handshake.tls.alpn().filter(|_| state.has_alpn && !before.has_alpn) {
            trace.record(now, &AlpnInformation { chosen });
        }
        let key = |level, key_phase, trigger| {
            [Side::Client, Side::Server].map(|side| KeyUpdated { side, level, key_phase, trigger })
        };
        let mut keys = Vec::new();
        if before.stage.is_none() {
            keys.extend(key("initial", None, Some("tls")));
        }
        if state.has_handshake_keys && !before.has_handshake_keys {
            keys.extend(key("handshake", None, Some("tls")));
        }
        if let Some(phase) = state.key_phase.filter(|_| state.key_phase != before.key_phase) {
            keys.extend(key("1rtt", Some(phase), before.key_phase.is_none().then_some("tls")));
        }
        keys.iter().for_each(|keys| trace.record(now, keys));
        if let Some(new) = state.stage.filter(|_| state.stage != before.stage) {
            trace.record(now, &ConnectionStateUpdated { old: before.stage, new });
        }
    }

    fn trace_drops(&self, now: Instant, before: &Snapshot, state: &Snapshot, trace: &mut Tracing) {
        let triggers = [
            DropTrigger::Rejected,
            DropTrigger::Invalid,
            DropTrigger::DecryptionFailure,
            DropTrigger::Duplicate,
            DropTrigger::KeyUnavailable,
        ];
        for ((trigger, then), count) in triggers.into_iter().zip(before.dropped).zip(state.dropped) {
            if count > then {
                trace.record(now, &PacketDropped { trigger, count: count - then });
            }
        }
    }
}

fn trace_path(now: Instant, before: &Snapshot, state: &Snapshot, trace: &mut Tracing) {
    if let (Some((id, addresses)), Some(old)) = (state.path, before.path) {
        if (id, addresses) != old {
            trace.record(now, &TupleAssigned { id, addresses });
            trace.record(now, &MigrationStateUpdated { new: MigrationState::Started, addresses });
        }
        let is_proved = state.is_path_valid && (!before.is_path_valid || id != old.0);
        if is_proved && id > 0 {
            trace.record(now, &MigrationStateUpdated { new: MigrationState::Complete, addresses });
        }
    }
    if let (Some(old), Some(new)) = (before.peer_cid, state.peer_cid)
        && old != new
    {
        trace.record(now, &ConnectionIdUpdated { initiator: Initiator::Remote, old, new });
    }
    if state.mtu != before.mtu && before.mtu != 0 {
        trace.record(now, &MtuUpdated { old: before.mtu, new: state.mtu });
    }
}

fn trace_recovery(now: Instant, before: &Snapshot, state: &Snapshot, trace: &mut Tracing) {
    trace.log.record_metrics(now, &before.metrics, &state.metrics);
    if state.metrics.pto_count > before.metrics.pto_count {
        trace.log.on_probe_timeouts(now, state.metrics.pto_count);
    }
    if let Some(new) = state.congestion.filter(|_| state.congestion != before.congestion) {
        trace.record(now, &CongestionStateUpdated { old: before.congestion, new, trigger: None });
    }
    if let (Some(old), Some(new)) = (before.choice, state.choice)
        && old != new
    {
        let trigger = new.cause.map(Cause::name);
        let (old, new) = (controller(old.in_use), controller(new.in_use));
        trace.record(now, &CongestionStateUpdated { old: Some(old), new, trigger });
    }
    if let Some(new) = state.ecn.filter(|_| state.ecn != before.ecn) {
        trace.record(now, &EcnStateUpdated { old: before.ecn.map(ecn), new: ecn(new) });
    }
    if state.timer != before.timer {
        let expired = before.timer.filter(|timer| timer.at <= now);
        let gone = before.timer.filter(|_| state.timer.is_none());
        let event = match (expired, state.timer, gone) {
            (Some(timer), _, _) => Some((timer, TimerEvent::Expired)),
            (None, None, Some(timer)) => Some((timer, TimerEvent::Cancelled)),
            _ => None,
        };
        let set = state.timer.map(|timer| (timer, TimerEvent::Set(timer.at.saturating_since(now))));
        for (timer, event) in event.into_iter().chain(set) {
            trace.record(now, &TimerUpdated { timer: timer_name(&timer), event });
        }
    }
}

fn controller(algorithm: Algorithm) -> &'static str {
    if algorithm == Algorithm::Bbr { "bbr" } else { "cubic" }
}

fn timer_name(timer: &Timeout) -> &'static str {
    match timer.action {
        Action::DetectLosses(_) => "loss_timeout",
        Action::Probe(_) | Action::ProbeForPeer(_) => "pto",
    }
}

fn ecn(state: EcnState) -> qlog::EcnState {
    match state {
        EcnState::Testing => qlog::EcnState::Testing,
        EcnState::Unknown => qlog::EcnState::Unknown,
        EcnState::Capable => qlog::EcnState::Capable,
        EcnState::Failed | EcnState::Disabled => qlog::EcnState::Failed,
    }
}

/// Whether a trace that is kept for errors is kept for this one: not if an application has ended the connection as it is meant to
/// be ended, nor if neither end had anything to say any more.
fn is_error(reason: &CloseReason) -> bool {
    match reason {
        CloseReason::Local { code } => *code != 0 && *code != H3_NO_ERROR,
        CloseReason::PeerApplication { code, .. } => *code != 0 && *code != H3_NO_ERROR,
        CloseReason::PeerTransport { code, .. } => *code != Code::NO_ERROR,
        CloseReason::IdleTimeout => false,
        _ => true,
    }
}

/// RFC 9114 §8.1.
const H3_NO_ERROR: u64 = 0x100;

fn closing(reason: &CloseReason, side: Side) -> ConnectionClosed<'_> {
    let (local, remote) = (Some(Initiator::Local), Some(Initiator::Remote));
    let plain = |initiator, trigger, reason| ConnectionClosed {
        initiator,
        connection_error: None,
        application_error: None,
        reason,
        trigger,
    };
    match reason {
        CloseReason::Local { code } => {
            ConnectionClosed { application_error: Some(*code), ..plain(local, "application", "") }
        }
        CloseReason::PeerApplication { code, reason } => {
            ConnectionClosed { application_error: Some(*code), ..plain(remote, "application", reason) }
        }
        CloseReason::PeerTransport { code, reason } => {
            ConnectionClosed { connection_error: Some(*code), ..plain(remote, "error", reason) }
        }
        CloseReason::Violation(TransportError { code, reason, .. }) => {
            ConnectionClosed { connection_error: Some(*code), ..plain(local, "error", reason) }
        }
        CloseReason::Tls { alert, reason } => {
            ConnectionClosed { connection_error: Some(Code::crypto(*alert)), ..plain(local, "error", reason) }
        }
        CloseReason::IdleTimeout => plain(None, "idle_timeout", ""),
        CloseReason::PathLost => plain(None, "aborted", "no path reaches the peer"),
        CloseReason::HandshakeTimeout => plain(None, "aborted", "the handshake took too long"),
        CloseReason::StatelessReset => plain(remote, "stateless_reset", ""),
        CloseReason::VersionNegotiation if side.is_client() => plain(local, "version_mismatch", ""),
        CloseReason::VersionNegotiation => plain(None, "version_mismatch", ""),
    }
}
