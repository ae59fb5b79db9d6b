//! Handshakes by kind.

use serde::Serialize;

/// What a handshake was like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandshakeKind {
    /// With the server's certificate.
    Full,
    /// By a ticket.
    Resumed,
    /// By a ticket, with early data that the server has taken.
    Early,
}

/// Handshakes that were completed, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HandshakeKinds {
    /// With the server's certificate.
    pub full: u64,
    /// By a ticket, without early data that the server has taken.
    pub resumed: u64,
    /// By a ticket, with early data.
    pub early: u64,
}

impl HandshakeKinds {
    pub(super) fn add(&mut self, kind: HandshakeKind) {
        match kind {
            HandshakeKind::Full => self.full += 1,
            HandshakeKind::Resumed => self.resumed += 1,
            HandshakeKind::Early => self.early += 1,
        }
    }

    pub(super) fn merge(&mut self, other: &HandshakeKinds) {
        self.full += other.full;
        self.resumed += other.resumed;
        self.early += other.early;
    }
}
