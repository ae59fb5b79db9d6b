//! Content that is lent to the program as it arrives, and what comes of a request then.

use super::error::{Error, Kind};
use super::used::Used;
use http::{HeaderMap, Response};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

/// Takes the content of one response as it arrives: see [`Client::request_into`](crate::Client::request_into).
///
/// The calls come in this order: `on_connection`, perhaps several times; `on_head` once; `on_body`. Over HTTP/3 the last two run on
/// the thread of the QUIC connections and must not block: all connections of the client wait meanwhile. A closure is a sink
/// without a head.
pub trait BodySink: Send + 'static {
    /// There is a connection, and the request is sent on it next. `control` ends pauses, and the exchange. Called again for each
    /// redirect and each connection that is tried after one that did not look at the request. Runs where the future is polled.
    fn on_connection(&mut self, _used: &Used, _control: Control) {}

    /// The head of the response that is not a redirect to follow.
    fn on_head(&mut self, _head: &Response<()>) {}

    /// The next bytes of the content, at least one; returns how many were taken. When fewer than all are taken the response
    /// pauses, and the server gets no more credit for it (RFC 9000 §4.1), until [`Control::resume`] is called; the bytes that were
    /// not taken come first then.
    fn on_body(&mut self, bytes: &[u8]) -> usize;
}

impl<F: FnMut(&[u8]) -> usize + Send + 'static> BodySink for F {
    fn on_body(&mut self, bytes: &[u8]) -> usize {
        self(bytes)
    }
}

/// A response that is complete, without its content.
#[non_exhaustive]
pub struct Received<K> {
    /// Its head; the extensions hold [`Used`], and over HTTP/3 a [`PathReport`](crate::report::PathReport) as of the end.
    pub response: Response<()>,
    /// The fields that followed the content.
    pub trailers: Option<HeaderMap>,
    /// Bytes of content that the sink took.
    pub bytes: u64,
    /// The sink.
    pub sink: K,
}

impl<K> fmt::Debug for Received<K> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Received { response, trailers, bytes, .. } = self;
        let mut out = out.debug_struct("Received");
        out.field("response", response)
            .field("trailers", trailers)
            .field("bytes", bytes)
            .finish_non_exhaustive()
    }
}

/// Ends pauses of one response, or gives it up. May be used from any thread, also while the sink is called. Clones do the same.
#[derive(Clone)]
pub struct Control(Arc<Flow>);

impl Control {
    /// The sink takes bytes again. Has no effect on a response that is not paused.
    pub fn resume(&self) {
        self.0.is_resumed.store(true, Ordering::SeqCst);
        self.0.wake();
    }

    /// Nothing more of the response is wanted: the request fails with [`Kind::Cancelled`].
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::SeqCst);
        self.0.wake();
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Control").finish_non_exhaustive()
    }
}

/// Which responses go to a sink at once; it gets others when it is decided that they are no redirects.
pub(crate) type IsFinal = fn(&Response<()>) -> bool;

/// How far a response is: written where the sink runs, read where the future is polled.
#[derive(Default)]
pub(crate) struct Flow {
    is_resumed: AtomicBool,
    is_paused: AtomicBool,
    has_head: AtomicBool,
    is_cancelled: AtomicBool,
    bytes: AtomicU64,
    /// Makes that act which calls the sink.
    waker: Mutex<Option<Waker>>,
}

impl Flow {
    pub(crate) fn set_waker(&self, waker: &Waker) {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
    }

    fn wake(&self) {
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        waker.iter().for_each(Waker::wake_by_ref);
    }

    /// Bytes that the sink took.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A value that changes when something of the response arrives.
    pub(crate) fn progress(&self) -> (bool, u64) {
        (self.has_head.load(Ordering::Relaxed), self.bytes())
    }

    /// Whether the sink holds up the response.
    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::Relaxed)
    }

    /// Whether the program has given the response up.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::SeqCst)
    }

    /// Whether a pause is over.
    pub(crate) fn is_resumed(&self) -> bool {
        self.is_resumed.load(Ordering::SeqCst)
    }
}

/// The error of a request that the program has given up.
pub(crate) fn cancelled() -> Error {
    Error::new(Kind::Cancelled, "the request was cancelled")
}

/// A sink together with how far its response is.
pub(crate) struct Lent<K> {
    sink: K,
    flow: Arc<Flow>,
    /// It was told a head: the request cannot be sent again.
    pub(crate) has_begun: bool,
    has_panicked: bool,
}

impl<K: BodySink> Lent<K> {
    pub(crate) fn new(sink: K, flow: Arc<Flow>) -> Lent<K> {
        Lent { sink, flow, has_begun: false, has_panicked: false }
    }

    pub(crate) fn flow(&self) -> &Arc<Flow> {
        &self.flow
    }

    /// The error of a response whose sink has panicked or given it up.
    pub(crate) fn failure(&self) -> Option<Error> {
        if self.has_panicked {
            return Some(Error::new(Kind::Sink, "the sink of the content has panicked"));
        }
        self.flow.is_cancelled().then(cancelled)
    }

    pub(crate) fn on_connection(&mut self, used: &Used) {
        self.sink.on_connection(used, Control(Arc::clone(&self.flow)));
    }

    pub(crate) fn on_head(&mut self, head: &Response<()>) {
        self.has_begun = true;
        self.flow.has_head.store(true, Ordering::Relaxed);
        let sink = &mut self.sink;
        self.has_panicked = catch_unwind(AssertUnwindSafe(|| sink.on_head(head))).is_err();
    }

    /// Lends bytes to the sink; returns how many it took. One that has panicked takes none.
    #[inline]
    pub(crate) fn on_body(&mut self, bytes: &[u8]) -> usize {
        let Lent { sink, flow, has_panicked, .. } = self;
        if flow.is_resumed.load(Ordering::SeqCst) {
            // What comes during the call counts for the pause that the call may begin.
            flow.is_resumed.store(false, Ordering::SeqCst);
        }
        let taken = catch_unwind(AssertUnwindSafe(|| sink.on_body(bytes))).unwrap_or_else(|_| {
            *has_panicked = true;
            // The connection looks at it in its next turn.
            flow.wake();
            0
        });
        let taken = taken.min(bytes.len());
        let total = flow.bytes.load(Ordering::Relaxed).saturating_add(taken as u64);
        flow.bytes.store(total, Ordering::Relaxed);
        let is_paused = taken < bytes.len();
        if is_paused != flow.is_paused.load(Ordering::Relaxed) {
            flow.is_paused.store(is_paused, Ordering::Relaxed);
        }
        taken
    }

    pub(crate) fn received(self, response: Response<()>, trailers: Option<HeaderMap>) -> Received<K> {
        Received { response, trailers, bytes: self.flow.bytes(), sink: self.sink }
    }
}
