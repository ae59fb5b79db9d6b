//! The content of responses, with the limits of time that the client sets; and that of requests, whose progress counts as activity.

use super::error::{Error, Kind, Phase};
use super::hyper_error::of_hyper;
use super::upload::EndWithUpload;
use ::body::{Body, BodyError};
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Content as it comes from a connection.
pub(crate) enum Content {
    /// HTTP/1.1, and what ends its connection.
    Http1(Incoming, EndWithUpload),
    /// HTTP/2.
    Http2(Incoming),
    /// HTTP/3.
    Queue(Body),
}

impl Content {
    /// Content of a response over HTTP/1.1.
    pub(crate) fn http1(body: Incoming, mut end: EndWithUpload) -> Content {
        if body.is_end_stream() {
            end.disarm();
        }
        Content::Http1(body, end)
    }

    /// The content for the application, without limits of time.
    pub(crate) fn untimed(self) -> Body {
        match self {
            Content::Queue(body) => body,
            content => Body::new(content),
        }
    }
}

impl http_body::Body for Content {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut *self {
            Content::Queue(body) => Pin::new(body).poll_frame(cx),
            Content::Http1(body, end) => {
                let frame = poll_hyper(body, cx);
                if matches!(frame, Poll::Ready(None)) || body.is_end_stream() {
                    end.disarm();
                }
                frame
            }
            Content::Http2(body) => poll_hyper(body, cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Content::Queue(body) => body.is_end_stream(),
            Content::Http1(body, _) | Content::Http2(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Content::Queue(body) => body.size_hint(),
            Content::Http1(body, _) | Content::Http2(body) => body.size_hint(),
        }
    }
}

fn poll_hyper(body: &mut Incoming, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
    Pin::new(body).poll_frame(cx).map_err(|error| of(of_hyper(&error)))
}

fn of(error: Error) -> BodyError {
    BodyError::Source(error.into())
}

/// Why content is not complete, as an error of the request.
pub(crate) fn of_content(error: BodyError) -> Error {
    match error {
        BodyError::Source(source) => match source.downcast::<Error>() {
            Ok(error) => *error,
            Err(source) => Error::caused(Kind::Lost, "the response is not complete", source),
        },
        error => Error::caused(Kind::Lost, "the response is not complete", error),
    }
}

/// Content that fails when nothing arrives for too long, or when the time of the whole exchange is over. The time that the reader
/// takes between two reads does not count as silence.
pub(crate) struct Timed<T> {
    content: Content,
    silence: Option<(Duration, Pin<Box<Sleep>>)>,
    /// The reader waits, and `silence` runs.
    is_waiting: bool,
    deadline: Option<Pin<Box<Sleep>>>,
    /// Keeps the timers running.
    _alive: T,
}

impl<T> Timed<T> {
    /// To be called where tokio's timers are.
    pub(crate) fn new(
        content: Content,
        silence: Option<Duration>,
        deadline: Option<Instant>,
        alive: T,
    ) -> Timed<T> {
        Timed {
            content,
            silence: silence.map(|silence| (silence, Box::pin(tokio::time::sleep(silence)))),
            is_waiting: false,
            deadline: deadline.map(|at| Box::pin(tokio::time::sleep_until(at))),
            _alive: alive,
        }
    }

    /// Which time is over, if one is.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        if let Some((silence, sleep)) = &mut self.silence {
            if !std::mem::replace(&mut self.is_waiting, true) {
                sleep.as_mut().reset(Instant::now() + *silence);
            }
            if sleep.as_mut().poll(cx).is_ready() {
                return Poll::Ready(silent(*silence));
            }
        }
        match &mut self.deadline {
            Some(deadline) => deadline.as_mut().poll(cx).map(|()| over()),
            None => Poll::Pending,
        }
    }
}

impl<T: Unpin> http_body::Body for Timed<T> {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.content).poll_frame(cx) {
            self.is_waiting = false;
            return Poll::Ready(frame);
        }
        self.poll_over(cx).map(|error| Some(Err(of(error))))
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }
}

/// Nothing came for too long.
pub(crate) fn silent(silence: Duration) -> Error {
    let text = format!("nothing arrived for {silence:?}");
    Error::new(Kind::Timeout(Phase::Silence), text)
}

/// The time of the whole exchange is over.
pub(crate) fn over() -> Error {
    Error::new(Kind::Timeout(Phase::Whole), "the time for the whole response is over")
}

/// When the connection last took content of a request.
#[derive(Clone, Debug)]
pub(crate) struct Activity(Arc<Mutex<Instant>>);

impl Activity {
    pub(crate) fn new() -> Activity {
        Activity(Arc::new(Mutex::new(Instant::now())))
    }

    pub(crate) fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// Content of a request in pieces that are small enough to show progress.
pub(crate) struct Watched {
    content: Body,
    held: Bytes,
    activity: Activity,
}

/// Largest piece, in bytes.
const PIECE: usize = 64 << 10;

impl Watched {
    /// The same content, whose progress `activity` shows.
    pub(crate) fn wrap(content: Body, activity: &Activity) -> Body {
        if content.size_hint().upper().is_some_and(|size| size <= PIECE as u64) {
            return content;
        }
        Body::new(Watched { content, held: Bytes::new(), activity: activity.clone() })
    }
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.activity.note();
        if self.held.is_empty() {
            match Pin::new(&mut self.content).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) => self.held = bytes,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                other => return other,
            }
        }
        let length = self.held.len().min(PIECE);
        let piece = self.held.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, held) = (self.content.size_hint(), self.held.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(held));
        rest.upper()
            .and_then(|upper| upper.checked_add(held))
            .into_iter()
            .for_each(|upper| hint.set_upper(upper));
        hint
    }
}
