//! The client as a worker's application: answers are booked, and the exchanges that follow begin.

use crate::fault;
use crate::lane::{ClientConnection, Standing};
use crate::plan::{Bound, PerfPlan, Task};
use crate::protocol::NO_ERROR;
use crate::record::Record;
use crate::table::Exchange;
use base::pattern;
use base::time::Instant;
use bytes::Bytes;
use std::net::SocketAddr;
use transport::{CloseReason, Connection, Dir, Event, StreamId};
use worker::{App, Next};

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Connections are made.
    Gathering,
    /// Nothing is counted yet.
    WarmUp,
    /// Everything is.
    Measuring,
    /// Nothing is any more.
    Over,
}

/// What the owner of the connections must hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// This connection's handshake is complete.
    Up(usize),
    /// This connection is over.
    Down(usize),
}

/// All connections of a thread together.
#[derive(Debug)]
pub struct Client {
    task: Task,
    bound: Bound,
    address: SocketAddr,
    pub(crate) phase: Phase,
    /// Exchanges, or handshakes, that may still begin.
    pub(crate) budget: u64,
    /// Exchanges under way on all connections; handshakes where they are the task.
    pub(crate) outstanding: usize,
    pub(crate) record: Record,
    /// When the last of what counts ended.
    pub(crate) last_answer: Instant,
    pub(crate) news: Vec<News>,
}

impl Client {
    pub(crate) fn new(plan: &PerfPlan) -> Client {
        Client {
            task: plan.task,
            bound: plan.bound,
            address: plan.address,
            phase: Phase::Gathering,
            budget: 0,
            outstanding: 0,
            record: Record::default(),
            last_answer: Instant::ZERO,
            news: Vec::new(),
        }
    }

    /// Whether something counts that ends now. A span of time counts what ends in it, a number what begins after the warm-up,
    /// so that exactly so many are counted.
    #[inline]
    fn counts(&self, is_counted: bool) -> bool {
        self.phase == Phase::Measuring && (is_counted || matches!(self.bound, Bound::Span(_)))
    }

    #[inline]
    fn hear(&mut self, now: Instant, connection: &mut Connection, lane: &mut ClientConnection) {
        while let Some(event) = connection.next_event() {
            match event {
                Event::Finished { .. } => {}
                Event::Writable { id } => lane.writable.push(id),
                Event::Connected => self.on_connected(now, lane),
                Event::StreamReset { id, .. } => {
                    if let Some(exchange) = lane.table.remove(id) {
                        lane.broken.push(exchange);
                    }
                }
                Event::StopSending { id, .. } => {
                    // The server answers without the rest of the request.
                    if let Some(exchange) = lane.table.get_mut(id) {
                        exchange.unsent = 0;
                    }
                }
                Event::Closed(reason) => self.on_closed(now, &reason, lane),
                Event::StreamsAvailable { .. } | Event::NewToken { .. } => {}
            }
        }
    }

    #[cold]
    fn on_connected(&mut self, now: Instant, lane: &mut ClientConnection) {
        let took = now.saturating_since(lane.opened);
        lane.shook = Some(took);
        if self.task != Task::Handshakes {
            lane.standing = Standing::Up;
            self.news.push(News::Up(lane.number));
            self.record.handshake.add(took);
        }
    }

    /// A handshake that is complete on both sides is over, and so is its connection. Closed any sooner, it would take the
    /// client's last flight with it, and the server would keep it as one that is under way.
    #[cold]
    fn on_confirmed(&mut self, now: Instant, connection: &mut Connection, lane: &mut ClientConnection) {
        lane.standing = Standing::Up;
        self.news.push(News::Up(lane.number));
        self.outstanding = self.outstanding.saturating_sub(1);
        if let Some(took) = lane.shook
            && self.counts(lane.is_counted)
        {
            self.last_answer = now;
            self.record.completed += 1;
            self.record.handshake.add(took);
            self.record.packet_size = connection.packet_size();
        }
        connection.close(now, NO_ERROR, b"");
    }

    #[cold]
    fn on_closed(&mut self, now: Instant, reason: &CloseReason, lane: &mut ClientConnection) {
        if lane.standing == Standing::Down {
            return;
        }
        let was_connecting = lane.standing == Standing::Connecting;
        lane.standing = Standing::Down;
        self.news.push(News::Down(lane.number));
        if self.phase == Phase::Over || (self.task == Task::Handshakes && !was_connecting) {
            return;
        }
        let (ended, counted) = lane.table.clear();
        self.outstanding = self.outstanding.saturating_sub(ended);
        self.record.unconnected += u64::from(was_connecting);
        self.record.first_fault.get_or_insert_with(|| fault::words(self.address, reason));
        if self.task == Task::Handshakes {
            self.outstanding = self.outstanding.saturating_sub(1);
            self.record.failed += u64::from(self.counts(lane.is_counted));
        } else if self.phase == Phase::Measuring {
            let spans = matches!(self.bound, Bound::Span(_));
            self.record.failed += if spans { ended as u64 } else { counted };
        }
        self.last_answer = now;
    }

    /// Books what has come on a connection since its last turn.
    #[inline]
    fn collect(&mut self, now: Instant, connection: &Connection, lane: &mut ClientConnection) {
        let received = core::mem::take(&mut lane.received);
        let acknowledged = lane.written.saturating_sub(connection.retained_bytes()).max(lane.acknowledged);
        let sent = acknowledged - lane.acknowledged;
        lane.acknowledged = acknowledged;
        if self.phase == Phase::Measuring {
            self.record.received_bytes += received;
            self.record.sent_bytes += sent;
        }
        self.outstanding -= lane.finished.len() + lane.broken.len();
        for exchange in lane.finished.drain(..) {
            if self.counts(exchange.is_counted) {
                self.last_answer = now;
                self.record.completed += 1;
                self.record.latency.add(now.saturating_since(exchange.began));
            }
        }
        for exchange in lane.broken.drain(..) {
            if self.counts(exchange.is_counted) {
                self.last_answer = now;
                self.record.failed += 1;
                self.record.first_fault.get_or_insert_with(|| {
                    format!("{} gave up an answer, or one was not as long as it should be", self.address)
                });
            }
        }
    }

    /// Begins as many exchanges as there is room for.
    #[inline]
    fn ask(&mut self, now: Instant, connection: &mut Connection, lane: &mut ClientConnection) {
        let Task::Exchanges { request, response } = self.task else { return };
        let (request, wanted) = (request.limit(), response.wanted());
        while self.budget > 0 && lane.standing == Standing::Up && lane.table.has_room() {
            // The transport tells when the server allows more.
            let Ok(id) = connection.open(Dir::Bidi) else { return };
            self.budget -= 1;
            self.outstanding += 1;
            let prefix = wanted.to_be_bytes();
            lane.table.insert(Exchange {
                id,
                began: now,
                is_counted: self.phase == Phase::Measuring,
                unsent: request.saturating_sub(prefix.len() as u64),
                missing: response.limit(),
            });
            if connection.write_slice(id, &prefix).is_ok() {
                lane.written += prefix.len() as u64;
                feed(connection, lane, id);
            }
        }
    }
}

/// Hands over as much of a request as its stream takes.
#[inline]
fn feed(connection: &mut Connection, lane: &mut ClientConnection, id: StreamId) {
    let Some(exchange) = lane.table.get_mut(id) else { return };
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
        lane.written += len;
    }
    let _ = connection.finish_stream(id);
}

impl App for Client {
    type State = ClientConnection;

    fn on_accept(&mut self, now: Instant, _: &mut Connection) -> ClientConnection {
        // Never called: a client's worker has no server configuration.
        ClientConnection::new(0, 1, now)
    }

    #[inline]
    fn on_turn(&mut self, now: Instant, connection: &mut Connection, lane: &mut ClientConnection) -> Next {
        self.hear(now, connection, lane);
        self.collect(now, connection, lane);
        if self.task == Task::Handshakes && lane.standing == Standing::Connecting && connection.is_confirmed()
        {
            self.on_confirmed(now, connection, lane);
        }
        if !lane.writable.is_empty() {
            let mut writable = core::mem::take(&mut lane.writable);
            for id in writable.drain(..) {
                if lane.table.get_mut(id).is_some_and(|exchange| exchange.unsent > 0) {
                    feed(connection, lane, id);
                }
            }
            lane.writable = writable;
        }
        self.ask(now, connection, lane);
        Next::Wait
    }

    fn on_gone(&mut self, now: Instant, connection: &Connection, mut lane: ClientConnection) {
        self.record.lost_packets += connection.counters().lost_packets;
        self.on_closed(now, &CloseReason::Local { code: NO_ERROR }, &mut lane);
    }
}
