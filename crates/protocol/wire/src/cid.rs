//! Connection IDs: 0 to 20 bytes, kept inline. RFC 9000 §5.1, §17.2.
//!
//! The bytes behind the length are always zero, so that comparing and hashing whole arrays, which is faster than slices of
//! a variable length, gives the right answer.

use crate::error::Malformed;
use crate::reader::Reader;
use crate::writer::Writer;
use base::rng::Rng;
use core::fmt;

/// The most bytes a connection ID has in QUIC versions 1 and 2.
pub const MAX_LEN: usize = 20;

/// A connection ID of 0 to 20 bytes.
///
/// Aligned to eight bytes, so that a copy is two whole moves: of 21 bytes the compiler copies two halves that overlap, and
/// the length, read back as part of a larger word, then stalls every packet's header until both are in the cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(align(8))]
pub struct ConnectionId {
    bytes: [u8; MAX_LEN],
    len: u8,
}

impl ConnectionId {
    /// The connection ID of no bytes.
    pub const EMPTY: ConnectionId = ConnectionId { bytes: [0; MAX_LEN], len: 0 };

    /// The connection ID of these bytes. `None` if there are more than 20.
    #[inline]
    pub fn new(bytes: &[u8]) -> Option<ConnectionId> {
        let mut cid = ConnectionId::EMPTY;
        cid.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        cid.len = bytes.len() as u8;
        Some(cid)
    }

    /// A random connection ID of `len` bytes, at most 20.
    pub fn random(rng: &mut Rng, len: usize) -> ConnectionId {
        let mut cid = ConnectionId::EMPTY;
        let len = len.min(MAX_LEN);
        if let Some(bytes) = cid.bytes.get_mut(..len) {
            rng.fill(bytes);
            cid.len = len as u8;
        }
        cid
    }

    /// The bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len()).unwrap_or(&[])
    }

    /// How many bytes there are, 0 to 20.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are no bytes.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads one byte of length, then the bytes.
    #[inline]
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<ConnectionId, Malformed> {
        let len = usize::from(reader.u8()?);
        ConnectionId::new(reader.bytes(len)?).ok_or(Malformed("connection ID longer than 20 bytes"))
    }

    /// Writes one byte of length, then the bytes.
    #[inline]
    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(self.len);
        writer.bytes(self.as_slice());
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cid:{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two IDs of different lengths with equal leading bytes must differ, and equal bytes must be equal.
    #[test]
    fn compares_by_bytes_and_length() {
        assert_ne!(ConnectionId::new(&[1, 0]), ConnectionId::new(&[1]));
        assert_eq!(ConnectionId::new(&[]), Some(ConnectionId::EMPTY));
        assert_eq!(ConnectionId::new(&[7; 20]).unwrap().as_slice(), &[7; 20]);
        assert_eq!(ConnectionId::new(&[7; 21]), None);
        assert_eq!(ConnectionId::new(&[0, 0xab]).unwrap().to_string(), "00ab");
    }

    #[test]
    fn random_ids_have_the_length_asked_for() {
        let mut rng = Rng::from_u64(1);
        assert_eq!(ConnectionId::random(&mut rng, 8).len(), 8);
        assert_eq!(ConnectionId::random(&mut rng, 99).len(), 20);
        assert_ne!(ConnectionId::random(&mut rng, 8), ConnectionId::random(&mut rng, 8));
    }
}
