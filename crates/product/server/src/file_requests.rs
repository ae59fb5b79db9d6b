//! The handler of files behind the low-level seam: what it keeps of a request, how it takes content, how a body is pulled.
//!
//! Nothing that is served here looks at a request's content: it is counted. The answer to a POST means that all of it has
//! arrived.

use crate::access_log::RequestLine;
use crate::body::Body;
use crate::handler::Files;
use crate::low::{Content, ContentError, Context, Handler, Head as LowHead, Request, Shared, Upload};
use crate::request::{Head, MAX_CONTENT, Method};
use crate::response::{Fields, Response};
use crate::target;
use bytes::Bytes;
use http3::RequestHead;
use std::task::Poll;

/// Requests of one connection for which the disk is asked at a time, so that others get theirs.
pub(crate) const DISK_SHARE: usize = 16;

impl Handler for Files {
    type Head = Head;
    type Upload = Counted;
    type Content = Body;
    type Fields = Fields;

    #[inline]
    fn handle(&mut self, request: Request<'_, Files>, cx: &Context<'_>) -> Poll<Response> {
        if request.upload.is_enough() || request.head.announces_too_much() {
            return Poll::Ready(self.refuse(413, "", cx.now()));
        }
        let wake_target = || (cx.waiting() < DISK_SHARE).then(|| cx.waker());
        self.poll_handle(request.head, cx.now(), &wake_target)
    }

    fn put_off(&mut self, cx: &Context<'_>) -> Response {
        Files::put_off(self, cx.now())
    }

    fn shared(&self) -> Shared {
        Shared { budget: self.budget().clone(), warnings: self.warnings().clone(), clock: self.wall_clock() }
    }
}

impl LowHead for Head {
    #[inline]
    fn on_request(&mut self, request: &RequestHead<'_>) {
        request.lines().for_each(|line| self.take_line(&line));
        target::judge_scheme(request.scheme(), self);
    }

    fn on_refused(&mut self, status: u16) {
        self.refuse(status, "");
    }

    #[inline]
    fn recycle(&mut self) {
        Head::recycle(self);
    }

    #[inline]
    fn memory(&self) -> usize {
        Head::memory(self)
    }

    #[inline]
    fn expects_continue(&self) -> bool {
        Head::expects_continue(self)
    }

    /// Content changes nothing of what other methods ask for, so their answer does not wait for it.
    #[inline]
    fn awaits_content(&self) -> bool {
        self.refusal().is_none() && self.method() == Method::Post && !self.announces_too_much()
    }

    fn line(&self) -> RequestLine<'_> {
        Head::line(self)
    }
}

/// Content that is counted and thrown away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    bytes: u64,
}

impl Upload for Counted {
    fn on_body(&mut self, bytes: &[u8]) -> usize {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        bytes.len()
    }

    #[inline]
    fn is_enough(&self) -> bool {
        self.bytes > MAX_CONTENT
    }
}

impl Content for Body {
    #[inline]
    fn poll_chunk(&mut self, max: usize, cx: &Context<'_>) -> Poll<Result<Option<Bytes>, ContentError>> {
        let wake_target = || (cx.waiting() < DISK_SHARE).then(|| cx.waker());
        Body::poll_chunk(self, max, &wake_target).map_err(|_| ContentError)
    }

    #[inline]
    fn remaining(&self) -> Option<u64> {
        Some(Body::remaining(self))
    }

    #[inline]
    fn take_whole(&mut self) -> Option<Bytes> {
        Body::take_whole(self)
    }
}
