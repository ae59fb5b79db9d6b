//! The exchanges of one HTTP/3 connection: responses on their way to those who wait for them.

use super::fault;
use super::link::{Answer, Refused};
use super::upload::Upload;
use crate::library::error::{Error, Kind};
use ::body::queue::Producer;
use ::body::{Body, BodyError};
use http3::{Abort, MessageSink, ResponseHead, Trailers};
use std::collections::HashMap;
use std::task::{Context, Waker};
use tokio::sync::oneshot;
use transport::{CloseReason, Event, StreamId};

/// So many bytes of a response wait for their reader. What the server may send beyond them is its window.
const CAPACITY: usize = 256 << 10;

/// How far a response is.
enum Response {
    /// Its head has not come.
    Awaited(oneshot::Sender<Answer>),
    /// Its content arrives.
    Content(Producer),
    /// It is complete.
    Complete,
    /// It has no reader, or cannot be used.
    Unwanted,
}

/// A request and its response.
pub(super) struct Exchange {
    response: Response,
    /// Until all of the request was sent.
    pub(super) upload: Option<Upload>,
    /// The queue of the content was full.
    is_paused: bool,
}

impl Exchange {
    pub(super) fn new(tell: oneshot::Sender<Answer>, upload: Option<Upload>) -> Exchange {
        Exchange { response: Response::Awaited(tell), upload, is_paused: false }
    }

    /// Whether both directions are complete.
    pub(super) fn is_over(&self) -> bool {
        self.upload.is_none() && matches!(self.response, Response::Complete)
    }

    /// Whether nothing more of it is wanted. The task of `cx` is called when that changes, and when there is room.
    pub(super) fn is_unwanted(&mut self, cx: &mut Context<'_>) -> bool {
        match &mut self.response {
            Response::Awaited(tell) => tell.poll_closed(cx).is_ready(),
            Response::Content(producer) => {
                producer.set_waker(cx.waker());
                !producer.has_reader()
            }
            Response::Complete => false,
            Response::Unwanted => true,
        }
    }

    /// Whether the response was paused and has room again.
    pub(super) fn takes_more(&mut self) -> bool {
        let has_room = matches!(&self.response, Response::Content(producer) if producer.has_room());
        self.is_paused && has_room && {
            self.is_paused = false;
            true
        }
    }

    /// There is no response, or it is not complete.
    pub(super) fn fail(&mut self, error: Error) {
        match std::mem::replace(&mut self.response, Response::Unwanted) {
            Response::Awaited(tell) => drop(tell.send(Err(Refused::from(error)))),
            Response::Content(mut producer) => producer.abort(BodyError::Source(error.into())),
            Response::Complete => self.response = Response::Complete,
            Response::Unwanted => {}
        }
    }

    fn on_head(&mut self, head: &ResponseHead<'_>, waker: &Waker) {
        let Response::Awaited(tell) = std::mem::replace(&mut self.response, Response::Unwanted) else {
            return;
        };
        let answer = match head.to_response() {
            Ok(response) => {
                let (mut producer, content) = Body::queue(CAPACITY);
                producer.set_waker(waker);
                self.response = Response::Content(producer);
                Ok(response.map(|()| content))
            }
            Err(error) => {
                Err(Error::caused(Kind::Protocol, "the head of the response is not valid", error).into())
            }
        };
        if tell.send(answer).is_err() {
            self.response = Response::Unwanted;
        }
    }
}

/// All exchanges of a connection, and what has happened to it.
pub(super) struct Messages {
    pub(super) exchanges: HashMap<StreamId, Exchange>,
    /// Something happened beside content that arrived: the turn must look at all exchanges.
    pub(super) needs_attention: bool,
    pub(super) is_connected: bool,
    pub(super) is_going_away: bool,
    pub(super) closed: Option<CloseReason>,
    /// Makes the connection act.
    pub(super) waker: Waker,
}

impl Messages {
    pub(super) fn new(waker: Waker) -> Messages {
        Messages {
            exchanges: HashMap::new(),
            needs_attention: false,
            is_connected: false,
            is_going_away: false,
            closed: None,
            waker,
        }
    }
}

impl MessageSink for Messages {
    fn on_response(&mut self, id: StreamId, head: &ResponseHead<'_>) {
        if head.is_interim() {
            return;
        }
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.on_head(head, &self.waker);
            self.needs_attention |= matches!(exchange.response, Response::Unwanted);
        }
    }

    #[inline]
    fn on_body(&mut self, id: StreamId, bytes: &[u8]) -> usize {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return bytes.len() };
        let Response::Content(producer) = &mut exchange.response else { return bytes.len() };
        let taken = producer.push_copy(bytes);
        exchange.is_paused = taken < bytes.len();
        taken
    }

    fn on_trailers(&mut self, id: StreamId, trailers: &Trailers<'_>) {
        // Fields that cannot be expressed are left out, as RFC 9110 §6.5.1 permits.
        if let Some(Exchange { response: Response::Content(producer), .. }) = self.exchanges.get_mut(&id) {
            producer.end(trailers.to_headers().ok());
        }
    }

    fn on_end(&mut self, id: StreamId) {
        self.needs_attention = true;
        if let Some(exchange) = self.exchanges.get_mut(&id)
            && let Response::Content(producer) = &mut exchange.response
        {
            producer.end(None);
            exchange.response = Response::Complete;
        }
    }

    fn on_abort(&mut self, id: StreamId, abort: Abort) {
        self.needs_attention = true;
        if let Some(mut exchange) = self.exchanges.remove(&id) {
            exchange.fail(fault::of_abort(abort));
        }
    }

    fn on_stop_sending(&mut self, id: StreamId, _: http3::Code) {
        self.needs_attention = true;
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.upload = None;
        }
    }

    fn on_writable(&mut self, _: StreamId) {
        self.needs_attention = true;
    }

    fn on_goaway(&mut self) {
        (self.is_going_away, self.needs_attention) = (true, true);
    }

    fn on_event(&mut self, event: &Event) {
        match event {
            Event::Connected => self.is_connected = true,
            Event::Closed(reason) => self.closed = Some(reason.clone()),
            _ => {}
        }
        self.needs_attention = true;
    }
}
