//! The head of a request, and the future that answers it.

use super::upload::Inlet;
use crate::access_log::RequestLine;
use crate::caught::{caught, poll_caught};
use crate::connection_info::{ConnectionInfo, ConnectionView};
use crate::informational::Outlet;
use crate::low::{Context, Head, Interim, Received};
use body::Body;
use http::header::{self, HeaderValue};
use http::{Method, StatusCode, Uri};
use http3::RequestHead;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Wake, Waker};
use tower_service::Service;

/// What a field costs in a map beside its text, in bytes.
const FIELD: usize = 96;

/// A request and the future that answers it, in memory that is reused.
pub struct ServiceHead<F> {
    /// Until the service is called.
    request: Option<http::Request<()>>,
    refusal: Option<StatusCode>,
    expects_continue: bool,
    /// Bytes of the head as it came, and what each field costs beside.
    size: usize,
    logged: Logged,
    future: Pin<Box<Option<F>>>,
    /// Made when it is first needed. Heads stay with their connection.
    call: Option<(Arc<WakeHandle>, Waker)>,
    /// Made with the first call of the service, for the same time.
    outlet: Option<Arc<Outlet>>,
    /// The name that the client asked for, once it is read. It stays, as heads stay with their connection.
    server_name: Option<Option<Arc<str>>>,
}

/// What arrived of a request beside its head.
pub(super) struct Arrival<'a> {
    pub(super) upload: &'a mut Inlet,
    pub(super) received: Received,
    pub(super) connection: ConnectionView<'a>,
}

/// What the log says of a request. Clones of it share its memory.
#[derive(Default)]
struct Logged {
    method: Method,
    uri: Uri,
    referer: Option<HeaderValue>,
    user_agent: Option<HeaderValue>,
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
pub(super) enum Polled<B> {
    Pending,
    Answered(http::Response<B>),
    /// The service takes no requests.
    Unready,
    /// The service returned an error, or panicked.
    Failed,
}

impl<F> Default for ServiceHead<F> {
    fn default() -> ServiceHead<F> {
        ServiceHead {
            request: None,
            refusal: None,
            expects_continue: false,
            size: 0,
            logged: Logged::default(),
            future: Box::pin(None),
            call: None,
            outlet: None,
            server_name: None,
        }
    }
}

impl<F> ServiceHead<F> {
    pub(super) fn refusal(&self) -> Option<StatusCode> {
        self.refusal
    }

    pub(super) fn method(&self) -> &Method {
        &self.logged.method
    }

    /// The waker of this request, if it was woken or has not been polled.
    fn take_call(&mut self, cx: &Context<'_>) -> Option<Waker> {
        let (call, waker) = self.call.get_or_insert_with(|| {
            let call = Arc::new(WakeHandle { is_made: AtomicBool::new(true), connection: cx.waker() });
            (Arc::clone(&call), Waker::from(call))
        });
        let is_new = self.request.is_some();
        (call.is_made.swap(false, Ordering::AcqRel) || is_new).then(|| waker.clone())
    }

    /// WakeList the service, or polls its future if that was woken.
    pub(super) fn poll<S, B>(&mut self, service: &mut S, arrival: Arrival<'_>, cx: &Context<'_>) -> Polled<B>
    where
        S: Service<http::Request<Body>, Response = http::Response<B>, Future = F>,
        F: Future<Output = Result<http::Response<B>, S::Error>>,
    {
        let Some(waker) = self.take_call(cx) else { return Polled::Pending };
        let mut task = std::task::Context::from_waker(&waker);
        if self.request.is_some() {
            match poll_caught(|| service.poll_ready(&mut task)) {
                Poll::Pending => return Polled::Pending,
                Poll::Ready(Ok(Ok(()))) => {}
                Poll::Ready(Ok(Err(_))) => return Polled::Unready,
                Poll::Ready(Err(())) => return Polled::Failed,
            }
        }
        if let Some(mut request) = self.request.take() {
            request.extensions_mut().insert(self.info(arrival.connection, &waker));
            let content = arrival.upload.body(arrival.received, &cx.waker());
            let Ok(future) = caught(|| service.call(request.map(|()| content))) else {
                return Polled::Failed;
            };
            self.future.set(Some(future));
        }
        let Some(future) = self.future.as_mut().as_pin_mut() else { return Polled::Failed };
        let polled = match poll_caught(|| future.poll(&mut task)) {
            Poll::Pending => return Polled::Pending,
            Poll::Ready(Ok(Ok(response))) => Polled::Answered(response),
            Poll::Ready(Ok(Err(_)) | Err(())) => Polled::Failed,
        };
        self.end();
        polled
    }

    fn info(&mut self, connection: ConnectionView<'_>, waker: &Waker) -> ConnectionInfo {
        let outlet = self.outlet.get_or_insert_with(|| {
            let outlet = Arc::new(Outlet::default());
            outlet.lock().set_waker(waker);
            outlet
        });
        let informational = outlet.informational();
        let server_name = self.server_name.get_or_insert_with(|| connection.server_name().map(Arc::from));
        let server_name = server_name.clone();
        let (peer, local) = (connection.peer(), connection.local());
        let early = connection.early.cloned();
        ConnectionInfo { peer, local, alpn: "h3", server_name, informational, early }
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
        self.size = head.lines().map(|line| line.name.len() + line.value.len() + FIELD).sum();
        match head.to_request() {
            Ok(request) => {
                let fields = request.headers();
                let is_continue =
                    |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
                self.expects_continue = fields.get(header::EXPECT).is_some_and(is_continue);
                self.logged = Logged {
                    method: request.method().clone(),
                    uri: request.uri().clone(),
                    referer: fields.get(header::REFERER).cloned(),
                    user_agent: fields.get(header::USER_AGENT).cloned(),
                };
                self.request = Some(request);
            }
            // Valid for HTTP/3, and not for the types of `http`.
            Err(_) => self.refusal = Some(StatusCode::BAD_REQUEST),
        }
    }

    fn on_refused(&mut self, status: u16) {
        self.refusal = Some(StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST));
    }

    fn recycle(&mut self) {
        self.end();
        self.outlet.iter().for_each(|outlet| outlet.close());
        self.request = None;
        self.refusal = None;
        self.expects_continue = false;
        self.size = 0;
        self.logged = Logged::default();
    }

    fn memory(&self) -> usize {
        size_of::<ServiceHead<F>>() + size_of::<Option<F>>() + self.size
    }

    fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    fn next_interim(&mut self) -> Option<Interim> {
        let outlet = self.outlet.as_ref()?;
        let next = outlet.take();
        if next.is_none() && self.request.is_none() && self.future.is_none() {
            // The final response follows.
            outlet.close();
        }
        next
    }

    fn has_begun(&self) -> bool {
        self.future.is_some()
    }

    fn line(&self) -> RequestLine<'_> {
        let target = self.logged.uri.path_and_query().map(|target| target.as_str().as_bytes());
        RequestLine {
            method: Some(self.logged.method.as_str().as_bytes()),
            target,
            referer: self.logged.referer.as_ref().map(HeaderValue::as_bytes),
            user_agent: self.logged.user_agent.as_ref().map(HeaderValue::as_bytes),
        }
    }
}

impl<F> Drop for ServiceHead<F> {
    fn drop(&mut self) {
        self.end();
    }
}
