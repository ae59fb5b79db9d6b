//! Asks the kernel which way a peer is reached: route, then neighbour. The only file that speaks netlink on a port's way.
//!
//! It costs some ten microseconds and happens once for a peer that has sent nothing yet, and every half minute for one that
//! was looked up. Where the kernel does not know a neighbour it is made to ask for it, and the packets wait (see
//! `sender`).

use core::net::{IpAddr, SocketAddr};

use wire::ethernet::Tag;

use crate::interface::Interface;
use crate::neighbours::Hop;

/// What the kernel says of the way to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// This way.
    Known(Hop),
    /// It has just been told to find out.
    Asked,
    /// No way out of this interface leads there.
    None,
}

/// Asks how `peer` is reached from `interface`, with `tag` on untold links.
pub(crate) fn look_up(interface: &Interface, peer: IpAddr, tag: Option<Tag>) -> Answer {
    let Ok(route) = netlink::route_to(peer) else { return Answer::None };
    let tags = [tag, None];
    if interface.is_loopback {
        let hop = Hop { mac: interface.mac, tags, source: route.source };
        return if route.is_local { Answer::Known(hop) } else { Answer::None };
    }
    if route.ifindex != interface.index || route.is_local {
        return Answer::None;
    }
    let next = route.gateway.unwrap_or(peer);
    match netlink::neighbour(interface.index, next) {
        Ok(Some(mac)) => Answer::Known(Hop { mac: mac.0, tags, source: route.source }),
        _ => {
            provoke(interface, next);
            Answer::Asked
        }
    }
}

/// Makes the kernel ask the link for `next`'s address.
fn provoke(interface: &Interface, next: IpAddr) {
    if netlink::provoke_neighbour(interface.index, next).is_ok() {
        return;
    }
    // Any datagram makes the kernel ask; the discard port is for that (RFC 863).
    let any: IpAddr = match next {
        IpAddr::V4(_) => core::net::Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => core::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    if let Ok(socket) = std::net::UdpSocket::bind(SocketAddr::new(any, 0)) {
        let _ = socket.send_to(&[0], interface.scoped(next, 9));
    }
}
