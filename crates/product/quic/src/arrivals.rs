//! What arrives on a connection during a turn: memory of the worker's thread only.
//!
//! The transport lends bytes from the packet. They are copied once, into chunks that the streams of the connection share,
//! and leave as `Bytes` at the end of the turn. Bytes of one stream that arrive one after the other become one `Bytes`.
//!
//! Invariant: a stream takes bytes while less than its limit is unread, so that an application that does not read holds a
//! limit and one turn's bytes of each stream; then the stream is paused and its flow-control credit with it.

use bytes::{Bytes, BytesMut};
use core::ops::Range;
use std::collections::HashMap;
use transport::{Fin, StreamId, StreamSink};

/// Unread bytes at which a stream is paused.
pub(crate) const STREAM_LIMIT: usize = 1 << 20;
/// The same while the connection's streams together have [`CONNECTION_LIMIT`] unread bytes.
pub(crate) const SCARCE_LIMIT: usize = 64 << 10;
/// Unread bytes of a connection from which on [`SCARCE_LIMIT`] holds.
pub(crate) const CONNECTION_LIMIT: usize = 16 << 20;
/// Unread bytes below which a stream's number is not kept here from turn to turn.
const SMALL: usize = 64 << 10;
/// Sizes of chunks in bytes: small for connections that receive little.
const CHUNK: Range<usize> = 4 << 10..64 << 10;
/// Chunks that are kept to be used again, at most, while many bytes arrive.
const MAX_SPENT: usize = 4;
/// Datagrams that a turn keeps.
const MAX_DATAGRAMS: usize = 1_024;

/// Unread bytes at which a stream is paused when the connection has `total` of them.
#[inline]
pub(crate) fn limit(total: usize) -> usize {
    if total >= CONNECTION_LIMIT { SCARCE_LIMIT } else { STREAM_LIMIT }
}

/// Bytes that arrived in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) id: StreamId,
    pub(crate) bytes: Bytes,
    pub(crate) fin: Fin,
}

/// The stream whose bytes end the chunk.
#[derive(Clone, Copy, Debug)]
struct Current {
    id: StreamId,
    unread: usize,
}

/// Where the transport lends bytes to.
#[derive(Debug)]
pub(crate) struct Arrivals {
    chunk: BytesMut,
    /// What the next chunk holds at least, in bytes.
    next_chunk: usize,
    /// Full chunks of the largest size, which are used again once their readers are done with them: fresh memory costs page
    /// faults, and more time in caches that do not know it.
    spent: Vec<BytesMut>,
    current: Option<Current>,
    arrived: Vec<Arrived>,
    /// Streams that were paused since the last look.
    paused: Vec<StreamId>,
    /// Streams with many unread bytes as of the end of the last turn in which any arrived.
    backlog: HashMap<StreamId, usize>,
    /// Unread bytes of all streams.
    total: usize,
    /// Bytes that arrived since the turn began.
    in_turn: usize,
    datagrams: Vec<Bytes>,
}

impl Arrivals {
    pub(crate) fn new() -> Arrivals {
        Arrivals {
            chunk: BytesMut::new(),
            next_chunk: CHUNK.start,
            spent: Vec::new(),
            current: None,
            arrived: Vec::new(),
            paused: Vec::new(),
            backlog: HashMap::new(),
            total: 0,
            in_turn: 0,
            datagrams: Vec::new(),
        }
    }

    /// Ends the piece that is being collected.
    fn cut(&mut self) {
        if let Some(Current { id, .. }) = self.current
            && !self.chunk.is_empty()
        {
            let bytes = self.chunk.split().freeze();
            self.arrived.push(Arrived { id, bytes, fin: Fin::Open });
        }
    }

    fn begin(&mut self, id: StreamId) -> Current {
        self.cut();
        if let Some(Current { id, unread }) = self.current
            && unread >= SMALL
        {
            self.backlog.insert(id, unread);
        }
        let current = Current { id, unread: self.backlog.get(&id).copied().unwrap_or(0) };
        self.current = Some(current);
        current
    }

    /// Makes room for `len` bytes behind what the chunk holds.
    #[inline]
    fn make_room(&mut self, len: usize) {
        if self.chunk.capacity() - self.chunk.len() < len {
            self.cut();
            self.replace_chunk(len);
        }
    }

    /// Another chunk, with room for `len` bytes at least.
    fn replace_chunk(&mut self, len: usize) {
        let needed = self.next_chunk.max(len);
        self.next_chunk = (2 * self.next_chunk).min(CHUNK.end);
        if self.chunk.try_reclaim(needed) {
            return;
        }
        // The last one first: it is the one that caches know best.
        let unread = self.spent.iter_mut().rposition(|chunk| chunk.try_reclaim(needed));
        let chunk = match unread {
            Some(place) => self.spent.remove(place),
            None => BytesMut::with_capacity(needed),
        };
        let left = core::mem::replace(&mut self.chunk, chunk);
        if needed == CHUNK.end && self.spent.len() < MAX_SPENT {
            self.spent.push(left);
        }
    }

    /// The streams' bytes since the last call, in the order in which they arrived.
    pub(crate) fn take_arrived(&mut self, into: &mut Vec<Arrived>) {
        self.cut();
        self.current = None;
        into.append(&mut self.arrived);
    }

    /// The turn ends. Memory for the next one is kept only where many bytes have arrived in this one.
    pub(crate) fn end_turn(&mut self) {
        if core::mem::take(&mut self.in_turn) < CHUNK.end && self.chunk.capacity() > 0 {
            self.chunk = BytesMut::new();
            self.spent = Vec::new();
            self.next_chunk = CHUNK.start;
        }
    }

    /// A stream that was paused since the last look.
    pub(crate) fn next_paused(&mut self) -> Option<StreamId> {
        self.paused.pop()
    }

    /// What the reader has not read: of the stream, and of all streams.
    pub(crate) fn set_unread(&mut self, id: StreamId, unread: usize, total: usize) {
        self.total = total;
        if unread >= SMALL {
            self.backlog.insert(id, unread);
        } else if !self.backlog.is_empty() {
            self.backlog.remove(&id);
        }
    }

    /// No more bytes of the stream are taken.
    pub(crate) fn forget(&mut self, id: StreamId) {
        if !self.backlog.is_empty() {
            self.backlog.remove(&id);
        }
    }

    /// The DATAGRAM frames since the last call.
    pub(crate) fn take_datagrams(&mut self) -> impl Iterator<Item = Bytes> {
        self.datagrams.drain(..)
    }
}

impl StreamSink for Arrivals {
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        let unread = match self.current {
            Some(current) if current.id == id => current.unread,
            _ => self.begin(id).unread,
        };
        if !bytes.is_empty() && unread >= limit(self.total) {
            self.paused.push(id);
            return 0;
        }
        self.make_room(bytes.len());
        self.chunk.extend_from_slice(bytes);
        self.total += bytes.len();
        self.in_turn += bytes.len();
        self.current = Some(Current { id, unread: unread + bytes.len() });
        if fin == Fin::End {
            let bytes = self.chunk.split().freeze();
            self.arrived.push(Arrived { id, bytes, fin });
            self.current = None;
        }
        bytes.len()
    }

    fn on_datagram(&mut self, bytes: &[u8]) {
        if self.datagrams.len() < MAX_DATAGRAMS {
            self.datagrams.push(Bytes::copy_from_slice(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use transport::Dir;
    use wire::Side;

    /// What arrives in a turn of three chunks, in slices as a packet lends them.
    fn turn(arrivals: &mut Arrivals, value: u8) -> Vec<Arrived> {
        let id = StreamId::new(Side::Client, Dir::Bidi, 0);
        for _ in 0..3 * CHUNK.end / 1_024 {
            assert_eq!(arrivals.on_stream_data(id, &[value; 1_024], Fin::Open), 1_024);
        }
        let mut arrived = Vec::new();
        arrivals.take_arrived(&mut arrived);
        arrivals.set_unread(id, 0, 0);
        arrivals.end_turn();
        arrived
    }

    /// Deleted, a fast stream would be copied into fresh memory for ever: a page fault for each 4 KiB.
    #[test]
    fn memory_is_used_again_once_it_was_read() {
        let mut arrivals = Arrivals::new();
        for _ in 0..4 {
            drop(turn(&mut arrivals, 1));
        }
        let places = |arrived: &[Arrived]| -> HashSet<usize> {
            arrived.iter().map(|piece| piece.bytes.as_ptr() as usize / CHUNK.end).collect()
        };
        let known = places(&turn(&mut arrivals, 2));
        for value in 3..20 {
            let next = places(&turn(&mut arrivals, value));
            assert!(next.iter().all(|place| known.contains(place)), "{next:x?} {known:x?}");
        }
    }

    #[test]
    fn memory_that_was_not_read_is_not_written_to() {
        let mut arrivals = Arrivals::new();
        let kept: Vec<(u8, Vec<Arrived>)> =
            (0..20).map(|value| (value, turn(&mut arrivals, value))).collect();
        for (value, arrived) in &kept {
            assert!(arrived.iter().all(|piece| piece.bytes.iter().all(|byte| byte == value)));
        }
        assert!(arrivals.spent.len() <= MAX_SPENT);
        arrivals.end_turn();
        assert_eq!(
            (arrivals.spent.capacity(), arrivals.chunk.capacity()),
            (0, 0),
            "a quiet connection keeps nothing"
        );
    }
}
