//! Path validation: challenges that only someone at the path's far end can answer. Source: RFC 9000 §8.2.
//!
//! A round sends a challenge, again after a probe timeout, again after twice that, and so on, each with fresh bytes, until an
//! answer or the deadline. The bytes of the latest [`REMEMBERED`] challenges are kept: an answer to any of them will do. A
//! challenge in a datagram that the amplification limit kept small proves the address only; then a second round follows,
//! with full datagrams (RFC 9000 §8.2.1).

use base::time::{Duration, Instant};

/// Challenges that an answer may still be for.
const REMEMBERED: usize = 4;

/// The bytes of a challenge.
pub(super) type Data = [u8; 8];

/// How long a round takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValidationTimeouts {
    /// From the first challenge to the second.
    pub(super) interval: Duration,
    /// From the start to failure.
    pub(super) timeout: Duration,
}

/// Whether a datagram had the size that every QUIC path must carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DatagramSize {
    /// At least 1,200 bytes.
    Full,
    /// Less.
    Small,
}

/// What an answer proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChallengeResult {
    /// Nothing: it answers no challenge of this path.
    None,
    /// The peer is at the address; whether the path carries full datagrams remains to be seen.
    Address,
    /// The path is valid.
    Path,
}

#[derive(Clone, Copy, Debug)]
struct Challenge {
    data: Data,
    extent: DatagramSize,
}

/// A round of challenges.
#[derive(Debug)]
struct Round {
    challenges: [Option<Challenge>; REMEMBERED],
    sent: u32,
    sent_at: Option<Instant>,
    next_at: Instant,
    deadline: Instant,
    timeouts: ValidationTimeouts,
}

impl Round {
    fn new(now: Instant, timeouts: ValidationTimeouts) -> Round {
        let deadline = now + timeouts.timeout;
        Round { challenges: [None; REMEMBERED], sent: 0, sent_at: None, next_at: now, deadline, timeouts }
    }
}

/// The validation of one path; at rest, or a round under way. Boxed, because most paths are at rest.
#[derive(Debug, Default)]
pub(super) struct Validation(Option<Box<Round>>);

impl Validation {
    /// Starts a round unless one is under way.
    pub(super) fn start(&mut self, now: Instant, timeouts: ValidationTimeouts) {
        self.0.get_or_insert_with(|| Box::new(Round::new(now, timeouts)));
    }

    pub(super) fn cancel(&mut self) {
        self.0 = None;
    }

    #[inline]
    pub(super) fn is_running(&self) -> bool {
        self.0.is_some()
    }

    /// Whether a challenge should leave now.
    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        // Never twice at one instant, also where time has come to its end and `next_at` cannot lie after it: a loop that sends
        // for as long as something is due must come to an end too.
        self.0.as_ref().is_some_and(|round| now >= round.next_at && round.sent_at != Some(now))
    }

    /// When a challenge should leave.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.0.as_ref().map(|round| round.next_at)
    }

    /// When the round has failed.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.as_ref().map(|round| round.deadline)
    }

    /// A challenge with these bytes leaves now.
    pub(super) fn on_sent(&mut self, now: Instant, data: Data, extent: DatagramSize) {
        let Some(round) = &mut self.0 else { return };
        let place = round.sent as usize % REMEMBERED;
        if let Some(place) = round.challenges.get_mut(place) {
            *place = Some(Challenge { data, extent });
        }
        // RFC 9000 §9.4: not more often than a probe timeout, and at growing intervals.
        //= rfc9000/9.4#3
        round.next_at = now + round.timeouts.interval.saturating_shl(round.sent);
        round.sent_at = Some(now);
        round.sent = round.sent.saturating_add(1);
    }

    /// A PATH_RESPONSE arrived, on whichever path.
    pub(super) fn on_response(&mut self, now: Instant, data: Data) -> ChallengeResult {
        let Some(round) = &mut self.0 else { return ChallengeResult::None };
        //= rfc9000/8.2.3#1
        let answered = round.challenges.iter().flatten().find(|challenge| challenge.data == data);
        match answered.map(|challenge| challenge.extent) {
            None => ChallengeResult::None,
            Some(DatagramSize::Full) => {
                self.0 = None;
                ChallengeResult::Path
            }
            //= rfc9000/8.2.1#3
            Some(DatagramSize::Small) => {
                **round = Round::new(now, round.timeouts);
                ChallengeResult::Address
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000 §9.4, §8.2.1: a path that loses the first challenge is not flooded with more.
    #[test]
    fn challenges_become_rarer_and_none_follows_within_a_probe_timeout() {
        let ms = Duration::from_millis;
        let mut validation = Validation::default();
        validation.start(Instant::ZERO, ValidationTimeouts { interval: ms(100), timeout: ms(10_000) });
        let mut sent = Vec::new();
        for at in 0..5_000 {
            let now = Instant::ZERO + ms(at);
            while validation.is_due(now) {
                validation.on_sent(now, [at as u8; 8], DatagramSize::Full);
                sent.push(at);
            }
        }
        assert_eq!(sent, [0, 100, 300, 700, 1_500, 3_100]);
    }
}
