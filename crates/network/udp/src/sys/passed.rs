//! Descriptors that a service manager has opened for this process. No safe wrapper makes an owner of a number.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// The first of them. Source: sd_listen_fds(3).
const FIRST: i32 = 3;
/// More are not taken for real.
const MOST: usize = 4_096;

/// Takes the descriptors 3 and on, `count` of them, which the program gets from a service manager. They are closed in programs that this
/// one starts. A process takes them once: later calls return none.
///
/// # Errors
/// One of them is not open.
pub fn take_passed(count: usize) -> io::Result<Vec<OwnedFd>> {
    static ARE_TAKEN: AtomicBool = AtomicBool::new(false);
    if count == 0 || ARE_TAKEN.swap(true, Ordering::AcqRel) {
        return Ok(Vec::new());
    }
    (FIRST..).take(count.min(MOST)).map(own).collect()
}

fn own(number: i32) -> io::Result<OwnedFd> {
    #[expect(unsafe_code, reason = "no safe wrapper asks about a number")]
    // SAFETY: fcntl with F_SETFD takes any number, and fails with EBADF where none is open.
    let result = unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    #[expect(unsafe_code, reason = "this is where a number becomes a descriptor with an owner")]
    // SAFETY: the number is open, as the call before has shown. The service manager has opened it for this program by the protocol of
    // sd_listen_fds(3), so that nothing else in the process owns it, and `take_passed` gets here once for each.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
