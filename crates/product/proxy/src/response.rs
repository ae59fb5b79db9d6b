//! The content of a response on its way back, and what becomes of its connection.
//!
//! It is pulled by what sends it on, and hyper reads no further ahead than its buffer, so that a slow client holds back the upstream. A
//! response that breaks off fails, over every version of HTTP: it must not look complete. Content that is whole when its head is read,
//! as most that is small, is handed over as bytes, and its connection waits for the next request at once.

use crate::connect::{Connection, Incoming};
use crate::content::{Progress, State};
use crate::log::Target;
use crate::runtime::Realm;
use crate::upstream::Underway;
use body::{Body, BoxError};
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::runtime::Handle;
use tokio::time::{Duration, Instant, Sleep};

/// A connection while a response comes on it.
pub(crate) struct Lease {
    pub(crate) connection: Connection,
    pub(crate) underway: Underway,
    pub(crate) realm: Realm,
    pub(crate) runtime: Handle,
}

impl Lease {
    /// The response is complete.
    fn end(self, progress: &Progress) {
        let Lease { connection, underway, realm, runtime } = self;
        // An upstream that answers before it has read all is not asked again on this connection. One that takes several requests at a
        // time is in the pool.
        if progress.state() == State::Whole && connection.share().is_none() {
            underway.upstream().pool().put(connection, (realm, &runtime));
        }
    }
}

/// What was there of content when it was first looked at.
pub(crate) type First = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

/// The content of a response as it comes from an upstream.
pub(crate) struct Received {
    /// Not handed on yet.
    first: First,
    content: Incoming,
    /// `None` when nothing more comes.
    lease: Option<Lease>,
    progress: Arc<Progress>,
    /// How long it may pause.
    patience: Duration,
    /// Ends the pause at hand, if there is one. Made with the first.
    pause: Option<Pin<Box<Sleep>>>,
    is_paused: bool,
    /// For the log.
    target: Target,
}

/// Why a response breaks off.
#[derive(Debug)]
pub(crate) enum BrokenOff {
    Upstream(BoxError),
    /// Of another protocol.
    Tunnel(BoxError),
    Silent,
}

impl fmt::Display for BrokenOff {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BrokenOff::Upstream(error) => write!(out, "the response broke off: {error}"),
            BrokenOff::Tunnel(error) => write!(out, "the connection broke off: {error}"),
            BrokenOff::Silent => {
                out.write_str("the response broke off: nothing came in time: see idle-timeout")
            }
        }
    }
}

impl std::error::Error for BrokenOff {}

impl Received {
    /// The content of the response on `lease`.
    pub(crate) fn body(
        (content, first): (Incoming, First),
        lease: Lease,
        progress: Arc<Progress>,
        patience: Duration,
        target: &Target,
    ) -> Body {
        let first = match first {
            Poll::Ready(None) => {
                lease.end(&progress);
                return Body::empty();
            }
            Poll::Ready(Some(Ok(frame))) if content.is_end_stream() => match frame.into_data() {
                Ok(bytes) => {
                    lease.end(&progress);
                    return Body::from(bytes);
                }
                Err(frame) => Poll::Ready(Some(Ok(frame))),
            },
            first => first,
        };
        let (lease, target) = (Some(lease), target.clone());
        let (pause, is_paused) = (None, false);
        Body::new(Received { first, content, lease, progress, patience, pause, is_paused, target })
    }

    /// Whether the pause at hand has been too long.
    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // Without a lease nothing more is waited for.
        let Some(Lease { runtime, .. }) = &self.lease else { return Poll::Pending };
        let due = Instant::now() + self.patience;
        let pause = self.pause.get_or_insert_with(|| {
            let _context = runtime.enter();
            Box::pin(tokio::time::sleep_until(due))
        });
        if !std::mem::replace(&mut self.is_paused, true) {
            pause.as_mut().reset(due);
        }
        pause.as_mut().poll(cx)
    }

    /// The next frame: the one that was there first, or what comes.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> First {
        match std::mem::replace(&mut self.first, Poll::Pending) {
            Poll::Pending => Pin::new(&mut self.content).poll_frame(cx),
            first => first,
        }
    }

    fn end(&mut self) {
        self.lease.take().into_iter().for_each(|lease| lease.end(&self.progress));
    }

    fn break_off(&mut self, why: BrokenOff) -> BrokenOff {
        if let Some(Lease { underway, .. }) = self.lease.take() {
            let upstream = underway.upstream();
            let say = || format!("{}: {}: {why}", upstream.address(), self.target.shown());
            upstream.notice().warn(Instant::now(), say);
        }
        why
    }
}

impl http_body::Body for Received {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = &mut *self;
        let Poll::Ready(frame) = this.poll_next(cx) else {
            ready!(this.poll_pause(cx));
            return Poll::Ready(Some(Err(this.break_off(BrokenOff::Silent))));
        };
        this.is_paused = false;
        Poll::Ready(match frame {
            Some(Ok(frame)) => {
                if this.content.is_end_stream() {
                    this.end();
                }
                Some(Ok(frame))
            }
            Some(Err(error)) => Some(Err(this.break_off(BrokenOff::Upstream(error)))),
            None => {
                this.end();
                None
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_pending() && self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.content.size_hint();
        if let Poll::Ready(Some(Ok(frame))) = &self.first {
            let held = frame.data_ref().map_or(0, Bytes::len) as u64;
            hint.upper().into_iter().for_each(|upper| hint.set_upper(upper.saturating_add(held)));
            hint.set_lower(hint.lower().saturating_add(held));
        }
        hint
    }
}
