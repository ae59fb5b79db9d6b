//! The content of a request on its way to the transport.

use crate::library::error::{Error, Kind};
use ::body::Body;
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, request};
use http_body::Body as _;
use http3::{BodyLength, SendError};
use std::pin::Pin;
use std::task::{Context, Poll};
use transport::{Connection, StreamId};

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

    /// Writes as much as the stream takes. Ready when all was written, or the server wants no more. The task of `cx` is called
    /// when there is more content; the transport tells when there is more room.
    ///
    /// # Errors
    /// The content has failed, or is not as long as was said.
    pub(super) fn poll_write(
        &mut self,
        http: &mut http3::Connection,
        connection: &mut Connection,
        id: StreamId,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Error>> {
        loop {
            let room = connection.send_capacity(id);
            if room == 0 {
                return Poll::Pending;
            }
            if self.held.is_empty() && !self.is_read {
                match self.poll_read(cx) {
                    Poll::Ready(result) => result?,
                    Poll::Pending => return Poll::Pending,
                }
            }
            let written = if !self.held.is_empty() {
                let bytes = self.held.split_to(self.held.len().min(room));
                http.write_body(connection, id, bytes)
            } else if self.is_read {
                let end = match self.trailers.take() {
                    Some(trailers) => http.write_trailers(connection, id, &trailers),
                    None => http.finish(connection, id),
                };
                return Poll::Ready(end.or_else(outcome));
            } else {
                Ok(())
            };
            if let Err(error) = written {
                return Poll::Ready(outcome(error));
            }
        }
    }

    /// Reads the next frame of the content.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let frame = match Pin::new(&mut self.content).poll_frame(cx) {
            Poll::Ready(frame) => frame,
            Poll::Pending => return Poll::Pending,
        };
        match frame {
            None => self.is_read = true,
            Some(Ok(frame)) => match frame.into_data() {
                Ok(bytes) => self.held = bytes,
                Err(frame) => (self.trailers, self.is_read) = (frame.into_trailers().ok(), true),
            },
            Some(Err(error)) => {
                let text = "the content of the request cannot be read";
                return Poll::Ready(Err(Error::caused(Kind::Body, text, error)));
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// What an error of the stream means for the request.
fn outcome(error: SendError) -> Result<(), Error> {
    match error {
        // The server wants no more: its response, or an abort, says why.
        SendError::NoSuchExchange => Ok(()),
        error => Err(Error::caused(Kind::Body, "the content of the request cannot be sent", error)),
    }
}
