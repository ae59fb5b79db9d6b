//! The bytes of a sending stream that may have to be sent again: the application's own buffers, in order, kept until
//! they are acknowledged.
//!
//! Nothing is copied when the application writes, except slices so short that sharing them would cost more. A cursor
//! points at the chunk with the next byte never sent, so that the common packet finds its data without a search; a
//! resend searches by offset. What is retained is counted in whole chunks, because a chunk's memory goes when its
//! last byte goes.

use bytes::Bytes;
use std::collections::VecDeque;

/// Slices up to this size lie in the queue itself: HTTP/3 frame headers do.
const SHORT: usize = 30;

#[derive(Debug)]
enum Data {
    Shared(Bytes),
    Short { len: u8, bytes: [u8; SHORT] },
}

#[derive(Debug)]
struct Chunk {
    start: u64,
    data: Data,
}

impl Chunk {
    #[inline]
    fn bytes(&self) -> &[u8] {
        match &self.data {
            Data::Shared(bytes) => bytes,
            Data::Short { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or(bytes),
        }
    }

    #[inline]
    fn end(&self) -> u64 {
        self.start + self.bytes().len() as u64
    }

    /// Keeps the first `kept` bytes.
    fn shorten(&mut self, kept: usize) {
        match &mut self.data {
            Data::Shared(bytes) => bytes.truncate(kept),
            Data::Short { len, .. } => *len = (*len).min(kept as u8),
        }
    }
}

/// Unacknowledged and unsent bytes.
#[derive(Debug, Default)]
pub(super) struct SendBuffer {
    /// Non-empty and contiguous up to `end`.
    chunks: VecDeque<Chunk>,
    /// The chunk that holds the next byte never sent, or one in front of it.
    cursor: usize,
    end: u64,
    retained: u64,
}

impl SendBuffer {
    /// Makes it, which is empty, the buffer of a stream whose bytes below this offset are all acknowledged.
    pub(super) fn begin_at(&mut self, offset: u64) {
        self.end = offset;
    }

    /// Where the written bytes end, as a stream offset.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes of the chunks held.
    #[inline]
    pub(super) fn retained(&self) -> u64 {
        self.retained
    }

    #[inline]
    pub(super) fn push(&mut self, bytes: Bytes) {
        let len = bytes.len() as u64;
        self.append(len, Data::Shared(bytes));
    }

    pub(super) fn push_slice(&mut self, slice: &[u8]) {
        let mut bytes = [0; SHORT];
        match bytes.get_mut(..slice.len()) {
            Some(place) => {
                place.copy_from_slice(slice);
                self.append(slice.len() as u64, Data::Short { len: slice.len() as u8, bytes });
            }
            None => self.push(Bytes::copy_from_slice(slice)),
        }
    }

    #[inline]
    fn append(&mut self, len: u64, data: Data) {
        if len > 0 {
            self.chunks.push_back(Chunk { start: self.end, data });
            self.end += len;
            self.retained += len;
        }
    }

    /// Fills `room` with the bytes from `offset` on, which must be the first never sent.
    #[inline]
    pub(super) fn copy_next(&mut self, offset: u64, room: &mut [u8]) {
        self.advance_to(offset);
        self.copy_from(self.cursor, offset, room);
    }

    /// Whether the `len` bytes from `offset` on, which must be the first never sent, are in one chunk. [`SendBuffer::slice`] lends them
    /// until the next bytes are asked for.
    #[inline]
    pub(super) fn is_next_contiguous(&mut self, offset: u64, len: usize) -> bool {
        self.advance_to(offset);
        self.slice(offset, len).is_some()
    }

    /// How many bytes from `offset` on, which must be the first never sent, are in one chunk, as above.
    #[inline]
    pub(super) fn next_contiguous(&mut self, offset: u64) -> u64 {
        self.advance_to(offset);
        self.chunks.get(self.cursor).map_or(0, |chunk| chunk.end().saturating_sub(offset))
    }

    /// The `len` bytes from `offset` on, if they are in the chunk at the cursor.
    #[inline]
    pub(super) fn slice(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let chunk = self.chunks.get(self.cursor)?;
        let start = usize::try_from(offset.checked_sub(chunk.start)?).ok()?;
        chunk.bytes().get(start..)?.get(..len)
    }

    /// Moves the cursor to the chunk with the byte at `offset`.
    #[inline]
    fn advance_to(&mut self, offset: u64) {
        while self.chunks.get(self.cursor).is_some_and(|chunk| chunk.end() <= offset) {
            self.cursor += 1;
        }
    }

    /// Fills `room` with the bytes from `offset` on, which must be held.
    pub(super) fn copy(&self, offset: u64, room: &mut [u8]) {
        let first = self.chunks.partition_point(|chunk| chunk.end() <= offset);
        self.copy_from(first, offset, room);
    }

    #[inline]
    fn copy_from(&self, first: usize, offset: u64, room: &mut [u8]) {
        let mut index = first;
        let mut at = offset;
        let mut rest = room;
        while !rest.is_empty() {
            let Some(chunk) = self.chunks.get(index) else {
                debug_assert!(false, "stream bytes at {at} are not held");
                return;
            };
            let bytes = chunk.bytes().get((at - chunk.start) as usize..).unwrap_or(&[]);
            let (now, later) = rest.split_at_mut(bytes.len().min(rest.len()));
            now.copy_from_slice(bytes.get(..now.len()).unwrap_or(&[]));
            at += now.len() as u64;
            rest = later;
            index += 1;
        }
    }

    /// Everything below `offset` is acknowledged. Returns how many retained bytes went.
    #[inline]
    pub(super) fn release_below(&mut self, offset: u64) -> u64 {
        let before = self.retained;
        while let Some(chunk) = self.chunks.front().filter(|chunk| chunk.end() <= offset) {
            self.retained -= chunk.bytes().len() as u64;
            self.chunks.pop_front();
            self.cursor = self.cursor.saturating_sub(1);
        }
        before - self.retained
    }

    /// Nothing from `end` on will be sent again. Returns how many retained bytes went.
    pub(super) fn truncate(&mut self, end: u64) -> u64 {
        let before = self.retained;
        while let Some(chunk) = self.chunks.back_mut().filter(|chunk| chunk.end() > end) {
            let len = chunk.bytes().len();
            let kept = usize::try_from(end.saturating_sub(chunk.start)).unwrap_or(len);
            self.retained -= (len - kept.min(len)) as u64;
            if kept > 0 {
                chunk.shorten(kept);
                break;
            }
            self.chunks.pop_back();
        }
        self.end = self.end.min(end);
        self.cursor = self.cursor.min(self.chunks.len());
        before - self.retained
    }

    /// All that is held is to be sent as if it never was.
    pub(super) fn rewind(&mut self) {
        self.cursor = 0;
    }

    /// Forgets everything. Returns how many retained bytes went.
    pub(super) fn clear(&mut self) -> u64 {
        self.chunks.clear();
        self.cursor = 0;
        core::mem::take(&mut self.retained)
    }

    /// Gives back what only bytes to come need.
    pub(super) fn release_memory(&mut self) {
        self.chunks.shrink_to_fit();
    }

    /// Makes it the buffer of a new stream; a little memory stays.
    pub(super) fn recycle(&mut self) {
        self.clear();
        self.end = 0;
        self.chunks.shrink_to(16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_back_what_was_written_across_chunks() {
        let mut buffer = SendBuffer::default();
        buffer.push_slice(b"head");
        buffer.push(Bytes::from_static(b"the body of it"));
        buffer.push(Bytes::new());
        buffer.push_slice(&[b'x'; 100]);
        assert_eq!((buffer.end(), buffer.retained()), (118, 118));
        let mut room = [0; 10];
        buffer.copy_next(0, &mut room);
        assert_eq!(&room, b"headthe bo");
        buffer.copy_next(10, &mut room);
        assert_eq!(&room, b"dy of itxx");
        buffer.copy(2, &mut room);
        assert_eq!(&room, b"adthe body");
        assert_eq!(buffer.release_below(17), 4, "a chunk goes when its last byte goes");
        assert_eq!(buffer.release_below(18), 14);
        buffer.copy_next(20, &mut room);
        assert_eq!(&room, b"xxxxxxxxxx");
        assert_eq!(buffer.clear(), 100);
        assert_eq!(buffer.retained(), 0);
    }

    #[test]
    fn a_cut_buffer_holds_what_is_before_the_cut() {
        let mut buffer = SendBuffer::default();
        buffer.push_slice(b"head");
        buffer.push(Bytes::from_static(b"the body of it"));
        buffer.push_slice(b"tail");
        assert_eq!((buffer.truncate(100), buffer.end()), (0, 22));
        assert_eq!((buffer.truncate(18), buffer.end()), (4, 18), "a whole chunk");
        assert_eq!((buffer.truncate(7), buffer.end()), (11, 7), "a part of one");
        let mut room = [0; 7];
        buffer.copy(0, &mut room);
        assert_eq!(&room, b"headthe");
        assert_eq!((buffer.truncate(2), buffer.truncate(0), buffer.retained()), (5, 2, 0));
    }
}
