//! The rings through which frames change hands: arrays in memory shared with the kernel, with a counter at either end.
//!
//! One side writes entries and then moves the producer's counter, the other reads them and then moves the consumer's.
//! The counters run freely over 32 bits; an entry's place is the counter modulo the ring's size, a power of two. Each side
//! keeps a copy of the other's counter and looks at the real one only when the copy says full or empty, since that
//! cache line belongs to the other side (which in copy mode is this core, in the kernel).
//!
//! Kernel's side: net/xdp/xsk_queue.h, whose ordering this mirrors: acquire what the other moved, release what we moved.
//! The kernel is trusted to move its counters as it says, for a false one would be a `Frame` too many.

use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::mapping::Mapping;

/// Where the parts of a ring lie in its mapping, and where the mapping lies in the socket's file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) producer: u64,
    pub(super) consumer: u64,
    pub(super) flags: u64,
    pub(super) entries: u64,
    pub(super) file: libc::off_t,
}

/// What a ring's entries are.
///
/// # Safety
/// A type of integers alone, laid out as the kernel has it in that ring.
#[expect(unsafe_code, reason = "entries are read from memory that the kernel writes")]
pub(super) unsafe trait Entry: Copy {}

#[expect(unsafe_code, reason = "see the trait")]
// SAFETY: the entries of the fill and the completion ring are addresses of 64 bits.
unsafe impl Entry for u64 {}

/// An entry of the RX and TX rings: `struct xdp_desc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Descriptor {
    pub(super) address: u64,
    pub(super) len: u32,
    pub(super) options: u32,
}

#[expect(unsafe_code, reason = "see the trait")]
// SAFETY: the entries of the RX and the TX ring are `struct xdp_desc`: a 64-bit address, a length and options of 32 bits.
unsafe impl Entry for Descriptor {}

/// Whether the kernel must be told of new entries by a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a kernel that sleeps does not see new entries"]
pub(crate) enum Wakeup {
    Needed,
    NotNeeded,
}

/// What both ends of a ring have.
#[derive(Debug)]
struct Ring<T> {
    mapping: Mapping,
    layout: Layout,
    size: u32,
    /// Our counter. Ahead of the one the other side sees until it is published.
    own: u32,
    /// Our counter as published.
    published: u32,
    /// The other side's counter when last looked at.
    other: u32,
    entries: PhantomData<T>,
}

impl<T: Entry> Ring<T> {
    /// Maps a ring of `size` entries.
    fn map(socket: BorrowedFd<'_>, layout: Layout, size: u32) -> io::Result<Ring<T>> {
        assert!(size.is_power_of_two(), "the kernel's rings have a power of two as their size");
        let len = layout.entries as usize + size as usize * size_of::<T>();
        let mapping = Mapping::of(socket, len, layout.file)?;
        let counters = [layout.producer, layout.consumer, layout.flags];
        let fits = counters.iter().all(|&at| at.is_multiple_of(4) && at as usize + 4 <= len);
        if !fits || !(layout.entries as usize).is_multiple_of(align_of::<T>()) {
            return Err(io::Error::other("a ring of a shape that is not known"));
        }
        Ok(Ring { mapping, layout, size, own: 0, published: 0, other: 0, entries: PhantomData })
    }

    fn counter(&self, at: u64) -> &AtomicU32 {
        #[expect(unsafe_code, reason = "the ring is shared with the kernel and known by its address")]
        // SAFETY: `at` is one of the three places that `map` found to lie inside the mapping, on a multiple of four (a
        // mapping begins on a page). The kernel accesses them atomically, too, and the mapping lives as long as `self`.
        unsafe {
            self.mapping.start().add(at as usize).cast::<AtomicU32>().as_ref()
        }
    }

    /// The place of the entry with this number. It lies inside the mapping, since the number is taken modulo the size.
    fn entry(&self, number: u32) -> NonNull<T> {
        let at = self.layout.entries as usize + (number & (self.size - 1)) as usize * size_of::<T>();
        #[expect(unsafe_code, reason = "the ring is shared with the kernel and known by its address")]
        // SAFETY: `map` made the mapping long enough for `size` entries behind `layout.entries`.
        unsafe {
            self.mapping.start().add(at).cast()
        }
    }
}

/// Our end of a ring that we fill: the fill ring, the TX ring.
#[derive(Debug)]
pub(super) struct Producer<T>(Ring<T>);

impl<T: Entry> Producer<T> {
    pub(super) fn map(socket: BorrowedFd<'_>, layout: Layout, size: u32) -> io::Result<Producer<T>> {
        Ring::map(socket, layout, size).map(Producer)
    }

    /// How many entries there is room for; looks at the kernel's counter if that is less than `wanted`.
    #[inline]
    pub(super) fn room(&mut self, wanted: u32) -> u32 {
        let ring = &mut self.0;
        let room = ring.size - ring.own.wrapping_sub(ring.other);
        if room >= wanted {
            return room;
        }
        // Acquire: the kernel has read the entries before it moved on, so they may be written anew.
        ring.other = ring.counter(ring.layout.consumer).load(Ordering::Acquire);
        ring.size - ring.own.wrapping_sub(ring.other)
    }

    /// Writes an entry, for which there must be room by what [`Producer::room`] last said. The kernel does not see it
    /// before [`Producer::publish`].
    #[inline]
    pub(super) fn push(&mut self, entry: T) {
        let ring = &mut self.0;
        assert!(ring.own.wrapping_sub(ring.other) < ring.size, "the ring is full");
        let place = ring.entry(ring.own);
        #[expect(unsafe_code, reason = "the ring is shared with the kernel and known by its address")]
        // SAFETY: the place lies inside the mapping and is aligned (`map` checked). By the assert the kernel has read what
        // was there before, and it does not read the place again until the counter is published.
        unsafe {
            place.as_ptr().write(entry);
        }
        ring.own = ring.own.wrapping_add(1);
    }

    /// Shows the kernel what was pushed, and looks whether it must be told. A kernel that finds the ring empty at this very
    /// moment may ask for that a little later: a poll that finds nothing looks at [`Producer::wakeup`] again.
    #[inline]
    pub(super) fn publish(&mut self) -> Wakeup {
        let ring = &mut self.0;
        ring.published = ring.own;
        // Release: the entries, and the bytes of their frames, are written before the kernel sees the counter.
        ring.counter(ring.layout.producer).store(ring.own, Ordering::Release);
        self.wakeup()
    }

    /// How many published entries the kernel has not taken.
    #[inline]
    pub(super) fn waiting(&mut self) -> u32 {
        let ring = &mut self.0;
        ring.other = ring.counter(ring.layout.consumer).load(Ordering::Acquire);
        ring.published.wrapping_sub(ring.other)
    }

    /// Whether the kernel wants to be told of new entries by a system call.
    #[inline]
    pub(super) fn wakeup(&self) -> Wakeup {
        let ring = &self.0;
        match ring.counter(ring.layout.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP {
            0 => Wakeup::NotNeeded,
            _ => Wakeup::Needed,
        }
    }
}

#[cfg(test)]
impl<T: Entry> Producer<T> {
    /// Sets the kernel's flag in the ring's memory.
    pub(super) fn set_wakeup(&self, wakeup: Wakeup) {
        let flags = if wakeup == Wakeup::Needed { libc::XDP_RING_NEED_WAKEUP } else { 0 };
        self.0.counter(self.0.layout.flags).store(flags, Ordering::Relaxed);
    }
}

/// Our end of a ring that the kernel fills: the RX ring, the completion ring.
#[derive(Debug)]
pub(super) struct Consumer<T>(Ring<T>);

impl<T: Entry> Consumer<T> {
    pub(super) fn map(socket: BorrowedFd<'_>, layout: Layout, size: u32) -> io::Result<Consumer<T>> {
        Ring::map(socket, layout, size).map(Consumer)
    }

    /// How many entries there are; looks at the kernel's counter if that is less than `wanted`.
    #[inline]
    pub(super) fn available(&mut self, wanted: u32) -> u32 {
        let ring = &mut self.0;
        let available = ring.other.wrapping_sub(ring.own);
        if available >= wanted {
            return available;
        }
        // Acquire: the kernel wrote the entries, and the bytes of their frames, before it moved on.
        ring.other = ring.counter(ring.layout.producer).load(Ordering::Acquire);
        ring.other.wrapping_sub(ring.own)
    }

    /// How many entries there are, without taking note of them.
    pub(super) fn peek(&self) -> u32 {
        let ring = &self.0;
        ring.counter(ring.layout.producer).load(Ordering::Relaxed).wrapping_sub(ring.own)
    }

    /// Takes the oldest entry, of those that [`Consumer::available`] last told of. Its place is the kernel's again after
    /// [`Consumer::release`].
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        let ring = &mut self.0;
        if ring.other == ring.own {
            return None;
        }
        let place = ring.entry(ring.own);
        #[expect(unsafe_code, reason = "the ring is shared with the kernel and known by its address")]
        // SAFETY: the place lies inside the mapping and is aligned (`map` checked). The kernel has written it, since its
        // counter, acquired, is beyond; it does not write it again until our counter is released. Any bits are a `T`.
        let entry = unsafe { place.as_ptr().read() };
        ring.own = ring.own.wrapping_add(1);
        Some(entry)
    }

    /// Gives the places of what was taken back to the kernel.
    #[inline]
    pub(super) fn release(&mut self) {
        let ring = &mut self.0;
        ring.published = ring.own;
        // Release: the entries are read before the kernel sees the counter.
        ring.counter(ring.layout.consumer).store(ring.own, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
