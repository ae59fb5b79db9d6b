//! What the tests over loopback need.

use std::sync::atomic::{AtomicU8, Ordering};
use udp::{BindOptions, UdpPort, Variant};

/// A port of loopback.
pub(crate) fn port() -> UdpPort {
    UdpPort::bind(&BindOptions::new("127.0.0.1:0".parse().unwrap(), Variant::Gso)).unwrap()
}

/// Another one each time: two clients with the same connection IDs would be one to a server.
pub(crate) fn seed() -> [u8; 32] {
    static LAST: AtomicU8 = AtomicU8::new(1);
    [LAST.fetch_add(1, Ordering::Relaxed); 32]
}
