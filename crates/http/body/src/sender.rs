//! The end of a channel that provides a body's content.

use crate::error::{BodyError, BoxError, Closed};
use crate::queue::Producer;
use bytes::Bytes;
use http::HeaderMap;
use std::future::poll_fn;
use std::task::{Context, Poll};

/// Provides the content of a [`crate::Body`]. Dropped before [`BodySender::finish`], the content fails: a response's stream is
/// reset.
#[derive(Debug)]
pub struct BodySender {
    pub(crate) producer: Producer,
}

impl BodySender {
    /// Waits until there is room and hands the bytes over. At most the capacity and one chunk wait to be read.
    ///
    /// # Errors
    /// The body was dropped: its content is not wanted any more.
    pub async fn send(&mut self, bytes: Bytes) -> Result<(), Closed> {
        poll_fn(|cx| self.poll_ready(cx)).await?;
        self.producer.push(bytes);
        Ok(())
    }

    /// Whether [`BodySender::send`] would hand over bytes at once; else the task is woken when it would.
    ///
    /// # Errors
    /// The body was dropped.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.producer.poll_room(cx)
    }

    /// Ends the content, with the fields that follow it.
    pub fn finish(mut self, trailers: Option<HeaderMap>) {
        self.producer.end(trailers);
    }

    /// Gives the content up. What was sent is read before that.
    pub fn abort(mut self, why: impl Into<BoxError>) {
        self.producer.abort(BodyError::Source(why.into()));
    }
}
