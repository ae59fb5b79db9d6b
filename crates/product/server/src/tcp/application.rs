//! A request as hyper hands it over, to a service of the application's and back.
//!
//! The service is cloned for each request. Content streams in both directions: hyper's flow control holds back what the
//! application does not read. A panic ends one request: 500 if no head of a response has left, else the stream over HTTP/2 and
//! the connection over HTTP/1.1.

use super::answer::{Answer, ConnectionContext};
use super::body::RequestGuard;
use super::stream::Stream;
use super::tcp_server::{Served, Setup, serve_here};
use super::timeouts::ConnectionTimeouts;
use crate::access_log::Protocol;
use crate::caught::{caught, poll_caught};
use crate::informational::{self, Outlet};
use crate::monotonic;
use crate::response_fields::{self as fields, HasContent};
use crate::service::HttpService;
use ::body::{Body, BodyError};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use std::fmt::Display;
use std::future::{Future, poll_fn};
use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

/// Accepts from `listeners` and serves until the order to stop; then waits for what is under way, for `drain` of
/// [`super::Limits`] at most. To be awaited in a local runtime, which others may share.
///
/// # Errors
/// The operating system has no descriptors or memory left to begin with.
pub(crate) async fn serve_application_here(
    listeners: Vec<TcpListener>,
    setup: Setup,
    service: impl HttpService,
) -> io::Result<Served> {
    serve_here(listeners, setup, Application(service)).await
}

/// The application of a thread.
struct Application<S>(S);

/// The application for one connection.
struct Requests<S> {
    service: S,
    /// For HTTP/1.1, which answers one request after the other.
    outlet: Arc<Outlet>,
    context: Rc<ConnectionContext>,
}

// Nothing in it is pinned.
impl<S> Unpin for Requests<S> {}

/// A response to come.
type Coming<B> = Pin<Box<dyn Future<Output = io::Result<Response<Outgoing<B>>>>>>;

impl<S: HttpService> Answer for Application<S> {
    type Content = Outgoing<S::Content>;
    type Future = Coming<S::Content>;
    type Service = Requests<S>;

    fn service(&self, context: ConnectionContext) -> Requests<S> {
        Requests { service: self.0.clone(), outlet: Arc::default(), context: Rc::new(context) }
    }
}

impl<S: HttpService> hyper::service::Service<Request<Incoming>> for Requests<S> {
    type Response = Response<Outgoing<S::Content>>;
    type Error = io::Error;
    type Future = Coming<S::Content>;

    fn call(&self, mut request: Request<Incoming>) -> Coming<S::Content> {
        let mut info = self.context.info.clone();
        let mut interims = None;
        if self.context.protocol == Protocol::Http1 && informational::is_known_to(request.version()) {
            info.informational = self.outlet.informational();
            interims =
                Some(Interims { outlet: Arc::clone(&self.outlet), stream: self.context.stream.clone() });
        }
        request.extensions_mut().insert(info);
        let account = RequestGuard::new(&self.context, &request, monotonic::now());
        Box::pin(answer(self.service.clone(), request, account, interims))
    }
}

/// Informational responses to a request over HTTP/1.1. hyper's server sends none but 100 (hyperium/hyper#4114), so they are written
/// between its messages. Over HTTP/2 only hyper could.
struct Interims {
    outlet: Arc<Outlet>,
    stream: Stream,
}

impl Interims {
    /// Writes those that wait. If the response to an earlier request has not left, they wait on.
    fn write(&self) {
        self.stream.write_between(|| self.outlet.take());
    }
}

impl Drop for Interims {
    fn drop(&mut self) {
        self.outlet.close();
    }
}

/// Answers one request.
async fn answer<S: HttpService>(
    mut service: S,
    request: Request<Incoming>,
    account: RequestGuard,
    interims: Option<Interims>,
) -> io::Result<Response<Outgoing<S::Content>>> {
    let method = request.method().clone();
    // What the rules of HTTP refuse does not reach the application. RFC 6585 §5: 431.
    let refusal = account.head.refusal().map(|(status, _)| status);
    if let Some(status) = refusal.or_else(|| account.head.is_too_large().then_some(431)) {
        return Ok(plain(status, account));
    }
    if account.context.timeouts.is_short() {
        // RFC 9110 §15.6.4
        return Ok(plain(503, account));
    }
    let (parts, content) = request.into_parts();
    let progress = Arc::new(Progress::default());
    let body = if http_body::Body::is_end_stream(&content) {
        progress.is_whole.store(true, Ordering::Relaxed);
        Body::empty()
    } else {
        Body::new(Counted { content, progress: Arc::clone(&progress) })
    };
    let mut request = Some(Request::from_parts(parts, body));
    let mut future = None;
    if let Some(interims) = &interims {
        poll_fn(|cx| {
            interims.outlet.lock().set_waker(cx.waker());
            Poll::Ready(())
        })
        .await;
    }
    let answered = poll_fn(|cx| {
        // Bytes that the application has read since count as the client's progress.
        count(&account.context.timeouts, &progress);
        let polled = poll_caught(|| {
            if request.is_some() {
                ready!(service.poll_ready(cx))?;
                future = request.take().map(|request| Box::pin(service.call(request)));
            }
            match &mut future {
                Some(future) => future.as_mut().poll(cx),
                None => Poll::Pending,
            }
        });
        interims.iter().for_each(Interims::write);
        polled
    });
    let answered = answered.await;
    drop(interims);
    let _ = caught(|| drop(future));
    match answered {
        Ok(Ok(response)) => Ok(respond(&method, response, account, progress)),
        Ok(Err(_)) | Err(()) => Ok(plain(500, account)),
    }
}

fn respond<B>(
    method: &Method,
    response: Response<B>,
    mut account: RequestGuard,
    progress: Arc<Progress>,
) -> Response<Outgoing<B>>
where
    B: http_body::Body<Data = Bytes>,
{
    let (mut parts, body) = response.into_parts();
    if parts.status.is_informational() {
        return plain(500, account);
    }
    // RFC 9112 §9.6: over HTTP/1.1 the application may end the connection after its response. It does not choose how content is framed.
    let connection =
        parts.headers.remove(header::CONNECTION).filter(|_| account.context.protocol == Protocol::Http1);
    fields::remove_connection_fields(&mut parts.headers);
    parts.headers.extend(connection.map(|value| (header::CONNECTION, value)));
    if !progress.is_whole.load(Ordering::Relaxed) {
        account.context.timeouts.on_unread();
        if account.context.protocol == Protocol::Http1 {
            // The next request would come behind content that is not read.
            parts.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
    account.status = parts.status.as_u16();
    let size = body.size_hint().exact();
    account.ahead = account.context.timeouts.reserve(size.unwrap_or(u64::MAX));
    let has_content = fields::complete((method, parts.status), &mut parts.headers, size);
    announce(&mut parts.headers, &account);
    let has_content = has_content == HasContent::Yes && !body.is_end_stream();
    let body = has_content.then(|| Box::pin(body));
    Response::from_parts(parts, Outgoing { body, account, progress })
}

/// A response without content.
fn plain<B>(status: u16, mut account: RequestGuard) -> Response<Outgoing<B>> {
    account.status = status;
    let mut response = Response::new(Outgoing { body: None, account, progress: Arc::default() });
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut fields = fields::empty();
    announce(&mut fields, &response.body().account);
    *response.headers_mut() = fields;
    response
}

/// Adds what each response says: RFC 9110 §6.6.1, RFC 7838.
fn announce(fields: &mut HeaderMap, account: &RequestGuard) {
    account.context.thread_state.date(fields, monotonic::now());
    account.announce_end(fields);
    if let Some(alt_svc) = account.context.maps.borrow().alt_svc() {
        fields.insert(header::ALT_SVC, alt_svc.clone());
    }
}

/// The content of a request, which tells how much of it was read.
struct Counted {
    content: Incoming,
    progress: Arc<Progress>,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = ready!(Pin::new(&mut self.content).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.progress.read.fetch_add(bytes as u64, Ordering::Relaxed);
            }
            None => self.progress.is_whole.store(true, Ordering::Relaxed),
            Some(Err(_)) => {}
        }
        if http_body::Body::is_end_stream(&self.content) {
            self.progress.is_whole.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(|error| BodyError::Source(error.into()))))
    }

    fn is_end_stream(&self) -> bool {
        http_body::Body::is_end_stream(&self.content)
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }
}

/// What hyper sends.
pub(super) struct Outgoing<B> {
    /// `None`: nothing (more).
    body: Option<Pin<Box<B>>>,
    account: RequestGuard,
    progress: Arc<Progress>,
}

impl<B> http_body::Body for Outgoing<B>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Display,
{
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = &mut *self;
        count(&this.account.context.timeouts, &this.progress);
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        let polled = ready!(poll_caught(|| body.as_mut().poll_frame(cx)));
        count(&this.account.context.timeouts, &this.progress);
        let ended = match polled {
            Ok(Some(Ok(frame))) => {
                this.account.sent += frame.data_ref().map_or(0, Bytes::len) as u64;
                return Poll::Ready(Some(Ok(frame)));
            }
            Ok(None) => None,
            Ok(Some(Err(error))) => Some(Err(io::Error::other(error.to_string()))),
            Err(()) => Some(Err(io::Error::other("the application has panicked"))),
        };
        let body = this.body.take();
        let _ = caught(|| drop(body));
        Poll::Ready(ended)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), |body| body.size_hint())
    }
}

/// How much of a request's content the application has read. It may do so on any thread.
#[derive(Debug, Default)]
struct Progress {
    /// Bytes since the last look.
    read: AtomicU64,
    is_whole: AtomicBool,
}

/// Counts as the client's progress what the application has read since the last look.
fn count(timeouts: &ConnectionTimeouts, progress: &Progress) {
    timeouts.on_content(usize::try_from(progress.read.swap(0, Ordering::Relaxed)).unwrap_or(usize::MAX));
}
