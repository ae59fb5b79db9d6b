//! The content of one request and of its response, between hyper and a low-level handler.

use super::body::RequestGuard;
use super::places::Place;
use super::service::discard;
use super::timeouts::ConnectionTimeouts;
use crate::caught::{caught, poll_caught};
use crate::low::{self, Content as _, Handler, Received, Upload, WakeTarget};
use crate::monotonic;
use bytes::{Buf as _, Bytes};
use http::HeaderMap;
use http_body::{Body as _, Frame, SizeHint};
use http3::HeadBuffer;
use hyper::body::Incoming;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

/// The largest piece that is pulled from a response at once, in bytes.
pub(super) const PIECE: usize = 128 << 10;

/// The circumstances of a call of a handler over HTTP/1.1 or 2.
pub(super) fn context(waker: &Waker) -> low::Context<'_> {
    low::Context { now: monotonic::now(), waiting: 0, wake: WakeTarget::Task(waker) }
}

/// The content of a request on its way to the handler.
pub(super) struct Receiving<U: Upload> {
    pub(super) upload: U,
    pub(super) received: Received,
    /// `None` when all has arrived, or nothing more will.
    content: Option<Incoming>,
    /// Arrived, and not taken yet.
    held: Bytes,
    /// Bytes that the connection's account has of this request.
    kept: u64,
    timeouts: Rc<ConnectionTimeouts>,
}

impl<U: Upload> Receiving<U> {
    pub(super) fn new(content: Incoming, timeouts: Rc<ConnectionTimeouts>) -> Receiving<U> {
        let (upload, held) = (U::default(), Bytes::new());
        let is_whole = content.is_end_stream();
        let content = (!is_whole).then_some(content);
        let mut receiving = Receiving { upload, received: Received::Open, content, held, kept: 0, timeouts };
        if is_whole {
            receiving.end();
        }
        receiving
    }

    /// Of a request that offers another protocol. Until it is answered, nothing more of it comes.
    pub(super) fn of_upgrade(timeouts: Rc<ConnectionTimeouts>) -> Receiving<U> {
        let (upload, held) = (U::default(), Bytes::new());
        Receiving { upload, received: Received::Open, content: None, held, kept: 0, timeouts }
    }

    /// Bytes of another protocol have come, all that came before having been taken.
    pub(super) fn put(&mut self, bytes: Bytes) {
        self.timeouts.on_content(bytes.len());
        self.held = bytes;
    }

    /// Lends what has come. Returns whether all was taken.
    pub(super) fn lend(&mut self) -> bool {
        if !self.held.is_empty() && self.upload.has_room() {
            let taken = self.upload.on_body(&self.held).min(self.held.len());
            self.held.advance(taken);
        }
        self.held.is_empty()
    }

    /// Tells the connection's account what is kept of the request: `head` bytes, and what is here of its content.
    pub(super) fn note_kept(&mut self, head: usize) {
        let kept = (head + self.upload.memory() + self.held.len()) as u64;
        self.timeouts.on_kept(core::mem::replace(&mut self.kept, kept), kept);
    }

    fn end(&mut self) {
        self.content = None;
        self.received = Received::Whole;
        self.upload.on_end();
    }

    /// Lends what arrives, until the handler takes no more or nothing is there. The task is woken when more arrives.
    ///
    /// # Errors
    /// The client has given the request up.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        loop {
            if !self.lend() {
                return Ok(());
            }
            let Some(content) = &mut self.content else { return Ok(()) };
            match Pin::new(content).poll_frame(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(None) => self.end(),
                Poll::Ready(Some(Err(error))) => {
                    self.content = None;
                    self.upload.on_abort();
                    return Err(io::Error::other(error));
                }
                Poll::Ready(Some(Ok(frame))) => self.take(frame),
            }
        }
    }

    fn take(&mut self, frame: Frame<Bytes>) {
        match frame.into_data() {
            Ok(bytes) => {
                self.timeouts.on_content(bytes.len());
                self.held = bytes;
            }
            Err(frame) => {
                let fields = frame.into_trailers().unwrap_or_default();
                // Fields that break a rule are left out, as RFC 9110 §6.5.1 permits.
                if let Ok(trailers) = HeadBuffer::default().trailers(&fields) {
                    self.upload.on_trailers(&trailers);
                }
            }
        }
    }

    /// Whether the handler still takes content that may come.
    fn is_wanted(&self) -> bool {
        self.content.is_some() && self.upload.is_wanted()
    }

    /// What still comes, if anything.
    pub(super) fn take_content(&mut self) -> Option<Incoming> {
        self.content.take()
    }

    /// The handler takes no more. What still comes is received and discarded within limits, as over HTTP/3.
    fn give_up(&mut self) {
        if let Some(content) = self.take_content() {
            tokio::task::spawn_local(discard(content, Rc::clone(&self.timeouts)));
        }
    }
}

impl<U: Upload> Drop for Receiving<U> {
    /// The client has given the request up, or its connection is lost.
    fn drop(&mut self) {
        self.timeouts.on_kept(self.kept, 0);
        if self.content.take().is_some() {
            let _ = caught(|| self.upload.on_abort());
        }
    }
}

/// A response's content as hyper pulls it. Meanwhile the request's goes on to the handler, and the response ends when that is over.
pub(super) struct Content<H: Handler> {
    /// `None`: nothing (more).
    body: Option<H::Content>,
    /// What follows the content. Boxed, because little has any.
    trailers: Option<Box<HeaderMap>>,
    receiving: Option<Receiving<H::Upload>>,
    /// `None`: what follows the head has it.
    account: Option<RequestGuard>,
    /// What the handler wakes; `None` if it sends nothing.
    place: Option<Place<H::Head>>,
}

// Nothing in it is pinned.
impl<H: Handler> Unpin for Content<H> {}

impl<H: Handler> Content<H> {
    pub(super) fn new(
        body: H::Content,
        mut receiving: Receiving<H::Upload>,
        account: RequestGuard,
        place: Place<H::Head>,
    ) -> Content<H> {
        let body = (body.remaining() != Some(0)).then_some(body);
        let receiving = if receiving.is_wanted() {
            // The head has gone.
            receiving.note_kept(0);
            Some(receiving)
        } else {
            receiving.give_up();
            None
        };
        Content { body, trailers: None, receiving, account: Some(account), place: Some(place) }
    }

    /// No content, and none is received.
    pub(super) fn empty(account: RequestGuard) -> Content<H> {
        Content { body: None, trailers: None, receiving: None, account: Some(account), place: None }
    }

    /// No content: another protocol follows.
    pub(super) fn of_upgrade() -> Content<H> {
        Content { body: None, trailers: None, receiving: None, account: None, place: None }
    }

    /// Lends what arrives of the request's content.
    fn poll_receive(&mut self, cx: &mut Context<'_>) {
        if let Some(receiving) = &mut self.receiving {
            let ended = receiving.poll(cx);
            if ended.is_ok() && receiving.is_wanted() {
                receiving.note_kept(0);
                return;
            }
            receiving.give_up();
            self.receiving = None;
        }
    }

    fn poll_body(&mut self) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let (Some(body), Some(place)) = (&mut self.body, &mut self.place) {
            let chunk = match body.remaining() {
                Some(0) => None,
                _ => ready!(body.poll_chunk(PIECE, &context(place.waker()))).transpose(),
            };
            // The last chunk takes the end with it: over HTTP/2 that is a frame less.
            if chunk.is_none() || body.remaining() == Some(0) {
                self.trailers = body.trailers().map(Box::new);
                self.body = None;
            }
            if let Some(chunk) = chunk {
                return Poll::Ready(Some(chunk.map(Frame::data).map_err(io::Error::other)));
            }
        }
        Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(*trailers))))
    }
}

impl<H: Handler> http_body::Body for Content<H> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = &mut *self;
        this.place.iter().for_each(|place| place.set_task(cx));
        let polled = poll_caught(|| {
            this.poll_receive(cx);
            match ready!(this.poll_body()) {
                None if this.receiving.is_some() => Poll::Pending,
                polled => Poll::Ready(polled),
            }
        });
        let frame =
            ready!(polled).unwrap_or_else(|()| Some(Err(io::Error::other("the handler has panicked"))));
        match &frame {
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
                this.account.iter_mut().for_each(|account| account.sent += bytes);
            }
            // The connection or stream must not end as if all were well.
            Some(Err(_)) => (this.body, this.trailers, this.receiving) = (None, None, None),
            None => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_none() && self.trailers.is_none() && self.receiving.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.body.as_ref().map_or(Some(0), H::Content::remaining);
        left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
