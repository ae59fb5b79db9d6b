//! The client's end of requests.

use super::ask::{Ask, Shape};
use super::server::{next, trailers};
use crate::piece::{Incoming, Outgoing};
use crate::read_behaviour::ReadBehaviour;
use base::rng::Rng;
use base::time::{Duration, Instant};
use http3::{
    Abort, BodyLength, Code, Config, MessageSink, RequestError, ResponseHead, SendError, Session, Trailers,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use transport::{CloseReason, Connection, Counters, Event, StreamId};
use wire::Side;
use worker::{App, Next};

#[derive(Debug)]
struct Exchange {
    ask: Ask,
    asked_at: Instant,
    incoming: Incoming,
    outgoing: Outgoing,
    /// All of the request was written.
    is_sent: bool,
    /// Heads so far: interim ones, final ones, trailers.
    heads: [u32; 3],
}

/// What the client does on one connection.
#[derive(Debug)]
pub struct RequestPlan {
    read_behaviour: ReadBehaviour,
    waiting: VecDeque<Ask>,
    exchanges: BTreeMap<StreamId, Exchange>,
    parallel: usize,
    /// The time from one request to the next, and when the last was made.
    apart: Duration,
    asked_at: Instant,
    sending: Vec<StreamId>,
    paused: Vec<StreamId>,
    /// Exchanges that are complete, or to be given up.
    over: Vec<(StreamId, bool)>,
    key_updates: u32,
    reasons: Vec<CloseReason>,
    failures: Vec<String>,
    is_done: bool,
    /// Content bytes that arrived in order.
    received: u64,
}

impl RequestPlan {
    /// Carries out `asks`, at most `parallel` at a time, and updates keys this many times on the way.
    pub fn new(
        read_behaviour: ReadBehaviour,
        asks: impl IntoIterator<Item = Ask>,
        parallel: usize,
        key_updates: u32,
    ) -> RequestPlan {
        RequestPlan {
            read_behaviour,
            waiting: asks.into_iter().collect(),
            exchanges: BTreeMap::new(),
            parallel: parallel.max(1),
            apart: Duration::ZERO,
            asked_at: Instant::ZERO,
            sending: Vec::new(),
            paused: Vec::new(),
            over: Vec::new(),
            key_updates,
            reasons: Vec::new(),
            failures: Vec::new(),
            is_done: false,
            received: 0,
        }
    }

    /// The same, each request so long after the one before.
    #[must_use]
    pub fn apart(self, apart: Duration) -> RequestPlan {
        RequestPlan { apart, ..self }
    }

    /// When the next request is due, if that is not yet.
    fn next_ask_at(&self, now: Instant) -> Option<Instant> {
        let at = self.asked_at + self.apart;
        (!self.waiting.is_empty() && at > now).then_some(at)
    }

    /// The state of a connection that does this.
    pub fn into_session(self, config: &Arc<Config>, now: Instant) -> Session<RequestPlan> {
        Session { connection: http3::Connection::new(Side::Client, config.clone(), now), messages: self }
    }

    /// What is not over yet, for a report.
    pub(super) fn unfinished(&self) -> String {
        let mut text = format!("{} to be asked", self.waiting.len());
        for (id, exchange) in self.exchanges.iter().take(5) {
            let Exchange { incoming, outgoing, is_sent, heads, .. } = exchange;
            text += &format!(", {}: {incoming:?} {outgoing:?} sent: {is_sent} {heads:?}", id.as_u64());
        }
        text
    }

    fn fail(&mut self, id: StreamId, what: impl core::fmt::Display) {
        self.failures.push(format!("client, request {}: {what}", id.as_u64()));
    }

    fn on_bytes(&mut self, id: StreamId, bytes: &[u8]) -> Result<(), String> {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return Err("no such exchange".to_owned()) };
        if exchange.heads[1] != 1 {
            return Err("content without a head".to_owned());
        }
        exchange.incoming.on_bytes(bytes)?;
        self.received += bytes.len() as u64;
        if exchange.ask.is_cancelled && exchange.incoming.left() < exchange.ask.down / 2 {
            self.over.push((id, true));
        }
        Ok(())
    }

    /// Whether everything was done as asked.
    fn judge(exchange: &Exchange) -> Result<(), String> {
        let Exchange { ask, incoming, is_sent, heads: [interim, last, trailers], .. } = exchange;
        if !incoming.is_complete() {
            return Err(format!("ended {} bytes early", incoming.left()));
        }
        if !is_sent {
            return Err("answered before all was asked".to_owned());
        }
        let is_bare = ask.shape.has(Shape::HEAD);
        let expected = [
            u32::from(ask.shape.has(Shape::INTERIM)),
            1,
            u32::from(ask.shape.has(Shape::TRAILERS_DOWN) && !is_bare),
        ];
        if [*interim, *last, *trailers] == expected {
            Ok(())
        } else {
            Err(format!("heads {interim} {last} {trailers} instead of {expected:?}"))
        }
    }
}

impl MessageSink for RequestPlan {
    fn on_response(&mut self, id: StreamId, head: &ResponseHead<'_>) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.heads[usize::from(!head.is_interim())] += 1;
        let shape = exchange.ask.shape;
        let announced = (!shape.has(Shape::UNKNOWN_DOWN)).then_some(exchange.ask.down);
        let is_right = head.is_interim()
            || (head.status() == 200 && (announced.is_none() || head.content_length() == announced));
        if !is_right {
            self.fail(id, format!("status {}, length {:?}", head.status(), head.content_length()));
        }
    }

    fn on_body(&mut self, id: StreamId, bytes: &[u8]) -> usize {
        let taken = self.read_behaviour.takes(bytes.len());
        if taken < bytes.len() {
            self.paused.push(id);
        }
        if let Err(failure) = self.on_bytes(id, bytes.get(..taken).unwrap_or(&[])) {
            self.fail(id, failure);
        }
        taken
    }

    fn on_trailers(&mut self, id: StreamId, trailers: &Trailers<'_>) {
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.heads[2] += trailers.fields().len() as u32;
        }
    }

    fn on_end(&mut self, id: StreamId) {
        match self.exchanges.get(&id).map(RequestPlan::judge) {
            Some(Ok(())) => self.over.push((id, false)),
            Some(Err(failure)) => self.fail(id, failure),
            None => self.fail(id, "ended twice"),
        }
    }

    fn on_abort(&mut self, id: StreamId, abort: Abort) {
        self.fail(id, format!("{abort:?}"));
    }

    fn on_stop_sending(&mut self, id: StreamId, code: Code) {
        self.fail(id, format!("the server wants no more: {code:?}"));
    }

    fn on_writable(&mut self, id: StreamId) {
        self.sending.push(id);
    }

    fn on_event(&mut self, event: &Event) {
        if let Event::Closed(reason) = event {
            if !self.is_done {
                self.failures.push(format!("closed too early: {reason:?}"));
            }
            self.reasons.push(reason.clone());
        }
    }
}

fn open(session: &mut Session<RequestPlan>, connection: &mut Connection, now: Instant) -> Result<(), String> {
    let Session { connection: http, messages: client_plan } = session;
    while client_plan.exchanges.len() < client_plan.parallel && client_plan.next_ask_at(now).is_none() {
        let Some(&ask) = client_plan.waiting.front() else { return Ok(()) };
        let has_more = ask.has_content() || ask.shape.has(Shape::TRAILERS_UP);
        let body = match () {
            () if !has_more => BodyLength::Empty,
            () if ask.shape.has(Shape::UNKNOWN_UP) || !ask.has_content() => BodyLength::Unknown,
            () => BodyLength::Known(ask.up),
        };
        let id = match http.request(connection, &ask.to_head()?, body) {
            Ok(id) => id,
            Err(RequestError::NoStream) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        client_plan.waiting.pop_front();
        let incoming = Incoming::new(ask.offset, ask.expected());
        let outgoing = Outgoing::new(ask.offset, ask.up);
        client_plan.asked_at = now;
        let exchange = Exchange { ask, asked_at: now, incoming, outgoing, is_sent: !has_more, heads: [0; 3] };
        client_plan.exchanges.insert(id, exchange);
        client_plan.sending.push(id);
    }
    Ok(())
}

fn send(
    session: &mut Session<RequestPlan>,
    connection: &mut Connection,
    id: StreamId,
) -> Result<(), SendError> {
    let Session { connection: http, messages: client_plan } = session;
    let Some(exchange) = client_plan.exchanges.get_mut(&id).filter(|exchange| !exchange.is_sent) else {
        return Ok(());
    };
    while let Some(bytes) =
        exchange.outgoing.next(connection.send_capacity(id), &mut client_plan.read_behaviour)
    {
        http.write_body(connection, id, bytes)?;
    }
    if exchange.outgoing.is_written() {
        exchange.is_sent = true;
        if exchange.ask.shape.has(Shape::TRAILERS_UP) {
            http.write_trailers(connection, id, &trailers(exchange.ask.up))?;
        } else {
            http.finish(connection, id)?;
        }
    }
    Ok(())
}

/// The application, and what became of it all.
#[derive(Debug, Default)]
pub struct Client {
    /// Connections on which everything was done.
    pub done: u64,
    /// What their connections counted.
    pub counters: Counters,
    /// Content bytes that have arrived in order so far, on the connection that had the last turn.
    pub received: u64,
    /// The exchanges that are over: the content that was wanted, and how long it took.
    pub answered: Vec<(u64, Duration)>,
    /// Why connections ended.
    pub reasons: Vec<CloseReason>,
    /// Everything that went wrong.
    pub failures: Vec<String>,
}

impl Client {
    fn act(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        session: &mut Session<RequestPlan>,
    ) -> Result<(), String> {
        for (id, is_cancelled) in core::mem::take(&mut session.messages.over) {
            let Some(exchange) = session.messages.exchanges.remove(&id) else { continue };
            self.answered.push((exchange.ask.down, now.saturating_since(exchange.asked_at)));
            if is_cancelled {
                session.connection.cancel(connection, id, Code::REQUEST_CANCELLED);
            }
        }
        open(session, connection, now)?;
        for id in core::mem::take(&mut session.messages.sending) {
            send(session, connection, id).map_err(|error| format!("request {}: {error}", id.as_u64()))?;
        }
        let client_plan = &mut session.messages;
        if client_plan.key_updates > 0 && connection.update_keys(now) {
            client_plan.key_updates -= 1;
        }
        if client_plan.exchanges.is_empty() && client_plan.waiting.is_empty() {
            client_plan.is_done = true;
            self.done += 1;
            self.counters = *connection.counters();
            session.connection.close(connection, now);
        }
        Ok(())
    }
}

impl App for Client {
    type State = Session<RequestPlan>;

    /// Never called: a client's endpoint refuses connections.
    fn on_accept(&mut self, now: Instant, connection: &mut Connection) -> Session<RequestPlan> {
        self.failures.push(format!("a peer connected to the client from {}", connection.addresses().peer));
        let client_plan = RequestPlan::new(ReadBehaviour::new(Rng::from_u64(0), 0), [], 1, 0);
        client_plan.into_session(&Arc::new(Config::client()), now)
    }

    fn on_turn(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        session: &mut Session<RequestPlan>,
    ) -> Next {
        session.on_turn(connection, now);
        for id in core::mem::take(&mut session.messages.paused) {
            session.deliver(connection, now, id);
        }
        if connection.is_connected()
            && !session.messages.is_done
            && let Err(failure) = self.act(now, connection, session)
        {
            self.failures.push(failure);
        }
        let client_plan = &mut session.messages;
        self.received = client_plan.received;
        self.failures.append(&mut client_plan.failures);
        self.reasons.append(&mut client_plan.reasons);
        let timeouts = [client_plan.next_ask_at(now), session.connection.next_timeout()];
        let timeout = timeouts.into_iter().flatten().min();
        next(now, client_plan.paused.is_empty() || connection.is_closed(), timeout)
    }

    fn on_gone(&mut self, _now: Instant, _connection: &Connection, mut session: Session<RequestPlan>) {
        self.failures.append(&mut session.messages.failures);
        if let Some(failure) = session.connection.failure() {
            self.failures.push(format!("the client says: {failure:?}"));
        }
        if !session.messages.is_done {
            self.failures.push("gone before all was done".to_owned());
        }
    }
}
