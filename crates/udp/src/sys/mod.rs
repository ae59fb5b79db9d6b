//! The system calls that no safe wrapper covers. All of the crate's `unsafe` is in this folder.

mod batch;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

pub(crate) use batch::{Arrived, Message, ReceiveBatch, SendBatch};

/// Sets an integer option.
pub(crate) fn set_option(socket: BorrowedFd<'_>, level: i32, option: i32, value: i32) -> io::Result<()> {
    let size = size_of::<i32>() as libc::socklen_t;
    #[expect(unsafe_code, reason = "socket2 does not know these options")]
    // SAFETY: the descriptor is open for as long as it is borrowed; `value` lives across the call and `size` is its size,
    // and setsockopt only reads it.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an integer option.
pub(crate) fn option(socket: BorrowedFd<'_>, level: i32, option: i32) -> io::Result<i32> {
    let mut value: i32 = 0;
    let mut size = size_of::<i32>() as libc::socklen_t;
    #[expect(unsafe_code, reason = "socket2 does not know these options")]
    // SAFETY: the descriptor is open for as long as it is borrowed; `value` and `size` live across the call, and
    // getsockopt writes at most `size` bytes to `value`.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut size)
    };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}
