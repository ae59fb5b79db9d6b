//! A response's content as hyper pulls it, and what happens when it is over.
//!
//! Chunks are passed on as they are lent, never copied. Whatever ends a response, its last piece is dropped, and with it the
//! [`RequestGuard`]: that is where the request is logged and counted, once, whole or not.

use super::answer::ConnectionContext;
use super::thread_state::PooledHead;
use crate::access_log::{Entry, Protocol};
use crate::body::Body;
use crate::monotonic;
use crate::readers::ResultWaker;
use crate::target;
use base::time::Instant;
use bytes::Bytes;
use http::Request;
use http::header::{self, HeaderMap, HeaderValue};
use http_body::{Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// The content of an HTTP/2 frame that fills a TLS record with its header, in bytes. With the 16,384 that most clients allow,
/// each frame would need a second record for its last 9 bytes.
const FRAME: usize = (16 << 10) - 9;
/// The largest piece that is pulled from a body at once, in bytes: for HTTP/2 a number of whole frames.
const PIECE: usize = 128 << 10;
const PIECE_OF_FRAMES: usize = 4 * FRAME;

/// A request under way. Logs it when dropped.
pub(super) struct RequestGuard {
    /// Its connection.
    pub(super) context: Rc<ConnectionContext>,
    pub(super) head: PooledHead,
    pub(super) began: Instant,
    /// As [`crate::low::Head::site`].
    pub(super) site: usize,
    /// 0 before there is a response.
    pub(super) status: u16,
    /// Bytes of content that were handed over.
    pub(super) sent: u64,
    /// Bytes of content that count as read ahead of the client.
    pub(super) ahead: u64,
    /// It goes on by another protocol, on its stream.
    pub(super) is_stream_tunnel: bool,
}

impl RequestGuard {
    /// Of a request that has arrived. Refuses what must be refused.
    pub(super) fn new<B>(
        context: &Rc<ConnectionContext>,
        request: &Request<B>,
        began: Instant,
    ) -> RequestGuard {
        context.timeouts.on_request(began);
        let mut head = context.thread_state.head();
        target::take(request, &mut head);
        let context = Rc::clone(context);
        let is_stream_tunnel = false;
        RequestGuard { context, head, began, site: 0, status: 0, sent: 0, ahead: 0, is_stream_tunnel }
    }

    /// The request goes on by another protocol, on its stream.
    pub(super) fn on_stream_tunnel(&mut self) {
        if !std::mem::replace(&mut self.is_stream_tunnel, true) {
            self.context.timeouts.on_stream_tunnel();
        }
    }

    /// Tells a client of HTTP/1.1 that its next request belongs to another connection, if so. RFC 9112 §9.6.
    pub(super) fn announce_end(&self, fields: &mut HeaderMap) {
        if self.context.protocol == Protocol::Http1 && self.context.timeouts.is_leaving() {
            fields.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let now = monotonic::now();
        let ConnectionContext { thread_state, timeouts, info, protocol, .. } = &*self.context;
        if self.is_stream_tunnel {
            timeouts.on_stream_tunnel_over();
        }
        timeouts.on_response(now);
        timeouts.release(self.ahead);
        if self.status > 0 {
            let entry = Entry {
                peer: info.peer.ip(),
                unix_s: thread_state.unix_s(now),
                line: self.head.line(),
                protocol: *protocol,
                status: self.status,
                bytes: self.sent,
                duration: now.saturating_since(self.began),
            };
            thread_state.on_answered(&entry, self.site, now);
        }
        thread_state.recycle(&mut self.head);
    }
}

/// What hyper sends.
pub(super) struct Content {
    pub(super) body: Body,
    pub(super) account: RequestGuard,
    /// Pulled and not handed on yet.
    pub(super) held: Bytes,
}

impl Content {
    fn poll_piece(&mut self, wake_target: ResultWaker<'_>) -> Poll<io::Result<Option<Bytes>>> {
        if self.held.is_empty() {
            self.held = ready!(self.body.poll_chunk(PIECE_OF_FRAMES, wake_target))?.unwrap_or_default();
        }
        let len = FRAME.min(self.held.len());
        // The last frame takes the buffer with it, so that it comes back to its pool early.
        let whole = len == self.held.len();
        let frame = if whole { std::mem::take(&mut self.held) } else { self.held.split_to(len) };
        Poll::Ready(Ok((!frame.is_empty()).then_some(frame)))
    }
}

impl http_body::Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let wake_target = || Some(cx.waker().clone());
        // An error means that the file has become shorter: the connection or stream must not end as if all were well.
        let chunk = ready!(match self.account.context.protocol {
            Protocol::Http2 => self.poll_piece(&wake_target),
            Protocol::Http1 | Protocol::Http3 => self.body.poll_chunk(PIECE, &wake_target),
        });
        if let Ok(Some(chunk)) = &chunk {
            self.account.sent += chunk.len() as u64;
        }
        Poll::Ready(chunk.transpose().map(|chunk| chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && self.body.is_finished()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.held.len() as u64 + self.body.remaining())
    }
}
