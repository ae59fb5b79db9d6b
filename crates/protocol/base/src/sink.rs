//! The sink: packet memory that a data path lends to the packet builder.
//!
//! A train is packets for one path, all but the last of equal size, that leave in one system call (or one ring kick).
//! The builder opens a train, asks for room, writes and encrypts a packet in that room, pushes it, and ends the train.
//! Packets already pushed stay reachable by index until the train ends, so that header protection can be applied to all
//! of them in one pass. A GSO data path backs a train with one contiguous buffer; AF_XDP gives every packet a umem frame.
//!
//! ```text
//! begin(path, size) -> n     room() push(len) room() push(len) …     packet(i) …     end()
//! ```

use crate::net::{Addresses, Ecn};
use crate::time::Instant;

/// What all packets of a train have in common.
#[derive(Clone, Copy, Debug)]
pub struct TrainPath {
    /// The path it takes.
    pub addresses: Addresses,
    /// The marking of its packets.
    pub ecn: Ecn,
    /// When it may leave, on the clock of the data path that lends the memory: `None` is at once. A path that cannot hold
    /// packets back (its capabilities say so) sends at once whatever this says.
    pub departs: Option<Instant>,
}

impl TrainPath {
    /// A train that leaves at once.
    pub const fn new(addresses: Addresses, ecn: Ecn) -> TrainPath {
        TrainPath { addresses, ecn, departs: None }
    }
}

/// Packet memory for outgoing trains. One train is open at a time.
pub trait PacketSink {
    /// Opens a train of packets of at most `segment_size` bytes each. Returns how many packets it can hold, at least 1;
    /// `None` when no memory is free now: the caller gives up its turn and is asked again after the next flush.
    fn begin(&mut self, path: TrainPath, segment_size: usize) -> Option<usize>;

    /// Room for the next packet of the open train: exactly `segment_size` bytes, content unspecified. May be called
    /// again without a `push` in between and then lends the same room. Must not be called when the train is full.
    fn room(&mut self) -> &mut [u8];

    /// Takes the first `len` bytes of the room as a packet (1 ≤ `len` ≤ `segment_size`). A packet shorter than
    /// `segment_size` must be the last of its train.
    fn push(&mut self, len: usize);

    /// Packet `index` of the open train, counted from 0, as pushed.
    fn packet(&mut self, index: usize) -> &mut [u8];

    /// Closes the train and queues it for the next flush. A train without packets is forgotten.
    fn end(&mut self);
}
