//! Whether the pipe is full. Source: the draft, §5.3.1.2.

/// Whether more rate still brings more delivery.
#[derive(Clone, Copy, Debug)]
pub(super) struct FullPipe {
    pub(super) baseline: u64,
    pub(super) rounds: u32,
    pub(super) is_full: bool,
    pub(super) is_ever_full: bool,
    pub(super) drain_start: u64,
    /// The largest bandwidth known when losses were last looked at, a round ago.
    pub(super) at_losses: u64,
}

impl FullPipe {
    pub(super) const fn new() -> FullPipe {
        FullPipe { baseline: 0, rounds: 0, is_full: false, is_ever_full: false, drain_start: 0, at_losses: 0 }
    }

    /// The pipe was full at least once: Startup has done its work.
    pub(super) const fn is_ever_full(&self) -> bool {
        self.is_ever_full
    }

    /// It is full at this rate.
    pub(super) const fn is_full(&self) -> bool {
        self.is_full
    }

    /// Looks anew, from this delivery rate on.
    pub(super) fn reset(&mut self, baseline: u64) {
        *self = FullPipe { baseline, rounds: 0, is_full: false, ..*self };
    }

    /// What ended Startup was no loss.
    pub(super) fn forget(&mut self) {
        self.is_ever_full = false;
    }
}
