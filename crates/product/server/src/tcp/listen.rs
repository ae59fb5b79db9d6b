//! Listening sockets, one for each thread, on one port.
//!
//! The first is bound alone, so that a port that is in use is an error even where it belongs to another server of the same
//! user; then it lets the others in (SO_REUSEPORT), and the kernel shares connections out among them.

use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener};

/// Connections that may wait to be accepted, for each thread; the kernel's somaxconn may be less.
const BACKLOG: i32 = 4_096;

/// `count` listeners on `address`; port 0 is any free one, the same for all. With a `device`, connections come by that
/// interface alone.
///
/// # Errors
/// What the system says; `AddrInUse` where the port is taken.
pub fn listen(address: SocketAddr, device: Option<&str>, count: usize) -> io::Result<Vec<TcpListener>> {
    let first = bind(address, device, Sharing::Later)?;
    first.set_reuse_port(true)?;
    let address = first.local_addr()?.as_socket().unwrap_or(address);
    let mut sockets = vec![first];
    for _ in 1..count {
        sockets.push(bind(address, device, Sharing::Now)?);
    }
    sockets
        .into_iter()
        .map(|socket| {
            socket.listen(BACKLOG)?;
            Ok(socket.into())
        })
        .collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    Now,
    Later,
}

fn bind(address: SocketAddr, device: Option<&str>, sharing: Sharing) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // As for UDP: [::] is every address of both families.
        socket.set_only_v6(false)?;
    }
    // Connections of a server that has ended do not keep the port.
    socket.set_reuse_address(true)?;
    if sharing == Sharing::Now {
        socket.set_reuse_port(true)?;
    }
    // Linux hands these on to what is accepted, which saves calls for each connection.
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.bind_device(device.map(str::as_bytes))?;
    socket.bind(&address.into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_a_port_and_servers_do_not() {
        let any: SocketAddr = ([127, 0, 0, 1], 0).into();
        let listeners = listen(any, None, 3).unwrap();
        let address = listeners[0].local_addr().unwrap();
        assert!(listeners.iter().all(|listener| listener.local_addr().unwrap() == address));
        for count in [1, 2] {
            assert_eq!(listen(address, None, count).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        }
        drop(listeners);
        assert!(listen(address, None, 1).is_ok());
    }
}
