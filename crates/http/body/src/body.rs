//! Content that is read chunk by chunk.

use crate::error::{BodyError, BoxError};
use crate::queue::{self, Consumer, Producer};
use crate::sender::BodySender;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Any body, with its error.
type Boxed = Pin<Box<dyn http_body::Body<Data = Bytes, Error = BodyError> + Send>>;

/// Content that is read chunk by chunk. Dropped before its end, the rest is not wanted: a client is asked to stop after a
/// bounded number of bytes, a [`BodySender`] hears [`crate::Closed`].
pub struct Body {
    source: Source,
    /// Read by [`Body::chunk`], for [`Body::trailers`]. Boxed, because bodies are moved and few have any.
    trailers: Option<Box<HeaderMap>>,
}

enum Source {
    /// In memory; empty: nothing (more).
    Full(Bytes),
    Queue(Consumer),
    Boxed(Boxed),
}

impl Body {
    /// No content, without an allocation.
    pub const fn empty() -> Body {
        Body { source: Source::Full(Bytes::new()), trailers: None }
    }

    /// A body whose content a sender provides. The sender waits while `capacity` bytes or more are not read.
    pub fn channel(capacity: usize) -> (BodySender, Body) {
        let (producer, body) = Body::queue(capacity);
        (BodySender { producer }, body)
    }

    /// A body whose content is pushed without waiting, as a connection does that receives it. For tercel's own crates.
    #[doc(hidden)]
    pub fn queue(capacity: usize) -> (Producer, Body) {
        let (producer, consumer) = queue::queue(capacity);
        (producer, Body { source: Source::Queue(consumer), trailers: None })
    }

    /// Any other body, boxed.
    pub fn new<B>(body: B) -> Body
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Body { source: Source::Boxed(Box::pin(Mapped(Box::pin(body)))), trailers: None }
    }

    /// The same content once more, if it is in memory and nothing was read; without a copy.
    pub fn try_clone(&self) -> Option<Body> {
        match &self.source {
            Source::Full(bytes) if self.trailers.is_none() => Some(Body::from(bytes.clone())),
            _ if http_body::Body::is_end_stream(self) => Some(Body::empty()),
            _ => None,
        }
    }

    /// The next chunk, never an empty one; `None` at the end.
    ///
    /// # Errors
    /// The content is not complete. What follows an error is not defined.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BodyError> {
        loop {
            let frame = poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut *self), cx)).await;
            match frame.transpose()?.map(Frame::into_data) {
                Some(Ok(bytes)) if bytes.is_empty() => {}
                Some(Ok(bytes)) => return Ok(Some(bytes)),
                Some(Err(frame)) => {
                    self.trailers = frame.into_trailers().ok().map(Box::new).or(self.trailers.take());
                }
                None => return Ok(None),
            }
        }
    }

    /// The fields that follow the content, once. Content that was not read is thrown away.
    ///
    /// # Errors
    /// As [`Body::chunk`].
    pub async fn trailers(&mut self) -> Result<Option<HeaderMap>, BodyError> {
        while self.chunk().await?.is_some() {}
        Ok(self.trailers.take().map(|trailers| *trailers))
    }

    /// All of the content in one piece.
    ///
    /// # Errors
    /// [`BodyError::TooLarge`] when there are more than `limit` bytes; else as [`Body::chunk`].
    pub async fn collect(mut self, limit: usize) -> Result<Bytes, BodyError> {
        let mut first = Bytes::new();
        let mut all = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            if first.len().saturating_add(all.len()).saturating_add(chunk.len()) > limit {
                return Err(BodyError::TooLarge);
            }
            if first.is_empty() && all.is_empty() {
                first = chunk;
                continue;
            }
            // Content in one chunk is not copied.
            all.extend_from_slice(&std::mem::take(&mut first));
            all.extend_from_slice(&chunk);
        }
        Ok(if first.is_empty() { all.freeze() } else { first })
    }
}

impl Default for Body {
    fn default() -> Body {
        Body::empty()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Body").finish_non_exhaustive()
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        Body { source: Source::Full(bytes), trailers: None }
    }
}

impl From<String> for Body {
    fn from(text: String) -> Body {
        Body::from(Bytes::from(text))
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body::from(Bytes::from(bytes))
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Body {
        Body::from(Bytes::from_static(text.as_bytes()))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.source {
            Source::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Source::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Source::Queue(consumer) => consumer.poll_frame(cx),
            Source::Boxed(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Full(bytes) => bytes.is_empty(),
            Source::Queue(consumer) => consumer.is_end(),
            Source::Boxed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Source::Queue(consumer) => {
                let (least, most) = consumer.size();
                let mut hint = SizeHint::new();
                hint.set_lower(least);
                most.into_iter().for_each(|most| hint.set_upper(most));
                hint
            }
            Source::Boxed(body) => body.size_hint(),
        }
    }
}

/// An error of this crate as it is, any other as a source.
fn of_any(error: BoxError) -> BodyError {
    error.downcast::<BodyError>().map_or_else(BodyError::Source, |error| *error)
}

/// Another body, whose errors become sources.
struct Mapped<B>(Pin<Box<B>>);

impl<B> http_body::Body for Mapped<B>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = ready!(self.0.as_mut().poll_frame(cx));
        Poll::Ready(frame.map(|frame| frame.map_err(|error| of_any(error.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
