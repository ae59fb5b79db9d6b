//! A budget for what costs us work and the peer next to nothing: unknown and empty frames, streams of unknown type,
//! instructions without effect, requests withdrawn before they were answered.
//!
//! None of it is wrong, so none of it can be refused; only its frequency can. Each kind has a bucket that fills with time.
//! Time is that of the last turn: the buckets need no clock while packets are being received.

use crate::error::{Code, ConnectionError};
use base::time::Instant;
use base::token_bucket::TokenBucket;

/// So many at once, and so many a second after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// At once.
    pub burst: u64,
    /// In the long run, each second.
    pub per_second: u64,
}

/// What is left of one connection's budgets.
#[derive(Debug)]
pub(crate) struct Glitches {
    idle_work: TokenBucket,
    withdrawn: TokenBucket,
    now: Instant,
}

impl Glitches {
    pub(crate) fn new(idle_work: Rate, withdrawn: Rate, now: Instant) -> Glitches {
        Glitches {
            idle_work: TokenBucket::new(idle_work.per_second, idle_work.burst, now),
            withdrawn: TokenBucket::new(withdrawn.per_second, withdrawn.burst, now),
            now,
        }
    }

    pub(crate) fn on_turn(&mut self, now: Instant) {
        self.now = now;
    }

    /// Something without effect was received, `count` times.
    #[inline]
    pub(crate) fn on_idle_work(&mut self, count: usize) -> Result<(), ConnectionError> {
        //= rfc9114/10.5#1
        if count == 0 || self.idle_work.take_many(count as u64, self.now) {
            return Ok(());
        }
        Err(ConnectionError {
            code: Code::EXCESSIVE_LOAD,
            reason: "too many frames or streams without effect",
        })
    }

    /// A request was withdrawn before its response was complete.
    pub(crate) fn on_withdrawn(&mut self) -> Result<(), ConnectionError> {
        if self.withdrawn.take_many(1, self.now) {
            return Ok(());
        }
        Err(ConnectionError { code: Code::EXCESSIVE_LOAD, reason: "too many requests withdrawn" })
    }
}
