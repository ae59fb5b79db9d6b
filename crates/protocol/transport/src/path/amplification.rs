//! The anti-amplification limit: an endpoint sends at most three times the bytes that it received from an unvalidated address.
//! Source: RFC 9000 §8.1.
//!
//! Bytes are UDP payload, counted once per datagram and not per packet in it. Everything that leaves counts: probes,
//! closes, challenges, padding. The rule is kept at every instant, because `available` is asked before a datagram is
//! begun and `on_sent` called when it is done.

/// How many bytes may go for each byte that came. Source: RFC 9000 §8.1.
const FACTOR: u64 = 3;

/// Whether a peer has proved to be at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressState {
    /// By a token, a Handshake packet, a PATH_RESPONSE, or because we chose the address ourselves.
    Validated,
    /// Not yet.
    Unvalidated,
}

/// What may be sent to an address.
#[derive(Clone, Copy, Debug)]
pub(super) enum AmplificationBudget {
    Unlimited,
    Limited { received: u64, sent: u64 },
}

impl AmplificationBudget {
    pub(super) const fn new(state: AddressState) -> AmplificationBudget {
        match state {
            AddressState::Validated => AmplificationBudget::Unlimited,
            AddressState::Unvalidated => AmplificationBudget::Limited { received: 0, sent: 0 },
        }
    }

    #[inline]
    pub(super) fn on_received(&mut self, bytes: u64) {
        if let AmplificationBudget::Limited { received, .. } = self {
            *received = received.saturating_add(bytes);
        }
    }

    #[inline]
    pub(super) fn on_sent(&mut self, bytes: u64) {
        if let AmplificationBudget::Limited { sent, .. } = self {
            *sent = sent.saturating_add(bytes);
        }
    }

    /// Bytes that may be sent now.
    #[inline]
    pub(super) const fn available(&self) -> u64 {
        match self {
            AmplificationBudget::Unlimited => u64::MAX,
            //= rfc9000/8.1#1
            AmplificationBudget::Limited { received, sent } => {
                received.saturating_mul(FACTOR).saturating_sub(*sent)
            }
        }
    }

    pub(super) fn lift(&mut self) {
        *self = AmplificationBudget::Unlimited;
    }

    #[inline]
    pub(super) const fn is_lifted(&self) -> bool {
        matches!(self, AmplificationBudget::Unlimited)
    }
}
