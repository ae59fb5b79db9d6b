//! The message that leaves on one request stream: which frames may follow which, and how many bytes of content are owed.
//! RFC 9114 §4.1.
//!
//! Content of known length is one DATA frame: its header goes out with the head, and what follows is handed to the
//! transport as it is. Content of unknown length gets a frame for each piece that is written.

use bytes::{Bytes, BytesMut};
use wire::{Writer, varint};

/// How long the content will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// There is none: the message ends with its head. (The response to HEAD too, whatever its fields say.)
    Empty,
    /// So many bytes, which become a single DATA frame.
    Known(u64),
    /// Not known yet.
    Unknown,
}

/// Why a message, or a part of one, was not sent. Nothing was written then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The exchange is over, or never was: finished, reset, withdrawn by the peer.
    NoSuchExchange,
    /// Not in this order: content before the head, a second head, anything after the end.
    OutOfOrder,
    /// More content than was announced, or an end before all of it.
    WrongLength,
    /// The peer takes no field section of this size.
    HeadTooLarge,
}

impl core::fmt::Display for SendError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            SendError::NoSuchExchange => "the exchange is over",
            SendError::OutOfOrder => "parts of a message out of order",
            SendError::WrongLength => "content differs from its announced length",
            SendError::HeadTooLarge => "field section larger than the peer takes",
        })
    }
}

impl core::error::Error for SendError {}

/// Content of so many bytes comes after other content of which the client has said no more: it takes long in any case, and what is small
/// would wait for all of it (RFC 9218 §10 serves in the order of requests). As much as a writer may be ahead.
const BULK: u64 = 256 * 1024;

/// The sending half of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outgoing {
    /// No final head was sent.
    Head,
    /// The rest of the announced content is owed.
    Known { left: u64 },
    /// Content in frames of its own, of which so many bytes were sent.
    Unknown { sent: u64 },
    /// Finished, reset or stopped by the peer.
    Done,
}

impl Outgoing {
    pub(crate) fn is_done(self) -> bool {
        self == Outgoing::Done
    }

    /// Whether a final head may be sent now, and what follows it.
    pub(crate) fn after_head(self, body: BodyLength) -> Result<Outgoing, SendError> {
        match (self, body) {
            (Outgoing::Head, BodyLength::Empty) => Ok(Outgoing::Done),
            (Outgoing::Head, BodyLength::Known(left)) => Ok(Outgoing::Known { left }),
            (Outgoing::Head, BodyLength::Unknown) => Ok(Outgoing::Unknown { sent: 0 }),
            (Outgoing::Done, _) => Err(SendError::NoSuchExchange),
            _ => Err(SendError::OutOfOrder),
        }
    }

    /// Whether the content turns out to be bulk by this step, after a head or after `len` bytes of content. Others need not wait for it.
    #[inline]
    pub(crate) fn becomes_bulk(self, next: Outgoing) -> bool {
        match (self, next) {
            (Outgoing::Head, Outgoing::Known { left }) => left >= BULK,
            (Outgoing::Unknown { sent: before }, Outgoing::Unknown { sent }) => before < BULK && sent >= BULK,
            _ => false,
        }
    }

    /// Whether `len` more bytes of content may be sent, what follows them, and whether they need a frame header.
    pub(crate) fn after_body(self, len: u64) -> Result<(Outgoing, Framing), SendError> {
        match self {
            Outgoing::Known { left } => {
                let left = left.checked_sub(len).ok_or(SendError::WrongLength)?;
                Ok((Outgoing::Known { left }, Framing::Inside))
            }
            Outgoing::Unknown { sent } => {
                Ok((Outgoing::Unknown { sent: sent.saturating_add(len) }, Framing::Own))
            }
            Outgoing::Done => Err(SendError::NoSuchExchange),
            Outgoing::Head => Err(SendError::OutOfOrder),
        }
    }

    /// Whether trailers, or the end, may follow now.
    pub(crate) fn check_content_complete(self) -> Result<(), SendError> {
        match self {
            Outgoing::Known { left: 0 } | Outgoing::Unknown { .. } => Ok(()),
            Outgoing::Known { .. } => Err(SendError::WrongLength),
            Outgoing::Done => Err(SendError::NoSuchExchange),
            Outgoing::Head => Err(SendError::OutOfOrder),
        }
    }
}

/// Where a piece of content stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Inside the frame that began with the head.
    Inside,
    /// In a frame of its own.
    Own,
}

/// Memory for frame headers and heads on their way out: pieces of one buffer, which is used anew once its pieces are
/// acknowledged. One allocation serves many responses.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    buffer: BytesMut,
    section: Vec<u8>,
}

/// Pieces are cut from buffers of this size. Small, because one piece that waits keeps its whole buffer.
const ARENA_SIZE: usize = 4 * 1024;
/// An encoded section's memory beyond this is given back.
const KEPT_SECTION: usize = 16 * 1024;

impl Arena {
    /// Encodes a field section by `write`, puts it into a HEADERS frame and, if `data` bytes of content are known to
    /// follow, begins their DATA frame. Returns the bytes and what `write` returned: the section's decoded size.
    pub(crate) fn head(
        &mut self,
        data: Option<u64>,
        write: impl FnOnce(&mut Vec<u8>) -> u64,
    ) -> (Bytes, u64) {
        self.section.clear();
        let size = write(&mut self.section);
        let section = self.section.len();
        self.reserve(section + 2 * MAX_HEADER);
        self.header(crate::frame::ty::HEADERS, section as u64);
        self.buffer.extend_from_slice(&self.section);
        if let Some(length) = data.filter(|&length| length > 0) {
            self.header(crate::frame::ty::DATA, length);
        }
        self.section.shrink_to(KEPT_SECTION);
        (self.buffer.split().freeze(), size)
    }

    /// Adds `tail`, the content that [`Arena::head`] announced, so that head and content are one piece.
    pub(crate) fn whole(&mut self, content: &[u8], write: impl FnOnce(&mut Vec<u8>) -> u64) -> (Bytes, u64) {
        self.section.clear();
        let size = write(&mut self.section);
        self.reserve(self.section.len() + content.len() + 2 * MAX_HEADER);
        self.header(crate::frame::ty::HEADERS, self.section.len() as u64);
        self.buffer.extend_from_slice(&self.section);
        if !content.is_empty() {
            self.header(crate::frame::ty::DATA, content.len() as u64);
            self.buffer.extend_from_slice(content);
        }
        self.section.shrink_to(KEPT_SECTION);
        (self.buffer.split().freeze(), size)
    }

    /// The header of a DATA frame.
    pub(crate) fn data_header(&mut self, length: u64) -> Bytes {
        self.reserve(MAX_HEADER);
        self.header(crate::frame::ty::DATA, length);
        self.buffer.split().freeze()
    }

    fn reserve(&mut self, room: usize) {
        if self.buffer.capacity() - self.buffer.len() < room {
            self.buffer.reserve(room.max(ARENA_SIZE));
        }
    }

    fn header(&mut self, ty: u64, length: u64) {
        let mut bytes = [0; MAX_HEADER];
        let mut writer = Writer::new(&mut bytes);
        writer.varint(ty);
        writer.varint(length.min(varint::MAX));
        self.buffer.extend_from_slice(writer.written());
    }
}

/// The longest frame header.
const MAX_HEADER: usize = 2 * varint::MAX_SIZE;

#[cfg(test)]
mod tests {
    use super::*;

    /// State × verb: what may follow what.
    #[test]
    fn the_order_of_parts() {
        use Outgoing::{Done, Head, Known, Unknown};
        use SendError::{NoSuchExchange, OutOfOrder, WrongLength};
        let table = [
            (Head, Ok(Unknown { sent: 0 }), Err(OutOfOrder), Err(OutOfOrder)),
            (Known { left: 3 }, Err(OutOfOrder), Ok(Known { left: 1 }), Err(WrongLength)),
            (Known { left: 1 }, Err(OutOfOrder), Err(WrongLength), Err(WrongLength)),
            (Known { left: 0 }, Err(OutOfOrder), Err(WrongLength), Ok(())),
            (Unknown { sent: 5 }, Err(OutOfOrder), Ok(Unknown { sent: 7 }), Ok(())),
            (Done, Err(NoSuchExchange), Err(NoSuchExchange), Err(NoSuchExchange)),
        ];
        for (state, head, body, end) in table {
            assert_eq!(state.after_head(BodyLength::Unknown), head, "{state:?}");
            assert_eq!(state.after_body(2).map(|(next, _)| next), body, "{state:?}");
            assert_eq!(state.check_content_complete(), end, "{state:?}");
        }
    }

    /// Deleted, content could become bulk with each piece anew, or never.
    #[test]
    fn content_becomes_bulk_once() {
        use Outgoing::{Done, Head, Known, Unknown};
        assert!(Head.becomes_bulk(Known { left: BULK }) && !Head.becomes_bulk(Known { left: BULK - 1 }));
        assert!(!Known { left: 2 * BULK }.becomes_bulk(Known { left: BULK }) && !Head.becomes_bulk(Done));
        let steps = [0, BULK - 1, BULK, 2 * BULK].map(|sent| Unknown { sent });
        let bulk: Vec<bool> = steps.windows(2).map(|step| step[0].becomes_bulk(step[1])).collect();
        assert_eq!(bulk, [false, true, false]);
    }

    #[test]
    fn the_arena_gives_pieces_of_one_buffer() {
        let mut arena = Arena::default();
        let pieces: Vec<Bytes> = (0..20).map(|n| arena.data_header(n * 1_000)).collect();
        assert_eq!(pieces.first().map(|piece| &piece[..]), Some(&[0x00, 0x00][..]));
        let addresses: Vec<usize> = pieces.iter().map(|piece| piece.as_ptr() as usize).collect();
        assert!(addresses.windows(2).all(|pair| pair[1] > pair[0] && pair[1] - pair[0] <= MAX_HEADER));
    }
}
