//! Pieces that wait for their moment, ordered by it; of equal moments the first in leaves first.

use std::collections::VecDeque;

use super::pool::Buffer;
use super::train::Piece;

/// A piece and the buffer that it is part of.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) piece: Piece,
    pub(crate) buffer: Buffer,
}

impl Held {
    pub(crate) fn payload(&self) -> &[u8] {
        &self.buffer[self.piece.start..self.piece.end]
    }

    /// Bytes on the line and ahead of it.
    pub(crate) fn len(&self) -> usize {
        self.piece.head.as_slice().len() + self.piece.end - self.piece.start
    }
}

/// The queue. Nearly all pieces come in the order in which they leave; a late one is put in its place.
#[derive(Debug, Default)]
pub(crate) struct HeldQueue(VecDeque<Held>);

impl HeldQueue {
    pub(crate) fn insert(&mut self, held: Held) {
        let at = held.piece.at;
        if self.0.back().is_none_or(|last| last.piece.at <= at) {
            self.0.push_back(held);
            return;
        }
        let place = self.0.partition_point(|other| other.piece.at <= at);
        self.0.insert(place, held);
    }

    /// When the first piece leaves.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.0.front().map(|held| held.piece.at)
    }

    /// How many pieces leave by `now`, at most `limit`.
    pub(crate) fn due(&self, now: u64, limit: usize) -> usize {
        self.0.iter().take(limit).take_while(|held| held.piece.at <= now).count()
    }

    pub(crate) fn nth(&self, n: usize) -> Option<&Held> {
        self.0.get(n)
    }

    pub(crate) fn take_first(&mut self) -> Option<Held> {
        self.0.pop_front()
    }
}
