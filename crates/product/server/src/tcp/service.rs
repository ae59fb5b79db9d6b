//! A request as hyper hands it over, to the handler of files and back.
//!
//! Content of a request is received and thrown away before the answer, up to [`MAX_CONTENT`] bytes: over HTTP/1.1 the next
//! request follows it, and an answer to a POST means that it has arrived. After an answer that does not wait for it, it is
//! received and thrown away too, within bounds.

use super::answer::{Answer as Answers, ConnectionContext};
use super::body::{Content, RequestGuard};
use super::timeouts::ConnectionTimeouts;
use crate::access_log::Protocol;
use crate::body::Body;
use crate::handler::Files;
use crate::monotonic;
use crate::request::{MAX_CONTENT, MAX_DISCARDED, Refusal};
use crate::response;
use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::service::Service;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// How long the content of a request that was answered may pause.
const QUIET: std::time::Duration = std::time::Duration::from_secs(5);

/// The files of a thread.
pub(super) type SharedFiles = Rc<RefCell<Files>>;

impl Answers for SharedFiles {
    type Content = Content;
    type Future = Answer;
    type Service = Requests;

    fn service(&self, context: ConnectionContext) -> Requests {
        Requests { handler: Rc::clone(self), context: Rc::new(context) }
    }
}

/// Answers the requests of one connection.
pub(super) struct Requests {
    handler: SharedFiles,
    context: Rc<ConnectionContext>,
}

impl Service<Request<Incoming>> for Requests {
    type Response = Response<Content>;
    type Error = io::Error;
    type Future = Answer;

    fn call(&self, request: Request<Incoming>) -> Answer {
        let began = monotonic::now();
        let mut account = RequestGuard::new(&self.context, &request, began);
        if account.head.announces_too_much() {
            account.head.refuse(413, "");
        }
        let content = request.into_body();
        let content = (!content.is_end_stream()).then_some(content);
        let early = content.as_ref().and_then(|_| early(&self.handler, &account));
        let refusal = account.head.refusal();
        Answer {
            handler: Rc::clone(&self.handler),
            account: Some(account),
            content,
            received: 0,
            refusal,
            early,
        }
    }
}

/// What a client hears that waits before it sends content. RFC 9110 §10.1.1: what the head alone decides; hyper says 100
/// (Continue) over HTTP/1.1 when the content is asked for, and cannot over HTTP/2.
fn early(handler: &SharedFiles, account: &RequestGuard) -> Option<response::Response> {
    if !account.head.expects_continue() || account.context.timeouts.is_short() {
        return None;
    }
    // Where the disk must be asked first, the content is.
    match handler.borrow_mut().poll_handle(&account.head, account.began, &|| None) {
        Poll::Ready(response) => {
            (account.context.protocol == Protocol::Http2 || response.status >= 300).then_some(response)
        }
        Poll::Pending => None,
    }
}

/// Receives and throws away what still comes of a request that was answered: some clients look for an answer only when they
/// have sent all. Ends after [`MAX_DISCARDED`] bytes, or [`QUIET`] without any.
pub(super) async fn discard(mut content: Incoming, timeouts: Rc<ConnectionTimeouts>) {
    let mut left = MAX_DISCARDED;
    loop {
        let next = poll_fn(|cx| Pin::new(&mut content).poll_frame(cx));
        let Ok(Some(Ok(frame))) = tokio::time::timeout(QUIET, next).await else { return };
        let len = frame.data_ref().map_or(0, Bytes::len);
        timeouts.on_content(len);
        match left.checked_sub(len as u64) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

/// The answer to one request, when its content has been received.
pub(super) struct Answer {
    handler: SharedFiles,
    /// There until it is answered.
    account: Option<RequestGuard>,
    content: Option<Incoming>,
    received: u64,
    refusal: Option<Refusal>,
    /// The answer does not wait for the content.
    early: Option<response::Response>,
}

impl Answer {
    /// Receives the content to its end, or until it is refused.
    fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(content) = self.content.as_mut().filter(|_| self.refusal.is_none()) {
            match ready!(Pin::new(content).poll_frame(cx)) {
                None => self.content = None,
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                Some(Ok(frame)) => {
                    let len = frame.data_ref().map_or(0, Bytes::len);
                    self.received += len as u64;
                    if let Some(account) = &self.account {
                        account.context.timeouts.on_content(len);
                    }
                    if self.received > MAX_CONTENT {
                        self.refusal = Some((413, ""));
                    }
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Future for Answer {
    type Output = io::Result<Response<Content>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.early.is_none() {
            ready!(self.poll_content(cx))?;
        }
        let early = self.early.take();
        let Some(account) = &self.account else { return Poll::Pending };
        let now = if self.received > 0 { monotonic::now() } else { account.began };
        let answer = match (early, self.refusal) {
            (Some(early), _) => early,
            (None, Some((status, reason))) => self.handler.borrow_mut().refuse(status, reason, now),
            (None, None) => {
                let mut handler = self.handler.borrow_mut();
                if account.context.timeouts.is_short() {
                    handler.put_off(now)
                } else {
                    ready!(handler.poll_handle(&account.head, now, &|| Some(cx.waker().clone())))
                }
            }
        };
        let unread = self.content.take();
        let Some(account) = self.account.take() else { return Poll::Pending };
        let context = unread.as_ref().map(|_| Rc::clone(&account.context));
        let mut response = respond(account, answer);
        if let (Some(content), Some(context)) = (unread, context) {
            context.timeouts.on_unread();
            tokio::task::spawn_local(discard(content, Rc::clone(&context.timeouts)));
            if context.protocol == Protocol::Http1 {
                // The next request would follow content that is never read.
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
        }
        Poll::Ready(Ok(response))
    }
}

fn respond(mut account: RequestGuard, answer: response::Response) -> Response<Content> {
    account.status = answer.status;
    account.ahead = account.context.timeouts.reserve(answer.body.remaining());
    let mut fields = account.context.maps.borrow_mut().map(answer.status, answer.fields);
    account.announce_end(&mut fields);
    let mut response = Response::new(Content { body: answer.body, account, held: Bytes::new() });
    match StatusCode::from_u16(answer.status) {
        Ok(status) => *response.status_mut() = status,
        // The handler has none of these.
        Err(_) => {
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response.body_mut().body = Body::Empty;
        }
    }
    *response.headers_mut() = fields;
    response
}
