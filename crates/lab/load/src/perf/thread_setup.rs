//! What one thread of the perf client is given.

use ports::AnyPort;
use worker::HandOffMember;

/// What one thread is given for itself.
pub struct ThreadSetup {
    /// Its port.
    pub port: AnyPort,
    /// From which its randomness comes; secret.
    pub seed: [u8; 32],
    /// Its part in a group, where all threads have the same address.
    pub member: Option<HandOffMember>,
}
