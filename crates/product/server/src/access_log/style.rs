//! Which requests are logged, and how.

use super::line::Format;

/// The share of requests that are logged: from 0, exclusive, to 1. Requests that are answered with a status from 400 on are logged in
/// any case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(f64);

impl Share {
    /// All requests.
    pub const ALL: Share = Share(1.0);

    /// `share` of them; `None` if it is not above 0 and at most 1.
    pub fn new(share: f64) -> Option<Share> {
        (share > 0.0 && share <= 1.0).then_some(Share(share))
    }
}

/// How requests are logged.
#[derive(Clone, Debug, PartialEq)]
pub struct Style {
    /// What a line looks like.
    pub format: Format,
    /// Which requests have one.
    pub share: Share,
}

impl Default for Style {
    fn default() -> Style {
        Style { format: Format::default(), share: Share::ALL }
    }
}

/// Chooses requests, evenly: of ten, a tenth is one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sampler {
    /// The part of a line that is due.
    due: f64,
}

impl Sampler {
    /// Whether a request with this status is logged.
    pub(super) fn takes(&mut self, share: Share, status: u16) -> bool {
        if share == Share::ALL || status >= 400 {
            return true;
        }
        self.due += share.0;
        let is_due = self.due >= 1.0;
        if is_due {
            self.due -= 1.0;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a log that is thinned could lose what its operator looks for.
    #[test]
    fn a_share_of_the_requests_is_taken_and_every_error() {
        let (mut sampler, share) = (Sampler::default(), Share::new(0.1).unwrap());
        let taken =
            |sampler: &mut Sampler, status| (0..1_000).filter(|_| sampler.takes(share, status)).count();
        assert!((99..=101).contains(&taken(&mut sampler, 200)));
        assert_eq!((taken(&mut sampler, 404), taken(&mut sampler, 500)), (1_000, 1_000));
        assert!((0..10).all(|_| sampler.takes(Share::ALL, 200)));
        assert_eq!([0.0, -1.0, 1.1, f64::NAN].map(Share::new), [None; 4]);
    }
}
