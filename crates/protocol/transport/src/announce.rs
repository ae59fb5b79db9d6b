//! Resend until acknowledged, written once: a value that the peer must learn.
//!
//! Limits, resets, tokens and "handshake done" all share this life: someone asks for it, a packet takes it along, and
//! the packet is acknowledged or lost. Only the latest value matters, so the loss of an older one is no reason to
//! send again, and a value that was acknowledged is never sent again. What is sent is the information, not the packet
//! or the frame. Source: RFC 9000 §13.3.
//!
//! Rejected: a queue of values owed. A peer could make it grow; a state cannot.

/// A value on its way to the peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Announce<T> {
    /// Nothing to tell, or the peer knows.
    #[default]
    Idle,
    /// To be written into the next packet that has room.
    Pending(T),
    /// Sent, its fate unknown.
    InFlight(T),
}

impl<T> Announce<T> {
    /// The peer must learn `value`, which replaces any older one.
    #[inline]
    pub(crate) fn request(&mut self, value: T) {
        *self = Announce::Pending(value);
    }

    /// The value no longer matters to the peer.
    #[inline]
    pub(crate) fn cancel(&mut self) {
        *self = Announce::Idle;
    }

    /// Whether a packet should take the value along.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self, Announce::Pending(_))
    }

    /// The value that a packet should take along.
    #[inline]
    pub(crate) fn pending(&self) -> Option<&T> {
        match self {
            Announce::Pending(value) => Some(value),
            _ => None,
        }
    }

    /// A packet took the value along, perhaps not the first one.
    #[inline]
    pub(crate) fn on_sent(&mut self) {
        *self = match core::mem::take(self) {
            Announce::Pending(value) => Announce::InFlight(value),
            unchanged => unchanged,
        };
    }

    /// A packet with the only value there ever is was acknowledged.
    #[inline]
    pub(crate) fn on_acked(&mut self) {
        *self = Announce::Idle;
    }

    /// A packet with the only value there ever is was lost.
    #[inline]
    pub(crate) fn on_lost(&mut self) {
        *self = match core::mem::take(self) {
            Announce::InFlight(value) => Announce::Pending(value),
            unchanged => unchanged,
        };
    }
}

impl<T: PartialEq> Announce<T> {
    /// A packet with `value` was acknowledged; a newer value stays on its way.
    #[inline]
    pub(crate) fn on_value_acked(&mut self, value: &T) {
        if matches!(self, Announce::Pending(latest) | Announce::InFlight(latest) if latest == value) {
            *self = Announce::Idle;
        }
    }

    /// A packet with `value` was lost: sent again only if it is still the latest.
    #[inline]
    pub(crate) fn on_value_lost(&mut self, value: &T) {
        if matches!(self, Announce::InFlight(latest) if latest == value) {
            self.on_lost();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_sent_until_acknowledged() {
        let mut token = Announce::default();
        assert!(!token.is_pending());
        token.request(7);
        assert_eq!(token.pending(), Some(&7));
        token.on_sent();
        assert!(!token.is_pending());
        token.on_lost();
        assert_eq!(token.pending(), Some(&7));
        token.on_sent();
        token.on_acked();
        token.on_lost();
        assert_eq!(token, Announce::Idle, "a late loss of what was acknowledged resends nothing");
    }

    /// A FIN goes along with resent data, and a timeout probe sends what may still arrive.
    #[test]
    fn what_was_sent_twice_is_sent_again_when_both_are_lost() {
        let mut fin = Announce::default();
        fin.request(());
        fin.on_sent();
        fin.on_sent();
        fin.on_lost();
        fin.on_lost();
        assert!(fin.is_pending());
        fin.on_sent();
        fin.on_acked();
        assert_eq!(fin, Announce::Idle);
    }

    #[test]
    fn only_the_latest_value_is_sent_again() {
        let mut limit = Announce::default();
        limit.request(100);
        limit.on_sent();
        limit.request(200);
        limit.on_sent();
        limit.on_value_lost(&100);
        assert!(!limit.is_pending());
        limit.on_value_acked(&100);
        limit.on_value_lost(&200);
        assert_eq!(limit.pending(), Some(&200));
        limit.on_value_acked(&200);
        assert_eq!(limit, Announce::Idle, "declared lost, then acknowledged after all");
    }
}
