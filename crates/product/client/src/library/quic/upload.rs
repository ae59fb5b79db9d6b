//! The content of a request on its way to the transport.

use crate::app::Content;
use crate::library::error::{Error, Kind};
use ::body::Body;
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, request};
use http_body::{Body as _, Frame};
use http3::BodyLength;
use std::pin::Pin;
use std::task::{Context, Poll};

/// How much content a request has, by its field or else by what the content says of itself.
pub(super) fn length(head: &request::Parts, content: &Body) -> BodyLength {
    let field = head.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    match field.or_else(|| content.size_hint().exact()) {
        _ if content.is_end_stream() => BodyLength::Empty,
        Some(length) => BodyLength::Known(length),
        None => BodyLength::Unknown,
    }
}

/// The content, and what the stream had no room for yet.
pub(super) struct Upload {
    content: Body,
    held: Bytes,
    trailers: Option<HeaderMap>,
    is_read: bool,
}

impl Upload {
    pub(super) fn new(content: Body) -> Upload {
        Upload { content, held: Bytes::new(), trailers: None, is_read: false }
    }

    /// What the stream shall take next. The task of `cx` is called when there is more content.
    ///
    /// # Errors
    /// The content has failed.
    pub(super) fn next(&mut self, room: usize, cx: &mut Context<'_>) -> Result<Content, Error> {
        if room == 0 && !self.is_read {
            return Ok(Content::Wait);
        }
        while self.held.is_empty() {
            if self.is_read {
                return Ok(Content::Last(Bytes::new(), self.trailers.take()));
            }
            let Poll::Ready(frame) = Pin::new(&mut self.content).poll_frame(cx) else {
                return Ok(Content::Wait);
            };
            let failed =
                |error| Error::caused(Kind::Body, "the content of the request cannot be read", error);
            match frame.transpose().map_err(failed)?.map(Frame::into_data) {
                None => self.is_read = true,
                Some(Ok(bytes)) => self.held = bytes,
                Some(Err(frame)) => (self.trailers, self.is_read) = (frame.into_trailers().ok(), true),
            }
        }
        Ok(Content::Bytes(self.held.split_to(self.held.len().min(room))))
    }
}
