//! The low-level handler: the seam between HTTP/3 and what answers requests. HTTP/1.1 and 2 reach it by a bridge (tcp/low_level.rs).
//!
//! A [`Handler`] is called on the worker's thread and never waits. All dispatch is static, so that a handler that needs no
//! allocation costs none. One request takes this way:
//!
//! ```text
//! head arrives ──▶ Head::on_request          content ──▶ Upload::on_body, on_trailers, on_end | on_abort
//!                       ▼                                   │ takes less than all: the stream pauses and earns no credit
//!                 Handler::handle ──Pending──▶ again after a wake, or when the content has ended
//!                       │ Ready(Response)
//!                       ▼
//!                 Content::poll_chunk, as room appears; Content::trailers
//! ```
//!
//! The methods without a default are what a first handler needs:
//!
//! ```
//! use bytes::Bytes;
//! use http::header::{CONTENT_LENGTH, HeaderMap};
//! use server::low::{Context, Handler, Head, Request, RequestHead, Response};
//! use std::task::Poll;
//!
//! /// The status of the response is all that is kept of a request.
//! #[derive(Default)]
//! struct Status(u16);
//!
//! impl Head for Status {
//!     fn on_request(&mut self, _: &RequestHead<'_>) {
//!         self.0 = 200;
//!     }
//!
//!     fn on_refused(&mut self, status: u16) {
//!         self.0 = status;
//!     }
//! }
//!
//! struct Hello;
//!
//! fn respond(status: u16, text: &'static str) -> Response<HeaderMap, Bytes> {
//!     let fields = HeaderMap::from_iter([(CONTENT_LENGTH, text.len().into())]);
//!     Response { status, fields, body: Bytes::from_static(text.as_bytes()) }
//! }
//!
//! impl Handler for Hello {
//!     type Head = Status;
//!     type Upload = ();
//!     type Content = Bytes;
//!     type Fields = HeaderMap;
//!
//!     fn handle(&mut self, request: Request<'_, Hello>, _: &Context<'_>) -> Poll<Response<HeaderMap, Bytes>> {
//!         Poll::Ready(respond(request.head.0, "hello"))
//!     }
//!
//!     fn put_off(&mut self, _: &Context<'_>) -> Response<HeaderMap, Bytes> {
//!         respond(503, "")
//!     }
//! }
//! ```
//!
//! The head belongs to the handler: it decides what is kept. Heads are boxed and reused. Rejected: one type of head for all,
//! which costs an allocation or loses fields; `dyn Handler`, an indirect call for each chunk.

use crate::date;
use crate::wake_list::{ConnectionCall, WakeList};
use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;
use std::task::{Poll, Waker};

// The types that the traits name.
pub use crate::access_log::RequestLine;
pub use crate::budget::{Budget, Level};
pub use crate::connection_info::ConnectionView;
pub use crate::informational::Interim;
pub use crate::warnings::{Warning, Warnings, Watch};
pub use base::time::{Duration, Instant};
pub use http3::{Line, RequestHead, Trailers};

/// Answers requests on one thread.
///
/// Over HTTP/3 nothing is allocated or copied for it. Over HTTP/1.1 and 2 the bridge from hyper allocates a future for each request,
/// copies the head into the shape of HTTP/3's, and the response's fields to a `HeaderMap`; content is lent and handed over there too.
///
/// A panic ends one request, when [`Handler::handle`], [`Handler::put_off`], or a method of [`Head`], [`Upload`] or [`Content`] whose
/// receiver is `&mut` panics: 500 if no head of a response has left; else the stream is reset, or the connection closed over HTTP/1.1.
/// The handler goes on with other requests, so it must keep its own state sound. Other methods must not panic: they end the thread.
pub trait Handler: Sized + 'static {
    /// What is kept of a request's head.
    type Head: Head;
    /// Takes a request's content.
    type Upload: Upload;
    /// Gives a response's content.
    type Content: Content;
    /// A response's fields.
    type Fields: FieldLines;

    /// Answers a request, or says that it must wait. After `Pending` it is called again for the same request when a waker of
    /// the [`Context`] was woken for any request of the connection, and when the request's content has ended.
    ///
    /// When the response is given before the content has ended, the content goes on to the [`Upload`] while
    /// [`Upload::is_wanted`]; after that it is discarded within limits.
    fn handle(
        &mut self,
        request: Request<'_, Self>,
        cx: &Context<'_>,
    ) -> Poll<Response<Self::Fields, Self::Content>>;

    /// Answers a request that is put off because memory is short: 503, RFC 9110 §15.6.4.
    fn put_off(&mut self, cx: &Context<'_>) -> Response<Self::Fields, Self::Content>;

    /// What the server shares with the handler. Asked once.
    fn shared(&self) -> Shared {
        Shared::default()
    }
}

/// What a server and its handler share.
#[derive(Clone, Debug)]
pub struct Shared {
    /// The memory that all connections may hold together. Default: without a limit.
    pub budget: Budget,
    /// Where warnings are noted. Default: nothing is printed.
    pub warnings: Warnings,
    /// Seconds since 1970. Default: the operating system's clock.
    pub clock: fn() -> u64,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared { budget: Budget::default(), warnings: Warnings::default(), clock: date::unix_now }
    }
}

/// What is kept of a request's head, and of the request while it is answered.
pub trait Head: Default {
    /// Keeps what is needed of a head. It is valid by RFC 9114 §4.
    fn on_request(&mut self, request: &RequestHead<'_>);

    /// As [`Head::on_request`], of a request over HTTP/1.1 or 2: `parts` are the same head as it came. Default: they are not needed.
    /// Outside semver.
    #[doc(hidden)]
    fn on_parts(&mut self, head: &RequestHead<'_>, parts: http::request::Parts) {
        drop(parts);
        self.on_request(head);
    }

    /// The request must be answered by `status`: its head is too large (431), or, over HTTP/1.1 and 2, breaks a rule (400, 421).
    /// Nothing else of it is known.
    fn on_refused(&mut self, status: u16);

    /// Forgets the request. An implementation keeps the memory for the next one, unless it is much.
    /// Over HTTP/1.1 and 2 the next one may be of another connection, so nothing that is known of this one may stay.
    fn recycle(&mut self) {
        *self = Self::default();
    }

    /// Its memory is for requests of any connection from now on. Called after [`Head::recycle`], over HTTP/1.1 and 2, where what
    /// [`Context::waker`] gives stays with the memory. Default: nothing. Outside semver.
    #[doc(hidden)]
    fn leave_connection(&mut self) {}

    /// Bytes that it holds.
    fn memory(&self) -> usize {
        size_of::<Self>()
    }

    /// Whether the client waits for 100 (Continue) before it sends content. RFC 9110 §10.1.1.
    fn expects_continue(&self) -> bool {
        false
    }

    /// Whether the answer means that all content has arrived, so that [`Handler::handle`] is not called before. A client that
    /// expects 100 (Continue) gets it if the handler would answer with a status below 300.
    fn awaits_content(&self) -> bool {
        false
    }

    /// Whether work on the request has begun, so that it can no longer be put off.
    fn has_begun(&self) -> bool {
        false
    }

    /// The next informational response to send before the final one. Asked until there is none, after each call of
    /// [`Handler::handle`]. 100 is that which [`Head::expects_continue`] waits for. Default: none. RFC 9110 §15.2.
    fn next_interim(&mut self) -> Option<Interim> {
        None
    }

    /// The client would go on by one of `protocols` on its connection. RFC 9110 §7.8. Called after [`Head::on_request`], over HTTP/1.1
    /// alone, and if the request has no content. Returns whether the handler may answer 101: then the upload and the content of the
    /// response are what the new protocol sends in either direction. Default: no. Outside semver.
    #[doc(hidden)]
    fn on_upgrade(&mut self, _protocols: &HeaderValue) -> bool {
        false
    }

    /// Whether the client would speak another protocol on its stream: an extended CONNECT, which comes only where the server has
    /// announced that it is taken. RFC 8441, RFC 9220. Asked after [`Head::on_request`]. Then a status of 2xx means that the upload and
    /// the content of the response are what the new protocol sends in either direction. Default: no. Outside semver.
    #[doc(hidden)]
    fn is_tunnel(&self) -> bool {
        false
    }

    /// The site among whose responses the metrics count the answer, by a small number; 0 for none. Outside semver.
    #[doc(hidden)]
    fn site(&self) -> usize {
        0
    }

    /// What the access log says of the request. Default: nothing.
    fn line(&self) -> RequestLine<'_> {
        RequestLine::default()
    }
}

/// Takes a request's content as it is lent, on the worker's thread, while the connection receives.
pub trait Upload: Default {
    /// Takes the next bytes, at least one; returns how many were taken. When fewer than all are taken the stream pauses, and
    /// no more credit is given for it, until [`Upload::has_room`] is found true after a wake. Default: all are discarded.
    fn on_body(&mut self, bytes: &[u8]) -> usize {
        bytes.len()
    }

    /// The fields that follow the content.
    fn on_trailers(&mut self, _trailers: &Trailers<'_>) {}

    /// The content is complete.
    fn on_end(&mut self) {}

    /// The content will not be completed.
    fn on_abort(&mut self) {}

    /// Whether bytes would be taken.
    fn has_room(&self) -> bool {
        true
    }

    /// Whether content is of use once the response has begun.
    fn is_wanted(&self) -> bool {
        false
    }

    /// Whether the handler waits for content. Meanwhile it is the client that is slow, and one that expects 100 (Continue)
    /// is told to go on.
    fn is_awaited(&self) -> bool {
        false
    }

    /// Whether a handler whose answer waits for all content shall be called without the rest.
    fn is_enough(&self) -> bool {
        false
    }

    /// Bytes that it holds.
    fn memory(&self) -> usize {
        0
    }
}

/// Discards content.
impl Upload for () {}

/// Gives a response's content.
pub trait Content {
    /// The next at most `max` bytes (`max` ≥ 1), never an empty chunk; `None` at the end. After `Pending` it is called again
    /// when a waker of the [`Context`] was woken.
    fn poll_chunk(&mut self, max: usize, cx: &Context<'_>) -> Poll<Result<Option<Bytes>, ContentError>>;

    /// How many bytes are still to come; `None` if that is not known. What is known before the first chunk is promised.
    fn remaining(&self) -> Option<u64>;

    /// All of it, if it is in memory in one piece and nothing of it was pulled; then nothing is pulled any more. Outside semver.
    #[doc(hidden)]
    fn take_whole(&mut self) -> Option<Bytes> {
        None
    }

    /// The fields that follow content of unknown length. Asked once, at the end.
    fn trailers(&mut self) -> Option<HeaderMap> {
        None
    }
}

/// Content that is there as a whole.
impl Content for Bytes {
    fn poll_chunk(&mut self, max: usize, _: &Context<'_>) -> Poll<Result<Option<Bytes>, ContentError>> {
        let len = self.len().min(max);
        Poll::Ready(Ok((len > 0).then(|| self.split_to(len))))
    }

    fn remaining(&self) -> Option<u64> {
        Some(self.len() as u64)
    }

    fn take_whole(&mut self) -> Option<Bytes> {
        Some(core::mem::take(self))
    }
}

/// A response's fields.
pub trait FieldLines {
    /// What is kept of fields to know them again.
    type Kept: Default;

    /// Whether the same fields come again often enough that the encoded head is worth remembering.
    const REPEATS: bool;

    /// Whether these may be remembered, where [`FieldLines::REPEATS`] says that such fields are.
    #[inline]
    fn is_kept(&self) -> bool {
        true
    }

    /// Whether `kept` is of the same fields in the same order.
    fn is(&self, kept: &Self::Kept) -> bool;

    /// Makes `kept` that of these fields. Memory of what it was before is used again.
    fn keep(self, kept: &mut Self::Kept);

    /// Names, in lower case, and values in the order in which they are sent.
    fn lines(&self) -> impl Iterator<Item = (&[u8], &[u8])>;

    /// A part that differs between fields that are remembered side by side.
    fn key(&self) -> &[u8] {
        b""
    }

    /// What of these fields says where they are remembered, and whether. Outside semver.
    #[doc(hidden)]
    fn measure(&self) -> Measure {
        Measure::of(self)
    }

    /// These fields as a map, if they are one: then HTTP/1.1 and 2 need no copy of them. Default: they are none. Outside semver.
    ///
    /// # Errors
    /// They are none, and come back.
    #[doc(hidden)]
    fn into_map(self) -> Result<HeaderMap, Self>
    where
        Self: Sized,
    {
        Err(self)
    }
}

/// What a list of fields is remembered by. Outside semver.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Bytes of all values.
    pub(crate) bytes: usize,
    /// A hash of the key: FNV-1a.
    pub(crate) key: u64,
}

impl Measure {
    /// Counts and mixes.
    pub(crate) fn of<F: FieldLines + ?Sized>(fields: &F) -> Measure {
        let bytes = fields.lines().map(|(_, value)| value.len()).sum();
        let key = fields.key().iter().fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Measure { bytes, key }
    }
}

/// The fields of a [`HeaderMap`]: their values are copied, because those may share large memory.
#[derive(Debug, Default)]
pub struct KeptFields {
    /// Each with the length of its value.
    names: Vec<(HeaderName, usize)>,
    values: Vec<u8>,
}

impl FieldLines for HeaderMap {
    type Kept = KeptFields;

    const REPEATS: bool = true;

    fn is(&self, kept: &KeptFields) -> bool {
        let (mut names, mut values) = (kept.names.iter(), kept.values.as_slice());
        let mut same = |(name, value): (&HeaderName, &HeaderValue)| {
            let Some((known, len)) = names.next() else { return false };
            let Some((known_value, rest)) = values.split_at_checked(*len) else { return false };
            values = rest;
            known == name && known_value == value.as_bytes()
        };
        self.iter().all(&mut same) && names.next().is_none()
    }

    fn keep(self, kept: &mut KeptFields) {
        kept.names.clear();
        kept.values.clear();
        for (name, value) in &self {
            kept.names.push((name.clone(), value.len()));
            kept.values.extend_from_slice(value.as_bytes());
        }
    }

    fn lines(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
    }

    fn into_map(self) -> Result<HeaderMap, HeaderMap> {
        Ok(self)
    }
}

/// The content cannot be completed: the stream is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentError;

impl core::fmt::Display for ContentError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("the content of the response cannot be completed")
    }
}

impl core::error::Error for ContentError {}

/// A request that is to be answered.
pub struct Request<'a, H: Handler> {
    /// What was kept of the head.
    pub head: &'a mut H::Head,
    /// What takes the content.
    pub upload: &'a mut H::Upload,
    /// How much of the content has arrived.
    pub received: Received,
    /// The connection on which it arrived.
    pub connection: ConnectionView<'a>,
}

/// How much of a request's content has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// More may follow.
    Open,
    /// All.
    Whole,
}

/// What a handler answers.
#[derive(Debug)]
pub struct Response<F, C> {
    /// The status code, 200 to 599; or 101, if the handler may: see `Head::on_upgrade`.
    pub status: u16,
    /// The fields, content-length among them whenever the status allows one.
    pub fields: F,
    /// The content that follows. Empty for HEAD, whatever content-length says.
    pub body: C,
}

/// The circumstances of a call.
pub struct Context<'a> {
    pub(crate) now: Instant,
    pub(crate) waiting: usize,
    pub(crate) wake: WakeTarget<'a>,
}

/// What a handler wakes.
pub(crate) enum WakeTarget<'a> {
    /// A connection of HTTP/3, on its worker.
    Connection { call: &'a ConnectionCall, wake_list: &'a Arc<WakeList> },
    /// The task of a request over HTTP/1.1 or 2.
    Task(&'a Waker),
}

impl Context<'_> {
    /// The time of the turn, by the worker's clock.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Requests and responses of this connection that wait to be called again.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Has the worker call again what waits on this connection. Made on demand; all of a connection are the same. Over HTTP/1.1 and 2
    /// all of a request are the same.
    pub fn waker(&self) -> Waker {
        match self.wake {
            WakeTarget::Connection { call, wake_list } => call.waker(wake_list),
            WakeTarget::Task(waker) => waker.clone(),
        }
    }
}
