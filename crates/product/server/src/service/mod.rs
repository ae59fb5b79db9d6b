//! A [`tower_service::Service`] of `http` types as a handler, over HTTP/3.
//!
//! The future of each request is polled on the worker's thread, while its connection acts, in memory that is reused from
//! request to request. It need not be `Send`. A panic ends one request: 500 if no head of a response has left, else the stream
//! is reset. The future is dropped when the client gives the request up or the connection is lost.
//!
//! | file | holds |
//! |---|---|
//! | request.rs | a request's head, and its future while it runs |
//! | upload.rs | its content, by a queue to a [`body::Body`] |
//! | fields.rs | the response's fields |
//! | content.rs | the response's content |
//! | http_service.rs | what a server takes as a service |
//! | function.rs | an async function as a service |
//! | shared.rs | a service whose futures run on a runtime of the program's |

mod content;
mod fields;
mod function;
mod http_service;
mod request;
mod shared;
mod upload;

pub use content::ServiceContent;
pub use fields::{KeptServiceFields, ServiceFields};
pub use function::{ServiceFn, service_fn};
pub use http_service::HttpService;
pub use request::ServiceHead;
pub use upload::Inlet;

pub(crate) use shared::OnRuntime;

use crate::low::{Context, Handler, Request, Response, Shared};
use crate::response_fields::{self, DateField, HasContent};
use bytes::Bytes;
use http::{Method, StatusCode};
pub(crate) use request::{Arrival, Callee, Polled};
use std::task::Poll;

/// Answers requests by a service.
#[derive(Debug)]
pub struct ServiceHandler<S> {
    service: S,
    shared: Shared,
    date: DateField,
}

impl<S> ServiceHandler<S> {
    /// Answers requests by `service`, which each thread has its own of.
    pub fn new(service: S, shared: Shared) -> ServiceHandler<S> {
        ServiceHandler { service, date: DateField::new(shared.clock), shared }
    }

    /// A response without content.
    fn plain<B: http_body::Body<Data = Bytes>>(
        &mut self,
        status: StatusCode,
        cx: &Context<'_>,
    ) -> Response<ServiceFields, ServiceContent<B>> {
        let map = response_fields::empty();
        let fields = ServiceFields { date: self.date.beside(&map, cx.now()), map };
        Response { status: status.as_u16(), fields, body: ServiceContent::empty() }
    }

    fn respond<B: http_body::Body<Data = Bytes>>(
        &mut self,
        method: &Method,
        response: http::Response<B>,
        cx: &Context<'_>,
    ) -> Response<ServiceFields, ServiceContent<B>> {
        let (parts, body) = response.into_parts();
        if parts.status.is_informational() {
            return self.plain(StatusCode::INTERNAL_SERVER_ERROR, cx);
        }
        // Fields that concern a connection do not exist in HTTP/3: http3 leaves them out. RFC 9114 §4.2.
        let mut map = parts.headers;
        let size = body.size_hint().exact();
        let body = match response_fields::complete((method, parts.status), &mut map, size) {
            HasContent::Yes if !body.is_end_stream() => ServiceContent::new(body, size),
            HasContent::Yes | HasContent::No => ServiceContent::empty(),
        };
        let fields = ServiceFields { date: self.date.beside(&map, cx.now()), map };
        Response { status: parts.status.as_u16(), fields, body }
    }
}

impl<S: HttpService> Handler for ServiceHandler<S> {
    type Head = ServiceHead<S::Future>;
    type Upload = Inlet;
    type Content = ServiceContent<S::Content>;
    type Fields = ServiceFields;

    fn handle(
        &mut self,
        request: Request<'_, Self>,
        cx: &Context<'_>,
    ) -> Poll<Response<ServiceFields, ServiceContent<S::Content>>> {
        let Request { head, upload, received, connection } = request;
        if let Err(status) = head.prepare() {
            return Poll::Ready(self.plain(status, cx));
        }
        match head.poll(&mut self.service, Arrival { upload, received, connection }, cx) {
            Polled::Pending => Poll::Pending,
            Polled::Answered(response) => Poll::Ready(self.respond(head.method(), response, cx)),
            Polled::Unready => Poll::Ready(self.plain(StatusCode::SERVICE_UNAVAILABLE, cx)),
            Polled::Refused(_) | Polled::Failed => {
                Poll::Ready(self.plain(StatusCode::INTERNAL_SERVER_ERROR, cx))
            }
        }
    }

    fn put_off(&mut self, cx: &Context<'_>) -> Response<ServiceFields, ServiceContent<S::Content>> {
        self.plain(StatusCode::SERVICE_UNAVAILABLE, cx)
    }

    fn shared(&self) -> Shared {
        self.shared.clone()
    }
}
