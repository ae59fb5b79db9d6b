//! PIE: a queue that drops datagrams as they come, by a probability that follows how long they wait and whether they wait longer
//! than before.
//!
//! The probability is computed anew at fixed times. Nothing happens at such a time of itself: the datagram that comes next makes up for
//! those since the last, which is possible since the line's state between two datagrams is known.
//!
//! The basic rule (RFC 8033 §4, appendix A), with what §5 offers beyond it left out: dropping evenly instead of by chance, and a cap on how
//! fast the probability grows. The RFC's own text was not at hand. Each rule and number agrees with two implementations that cite its sections
//! (the Linux kernel's `sch_pie`, ns-3's `PieQueueDisc`) but for the least queue, two full datagrams as in Linux, where the RFC has two of
//! mean size, and for the decay, 0.98 as in ns-3 (Linux: 63/64).

use base::rng::Rng;
use base::time::{Duration, Instant};

/// So little may wait always, in bytes: two datagrams. Source: RFC 8033 §4.1.
const LEAST: u64 = 2 * 1_500;
/// While it is less than this, a short queue loses nothing. Source: RFC 8033 §4.1.
const STRONG: f64 = 0.2;
/// How far the probability follows the wait, and its growth, a second of them. Source: RFC 8033 §4.2.
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// Below such probabilities it follows by such parts only. Source: RFC 8033 §4.2.
const CAREFUL: [(f64, f64); 6] =
    [(0.000_001, 2_048.0), (0.000_01, 512.0), (0.000_1, 128.0), (0.001, 32.0), (0.01, 8.0), (0.1, 2.0)];
/// What is left of it after each time without a queue. Source: RFC 8033 §4.2.
const DECAY: f64 = 0.98;
/// Chance is drawn in millionths.
const MILLION: f64 = 1_000_000.0;

/// What the queue heeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pie {
    /// How long datagrams are to wait.
    pub target: Duration,
    /// How often the probability is computed.
    pub period: Duration,
    /// For how long an empty queue may grow without drops.
    pub burst: Duration,
}

impl Pie {
    /// For paths of the Internet. Source: RFC 8033 §4.2, §4.4.
    pub const INTERNET: Pie = Pie {
        target: Duration::from_millis(15),
        period: Duration::from_millis(15),
        burst: Duration::from_millis(150),
    };
}

/// What the queue remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PieState {
    probability: f64,
    /// When it was computed, and what datagrams waited then.
    computed_at: Option<Instant>,
    wait: Duration,
    /// What is left of the time in which nothing is dropped.
    allowance: Duration,
}

impl PieState {
    /// Whether the datagram is dropped that comes at `now` to a line that is free at `free_at` and beside which so many bytes wait.
    /// Source: RFC 8033 §4.1.
    pub(crate) fn drops(
        &mut self,
        options: Pie,
        now: Instant,
        (free_at, waiting): (Instant, u64),
        rng: &mut Rng,
    ) -> bool {
        self.catch_up(options, now, free_at);
        let is_short = self.wait * 2 < options.target && self.probability < STRONG;
        if !self.allowance.is_zero() || is_short || waiting <= LEAST {
            return false;
        }
        rng.below(MILLION as u64) < (self.probability * MILLION) as u64
    }

    /// The share of datagrams that is dropped.
    pub(crate) const fn probability(&self) -> f64 {
        self.probability
    }

    /// The computations that fell due since the last datagram.
    fn catch_up(&mut self, options: Pie, now: Instant, free_at: Instant) {
        let Some(mut at) = self.computed_at else {
            (self.computed_at, self.allowance) = (Some(now), options.burst);
            return;
        };
        while now.saturating_since(at) >= options.period {
            at = at + options.period;
            self.compute(options, free_at.saturating_since(at));
        }
        self.computed_at = Some(at);
    }

    /// Source: RFC 8033 §4.2, §4.4.
    fn compute(&mut self, options: Pie, wait: Duration) {
        let excess = wait.as_secs_f64() - options.target.as_secs_f64();
        let growth = wait.as_secs_f64() - self.wait.as_secs_f64();
        let part = CAREFUL.iter().find(|(below, _)| self.probability < *below).map_or(1.0, |(_, part)| *part);
        self.probability += (ALPHA * excess + BETA * growth) / part;
        if wait.is_zero() && self.wait.is_zero() {
            self.probability *= DECAY;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.allowance = self.allowance.saturating_sub(options.period);
        let is_idle = wait * 2 < options.target && self.wait * 2 < options.target;
        if self.probability == 0.0 && is_idle {
            self.allowance = options.burst;
        }
        self.wait = wait;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue in which datagrams, one each millisecond, wait for so long each: how many of so many are dropped.
    fn drops(state: &mut PieState, span: core::ops::Range<u64>, wait_ms: u64) -> usize {
        let mut rng = Rng::from_u64(1);
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let drops = |ms: &u64| state.drops(Pie::INTERNET, at(*ms), (at(ms + wait_ms), 100_000), &mut rng);
        span.filter(drops).count()
    }

    /// RFC 8033 §4.2 and §4.4 by hand: 150 ms without drops, and then at 20 ms of wait the probability grows by 0.125 × 5 ms a
    /// period, by the parts that its size allows.
    #[test]
    fn the_probability_grows_while_datagrams_wait_longer_than_the_target() {
        let mut state = PieState::default();
        assert_eq!(drops(&mut state, 1_000..1_151, 20), 0, "a burst");
        let first = 0.125 * 0.005 / 2_048.0 + 1.25 * 0.020 / 2_048.0;
        let tenth = state.probability;
        assert!(tenth > first && tenth < 0.001, "{tenth}");
        drops(&mut state, 1_151..20_000, 20);
        assert!(state.probability > 0.05, "{}", state.probability);
        let share = drops(&mut state, 20_000..21_000, 20) as f64 / 1e3;
        assert!((share - state.probability).abs() < 0.05, "{share} at {}", state.probability);
    }

    /// Source: RFC 8033 §4.1: a queue of less than half of the target loses nothing, and what it had learned fades.
    #[test]
    fn a_queue_that_has_become_short_loses_nothing() {
        let mut state = PieState::default();
        drops(&mut state, 1_000..10_000, 30);
        let learned = state.probability;
        assert!(learned > 0.0);
        state.probability = 0.1;
        assert_eq!(drops(&mut state, 10_015..10_500, 5), 0);
        assert!(state.probability < 0.1);
        drops(&mut state, 10_500..60_000, 0);
        assert_eq!((state.probability, state.allowance), (0.0, Pie::INTERNET.burst), "as at the beginning");
    }
}
