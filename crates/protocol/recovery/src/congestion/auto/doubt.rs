//! Losses that may prove to be none: once all of their packets have arrived, what they spoke for is taken back.
//!
//! One recovery at a time, as for the windows (`window.rs`): losses of packets that were sent before it began belong to it, and the first
//! later one begins another. What is late for longer than a recovery stays a loss.
//!
//! RFC 9438 §4.9.

use crate::congestion::cubic::Cubic;
use crate::congestion::events::AckedBytes;
use base::time::Instant;

/// The losses of one recovery.
#[derive(Clone, Debug)]
pub(super) struct Doubt {
    /// Packets sent until then are of earlier recoveries.
    earlier: Instant,
    /// When this one began.
    began: Instant,
    /// Packets declared lost that have not arrived since; 0 if nothing is in doubt.
    missing: u64,
    /// The evidence before: its score, and whether it had seen no loss.
    before: (i32, bool),
    /// What was in use before these losses made BBR of it.
    suspended: Option<Box<Cubic>>,
}

impl Doubt {
    pub(super) const fn new() -> Doubt {
        Doubt { earlier: Instant::ZERO, began: Instant::ZERO, missing: 0, before: (0, true), suspended: None }
    }

    /// So many packets were declared lost, of which the latest was sent at that time; `score` and `is_first` are the evidence so far.
    /// Whether a recovery begins with them.
    pub(super) fn on_lost(
        &mut self,
        now: Instant,
        sent_at: Instant,
        packets: u64,
        evidence: (i32, bool),
    ) -> bool {
        let begins = sent_at > self.began;
        if begins {
            (self.earlier, self.began) = (self.began, now);
            (self.missing, self.before, self.suspended) = (0, evidence, None);
        } else if self.missing == 0 {
            return false;
        }
        self.missing = self.missing.saturating_add(packets);
        begins
    }

    /// Packets that were declared lost have arrived. The evidence before the losses if these were the last that were missing.
    pub(super) fn on_spurious(&mut self, acked: &AckedBytes) -> Option<(i32, bool)> {
        let from = acked.spurious_from?;
        if self.missing == 0 || from <= self.earlier {
            return None;
        }
        self.missing = self.missing.saturating_sub(acked.spurious);
        if self.missing > 0 {
            return None;
        }
        // What is lost now is news, although it was sent before.
        self.began = self.earlier;
        Some(self.before)
    }

    /// These losses are what they seem, or too much has changed since.
    pub(super) fn end(&mut self) {
        (self.missing, self.suspended) = (0, None);
    }

    /// BBR takes the place of that one because of these losses.
    pub(super) fn suspend(&mut self, cubic: Cubic) {
        if self.missing > 0 {
            self.suspended = Some(Box::new(cubic));
        }
    }

    pub(super) const fn has_suspended(&self) -> bool {
        self.suspended.is_some()
    }

    pub(super) fn take_suspended(&mut self) -> Option<Cubic> {
        self.suspended.take().map(|cubic| *cubic)
    }
}
