//! Early requests of a connection: which they are, and what they wait for.

use super::exchanges::Begun;
use super::{Server, State};
use crate::early_data::{EarlyData, Gate};
use crate::low::Handler;
use base::time::Instant;
use http3::{BodyLength, Code};
use std::sync::Arc;
use transport::{Connection, StreamId};

/// The early requests of a connection.
#[derive(Default)]
pub(super) struct EarlyRequests {
    rule: EarlyData,
    /// What those that were handed over may wait for.
    gate: Option<Arc<Gate>>,
}

impl EarlyRequests {
    pub(super) fn new(rule: EarlyData) -> EarlyRequests {
        EarlyRequests { rule, gate: None }
    }

    /// What a request that is handed over now may wait for; `None` if it is not early.
    #[inline]
    pub(super) fn gate(&mut self, connection: &Connection) -> Option<&Arc<Gate>> {
        if self.rule == EarlyData::Off || !connection.is_early() {
            return None;
        }
        Some(self.gate.get_or_insert_default())
    }

    /// Lets early requests go on when the handshake is complete. Whether it has just been found so.
    #[inline]
    pub(super) fn settle(&mut self, connection: &Connection) -> bool {
        if self.gate.is_none() || connection.is_early() {
            return false;
        }
        self.gate.take().into_iter().for_each(|gate| gate.open());
        true
    }
}

impl<H: Handler> Server<H> {
    /// Answers a request that may be a copy and must not be carried out twice. Returns what was begun; `None`: the stream has ended.
    #[cold]
    pub(super) fn refuse_early(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        state: &mut State<H>,
        id: StreamId,
    ) -> Option<Begun<H>> {
        self.clock.advance(now);
        let fields = [(&b"date"[..], &self.clock.text()[..]), (b"content-length", b"0")];
        let http = &mut state.session.connection;
        // RFC 8470 §5.2: 425 (Too Early).
        //= rfc8470/5.2#1
        let told = http.respond_with(connection, id, 425, fields, BodyLength::Empty);
        if told.is_err() {
            http.cancel(connection, id, Code::REQUEST_REJECTED);
        }
        told.is_ok().then_some(Begun { status: 425, body: None, sent: 0 })
    }
}
