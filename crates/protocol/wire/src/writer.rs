//! A cursor that fills a lent buffer.
//!
//! The caller checks the room beforehand ([`Writer::fits`], the frames' `size`). A write that does not fit is
//! therefore a broken invariant of ours, not an error to pass on: it asserts in debug builds, and otherwise writes nothing
//! and sets a flag that [`Writer::overflowed`] tells, so that the packet can be given up as a whole. Rejected: a `Result`
//! from every write, which is noise at each call for a case that cannot be handled there.

use crate::varint;

/// Writes values one after the other into a slice.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    position: usize,
    overflowed: bool,
}

impl<'a> Writer<'a> {
    /// Starts at the front of `buffer`.
    #[inline]
    pub const fn new(buffer: &'a mut [u8]) -> Writer<'a> {
        Writer { buffer, position: 0, overflowed: false }
    }

    /// How many bytes have been written.
    #[inline]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// How many bytes can still be written.
    #[inline]
    pub const fn remaining(&self) -> usize {
        self.buffer.len().saturating_sub(self.position)
    }

    /// Whether `count` more bytes can be written.
    #[inline]
    pub const fn fits(&self, count: usize) -> bool {
        count <= self.remaining()
    }

    /// Whether a write did not fit and was left out. What was written must then not be sent.
    #[inline]
    pub const fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// What has been written.
    #[inline]
    pub fn written(&self) -> &[u8] {
        self.buffer.get(..self.position).unwrap_or(&[])
    }

    /// What has been written, to change it.
    #[inline]
    pub fn written_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(..self.position).unwrap_or(&mut [])
    }

    /// Goes back to an earlier position and forgets what was written behind it. Does nothing for a later one.
    #[inline]
    pub fn rewind(&mut self, position: usize) {
        self.position = self.position.min(position);
    }

    /// The next `count` bytes of the buffer, to be filled and then taken in by [`Writer::advance`]. `None` if there are
    /// fewer.
    #[inline]
    pub fn room(&mut self, count: usize) -> Option<&mut [u8]> {
        self.buffer.get_mut(self.position..)?.get_mut(..count)
    }

    /// Takes in `count` bytes that were filled through [`Writer::room`].
    #[inline]
    pub fn advance(&mut self, count: usize) {
        if self.fits(count) {
            self.position = self.position.saturating_add(count);
        } else {
            self.on_overflow();
        }
    }

    /// Writes bytes as they are.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        match self.room(bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.position = self.position.saturating_add(bytes.len());
            }
            None => self.on_overflow(),
        }
    }

    #[inline]
    fn array<const N: usize>(&mut self, bytes: [u8; N]) {
        match self.buffer.get_mut(self.position..).and_then(|room| room.first_chunk_mut::<N>()) {
            Some(room) => {
                *room = bytes;
                self.position = self.position.saturating_add(N);
            }
            None => self.on_overflow(),
        }
    }

    /// Writes one byte.
    #[inline]
    pub fn u8(&mut self, value: u8) {
        self.array([value]);
    }

    /// Writes 16 bits, big-endian.
    #[inline]
    pub fn u16(&mut self, value: u16) {
        self.array(value.to_be_bytes());
    }

    /// Writes 32 bits, big-endian.
    #[inline]
    pub fn u32(&mut self, value: u32) {
        self.array(value.to_be_bytes());
    }

    /// Writes 64 bits, big-endian.
    #[inline]
    pub fn u64(&mut self, value: u64) {
        self.array(value.to_be_bytes());
    }

    /// Writes a variable-length integer in its shortest encoding. A value above [`varint::MAX`] counts as not fitting.
    #[inline]
    pub fn varint(&mut self, value: u64) {
        self.varint_with_size(value, varint::size(value));
    }

    /// Writes a variable-length integer in 1, 2, 4 or 8 bytes. A value that needs more, or another size, counts as not
    /// fitting.
    #[inline]
    pub fn varint_with_size(&mut self, value: u64, size: usize) {
        match size {
            1 if value < 1 << 6 => self.u8(value as u8),
            2 if value < 1 << 14 => self.u16(value as u16 | 0x4000),
            4 if value < 1 << 30 => self.u32(value as u32 | 0x8000_0000),
            8 if value <= varint::MAX => self.u64(value | 0xc000_0000_0000_0000),
            _ => self.on_overflow(),
        }
    }

    /// Writes the length of `bytes` as a variable-length integer, then the bytes.
    #[inline]
    pub fn varint_bytes(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.bytes(bytes);
    }

    /// Writes `count` bytes of value 0.
    #[inline]
    pub fn zeros(&mut self, count: usize) {
        match self.room(count) {
            Some(room) => {
                room.fill(0);
                self.position = self.position.saturating_add(count);
            }
            None => self.on_overflow(),
        }
    }

    /// Replaces the byte at `position`, which must have been written.
    #[inline]
    pub fn patch_u8(&mut self, position: usize, value: u8) {
        match self.written_mut().get_mut(position) {
            Some(byte) => *byte = value,
            None => self.on_overflow(),
        }
    }

    /// Replaces the two bytes at `position`, which must have been written, by a two-byte variable-length integer.
    #[inline]
    pub fn patch_varint2(&mut self, position: usize, value: u64) {
        let place = self.written_mut().get_mut(position..).and_then(|tail| tail.first_chunk_mut::<2>());
        match place {
            Some(place) if value < 1 << 14 => *place = (value as u16 | 0x4000).to_be_bytes(),
            _ => self.on_overflow(),
        }
    }

    #[cold]
    fn on_overflow(&mut self) {
        debug_assert!(false, "a write at {} does not fit {} bytes", self.position, self.buffer.len());
        self.overflowed = true;
    }
}
