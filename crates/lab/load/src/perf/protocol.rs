//! What the protocol says on a stream. Source: draft-banks-quic-performance-00.
//!
//! A client opens any number of streams. The first eight bytes of each are a number in network byte order: how many bytes the
//! server shall send back. What follows, to the end of the stream, is upload, and is discarded. The answer comes once the
//! request has ended: on the same stream if it has two directions, else on a new one of the server's. What the bytes are
//! means nothing. The largest number, 2^64 - 1, asks for bytes without end. A stream that ends within the number is ignored, and
//! the other direction, if it has one, ends in good order.
//!
//! The draft leaves open whether the server waits for the end of a request; this one does, as MsQuic and LSQUIC do.

/// The application protocol's name for TLS.
pub const ALPN: &[u8] = b"perf";

/// The UDP port on which servers are expected here: that of MsQuic's secnetperf, which needs no privilege. The draft has 443.
pub const PORT: u16 = 4433;

/// Bytes of the number in front of every request.
pub const PREFIX: usize = 8;

/// The code with which either end closes in good order.
pub const NO_ERROR: u64 = 0;

/// The code with which a connection is closed whose client wants more answers, on streams that it does not let us
/// open, than are kept.
pub const NO_STREAMS: u64 = 2;

/// The number that asks for bytes without end.
pub const ENDLESS: u64 = u64::MAX;

/// The most that can be asked for: what a stream can carry. RFC 9000 §4.5.
pub const MAX_SIZE: u64 = (1 << 62) - 1;

/// The number in front of a request, as its bytes come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefix {
    bytes: [u8; PREFIX],
    len: usize,
}

impl Prefix {
    /// Takes the next bytes of the stream. Those after the prefix are ignored.
    #[inline]
    pub fn take(&mut self, bytes: &[u8]) {
        let room = self.bytes.get_mut(self.len..).unwrap_or_default();
        let len = room.len().min(bytes.len());
        if let (Some(room), Some(bytes)) = (room.get_mut(..len), bytes.get(..len)) {
            room.copy_from_slice(bytes);
        }
        self.len += len;
    }

    /// How many bytes are wanted back; `None` until all of the number has come. No more than a stream can carry.
    #[inline]
    pub fn size(&self) -> Option<u64> {
        (self.len == PREFIX).then(|| u64::from_be_bytes(self.bytes).min(MAX_SIZE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a request whose first packet is cut short would be read as another number.
    #[test]
    fn a_prefix_may_come_in_pieces() {
        let request = [&8_192_u64.to_be_bytes()[..], b"upload"].concat();
        for cut in 0..request.len() {
            let mut prefix = Prefix::default();
            prefix.take(&request[..cut]);
            assert_eq!(prefix.size(), (cut >= PREFIX).then_some(8_192), "{cut}");
            prefix.take(&request[cut..]);
            assert_eq!(prefix.size(), Some(8_192), "{cut}");
        }
        let mut most = Prefix::default();
        most.take(&[0xff; 8]);
        assert_eq!(most.size(), Some(MAX_SIZE));
    }
}
