//! One connection from its first byte to its last: handshake, HTTP by hyper, good-bye.

use super::answer::{Answer, Place};
use super::limits::Limits;
use super::plain;
use super::pulse::{Order, Pulse};
use super::site::Site;
use super::stream::{Handshake, Stream};
use crate::access_log::Protocol;
use crate::monotonic;
use crate::request::{MAX_FIELDS, MAX_FIELDS_SIZE};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::rt::bounds::Http2ServerConnExec;
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use rustls::ServerConfig;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
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

/// How the connections of a thread are served.
pub(super) struct Manner<A> {
    pub(super) tls: Arc<ServerConfig>,
    pub(super) site: Rc<Site>,
    answer: A,
    pub(super) limits: Limits,
    http1: http1::Builder,
    http2: http2::Builder<InPlace>,
}

impl<A: Answer> Manner<A> {
    pub(super) fn new(tls: Arc<ServerConfig>, site: Rc<Site>, answer: A, limits: Limits) -> Manner<A> {
        let mut http1 = http1::Builder::new();
        // The handler judges the size of heads; the bounds here are only behind its own. hyper dates only what has no date:
        // the errors that it makes itself (RFC 9110 §6.6.1).
        http1.auto_date_header(true).writev(true);
        // Not pipeline_flush: it copies content, and buffers without bound while a second request waits. Our stream does what it is
        // for.
        http1.max_buf_size(BUFFER).max_headers(MAX_FIELDS + 64).header_read_timeout(None);
        let mut http2 = http2::Builder::new(InPlace);
        http2.auto_date_header(false).max_concurrent_streams(limits.streams);
        http2.max_header_list_size(MAX_FIELDS_SIZE as u32 * 2).max_send_buf_size(STREAM_BUFFER);
        http2.initial_connection_window_size(WINDOW).initial_stream_window_size(WINDOW);
        http2.max_frame_size(MAX_FRAME);
        Manner { tls, site, answer, limits, http1, http2 }
    }
}

/// Serves a connection to its end.
pub(super) async fn serve<A: Answer>(
    socket: TcpStream,
    peer: SocketAddr,
    pulse: Rc<Pulse>,
    manner: Rc<Manner<A>>,
) where
    InPlace: Http2ServerConnExec<A::Future, A::Content>,
{
    let Ok(stream) = Stream::new(socket, &manner.tls, Rc::clone(&pulse)) else { return };
    let handshake = poll_fn(|cx| match pulse.order(cx.waker()) {
        Order::Serve => stream.poll_handshake(cx),
        Order::Finish | Order::Close => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
    });
    match handshake.await {
        Ok(Handshake::Done) => {}
        Ok(Handshake::Plain(head)) => {
            manner.site.tally.borrow_mut().handshakes_failed += 1;
            plain::answer(&stream, head, &pulse).await;
            return linger(&stream, &pulse).await;
        }
        Err(_) => {
            manner.site.tally.borrow_mut().handshakes_failed += 1;
            return;
        }
    }
    pulse.on_secure(monotonic::now());
    let protocol = if stream.speaks(b"h2") { Protocol::Http2 } else { Protocol::Http1 };
    let site = Rc::clone(&manner.site);
    let place = Place { site, pulse: Rc::clone(&pulse), peer: peer.ip(), protocol };
    let service = manner.answer.service(place);
    let end = if protocol == Protocol::Http2 {
        manner.site.tally.borrow_mut().http2.connections += 1;
        drive(manner.http2.serve_connection(stream.clone(), service), &stream, &pulse).await
    } else {
        manner.site.tally.borrow_mut().http1.connections += 1;
        drive(manner.http1.serve_connection(stream.clone(), service), &stream, &pulse).await
    };
    // A peer that is still sending would lose our last words to a reset.
    if end == End::Unread || pulse.has_unread() {
        linger(&stream, &pulse).await;
    }
}

/// Throws away what the peer still sends, so that it reads what was said last.
async fn linger(stream: &Stream, pulse: &Pulse) {
    pulse.on_linger(monotonic::now());
    poll_fn(|cx| match pulse.order(cx.waker()) {
        Order::Close => Poll::Ready(()),
        Order::Serve | Order::Finish => stream.poll_discard(cx),
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
    /// Begins no more requests, and ends.
    fn finish(self: Pin<&mut Self>);
}

impl<S, B> Graceful for http1::Connection<Stream, S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = io::Error>,
    B: Body<Data = Bytes, Error = io::Error> + 'static,
{
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
    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// Polls hyper and sends what it wrote, until one of the ends or the thread wants no more.
async fn drive<C: Graceful>(connection: C, stream: &Stream, pulse: &Pulse) -> End {
    let mut connection = pin!(connection);
    let mut told = Order::Serve;
    poll_fn(|cx| {
        stream.begin_turn();
        match pulse.order(cx.waker()) {
            Order::Close => return Poll::Ready(End::Over),
            Order::Finish if told == Order::Serve => {
                told = Order::Finish;
                connection.as_mut().finish();
            }
            Order::Serve | Order::Finish => {}
        }
        let polled = connection.as_mut().poll(cx);
        let sent = stream.poll_send(cx);
        match (polled, sent) {
            (Poll::Ready(Ok(())), _) | (_, Poll::Ready(Err(_))) => Poll::Ready(End::Over),
            (Poll::Ready(Err(_)), _) => Poll::Ready(End::Unread),
            (Poll::Pending, _) => Poll::Pending,
        }
    })
    .await
}

/// Runs what hyper starts for each HTTP/2 request: once where it is, which is all that most need, and as a task otherwise.
#[derive(Clone, Copy, Debug)]
pub(super) struct InPlace;

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for InPlace {
    fn execute(&self, future: F) {
        let mut future = Box::pin(future);
        // Whoever is not done is polled again as a task at once, and then registers whom to wake.
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            tokio::task::spawn_local(future);
        }
    }
}
