//! One connection of the client: what is outstanding on it, and what has come of it since its last turn.
//!
//! While packets are taken in, the lane notes; in the turn that follows, the [`crate::client::Client`] books.

use crate::table::{Exchange, Table};
use base::time::{Duration, Instant};
use transport::{Fin, StreamId, StreamSink};

/// What a connection keeps.
#[derive(Debug)]
pub struct ClientConnection {
    /// Which of the thread's connections it is.
    pub(crate) number: usize,
    pub(crate) opened: Instant,
    /// How long its handshake took; none as long as it takes.
    pub(crate) shook: Option<Duration>,
    /// Begun while everything is counted.
    pub(crate) is_counted: bool,
    pub(crate) standing: Standing,
    pub(crate) table: Table,
    /// Answered in full since the last turn.
    pub(crate) finished: Vec<Exchange>,
    /// Answered with too few bytes or too many since the last turn.
    pub(crate) broken: Vec<Exchange>,
    /// Bytes of answers since the last turn.
    pub(crate) received: u64,
    /// Bytes of requests that were handed over since the beginning.
    pub(crate) written: u64,
    /// Those of them that were acknowledged, as of the last turn.
    pub(crate) acknowledged: u64,
    /// Streams that take more of their request.
    pub(crate) writable: Vec<StreamId>,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The handshake is under way; where handshakes are the task, until the server is known to have completed it, too.
    Connecting,
    /// It carries exchanges.
    Up,
    /// It is over.
    Down,
}

impl ClientConnection {
    /// A connection that has done nothing yet, for up to `outstanding` exchanges at a time.
    pub(crate) fn new(number: usize, outstanding: usize, now: Instant) -> ClientConnection {
        ClientConnection {
            number,
            opened: now,
            shook: None,
            is_counted: false,
            standing: Standing::Connecting,
            table: Table::new(outstanding),
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
        let Some(exchange) = self.table.get_mut(id) else { return bytes.len() };
        let is_too_long = exchange.missing < len;
        exchange.missing = exchange.missing.saturating_sub(len);
        if (fin == Fin::End || is_too_long)
            && let Some(exchange) = self.table.remove(id)
        {
            let list =
                if exchange.missing > 0 || is_too_long { &mut self.broken } else { &mut self.finished };
            list.push(exchange);
        }
        bytes.len()
    }
}
