//! Packet memory that the kernel shares, and the frames it is cut into.
//!
//! Invariant: for each frame of the memory there is one [`Frame`] at most, and while the kernel may touch the bytes there is
//! none. `Umem::new` makes the frames, once; putting one into the fill or TX ring ends it, and the kernel's giving it back
//! through the RX or completion ring makes it again. A `Frame` is neither copied nor made elsewhere, hence whoever has one
//! may have its bytes as a plain slice.

use std::io;
use std::ops::Range;

use super::mapping::Mapping;

/// Bytes of a frame: the largest that the kernel takes (a page).
pub(crate) const FRAME_SIZE: usize = 4096;

/// One frame of the memory of one port.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame(u32);

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
        // The quotient of an address that was made from a u32 is one again.
        (Frame((address / FRAME_SIZE as u64) as u32), (address % FRAME_SIZE as u64) as usize)
    }
}

/// The memory of one port.
#[derive(Debug)]
pub(crate) struct Umem {
    mapping: Mapping,
    frames: u32,
}

impl Umem {
    /// Memory for `count` frames, and the frames.
    pub(crate) fn new(count: u32) -> io::Result<(Umem, Vec<Frame>)> {
        let mapping = Mapping::anonymous(count as usize * FRAME_SIZE)?;
        Ok((Umem { mapping, frames: count }, (0..count).map(Frame).collect()))
    }

    /// Where it begins and how long it is, for the kernel.
    pub(super) fn extent(&self) -> (u64, u64) {
        (self.mapping.start().as_ptr() as u64, self.mapping.len() as u64)
    }

    /// Bytes of a frame of this memory.
    #[inline]
    pub(crate) fn bytes<'a>(&'a mut self, frame: &'a mut Frame, range: Range<usize>) -> &'a mut [u8] {
        assert!(frame.0 < self.frames && range.start <= range.end && range.end <= FRAME_SIZE);
        let start = frame.0 as usize * FRAME_SIZE + range.start;
        #[expect(unsafe_code, reason = "the memory is shared with the kernel and known by its address")]
        // SAFETY: by the assert the bytes lie inside the mapping, which lives as long as `self` is borrowed. They are
        // initialised: anonymous memory begins as zeros. Nobody else touches them: the kernel does not while a `Frame`
        // exists, there is one `Frame` for them, which is borrowed mutably, and bytes of other frames do not overlap.
        // (A frame of another port's memory would break this; ports do not exchange frames, they have no means to.)
        unsafe {
            std::slice::from_raw_parts_mut(self.mapping.start().as_ptr().add(start), range.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_lie_apart_and_survive_the_kernels_way_of_naming_them() {
        let (mut umem, frames) = Umem::new(4).unwrap();
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
    #[should_panic(expected = "FRAME_SIZE")]
    fn bytes_beyond_a_frame_are_out_of_reach() {
        let (mut umem, mut frames) = Umem::new(2).unwrap();
        umem.bytes(&mut frames[0], 0..FRAME_SIZE + 1);
    }
}
