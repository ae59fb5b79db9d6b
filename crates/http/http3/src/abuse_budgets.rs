//! A budget for what costs us work and the peer next to nothing: unknown and empty frames, streams of unknown type,
//! instructions without effect, requests withdrawn before they were answered.
//!
//! None of it is wrong, so none of it can be refused; only its frequency can. Each kind has a bucket that fills with time,
//! and with what explains it: work that follows from the number of requests is no flood, however many they are. h2o sends a
//! Stream Cancellation for each request, others a PRIORITY_UPDATE, an unknown frame or an empty DATA frame. Time is that of
//! the last turn: the buckets need no clock while packets are being received.
//!
//! | budget | at once | a second | what explains more |
//! |---|---|---|---|
//! | `idle_work` | 10,000 | 330 | each exchange that begins: [`EXPLAINED`] |
//! | `withdrawn` | 1,000 | 200 | each response that was sent whole: one |
//! | priorities of streams to come (receive.rs) | 100 | - | the requests that they are about; more are not kept, which is no error |
//! | priorities in a turn (receive.rs) | 4,096 | - | none: more are ignored, which is no error |
//! | unfinished field sections (message.rs) | 256 KiB, or four of the largest | - | none: the request that passes it is rejected and can be sent again |
//! | streams without a type (unidirectional.rs) | 128 | - | the transport's limit on streams, which is lower |
//!
//! An explanation is capped at the burst, so that nothing is saved up. Rejected: not counting what explains itself, since
//! "a cancellation for a request" and "a cancellation" look alike.

use crate::error::{Code, ConnectionError};
use base::time::Instant;
use base::token_bucket::TokenBucket;

/// This many at once, and this many a second after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// At once.
    pub burst: u64,
    /// In the long run, each second.
    pub per_second: u64,
}

/// This many things without effect one exchange explains: in each direction a cancellation, a change of priority, an interim
/// response, an unknown or empty frame.
const EXPLAINED: u64 = 8;

/// What is left of one connection's budgets.
#[derive(Debug)]
pub(crate) struct AbuseBudgets {
    idle_work: TokenBucket,
    withdrawn: TokenBucket,
    now: Instant,
}

impl AbuseBudgets {
    pub(crate) fn new(idle_work: Rate, withdrawn: Rate, now: Instant) -> AbuseBudgets {
        AbuseBudgets {
            idle_work: TokenBucket::new(idle_work.per_second, idle_work.burst, now),
            withdrawn: TokenBucket::new(withdrawn.per_second, withdrawn.burst, now),
            now,
        }
    }

    pub(crate) fn on_turn(&mut self, now: Instant) {
        self.now = now;
    }

    /// A request begins.
    #[inline]
    pub(crate) fn on_exchange(&mut self) {
        self.idle_work.put(EXPLAINED);
    }

    /// A response was sent whole.
    #[inline]
    pub(crate) fn on_answered(&mut self) {
        self.withdrawn.put(1);
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
