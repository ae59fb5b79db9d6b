//! The content of a request on its way to an upstream.
//!
//! hyper pulls it as fast as the upstream takes it, so that a slow upstream holds back the client.

use body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::time::{Duration, Instant};

/// How far the content of a request has come.
#[derive(Debug)]
pub(crate) struct Progress {
    began: Instant,
    /// When the upstream last took some: milliseconds since `began`.
    taken: AtomicU64,
    state: AtomicU8,
}

/// What the content of a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// For the upstream.
    Upstream = 0,
    /// For the client.
    Client = 1,
    /// For nothing: all was taken.
    Whole = 2,
    /// The client gave it up.
    Aborted = 3,
    /// There is more than is permitted.
    TooLarge = 4,
}

impl Progress {
    fn new(state: State) -> Arc<Progress> {
        Arc::new(Progress {
            began: Instant::now(),
            taken: AtomicU64::new(0),
            state: AtomicU8::new(state as u8),
        })
    }

    fn set(&self, state: State) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    fn on_taken(&self) {
        let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.taken.store(elapsed, Ordering::Relaxed);
    }

    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::Relaxed) {
            1 => State::Client,
            2 => State::Whole,
            3 => State::Aborted,
            4 => State::TooLarge,
            _ => State::Upstream,
        }
    }

    /// When the upstream has been silent for `patience`. While the client is waited for it is not to blame.
    pub(crate) fn due(&self, patience: Duration) -> Instant {
        match self.state() {
            State::Client => Instant::now() + patience,
            _ => self.began + Duration::from_millis(self.taken.load(Ordering::Relaxed)) + patience,
        }
    }
}

/// The content of a request as it goes to an upstream.
pub(crate) struct Sent {
    /// Read ahead. Boxed, because requests are moved and few have any.
    first: Option<Box<Frame<Bytes>>>,
    body: Body,
    /// Bytes that are still permitted.
    left: u64,
    progress: Arc<Progress>,
}

/// The content of a request cannot be sent on.
#[derive(Debug)]
pub(crate) struct Unsent;

impl fmt::Display for Unsent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the content of the request is not complete")
    }
}

impl std::error::Error for Unsent {}

impl Sent {
    /// `most` bytes at most.
    pub(crate) fn new(body: Body, most: u64) -> (Sent, Arc<Progress>) {
        let progress = Progress::new(if body.is_end_stream() { State::Whole } else { State::Upstream });
        (Sent { first: None, body, left: most, progress: Arc::clone(&progress) }, progress)
    }

    /// Reads the first piece ahead, or the end where there is none.
    pub(crate) fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Unsent>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else { return Poll::Pending };
        // The time of the upstream begins.
        self.progress.on_taken();
        match frame {
            Some(Ok(frame)) => self.first = Some(Box::new(frame)),
            Some(Err(_)) => return Poll::Ready(Err(Unsent)),
            None => self.progress.set(State::Whole),
        }
        Poll::Ready(Ok(()))
    }

    /// Content that was given back untouched, whose progress is known.
    pub(crate) fn returned(body: Body, progress: Arc<Progress>) -> Sent {
        Sent { first: None, body, left: u64::MAX, progress }
    }

    pub(crate) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// No content.
    pub(crate) fn empty() -> (Sent, Arc<Progress>) {
        Sent::new(Body::empty(), 0)
    }
}

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = Unsent;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Unsent>>> {
        let this = &mut *self;
        let frame = match this.first.take() {
            Some(frame) => Some(Ok(*frame)),
            None => match Pin::new(&mut this.body).poll_frame(cx) {
                Poll::Pending => {
                    this.progress.set(State::Client);
                    return Poll::Pending;
                }
                Poll::Ready(frame) => frame,
            },
        };
        this.progress.on_taken();
        let Some(frame) = frame else {
            this.progress.set(State::Whole);
            return Poll::Ready(None);
        };
        let Ok(frame) = frame else {
            this.progress.set(State::Aborted);
            return Poll::Ready(Some(Err(Unsent)));
        };
        match this.left.checked_sub(frame.data_ref().map_or(0, |bytes| bytes.len() as u64)) {
            Some(left) => this.left = left,
            None => {
                this.progress.set(State::TooLarge);
                return Poll::Ready(Some(Err(Unsent)));
            }
        }
        this.progress.set(if this.body.is_end_stream() { State::Whole } else { State::Upstream });
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.first.is_some() { SizeHint::default() } else { self.body.size_hint() }
    }
}
