//! Packet memory that the kernel shares, and the frames it is cut into.
//!
//! Invariant: for each frame of the memory there is one [`Frame`] at most, and while the kernel may touch the bytes there is
//! none. `Umem::new` makes the frames, once; putting one into the fill or TX ring ends it, and the kernel's giving it back
//! through the RX or completion ring makes it again. A `Frame` is neither copied nor made elsewhere, hence the owner of one
//! may have its bytes as a plain slice.

use std::io;
use std::ops::Range;

use super::mapping::Mapping;

/// Bytes of a frame: the largest that the kernel takes (a page). Frames to send from may be several of these in a row.
pub(crate) const FRAME_SIZE: usize = 4096;

/// Bytes in front of a packet that tell the kernel what to do with it: `struct xsk_tx_metadata`.
pub(crate) const METADATA_SIZE: usize = 24;

/// Memory that is not registered as aligned: an address of what was received has the offset up here.
const OFFSET_SHIFT: u32 = 48;

/// One frame of the memory of one port: the number of its page, or of the first of its pages.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame(u32);

/// How memory is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Frames to receive into, of a page each; they come first.
    pub(crate) rx_frames: u32,
    /// Frames to send from.
    pub(crate) tx_frames: u32,
    /// Pages of each of those.
    pub(crate) tx_pages: u32,
}

impl Shape {
    /// All pages.
    pub(crate) fn pages(&self) -> u32 {
        self.rx_frames + self.tx_frames * self.tx_pages
    }

    /// The frame to send from that holds `address`, and which of them it is. Only for addresses that the kernel gave back.
    pub(super) fn sender_of(&self, address: u64) -> (usize, Frame) {
        let page = (address / FRAME_SIZE as u64) as u32;
        let index = page.saturating_sub(self.rx_frames) / self.tx_pages;
        (index as usize, Frame(self.rx_frames + index * self.tx_pages))
    }
}

impl Frame {
    /// The kernel's name of byte `offset` of the frame; the frame ends here, because the kernel gets it.
    #[inline]
    pub(super) fn into_address(self, offset: usize) -> u64 {
        u64::from(self.0) * FRAME_SIZE as u64 + offset as u64
    }

    /// The frame that holds the byte which the kernel calls `address`, and the place of that byte in it. Only for
    /// addresses that the kernel gave back.
    #[inline]
    pub(super) fn from_address(address: u64) -> (Frame, usize) {
        // Aligned memory has nothing in the upper bits.
        let address = (address & ((1 << OFFSET_SHIFT) - 1)) + (address >> OFFSET_SHIFT);
        // The quotient of an address that was made from a u32 is one again.
        (Frame((address / FRAME_SIZE as u64) as u32), (address % FRAME_SIZE as u64) as usize)
    }
}

/// The memory of one port.
#[derive(Debug)]
pub(crate) struct Umem {
    mapping: Mapping,
    shape: Shape,
}

impl Umem {
    /// Memory of this shape, and its frames: those to receive into first.
    pub(crate) fn new(shape: Shape) -> io::Result<(Umem, Vec<Frame>)> {
        let mapping = Mapping::anonymous(shape.pages() as usize * FRAME_SIZE)?;
        let senders = (0..shape.tx_frames).map(|index| shape.rx_frames + index * shape.tx_pages);
        Ok((Umem { mapping, shape }, (0..shape.rx_frames).chain(senders).map(Frame).collect()))
    }

    /// Where it begins and how long it is, for the kernel.
    pub(super) fn extent(&self) -> (u64, u64) {
        (self.mapping.start().as_ptr() as u64, self.mapping.len() as u64)
    }

    /// Bytes of a frame of this memory.
    #[inline]
    pub(crate) fn bytes<'a>(&'a mut self, frame: &'a mut Frame, range: Range<usize>) -> &'a mut [u8] {
        let pages = if frame.0 < self.shape.rx_frames { 1 } else { self.shape.tx_pages };
        let first = frame.0 as usize * FRAME_SIZE;
        let is_inside = range.start <= range.end && range.end <= pages as usize * FRAME_SIZE;
        assert!(is_inside && first + range.end <= self.mapping.len(), "bytes beyond the frame");
        let start = first + range.start;
        #[expect(unsafe_code, reason = "the memory is shared with the kernel and known by its address")]
        // SAFETY: by the assert the bytes lie inside the mapping, which lives as long as `self` is borrowed. They are
        // initialised: anonymous memory begins as zeros. No other code touches them: the kernel does not while a `Frame`
        // exists, there is one `Frame` for them, which is borrowed mutably, and bytes of other frames do not overlap: of several
        // pages a frame is only made with the number of the first (`new`, `Shape::sender_of`).
        // (A frame of another port's memory would break this; ports do not exchange frames, they have no means to.)
        unsafe {
            std::slice::from_raw_parts_mut(self.mapping.start().as_ptr().add(start), range.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Shape = Shape { rx_frames: 2, tx_frames: 2, tx_pages: 1 };

    #[test]
    fn frames_of_several_pages_lie_apart_from_the_others_and_are_known_by_any_of_their_pages() {
        let shape = Shape { rx_frames: 3, tx_frames: 4, tx_pages: 3 };
        let (mut umem, frames) = Umem::new(shape).unwrap();
        assert_eq!((frames.len(), umem.mapping.len()), (7, 15 * FRAME_SIZE));
        let mut back = Vec::new();
        for (value, mut frame) in frames.into_iter().enumerate() {
            let size = if value < 3 { 1 } else { 3 } * FRAME_SIZE;
            umem.bytes(&mut frame, 0..size).fill(value as u8 + 1);
            let first = frame.into_address(0);
            back.push(if value < 3 {
                // What the kernel says of received packets in memory that is not aligned.
                let (frame, offset) = Frame::from_address(first + (256 << OFFSET_SHIFT));
                assert_eq!(offset, 256);
                frame
            } else {
                let known = [1, 5000, 12_287].map(|offset| shape.sender_of(first + offset).0);
                assert_eq!(known, [value - 3; 3]);
                shape.sender_of(first).1
            });
        }
        for (value, frame) in back.iter_mut().enumerate() {
            let size = if value < 3 { 1 } else { 3 } * FRAME_SIZE;
            assert!(umem.bytes(frame, 0..size).iter().all(|&byte| byte == value as u8 + 1));
        }
    }

    #[test]
    fn frames_lie_apart_and_survive_the_kernels_way_of_naming_them() {
        let (mut umem, frames) = Umem::new(SMALL).unwrap();
        assert_eq!(frames.len(), 4);
        let mut back = Vec::new();
        for (value, mut frame) in frames.into_iter().enumerate() {
            umem.bytes(&mut frame, 0..FRAME_SIZE).fill(value as u8 + 1);
            let address = frame.into_address(100 * value);
            let (frame, offset) = Frame::from_address(address);
            assert_eq!(offset, 100 * value);
            back.push(frame);
        }
        for (value, frame) in back.iter_mut().enumerate() {
            assert!(umem.bytes(frame, 0..FRAME_SIZE).iter().all(|&byte| byte == value as u8 + 1));
        }
    }

    #[test]
    #[should_panic(expected = "beyond the frame")]
    fn bytes_beyond_a_frame_are_out_of_reach() {
        let (mut umem, mut frames) = Umem::new(SMALL).unwrap();
        umem.bytes(&mut frames[0], 0..FRAME_SIZE + 1);
    }
}
