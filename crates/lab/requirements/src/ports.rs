//! Ports on the loopback interface, which tests that run at the same time share: a port that is free over TCP may be another test's
//! over UDP.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::thread::sleep;
use std::time::Duration;

/// Sockets of other tests that run meanwhile come and go within this time.
const OTHERS_END_WITHIN: Duration = Duration::from_secs(20);

/// A listener and a socket at one port of 127.0.0.1.
///
/// # Panics
/// Where nothing can be bound there at all.
#[expect(clippy::expect_used, reason = "used by tests only, where a panic is a failure")]
pub fn over_tcp_and_udp() -> (TcpListener, UdpSocket) {
    let pair = (0..100).find_map(|_| {
        let listener = TcpListener::bind("127.0.0.1:0").ok()?;
        let socket = UdpSocket::bind(listener.local_addr().ok()?).ok()?;
        Some((listener, socket))
    });
    pair.expect("a port of 127.0.0.1 that is free over TCP and UDP")
}

/// Whether `address` is free over UDP, at once or when others' sockets are gone: for what a test's own server must not hold.
pub fn is_free_over_udp(address: SocketAddr) -> bool {
    becomes(OTHERS_END_WITHIN, || UdpSocket::bind(address).is_ok())
}

/// As [`is_free_over_udp`], over TCP.
pub fn is_free_over_tcp(address: SocketAddr) -> bool {
    becomes(OTHERS_END_WITHIN, || TcpListener::bind(address).is_ok())
}

/// Looks every 20 ms.
fn becomes(patience: Duration, is_so: impl Fn() -> bool) -> bool {
    let pause = Duration::from_millis(20);
    let looks = patience.as_millis() / pause.as_millis();
    is_so()
        || (0..looks).any(|_| {
            sleep(pause);
            is_so()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a test could pass while its server holds a port that it must not hold, or fail by the socket of another test.
    #[test]
    fn a_port_is_free_when_its_holder_is_gone_and_not_before() {
        let (listener, socket) = over_tcp_and_udp();
        let address = socket.local_addr().unwrap();
        assert_eq!(listener.local_addr().unwrap(), address);
        assert!(!becomes(Duration::from_millis(50), || UdpSocket::bind(address).is_ok()));
        let holder = std::thread::spawn(move || {
            sleep(Duration::from_millis(100));
            drop((listener, socket));
        });
        assert!(is_free_over_udp(address) && is_free_over_tcp(address));
        holder.join().unwrap();
    }
}
