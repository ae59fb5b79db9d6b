//! Routes that are answered by a service: asynchronously, with content that streams both ways.
//!
//! A service sees a request as one over HTTP/3, whichever version brought it. What keeps a request from its route (limits,
//! certificates, users) is judged before, and content that arrives meanwhile waits for the service, as much of it as a queue takes
//! (service/upload.rs). Requests of other routes pay nothing: fields that no file needs are kept only
//! where a service may ask for them ([`keeps_fields`]).

use super::edit::EditedFields;
use crate::connection_info::ConnectionInfo;
use crate::file_requests::Counted;
use crate::low::{self, Content, ContentError, Upload};
use crate::service::{Callee, Inlet, ServiceContent};
use ::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http3::Trailers;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

/// Answers the requests of routes.
pub trait RouteService: fmt::Debug + Send + Sync {
    /// Answers a request, which arrived on this connection. It may have an [`UpgradeOffer`] among its extensions.
    ///
    /// Called on the thread of the connection, which polls the future too: a thread of tokio's for HTTP/1.1 and 2, one without a
    /// runtime for HTTP/3. Dropped before its end, the client has given the request up.
    fn call(&self, request: http::Request<Body>, connection: ConnectionInfo) -> RouteFuture;

    /// Requests may come from now on. Called once for each route, before the first request, on the thread that makes the sites live.
    fn begin(&self) {}

    /// Other sites have taken the place of those of the route. Called once for each route that has begun. Requests may still come, from
    /// threads that have not heard of it.
    fn end(&self) {}
}

/// The client would go on by another protocol on its connection, or over HTTP/2 and 3 on the stream: among the extensions of a request
/// that has no content. RFC 9110 §7.8, RFC 8441, RFC 9220.
///
/// A service that agrees answers 101 (Switching Protocols) with the field Upgrade. Then the content of the response is what the client is
/// sent from there on, and [`UpgradeOffer::content`] what it sends. An extended CONNECT is seen as GET, and its client gets 200 for 101.
#[derive(Clone, Debug)]
pub struct UpgradeOffer {
    protocols: HeaderValue,
    content: Arc<Mutex<Option<Body>>>,
    by: OfferedBy,
}

/// How a client offers another protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferedBy {
    /// By the field Upgrade of HTTP/1.1.
    Upgrade,
    /// By an extended CONNECT over HTTP/2 or 3, in which a WebSocket has no Sec-WebSocket-Key. RFC 8441 §5.
    Connect,
}

impl UpgradeOffer {
    pub(super) fn new(protocols: HeaderValue, content: Body, by: OfferedBy) -> UpgradeOffer {
        UpgradeOffer { protocols, content: Arc::new(Mutex::new(Some(content))), by }
    }

    /// How the client offers it.
    pub fn by(&self) -> OfferedBy {
        self.by
    }

    /// The protocols that the client has named, in its order, as the field Upgrade has them.
    pub fn protocols(&self) -> &HeaderValue {
        &self.protocols
    }

    /// What the client sends after a response 101, once. Without one nothing ever comes.
    pub fn content(&self) -> Body {
        self.content.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }
}

/// Lets a request go on: among the extensions of the response of a service that is asked for that. Nothing else of the response counts.
#[derive(Clone, Debug, Default)]
pub struct Permit {
    /// Fields that the request has from there on, in place of those with the same names, or with underscores for dashes in them, that the
    /// client has sent; without a value there is none.
    pub fields: Vec<(HeaderName, Vec<HeaderValue>)>,
}

/// A response to come.
pub type RouteFuture = Pin<Box<dyn Future<Output = Result<http::Response<Body>, RouteError>>>>;

/// Why a service has no response. The route's error pages hold for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteError {
    /// The status, from 400 on.
    pub status: u16,
    /// What is wrong, for the client: in a few words, or none.
    pub what: &'static str,
}

impl fmt::Display for RouteError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.status, self.what)
    }
}

impl std::error::Error for RouteError {}

/// A service, and which path it is asked for.
#[derive(Clone, Debug)]
pub struct ServiceOf {
    /// What answers.
    pub service: Arc<dyn RouteService>,
    /// Whether the route's prefix is cut off the path.
    pub is_below_prefix: bool,
}

/// The service of a route, as it is called.
#[derive(Clone)]
pub(super) struct Called(pub(super) Arc<dyn RouteService>);

impl Callee<RouteFuture> for Called {
    type Content = Body;
    type Error = RouteError;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), RouteError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>, connection: ConnectionInfo) -> RouteFuture {
        self.0.call(request, connection)
    }
}

/// Whether a server of this process has, or had, a route that is answered by a service, or a limit by any field.
static KEEPS_FIELDS: AtomicBool = AtomicBool::new(false);

/// Whether all fields of requests are kept. A head is read before its route is known, and by what knows no sites.
#[inline]
pub(super) fn keeps_fields() -> bool {
    KEEPS_FIELDS.load(Ordering::Relaxed)
}

/// All fields of requests are kept from now on.
pub(super) fn keep_fields() {
    KEEPS_FIELDS.store(true, Ordering::Release);
}

/// The content of a request.
#[derive(Debug)]
pub(crate) enum RoutedUpload {
    /// It waits for a service: for the one that answers, or until the route is known.
    Kept(Inlet),
    /// Nothing looks at it.
    Discarded(Counted),
}

impl Default for RoutedUpload {
    fn default() -> RoutedUpload {
        RoutedUpload::Kept(Inlet::default())
    }
}

impl RoutedUpload {
    /// No service asks for it.
    pub(super) fn discard(&mut self) {
        if matches!(self, RoutedUpload::Kept(_)) {
            *self = RoutedUpload::Discarded(Counted::default());
        }
    }

    /// What a service reads; `None` if content was discarded already.
    pub(super) fn inlet(&mut self) -> Option<&mut Inlet> {
        if matches!(self, RoutedUpload::Discarded(counted) if *counted == Counted::default()) {
            *self = RoutedUpload::default();
        }
        match self {
            RoutedUpload::Kept(inlet) => Some(inlet),
            RoutedUpload::Discarded(_) => None,
        }
    }
}

impl Upload for RoutedUpload {
    fn on_body(&mut self, bytes: &[u8]) -> usize {
        match self {
            RoutedUpload::Kept(inlet) => inlet.on_body(bytes),
            RoutedUpload::Discarded(counted) => counted.on_body(bytes),
        }
    }

    fn on_trailers(&mut self, trailers: &Trailers<'_>) {
        if let RoutedUpload::Kept(inlet) = self {
            inlet.on_trailers(trailers);
        }
    }

    fn on_end(&mut self) {
        if let RoutedUpload::Kept(inlet) = self {
            inlet.on_end();
        }
    }

    fn on_abort(&mut self) {
        if let RoutedUpload::Kept(inlet) = self {
            inlet.on_abort();
        }
    }

    fn has_room(&self) -> bool {
        matches!(self, RoutedUpload::Discarded(_)) || self.kept().is_some_and(Inlet::has_room)
    }

    fn is_wanted(&self) -> bool {
        self.kept().is_some_and(Inlet::is_wanted)
    }

    fn is_awaited(&self) -> bool {
        self.kept().is_some_and(Inlet::is_awaited)
    }

    fn is_enough(&self) -> bool {
        matches!(self, RoutedUpload::Discarded(counted) if counted.is_enough())
    }

    fn memory(&self) -> usize {
        self.kept().map_or(0, Inlet::memory)
    }
}

impl RoutedUpload {
    fn kept(&self) -> Option<&Inlet> {
        match self {
            RoutedUpload::Kept(inlet) => Some(inlet),
            RoutedUpload::Discarded(_) => None,
        }
    }
}

/// What is answered.
pub(super) type Answer = low::Response<EditedFields, RoutedContent>;

/// The content of a response.
pub(crate) enum RoutedContent {
    /// Of files, and of what the server says itself.
    Own(crate::body::Body),
    /// Of a service.
    OfService(ServiceContent<Body>),
}

impl Content for RoutedContent {
    #[inline]
    fn poll_chunk(&mut self, max: usize, cx: &low::Context<'_>) -> Poll<Result<Option<Bytes>, ContentError>> {
        match self {
            RoutedContent::Own(body) => Content::poll_chunk(body, max, cx),
            RoutedContent::OfService(content) => content.poll_chunk(max, cx),
        }
    }

    #[inline]
    fn remaining(&self) -> Option<u64> {
        match self {
            RoutedContent::Own(body) => Some(body.remaining()),
            RoutedContent::OfService(content) => content.remaining(),
        }
    }

    fn trailers(&mut self) -> Option<HeaderMap> {
        match self {
            RoutedContent::Own(_) => None,
            RoutedContent::OfService(content) => content.trailers(),
        }
    }
}
