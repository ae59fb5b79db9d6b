//! What assembly borrows of a connection. Building packets reads and changes these parts and no others: it tells the application
//! nothing and does not end the connection. plan.rs, seal.rs, probes.rs and transmit.rs are methods of this set, so that none of
//! them can call what the connection does elsewhere.

use super::close::Lifecycle;
use super::components::Components;
use super::counters::Counters;
use super::handshake::Handshake;
use super::keys::KeyRing;
use super::lanes::LaneUse;
use super::timer_state::Timers;
use super::trace::Tracing;
use crate::config::TransportConfig;
use crate::event::CloseReason;
use crate::path::Paths;
use crate::sent::SentFrame;
use crate::space::Spaces;
use base::rng::SparseRng;
use wire::Side;

/// The parts of a connection that building packets needs.
pub(super) struct Assembly<'a> {
    pub(super) side: Side,
    pub(super) config: &'a TransportConfig,
    pub(super) lifecycle: &'a mut Lifecycle,
    pub(super) handshake: &'a Handshake,
    pub(super) keys: &'a mut KeyRing,
    pub(super) spaces: &'a mut Spaces,
    pub(super) components: &'a mut Components,
    pub(super) paths: &'a mut Paths,
    pub(super) timers: &'a mut Timers,
    pub(super) counters: &'a mut Counters,
    pub(super) rng: &'a mut SparseRng,
    pub(super) frames: &'a mut Vec<SentFrame>,
    /// What the current lane carries.
    pub(super) usage: LaneUse,
    pub(super) trace: &'a mut Option<Box<Tracing>>,
    /// Set when no packet may be sealed any more: the connection must end without a word.
    pub(super) fault: Option<CloseReason>,
}
