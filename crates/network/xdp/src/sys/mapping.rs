//! A mapped piece of memory, unmapped when dropped.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

#[cfg(miri)]
use super::kernel;
#[cfg(not(miri))]
use libc as kernel;

/// A mapping that is readable and writable.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

#[expect(unsafe_code, reason = "a raw pointer takes the Send away")]
// SAFETY: the mapping belongs to the process, not to a thread, and its owner is the only one who knows the address.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Fresh memory, all zeros, in large pages where the system has some to spare.
    pub(crate) fn anonymous(len: usize) -> io::Result<Mapping> {
        let mapping = Mapping::map(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)?;
        #[expect(unsafe_code, reason = "no safe wrapper advises the kernel")]
        // SAFETY: the range is the mapping just made; this advice changes no contents. A refusal does no harm.
        unsafe {
            kernel::madvise(mapping.start.as_ptr().cast(), len, libc::MADV_HUGEPAGE);
        }
        Ok(mapping)
    }

    /// The ring of `socket` that lies at `offset` of its file.
    pub(crate) fn of(socket: BorrowedFd<'_>, len: usize, offset: libc::off_t) -> io::Result<Mapping> {
        Mapping::map(len, libc::MAP_SHARED | libc::MAP_POPULATE, socket.as_raw_fd(), offset)
    }

    fn map(len: usize, flags: i32, fd: i32, offset: libc::off_t) -> io::Result<Mapping> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        #[expect(unsafe_code, reason = "no safe wrapper maps memory")]
        // SAFETY: without MAP_FIXED the kernel picks an address range that nothing uses, so no existing memory changes.
        let start = unsafe { kernel::mmap(std::ptr::null_mut(), len, access, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("memory mapped at zero"))?;
        Ok(Mapping { start, len })
    }

    /// Where it begins.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Its size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "no safe wrapper unmaps memory")]
        // SAFETY: the range is what `map` got, it is unmapped once, and pointers into it are only made by its owners:
        // this value or a part of the structure that owns it. A kernel that still holds the pages keeps them alive.
        unsafe {
            kernel::munmap(self.start.as_ptr().cast(), self.len);
        }
    }
}
