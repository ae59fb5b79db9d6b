//! What can be wrong with QPACK, and the codes that tell the peer. RFC 9204 §6.

/// A QPACK error code, as a CONNECTION_CLOSE of the application carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub u64);

impl Code {
    /// An encoded field section could not be interpreted.
    pub const DECOMPRESSION_FAILED: Code = Code(0x0200);
    /// An instruction on the peer's encoder stream could not be interpreted.
    pub const ENCODER_STREAM_ERROR: Code = Code(0x0201);
    /// An instruction on the peer's decoder stream could not be interpreted.
    pub const DECODER_STREAM_ERROR: Code = Code(0x0202);
}

/// The peer broke the protocol: the connection closes with `code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// What CONNECTION_CLOSE says.
    pub code: Code,
    /// For people: what was wrong.
    pub reason: &'static str,
}

impl core::fmt::Display for Error {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "{} ({:#x})", self.reason, self.code.0)
    }
}

impl core::error::Error for Error {}

/// Why a field section was not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// It breaks the format: a connection error.
    Failed(Error),
    /// It is larger than we take: only its message fails. Without a dynamic table a section that is given up half-way
    /// leaves no state behind.
    TooLarge,
}

impl DecodeError {
    pub(crate) const fn failed(reason: &'static str) -> DecodeError {
        DecodeError::Failed(Error { code: Code::DECOMPRESSION_FAILED, reason })
    }
}

impl core::fmt::Display for DecodeError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            DecodeError::Failed(error) => core::fmt::Display::fmt(error, out),
            DecodeError::TooLarge => out.write_str("field section larger than the limit"),
        }
    }
}

impl core::error::Error for DecodeError {}
