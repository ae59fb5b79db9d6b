//! Content of requests and responses that streams: one type for all versions of HTTP.
//!
//! [`Body`] is an [`http_body::Body`] whose data is [`bytes::Bytes`]; it is `Send`. [`Body::channel`] gives a body whose content a
//! [`BodySender`] provides, with backpressure: at most a given number of bytes waits between the two. A connection provides
//! the content of a request through the same queue, by [`queue::Producer`].
//!
//! Data structure: one queue of chunks behind a lock, with a waker for each end. The lock is held for a push or a pop, and the
//! two ends are mostly on one thread, so it is uncontended. Chunks are handed over, not copied.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::indexing_slicing))]

mod body;
mod error;
pub mod queue;
mod sender;
#[cfg(test)]
mod tests;

pub use body::Body;
pub use error::{BodyError, BoxError, Closed};
pub use sender::BodySender;
