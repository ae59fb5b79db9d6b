//! Where a response over HTTP/3 goes: to a queue that a [`Body`] reads, or to a sink of the program.
//!
//! A receiver is called on the worker's thread. It is consumed by the end of the exchange, whichever that is, and tells the
//! future of the request.

use crate::library::content::Content;
use crate::library::refused::Refused;
use crate::library::sink::{BodySink, IsFinal, Lent, Received};
use crate::report::PathReport;
use ::body::queue::Producer;
use ::body::{Body, BodyError};
use http::{HeaderMap, Response};
use std::task::{Context, Waker};
use tokio::sync::oneshot;

/// So many bytes of a response wait for their reader. What the server may send beyond them is its window.
const CAPACITY: usize = 256 << 10;

/// Takes one response.
pub(crate) trait Receiver: Send {
    /// The head. `waker` makes the connection act.
    fn on_head(&mut self, head: Response<()>, waker: &Waker);

    /// The next bytes of the content; returns how many were taken. Fewer than all pause the response.
    fn on_body(&mut self, bytes: &[u8]) -> usize;

    /// The fields that follow the content.
    fn on_trailers(&mut self, fields: Option<HeaderMap>);

    /// Whether a response that was paused can go on.
    fn has_room(&self) -> bool;

    /// Whether nothing more of the response is wanted. The task of `cx` is called when that changes, and when there is room.
    fn is_unwanted(&mut self, cx: &mut Context<'_>) -> bool;

    /// The response is complete. `path`: what the connection is like.
    fn complete(self: Box<Self>, path: Option<&PathReport>);

    /// There is no response, or it is not complete.
    fn fail(self: Box<Self>, refused: Refused);
}

/// What becomes of a request whose content goes to a sink.
pub(crate) enum Delivered<K> {
    /// The sink has taken all of the response.
    Complete(Box<Received<K>>),
    /// The response may be a redirect: the sink has not heard of it.
    Undecided(Box<Response<Content>>, Lent<K>),
    /// There is no response, or it is not complete. The sink is there if it can be used again.
    Failed(Refused, Option<Lent<K>>),
}

/// Lends the content of a final response to a sink. That of others goes to a queue that a [`Body`] reads: it is not decided yet
/// what becomes of them.
pub(crate) struct ToSink<K> {
    lent: Option<Lent<K>>,
    tell: Option<oneshot::Sender<Delivered<K>>>,
    is_final: IsFinal,
    response: Response<()>,
    trailers: Option<HeaderMap>,
    /// Of a response that is not final.
    queue: Option<Producer>,
}

impl<K: BodySink> ToSink<K> {
    pub(crate) fn new(lent: Lent<K>, is_final: IsFinal) -> (ToSink<K>, oneshot::Receiver<Delivered<K>>) {
        let (tell, told) = oneshot::channel();
        let (response, tell, lent) = (Response::new(()), Some(tell), Some(lent));
        (ToSink { lent, tell, is_final, response, trailers: None, queue: None }, told)
    }

    fn tell(&mut self, delivered: impl FnOnce(Lent<K>) -> Delivered<K>) {
        if let (Some(tell), Some(lent)) = (self.tell.take(), self.lent.take()) {
            let _ = tell.send(delivered(lent));
        }
    }
}

impl<K: BodySink> Receiver for ToSink<K> {
    fn on_head(&mut self, head: Response<()>, waker: &Waker) {
        if !(self.is_final)(&head) {
            let (mut producer, content) = Body::queue(CAPACITY);
            producer.set_waker(waker);
            self.queue = Some(producer);
            // A requester that has gone drops the content, which `is_unwanted` finds.
            let response = head.map(|()| Content::Queue(content));
            return self.tell(|lent| Delivered::Undecided(Box::new(response), lent));
        }
        if let Some(lent) = &mut self.lent {
            lent.on_head(&head);
        }
        self.response = head;
    }

    #[inline]
    fn on_body(&mut self, bytes: &[u8]) -> usize {
        match (&mut self.lent, &mut self.queue) {
            (Some(lent), _) => lent.on_body(bytes),
            (None, Some(producer)) => producer.push_copy(bytes),
            (None, None) => bytes.len(),
        }
    }

    fn on_trailers(&mut self, fields: Option<HeaderMap>) {
        match &mut self.queue {
            Some(producer) => producer.end(fields),
            None => self.trailers = fields,
        }
    }

    fn has_room(&self) -> bool {
        match &self.queue {
            Some(producer) => producer.has_room(),
            None => self.lent.as_ref().is_none_or(|lent| lent.flow().is_resumed()),
        }
    }

    fn is_unwanted(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(producer) = &mut self.queue {
            producer.set_waker(cx.waker());
            return !producer.has_reader();
        }
        let is_given_up = |lent: &Lent<K>| {
            lent.flow().set_waker(cx.waker());
            lent.failure().is_some()
        };
        self.lent.as_ref().is_some_and(is_given_up)
            || self.tell.as_mut().is_none_or(|tell| tell.poll_closed(cx).is_ready())
    }

    fn complete(mut self: Box<Self>, path: Option<&PathReport>) {
        if let Some(producer) = &mut self.queue {
            return producer.end(None);
        }
        let (mut response, trailers) = (std::mem::take(&mut self.response), self.trailers.take());
        if let Some(path) = path {
            response.extensions_mut().insert(path.clone());
        }
        self.tell(|lent| match (lent.failure(), path) {
            (Some(error), Some(path)) => Delivered::Failed(error.on_path(path).into(), None),
            (Some(error), None) => Delivered::Failed(error.into(), None),
            (None, _) => Delivered::Complete(Box::new(lent.received(response, trailers))),
        });
    }

    fn fail(mut self: Box<Self>, refused: Refused) {
        if let Some(producer) = &mut self.queue {
            return producer.abort(BodyError::Source(refused.error.into()));
        }
        self.tell(|lent| match (lent.failure(), refused.error.path()) {
            (Some(error), Some(path)) => Delivered::Failed(error.on_path(path).into(), None),
            (Some(error), None) => Delivered::Failed(error.into(), None),
            (None, _) => Delivered::Failed(refused, Some(lent)),
        });
    }
}
