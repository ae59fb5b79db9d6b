//! The perf client as a worker's application: answers are booked, and the exchanges that follow begin.

use super::close_words::words;
use super::connection::{ClientConnection, Exchange, Standing};
use super::plan::{PerfPlan, Task};
use super::protocol::NO_ERROR;
use crate::accounts::{Phase, RequestAccounts};
use crate::failure::Failure;
use crate::kinds::HandshakeKind;
use base::pattern;
use base::time::Instant;
use bytes::Bytes;
use std::net::SocketAddr;
use transport::{CloseReason, Connection, Dir, Event, StreamId};
use worker::{App, Next};

/// What the owner of the connections must hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// This connection's handshake is complete.
    Up(usize),
    /// This connection is over.
    Down(usize),
}

/// All connections of a thread together.
#[derive(Debug)]
pub(super) struct PerfApp {
    task: Task,
    /// Exchanges at a time on a connection.
    outstanding: usize,
    address: SocketAddr,
    /// Of exchanges; of handshakes where they are the task.
    pub(super) accounts: RequestAccounts,
    pub(super) news: Vec<News>,
}

impl PerfApp {
    pub(super) fn new(plan: &PerfPlan) -> PerfApp {
        let accounts = RequestAccounts::new(&plan.rules());
        let (task, outstanding, address) = (plan.task, plan.outstanding, plan.address);
        PerfApp { task, outstanding, address, accounts, news: Vec::new() }
    }

    #[inline]
    fn hear(&mut self, now: Instant, connection: &mut Connection, state: &mut ClientConnection) {
        while let Some(event) = connection.next_event() {
            match event {
                Event::Finished { .. } => {}
                Event::Writable { id } => state.writable.push(id),
                Event::Connected => self.on_connected(now, state),
                Event::StreamReset { id, .. } => {
                    if let Some(exchange) = state.table.remove(id.index()) {
                        state.broken.push(exchange);
                    }
                }
                Event::StopSending { id, .. } => {
                    // The server answers without the rest of the request.
                    if let Some(exchange) = state.table.entry_mut(id.index()) {
                        exchange.unsent = 0;
                    }
                }
                Event::Closed(reason) => self.on_closed(now, &reason, state),
                Event::StreamsAvailable { .. }
                | Event::NewToken { .. }
                | Event::Migrated { .. }
                | Event::MigrationFailed { .. }
                | Event::PathOpened { .. }
                | Event::PathClosed { .. } => {}
            }
        }
    }

    #[cold]
    fn on_connected(&mut self, now: Instant, state: &mut ClientConnection) {
        let took = now.saturating_since(state.opened);
        state.shook = Some(took);
        if self.task != Task::Handshakes {
            state.standing = Standing::Up;
            self.news.push(News::Up(state.number));
            self.accounts.on_handshake(None, took, HandshakeKind::Full);
        }
    }

    /// A handshake that is complete on both sides is over, and so is its connection. Closed any sooner, it would take the
    /// client's last flight with it, and the server would keep it as one that is under way.
    #[cold]
    fn on_confirmed(&mut self, now: Instant, connection: &mut Connection, state: &mut ClientConnection) {
        state.standing = Standing::Up;
        self.news.push(News::Up(state.number));
        if let (Some(times), Some(took)) = (state.booked.take(), state.shook) {
            self.accounts.on_handshake(Some(&times), took, HandshakeKind::Full);
            self.accounts.on_answer(now, &times, 0);
            self.accounts.record.packet_size = connection.packet_size();
        }
        connection.close(now, NO_ERROR, b"");
    }

    #[cold]
    fn on_closed(&mut self, now: Instant, reason: &CloseReason, state: &mut ClientConnection) {
        if state.standing == Standing::Down {
            return;
        }
        let was_connecting = state.standing == Standing::Connecting;
        state.standing = Standing::Down;
        self.news.push(News::Down(state.number));
        if self.accounts.phase == Phase::Over || (self.task == Task::Handshakes && !was_connecting) {
            return;
        }
        if was_connecting {
            self.accounts.on_connection_failure(Failure::Closed);
        }
        self.accounts.on_fault(|| words(self.address, reason));
        let ended = state.table.drain().map(|(_, exchange)| exchange.times);
        for times in ended.chain(state.booked.take()) {
            self.accounts.on_failure(now, &times, Failure::Closed);
        }
        self.accounts.last_answer = now;
    }

    /// Books what has come on a connection since its last turn.
    #[inline]
    fn collect(&mut self, now: Instant, connection: &Connection, state: &mut ClientConnection) {
        let received = core::mem::take(&mut state.received);
        let acknowledged = state.written.saturating_sub(connection.retained_bytes()).max(state.acknowledged);
        let sent = acknowledged - state.acknowledged;
        state.acknowledged = acknowledged;
        self.accounts.on_content(now, received);
        self.accounts.on_upload(sent);
        for exchange in state.finished.drain(..) {
            self.accounts.on_answer(now, &exchange.times, 0);
        }
        for exchange in state.broken.drain(..) {
            let gave_up =
                || format!("{} gave up an answer, or one was not as long as it should be", self.address);
            if self.accounts.counts(&exchange.times) {
                self.accounts.on_fault(gave_up);
            }
            self.accounts.on_failure(now, &exchange.times, Failure::Protocol);
        }
    }

    /// Begins as many exchanges as there is room for.
    #[inline]
    fn ask(&mut self, now: Instant, connection: &mut Connection, state: &mut ClientConnection) {
        let Task::Exchanges { request, response } = self.task else { return };
        let (request, wanted) = (request.limit(), response.wanted());
        while state.standing == Standing::Up && state.table.len() < self.outstanding {
            let Some(intended) = self.accounts.peek(now) else { return };
            // The transport tells when the server allows more.
            let Ok(id) = connection.open(Dir::Bidi) else { return };
            let prefix = wanted.to_be_bytes();
            let exchange = Exchange {
                times: self.accounts.begin(now, intended),
                unsent: request.saturating_sub(prefix.len() as u64),
                missing: response.limit(),
            };
            state.table.insert(id.index(), exchange);
            if connection.write_slice(id, &prefix).is_ok() {
                state.written += prefix.len() as u64;
                feed(connection, state, id);
            }
        }
    }
}

/// Hands over as much of a request as its stream takes.
#[inline]
fn feed(connection: &mut Connection, state: &mut ClientConnection, id: StreamId) {
    let Some(exchange) = state.table.entry_mut(id.index()) else { return };
    while exchange.unsent > 0 {
        let room = connection.send_capacity(id).min(pattern::PERIOD) as u64;
        let len = exchange.unsent.min(room);
        let piece = pattern::at(0).get(..len as usize).unwrap_or_default();
        if piece.is_empty() {
            return;
        }
        if connection.write(id, Bytes::from_static(piece)).is_err() {
            // Its end is told by the other direction.
            exchange.unsent = 0;
            return;
        }
        exchange.unsent -= len;
        state.written += len;
    }
    let _ = connection.finish_stream(id);
}

impl App for PerfApp {
    type State = ClientConnection;

    fn on_accept(&mut self, now: Instant, _: &mut Connection) -> ClientConnection {
        // Never called: a client's worker has no server configuration.
        ClientConnection::new(0, 1, now)
    }

    #[inline]
    fn on_turn(&mut self, now: Instant, connection: &mut Connection, state: &mut ClientConnection) -> Next {
        self.hear(now, connection, state);
        self.collect(now, connection, state);
        if self.task == Task::Handshakes
            && state.standing == Standing::Connecting
            && connection.is_confirmed()
        {
            self.on_confirmed(now, connection, state);
        }
        if !state.writable.is_empty() {
            let mut writable = core::mem::take(&mut state.writable);
            for id in writable.drain(..) {
                if state.table.entry_mut(id.index()).is_some_and(|exchange| exchange.unsent > 0) {
                    feed(connection, state, id);
                }
            }
            state.writable = writable;
        }
        self.ask(now, connection, state);
        Next::Wait
    }

    fn on_gone(&mut self, now: Instant, connection: &Connection, mut state: ClientConnection) {
        self.accounts.record.lost_packets += connection.counters().lost_packets;
        self.on_closed(now, &CloseReason::Local { code: NO_ERROR }, &mut state);
    }
}
