//! A connection: the hub that owns the components and lets them meet.
//!
//! It holds one value per concern and almost no logic of its own: receiving is in receive.rs and frames.rs, assembly in
//! plan.rs, components.rs, transmit.rs and seal.rs, masks of headers both ways in masks.rs, packets of a train that are alike in outgoing_run.rs and incoming_run.rs, datagrams of their own kind in probes.rs, the fate of packets in acks.rs,
//! the handshake, its keys, its version and early data in handshake.rs, keys.rs, versions.rs and early.rs, moves in migration.rs and own_moves.rs, time in timers.rs,
//! several paths at once in lanes.rs, lane_change.rs, lane_frames.rs, scheduler.rs and multipath.rs, the end in close.rs, what the
//! application calls in api.rs. A traced connection tells of its packets in trace.rs, and of what has changed in
//! trace_state.rs.
//!
//! Each of these files calls methods of others in one direction only. Assembly does not see the connection: it borrows the parts
//! that assembly.rs lists. The files that take the connection whole are listed in xtask/src/hubs.rs (`cargo xtask tidy`).
//!
//! Invariants: the methods never read a clock, never allocate per packet in steady state, and never panic on what a peer
//! sent. After `receive`, `on_timeout` or a verb, call `transmit` until it says that all is in the sink, then look at
//! `next_event` and `next_timeout`.

mod acks;
mod api;
mod arrival;
mod assembly;
mod close;
mod components;
mod counters;
mod cut_off;
mod early;
mod frames;
mod handshake;
mod incoming_run;
mod keys;
mod lane_blocked;
mod lane_change;
mod lane_frames;
mod lanes;
mod masks;
mod migration;
mod multipath;
mod open;
mod outgoing_run;
mod own_moves;
mod path_info;
mod plan;
mod probes;
mod receive;
mod repeats;
mod scheduler;
mod seal;
mod timer_state;
mod timers;
mod trace;
mod trace_state;
mod transmit;
mod version_choice;
mod versions;

#[cfg(test)]
mod tests;

pub(crate) use api::{News, PathSummary};
pub use components::{DatagramError, DatagramRoom};
pub use counters::Counters;
pub(crate) use open::{ConnectionSetup, FirstInitial};
pub use path_info::{PathCounters, PathInfo};
pub use transmit::Transmitted;

use crate::config::TransportConfig;
use crate::event::Event;
use crate::path::Paths;
use crate::sent::SentFrame;
use crate::space::Spaces;
use base::net::Addresses;
use base::rng::SparseRng;
use close::Lifecycle;
use components::Components;
use handshake::Handshake;
use keys::KeyRing;
use std::collections::VecDeque;
use std::sync::Arc;
use timer_state::Timers;
use trace::Tracing;
use wire::Side;

/// One QUIC connection, of either side. Source: RFC 9000 §5.
pub struct Connection {
    side: Side,
    config: Arc<TransportConfig>,
    lifecycle: Lifecycle,
    keys: KeyRing,
    spaces: Spaces,
    components: Components,
    paths: Paths,
    timers: Timers,
    handshake: Box<Handshake>,
    events: VecDeque<Event>,
    counters: Counters,
    rng: SparseRng,
    /// Those of the packet that is being written: kept so that no packet pays for making the list.
    frames: Vec<SentFrame>,
    path_memory: PathMemory,
    /// What is recorded of it, if anything is.
    trace: Option<Box<Tracing>>,
}

/// What the endpoint is told of the path when the connection is over.
#[derive(Default)]
struct PathMemory {
    /// The path that something was known of when the connection began.
    recalled: Option<Box<Addresses>>,
    /// The endpoint was told.
    is_told: bool,
}
