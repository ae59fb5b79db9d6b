//! Recovery: the round-trip time, congestion, timers, ECN. Source: draft-ietf-quic-qlog-quic-events §7.

use crate::{Event, Object};
use base::time::Duration;

/// What recovery begins with.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryParametersSet {
    /// The round-trip time assumed before the first sample.
    pub initial_rtt: Duration,
    /// In bytes.
    pub max_datagram_size: u16,
    /// In bytes.
    pub initial_congestion_window: u64,
}

impl Event for RecoveryParametersSet {
    const NAME: &'static str = "quic:recovery_parameters_set";

    fn write(&self, data: &mut Object<'_>) {
        // RFC 9002 §6.1.2: kGranularity.
        data.number("timer_granularity", 1)
            .milliseconds("initial_rtt", self.initial_rtt)
            .number("max_datagram_size", u64::from(self.max_datagram_size))
            .number("initial_congestion_window", self.initial_congestion_window);
    }
}

/// What recovery knows of the path in use. As an event, the members that differ from an earlier state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryMetrics {
    /// min_rtt; zero before the first sample.
    pub min_rtt: Duration,
    /// smoothed_rtt.
    pub smoothed_rtt: Duration,
    /// latest_rtt; zero before the first sample.
    pub latest_rtt: Duration,
    /// rttvar.
    pub rtt_variance: Duration,
    /// Probe timeouts in a row.
    pub pto_count: u32,
    /// In bytes.
    pub congestion_window: u64,
    /// In bytes, over all spaces.
    pub bytes_in_flight: u64,
    /// In bytes.
    pub ssthresh: Option<u64>,
    /// In bits per second; `None` where there is no limit.
    pub pacing_rate: Option<u64>,
}

/// What differs between two states.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetricsUpdated<'a>(pub(crate) &'a RecoveryMetrics, pub(crate) &'a RecoveryMetrics);

impl Event for MetricsUpdated<'_> {
    const NAME: &'static str = "quic:recovery_metrics_updated";

    fn write(&self, data: &mut Object<'_>) {
        let MetricsUpdated(old, new) = self;
        let spans = [
            ("min_rtt", old.min_rtt, new.min_rtt),
            ("smoothed_rtt", old.smoothed_rtt, new.smoothed_rtt),
            ("latest_rtt", old.latest_rtt, new.latest_rtt),
            ("rtt_variance", old.rtt_variance, new.rtt_variance),
        ];
        for (name, _, new) in spans.into_iter().filter(|(_, old, new)| old != new) {
            data.milliseconds(name, new);
        }
        let counts = [
            ("pto_count", Some(u64::from(old.pto_count)), Some(u64::from(new.pto_count))),
            ("congestion_window", Some(old.congestion_window), Some(new.congestion_window)),
            ("bytes_in_flight", Some(old.bytes_in_flight), Some(new.bytes_in_flight)),
            ("ssthresh", old.ssthresh, new.ssthresh),
            ("pacing_rate", old.pacing_rate, new.pacing_rate),
        ];
        for (name, _, new) in counts.into_iter().filter(|(_, old, new)| old != new) {
            data.number_if(name, new);
        }
    }
}

/// The congestion controller is in another state.
#[derive(Clone, Copy, Debug)]
pub struct CongestionStateUpdated {
    /// Before.
    pub old: Option<&'static str>,
    /// Now: `slow_start`, `congestion_avoidance` or `recovery`; or the controller that a flow has chosen, `cubic` or `bbr`.
    pub new: &'static str,
    /// What the choice is based on.
    pub trigger: Option<&'static str>,
}

impl Event for CongestionStateUpdated {
    const NAME: &'static str = "quic:congestion_state_updated";

    fn write(&self, data: &mut Object<'_>) {
        if let Some(old) = self.old {
            data.text("old", old);
        }
        data.text("new", self.new);
        if let Some(trigger) = self.trigger {
            data.text("trigger", trigger);
        }
    }
}

/// What became of the loss detection timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerEvent {
    /// It passes after this span.
    Set(Duration),
    /// It has passed.
    Expired,
    /// It does not run any more.
    Cancelled,
}

/// The loss detection timer changed.
#[derive(Clone, Copy, Debug)]
pub struct TimerUpdated {
    /// `pto` or `loss_timeout`.
    pub timer: &'static str,
    /// What became of it.
    pub event: TimerEvent,
}

impl Event for TimerUpdated {
    const NAME: &'static str = "quic:timer_updated";

    fn write(&self, data: &mut Object<'_>) {
        data.text("timer_type", self.timer);
        match self.event {
            TimerEvent::Set(delta) => data.text("event_type", "set").milliseconds("delta", delta),
            TimerEvent::Expired => data.text("event_type", "expired"),
            TimerEvent::Cancelled => data.text("event_type", "cancelled"),
        };
    }
}

/// Where the validation of ECN stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnState {
    /// Marking, to find out.
    Testing,
    /// Waiting for reports.
    Unknown,
    /// The path carries marks.
    Capable,
    /// It does not, or nothing is marked.
    Failed,
}

impl EcnState {
    fn name(self) -> &'static str {
        match self {
            EcnState::Testing => "testing",
            EcnState::Unknown => "unknown",
            EcnState::Capable => "capable",
            EcnState::Failed => "failed",
        }
    }
}

/// The validation of ECN came to something.
#[derive(Clone, Copy, Debug)]
pub struct EcnStateUpdated {
    /// Before.
    pub old: Option<EcnState>,
    /// Now.
    pub new: EcnState,
}

impl Event for EcnStateUpdated {
    const NAME: &'static str = "quic:ecn_state_updated";

    fn write(&self, data: &mut Object<'_>) {
        if let Some(old) = self.old {
            data.text("old", old.name());
        }
        data.text("new", self.new.name());
    }
}
