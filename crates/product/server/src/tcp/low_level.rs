//! A low-level handler over HTTP/1.1 and 2: the bridge between hyper and [`Handler`].
//!
//! What it costs beside HTTP/3: a future for each request, a copy of its head, a `HeaderMap` of the response's fields unless they are one. Content of
//! requests is lent from hyper's buffers; what the handler does not take stays here, and hyper's flow control holds back the client.
//! Content of responses is handed over. A panic ends one request: 500 if no head of a response has left, else the stream over
//! HTTP/2 and the connection over HTTP/1.1.

use super::ThreadCounters;
use super::answer::{Answer, ConnectionContext};
use super::body::RequestGuard;
use super::exchange::{Content, Receiving, context};
use super::places::{Place, Places};
use super::service::discard;
use super::stream::Stream;
use super::tcp_server::{Setup, serve_by};
use super::tunnel::{self, Tunnel};
use crate::access_log::Protocol;
use crate::caught::{caught, poll_caught};
use crate::connection_info::{ConnectionInfo, ConnectionView, Viewed};
use crate::informational;
use crate::low::{self, Content as _, Handler, Head as _, Received, Upload as _};
use crate::monotonic;
use crate::response_fields as fields;
use crate::target;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http3::HeadBuffer;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

/// Accepts from `listeners` and serves by `handler` until the order to stop.
///
/// # Errors
/// The operating system has no descriptors or memory left to begin with.
pub(crate) fn serve_handler<H: Handler>(
    listeners: Vec<TcpListener>,
    setup: Setup,
    handler: H,
) -> io::Result<ThreadCounters> {
    let handler = Rc::new(RefCell::new(handler));
    serve_by(listeners, setup, LowLevel { handler, buffer: Rc::default(), places: Places::default() })
}

/// Memory of a head that was larger than this, in bytes, is given back.
const KEPT: usize = 16 << 10;

/// The handler of a thread.
struct LowLevel<H: Handler> {
    handler: Rc<RefCell<H>>,
    buffer: Rc<RefCell<HeadBuffer>>,
    places: Places<H::Head>,
}

/// The handler for one connection.
struct Requests<H: Handler> {
    handler: Rc<RefCell<H>>,
    /// Memory for the head at hand, which all connections of the thread use.
    buffer: Rc<RefCell<HeadBuffer>>,
    /// As do its requests.
    places: Places<H::Head>,
    context: Rc<ConnectionContext>,
}

impl<H: Handler> Answer for LowLevel<H> {
    type Content = Content<H>;
    type Future = Pin<Box<Answering<H>>>;
    type Service = Requests<H>;

    fn service(&self, context: ConnectionContext) -> Requests<H> {
        let (handler, buffer) = (Rc::clone(&self.handler), Rc::clone(&self.buffer));
        Requests { handler, buffer, places: self.places.clone(), context: Rc::new(context) }
    }
}

impl<H: Handler> hyper::service::Service<Request<Incoming>> for Requests<H> {
    type Response = Response<Content<H>>;
    type Error = io::Error;
    type Future = Pin<Box<Answering<H>>>;

    fn call(&self, request: Request<Incoming>) -> Pin<Box<Answering<H>>> {
        let account = RequestGuard::new(&self.context, &request, monotonic::now());
        // RFC 6585 §5: 431.
        let refusal = account.head.refusal().map(|(status, _)| status);
        let refusal = refusal.or_else(|| account.head.is_too_large().then_some(431));
        let has_interims =
            self.context.protocol == Protocol::Http1 && informational::is_known_to(request.version());
        let offer = has_interims.then(|| tunnel::offer(&request)).flatten().filter(|_| refusal.is_none());
        let is_connect = request.method() == Method::CONNECT;
        let (parts, content) = request.into_parts();
        let mut request = Request::from_parts(parts, ());
        let tunnel = is_connect.then(|| hyper::upgrade::on(&mut request));
        let mut place = self.places.take();
        let taken = caught(|| take_head(request, refusal, &mut self.buffer.borrow_mut(), place.head()));
        let mut place = match taken {
            Ok(()) => Some(place),
            Err(()) => {
                place.discard();
                None
            }
        };
        let mut head = place.as_mut().map(Place::head);
        let may_upgrade = offer.zip(head.as_mut()).is_some_and(|(offer, head)| head.on_upgrade(&offer));
        let is_tunnel = head.as_ref().is_some_and(|head| head.is_tunnel());
        let tunnel = tunnel.filter(|_| is_tunnel);
        let waits_for_continue = head.as_ref().is_some_and(|head| head.expects_continue());
        Box::pin(Answering {
            may_upgrade,
            tunnel,
            handler: Rc::clone(&self.handler),
            interims: has_interims.then(|| self.context.stream.clone()),
            place,
            waits_for_continue,
            content: Some(content),
            receiving: None,
            account: Some(account),
        })
    }
}

/// Has the handler keep what it needs of the head of `request`, or of its refusal.
fn take_head<T: low::Head>(
    request: Request<()>,
    refusal: Option<u16>,
    buffer: &mut HeadBuffer,
    head: &mut T,
) {
    let read = match target::protocol(&request) {
        Some(protocol) => buffer.extended_connect(&request, protocol),
        None => buffer.request(&request),
    };
    match (refusal, read) {
        (Some(status), _) => head.on_refused(status),
        (None, Ok(read)) => head.on_parts(&read, request.into_parts().0),
        (None, Err(_)) => head.on_refused(400),
    }
    if buffer.memory() > KEPT {
        *buffer = HeadBuffer::default();
    }
}

/// The response to one request, to come.
pub(super) struct Answering<H: Handler> {
    handler: Rc<RefCell<H>>,
    /// Whether the handler may answer 101.
    may_upgrade: bool,
    /// The stream of HTTP/2 on which it may speak another protocol.
    tunnel: Option<OnUpgrade>,
    /// Where informational responses are written, if the version has them.
    interims: Option<Stream>,
    /// Its head, and what wakes it. `None`: what keeps the head has panicked, or the request is answered.
    place: Option<Place<H::Head>>,
    /// The client sends its content when it is told to go on: when the content is asked for. RFC 9110 §10.1.1.
    waits_for_continue: bool,
    /// There until the first poll.
    content: Option<Incoming>,
    /// There from then on until it is answered.
    receiving: Option<Receiving<H::Upload>>,
    /// There until it is answered.
    account: Option<RequestGuard>,
}

// Nothing in it is pinned.
impl<H: Handler> Unpin for Answering<H> {}

/// A response before its content, and the content.
type Begun<C> = (StatusCode, HeaderMap, C);

impl<H: Handler> Answering<H> {
    fn poll_response(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Begun<H::Content>>> {
        let Answering { handler, place, receiving, account, .. } = self;
        let (Some(place), Some(account)) = (place, account) else { return Poll::Pending };
        let (head, waker) = place.parts();
        if let Some(content) = self.content.take() {
            let timeouts = Rc::clone(&account.context.timeouts);
            *receiving = Some(match self.may_upgrade || self.tunnel.is_some() {
                true => Receiving::of_upgrade(timeouts),
                false => Receiving::new(content, timeouts),
            });
        }
        let Some(receiving) = receiving else { return Poll::Pending };
        loop {
            if !self.waits_for_continue {
                receiving.poll(cx)?;
                receiving.note_kept(head.memory());
                if awaits_content(head, receiving) {
                    return Poll::Pending;
                }
            }
            let mut call: Call<'_, H> = Call { head, receiving, info: &account.context.info, waker };
            let polled = match account.context.timeouts.is_short() && !call.head.has_begun() {
                true => Poll::Ready(handler.borrow_mut().put_off(&context(call.waker))),
                false => call.handle(&mut *handler.borrow_mut(), self.interims.as_ref()),
            };
            // Whether the client is told to go on, now that the handler was asked. Over HTTP/2 hyper tells it nothing.
            let goes_on = match polled {
                Poll::Ready(response) => {
                    let goes_on =
                        self.waits_for_continue && response.status < 300 && awaits_content(head, receiving);
                    if !goes_on {
                        return Poll::Ready(Ok(begin(response)));
                    }
                    goes_on
                }
                Poll::Pending => {
                    let is_told =
                        receiving.upload.is_awaited() || account.context.protocol == Protocol::Http2;
                    self.waits_for_continue && is_told
                }
            };
            if !goes_on {
                return Poll::Pending;
            }
            self.waits_for_continue = false;
        }
    }

    /// The response to a request whose handler has panicked.
    fn fail(&mut self) -> Option<Response<Content<H>>> {
        let mut account = self.account.take()?;
        self.place.take().into_iter().for_each(Place::discard);
        let mut map = fields::empty();
        account.context.thread_state.date(&mut map, monotonic::now());
        let received = self.receiving.as_ref().map_or(Received::Open, |receiving| receiving.received);
        announce(&mut map, &account, received);
        let content = self.content.take().or_else(|| self.receiving.take()?.take_content());
        if let Some(content) = content {
            tokio::task::spawn_local(discard(content, Rc::clone(&account.context.timeouts)));
        }
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        account.status = status.as_u16();
        Some(respond(status, map, Content::empty(account)))
    }
}

impl<H: Handler> Answering<H> {
    /// The response 101, after which the handler speaks another protocol on the connection.
    fn upgrade(
        &mut self,
        mut map: HeaderMap,
        (body, receiving, mut account): (H::Content, Receiving<H::Upload>, RequestGuard),
        place: Place<H::Head>,
    ) -> Response<Content<H>> {
        let status = StatusCode::SWITCHING_PROTOCOLS;
        account.status = status.as_u16();
        account.ahead = account.context.timeouts.reserve(u64::MAX);
        map.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        if let Some(stream) = &self.interims {
            stream.go_on_by(Box::new(Tunnel::<H>::new(body, receiving, account, place)));
        }
        respond(status, map, Content::of_upgrade())
    }

    /// The response of 2xx, after which the handler speaks another protocol on `stream`. RFC 8441 §5.
    fn open(
        (status, map): (StatusCode, HeaderMap),
        (body, receiving, mut account): (H::Content, Receiving<H::Upload>, RequestGuard),
        place: Place<H::Head>,
        stream: OnUpgrade,
    ) -> Response<Content<H>> {
        account.status = status.as_u16();
        account.ahead = account.context.timeouts.reserve(u64::MAX);
        account.on_stream_tunnel();
        let cut = account.context.thread_state.next_cut.expect();
        let tunnel = Tunnel::<H>::new(body, receiving, account, place);
        tokio::task::spawn_local(tunnel.run(stream, cut));
        respond(status, map, Content::of_upgrade())
    }
}

impl<H: Handler> Future for Answering<H> {
    type Output = io::Result<Response<Content<H>>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        match &this.place {
            Some(place) => place.set_task(cx),
            None => return this.fail().map_or(Poll::Pending, |response| Poll::Ready(Ok(response))),
        }
        let (status, mut map, body) = match ready!(poll_caught(|| this.poll_response(cx))) {
            Ok(begun) => begun?,
            Err(()) => return this.fail().map_or(Poll::Pending, |response| Poll::Ready(Ok(response))),
        };
        let taken = (this.account.take(), this.receiving.take(), this.place.take());
        let (Some(mut account), Some(mut receiving), Some(mut place)) = taken else { return Poll::Pending };
        account.site = place.head().site();
        place.end_head();
        if this.may_upgrade {
            if status == StatusCode::SWITCHING_PROTOCOLS {
                return Poll::Ready(Ok(this.upgrade(map, (body, receiving, account), place)));
            }
            // It had no content, and what follows is the next request.
            receiving.received = Received::Whole;
        }
        if let Some(stream) = this.tunnel.take() {
            if status.is_success() {
                let opened = Answering::open((status, map), (body, receiving, account), place, stream);
                return Poll::Ready(Ok(opened));
            }
            // hyper resets what else the client sends.
            receiving.received = Received::Whole;
        }
        announce(&mut map, &account, receiving.received);
        account.status = status.as_u16();
        account.ahead = account.context.timeouts.reserve(body.remaining().unwrap_or(u64::MAX));
        let content = Content::new(body, receiving, account, place);
        Poll::Ready(Ok(respond(status, map, content)))
    }
}

/// Adds what concerns the connection: RFC 7838, RFC 9112 §9.6.
fn announce(map: &mut HeaderMap, account: &RequestGuard, received: Received) {
    if let Some(alt_svc) = account.context.maps.borrow().alt_svc() {
        map.insert(header::ALT_SVC, alt_svc.clone());
    }
    account.announce_end(map);
    if received == Received::Open {
        account.context.timeouts.on_unread();
        if account.context.protocol == Protocol::Http1 {
            // The next request would come behind content that is perhaps not read.
            map.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

fn respond<C>(status: StatusCode, map: HeaderMap, content: C) -> Response<C> {
    let mut response = Response::new(content);
    *response.status_mut() = status;
    *response.headers_mut() = map;
    response
}

/// Whether the handler is called only when more of the content is there.
fn awaits_content<T: low::Head, U: low::Upload>(head: &T, receiving: &Receiving<U>) -> bool {
    receiving.received == Received::Open && head.awaits_content() && !receiving.upload.is_enough()
}

/// A call of a handler.
struct Call<'a, H: Handler> {
    head: &'a mut H::Head,
    receiving: &'a mut Receiving<H::Upload>,
    info: &'a ConnectionInfo,
    waker: &'a Waker,
}

impl<H: Handler> Call<'_, H> {
    fn handle(
        &mut self,
        handler: &mut H,
        interims: Option<&Stream>,
    ) -> Poll<low::Response<H::Fields, H::Content>> {
        let request = low::Request {
            head: self.head,
            upload: &mut self.receiving.upload,
            received: self.receiving.received,
            connection: ConnectionView { viewed: Viewed::Tcp(self.info), early: None },
        };
        let polled = handler.handle(request, &context(self.waker));
        match interims {
            Some(stream) => stream.write_between(|| self.head.next_interim()),
            None => while self.head.next_interim().is_some() {},
        }
        polled
    }
}

fn begin<F: low::FieldLines, C>(response: low::Response<F, C>) -> Begun<C> {
    let status = StatusCode::from_u16(response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let map = response.fields.into_map().unwrap_or_else(|fields| {
        let mut map = HeaderMap::new();
        for (name, value) in fields.lines() {
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
                map.append(name, value);
            }
        }
        map
    });
    (status, map, response.body)
}
