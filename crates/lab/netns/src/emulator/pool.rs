//! Memory of frames: buffers of three sizes that are used again, shared by the pieces of a frame, bounded in sum.
//!
//! The kernel writes into the largest size. A short frame is copied into a smaller buffer, because a 100-byte acknowledgement
//! that waits 100 ms must not keep 64 KB; a long one keeps the buffer it arrived in, and another takes its place.
//! Buffers are counted references that return when the last piece is sent, so a run needs no allocation once it is warm.

use std::rc::Rc;

/// A frame's bytes; the frame may be shorter than its buffer.
pub(crate) type Buffer = Rc<Vec<u8>>;

/// HostNamespace for the longest frame: 64 KB of IP, Ethernet, VLAN tags and the virtio header.
pub(crate) const LARGEST: usize = 65_536 + 64;
const SIZES: [usize; 3] = [2_048, 10_240, LARGEST];

/// Buffers that wait for use, by size, and the sum of those in use.
#[derive(Debug)]
pub(crate) struct Pool {
    free: [Vec<Buffer>; 3],
    used_bytes: usize,
    bound_bytes: usize,
}

impl Pool {
    /// A pool that hands out at most `bound_bytes` at a time.
    pub(crate) fn new(bound_bytes: usize) -> Pool {
        Pool { free: [Vec::new(), Vec::new(), Vec::new()], used_bytes: 0, bound_bytes }
    }

    /// A buffer of the largest size to receive into, outside of the bound.
    pub(crate) fn landing(&mut self) -> Buffer {
        self.free[2].pop().unwrap_or_else(|| Rc::new(vec![0; LARGEST]))
    }

    /// Keeps the first `length` bytes of `landing`, which is usable again afterwards; none if the bound is reached.
    pub(crate) fn keep(&mut self, landing: &mut Buffer, length: usize) -> Option<Buffer> {
        let class = SIZES.iter().position(|size| length <= *size)?;
        if self.used_bytes + SIZES[class] > self.bound_bytes {
            return None;
        }
        self.used_bytes += SIZES[class];
        if SIZES[class] == LARGEST {
            let next = self.landing();
            return Some(std::mem::replace(landing, next));
        }
        let mut buffer = self.free[class].pop().unwrap_or_else(|| Rc::new(vec![0; SIZES[class]]));
        // Buffers in `free` have no other owner, so this always succeeds.
        Rc::get_mut(&mut buffer)?[..length].copy_from_slice(&landing[..length]);
        Some(buffer)
    }

    /// One owner less; the last one's buffer is free.
    pub(crate) fn release(&mut self, buffer: Buffer) {
        if Rc::strong_count(&buffer) > 1 {
            return;
        }
        if let Some(class) = SIZES.iter().position(|size| buffer.len() == *size) {
            self.used_bytes -= SIZES[class];
            self.free[class].push(buffer);
        }
    }

    /// Bytes of buffers in use.
    #[cfg(test)]
    pub(crate) fn used_bytes(&self) -> usize {
        self.used_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Would break: the emulator's memory would grow with each frame, or without end when frames wait long.
    #[test]
    fn buffers_come_back_and_are_bounded() {
        let mut pool = Pool::new(3 * LARGEST);
        let mut landing = pool.landing();
        let kept: Vec<Buffer> = std::iter::from_fn(|| pool.keep(&mut landing, 60_000)).take(9).collect();
        assert_eq!(kept.len(), 3);
        assert!(pool.keep(&mut landing, 60).is_none());
        let twin = kept[0].clone();
        kept.into_iter().for_each(|buffer| pool.release(buffer));
        assert_eq!(pool.used_bytes(), LARGEST);
        pool.release(twin);
        assert_eq!(pool.used_bytes(), 0);
        assert_eq!(pool.free[2].len(), 3);
    }

    /// Would break: an acknowledgement would hold the memory of a super-packet.
    #[test]
    fn short_frames_are_copied_into_short_buffers() {
        let mut pool = Pool::new(1 << 20);
        let mut landing = pool.landing();
        Rc::get_mut(&mut landing).unwrap()[..3].copy_from_slice(b"abc");
        let kept = pool.keep(&mut landing, 3).unwrap();
        assert_eq!((&kept[..3], kept.len(), landing.len()), (&b"abc"[..], 2_048, LARGEST));
    }
}
