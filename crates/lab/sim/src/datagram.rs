//! A datagram under way.

use base::net::Ecn;
use core::net::SocketAddr;

/// A datagram under way. Links count its UDP payload.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub ecn: Ecn,
    pub bytes: Vec<u8>,
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
