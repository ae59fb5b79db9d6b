//! What the kernel has of a socket's outgoing bytes: of TCP, for servers over both.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Bytes that a TCP socket was given and its peer has not acknowledged.
///
/// # Errors
/// It is no such socket.
pub fn unacknowledged(socket: BorrowedFd<'_>) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    #[expect(unsafe_code, reason = "rustix has no SIOCOUTQ")]
    // SAFETY: the descriptor is open for as long as it is borrowed, and the kernel writes one int, which `bytes` is, before the call
    // returns. It keeps no pointer.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(usize::try_from(bytes).unwrap_or(0)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd as _;
    use std::time::Duration;

    #[test]
    #[cfg_attr(miri, ignore = "Miri does not know TIOCOUTQ")]
    fn what_a_peer_has_not_read_is_unacknowledged_beyond_its_window() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.set_nonblocking(true).unwrap();
        let piece = [7; 1 << 16];
        let mut sent = 0;
        while let Ok(bytes) = near.write(&piece) {
            sent += bytes;
        }
        assert!(unacknowledged(near.as_fd()).unwrap() > 0);
        far.read_exact(&mut vec![0; sent]).unwrap();
        let is_taken = (0..4_000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            unacknowledged(near.as_fd()).unwrap() == 0
        });
        assert!(is_taken, "the peer has all of it");
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(unacknowledged(file.as_fd()).is_err());
    }
}
