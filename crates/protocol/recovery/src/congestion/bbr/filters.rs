//! Windowed maxima, and the minimal round trip with the time at which it must be measured again.
//!
//! Windows are short (two cycles, ten rounds), so a slot for each step of the window is smaller than any cleverness.

use base::time::{Duration, Instant};

/// Cycles over which the bandwidth is remembered: this one and the last. Source: the draft, §2.11 (MaxBwFilterLen).
const BANDWIDTH_CYCLES: usize = 2;
/// Rounds over which aggregation is remembered. Source: the draft, §2.12 (ExtraAckedFilterLen).
const AGGREGATION_ROUNDS: u64 = 10;
/// How long the minimal round trip holds. Source: the draft, §2.16.1 (MinRTTFilterLen).
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// How often it is probed for at least. Source: the draft, §2.16.2 (ProbeRTTInterval).
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);

/// The largest bandwidth of this cycle and the last, in bytes a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct MaxBandwidth([u64; BANDWIDTH_CYCLES]);

impl MaxBandwidth {
    pub(super) const fn new() -> MaxBandwidth {
        MaxBandwidth([0; BANDWIDTH_CYCLES])
    }

    pub(super) fn value(&self) -> u64 {
        self.0[0].max(self.0[1])
    }

    pub(super) fn update(&mut self, rate: u64) {
        self.0[1] = self.0[1].max(rate);
    }

    /// A cycle is over. One that has measured nothing does not push out one that has.
    pub(super) fn advance(&mut self) {
        if self.0[1] > 0 {
            self.0 = [self.0[1], 0];
        }
    }
}

/// The largest volume of each of the last rounds, with the round.
#[derive(Clone, Copy, Debug)]
pub(super) struct MaxByRound([(u64, u64); AGGREGATION_ROUNDS as usize]);

impl MaxByRound {
    pub(super) const fn new() -> MaxByRound {
        MaxByRound([(0, 0); AGGREGATION_ROUNDS as usize])
    }

    /// Of the last ten rounds, or of this one alone while the pipe has never been full. Source: the draft, §5.5.9.
    pub(super) fn value(&self, round: u64, rounds: Rounds) -> u64 {
        let span = match rounds {
            Rounds::One => 1,
            Rounds::Ten => AGGREGATION_ROUNDS,
        };
        let recent = self.0.iter().filter(|(at, _)| round.saturating_sub(*at) < span);
        recent.map(|(_, value)| *value).max().unwrap_or(0)
    }

    pub(super) fn update(&mut self, round: u64, value: u64) {
        let slot = &mut self.0[(round % AGGREGATION_ROUNDS) as usize];
        let kept = if slot.0 == round { slot.1 } else { 0 };
        *slot = (round, kept.max(value));
    }
}

/// How far a maximum looks back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounds {
    One,
    Ten,
}

/// The minimal round trip of the last ten seconds, and that of the last five. Source: the draft, §5.3.4.3.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    min: Option<Duration>,
    min_at: Instant,
    recent: Option<Duration>,
    recent_at: Instant,
    is_expired: bool,
}

impl MinRtt {
    pub(super) const fn new() -> MinRtt {
        MinRtt { min: None, min_at: Instant::ZERO, recent: None, recent_at: Instant::ZERO, is_expired: false }
    }

    pub(super) const fn value(&self) -> Option<Duration> {
        self.min
    }

    /// Nothing as short as the minimum was measured for five seconds: ProbeRTT is due.
    pub(super) const fn is_expired(&self) -> bool {
        self.is_expired
    }

    pub(super) fn on_sample(&mut self, now: Instant, rtt: Duration) {
        let has_any = self.recent.is_some();
        self.is_expired = has_any && now > self.recent_at + PROBE_RTT_INTERVAL;
        if self.is_expired || self.recent.is_none_or(|recent| rtt < recent) {
            (self.recent, self.recent_at) = (Some(rtt), now);
        }
        let is_old = now > self.min_at + MIN_RTT_WINDOW;
        if is_old || self.min.is_none_or(|min| self.recent.is_some_and(|recent| recent < min)) {
            (self.min, self.min_at) = (self.recent, self.recent_at);
        }
    }

    /// ProbeRTT is over: the next one is due in five seconds.
    pub(super) fn on_probed(&mut self, now: Instant) {
        self.recent_at = now;
    }

    pub(super) fn step_back_to(&mut self, now: Instant) {
        self.min_at = self.min_at.min(now);
        self.recent_at = self.recent_at.min(now);
    }
}
