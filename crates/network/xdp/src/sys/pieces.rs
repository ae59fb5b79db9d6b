//! Packets longer than the kernel takes in one piece, on their way out: one stretch of memory, several descriptors.
//!
//! A frame to send from then spans pages that lie in a row, so that the code above writes and encrypts a packet of any size
//! where it leaves from. All pieces but the last carry `XDP_PKT_CONTD`. The kernel gives each piece back by itself; the frame is
//! back when all of its pieces are.
//!
//! Pieces are cut at pages where there is no metadata. Where there is, Linux (6.18) wants room for it in front of every piece, in
//! the same chunk: no piece could begin where the one before ended. So the memory is then registered with chunks that need not
//! be aligned, and a piece is at most a page less the metadata. Chunks longer than a page are refused.
//! Rejected: building long packets elsewhere and copying them; giving the kernel's checksums up for aligned chunks; unaligned
//! chunks always (each piece would lie in two pages, and where the kernel makes packets of our pages, for virtio_net, 64 KB of
//! them are too many).
//!
//! Invariant: `out[i]` is how many pieces of frame i the kernel has; 0 exactly while there is a [`Frame`] of that number.

use std::ops::Range;

use super::ring::{Descriptor, Producer};
use super::umem::{FRAME_SIZE, Frame, METADATA_SIZE, Shape};

/// The longest piece where there is metadata.
const PIECE: usize = FRAME_SIZE - METADATA_SIZE;

/// Where packets are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Where a page ends.
    AtPages,
    /// After this many bytes that a chunk holds them and metadata.
    Evenly,
}

/// The pieces of one socket's packets.
#[derive(Debug)]
pub(super) struct Pieces {
    shape: Shape,
    cut: Cut,
    out: Vec<u8>,
    /// Pieces that the kernel has, and frames that they belong to.
    all_out: u32,
    frames_out: u32,
}

impl Pieces {
    /// Most pieces of one frame.
    pub(super) const fn most(pages: u32) -> u32 {
        // Even pieces are a little less than a page.
        pages + 1
    }

    /// For the frames to send from in memory of this shape, of which the kernel has none.
    pub(super) fn new(shape: Shape, cut: Cut) -> Pieces {
        Pieces { shape, cut, out: vec![0; shape.tx_frames as usize], all_out: 0, frames_out: 0 }
    }

    /// Puts `range` of `frame` into the TX ring; `options` are those of the first piece.
    pub(super) fn send(
        &mut self,
        tx: &mut Producer<Descriptor>,
        frame: Frame,
        range: Range<usize>,
        options: u32,
    ) {
        let (mut address, mut left) = (frame.into_address(range.start), range.len());
        let (index, _) = self.shape.sender_of(address);
        tx.room(Pieces::most(self.shape.tx_pages));
        let (mut options, mut count) = (options, 0);
        while left > 0 {
            let len = match self.cut {
                Cut::AtPages => left.min(FRAME_SIZE - address as usize % FRAME_SIZE),
                Cut::Evenly => left.min(PIECE),
            };
            left -= len;
            let more = if left > 0 { libc::XDP_PKT_CONTD } else { 0 };
            tx.push(Descriptor { address, len: len as u32, options: options | more });
            (options, address, count) = (0, address + len as u64, count + 1);
        }
        if let Some(out) = self.out.get_mut(index) {
            *out = count;
            self.all_out += u32::from(count);
            self.frames_out += 1;
        }
    }

    /// The kernel gave the piece at `address` back. Returns the frame if that was the last that it had of it.
    pub(super) fn completed(&mut self, address: u64) -> Option<Frame> {
        let (index, frame) = self.shape.sender_of(address);
        let out = self.out.get_mut(index)?;
        *out = out.checked_sub(1)?;
        self.all_out -= 1;
        if *out > 0 {
            return None;
        }
        self.frames_out -= 1;
        Some(frame)
    }

    /// Frames that `pieces` in the completion ring are: known only when those are all that are out.
    pub(super) fn frames_of(&self, pieces: u32) -> u32 {
        if pieces == self.all_out { self.frames_out } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { rx_frames: 2, tx_frames: 3, tx_pages: 3 };

    #[test]
    fn a_frame_is_back_when_all_of_its_pieces_are_in_whatever_order() {
        // Deleted, a frame could be written to while the kernel still reads its end.
        let base = |index: u64| (2 + 3 * index) * FRAME_SIZE as u64 + 86;
        let mut pieces = Pieces::new(SHAPE, Cut::Evenly);
        (pieces.out, pieces.all_out, pieces.frames_out) = (vec![3, 0, 2], 5, 2);
        let step = PIECE as u64;
        assert_eq!(pieces.completed(base(2) + step), None);
        assert_eq!(pieces.completed(base(0)), None);
        assert_eq!((pieces.frames_of(0), pieces.frames_of(3)), (0, 2), "known when all are there");
        assert_eq!(pieces.completed(base(0) + 2 * step), None);
        assert_eq!(pieces.completed(base(2)).map(|frame| frame.into_address(86)), Some(base(2)));
        assert_eq!(pieces.completed(base(0) + step).map(|frame| frame.into_address(86)), Some(base(0)));
        assert_eq!((pieces.all_out, pieces.frames_out), (0, 0));
        // What was never sent, and what lies beyond.
        assert_eq!((pieces.completed(base(1)), pieces.completed(base(9))), (None, None));
    }
}
