//! One connection of the generator: what is outstanding on it, and what has come of it since its last turn.
//!
//! While packets are taken in, the [`Inbox`] notes; in the turn that follows, the [`super::asker::RequestApp`] books. Content is
//! counted where it lies and taken in full at once, so no stream ever pauses.

use crate::accounts::RequestTimes;
use crate::failure::Failure;
use crate::stream_table::{OnStream, StreamTable};
use base::time::{Duration, Instant};
use http3::{Abort, Code, MessageSink, ResponseHead, Session};
use std::sync::Arc;
use transport::{CloseReason, Connection, Event, Fin, StreamId, StreamSink};
use wire::Side;

/// A request without its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) id: StreamId,
    pub(super) times: RequestTimes,
    /// The status of its answer; 0 until the head has arrived.
    pub(super) status: u16,
    /// Content of the request that was not handed over yet.
    pub(super) unsent: u64,
}

impl OnStream for Slot {
    #[inline]
    fn id(&self) -> StreamId {
        self.id
    }
}

/// What a connection keeps.
#[derive(Debug)]
pub(super) struct ClientConnection {
    pub(super) session: Session<Inbox>,
    /// Which of the generator's connections it is.
    pub(super) number: usize,
    /// The request that it was made for, if it is there for one only, until it is sent.
    pub(super) booked: Option<RequestTimes>,
    /// Which request comes next.
    pub(super) next_request: usize,
    pub(super) opened: Instant,
    pub(super) state: ConnectionState,
    /// Why we gave it up, if we did.
    pub(super) verdict: Option<Failure>,
    /// Packets that had arrived when we last looked, and when their number last changed.
    heard: (u64, Instant),
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// The handshake is under way.
    Connecting,
    /// It takes requests.
    Up,
    /// The server takes no more requests on it.
    Leaving,
    /// It is over.
    Down,
}

/// What has come since the last turn.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) slots: StreamTable<Slot>,
    /// Answered.
    pub(super) finished: Vec<Slot>,
    pub(super) failed: Vec<(Slot, Failure)>,
    pub(super) content_bytes: u64,
    /// Streams that take more of their request's content.
    pub(super) writable: Vec<StreamId>,
    /// Something happened to the connection itself.
    pub(super) needs_attention: bool,
    pub(super) is_connected: bool,
    pub(super) is_going_away: bool,
    pub(super) closed: Option<CloseReason>,
}

impl MessageSink for Inbox {
    fn on_response(&mut self, id: StreamId, head: &ResponseHead<'_>) {
        if !head.is_interim()
            && let Some(slot) = self.slots.entry_mut(id)
        {
            slot.status = head.status();
        }
    }

    #[inline]
    fn on_body(&mut self, _: StreamId, bytes: &[u8]) -> usize {
        self.content_bytes += bytes.len() as u64;
        bytes.len()
    }

    fn on_end(&mut self, id: StreamId) {
        if let Some(slot) = self.slots.remove(id) {
            self.finished.push(slot);
        }
    }

    fn on_abort(&mut self, id: StreamId, abort: Abort) {
        if let Some(slot) = self.slots.remove(id) {
            self.failed.push((slot, Failure::of_abort(abort)));
        }
    }

    fn on_stop_sending(&mut self, id: StreamId, _: Code) {
        // The server answers without the rest of the request.
        if let Some(slot) = self.slots.entry_mut(id) {
            slot.unsent = 0;
        }
    }

    fn on_writable(&mut self, id: StreamId) {
        self.writable.push(id);
    }

    fn on_goaway(&mut self) {
        (self.is_going_away, self.needs_attention) = (true, true);
    }

    fn on_event(&mut self, event: &Event) {
        match event {
            Event::Connected => self.is_connected = true,
            Event::Closed(reason) => self.closed = Some(reason.clone()),
            _ => return,
        }
        self.needs_attention = true;
    }
}

impl StreamSink for ClientConnection {
    #[inline]
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        self.session.on_stream_data(id, bytes, fin)
    }
}

impl ClientConnection {
    /// A connection that has done nothing yet, for up to `streams` requests at a time.
    pub(super) fn new(
        number: usize,
        streams: usize,
        config: Arc<http3::Config>,
        now: Instant,
    ) -> ClientConnection {
        let inbox = Inbox {
            slots: StreamTable::new(streams),
            finished: Vec::new(),
            failed: Vec::new(),
            content_bytes: 0,
            writable: Vec::new(),
            needs_attention: false,
            is_connected: false,
            is_going_away: false,
            closed: None,
        };
        let connection = http3::Connection::new(Side::Client, config, now);
        ClientConnection {
            session: Session { connection, messages: inbox },
            number,
            booked: None,
            // Connections begin at different requests, so that all are asked for from the start.
            next_request: number,
            opened: now,
            state: ConnectionState::Connecting,
            verdict: None,
            heard: (0, now),
        }
    }

    /// How long the oldest request has waited that is outstanding.
    pub(super) fn oldest(&self, now: Instant) -> Duration {
        let slots = self.session.messages.slots.iter().map(|slot| slot.times);
        let waited = slots.chain(self.booked).map(|times| now.saturating_since(times.intended));
        waited.max().unwrap_or(Duration::ZERO)
    }

    /// Ends the connection; what is outstanding fails with `verdict`.
    pub(super) fn give_up(&mut self, connection: &mut Connection, verdict: Failure, now: Instant) {
        self.verdict.get_or_insert(verdict);
        self.session.connection.close(connection, now);
    }

    /// Time has passed: requests that are too old fail, and so does a connection that was silent for as long.
    pub(super) fn on_tick(&mut self, connection: &mut Connection, now: Instant, timeout: Duration) {
        let received = connection.counters().received_packets;
        if received != self.heard.0 {
            self.heard = (received, now);
        }
        if self.state == ConnectionState::Down {
            return;
        }
        if self.booked.is_some_and(|times| now.saturating_since(times.began) >= timeout) {
            return self.give_up(connection, Failure::Timeout, now);
        }
        let Session { connection: http, messages } = &mut self.session;
        let is_late = |slot: &Slot| now.saturating_since(slot.times.began) >= timeout;
        if !messages.slots.iter().any(is_late) {
            return;
        }
        let late: Vec<StreamId> =
            messages.slots.iter().filter(|slot| is_late(slot)).map(|slot| slot.id).collect();
        for id in late {
            http.cancel(connection, id, Code::REQUEST_CANCELLED);
            if let Some(slot) = messages.slots.remove(id) {
                messages.failed.push((slot, Failure::Timeout));
            }
        }
        if now.saturating_since(self.heard.1) >= timeout {
            self.give_up(connection, Failure::Timeout, now);
        }
    }
}
