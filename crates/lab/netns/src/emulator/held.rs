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

    /// For how many nanoseconds the first piece should have been gone by `now`; 0 if it need not.
    pub(crate) fn overdue(&self, now: u64) -> u64 {
        self.next_at().map_or(0, |at| now.saturating_sub(at))
    }

    pub(crate) fn nth(&self, n: usize) -> Option<&Held> {
        self.0.get(n)
    }

    pub(crate) fn take_first(&mut self) -> Option<Held> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::frame::Head;
    use super::*;

    #[test]
    fn a_piece_is_overdue_from_its_moment_on() {
        let mut queue = HeldQueue::default();
        assert_eq!(queue.overdue(1_000), 0, "nothing waits");
        for at in [700, 400] {
            let piece = Piece { at, head: Head::NONE, start: 0, end: 0 };
            queue.insert(Held { piece, buffer: Rc::new(Vec::new()) });
        }
        assert_eq!(queue.overdue(399), 0);
        assert_eq!(queue.overdue(450), 50, "the earlier one counts");
        queue.take_first();
        assert_eq!(queue.overdue(950), 250);
    }
}
