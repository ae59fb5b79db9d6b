//! The HTTP/3 client application: what every HTTP/3 client does on the connections of a worker.
//!
//! [`ClientApp`] is the worker's application. It owns the HTTP/3 session, the table of requests, the life of a connection from
//! the handshake to the close, the content of requests that waits for room, and deadlines. A client adds two parts:
//! [`Responses`] is its state of one connection and takes in what arrives while packets are read; [`Requests`] is what its
//! connections share and acts in the turn that follows, on an [`Active`] connection. Both are type parameters: no call is
//! virtual. Content is lent where it lies, and a request takes no memory of its own but a place in the table.
//!
//! Invariant: each request that is kept ends once, by `on_end`, by `on_failure`, or because its client cancels it. A connection
//! ends once, by `on_closed`.

use base::slab::Handle;
use base::time::Instant;
use bytes::Bytes;
use core::ops::{Deref, DerefMut};
use http::{HeaderMap, request};
use http3::{
    Abort, BodyLength, Code, ConnectionError, EncodedRequest, MessageSink, RequestError, ResponseHead,
    SendError, Session, StreamTable, Trailers,
};
use std::sync::Arc;
use transport::{CloseReason, Connection, Dir, EarlyStatus, Event, Fin, StreamId, StreamSink};
use wire::Side;
use worker::{App, Next};

/// How a connection has ended.
#[derive(Clone, Debug)]
pub struct End {
    /// What the transport says.
    pub reason: CloseReason,
    /// What the server did, if the HTTP of this side has closed the connection for it.
    pub failure: Option<ConnectionError>,
}

/// Why a request has no complete response.
#[derive(Clone, Copy, Debug)]
pub enum Failure<'a> {
    /// The exchange was given up.
    Aborted(Abort),
    /// The content of the request cannot be sent.
    Unsendable(SendError),
    /// The connection has ended.
    Closed(&'a End),
}

/// The next of a request's content.
#[derive(Debug)]
pub enum Content {
    /// There is none now, or none any more.
    Wait,
    /// At most as many bytes as there is room, and at least one.
    Bytes(Bytes),
    /// The last bytes, perhaps none, and the trailers. Nothing follows.
    Last(Bytes, Option<HeaderMap>),
    /// There will be no rest: the exchange is cancelled.
    Broken,
}

/// A client's state of one connection: it takes in what arrives. Everything is lent for the duration of the call.
pub trait Responses {
    /// What is kept for a request until its response is complete and its content is sent.
    type Request;

    /// The head of an informational response, which another head follows. RFC 9110 §15.2.
    fn on_interim(&mut self, _request: &mut Self::Request, _head: &ResponseHead<'_>) {}

    /// The head of the final response.
    fn on_head(&mut self, _request: &mut Self::Request, _head: &ResponseHead<'_>) {}

    /// The next bytes of the content, at least one. Returns how many were taken. When fewer than all are taken the stream
    /// pauses until [`Active::resume`].
    fn on_body(&mut self, request: &mut Self::Request, bytes: &[u8]) -> usize;

    /// The fields that follow the content.
    fn on_trailers(&mut self, _request: &mut Self::Request, _trailers: &Trailers<'_>) {}

    /// The response is complete. Returns the request if the rest of its own content shall still be sent.
    fn on_end(&mut self, request: Self::Request) -> Option<Self::Request>;

    /// The response will not be completed.
    fn on_failure(&mut self, request: Self::Request, failure: Failure<'_>);

    /// The server takes no more of the request's content. Its response, or a failure, follows.
    fn on_stop_sending(&mut self, _request: &mut Self::Request) {}

    /// The next of the request's content, for a stream with room for this many bytes. Without room it may be the end.
    fn next_content(&mut self, _request: &mut Self::Request, _room: usize) -> Content {
        Content::Wait
    }
}

/// What the connections of a client share: it sends requests.
pub trait Requests {
    /// The state of a connection.
    type Connection: Responses;

    /// The state of a connection that a peer opens. A client's endpoint takes none.
    fn on_accept(&mut self, now: Instant) -> Self::Connection;

    /// See [`App::take_called`].
    fn take_called(&mut self, _handles: &mut Vec<Handle>) {}

    /// The handshake is complete. `on_turn` follows.
    fn on_connected(&mut self, _active: &mut Active<'_, Self::Connection>) {}

    /// Something has happened on a connection that is not closed, or time is over. Returns when to act again if nothing
    /// happens before.
    fn on_turn(&mut self, active: &mut Active<'_, Self::Connection>) -> Option<Instant>;

    /// A connection has ended, and so have its requests. Nothing of it follows.
    fn on_closed(&mut self, now: Instant, quic: &Connection, state: &mut Self::Connection, end: &End);
}

/// A request in the table.
struct TrackedRequest<R> {
    request: R,
    /// The response is complete: the request is over when its content is.
    is_answered: bool,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Connecting,
    Open,
    /// It takes no more requests, and is closed after the last of them.
    Leaving,
    Closed,
}

/// What arrives on a connection, on its way to the client's state.
struct Incoming<C: Responses> {
    state: C,
    requests: StreamTable<TrackedRequest<C::Request>>,
    /// Streams that take more content.
    writable: Vec<StreamId>,
    life: Life,
    /// The handshake is complete, and the client has not heard of it.
    is_new: bool,
    /// The connection is over, and the client has not heard of it.
    closed: Option<CloseReason>,
}

impl<C: Responses> Incoming<C> {
    #[inline]
    fn entry(&mut self, id: StreamId) -> Option<(&mut C, &mut C::Request)> {
        let entry = self.requests.entry_mut(id.index())?;
        Some((&mut self.state, &mut entry.request))
    }

    /// No more of the request's content is sent.
    fn on_content_over(&mut self, id: StreamId) {
        if self.requests.entry_mut(id.index()).is_some_and(|entry| entry.is_answered) {
            self.requests.remove(id.index());
        }
    }

    fn fail(&mut self, id: StreamId, failure: Failure<'_>) {
        if let Some(TrackedRequest { request, is_answered: false }) = self.requests.remove(id.index()) {
            self.state.on_failure(request, failure);
        }
    }
}

impl<C: Responses> MessageSink for Incoming<C> {
    fn on_response(&mut self, id: StreamId, head: &ResponseHead<'_>) {
        match self.entry(id) {
            Some((state, request)) if head.is_interim() => state.on_interim(request, head),
            Some((state, request)) => state.on_head(request, head),
            None => {}
        }
    }

    #[inline]
    fn on_body(&mut self, id: StreamId, bytes: &[u8]) -> usize {
        match self.entry(id) {
            Some((state, request)) => state.on_body(request, bytes),
            None => bytes.len(),
        }
    }

    fn on_trailers(&mut self, id: StreamId, trailers: &Trailers<'_>) {
        if let Some((state, request)) = self.entry(id) {
            state.on_trailers(request, trailers);
        }
    }

    fn on_end(&mut self, id: StreamId) {
        if let Some(TrackedRequest { request, .. }) = self.requests.remove(id.index())
            && let Some(request) = self.state.on_end(request)
        {
            self.requests.insert(id.index(), TrackedRequest { request, is_answered: true });
        }
    }

    fn on_abort(&mut self, id: StreamId, abort: Abort) {
        self.fail(id, Failure::Aborted(abort));
    }

    fn on_stop_sending(&mut self, id: StreamId, _: Code) {
        if let Some((state, request)) = self.entry(id) {
            state.on_stop_sending(request);
        }
        self.on_content_over(id);
    }

    fn on_writable(&mut self, id: StreamId) {
        self.writable.push(id);
    }

    fn on_goaway(&mut self) {
        self.life = Life::Leaving;
    }

    fn on_event(&mut self, event: &Event) {
        match event {
            Event::Connected if self.life == Life::Connecting => {
                (self.life, self.is_new) = (Life::Open, true)
            }
            Event::Closed(reason) => self.closed = Some(reason.clone()),
            _ => {}
        }
    }
}

/// What a worker keeps for a connection.
pub struct ClientConnection<C: Responses>(Session<Incoming<C>>);

impl<C: Responses> ClientConnection<C> {
    /// A connection that has done nothing yet. `streams`: with this many requests at a time their table keeps its memory.
    pub fn new(config: Arc<http3::Config>, state: C, streams: usize, now: Instant) -> ClientConnection<C> {
        let messages = Incoming {
            state,
            requests: StreamTable::keeping(streams),
            writable: Vec::new(),
            life: Life::Connecting,
            is_new: false,
            closed: None,
        };
        ClientConnection(Session { connection: http3::Connection::new(Side::Client, config, now), messages })
    }

    /// The client's state.
    pub fn state(&mut self) -> &mut C {
        &mut self.0.messages.state
    }

    /// The connection for one who acts on it, in its turn or between turns.
    #[inline]
    pub fn active<'a>(&'a mut self, quic: &'a mut Connection, now: Instant) -> Active<'a, C> {
        Active { now, quic, session: &mut self.0 }
    }
}

impl<C: Responses> StreamSink for ClientConnection<C> {
    #[inline]
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        self.0.on_stream_data(id, bytes, fin)
    }
}

/// A connection on which a client acts.
pub struct Active<'a, C: Responses> {
    /// The time of the turn.
    pub now: Instant,
    /// The connection below HTTP.
    pub quic: &'a mut Connection,
    session: &'a mut Session<Incoming<C>>,
}

impl<C: Responses> Active<'_, C> {
    /// The client's state.
    #[inline]
    pub fn state(&mut self) -> &mut C {
        &mut self.session.messages.state
    }

    /// Whether it takes requests.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.session.messages.life == Life::Open
    }

    /// What the server has said of itself; `None` until it has.
    #[inline]
    pub fn peer_settings(&self) -> Option<&http3::Settings> {
        self.session.connection.peer_settings()
    }

    /// Whether requests may be sent before the handshake is complete. Source: RFC 9001 §4.6.
    pub fn may_send_early(&self) -> bool {
        self.session.messages.life == Life::Connecting && self.quic.early_status() == EarlyStatus::Offered
    }

    /// Whether it takes no more requests. It is closed after the last of them.
    pub fn is_leaving(&self) -> bool {
        self.session.messages.life == Life::Leaving
    }

    /// Whether it has ended.
    pub fn is_closed(&self) -> bool {
        self.session.messages.life == Life::Closed
    }

    /// Requests that are not over.
    #[inline]
    pub fn outstanding(&self) -> usize {
        self.session.messages.requests.len()
    }

    /// Sends the head of a request. [`Active::keep`] must follow.
    ///
    /// # Errors
    /// Nothing was sent. After [`RequestError::NoStream`] there is a turn when the server permits more.
    pub fn request(&mut self, head: &request::Parts, length: BodyLength) -> Result<StreamId, RequestError> {
        let sent = self.session.connection.request(self.quic, head, length);
        sent.inspect_err(|error| self.on_refused(*error))
    }

    /// As [`Active::request`], with a request that was encoded before.
    ///
    /// # Errors
    /// Nothing was sent.
    #[inline]
    pub fn request_encoded(&mut self, request: &EncodedRequest) -> Result<StreamId, RequestError> {
        let sent = self.session.connection.request_encoded(self.quic, request);
        sent.inspect_err(|error| self.on_refused(*error))
    }

    #[cold]
    fn on_refused(&mut self, error: RequestError) {
        if matches!(error, RequestError::GoingAway | RequestError::Closed) {
            self.leave();
        }
    }

    /// Keeps a request that was sent.
    #[inline]
    pub fn keep(&mut self, id: StreamId, request: C::Request) {
        self.session.messages.requests.insert(id.index(), TrackedRequest { request, is_answered: false });
    }

    /// The state and a request that is not over.
    #[inline]
    pub fn entry(&mut self, id: StreamId) -> Option<(&mut C, &mut C::Request)> {
        self.session.messages.entry(id)
    }

    /// All requests that are not over, in no order.
    pub fn requests(&mut self) -> impl Iterator<Item = (StreamId, &mut C::Request)> {
        let entries = self.session.messages.requests.iter_mut();
        entries.map(|(index, entry)| (StreamId::new(Side::Client, Dir::Bidi, index), &mut entry.request))
    }

    /// Sends as much of a request's content as its stream takes. When the stream takes more, it happens by itself.
    pub fn feed(&mut self, id: StreamId) {
        let Session { connection: http, messages } = &mut *self.session;
        loop {
            let Some((state, request)) = messages.entry(id) else { return };
            let room = self.quic.send_capacity(id);
            let (sent, is_last) = match state.next_content(request, room) {
                Content::Wait => return,
                Content::Bytes(bytes) => (http.write_body(self.quic, id, bytes), false),
                Content::Last(bytes, trailers) => {
                    let sent = http.write_body(self.quic, id, bytes);
                    let end = sent.and_then(|()| match trailers {
                        Some(trailers) => http.write_trailers(self.quic, id, &trailers),
                        None => http.finish(self.quic, id),
                    });
                    (end, true)
                }
                Content::Broken => {
                    self.cancel(id);
                    return;
                }
            };
            match sent {
                Ok(()) if !is_last => {}
                Ok(()) => return messages.on_content_over(id),
                Err(SendError::NoSuchExchange) => return messages.on_stop_sending(id, Code::NO_ERROR),
                Err(error) => {
                    http.cancel(self.quic, id, Code::REQUEST_CANCELLED);
                    return messages.fail(id, Failure::Unsendable(error));
                }
            }
        }
    }

    /// Lends what has arrived of a response that was paused.
    pub fn resume(&mut self, id: StreamId) {
        self.session.deliver(self.quic, self.now, id);
    }

    /// Gives up a request, of which nothing more is heard.
    pub fn cancel(&mut self, id: StreamId) -> Option<C::Request> {
        self.session.connection.cancel(self.quic, id, Code::REQUEST_CANCELLED);
        self.session.messages.requests.remove(id.index()).map(|entry| entry.request)
    }

    /// From now on it takes no more requests. It is closed after the last of them.
    pub fn leave(&mut self) {
        let life = &mut self.session.messages.life;
        if *life != Life::Closed {
            *life = Life::Leaving;
        }
    }

    /// Closes it in the turn that follows. Its requests fail.
    pub fn close(&mut self) {
        self.leave();
        self.session.connection.close(self.quic, self.now);
    }
}

/// The worker's application.
#[derive(Clone, Debug, Default)]
pub struct ClientApp<A>(pub A);

impl<A> Deref for ClientApp<A> {
    type Target = A;

    fn deref(&self) -> &A {
        &self.0
    }
}

impl<A> DerefMut for ClientApp<A> {
    fn deref_mut(&mut self) -> &mut A {
        &mut self.0
    }
}

impl<A: Requests> ClientApp<A> {
    #[cold]
    fn end(
        &mut self,
        now: Instant,
        quic: &Connection,
        session: &mut Session<Incoming<A::Connection>>,
        reason: CloseReason,
    ) {
        let Session { connection: http, messages: Incoming { state, requests, life, .. } } = session;
        if core::mem::replace(life, Life::Closed) == Life::Closed {
            return;
        }
        let end = End { reason, failure: http.failure() };
        for (_, TrackedRequest { request, is_answered }) in requests.drain() {
            if !is_answered {
                state.on_failure(request, Failure::Closed(&end));
            }
        }
        self.0.on_closed(now, quic, state, &end);
    }
}

impl<A: Requests> App for ClientApp<A> {
    type State = ClientConnection<A::Connection>;

    fn on_accept(&mut self, now: Instant, _: &mut Connection) -> Self::State {
        ClientConnection::new(Arc::new(http3::Config::client()), self.0.on_accept(now), 0, now)
    }

    #[inline]
    fn take_called(&mut self, _: Instant, handles: &mut Vec<Handle>) {
        self.0.take_called(handles);
    }

    fn on_turn(&mut self, now: Instant, quic: &mut Connection, connection: &mut Self::State) -> Next {
        let session = &mut connection.0;
        session.on_turn(quic, now);
        if core::mem::take(&mut session.messages.is_new) {
            self.0.on_connected(&mut Active { now, quic, session });
        }
        if let Some(reason) = session.messages.closed.take() {
            self.end(now, quic, session, reason);
        }
        if session.messages.life == Life::Closed {
            return Next::Wait;
        }
        let mut active = Active { now, quic, session };
        while let Some(id) = active.session.messages.writable.pop() {
            active.feed(id);
        }
        let at = self.0.on_turn(&mut active);
        if active.is_leaving() && active.outstanding() == 0 {
            active.close();
        }
        [at, session.connection.next_timeout()].into_iter().flatten().min().map_or(Next::Wait, Next::At)
    }

    fn on_gone(&mut self, now: Instant, quic: &Connection, mut connection: Self::State) {
        self.end(now, quic, &mut connection.0, CloseReason::Local { code: Code::NO_ERROR.0 });
    }
}
