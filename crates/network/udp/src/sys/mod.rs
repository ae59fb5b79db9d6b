//! The system calls that no safe wrapper covers. All of the crate's `unsafe` is in this folder.

mod batch;
mod heap;
#[cfg(miri)]
mod kernel;
mod lent;
mod outgoing;
mod passed;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

pub(crate) use batch::{Arrived, Message, ReceiveBatch, SendBatch};
pub use heap::return_freed_memory;
pub(crate) use lent::Memory;
pub use outgoing::unacknowledged;
pub use passed::take_passed;

/// Sets an integer option.
pub(crate) fn set_option(socket: BorrowedFd<'_>, level: i32, option: i32, value: i32) -> io::Result<()> {
    set_value(socket, level, option, &value)
}

/// Lets messages say when they depart, on the monotonic clock, which is that of the ports.
pub(crate) fn enable_departure_times(socket: BorrowedFd<'_>) -> io::Result<()> {
    let clock = libc::sock_txtime { clockid: libc::CLOCK_MONOTONIC, flags: 0 };
    set_value(socket, libc::SOL_SOCKET, libc::SO_TXTIME, &clock)
}

/// Has `program` choose the socket of the reuseport group that `socket` belongs to: it returns the socket's place in the
/// order of binding. The kernel checks the program.
pub(crate) fn attach_classic(socket: BorrowedFd<'_>, program: &[libc::sock_filter]) -> io::Result<()> {
    let len = libc::c_ushort::try_from(program.len()).map_err(io::Error::other)?;
    // The kernel copies the instructions before the call returns, and does not write to them.
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    set_value(socket, libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_CBPF, &program)
}

/// Sets an option whose value has the layout of `T`. If there is a pointer in it, what it points at must be borrowed.
fn set_value<T: Copy>(socket: BorrowedFd<'_>, level: i32, option: i32, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    #[expect(unsafe_code, reason = "socket2 does not know these options")]
    // SAFETY: the descriptor is open for as long as it is borrowed; `value` is borrowed across the call and `size` is its
    // size, and setsockopt only reads it. The one caller whose value holds a pointer, `attach_classic`, has the slice
    // that it points into, with its length, borrowed across the call.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), size)
    };
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
