//! A token bucket: this many events a second, this many at once.

use crate::time::{Duration, Instant};

/// Grants at most `rate_per_second` tokens a second on average and `burst` at once.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate_per_second: u64,
    burst: u64,
    tokens: u64,
    /// Up to when the tokens have been counted.
    counted: Instant,
}

impl TokenBucket {
    /// A full bucket. A rate of zero never refills.
    pub fn new(rate_per_second: u64, burst: u64, now: Instant) -> TokenBucket {
        TokenBucket { rate_per_second, burst, tokens: burst, counted: now }
    }

    /// Takes one token; `false` when there is none.
    pub fn take(&mut self, now: Instant) -> bool {
        self.take_many(1, now)
    }

    /// Takes `count` tokens; `false`, and none is left, when there are fewer.
    pub fn take_many(&mut self, count: u64, now: Instant) -> bool {
        self.refill(now);
        let granted = self.tokens >= count;
        self.tokens = self.tokens.saturating_sub(count);
        granted
    }

    /// Puts `count` tokens back, as far as there is room.
    pub fn put(&mut self, count: u64) {
        self.tokens = self.tokens.saturating_add(count).min(self.burst);
    }

    fn refill(&mut self, now: Instant) {
        if self.rate_per_second == 0 {
            return;
        }
        let elapsed = now.saturating_since(self.counted).as_nanos();
        let earned = u128::from(elapsed) * u128::from(self.rate_per_second) / 1_000_000_000;
        if earned == 0 {
            return;
        }
        let earned = u64::try_from(earned).unwrap_or(u64::MAX);
        self.tokens = self.tokens.saturating_add(earned).min(self.burst);
        // Keep the remainder: count up to the moment that the last whole token was earned.
        let nanos = u128::from(earned) * 1_000_000_000 / u128::from(self.rate_per_second);
        self.counted = self.counted + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_then_rate() {
        let start = Instant::from_nanos(1_000);
        let mut bucket = TokenBucket::new(10, 3, start);
        assert!((0..3).all(|_| bucket.take(start)));
        assert!(!bucket.take(start));
        let mut granted = 0;
        for ms in 0..1_000 {
            granted += u32::from(bucket.take(start + Duration::from_millis(ms)));
        }
        assert!((9..=10).contains(&granted), "granted {granted} in a second at 10/s");
    }

    #[test]
    fn what_is_put_back_can_be_taken_again_and_never_passes_the_burst() {
        let mut bucket = TokenBucket::new(0, 3, Instant::ZERO);
        assert!(bucket.take_many(3, Instant::ZERO) && !bucket.take(Instant::ZERO));
        bucket.put(2);
        assert!(bucket.take_many(2, Instant::ZERO) && !bucket.take(Instant::ZERO));
        bucket.put(u64::MAX);
        assert!(bucket.take_many(3, Instant::ZERO) && !bucket.take(Instant::ZERO));
    }

    #[test]
    fn a_clock_that_jumps_grants_no_more_than_the_burst() {
        let mut bucket = TokenBucket::new(1_000, 5, Instant::ZERO);
        let granted = (0..100).filter(|_| bucket.take(Instant::FAR_FUTURE)).count();
        assert_eq!(granted, 5);
        assert!(!bucket.take(Instant::ZERO), "going back in time earns nothing");
    }
}
