//! Makes the socket: creates, sets every option, binds, and finds out what the kernel grants.
//!
//! Options that the protocol can live without (ECN, packet info, GSO, GRO) may be refused, as some sandboxes do; what was
//! granted is in [`SocketFeatures`].

use core::net::SocketAddr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use socket2::{Domain, Protocol, Socket, Type};

use crate::name::Family;
use crate::options::{BindError, BindOptions};
use crate::sys;

/// What the kernel agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SocketFeatures {
    /// Segmented sends are known to this kernel. An interface may still refuse.
    pub(crate) gso: bool,
    /// Arriving datagrams are merged.
    pub(crate) gro: bool,
    /// The ECN field is reported.
    pub(crate) ecn: bool,
}

/// A bound socket.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) socket: Socket,
    pub(crate) local: SocketAddr,
    pub(crate) family: Family,
    pub(crate) granted: SocketFeatures,
}

/// Binds a socket as `options` say.
pub(crate) fn bind(options: &BindOptions) -> Result<Bound, BindError> {
    let address = options.address;
    let fail = |step| move |source| BindError { address, step, source };
    let domain = Domain::for_address(address);
    let socket =
        Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)).map_err(fail("create a socket for"))?;
    let dual = address.is_ipv6() && options.dual_stack && address.ip().is_unspecified();
    if address.is_ipv6() {
        socket.set_only_v6(!dual).map_err(fail("set IPV6_V6ONLY on"))?;
    }
    if options.reuse_port {
        socket.set_reuse_port(true).map_err(fail("set SO_REUSEPORT on"))?;
    }
    socket.set_nonblocking(true).map_err(fail("set O_NONBLOCK on"))?;
    if let Some(device) = &options.device {
        socket.bind_device(Some(device.as_bytes())).map_err(fail("set SO_BINDTODEVICE on"))?;
    }
    let ecn = set_ip_options(&socket, address, dual);
    raise_buffers(&socket, options);
    socket.bind(&address.into()).map_err(fail("bind"))?;
    let local = socket
        .local_addr()
        .and_then(|local| local.as_socket().ok_or_else(|| io::Error::other("the socket has no IP address")));
    let local = local.map_err(fail("find the address of"))?;
    let (gso, gro) = offloads(&socket, options);
    let family = if address.is_ipv6() { Family::V6 } else { Family::V4 };
    Ok(Bound { socket, local, family, granted: SocketFeatures { gso, gro, ecn } })
}

/// Takes a socket that is bound already and sets it up as `options` say. Other processes may use it too: what is set are the same
/// options as theirs, unless they run with others.
pub(crate) fn adopt(socket: OwnedFd, options: &BindOptions) -> Result<Bound, BindError> {
    let socket = Socket::from(socket);
    let local = socket.local_addr().map(|local| local.as_socket());
    let address = local.as_ref().ok().copied().flatten().unwrap_or(options.address);
    let fail = |step| move |source| BindError { address, step, source };
    let is_bound_udp = socket.r#type().is_ok_and(|kind| kind == Type::DGRAM) && address.port() > 0;
    let Some(local) = local.map_err(fail("find the address of"))?.filter(|_| is_bound_udp) else {
        return Err(fail("take over")(io::Error::other("what was passed is no socket of UDP that is bound")));
    };
    socket.set_nonblocking(true).map_err(fail("set O_NONBLOCK on"))?;
    let is_dual = local.is_ipv6() && local.ip().is_unspecified() && !socket.only_v6().unwrap_or(true);
    let ecn = set_ip_options(&socket, local, is_dual);
    raise_buffers(&socket, options);
    let (gso, gro) = offloads(&socket, options);
    if !gro {
        // It may be on for another process that had other options.
        let _ = sys::set_option(socket.as_fd(), libc::SOL_UDP, libc::UDP_GRO, 0);
    }
    let family = if local.is_ipv6() { Family::V6 } else { Family::V4 };
    Ok(Bound { socket, local, family, granted: SocketFeatures { gso, gro, ecn } })
}

/// Sets what concerns the IP header. Returns whether ECN will be reported.
fn set_ip_options(socket: &Socket, address: SocketAddr, dual: bool) -> bool {
    let fd = socket.as_fd();
    let set = |level, option, value| sys::set_option(fd, level, option, value).is_ok();
    let wildcard = address.ip().is_unspecified();
    let mut ecn = true;
    if address.is_ipv4() || dual {
        // RFC 9000 §14: never fragment. PROBE also ignores what ICMP says of the path's MTU, which anyone can forge: the
        // kernel measures what we send by the interface's MTU only, and the path's is searched by probing (RFC 8899). Nor does
        // such a message come up as an error of the socket, since it is not connected and IP_RECVERR is not set: EMSGSIZE is
        // always our own interface speaking.
        //= rfc9000/14#1
        set(libc::SOL_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE);
        ecn &= set(libc::SOL_IP, libc::IP_RECVTOS, 1);
        if wildcard {
            set(libc::SOL_IP, libc::IP_PKTINFO, 1);
        }
    }
    if address.is_ipv6() {
        set(libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE);
        set(libc::SOL_IPV6, libc::IPV6_DONTFRAG, 1);
        ecn &= set(libc::SOL_IPV6, libc::IPV6_RECVTCLASS, 1);
        if wildcard {
            set(libc::SOL_IPV6, libc::IPV6_RECVPKTINFO, 1);
        }
    }
    set(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1);
    ecn
}

/// Asks for the buffers in the way only root may, then in the way that the system caps.
fn raise_buffers(socket: &Socket, options: &BindOptions) {
    let fd = socket.as_fd();
    let pairs = [
        (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, options.receive_buffer),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, options.send_buffer),
    ];
    for (force, ask, size) in pairs {
        // The kernel doubles what it is told, for its own books; a quarter of i32 is beyond any use.
        let size = i32::try_from(size).unwrap_or(i32::MAX / 4).min(i32::MAX / 4);
        if sys::set_option(fd, libc::SOL_SOCKET, force, size).is_err() {
            let _ = sys::set_option(fd, libc::SOL_SOCKET, ask, size);
        }
    }
}

/// Whether this kernel segments and merges. Both are asked of the socket itself: a sandbox may differ from its host.
fn offloads(socket: &Socket, options: &BindOptions) -> (bool, bool) {
    if !options.variant.sends_trains() {
        return (false, false);
    }
    let fd = socket.as_fd();
    let gso = !options.without.gso && sys::option(fd, libc::SOL_UDP, libc::UDP_SEGMENT).is_ok();
    let gro = !options.without.gro && sys::set_option(fd, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok();
    (gso, gro)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Variant;

    /// RFC 9000 §14. Deleted, a packet too long for the path would be cut by us or by a router, and the search for the path's MTU
    /// would find what fragments carry.
    #[test]
    fn no_family_fragments_datagrams() {
        for (address, v4, v6) in
            [("127.0.0.1:0", true, false), ("[::1]:0", false, true), ("[::]:0", true, true)]
        {
            let options =
                BindOptions { dual_stack: true, ..BindOptions::new(address.parse().unwrap(), Variant::Gso) };
            let bound = bind(&options).unwrap();
            let option = |level, option| sys::option(bound.socket.as_fd(), level, option).unwrap();
            if v4 {
                assert_eq!(option(libc::SOL_IP, libc::IP_MTU_DISCOVER), libc::IP_PMTUDISC_PROBE, "{address}");
            }
            if v6 {
                assert_eq!(
                    option(libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER),
                    libc::IPV6_PMTUDISC_PROBE,
                    "{address}"
                );
                assert_eq!(option(libc::SOL_IPV6, libc::IPV6_DONTFRAG), 1, "{address}");
            }
        }
    }
}
