//! Where a datagram goes and how it is marked.

use core::net::SocketAddr;

/// The two ends of a path as a datagram shows them. The local IP address is unspecified (`0.0.0.0` or `::`) as long as
/// it is not known, as on a client's first send; the local port is always set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Addresses {
    /// Ours.
    pub local: SocketAddr,
    /// The peer's.
    pub peer: SocketAddr,
}

impl Addresses {
    /// Whether both describe the same path; an unspecified local address matches any of its family.
    pub fn same_path(&self, other: &Addresses) -> bool {
        self.peer == other.peer
            && self.local.port() == other.local.port()
            && (self.local.ip() == other.local.ip()
                || self.local.ip().is_unspecified()
                || other.local.ip().is_unspecified())
    }
}

/// The ECN field of the IP header. Source: RFC 3168 §5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct = 0,
    /// ECT(1), the L4S identifier of RFC 9331.
    Ect1 = 1,
    /// ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// The codepoint in the two low bits of a TOS or traffic-class byte.
    pub const fn from_bits(tos: u8) -> Ecn {
        match tos & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
}

/// Datagrams that arrived back to back on one path: `bytes` holds them one after the other, each `segment_size` long but
/// the last, which may be shorter. One datagram is a train of one. The receiver decrypts in place.
#[derive(Debug)]
pub struct Train<'a> {
    /// The UDP payloads, contiguous.
    pub bytes: &'a mut [u8],
    /// Length of every datagram but the last, in bytes; at least 1.
    pub segment_size: usize,
    /// Where the train came from and arrived.
    pub addresses: Addresses,
    /// The marking that all of its datagrams carried.
    pub ecn: Ecn,
}
