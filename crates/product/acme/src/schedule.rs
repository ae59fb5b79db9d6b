//! When a certificate is renewed, and when an attempt is repeated. Arithmetic only; times in seconds since 1970.

use std::time::Duration;

/// How fast attempts follow each other, and what may take how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// From the first failure to the next attempt. It doubles with each further failure.
    pub first: Duration,
    /// It becomes no longer.
    pub longest: Duration,
    /// One attempt takes no longer.
    pub attempt: Duration,
    /// From one look at what the authority is doing to the next.
    pub poll: Duration,
    /// After a certificate was issued, and after a start, the authority is asked when it wants it renewed; and then as often at least.
    pub ask: Duration,
}

impl Default for Pace {
    /// Five failures of a name in an hour is what Let's Encrypt permits: the fifth comes after half an hour.
    fn default() -> Pace {
        Pace {
            first: Duration::from_secs(120),
            longest: Duration::from_secs(6 * 3_600),
            attempt: Duration::from_secs(240),
            poll: Duration::from_secs(1),
            ask: Duration::from_secs(6 * 3_600),
        }
    }
}

/// When a certificate that is valid in this span is renewed: after two thirds of it, or up to a thirtieth of it earlier. `share` is a
/// random number below one.
pub(crate) fn renewal_s((begins, ends): (u64, u64), share: f64) -> u64 {
    let span = ends.saturating_sub(begins);
    let jitter = (span as f64 / 30.0 * share.clamp(0.0, 1.0)) as u64;
    begins.saturating_add(span / 3 * 2 + span % 3 * 2 / 3).saturating_sub(jitter)
}

/// The moment within a window that the authority wants. RFC 9773 §4.2: a random one.
pub(crate) fn within_s((start, end): (u64, u64), share: f64) -> u64 {
    let span = end.saturating_sub(start);
    start.saturating_add((span as f64 * share.clamp(0.0, 1.0)) as u64)
}

/// How long to wait after this many failures in a row; up to a quarter more, so that servers do not ask together.
pub(crate) fn pause(pace: &Pace, failures: u32, share: f64) -> Duration {
    let doubled = pace.first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1).min(20)));
    doubled.min(pace.longest).mul_f64(1.0 + 0.25 * share.clamp(0.0, 1.0))
}

/// A random number below one. Without randomness of the system there is no jitter.
pub(crate) fn share() -> f64 {
    f64::from(getrandom::u32().unwrap_or(0)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

    /// Deleted, all servers could renew in the same second, or too late.
    #[test]
    fn a_certificate_is_renewed_before_two_thirds_of_its_time_are_over() {
        assert_eq!(renewal_s((1_000, 1_000 + 90 * DAY), 0.0), 1_000 + 60 * DAY);
        assert_eq!(renewal_s((1_000, 1_000 + 90 * DAY), 1.0), 1_000 + 57 * DAY);
        assert_eq!(renewal_s((0, 10), 0.0), 6);
        assert_eq!(renewal_s((0, 9), 0.0), 6);
        // A certificate that ends before it begins, and the ends of what numbers can say.
        assert_eq!(renewal_s((10, 0), 0.5), 10);
        assert!(renewal_s((0, u64::MAX), 2.0) > 1);
        assert_eq!((within_s((5, 15), 0.0), within_s((5, 15), 0.5), within_s((5, 1), 1.0)), (5, 10, 5));
    }

    /// Deleted, an authority that is down could be asked without a pause, or never again.
    #[test]
    fn pauses_double_up_to_a_bound() {
        let pace = Pace::default();
        let minutes = |failures| pause(&pace, failures, 0.0).as_secs() / 60;
        assert_eq!([1, 2, 3, 4, 5].map(minutes), [2, 4, 8, 16, 32]);
        assert_eq!([9, 10, 1_000, u32::MAX].map(minutes), [360; 4]);
        assert_eq!(pause(&pace, 1, 1.0), Duration::from_secs(150));
        let shares: Vec<f64> = (0..100).map(|_| share()).collect();
        assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)) && shares[0] != shares[1]);
    }
}
