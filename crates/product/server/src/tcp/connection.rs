//! One connection from its first byte to its last: handshake, HTTP by hyper, close.

use super::answer::{Answer, ConnectionContext};
use super::fields::Maps;
use super::handshakes::Handshakes;
use super::limits::Limits;
use super::openings::Openings;
use super::plain;
use super::stream::{Handshake, NextProtocol, Stream};
use super::thread_state::ThreadState;
use super::timeouts::{ConnectionTimeouts, NextAction};
use crate::access_log::Protocol;
use crate::challenges;
use crate::connection_info::ConnectionInfo;
use crate::informational::Informational;
use crate::monotonic;
use crate::request::MAX_FIELDS_SIZE;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::rt::bounds::Http2ServerConnExec;
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use tokio::net::TcpStream;

/// What hyper buffers of a connection, in bytes; a head that is longer is refused.
const BUFFER: usize = 256 * 1024;
/// What h2 buffers of a response, in bytes.
const STREAM_BUFFER: usize = 64 * 1024;
/// Credit for the content of requests: of a connection, and of each request.
const WINDOW: u32 = 4 << 20;
/// The largest frames that we take.
const MAX_FRAME: u32 = 64 * 1024;
/// How often it is looked at how much a peer has taken of what it was sent last.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(250);

/// How the connections of a thread are served.
pub(super) struct ConnectionOptions<A> {
    pub(super) handshakes: Handshakes,
    pub(super) openings: Openings,
    pub(super) thread_state: Rc<ThreadState>,
    answer: A,
    pub(super) limits: Limits,
    http1: http1::Builder,
    http2: http2::Builder<InPlace>,
}

impl<A: Answer> ConnectionOptions<A> {
    pub(super) fn new(
        (handshakes, openings): (Handshakes, Openings),
        thread_state: Rc<ThreadState>,
        answer: A,
        limits: Limits,
    ) -> ConnectionOptions<A> {
        let mut http1 = http1::Builder::new();
        // The handler judges the size of heads; the bounds here are only behind its own. hyper dates only what has no date:
        // the errors that it makes itself (RFC 9110 §6.6.1).
        http1.auto_date_header(true).writev(true);
        // Not pipeline_flush: it copies content, and buffers without bound while a second request waits. Our stream does what it is
        // for.
        // Not max_headers: with any bound but its own, of 100 fields, hyper allocates and fills two tables of that length for each
        // request.
        http1.max_buf_size(BUFFER).header_read_timeout(None);
        let mut http2 = http2::Builder::new(InPlace(Rc::clone(&thread_state)));
        http2.auto_date_header(false).max_concurrent_streams(limits.streams);
        http2.max_header_list_size(MAX_FIELDS_SIZE as u32 * 2).max_send_buf_size(STREAM_BUFFER);
        http2.initial_connection_window_size(WINDOW).initial_stream_window_size(WINDOW);
        http2.max_frame_size(MAX_FRAME);
        ConnectionOptions { handshakes, openings, thread_state, answer, limits, http1, http2 }
    }

    /// Extended CONNECT is taken over HTTP/2. RFC 8441 §3.
    pub(super) fn announce_extended_connect(&mut self) {
        //= rfc8441/3#2
        self.http2.enable_connect_protocol();
    }
}

/// Serves the connection from `peer` to `local`, to its end.
pub(super) async fn serve<A: Answer>(
    socket: TcpStream,
    (peer, local): (SocketAddr, SocketAddr),
    timeouts: Rc<ConnectionTimeouts>,
    maps: Rc<RefCell<Maps>>,
    options: Rc<ConnectionOptions<A>>,
) where
    InPlace: Http2ServerConnExec<A::Future, A::Content>,
{
    let of_authority = options.openings.challenges.tls();
    let stream = Stream::new(socket, &options.handshakes, of_authority, Rc::clone(&timeouts));
    let Ok(stream) = stream else { return };
    let handshake = poll_fn(|cx| match timeouts.order(cx.waker()) {
        NextAction::Serve | NextAction::Leave => stream.poll_handshake(cx),
        NextAction::Finish | NextAction::Close => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
    });
    match handshake.await {
        Ok(Handshake::Done) => {}
        Ok(Handshake::Plain(head)) => {
            options.thread_state.counters.borrow_mut().handshakes_failed += 1;
            plain::answer(&stream, head, &timeouts, &options.openings.challenges).await;
            return linger(&stream, &timeouts).await;
        }
        Err(error) => {
            options.thread_state.counters.borrow_mut().handshakes_failed += 1;
            if error.kind() == io::ErrorKind::InvalidData {
                // A client that sends on, as one whose certificate is missed, would lose the alert to a reset.
                linger(&stream, &timeouts).await;
            }
            return;
        }
    }
    timeouts.on_secure(monotonic::now());
    options.thread_state.counters.borrow_mut().on_handshake(stream.handshake_kind());
    if stream.speaks(challenges::PROTOCOL) {
        // RFC 8737 §3: the certificate was the answer.
        return end(&stream, &timeouts).await;
    }
    let protocol = if stream.speaks(b"h2") { Protocol::Http2 } else { Protocol::Http1 };
    let alpn = if protocol == Protocol::Http2 { "h2" } else { "http/1.1" };
    let (server_name, informational) = (stream.server_name(), Informational::UNSUPPORTED);
    let client_certificates = stream.client_certificates();
    let info =
        ConnectionInfo { peer, local, alpn, server_name, client_certificates, informational, early: None };
    let thread_state = Rc::clone(&options.thread_state);
    let (timeouts_of, stream_of) = (Rc::clone(&timeouts), stream.clone());
    let context =
        ConnectionContext { thread_state, maps, timeouts: timeouts_of, stream: stream_of, info, protocol };
    let service = options.answer.service(context);
    let end = if protocol == Protocol::Http2 {
        options.thread_state.counters.borrow_mut().http2.connections += 1;
        let connection = pin!(options.http2.serve_connection(stream.clone(), service));
        drive(connection, &stream, &timeouts).await
    } else {
        options.thread_state.counters.borrow_mut().http1.connections += 1;
        let mut connection = options.http1.serve_connection(stream.clone(), service);
        let end = drive(Pin::new(&mut connection), &stream, &timeouts).await;
        match stream.take_next() {
            Some(mut next) if end == End::Over => {
                next.on_early(connection.into_parts().read_buf);
                go_on(next, stream.clone(), &timeouts).await
            }
            _ => end,
        }
    };
    let has_more = stream.unacknowledged() > 0;
    if has_more {
        deliver(&stream, &timeouts).await;
    }
    // A peer that is still sending would lose our last words to a reset. What its kernel has acknowledged it may not have read.
    if has_more || end == End::Unread || timeouts.has_unread() || timeouts.has_left() {
        linger(&stream, &timeouts).await;
    }
}

/// Ends a connection over which nothing is said.
async fn end(stream: &Stream, timeouts: &ConnectionTimeouts) {
    poll_fn(|cx| match timeouts.order(cx.waker()) {
        NextAction::Serve | NextAction::Leave => stream.poll_end(cx).map(|_| ()),
        NextAction::Finish | NextAction::Close => Poll::Ready(()),
    })
    .await;
    linger(stream, timeouts).await;
}

/// Throws away what the peer still sends, so that it reads what was said last.
async fn linger(stream: &Stream, timeouts: &ConnectionTimeouts) {
    timeouts.on_linger(monotonic::now());
    poll_fn(|cx| match timeouts.order(cx.waker()) {
        NextAction::Close => Poll::Ready(()),
        NextAction::Serve | NextAction::Leave | NextAction::Finish => stream.poll_discard(cx),
    })
    .await;
}

/// Throws away what the peer sends while it takes what it was sent. Over HTTP/2 it sends as it reads, and once the socket is closed the
/// kernel answers that by a reset, which would take with it what is on the way.
async fn deliver(stream: &Stream, timeouts: &ConnectionTimeouts) {
    timeouts.on_last_sent(monotonic::now());
    let mut left = stream.unacknowledged();
    let mut look = tokio::time::interval(LOOK_EVERY);
    poll_fn(|cx| {
        while look.poll_tick(cx).is_ready() {
            let before = std::mem::replace(&mut left, stream.unacknowledged());
            timeouts.on_taken(before.saturating_sub(left));
        }
        if left == 0 || timeouts.order(cx.waker()) == NextAction::Close {
            return Poll::Ready(());
        }
        stream.poll_discard(cx)
    })
    .await;
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// By agreement, or by order.
    Over,
    /// In the middle of what the peer said.
    Unread,
}

/// hyper's connections.
trait Graceful: Future<Output = hyper::Result<()>> {
    /// Whether the version has a message that says so between two requests. Where it has none, a response does.
    const TELLS: bool;

    /// Begins no more requests, and ends.
    fn finish(self: Pin<&mut Self>);
}

impl<S, B> Graceful for http1::Connection<Stream, S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = io::Error>,
    B: Body<Data = Bytes, Error = io::Error> + 'static,
{
    const TELLS: bool = false;

    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<S, B> Graceful for http2::Connection<Stream, S, InPlace>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = io::Error>,
    S::Future: 'static,
    B: Body<Data = Bytes, Error = io::Error> + 'static,
    InPlace: Http2ServerConnExec<S::Future, B>,
{
    const TELLS: bool = true;

    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// Polls hyper and sends what it wrote, until one of the ends or the thread wants no more.
async fn drive<C: Graceful>(
    mut connection: Pin<&mut C>,
    stream: &Stream,
    timeouts: &ConnectionTimeouts,
) -> End {
    let mut is_told = false;
    poll_fn(|cx| {
        stream.begin_turn();
        let order = timeouts.order(cx.waker());
        if order == NextAction::Close {
            return Poll::Ready(End::Over);
        }
        // A client that has only just connected would have come in vain.
        let is_due = || match order {
            NextAction::Finish => true,
            NextAction::Leave => C::TELLS && timeouts.has_asked(),
            NextAction::Serve | NextAction::Close => false,
        };
        let polled = loop {
            if !is_told && is_due() {
                is_told = true;
                connection.as_mut().finish();
            }
            let polled = connection.as_mut().poll(cx);
            if polled.is_ready() || is_told || !is_due() {
                break polled;
            }
        };
        let sent = stream.poll_send(cx);
        match (polled, sent) {
            (Poll::Ready(Ok(())), _) | (_, Poll::Ready(Err(_))) => Poll::Ready(End::Over),
            (Poll::Ready(Err(_)), _) => Poll::Ready(End::Unread),
            (Poll::Pending, _) => Poll::Pending,
        }
    })
    .await
}

/// Speaks another protocol than HTTP until it ends.
async fn go_on(mut next: Box<dyn NextProtocol>, mut stream: Stream, timeouts: &ConnectionTimeouts) -> End {
    timeouts.on_tunnel(monotonic::now());
    poll_fn(|cx| {
        stream.begin_turn();
        match timeouts.order(cx.waker()) {
            NextAction::Close => return Poll::Ready(End::Over),
            // It may have no end of its own.
            NextAction::Finish => next.finish(),
            NextAction::Serve | NextAction::Leave => {}
        }
        let polled = next.poll(&mut stream, cx);
        match (polled, stream.poll_send(cx)) {
            (Poll::Ready(()), _) => Poll::Ready(End::Unread),
            (_, Poll::Ready(Err(_))) => Poll::Ready(End::Over),
            (Poll::Pending, _) => Poll::Pending,
        }
    })
    .await
}

/// Runs what hyper starts for each HTTP/2 request: once where it is, which is all that most need, and as a task otherwise.
#[derive(Clone)]
pub(super) struct InPlace(Rc<ThreadState>);

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for InPlace {
    fn execute(&self, future: F) {
        let cut = self.0.next_cut.take();
        let mut future = Box::pin(future);
        // A future that is not done becomes a task. Its next poll registers the waker.
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            let task = tokio::task::spawn_local(future);
            if let Some(cut) = cut {
                let _ = cut.set(task.abort_handle());
            }
        }
    }
}
