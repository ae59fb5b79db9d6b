//! Whether a queue that is too short to make anything wait loses what the flow loses: it overflows at the same window each time; chance strikes at any.

/// A loss speaks for chance only if the window was smaller by such a part than at the reduction before.
const WINDOW_PART: u64 = 8;

/// CUBIC's reductions of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overruns {
    /// The window in bytes before the last reduction; 0 if there was none.
    before: u64,
    /// That was far below the one before the reduction before.
    is_far_below: bool,
    /// Losses of BBR's have followed what was in flight.
    were_seen: bool,
}

impl Overruns {
    pub(super) const fn new() -> Overruns {
        Overruns { before: 0, is_far_below: false, were_seen: false }
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
        self.before = before;
    }

    /// CUBIC takes the place of BBR. What its windows were says nothing of CUBIC's.
    pub(super) fn on_return(&mut self, by_overrun: bool) {
        *self = Overruns { before: 0, is_far_below: false, were_seen: self.were_seen || by_overrun };
    }

    /// With CUBIC in use: the last loss is such a queue's.
    pub(super) const fn explain_loss(&self) -> bool {
        self.were_seen && !self.is_far_below
    }
}
