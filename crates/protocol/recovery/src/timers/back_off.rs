//! Probe timeouts in a row: how the period grows, and when in it the two packets leave that each of them permits.
//!
//! Each timeout doubles the period. The first sends both packets at once, so that the loss of one does not cost another timeout.
//! From the second on nothing seems to arrive, and two packets at once say no more than one: the second leaves in the middle of the
//! period. So silence that ends is noticed after half the time, and no more packets leave.
//!
//! A peer that is heard although it acknowledges nothing is there again, or its acknowledgement was lost: the next probe is then due as
//! if there had been no timeout, once for each timeout, so that a path which carries one direction only brings no storm.
//!
//! Rejected: a bound on the period for the first seconds. RFC 9002 §6.2.1 demands that it doubles.
//!
//! RFC 9002 §6.2.1, §6.2.4.

/// What a sender has to send when its timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probes {
    /// So many packets, for another timeout.
    OfTimeout(u8),
    /// One packet, the second of the last timeout.
    Second,
    /// So many packets, because the peer was heard.
    OfLife(u8),
}

impl Probes {
    /// How many packets.
    pub const fn count(self) -> u8 {
        match self {
            Probes::OfTimeout(count) | Probes::OfLife(count) => count,
            Probes::Second => 1,
        }
    }
}

/// Packets that a timeout permits. Source: RFC 9002 §6.2.4.
pub const PROBES: u8 = 2;
/// Timeouts in a row from which on these leave one by one.
const SILENT: u32 = 2;

/// Probe timeouts in a row of one space or of the handshake's spaces together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackOff {
    timeouts: u32,
    owes_second: bool,
    /// The peer was heard since the last timeout, and was answered.
    has_answered: bool,
}

impl BackOff {
    /// Probe timeouts in a row without an acknowledgement.
    pub const fn timeouts(self) -> u32 {
        self.timeouts
    }

    /// How often the probe timeout is doubled until the next packet is due. `is_heard`: a packet of the peer has come since the
    /// last one that elicits an acknowledgement was sent.
    #[inline]
    pub const fn doublings(self, is_heard: bool) -> u32 {
        if self.answers(is_heard) {
            0
        } else if self.timeouts >= SILENT {
            self.timeouts - 1
        } else {
            self.timeouts
        }
    }

    const fn answers(self, is_heard: bool) -> bool {
        is_heard && self.timeouts > 0 && !self.has_answered
    }

    /// The timer has expired, which was set by [`BackOff::doublings`].
    pub fn on_expiry(&mut self, is_heard: bool) -> Probes {
        if self.answers(is_heard) {
            self.has_answered = true;
            return Probes::OfLife(PROBES);
        }
        if core::mem::take(&mut self.owes_second) {
            return Probes::Second;
        }
        self.on_timeout();
        self.owes_second = self.timeouts >= SILENT;
        Probes::OfTimeout(if self.owes_second { 1 } else { PROBES })
    }

    /// A timeout while the handshake lasts: both packets leave at once. The period has doubled as often as there were timeouts.
    pub fn on_timeout(&mut self) -> Probes {
        *self = BackOff { timeouts: self.timeouts.saturating_add(1), ..BackOff::default() };
        Probes::OfTimeout(PROBES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When probes leave whose peer is silent, in first periods, with their number.
    fn silence(until: u64) -> Vec<(u64, u8)> {
        let (mut back_off, mut now, mut sent) = (BackOff::default(), 0, Vec::new());
        loop {
            now += 1 << back_off.doublings(false);
            if now > until {
                return sent;
            }
            sent.push((now, back_off.on_expiry(false).count()));
        }
    }

    /// Deleted, the end of a silence could be noticed only after as long again, or an unreachable peer could get a storm.
    #[test]
    fn probes_become_rarer_and_no_more_than_two_leave_for_each_doubling() {
        let expected =
            [(1, 2), (3, 1), (5, 1), (7, 1), (11, 1), (15, 1), (23, 1), (31, 1), (47, 1), (63, 1), (95, 1)];
        assert_eq!(silence(100), expected);
        let sent: u64 = silence(1 << 19).iter().map(|(_, count)| u64::from(*count)).sum();
        assert!(sent <= 2 * 19, "{sent}");
    }

    #[test]
    fn a_peer_that_is_heard_is_answered_once_for_each_timeout() {
        let mut back_off = BackOff::default();
        assert_eq!(back_off.doublings(true), 0);
        assert_eq!(back_off.on_expiry(true), Probes::OfTimeout(2), "it is a timeout like any other");
        for _ in 0..4 {
            back_off.on_expiry(false);
        }
        let before = back_off;
        assert_eq!((back_off.timeouts(), back_off.doublings(false), back_off.doublings(true)), (3, 2, 0));
        assert_eq!(back_off.on_expiry(true), Probes::OfLife(2));
        assert_eq!((back_off.timeouts(), back_off.doublings(true)), (3, before.doublings(false)));
        while back_off.timeouts() == 3 {
            assert!(!matches!(back_off.on_expiry(true), Probes::OfLife(_)));
        }
        assert_eq!(back_off.doublings(true), 0, "another timeout, another answer");
    }
}
