//! The sizes that a search has in hand: a short sorted list of fixed length, so that no path and no peer makes it grow.
//!
//! Sizes behave alike in one direction: where one passes all smaller ones do, where one fails all larger ones do. So a size
//! that passes forgets those below, a size that fails forgets those above, and of several *suspects* (lost at least once)
//! only the smallest is worth another probe. Rejected: counting losses of smaller sizes against larger ones, which makes a
//! burst that takes a whole flight look like three losses.

/// Sizes in hand at most. When there are more the largest are forgotten; the search finds its way there again.
const MOST: usize = 12;

/// Probes of one size that are lost before it has failed. Source: RFC 8899 §5.1.2 (MAX_PROBES).
pub(super) const MAX_PROBES: u8 = 3;

/// Where a size stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ProbeState {
    #[default]
    Due,
    UnderWay,
}

/// A size that is tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ProbedSize {
    size: u16,
    lost: u8,
    flight: ProbeState,
}

/// What the loss of a probe means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// No such probe was under way.
    Unknown,
    /// The size may be tried again.
    Suspect,
    /// The size does not pass.
    Failed,
}

/// Sizes in hand, the smallest first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbedSizes {
    list: [ProbedSize; MOST],
    len: usize,
}

impl ProbedSizes {
    fn all(&self) -> &[ProbedSize] {
        self.list.get(..self.len).unwrap_or(&[])
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds a size, unless it is there.
    pub(super) fn add(&mut self, size: u16) {
        let at = self.all().partition_point(|known| known.size < size);
        if self.all().get(at).is_some_and(|known| known.size == size) {
            return;
        }
        self.len = self.len.min(MOST - 1) + 1;
        if let Some(tail) = self.list.get_mut(at..self.len) {
            tail.rotate_right(1);
            if let Some(place) = tail.first_mut() {
                *place = ProbedSize { size, ..ProbedSize::default() };
            }
        }
    }

    /// This size passes: it and all below are settled. If it was a suspect, losses here are not by size, and those of larger
    /// ones count no more.
    pub(super) fn on_passed(&mut self, size: u16) {
        if self.suspect().is_some_and(|suspect| suspect <= size) {
            for known in &mut self.list {
                known.lost = 0;
            }
        }
        let settled = self.all().partition_point(|known| known.size <= size);
        self.list.rotate_left(settled);
        self.len -= settled;
    }

    /// Nothing of this size or above passes, or is wanted.
    pub(super) fn forget_from(&mut self, size: u16) {
        self.len = self.all().partition_point(|known| known.size < size);
    }

    pub(super) fn on_sent(&mut self, size: u16) {
        if let Some(known) = self.find(size) {
            known.flight = ProbeState::UnderWay;
        }
    }

    pub(super) fn on_lost(&mut self, size: u16) -> Loss {
        let Some(known) = self.find(size).filter(|known| known.flight == ProbeState::UnderWay) else {
            return Loss::Unknown;
        };
        known.flight = ProbeState::Due;
        known.lost += 1;
        if known.lost < MAX_PROBES {
            return Loss::Suspect;
        }
        self.forget_from(size);
        Loss::Failed
    }

    /// The fate of the probes under way stays unknown.
    pub(super) fn recall(&mut self) {
        for known in &mut self.list {
            known.flight = ProbeState::Due;
        }
    }

    fn find(&mut self, size: u16) -> Option<&mut ProbedSize> {
        self.list.get_mut(..self.len)?.iter_mut().find(|known| known.size == size)
    }

    /// The smallest size that was lost, which may still pass.
    pub(super) fn suspect(&self) -> Option<u16> {
        self.all().iter().find(|known| known.lost > 0).map(|known| known.size)
    }

    /// The sizes of the probes under way.
    pub(super) fn under_way(&self) -> impl Iterator<Item = u16> {
        self.all().iter().filter(|known| known.flight == ProbeState::UnderWay).map(|known| known.size)
    }

    /// Whether a size below this was not lost yet.
    pub(super) fn has_fresh_below(&self, size: u16) -> bool {
        self.all().iter().any(|known| known.size < size && known.lost == 0)
    }

    /// The largest size up to `most` that should leave now: fresh ones below the smallest suspect, and that.
    pub(super) fn next(&self, most: u16) -> Option<u16> {
        let top = self.suspect().unwrap_or(u16::MAX).min(most);
        let due = |known: &&ProbedSize| known.size <= top && known.flight == ProbeState::Due;
        self.all().iter().rev().find(due).map(|known| known.size)
    }
}
