//! What a client says first on each of its streams.

/// Three big-endian numbers of eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes that the client sends after the header.
    pub up: u64,
    /// Bytes that it wants back.
    pub down: u64,
    /// Where in the pattern both begin.
    pub offset: u64,
}

/// Length of a header in bytes.
pub(crate) const HEADER_LEN: usize = 24;

impl Header {
    /// As it goes on the stream.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [self.up, self.down, self.offset].into_iter().flat_map(u64::to_be_bytes).collect()
    }

    /// The header, once all of it is there.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Header> {
        let number = |index: usize| {
            let bytes = bytes.get(index * 8..index * 8 + 8)?;
            bytes.try_into().ok().map(u64::from_be_bytes)
        };
        Some(Header { up: number(0)?, down: number(1)?, offset: number(2)? })
    }
}
