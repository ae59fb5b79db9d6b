//! The kernel, as Miri sees it: memory that several mappings of one file share.
//!
//! Miri runs no system calls but a few. What it can find out is whether the accesses to shared memory are in bounds, aligned and
//! ordered: this module takes the place of the calls that map memory. Compiled under Miri only.

#![expect(unsafe_code, reason = "it hands out and takes back memory as the kernel does")]
#![expect(clippy::missing_safety_doc, reason = "the contracts are those of the system calls")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::sync::Mutex;

const PAGE: usize = 4_096;

/// A stretch of memory, and how many mappings of it there are.
struct MemoryRange {
    len: usize,
    mappings: usize,
    /// The file that it belongs to.
    file: Option<i32>,
}

static STRETCHES: Mutex<BTreeMap<usize, MemoryRange>> = Mutex::new(BTreeMap::new());
/// Addresses keep what they may be used for.
static EXPOSED: Mutex<BTreeMap<usize, Exposed>> = Mutex::new(BTreeMap::new());

struct Exposed(*mut u8);

// SAFETY: only handed through.
unsafe impl Send for Exposed {}

fn layout(len: usize) -> Layout {
    Layout::from_size_align(len.next_multiple_of(PAGE), PAGE).expect("a sane length")
}

pub(super) unsafe fn mmap(
    _: *mut libc::c_void,
    len: usize,
    _: i32,
    _: i32,
    fd: i32,
    _: libc::off_t,
) -> *mut libc::c_void {
    let mut stretches = STRETCHES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut exposed = EXPOSED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let file = (fd >= 0).then_some(fd);
    if file.is_some()
        && let Some((address, stretch)) = stretches.iter_mut().find(|(_, stretch)| stretch.file == file)
    {
        assert!(len <= stretch.len, "mappings of a file are equally long here");
        stretch.mappings += 1;
        return exposed.get(address).map_or(libc::MAP_FAILED, |start| start.0.cast());
    }
    // SAFETY: the layout is not empty.
    let start = unsafe { alloc_zeroed(layout(len)) };
    stretches.insert(start.addr(), MemoryRange { len, mappings: 1, file });
    exposed.insert(start.addr(), Exposed(start));
    start.cast()
}

pub(super) unsafe fn munmap(start: *mut libc::c_void, _: usize) -> i32 {
    let mut stretches = STRETCHES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut exposed = EXPOSED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(stretch) = stretches.get_mut(&start.addr()) else { return -1 };
    stretch.mappings -= 1;
    if stretch.mappings == 0 {
        let len = stretch.len;
        stretches.remove(&start.addr());
        if let Some(Exposed(start)) = exposed.remove(&start.addr()) {
            // SAFETY: `mmap` got it with this layout, and the last mapping has gone.
            unsafe { dealloc(start, layout(len)) };
        }
    }
    0
}

pub(super) unsafe fn madvise(_: *mut libc::c_void, _: usize, _: i32) -> i32 {
    0
}
