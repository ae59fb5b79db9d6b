//! Why a verb of a stream failed.

use crate::error::ConnectionError;
use crate::varint::VarInt;
use core::fmt;
use std::io;

/// Why bytes cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// The peer wants no more bytes of this stream. Carries its code. Source: RFC 9000 §19.5.
    Stopped(VarInt),
    /// The connection is over.
    ConnectionLost(ConnectionError),
    /// The stream was finished or reset by this end.
    ClosedStream,
}

/// Why bytes cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The peer gave up sending. Carries its code. Source: RFC 9000 §19.4.
    Reset(VarInt),
    /// The connection is over.
    ConnectionLost(ConnectionError),
    /// The stream was stopped by this end.
    ClosedStream,
}

/// Why a buffer cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadExactError {
    /// The stream ended first, after this many bytes.
    FinishedEarly(usize),
    /// The stream or the connection failed.
    ReadError(ReadError),
}

/// Why a stream cannot be read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadToEndError {
    /// The stream or the connection failed.
    Read(ReadError),
    /// The stream is longer than the limit.
    TooLong,
}

/// Why the fate of a stream is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoppedError {
    /// The connection is over.
    ConnectionLost(ConnectionError),
}

/// Why a stream cannot be reset at an offset. Source: draft-ietf-quic-reliable-stream-reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResetAtError {
    /// The peer does not understand RESET_STREAM_AT, or the handshake is not complete.
    Unsupported,
    /// Fewer bytes were written than are to arrive.
    NotWritten,
    /// The stream was reset before, or the peer has all of it.
    ClosedStream,
}

/// Why it is not known whether the peer reset a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResetError {
    /// The connection is over.
    ConnectionLost(ConnectionError),
}

/// The stream was finished, reset or stopped before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClosedStream;

const CLOSED: &str = "the stream is closed";

impl fmt::Display for WriteError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Stopped(code) => write!(out, "the peer stopped the stream: code {code}"),
            WriteError::ConnectionLost(error) => error.fmt(out),
            WriteError::ClosedStream => out.write_str(CLOSED),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Reset(code) => write!(out, "the peer reset the stream: code {code}"),
            ReadError::ConnectionLost(error) => error.fmt(out),
            ReadError::ClosedStream => out.write_str(CLOSED),
        }
    }
}

impl fmt::Display for ReadExactError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadExactError::FinishedEarly(bytes) => write!(out, "the stream ended after {bytes} bytes"),
            ReadExactError::ReadError(error) => error.fmt(out),
        }
    }
}

impl fmt::Display for ReadToEndError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadToEndError::Read(error) => error.fmt(out),
            ReadToEndError::TooLong => out.write_str("the stream is longer than the limit"),
        }
    }
}

impl fmt::Display for StoppedError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StoppedError::ConnectionLost(error) = self;
        error.fmt(out)
    }
}

impl fmt::Display for ResetAtError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            ResetAtError::Unsupported => "the peer does not understand RESET_STREAM_AT",
            ResetAtError::NotWritten => "fewer bytes were written than are to arrive",
            ResetAtError::ClosedStream => CLOSED,
        })
    }
}

impl fmt::Display for ResetError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ResetError::ConnectionLost(error) = self;
        error.fmt(out)
    }
}

impl fmt::Display for ClosedStream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(CLOSED)
    }
}

impl core::error::Error for WriteError {}
impl core::error::Error for ReadError {}
impl core::error::Error for ReadExactError {}
impl core::error::Error for ReadToEndError {}
impl core::error::Error for StoppedError {}
impl core::error::Error for ResetAtError {}
impl core::error::Error for ResetError {}
impl core::error::Error for ClosedStream {}

impl From<ClosedStream> for WriteError {
    fn from(_: ClosedStream) -> WriteError {
        WriteError::ClosedStream
    }
}

impl From<ReadError> for ReadExactError {
    fn from(error: ReadError) -> ReadExactError {
        ReadExactError::ReadError(error)
    }
}

impl From<ReadError> for ReadToEndError {
    fn from(error: ReadError) -> ReadToEndError {
        ReadToEndError::Read(error)
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> io::Error {
        match error {
            WriteError::Stopped(_) => io::Error::new(io::ErrorKind::ConnectionReset, error),
            WriteError::ConnectionLost(error) => error.into(),
            WriteError::ClosedStream => io::Error::new(io::ErrorKind::NotConnected, error),
        }
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> io::Error {
        match error {
            ReadError::Reset(_) => io::Error::new(io::ErrorKind::ConnectionReset, error),
            ReadError::ConnectionLost(error) => error.into(),
            ReadError::ClosedStream => io::Error::new(io::ErrorKind::NotConnected, error),
        }
    }
}

impl From<ClosedStream> for io::Error {
    fn from(error: ClosedStream) -> io::Error {
        io::Error::new(io::ErrorKind::NotConnected, error)
    }
}
