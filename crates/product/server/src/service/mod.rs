//! A [`tower_service::Service`] of `http` types as a handler, over HTTP/3.
//!
//! The future of each request is polled on the worker's thread, while its connection acts, in memory that is reused from
//! request to request. It need not be `Send`. A panic ends one request: 500 if no head of a response has left, else the stream
//! is reset. The future is dropped when the client gives the request up or the connection is lost.
//!
//! | file | holds |
//! |---|---|
//! | request.rs | a request's head, and its future while it runs |
//! | upload.rs | its content, by a queue to a [`Body`] |
//! | content.rs | the response's content |
//! | function.rs | an async function as a service |
//! | shared.rs | a service whose futures run on a runtime of the program's |

mod content;
mod function;
mod request;
mod shared;
mod upload;

pub use content::ServiceContent;
pub use function::{ServiceFn, service_fn};
pub use request::ServiceHead;
pub use upload::Inlet;

pub(crate) use shared::OnRuntime;

use crate::date::Clock;
use crate::low::{Context, Handler, Request, Response, Shared};
use body::Body;
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use request::{Arrival, Polled};
use std::fmt::Display;
use std::task::Poll;
use tower_service::Service;

/// Fields that concern one connection of HTTP/1.1. RFC 9114 §4.2.
const CONNECTION_FIELDS: [HeaderName; 5] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Answers requests by a service.
#[derive(Debug)]
pub struct ServiceHandler<S> {
    service: S,
    shared: Shared,
    clock: Clock,
}

impl<S> ServiceHandler<S> {
    /// Answers requests by `service`, which each thread has its own of.
    pub fn new(service: S, shared: Shared) -> ServiceHandler<S> {
        ServiceHandler { service, clock: Clock::new(shared.clock), shared }
    }

    /// A response without content.
    fn plain<B: http_body::Body<Data = Bytes>>(
        &mut self,
        status: StatusCode,
        cx: &Context<'_>,
    ) -> Response<HeaderMap, ServiceContent<B>> {
        let mut fields = HeaderMap::new();
        fields.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        self.date(&mut fields, cx);
        Response { status: status.as_u16(), fields, body: ServiceContent::empty() }
    }

    /// RFC 9110 §6.6.1: an origin server with a clock sends Date.
    fn date(&mut self, fields: &mut HeaderMap, cx: &Context<'_>) {
        self.clock.advance(cx.now());
        if !fields.contains_key(header::DATE)
            && let Ok(date) = HeaderValue::from_bytes(self.clock.text())
        {
            fields.insert(header::DATE, date);
        }
    }

    fn respond<B: http_body::Body<Data = Bytes>>(
        &mut self,
        method: &Method,
        response: http::Response<B>,
        cx: &Context<'_>,
    ) -> Response<HeaderMap, ServiceContent<B>> {
        let (parts, body) = response.into_parts();
        if parts.status.is_informational() {
            return self.plain(StatusCode::INTERNAL_SERVER_ERROR, cx);
        }
        let mut fields = parts.headers;
        for name in &CONNECTION_FIELDS {
            fields.remove(name);
        }
        self.date(&mut fields, cx);
        // RFC 9110 §6.4.1
        let has_none = matches!(parts.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let size = body.size_hint().exact();
        if let Some(size) = size.filter(|size| !has_none && (*method != Method::HEAD || *size > 0)) {
            fields.entry(header::CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(size));
        }
        let body = if has_none || *method == Method::HEAD || body.is_end_stream() {
            ServiceContent::empty()
        } else {
            ServiceContent::new(body, size)
        };
        Response { status: parts.status.as_u16(), fields, body }
    }
}

impl<S, B> Handler for ServiceHandler<S>
where
    S: Service<http::Request<Body>, Response = http::Response<B>> + 'static,
    S::Error: Display,
    S::Future: 'static,
    B: http_body::Body<Data = Bytes> + 'static,
{
    type Head = ServiceHead<S::Future>;
    type Upload = Inlet;
    type Content = ServiceContent<B>;
    type Fields = HeaderMap;

    fn handle(
        &mut self,
        request: Request<'_, Self>,
        cx: &Context<'_>,
    ) -> Poll<Response<HeaderMap, ServiceContent<B>>> {
        let Request { head, upload, received, connection } = request;
        if let Some(status) = head.refusal() {
            return Poll::Ready(self.plain(status, cx));
        }
        match head.poll(&mut self.service, Arrival { upload, received, connection }, cx) {
            Polled::Pending => Poll::Pending,
            Polled::Answered(response) => Poll::Ready(self.respond(head.method(), response, cx)),
            Polled::Unready => Poll::Ready(self.plain(StatusCode::SERVICE_UNAVAILABLE, cx)),
            Polled::Failed => Poll::Ready(self.plain(StatusCode::INTERNAL_SERVER_ERROR, cx)),
        }
    }

    fn put_off(&mut self, cx: &Context<'_>) -> Response<HeaderMap, ServiceContent<B>> {
        self.plain(StatusCode::SERVICE_UNAVAILABLE, cx)
    }

    fn shared(&self) -> Shared {
        self.shared.clone()
    }
}

/// A future whose panics end one request.
pub(crate) fn caught<T>(act: impl FnOnce() -> T) -> Result<T, ()> {
    // What panicked is not used again: its future or body is dropped.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).map_err(drop)
}

/// Polls a future that may panic.
pub(crate) fn poll_caught<T>(poll: impl FnOnce() -> Poll<T>) -> Poll<Result<T, ()>> {
    match caught(poll) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(result)) => Poll::Ready(Ok(result)),
        Err(()) => Poll::Ready(Err(())),
    }
}
