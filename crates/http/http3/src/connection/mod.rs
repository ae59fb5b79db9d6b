//! An HTTP/3 connection of either side: the hub that owns the components. RFC 9114.
//!
//! Bytes come in while the transport receives (receive.rs); the transport cannot be asked for anything then, so what must
//! be asked is noted and done in the turn that follows (turn.rs). The application's verbs are in verbs.rs.
//!
//! Invariants: an error of the peer's on one stream ends that stream only, unless the RFC says otherwise; after an error
//! that ends the connection nothing more reaches the application; what the peer can make us keep is bounded by the
//! transport's limits on streams, `max_field_section_size`, and a constant.

mod api;
mod local;
mod peer_settings;
mod receive;
mod turn;

#[cfg(test)]
mod tests;

pub use api::{EncodedHead, EncodedRequest, RequestError};
pub use local::Goaway;

use crate::abuse_budgets::AbuseBudgets;
use crate::config::Config;
use crate::error::ConnectionError;
use crate::exchange::Exchange;
use crate::fields::SectionReader;
use crate::outgoing::Arena;
use crate::quic::QuicConnection;
use crate::settings::Settings;
use crate::stream_table::StreamTable;
use crate::trace::Trace;
use crate::unidirectional::PeerStreams;
use base::time::Instant;
use local::LocalStreams;
use peer_settings::PeerSettings;
use receive::Action;
use std::sync::Arc;
use transport::Priority;
use wire::Side;

/// One HTTP/3 connection.
#[derive(Debug)]
pub struct Connection {
    side: Side,
    config: Arc<Config>,
    exchanges: StreamTable<Exchange>,
    /// Of every head of every stream; there is none before the first and while the connection is quiet.
    sections: Option<Box<SectionReader>>,
    /// Bytes of unfinished field sections on all streams.
    buffered: usize,
    /// There is none before the first head and while the connection is quiet.
    arena: Option<Box<Arena>>,
    peer_streams: PeerStreams,
    local: LocalStreams,
    settings: PeerSettings,
    /// The ID of the peer's last GOAWAY.
    peer_goaway: Option<u64>,
    abuse_budgets: AbuseBudgets,
    /// What the transport is to be asked in the next turn.
    actions: Vec<Action>,
    /// Priorities of streams that the peer has not opened yet.
    early_priorities: Vec<(u64, Priority)>,
    failure: Option<ConnectionError>,
    /// The transport is closed, or was told to close.
    closed: bool,
    now: Instant,
    next_scan: Instant,
    /// On a traced connection only.
    trace: Option<Box<Trace>>,
}

impl Connection {
    /// A connection on whose transport nothing was sent yet. `config` may be shared by many.
    pub fn new(side: Side, config: Arc<Config>, now: Instant) -> Connection {
        let abuse_budgets = AbuseBudgets::new(config.idle_work, config.withdrawn, now);
        Connection {
            side,
            sections: None,
            config,
            exchanges: StreamTable::default(),
            buffered: 0,
            arena: None,
            peer_streams: PeerStreams::new(side.other()),
            local: LocalStreams::default(),
            settings: PeerSettings::default(),
            peer_goaway: None,
            abuse_budgets,
            actions: Vec::new(),
            early_priorities: Vec::new(),
            failure: None,
            closed: false,
            now,
            next_scan: now,
            trace: None,
        }
    }

    /// To be called where a connection is accepted: its trace, if its transport has one, then tells of the requests that come before
    /// the first turn too.
    pub fn begin_trace(&mut self, quic: &mut impl QuicConnection) {
        if self.trace.is_none() {
            self.trace = Trace::begin(quic, self.now);
        }
    }

    /// Gives back memory that requests to come would use again: for a connection that is quiet
    /// ([`transport::Connection::is_quiet`]).
    pub fn release_memory(&mut self) {
        self.exchanges.release_memory();
        self.sections = None;
        self.arena = None;
        self.actions.shrink_to_fit();
        self.early_priorities.shrink_to_fit();
        self.peer_streams.release_memory();
    }

    /// Client or server.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Requests that have begun and whose exchange is not over.
    pub fn open_exchanges(&self) -> usize {
        self.exchanges.len()
    }

    /// What the peer said about itself; `None` until it has.
    pub fn peer_settings(&self) -> Option<&Settings> {
        self.settings.told()
    }

    /// Whether the peer announced that it is about to leave.
    pub fn is_going_away(&self) -> bool {
        self.peer_goaway.is_some()
    }

    /// What the peer did to end the connection, if it did.
    pub fn failure(&self) -> Option<ConnectionError> {
        self.failure
    }

    #[inline]
    fn arena(&mut self) -> &mut Arena {
        self.arena.get_or_insert_default()
    }

    fn fail(&mut self, error: ConnectionError) {
        self.failure.get_or_insert(error);
    }

    /// The largest field section that the peer takes. RFC 9114 §4.2.2.
    fn peer_max_field_section_size(&self) -> u64 {
        self.settings.in_force().map_or(u64::MAX, |settings| settings.max_field_section_size)
    }
}
