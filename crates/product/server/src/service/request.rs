//! The head of a request, and the future that answers it.

use super::http_service::HttpService;
use super::upload::Inlet;
use crate::access_log::RequestLine;
use crate::caught::caught;
use crate::connection_info::{ConnectionInfo, ConnectionView};
use crate::informational::Outlet;
use crate::low::{Context, Head, Interim, Received};
use body::Body;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http3::{HeadBuffer, HeadMemory, RequestHead, convert_in_place};
use rustls_pki_types::CertificateDer;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Wake, Waker};

/// What a field costs in a map beside its text and the 32 bytes of RFC 9114 §4.2.2, in bytes.
const FIELD: usize = 64;
/// Memory of heads that were larger than this, in bytes, is given back.
const KEPT: usize = 4_096;

/// A request and the future that answers it, in memory that is reused.
pub struct ServiceHead<F> {
    /// The head as it came.
    came: HeadBuffer,
    stage: Stage,
    method: Method,
    refusal: Option<StatusCode>,
    expects_continue: bool,
    /// Bytes of the head as it came, and what each field costs beside.
    size: usize,
    /// The text of the request's fields.
    memory: HeadMemory,
    future: Pin<Box<Option<F>>>,
    /// Made when it is first needed. What it wakes stays with the head.
    call: Option<Call>,
    /// Made with the first call of the service, for the same time.
    outlet: Option<Arc<Outlet>>,
    /// What TLS says of the connection, once it is read. It stays until the head leaves the connection.
    secured: Option<Secured>,
}

/// How far a request has come on its way to the service.
///
/// Its `http` types are made shortly before the service is called, one request after the other: the memory of the last one is free
/// again then, and is in the cache. Rejected: to make them when the head arrives, which is when those of a whole packet do.
#[derive(Default)]
#[expect(clippy::large_enum_variant, reason = "it lies in memory that is used again")]
enum Stage {
    /// There is none, or it was refused, or the service has it.
    #[default]
    Over,
    Arrived,
    Prepared(http::Request<()>),
}

/// What TLS says of a connection.
#[derive(Clone)]
struct Secured {
    server_name: Option<Arc<str>>,
    client_certificates: Option<Arc<[CertificateDer<'static>]>>,
}

impl Secured {
    fn of(connection: ConnectionView<'_>) -> Secured {
        Secured {
            server_name: connection.shared_server_name(),
            client_certificates: connection.client_certificates(),
        }
    }
}

/// What answers a request: a service, or that of a route.
pub(crate) trait Callee<F> {
    /// The content of responses.
    type Content;
    /// Why there is none.
    type Error;

    /// Whether it can be called.
    fn poll_ready(&mut self, cx: &mut std::task::Context<'_>) -> Poll<Result<(), Self::Error>>;

    /// Begins the answer to a request that arrived on the connection of `info`.
    fn call(&mut self, request: http::Request<Body>, info: ConnectionInfo) -> F;
}

impl<S: HttpService> Callee<S::Future> for S {
    type Content = <S as HttpService>::Content;
    type Error = S::Error;

    fn poll_ready(&mut self, cx: &mut std::task::Context<'_>) -> Poll<Result<(), S::Error>> {
        tower_service::Service::poll_ready(self, cx)
    }

    fn call(&mut self, mut request: http::Request<Body>, info: ConnectionInfo) -> S::Future {
        request.extensions_mut().insert(info);
        tower_service::Service::call(self, request)
    }
}

/// What arrived of a request beside its head.
pub(crate) struct Arrival<'a> {
    pub(crate) upload: &'a mut Inlet,
    pub(crate) received: Received,
    pub(crate) connection: ConnectionView<'a>,
}

/// How a request is woken.
struct Call {
    handle: Arc<WakeHandle>,
    waker: Waker,
}

impl Call {
    fn new(cx: &Context<'_>) -> Call {
        let handle = Arc::new(WakeHandle { is_made: AtomicBool::new(true), connection: cx.waker() });
        Call { waker: Waker::from(Arc::clone(&handle)), handle }
    }
}

/// Tells which of a connection's requests was woken.
struct WakeHandle {
    is_made: AtomicBool,
    connection: Waker,
}

impl Wake for WakeHandle {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_made.swap(true, Ordering::AcqRel) {
            self.connection.wake_by_ref();
        }
    }
}

/// What became of a request.
pub(crate) enum Polled<B, E> {
    Pending,
    Answered(http::Response<B>),
    /// The service takes no requests.
    Unready,
    /// The service returned an error.
    Refused(E),
    /// The service panicked.
    Failed,
}

impl<F> Default for ServiceHead<F> {
    fn default() -> ServiceHead<F> {
        ServiceHead {
            came: HeadBuffer::default(),
            stage: Stage::Over,
            method: Method::default(),
            refusal: None,
            expects_continue: false,
            size: 0,
            memory: HeadMemory::default(),
            future: Box::pin(None),
            call: None,
            outlet: None,
            secured: None,
        }
    }
}

impl<F> ServiceHead<F> {
    /// Makes the request of `http` types, if it is not made yet. To be called before [`ServiceHead::poll`].
    ///
    /// # Errors
    /// The request is refused, by this status.
    pub(crate) fn prepare(&mut self) -> Result<(), StatusCode> {
        if matches!(self.stage, Stage::Arrived) {
            let mut request = http::Request::new(());
            let written = self.came.kept().map(|head| head.write_request(&mut request, &mut self.memory));
            // A head can be valid for HTTP/3, and not for the types of `http`.
            match written {
                Some(Ok(())) => {
                    self.method.clone_from(request.method());
                    self.stage = Stage::Prepared(request);
                }
                Some(Err(_)) | None => self.refuse(StatusCode::BAD_REQUEST),
            }
        }
        self.refusal.map_or(Ok(()), Err)
    }

    fn refuse(&mut self, status: StatusCode) {
        self.stage = Stage::Over;
        self.refusal = Some(status);
    }

    /// The request, before the service has it.
    fn prepared(&mut self) -> Option<&mut http::Request<()>> {
        match self.prepare().map(|()| &mut self.stage) {
            Ok(Stage::Prepared(request)) => Some(request),
            _ => None,
        }
    }

    /// The request is this one, which came over HTTP/1.1 or 2 and lies where a copy would be made: see [`convert_in_place`].
    pub(crate) fn on_parts(&mut self, head: &RequestHead<'_>, mut parts: Parts) {
        self.size = usize::try_from(head.size()).unwrap_or(0) + FIELD * head.lines().len();
        match convert_in_place(&mut parts) {
            Ok(()) => self.on_kept(http::Request::from_parts(parts, ())),
            Err(_) => self.refuse(StatusCode::BAD_REQUEST),
        }
    }

    /// The request is this one, which was prepared before.
    pub(crate) fn on_kept(&mut self, request: http::Request<()>) {
        self.method.clone_from(request.method());
        self.stage = Stage::Prepared(request);
    }

    /// Whether there is a request that no service has.
    pub(crate) fn has_come(&self) -> bool {
        !matches!(self.stage, Stage::Over) || self.refusal.is_some()
    }

    /// A copy of a request that was prepared.
    pub(crate) fn copy(&self) -> Option<http::Request<()>> {
        match &self.stage {
            Stage::Prepared(request) => Some(request.clone()),
            Stage::Over | Stage::Arrived => None,
        }
    }

    /// The fields of a request that was prepared.
    pub(crate) fn fields(&self) -> Option<&HeaderMap> {
        match &self.stage {
            Stage::Prepared(request) => Some(request.headers()),
            Stage::Over | Stage::Arrived => None,
        }
    }

    /// The method of a request that was prepared.
    pub(crate) fn method(&self) -> &Method {
        &self.method
    }

    /// The request is for this target instead of the one that was sent.
    pub(crate) fn replace_target(&mut self, target: &[u8]) {
        let Some(request) = self.prepared() else { return };
        let mut parts = std::mem::take(request.uri_mut()).into_parts();
        parts.path_and_query = PathAndQuery::try_from(target).ok();
        match http::Uri::from_parts(parts) {
            Ok(uri) if uri.path_and_query().is_some() => *request.uri_mut() = uri,
            _ => self.refuse(StatusCode::BAD_REQUEST),
        }
    }

    /// The request has these fields, in place of what a client may have sent by names that many applications take for the same.
    pub(crate) fn replace_fields(&mut self, fields: Vec<(HeaderName, Vec<HeaderValue>)>) {
        let Some(request) = self.prepared() else { return };
        let map = request.headers_mut();
        for (name, values) in fields {
            let is_alike =
                |known: &&HeaderName| known.as_str().replace('_', "-") == name.as_str().replace('_', "-");
            let alike: Vec<HeaderName> = map.keys().filter(is_alike).cloned().collect();
            alike.iter().for_each(|name| _ = map.remove(name));
            values.into_iter().for_each(|value| _ = map.append(name.clone(), value));
        }
    }

    /// The request has `extension` among its extensions.
    pub(crate) fn extend<T: Clone + Send + Sync + 'static>(&mut self, extension: T) {
        if let Some(request) = self.prepared() {
            request.extensions_mut().insert(extension);
        }
    }

    /// Calls the service with the request that was prepared, or polls its future if that was woken.
    pub(crate) fn poll<S: Callee<F>>(
        &mut self,
        service: &mut S,
        arrival: Arrival<'_>,
        cx: &Context<'_>,
    ) -> Polled<S::Content, S::Error>
    where
        F: Future<Output = Result<http::Response<S::Content>, S::Error>>,
    {
        let call = self.call.take().unwrap_or_else(|| Call::new(cx));
        if !call.handle.is_made.swap(false, Ordering::AcqRel) && matches!(self.stage, Stage::Over) {
            self.call = Some(call);
            return Polled::Pending;
        }
        // One guard for all that the application does.
        let polled = caught(|| self.advance(service, arrival, (&call.waker, cx)));
        self.call = Some(call);
        let polled = polled.unwrap_or(Polled::Failed);
        if !matches!(polled, Polled::Pending) {
            self.end();
        }
        polled
    }

    fn advance<S: Callee<F>>(
        &mut self,
        service: &mut S,
        arrival: Arrival<'_>,
        (waker, cx): (&Waker, &Context<'_>),
    ) -> Polled<S::Content, S::Error>
    where
        F: Future<Output = Result<http::Response<S::Content>, S::Error>>,
    {
        let mut task = std::task::Context::from_waker(waker);
        if matches!(self.stage, Stage::Prepared(_)) {
            match service.poll_ready(&mut task) {
                Poll::Pending => return Polled::Pending,
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Polled::Unready,
            }
        }
        if let Stage::Prepared(request) = std::mem::take(&mut self.stage) {
            let info = self.info(arrival.connection, waker);
            let content = arrival.upload.body(arrival.received, cx);
            self.future.set(Some(service.call(request.map(|()| content), info)));
        }
        let Some(future) = self.future.as_mut().as_pin_mut() else { return Polled::Failed };
        match future.poll(&mut task) {
            Poll::Pending => Polled::Pending,
            Poll::Ready(Ok(response)) => Polled::Answered(response),
            Poll::Ready(Err(error)) => Polled::Refused(error),
        }
    }

    fn info(&mut self, connection: ConnectionView<'_>, waker: &Waker) -> ConnectionInfo {
        let outlet = self.outlet.get_or_insert_with(|| {
            let outlet = Arc::new(Outlet::default());
            outlet.lock().set_waker(waker);
            outlet
        });
        let informational = outlet.informational();
        let Secured { server_name, client_certificates } =
            self.secured.get_or_insert_with(|| Secured::of(connection)).clone();
        let (peer, local, alpn) = (connection.peer(), connection.local(), connection.alpn());
        let early = connection.early.cloned();
        ConnectionInfo { peer, local, alpn, server_name, client_certificates, informational, early }
    }

    /// Drops the future. A panic in there must not end more than the request.
    fn end(&mut self) {
        if self.future.is_some() {
            let _ = caught(|| self.future.set(None));
        }
    }
}

impl<F> Head for ServiceHead<F> {
    fn on_request(&mut self, head: &RequestHead<'_>) {
        self.size = usize::try_from(head.size()).unwrap_or(0) + FIELD * head.lines().len();
        // RFC 9110 §10.1.1
        let expected = head.field(b"expect");
        self.expects_continue = expected.is_some_and(|what| what.eq_ignore_ascii_case(b"100-continue"));
        self.came.keep(head);
        self.stage = Stage::Arrived;
    }

    fn on_refused(&mut self, status: u16) {
        self.refusal = Some(StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST));
    }

    fn recycle(&mut self) {
        self.end();
        self.outlet.iter().for_each(|outlet| outlet.close());
        self.stage = Stage::Over;
        self.refusal = None;
        self.expects_continue = false;
        self.size = 0;
        self.came.clear();
        if self.came.memory() > KEPT {
            self.came = HeadBuffer::default();
        }
        if self.memory.bytes() > KEPT {
            self.memory = HeadMemory::default();
        }
    }

    fn leave_connection(&mut self) {
        self.secured = None;
    }

    fn memory(&self) -> usize {
        size_of::<ServiceHead<F>>()
            + size_of::<Option<F>>()
            + self.size
            + self.came.memory()
            + self.memory.bytes()
    }

    fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    fn next_interim(&mut self) -> Option<Interim> {
        let outlet = self.outlet.as_ref()?;
        let next = outlet.take();
        if next.is_none() && matches!(self.stage, Stage::Over) && self.future.is_none() {
            // The final response follows.
            outlet.close();
        }
        next
    }

    fn has_begun(&self) -> bool {
        self.future.is_some()
    }

    fn line(&self) -> RequestLine<'_> {
        let Some(head) = self.came.kept() else { return RequestLine::default() };
        RequestLine {
            method: Some(head.method()),
            host: head.authority(),
            target: head.path(),
            referer: head.field(b"referer"),
            user_agent: head.field(b"user-agent"),
        }
    }
}

impl<F> Drop for ServiceHead<F> {
    fn drop(&mut self) {
        self.end();
    }
}
