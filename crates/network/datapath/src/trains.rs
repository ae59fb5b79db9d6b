//! Trains that a copying data path owns: middleware, and virtual links.
//!
//! One byte vector holds all datagrams back to back, a second vector says which belong together. A datagram joins the
//! train before it when both look the same to a kernel that merges: same path and marking, nothing shorter yet. Cleared
//! and refilled, it allocates only until it has seen its largest batch.
//!
//! Invariant: trains lie in `bytes` in queue order and do not overlap; every datagram of a train but the last is
//! `segment_size` long.

use base::net::Train;
use base::sink::TrainPath;

/// Most datagrams of one train: what every kernel with UDP segmentation takes.
pub const MAX_TRAIN_SEGMENTS: usize = 64;

/// Most bytes of one train: an IPv4 packet's 65,535 less IP and UDP header.
pub const MAX_TRAIN_BYTES: usize = 65_507;

#[derive(Clone, Copy, Debug)]
struct TrainRange {
    path: TrainPath,
    start: usize,
    end: usize,
    segment_size: usize,
    /// Takes no more datagrams.
    is_closed: bool,
}

impl TrainRange {
    /// Whether a datagram of `len` bytes on `path` may join.
    fn accepts(&self, path: &TrainPath, len: usize) -> bool {
        let held = self.end - self.start;
        let whole = held.is_multiple_of(self.segment_size);
        whole
            && !self.is_closed
            && len <= self.segment_size
            && held + len <= MAX_TRAIN_BYTES
            && held / self.segment_size < MAX_TRAIN_SEGMENTS
            && self.path.ecn == path.ecn
            && self.path.departs == path.departs
            && self.path.addresses == path.addresses
    }
}

/// An owned queue of trains, oldest first.
#[derive(Clone, Debug, Default)]
pub struct TrainQueue {
    bytes: Vec<u8>,
    entries: Vec<TrainRange>,
}

impl TrainQueue {
    /// An empty queue.
    pub fn new() -> TrainQueue {
        TrainQueue::default()
    }

    /// Trains in the queue.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes that the queue occupies.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets all trains and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// Appends a datagram, to the newest train if it fits there. An empty datagram is ignored.
    pub fn push(&mut self, path: &TrainPath, datagram: &[u8]) {
        if datagram.is_empty() {
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(datagram);
        let end = self.bytes.len();
        match self.entries.last_mut() {
            Some(last) if last.accepts(path, datagram.len()) => last.end = end,
            _ => self.entries.push(TrainRange {
                path: *path,
                start,
                end,
                segment_size: datagram.len(),
                is_closed: false,
            }),
        }
    }

    /// The newest train takes no more datagrams: the next one begins a train of its own.
    pub fn close_newest(&mut self) {
        if let Some(last) = self.entries.last_mut() {
            last.is_closed = true;
        }
    }

    /// The last `len` bytes appended: the newest datagram, to be changed in place.
    pub fn newest_mut(&mut self, len: usize) -> &mut [u8] {
        let start = self.bytes.len().saturating_sub(len);
        &mut self.bytes[start..]
    }

    /// Train `index`, counted from the oldest. Panics beyond the end, as a slice does.
    pub fn train(&mut self, index: usize) -> Train<'_> {
        let entry = self.entries[index];
        Train {
            bytes: &mut self.bytes[entry.start..entry.end],
            segment_size: entry.segment_size,
            addresses: entry.path.addresses,
            ecn: entry.path.ecn,
        }
    }

    /// The path of train `index`. Panics beyond the end, as a slice does.
    pub fn path(&self, index: usize) -> TrainPath {
        self.entries[index].path
    }

    /// Removes the oldest `trains` trains and, of the one behind them, `datagrams` datagrams.
    pub fn take_front(&mut self, trains: usize, datagrams: usize) {
        self.entries.drain(..trains.min(self.entries.len()));
        if let Some(first) = self.entries.first_mut() {
            first.start = (first.start + datagrams * first.segment_size).min(first.end);
        }
        let gone = self.entries.first().map_or(self.bytes.len(), |first| first.start);
        self.bytes.drain(..gone);
        for entry in &mut self.entries {
            entry.start -= gone;
            entry.end -= gone;
        }
    }
}

#[cfg(test)]
mod tests {
    use base::net::{Addresses, Ecn};

    use super::*;

    fn path() -> TrainPath {
        let any = "192.0.2.1:9".parse().unwrap();
        TrainPath::new(Addresses { local: any, peer: any }, Ecn::Ect0)
    }

    #[test]
    fn equal_datagrams_merge_until_a_shorter_one_ends_the_train() {
        let path = path();
        let mut queue = TrainQueue::new();
        for len in [100, 100, 40, 100, 120, 0] {
            queue.push(&path, &vec![7; len]);
        }
        let shapes: Vec<_> =
            (0..queue.len()).map(|i| (queue.train(i).bytes.len(), queue.train(i).segment_size)).collect();
        assert_eq!(shapes, [(240, 100), (100, 100), (120, 120)]);
    }

    #[test]
    fn a_train_never_outgrows_what_a_kernel_sends_in_one_piece() {
        let path = path();
        let mut queue = TrainQueue::new();
        for _ in 0..130 {
            queue.push(&path, &[1; 10]);
        }
        assert_eq!(queue.len(), 3);
        queue.clear();
        for _ in 0..5 {
            queue.push(&path, &[1; 20_000]);
        }
        assert_eq!(queue.len(), 2);
    }

    #[test]
    fn what_was_taken_from_the_front_is_gone_and_the_rest_is_whole() {
        let path = path();
        let mut queue = TrainQueue::new();
        for value in 0..4u8 {
            queue.push(&path, &[value; 10]);
        }
        queue.push(&path, &[9; 30]);
        queue.take_front(0, 3);
        assert_eq!(queue.train(0).bytes, &[3; 10]);
        assert_eq!(queue.train(1).bytes, &[9; 30]);
        queue.take_front(1, 0);
        assert_eq!((queue.len(), queue.size()), (1, 30));
        queue.take_front(1, 0);
        assert!(queue.is_empty());
    }
}
