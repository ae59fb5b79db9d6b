//! The server's end of requests.

use super::ask::{Ask, Shape};
use crate::piece::{Incoming, Outgoing};
use crate::read_behaviour::ReadBehaviour;
use crate::transfer::PAUSE;
use base::time::Instant;
use http::{HeaderMap, HeaderName, HeaderValue};
use http3::{Abort, BodyLength, Code, Config, MessageSink, RequestHead, SendError, Session, Trailers};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transport::{CloseReason, Connection, Counters, Event, StreamId};
use wire::Side;
use worker::{App, Next};

/// The trailer that says how much was sent.
pub(super) const COUNT: &str = "x-count";

/// The application, and what became of it all.
#[derive(Debug)]
pub struct Server {
    read_behaviour: ReadBehaviour,
    config: Arc<Config>,
    /// Connections that clients began.
    pub accepted: u64,
    /// Connections on which a request arrived.
    pub talked: u64,
    /// Requests that were answered whole.
    pub completed: u64,
    /// Requests that the client gave up.
    pub cancelled: u64,
    /// Content bytes that have arrived in order so far, on all connections.
    pub received: u64,
    /// What the connection counted that had the last turn.
    pub counters: Counters,
    /// Why connections ended.
    pub reasons: Vec<CloseReason>,
    /// Everything that went wrong.
    pub failures: Vec<String>,
}

impl Server {
    /// A server whose receivers have this mood.
    pub fn new(read_behaviour: ReadBehaviour, config: Arc<Config>) -> Server {
        Server {
            read_behaviour,
            config,
            accepted: 0,
            talked: 0,
            completed: 0,
            cancelled: 0,
            received: 0,
            counters: Counters::default(),
            reasons: Vec::new(),
            failures: Vec::new(),
        }
    }
}

#[derive(Debug)]
struct Answer {
    ask: Ask,
    incoming: Incoming,
    outgoing: Outgoing,
    is_head_sent: bool,
    is_ended: bool,
}

/// What the server keeps of a connection besides HTTP/3 itself.
#[derive(Debug)]
pub struct ServerConnection {
    read_behaviour: ReadBehaviour,
    answers: BTreeMap<StreamId, Answer>,
    /// Answers that may have something to send.
    sending: Vec<StreamId>,
    paused: Vec<StreamId>,
    /// Requests that the client gave up; some of their content may still come.
    cancelled: BTreeSet<StreamId>,
    /// Content bytes that have arrived since the last turn.
    received: u64,
    has_talked: bool,
    /// It has talked since the last turn for the first time.
    has_news: bool,
    reasons: Vec<CloseReason>,
    failures: Vec<String>,
}

impl ServerConnection {
    fn cancel(&mut self, id: StreamId) {
        self.answers.remove(&id);
        self.cancelled.insert(id);
    }

    fn fail(&mut self, id: StreamId, what: impl core::fmt::Display) {
        self.failures.push(format!("server, request {}: {what}", id.as_u64()));
    }
}

impl MessageSink for ServerConnection {
    fn on_request(&mut self, id: StreamId, head: &RequestHead<'_>) {
        self.has_news |= !core::mem::replace(&mut self.has_talked, true);
        let Some(ask) = head.path().and_then(Ask::from_path) else {
            return self.fail(id, format!("strange path {:?}", head.path()));
        };
        let announced = (ask.has_content() && !ask.shape.has(Shape::UNKNOWN_UP)).then_some(ask.up);
        if head.content_length() != announced {
            self.fail(id, format!("announces {:?} instead of {announced:?}", head.content_length()));
        }
        let incoming = Incoming::new(ask.offset, ask.up);
        let outgoing = Outgoing::new(ask.offset, ask.expected());
        self.answers.insert(id, Answer { ask, incoming, outgoing, is_head_sent: false, is_ended: false });
        self.sending.push(id);
    }

    fn on_body(&mut self, id: StreamId, bytes: &[u8]) -> usize {
        let taken = self.read_behaviour.takes(bytes.len());
        self.received += taken as u64;
        if taken < bytes.len() {
            self.paused.push(id);
        }
        let outcome = match self.answers.get_mut(&id) {
            Some(answer) => answer.incoming.on_bytes(bytes.get(..taken).unwrap_or(&[])),
            None if self.cancelled.contains(&id) => Ok(()),
            None => Err("content without a head".to_owned()),
        };
        if let Err(failure) = outcome {
            self.fail(id, failure);
        }
        taken
    }

    fn on_trailers(&mut self, id: StreamId, trailers: &Trailers<'_>) {
        if trailers.fields().len() != 1 {
            self.fail(id, "lost its trailer");
        }
    }

    fn on_end(&mut self, id: StreamId) {
        if self.cancelled.contains(&id) {
            return;
        }
        let Some(answer) = self.answers.get_mut(&id) else { return self.fail(id, "an end without a head") };
        answer.is_ended = true;
        self.sending.push(id);
        if !answer.incoming.is_complete() {
            let left = answer.incoming.left();
            self.fail(id, format!("ended {left} bytes early"));
        }
    }

    fn on_abort(&mut self, id: StreamId, abort: Abort) {
        self.cancel(id);
        if abort != Abort::Peer(Code::REQUEST_CANCELLED) {
            self.fail(id, format!("{abort:?}"));
        }
    }

    fn on_stop_sending(&mut self, id: StreamId, _code: Code) {
        self.cancel(id);
    }

    fn on_writable(&mut self, id: StreamId) {
        self.sending.push(id);
    }

    fn on_event(&mut self, event: &Event) {
        if let Event::Closed(reason) = event {
            self.reasons.push(reason.clone());
        }
    }
}

/// A trailer section of one field.
pub(super) fn trailers(count: u64) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert(HeaderName::from_static(COUNT), HeaderValue::from(count));
    trailers
}

/// Sends what an answer has to send now; `true` when it is complete.
fn advance(
    session: &mut Session<ServerConnection>,
    connection: &mut Connection,
    id: StreamId,
) -> Result<bool, SendError> {
    let Session { connection: http, messages } = session;
    let Some(answer) = messages.answers.get_mut(&id) else { return Ok(false) };
    let Ask { down, shape, .. } = answer.ask;
    let is_bare = shape.has(Shape::HEAD) || (down == 0 && !shape.has(Shape::TRAILERS_DOWN));
    if !answer.is_head_sent {
        if is_bare && !answer.is_ended {
            // The head is the end.
            return Ok(false);
        }
        answer.is_head_sent = true;
        if shape.has(Shape::INTERIM) {
            http.respond_interim(connection, id, 103, [(&b"link"[..], &b"</style.css>"[..])])?;
        }
        let (body, length) = match () {
            () if is_bare => (BodyLength::Empty, Some(down)),
            () if shape.has(Shape::UNKNOWN_DOWN) => (BodyLength::Unknown, None),
            () => (BodyLength::Known(down), Some(down)),
        };
        let length = length.map(|length| length.to_string());
        let fields = length.iter().map(|length| (&b"content-length"[..], length.as_bytes()));
        http.respond_with(connection, id, 200, fields, body)?;
        if is_bare {
            return Ok(true);
        }
    }
    while let Some(bytes) = answer.outgoing.next(connection.send_capacity(id), &mut messages.read_behaviour) {
        http.write_body(connection, id, bytes)?;
    }
    if !answer.outgoing.is_written() || !answer.is_ended {
        return Ok(false);
    }
    if shape.has(Shape::TRAILERS_DOWN) {
        http.write_trailers(connection, id, &trailers(down))?;
    } else {
        http.finish(connection, id)?;
    }
    Ok(true)
}

impl App for Server {
    type State = Session<ServerConnection>;

    fn on_accept(&mut self, now: Instant, connection: &mut Connection) -> Session<ServerConnection> {
        self.accepted += 1;
        let messages = ServerConnection {
            read_behaviour: self.read_behaviour.fork(),
            answers: BTreeMap::new(),
            sending: Vec::new(),
            paused: Vec::new(),
            cancelled: BTreeSet::new(),
            received: 0,
            has_talked: false,
            has_news: false,
            reasons: Vec::new(),
            failures: Vec::new(),
        };
        let mut http = http3::Connection::new(Side::Server, self.config.clone(), now);
        http.begin_trace(connection);
        Session { connection: http, messages }
    }

    fn on_turn(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        session: &mut Session<ServerConnection>,
    ) -> Next {
        session.on_turn(connection, now);
        self.counters = *connection.counters();
        for id in core::mem::take(&mut session.messages.paused) {
            session.deliver(connection, now, id);
        }
        let is_closed = connection.is_closed();
        for id in core::mem::take(&mut session.messages.sending) {
            if is_closed {
                continue;
            }
            match advance(session, connection, id) {
                Ok(false) => {}
                Ok(true) => {
                    self.completed += u64::from(session.messages.answers.remove(&id).is_some());
                }
                // The client gave up; `on_abort` or `on_stop_sending` says so, too.
                Err(SendError::NoSuchExchange) => {}
                Err(error) => session.messages.fail(id, error),
            }
        }
        let visit = &mut session.messages;
        self.talked += u64::from(core::mem::take(&mut visit.has_news));
        self.received += core::mem::take(&mut visit.received);
        self.reasons.append(&mut visit.reasons);
        self.failures.append(&mut visit.failures);
        next(now, visit.paused.is_empty() || is_closed, session.connection.next_timeout())
    }

    fn on_gone(&mut self, _now: Instant, connection: &Connection, mut session: Session<ServerConnection>) {
        self.counters = *connection.counters();
        self.cancelled += session.messages.cancelled.len() as u64;
        self.failures.append(&mut session.messages.failures);
        if let Some(failure) = session.connection.failure() {
            self.failures.push(format!("the server says: {failure:?}"));
        }
    }
}

/// When an application acts next.
pub(super) fn next(now: Instant, is_idle: bool, timeout: Option<Instant>) -> Next {
    let pause = (!is_idle).then(|| now + PAUSE);
    [pause, timeout].into_iter().flatten().min().map_or(Next::Wait, Next::At)
}
