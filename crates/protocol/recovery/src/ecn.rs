//! Whether a path carries ECN marks to the peer and the peer reports them: a label-only machine per path.
//!
//! The first packets leave marked ECT(0), or ECT(1) where the congestion controller asks for it (Testing); then none until the peer's counts show that marks arrive (Unknown);
//! then all (Capable). A report that cannot be true, none at all, or marked packets that all vanish end it (Failed). A new
//! path starts over; a data path that cannot mark never starts (Disabled).
//! Counts are kept per packet-number space, since the peer counts so.
//!
//! RFC 9000 §13.4.2, A.4; RFC 9002 §7.1, B.7.

#[cfg(test)]
mod tests;

use crate::packet::Space;
use base::net::Ecn;

/// Packets sent marked before the marking waits for a report. Source: RFC 9000 A.4.
const TESTING_PACKETS: u64 = 10;

/// The counts of an ACK frame of type 0x03. Source: RFC 9000 §19.3.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// Packets received marked ECT(0).
    pub ect0: u64,
    /// Packets received marked ECT(1).
    pub ect1: u64,
    /// Packets received marked CE.
    pub ce: u64,
}

impl EcnCounts {
    /// Counts a received packet.
    #[inline]
    pub fn add(&mut self, mark: Ecn) {
        self.add_all(mark, 1);
    }

    /// Counts received packets with the same mark.
    #[inline]
    pub fn add_all(&mut self, mark: Ecn, packets: u64) {
        match mark {
            Ecn::NotEct => {}
            Ecn::Ect0 => self.ect0 = self.ect0.saturating_add(packets),
            Ecn::Ect1 => self.ect1 = self.ect1.saturating_add(packets),
            Ecn::Ce => self.ce = self.ce.saturating_add(packets),
        }
    }

    /// Whether no packet was marked: the plain ACK frame will do.
    pub fn is_zero(&self) -> bool {
        *self == EcnCounts::default()
    }
}

/// Where validation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnState {
    /// Marking, to find out.
    Testing,
    /// Waiting for the report on the marked packets; not marking.
    Unknown,
    /// The path and the peer support ECN; marking.
    Capable,
    /// They do not; not marking any more.
    Failed,
    /// Never marking, on any path.
    Disabled,
}

/// What a report came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnOutcome {
    /// Nothing new.
    Nothing,
    /// So many more packets were marked CE: a sign of congestion.
    CongestionEvent(u64),
}

/// What was sent and reported in one space.
#[derive(Clone, Copy, Debug, Default)]
struct SpaceCounts {
    /// Marked packets sent.
    sent: u64,
    /// What the peer last reported.
    reported: EcnCounts,
}

/// ECN validation of one path.
#[derive(Clone, Debug)]
pub struct EcnValidator {
    state: EcnState,
    /// ECT(0) or ECT(1): what is sent where anything is marked.
    codepoint: Ecn,
    application: SpaceCounts,
    /// Of the Initial and the Handshake space, while something is known of them.
    early: Option<Box<[SpaceCounts; 2]>>,
    /// Marked packets sent, acknowledged and lost, over all spaces.
    marked: u64,
    acked: u64,
    lost: u64,
}

impl EcnValidator {
    /// Marks from the first packet on; for a path that supports it as far as the data path can tell.
    pub const fn new() -> EcnValidator {
        EcnValidator::in_state(EcnState::Testing)
    }

    /// Never marks: the data path cannot, or the configuration says so.
    pub const fn disabled() -> EcnValidator {
        EcnValidator::in_state(EcnState::Disabled)
    }

    const fn in_state(state: EcnState) -> EcnValidator {
        let zero = EcnCounts { ect0: 0, ect1: 0, ce: 0 };
        EcnValidator {
            state,
            codepoint: Ecn::Ect0,
            application: SpaceCounts { sent: 0, reported: zero },
            early: None,
            marked: 0,
            acked: 0,
            lost: 0,
        }
    }

    /// Marks with ECT(1) if that is `mark`, else with ECT(0). To be called before anything was sent.
    /// Source: RFC 9331 §4.1.
    pub fn with_mark(self, mark: Ecn) -> EcnValidator {
        let codepoint = if mark == Ecn::Ect1 { Ecn::Ect1 } else { Ecn::Ect0 };
        EcnValidator { codepoint, ..self }
    }

    #[inline]
    fn counts_mut(&mut self, space: Space) -> &mut SpaceCounts {
        match space {
            Space::Application => &mut self.application,
            Space::Initial => &mut self.early.get_or_insert_default()[0],
            Space::Handshake => &mut self.early.get_or_insert_default()[1],
        }
    }

    /// The other spaces than that of 1-RTT packets are gone.
    pub fn forget_handshake(&mut self) {
        self.early = None;
    }

    /// Whether the verdict is still open.
    const fn is_testing(&self) -> bool {
        matches!(self.state, EcnState::Testing | EcnState::Unknown)
    }

    /// Where validation stands.
    pub const fn state(&self) -> EcnState {
        self.state
    }

    /// The mark that packets leave with now.
    #[inline]
    pub const fn mark(&self) -> Ecn {
        match self.state {
            //= rfc9000/13.4.2#1
            EcnState::Testing | EcnState::Capable => self.codepoint,
            EcnState::Unknown | EcnState::Failed | EcnState::Disabled => Ecn::NotEct,
        }
    }

    /// `packets` left with `mark` in `space`; once for a train.
    #[inline]
    pub fn on_sent(&mut self, space: Space, mark: Ecn, packets: u64) {
        if mark == Ecn::NotEct {
            return;
        }
        self.counts_mut(space).sent += packets;
        self.marked += packets;
        if self.state == EcnState::Testing && self.marked >= TESTING_PACKETS {
            self.state = EcnState::Unknown;
        }
    }

    /// An ACK frame that raised the largest acknowledged newly acknowledged `newly_acked` packets sent marked.
    /// `counts` are its counts, if it has any. Source: RFC 9000 §13.4.2.1.
    pub fn on_ack(&mut self, space: Space, newly_acked: u64, counts: Option<EcnCounts>) -> EcnOutcome {
        if matches!(self.state, EcnState::Failed | EcnState::Disabled) {
            return EcnOutcome::Nothing;
        }
        let Some(counts) = counts else {
            // RFC 9000 §13.4.2.1: marked packets acknowledged without counts.
            if newly_acked > 0 {
                self.state = EcnState::Failed;
            }
            return EcnOutcome::Nothing;
        };
        let SpaceCounts { sent, reported: before } = *self.counts_mut(space);
        let (Some(ect0), Some(ect1), Some(ce)) = (
            counts.ect0.checked_sub(before.ect0),
            counts.ect1.checked_sub(before.ect1),
            counts.ce.checked_sub(before.ce),
        ) else {
            self.state = EcnState::Failed; // counts never fall
            return EcnOutcome::Nothing;
        };
        let (ours, all_ours, foreign) = match self.codepoint {
            Ecn::Ect1 => (ect1, counts.ect1, ect0),
            _ => (ect0, counts.ect0, ect1),
        };
        // RFC 9000 §13.4.2.1: each marked packet is reported as it left or as CE; nothing is reported that was not sent.
        //= rfc9000/13.4.2.1#1
        let is_short = ours.saturating_add(ce) < newly_acked;
        let is_long = all_ours.saturating_add(counts.ce) > sent;
        // RFC 9000 A.4: a path that marks everything says nothing by it.
        let is_all_ce = self.is_testing() && all_ours == 0 && counts.ce >= TESTING_PACKETS;
        //= rfc9000/13.4.2.2#1
        if is_short || is_long || foreign > 0 || is_all_ce {
            self.state = EcnState::Failed;
            return EcnOutcome::Nothing;
        }
        self.counts_mut(space).reported = counts;
        self.acked += newly_acked;
        // RFC 9000 A.4: the counts are right, and a marked packet was acknowledged.
        if self.acked > 0 && self.is_testing() {
            self.state = EcnState::Capable;
        }
        if ce > 0 { EcnOutcome::CongestionEvent(ce) } else { EcnOutcome::Nothing }
    }

    /// `packets` sent marked were declared lost. If none ever arrived, the path drops what is marked.
    /// Source: RFC 9000 §13.4.2.
    pub fn on_lost(&mut self, packets: u64) {
        self.lost += packets;
        if self.is_testing() && packets > 0 && self.acked == 0 && self.lost >= self.marked {
            self.state = EcnState::Failed;
        }
    }

    /// The peer is reached by a new path: validation starts anew there. What was sent and reported so far stays the
    /// baseline, because the peer's counts go on. A validator that never marks stays so.
    /// Source: RFC 9000 §13.4.2, A.4.
    pub fn on_path_change(&mut self) {
        if self.state != EcnState::Disabled {
            self.state = EcnState::Testing;
            (self.marked, self.acked, self.lost) = (0, 0, 0);
        }
    }

    /// A probe timeout: while nothing marked has arrived, what follows leaves unmarked, so that a path that drops
    /// marked packets does not end the handshake.
    pub fn on_pto(&mut self) {
        if self.state == EcnState::Testing && self.acked == 0 {
            self.state = EcnState::Unknown;
        }
    }
}

impl Default for EcnValidator {
    fn default() -> EcnValidator {
        EcnValidator::new()
    }
}
