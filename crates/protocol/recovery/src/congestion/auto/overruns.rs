//! Whether a queue that is too short to make anything wait loses what the flow loses: it overflows at the same window each time; chance strikes at any.

/// A loss speaks for chance only if the window was smaller by such a part than at the reduction before.
const WINDOW_PART: u64 = 8;
/// A window is full again of which such a part is there: a thirtieth more than a reduction leaves (RFC 9438 §4.6).
const FULL_AGAIN: (u64, u64) = (18, 25);
/// A queue is what ended slow start if so many frames bring losses to light beside which packets wait. It doubles its window until packets are lost, and
/// loses a part of it; a radio link loses one packet or a run.
const SIGNS: u8 = 8;

/// CUBIC's reductions of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overruns {
    /// The window in bytes before the last reduction; 0 if there was none.
    before: u64,
    /// The window before the first one, and what says that a short queue was its cause.
    first: u64,
    signs: u8,
    /// The window before the last reduction was far below the one before the reduction before.
    is_far_below: bool,
    /// Losses of BBR's have followed what was in flight.
    were_seen: bool,
}

impl Overruns {
    pub(super) const fn new() -> Overruns {
        Overruns { before: 0, first: 0, signs: 0, is_far_below: false, were_seen: false }
    }

    pub(super) const fn window_before(&self) -> u64 {
        self.before
    }

    pub(super) const fn were_seen(&self) -> bool {
        self.were_seen
    }

    /// CUBIC takes back its window, which was that.
    pub(super) fn on_reduction(&mut self, before: u64) {
        self.is_far_below = before < self.before - self.before / WINDOW_PART;
        if self.before == 0 {
            self.first = before;
        }
        self.before = before;
    }

    /// A frame has brought losses to light beside which packets wait, in a queue that lets none wait for long.
    pub(super) fn on_short_wait(&mut self) {
        if self.before == self.first {
            self.signs = self.signs.saturating_add(1);
        }
    }

    /// A short queue has ended slow start, and the window had grown again since.
    pub(super) const fn fill_short_queue(&self) -> bool {
        self.signs >= SIGNS && self.before * FULL_AGAIN.1 >= self.first * FULL_AGAIN.0
    }

    /// CUBIC takes the place of BBR. What its windows were says nothing of CUBIC's.
    pub(super) fn on_return(&mut self, by_overrun: bool) {
        *self = Overruns { were_seen: self.were_seen || by_overrun, ..Overruns::new() };
    }

    /// With CUBIC in use: the last loss is such a queue's.
    pub(super) const fn explain_loss(&self) -> bool {
        self.were_seen && !self.is_far_below
    }
}
