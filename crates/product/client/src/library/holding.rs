//! Content that holds something until it has ended.

use ::body::{Body, BodyError};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Drops what it holds at the end of the content, with its error, or when it is dropped itself.
pub(crate) struct Holding<T> {
    content: Body,
    held: Option<T>,
}

impl<T: Send + Unpin + 'static> Holding<T> {
    /// The same content, which holds `held`.
    pub(crate) fn wrap(content: Body, held: T) -> Body {
        Body::new(Holding { content, held: Some(held) })
    }
}

impl<T: Unpin> http_body::Body for Holding<T> {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = Pin::new(&mut self.content).poll_frame(cx);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.held = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }
}
