//! One connection of the client: what is outstanding on it, and what has come of it since its last turn.
//!
//! While packets are taken in, the connection notes; in the turn that follows, the [`super::app::PerfApp`] books.

use crate::accounts::RequestTimes;
use base::time::{Duration, Instant};
use http3::StreamTable;
use transport::{Fin, StreamId, StreamSink};

/// An exchange that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    pub(super) times: RequestTimes,
    /// Bytes of the request that were not handed over yet.
    pub(super) unsent: u64,
    /// Bytes of the answer that have not come yet.
    pub(super) missing: u64,
}

/// What a connection keeps.
#[derive(Debug)]
pub(super) struct ClientConnection {
    /// Which of the thread's connections it is.
    pub(super) number: usize,
    pub(super) opened: Instant,
    /// How long its handshake took; none as long as it takes.
    pub(super) shook: Option<Duration>,
    /// The handshake that it was made for, where handshakes are the task, until it is complete.
    pub(super) booked: Option<RequestTimes>,
    pub(super) standing: Standing,
    pub(super) table: StreamTable<Exchange>,
    /// Answered in full since the last turn.
    pub(super) finished: Vec<Exchange>,
    /// Answered with too few bytes or too many since the last turn.
    pub(super) broken: Vec<Exchange>,
    /// Bytes of answers since the last turn.
    pub(super) received: u64,
    /// Bytes of requests that were handed over since the beginning.
    pub(super) written: u64,
    /// Those of them that were acknowledged, as of the last turn.
    pub(super) acknowledged: u64,
    /// Streams that take more of their request.
    pub(super) writable: Vec<StreamId>,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The handshake is under way; where handshakes are the task, until the server is known to have completed it, too.
    Connecting,
    /// It carries exchanges.
    Up,
    /// It is over.
    Down,
}

impl ClientConnection {
    /// A connection that has done nothing yet, for up to `outstanding` exchanges at a time.
    pub(super) fn new(number: usize, outstanding: usize, now: Instant) -> ClientConnection {
        ClientConnection {
            number,
            opened: now,
            shook: None,
            booked: None,
            standing: Standing::Connecting,
            table: StreamTable::keeping(outstanding),
            finished: Vec::with_capacity(outstanding),
            broken: Vec::new(),
            received: 0,
            written: 0,
            acknowledged: 0,
            writable: Vec::new(),
        }
    }
}

impl StreamSink for ClientConnection {
    #[inline]
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        let len = bytes.len() as u64;
        self.received += len;
        let Some(exchange) = self.table.entry_mut(id.index()) else { return bytes.len() };
        let is_too_long = exchange.missing < len;
        exchange.missing = exchange.missing.saturating_sub(len);
        if (fin == Fin::End || is_too_long)
            && let Some(exchange) = self.table.remove(id.index())
        {
            let list =
                if exchange.missing > 0 || is_too_long { &mut self.broken } else { &mut self.finished };
            list.push(exchange);
        }
        bytes.len()
    }
}
