//! A request as hyper hands it over, to the handler and back.
//!
//! Content of a request is received and thrown away before the answer, up to [`MAX_CONTENT`] bytes: over HTTP/1.1 the next
//! request follows it, and an answer to a POST means that it has arrived.

use super::body::{Account, Content};
use super::pulse::{self, Pulse};
use super::site::Site;
use crate::access_log::Protocol;
use crate::body::Body;
use crate::request::{Head, MAX_CONTENT};
use crate::response;
use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::service::Service;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// Answers the requests of one connection.
pub(super) struct Requests {
    pub(super) site: Rc<Site>,
    pub(super) pulse: Rc<Pulse>,
    pub(super) peer: IpAddr,
    pub(super) protocol: Protocol,
}

impl Service<Request<Incoming>> for Requests {
    type Response = Response<Content>;
    type Error = io::Error;
    type Future = Answer;

    fn call(&self, request: Request<Incoming>) -> Answer {
        let began = pulse::now();
        self.pulse.on_request(began);
        let mut head = self.site.head();
        let refusal = read_head(&request, &mut head);
        let account = Account {
            site: Rc::clone(&self.site),
            pulse: Rc::clone(&self.pulse),
            head,
            peer: self.peer,
            protocol: self.protocol,
            began,
            status: 0,
            sent: 0,
        };
        let content = request.into_body();
        let content = (!content.is_end_stream()).then_some(content);
        Answer { account: Some(account), content, received: 0, refusal }
    }
}

/// Takes what we read of a request into `head`. Returns the status and reason of a refusal, if it must be one.
fn read_head(request: &Request<Incoming>, head: &mut Head) -> Option<(u16, &'static str)> {
    let uri = request.uri();
    head.on_field(b":method", request.method().as_str().as_bytes());
    head.on_field(b":path", uri.path_and_query().map_or("", |target| target.as_str()).as_bytes());
    if let Some(authority) = uri.authority() {
        head.on_field(b":authority", authority.as_str().as_bytes());
    }
    for (name, value) in request.headers() {
        head.on_field(name.as_str().as_bytes(), value.as_bytes());
    }
    if head.announces_too_much() {
        return Some((413, ""));
    }
    // RFC 9112 §3.2.
    if request.version() == Version::HTTP_11 && request.headers().get_all(header::HOST).iter().count() != 1 {
        return Some((400, "HTTP/1.1 wants one host field"));
    }
    None
}

/// The answer to one request, when its content has been received.
pub(super) struct Answer {
    /// There until it is answered.
    account: Option<Account>,
    content: Option<Incoming>,
    received: u64,
    refusal: Option<(u16, &'static str)>,
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
                        account.pulse.on_content(len);
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
        ready!(self.poll_content(cx))?;
        let Some(account) = self.account.take() else { return Poll::Pending };
        let is_unread = self.content.take().is_some();
        let now = if self.received > 0 { pulse::now() } else { account.began };
        let answer = {
            let mut handler = account.site.handler.borrow_mut();
            match self.refusal {
                Some((status, reason)) => handler.refuse(status, reason, now),
                None => handler.handle(&account.head, now),
            }
        };
        let (pulse, protocol) = (Rc::clone(&account.pulse), account.protocol);
        let mut response = respond(account, answer);
        if is_unread {
            pulse.on_unread();
            if protocol == Protocol::Http1 {
                // The next request would come behind what nobody reads.
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
        }
        Poll::Ready(Ok(response))
    }
}

fn respond(mut account: Account, answer: response::Response) -> Response<Content> {
    account.status = answer.status;
    let fields = account.site.maps.borrow_mut().map(answer.status, answer.fields);
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
