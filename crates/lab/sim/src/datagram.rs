//! A datagram under way.

use base::net::Ecn;
use core::net::SocketAddr;

/// What a datagram is to a code that protects its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbol {
    /// Not covered.
    Plain,
    /// The datagram of this number.
    Data(u64),
    /// A repair of the datagrams from the first number to before the second.
    Repair(u64, u64),
}

/// A datagram under way. Links count its UDP payload.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub ecn: Ecn,
    pub bytes: Vec<u8>,
    pub symbol: Symbol,
}

impl link::Datagram for Datagram {
    fn size(&self) -> usize {
        self.bytes.len()
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}
