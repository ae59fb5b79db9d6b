//! The step of a server's handshake that may take long, apart from the rest of the session: rustls reads a ClientHello, and signs.
//!
//! A session gives it away with rustls' connection in it, and goes on when it has got it back. Nothing else of the session is needed
//! for it, so that any thread can take it. Source: RFC 8446 §4.4.3.

use core::fmt;
use rustls::Error;
use rustls::quic::Connection;

/// A step of a handshake that may run on any thread.
pub struct HandshakeWork {
    pub(crate) tls: Box<Connection>,
    /// The ClientHello.
    pub(crate) message: Vec<u8>,
    /// Whether the early data that it announces may be taken; `None` where it announces none.
    pub(crate) permits_early_data: Option<bool>,
}

/// A step that was taken: what the session goes on with.
pub struct HandshakeOutcome {
    pub(crate) work: HandshakeWork,
    pub(crate) outcome: Result<(), Error>,
}

impl HandshakeWork {
    /// Takes the step. Long: hundreds of microseconds, or milliseconds.
    pub fn run(mut self) -> HandshakeOutcome {
        let outcome = self.tls.read_hs(&self.message);
        HandshakeOutcome { work: self, outcome }
    }
}

impl fmt::Debug for HandshakeWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandshakeWork").field("message", &self.message.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for HandshakeOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandshakeOutcome").field("outcome", &self.outcome).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
