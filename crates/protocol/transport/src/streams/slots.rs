//! Where streams live: places in one vector, found by stream ID through a small table (id_table.rs).
//!
//! A place is used again by a later stream together with the memory that its queues have grown to, so short streams
//! cost no allocation once a connection has run for a while. The last stream looked up is remembered, so a single
//! bulk stream costs one comparison per packet.
//!
//! Streams at rest have no place: a look-up that finds none looks among them, and gives the one that it finds a place again.
//!
//! Rejected: a ring indexed by stream number, which grows without bound behind one stream that stays open (HTTP/3's
//! control streams do); a `BTreeMap`, slower for what is always a point look-up.

use super::id_table::IdTable;
use super::resting::RestingStream;
use super::stream::Stream;
use crate::stream_id::StreamId;
use core::ops::{Index, IndexMut};

/// A stream's place. Valid as long as the stream exists; never leaves this room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(pub(super) u32);

impl Slot {
    #[inline]
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// No stream has this ID: it is above 2^62.
const NO_ID: u64 = u64::MAX;

/// All streams that exist.
#[derive(Debug)]
pub(super) struct Slots {
    streams: Vec<Stream>,
    free: Vec<Slot>,
    by_id: IdTable,
    recent: (u64, Slot),
    /// By their IDs in ascending order: a peer may have thousands at rest, and each new stream is looked for among them.
    resting: Vec<RestingStream>,
}

impl Slots {
    pub(super) fn new() -> Slots {
        Slots {
            streams: Vec::new(),
            free: Vec::new(),
            by_id: IdTable::default(),
            recent: (NO_ID, Slot(0)),
            resting: Vec::new(),
        }
    }

    /// The place of stream `id`, if it exists.
    #[inline]
    pub(super) fn find(&mut self, id: u64) -> Option<Slot> {
        if self.recent.0 == id {
            return Some(self.recent.1);
        }
        let Some(place) = self.by_id.get(id) else { return self.wake(id) };
        let slot = Slot(place);
        self.recent = (id, slot);
        Some(slot)
    }

    /// The place of the stream looked up last, if it still exists.
    #[inline]
    pub(super) fn recent(&self) -> Option<Slot> {
        (self.recent.0 != NO_ID).then_some(self.recent.1)
    }

    /// The place of stream `id`, if it exists and was at rest.
    #[inline]
    fn wake(&mut self, id: u64) -> Option<Slot> {
        // A stream that is new is not, and few connections have any.
        if self.resting.is_empty() { None } else { self.wake_resting(id) }
    }

    fn wake_resting(&mut self, id: u64) -> Option<Slot> {
        let at = self.resting.binary_search_by_key(&id, |resting| resting.id.as_u64()).ok()?;
        let resting = self.resting.remove(at);
        let slot = self.insert(resting.id);
        resting.wake(&mut self[slot]);
        Some(slot)
    }

    /// Makes a stream, in the place of a former one if there is any.
    pub(super) fn insert(&mut self, id: StreamId) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.streams.push(Stream::new());
            Slot(self.streams.len() as u32 - 1)
        });
        self[slot].id = id;
        self.by_id.insert(id.as_u64(), slot.0);
        self.recent = (id.as_u64(), slot);
        slot
    }

    /// The stream is over; its place waits for the next one.
    pub(super) fn remove(&mut self, slot: Slot) {
        let id = self[slot].id.as_u64();
        if self.recent.0 == id {
            self.recent.0 = NO_ID;
        }
        if self.by_id.remove(id) {
            self[slot].recycle();
            self.free.push(slot);
        }
    }

    /// Gives back the places at the end that no stream has or only streams that are at rest, and what the others hold for bytes to come.
    pub(super) fn release_memory(&mut self) {
        for slot in self.all() {
            if let Some(resting) = RestingStream::of(&self[slot]) {
                self.remove(slot);
                self.resting.push(resting);
            }
        }
        self.resting.sort_unstable_by_key(|resting| resting.id.as_u64());
        self.resting.shrink_to_fit();
        let free = |stream: &mut Stream| stream.is_vacant() && !stream.in_events && !stream.in_control;
        while self.streams.pop_if(free).is_some() {}
        let places = self.streams.len();
        self.free.retain(|slot| slot.index() < places);
        self.free.shrink_to_fit();
        self.by_id.release_memory();
        self.streams.shrink_to_fit();
        self.streams.iter_mut().for_each(|stream| stream.send.release_memory());
    }

    /// How many streams exist.
    pub(super) fn len(&self) -> usize {
        self.by_id.len() + self.resting.len()
    }

    /// Streams at rest.
    #[cfg(test)]
    pub(super) fn resting(&self) -> impl Iterator<Item = StreamId> {
        self.resting.iter().map(|resting| resting.id)
    }

    /// All places, those of former streams included. Streams at rest have none.
    pub(super) fn all(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..self.streams.len() as u32).map(Slot)
    }
}

impl Index<Slot> for Slots {
    type Output = Stream;
    #[inline]
    fn index(&self, slot: Slot) -> &Stream {
        &self.streams[slot.index()]
    }
}

impl IndexMut<Slot> for Slots {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut Stream {
        &mut self.streams[slot.index()]
    }
}
