//! Encrypted bytes on their way between a socket and rustls: [`Incoming`] and [`Outgoing`].
//!
//! Both are one stretch of memory that is used again and again. Each is bounded: what arrives by the longest flight of a
//! handshake, what leaves by [`Outgoing::is_full`], after which nothing more is encrypted.

use rustls::unbuffered::{EncodeError, EncryptError, InsufficientSizeError};
use std::io;

/// Bytes that are read at once: a few records, which stay in the processor's cache.
const INCOMING: usize = 64 << 10;
/// Room for the longest record, or what is left of one: RFC 8446 §5.2, and its header.
const RECORD: usize = 5 + (16 << 10) + 256;
/// The longest flight of a handshake that is taken, in bytes.
const LONGEST_FLIGHT: usize = 256 << 10;
/// Encrypted bytes that may wait for the socket.
const OUTGOING: usize = 64 << 10;

/// Encrypted bytes from the server: those from `from` to `to` are not decrypted yet.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    buffer: Vec<u8>,
    from: usize,
    to: usize,
}

impl Incoming {
    /// What is not decrypted yet.
    pub(super) fn filled(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.from..self.to).unwrap_or_default()
    }

    /// This many bytes were put into the room.
    pub(super) fn on_read(&mut self, bytes: usize) {
        self.to = (self.to + bytes).min(self.buffer.len());
    }

    /// What rustls has done with.
    pub(super) fn discard(&mut self, bytes: usize) {
        self.from = (self.from + bytes).min(self.to);
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
    }

    /// Room for more. What is left of a record moves to the front before.
    pub(super) fn room(&mut self) -> io::Result<&mut [u8]> {
        if self.buffer.is_empty() {
            self.buffer.resize(INCOMING, 0);
        }
        if self.buffer.len() - self.to < INCOMING / 2 {
            self.buffer.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        // Only flights of a handshake are so long that rustls leaves them where they are.
        if self.buffer.len() - self.to < RECORD {
            if self.buffer.len() >= LONGEST_FLIGHT {
                return Err(invalid("the server's handshake is too long"));
            }
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        Ok(self.buffer.get_mut(self.to..).unwrap_or_default())
    }
}

/// Encrypted bytes for the server: those from `sent` to `end` wait for the socket.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    buffer: Vec<u8>,
    sent: usize,
    end: usize,
}

/// Why nothing was added to what leaves.
pub(super) enum Refusal {
    /// This much room is needed.
    Room(usize),
    Other(io::Error),
}

/// What rustls wanted where it could not encode.
pub(super) fn want_of_encoding(error: EncodeError) -> Refusal {
    match error {
        EncodeError::InsufficientSize(InsufficientSizeError { required_size }) => {
            Refusal::Room(required_size)
        }
        other @ EncodeError::AlreadyEncoded => Refusal::Other(invalid(other)),
    }
}

/// What rustls wanted where it could not encrypt.
pub(super) fn want_of_encrypting(error: EncryptError) -> Refusal {
    match error {
        EncryptError::InsufficientSize(InsufficientSizeError { required_size }) => {
            Refusal::Room(required_size)
        }
        other @ EncryptError::EncryptExhausted => Refusal::Other(invalid(other)),
    }
}

impl Outgoing {
    /// The socket has taken this many bytes.
    pub(super) fn on_sent(&mut self, bytes: usize) {
        self.sent = (self.sent + bytes).min(self.end);
    }

    /// What waits for the socket; `None` if nothing does.
    pub(super) fn waiting(&self) -> Option<&[u8]> {
        self.buffer.get(self.sent..self.end).filter(|waiting| !waiting.is_empty())
    }

    /// Whether what waits must leave before more is added.
    pub(super) fn is_full(&self) -> bool {
        self.end - self.sent >= OUTGOING
    }

    /// Adds what `fill` writes into the room that it is given, which grows once if it says so.
    pub(super) fn add(
        &mut self,
        mut fill: impl FnMut(&mut [u8]) -> Result<usize, Refusal>,
    ) -> io::Result<()> {
        if self.sent == self.end || self.sent > OUTGOING {
            self.buffer.copy_within(self.sent..self.end, 0);
            (self.sent, self.end) = (0, self.end - self.sent);
        }
        loop {
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            match fill(room) {
                Ok(bytes) => {
                    self.end += bytes;
                    return Ok(());
                }
                Err(Refusal::Room(wanted)) if wanted > room.len() => {
                    // As a rule never again: what waits is bounded.
                    self.buffer.resize(self.end + wanted, 0);
                }
                Err(Refusal::Room(_)) => return Err(invalid("TLS wants no room in particular")),
                Err(Refusal::Other(error)) => return Err(error),
            }
        }
    }
}

/// Something that TLS does not allow, or allows and we do not.
pub(super) fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
