//! The frames of sent packets: an append-only ring whose entries are freed in the order in which they were written.
//!
//! Positions are 32-bit counters that wrap; a power-of-two length makes the index a mask. The frames of one packet never
//! straddle the end, so that they can be lent as one slice: the few entries left over at the end are padding.
//! Rejected: a `Vec` of frames per packet (an allocation per packet), and `VecDeque` (two slices per packet).

/// Frames in packet-number order.
#[derive(Clone, Debug)]
pub(super) struct FrameRing<F> {
    frames: Vec<F>,
    /// Where the oldest live entry is.
    tail: u32,
    /// Where the next entry goes.
    next: u32,
}

impl<F: Copy> FrameRing<F> {
    pub(super) const fn new() -> FrameRing<F> {
        FrameRing { frames: Vec::new(), tail: 0, next: 0 }
    }

    /// A ring of `capacity` (a power of two) entries, all copies of `filler`.
    pub(super) fn with_capacity(capacity: usize, filler: F) -> FrameRing<F> {
        debug_assert!(capacity.is_power_of_two());
        FrameRing { frames: vec![filler; capacity], tail: 0, next: 0 }
    }

    pub(super) fn capacity(&self) -> usize {
        self.frames.len()
    }

    /// The position that an empty list of frames has now.
    #[inline]
    pub(super) const fn position(&self) -> u32 {
        self.next
    }

    /// Appends the frames of one packet and returns their position; `None` if there is no room.
    #[inline]
    pub(super) fn push(&mut self, added: &[F]) -> Option<u32> {
        let capacity = self.frames.len();
        let offset = self.next as usize & capacity.wrapping_sub(1);
        let padding = if offset + added.len() > capacity { capacity - offset } else { 0 };
        let used = self.next.wrapping_sub(self.tail) as usize;
        if used + padding + added.len() > capacity {
            return None;
        }
        let at = if padding == 0 { offset } else { 0 };
        let room = self.frames.get_mut(at..at + added.len())?;
        if let ([place], [frame]) = (&mut *room, added) {
            *place = *frame; // the usual packet: no call to copy memory
        } else {
            room.copy_from_slice(added);
        }
        let start = self.next.wrapping_add(padding as u32);
        self.next = start.wrapping_add(added.len() as u32);
        Some(start)
    }

    /// How many frames from `start` on lie in one piece, before the ring's end.
    #[inline]
    pub(super) fn before_end(&self, start: u32) -> u32 {
        (self.frames.len() - (start as usize & self.frames.len().wrapping_sub(1))) as u32
    }

    /// The `count` frames at `start`.
    #[inline]
    pub(super) fn slice(&self, start: u32, count: u16) -> &[F] {
        let at = start as usize & self.frames.len().wrapping_sub(1);
        self.frames.get(at..at + usize::from(count)).unwrap_or(&[])
    }

    /// Frees everything before `position`.
    #[inline]
    pub(super) fn free_before(&mut self, position: u32) {
        self.tail = position;
    }

    /// Moves the empty ring's counters, so that a test need not push four thousand million frames.
    #[cfg(test)]
    pub(super) fn start_at(&mut self, position: u32) {
        (self.tail, self.next) = (position, position);
    }
}
