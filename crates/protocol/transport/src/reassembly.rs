//! Bytes that arrived before those in front of them: a bounded buffer for receive streams and for CRYPTO.
//!
//! Bytes that are next in order never come here; they are lent to the reader straight from the packet. What does come
//! is copied, so that a small slice never keeps a large packet buffer alive, into pieces in a tree ordered by offset.
//! A frame that continues a piece is appended to it up to [`PIECE_SIZE`], so that the thousand packets behind one
//! lost packet become a few pieces. Bytes that are there already are kept and never stored twice.
//!
//! Bounds: memory follows the bytes that arrived, never an offset. The bytes themselves are bounded by the caller's
//! flow-control window; the pieces by [`MAX_PIECES`] plus one for each [`BYTES_PER_PIECE`] bytes held. Heavy but
//! honest loss (whole packets missing) stays below that whatever the window; single bytes with gaps between them do
//! not.
//!
//! Rejected: a ring indexed by offset, which allocates by offset; reference-counted slices of the packet, which pin
//! it; a sorted `Vec`, which makes a peer's chosen order cost a shift of all pieces for each frame.

use std::collections::BTreeMap;

/// Pieces that are always allowed in one buffer.
pub(crate) const MAX_PIECES: usize = 1_024;

/// For each such amount of bytes held there may be one piece more.
pub(crate) const BYTES_PER_PIECE: usize = 512;

/// Pieces are not appended to beyond this size.
const PIECE_SIZE: usize = 64 * 1024;

/// A piece of at most this size that touches the one in front of it is merged into it, so that a stream of tiny
/// frames whose gaps are filled later does not remain a stream of tiny pieces.
const MERGED_SIZE: usize = 512;

/// The peer sent so small and scattered pieces that holding them would cost much more than their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyPieces;

/// What a buffer holds, or several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BufferedBytes {
    pub(crate) pieces: usize,
    pub(crate) bytes: usize,
}

impl BufferedBytes {
    /// Whether the pieces are too many for their bytes, when `allowed` are always permitted.
    #[inline]
    pub(crate) fn is_excessive(self, allowed: usize) -> bool {
        self.pieces > allowed + self.bytes / BYTES_PER_PIECE
    }
}

/// Out-of-order bytes.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    /// Non-empty, disjoint pieces by the offset of their first byte.
    pieces: BTreeMap<u64, Vec<u8>>,
    bytes: usize,
}

impl Reassembly {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// What the buffer holds.
    #[inline]
    pub(crate) fn held(&self) -> BufferedBytes {
        BufferedBytes { pieces: self.pieces.len(), bytes: self.bytes }
    }

    /// Keeps a copy of what is new in `data`, whose first byte is at `offset`. `offset + data.len()` must not
    /// overflow, which the wire format guarantees.
    ///
    /// # Errors
    /// The pieces are too many; the connection should close.
    pub(crate) fn insert(&mut self, offset: u64, data: &[u8]) -> Result<(), TooManyPieces> {
        let mut at = offset;
        let mut rest = data;
        while !rest.is_empty() {
            let previous = self.pieces.range_mut(..=at).next_back();
            let previous_end = previous.as_ref().map_or(0, |(start, piece)| *start + piece.len() as u64);
            if previous_end > at {
                let known = usize::try_from(previous_end - at).unwrap_or(usize::MAX).min(rest.len());
                rest = rest.get(known..).unwrap_or(&[]);
                at += known as u64;
                continue;
            }
            let appendable = previous.filter(|(_, piece)| previous_end == at && piece.len() < PIECE_SIZE);
            let start = appendable.as_ref().map_or(at, |(start, _)| **start);
            let room = appendable.map_or(usize::MAX, |(_, piece)| PIECE_SIZE - piece.len());
            let next = self.pieces.range(at..).next().map_or(u64::MAX, |(next, _)| *next);
            let gap = usize::try_from(next - at).unwrap_or(usize::MAX);
            let (fresh, after) = rest.split_at(rest.len().min(room).min(gap));
            self.pieces.entry(start).or_default().extend_from_slice(fresh);
            self.bytes += fresh.len();
            at += fresh.len() as u64;
            rest = after;
            if at == next {
                self.merge_small(start, next);
            }
        }
        if self.held().is_excessive(MAX_PIECES) { Err(TooManyPieces) } else { Ok(()) }
    }

    /// Moves the piece at `next` behind the one at `start`, which it touches, if that is cheap.
    fn merge_small(&mut self, start: u64, next: u64) {
        let small = self.pieces.get(&next).is_some_and(|piece| piece.len() <= MERGED_SIZE);
        let roomy = self.pieces.get(&start).is_some_and(|piece| piece.len() + MERGED_SIZE <= PIECE_SIZE);
        if !small || !roomy {
            return;
        }
        if let Some(moved) = self.pieces.remove(&next)
            && let Some(piece) = self.pieces.get_mut(&start)
        {
            piece.extend_from_slice(&moved);
        }
    }

    /// The bytes that are held from `offset` on, as far as they lie in one piece; `None` if that byte has not
    /// arrived.
    #[inline]
    pub(crate) fn next_piece(&self, offset: u64) -> Option<&[u8]> {
        let (start, piece) = self.pieces.range(..=offset).next_back()?;
        let skip = usize::try_from(offset - start).ok()?;
        piece.get(skip..).filter(|bytes| !bytes.is_empty())
    }

    /// Forgets the pieces that lie below `offset` whole.
    pub(crate) fn discard_below(&mut self, offset: u64) {
        while let Some(first) = self.pieces.first_entry() {
            if first.key() + first.get().len() as u64 > offset {
                break;
            }
            self.bytes -= first.remove().len();
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        // Nearly always there is none, and the map is slow to find that out.
        if !self.pieces.is_empty() {
            self.pieces.clear();
        }
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests;
