//! Asks the kernel which way a peer is reached: route, then neighbour. The only file that speaks netlink on a port's way.
//!
//! It costs some ten microseconds and happens once for a peer that has sent nothing yet, and every half minute for one that
//! was looked up. Where the kernel does not know a neighbour it is made to ask for it, and the packets wait (see
//! `sender`).

use core::net::{IpAddr, SocketAddr};

use wire::ethernet::Tag;

use crate::interface::Interface;
use crate::neighbours::NextHop;

/// What the kernel says of the way to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// This way.
    Known(NextHop),
    /// It has just been told to find out.
    Asked,
    /// No way out of this interface leads there.
    None,
}

/// Why the kernel is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Nothing is known.
    Unknown,
    /// It was asked some time ago. It is to make sure itself: it sees none of our packets, so it never finds out by them that
    /// a neighbour has another address now.
    Stale,
}

/// Asks how `peer` is reached from `interface`, with `tag` on untold links.
pub(crate) fn look_up(interface: &Interface, peer: IpAddr, tag: Option<Tag>, reason: Reason) -> Answer {
    let tags = [tag, None];
    if let Some(mac) = group_mac(peer) {
        return Answer::Known(NextHop { mac, tags, source: interface.source_towards(peer) });
    }
    let Ok(route) = netlink::route_to(peer) else { return Answer::None };
    if interface.is_loopback {
        let hop = NextHop { mac: interface.mac, tags, source: route.source };
        return if route.is_local { Answer::Known(hop) } else { Answer::None };
    }
    if route.ifindex != interface.index || route.is_local {
        return Answer::None;
    }
    let next = route.gateway.unwrap_or(peer);
    if reason == Reason::Stale {
        // What it finds is seen the next time; without the privilege it does as the kernel's own traffic makes it do.
        let _ = netlink::provoke_neighbour(interface.index, next);
    }
    match netlink::neighbour(interface.index, next) {
        Ok(Some(mac)) => Answer::Known(NextHop { mac: mac.0, tags, source: route.source }),
        _ => {
            provoke(interface, next);
            Answer::Asked
        }
    }
}

/// Makes the kernel ask the link for `next`'s address, by having it send a datagram there itself, to the discard port
/// (RFC 863). It then asks from the right source address; asked over netlink (the second choice, for when the socket is
/// refused) it uses the link-local one for IPv6, which a fresh interface does not have for its first second or two.
fn provoke(interface: &Interface, next: IpAddr) {
    let any: IpAddr = match next {
        IpAddr::V4(_) => core::net::Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => core::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = std::net::UdpSocket::bind(SocketAddr::new(any, 0));
    if socket.and_then(|socket| socket.send_to(&[0], interface.scoped(next, 9))).is_err() {
        // It fails only where the kernel does, and then the packets that wait for it are lost in the end.
        let _ = netlink::provoke_neighbour(interface.index, next);
    }
}

/// The Ethernet address of a multicast group, which needs no query. Source: RFC 1112 §6.4, RFC 2464 §7.
fn group_mac(group: IpAddr) -> Option<[u8; 6]> {
    match group {
        IpAddr::V4(ip) if ip.is_multicast() => {
            let [_, b, c, d] = ip.octets();
            Some([0x01, 0x00, 0x5e, b & 0x7f, c, d])
        }
        IpAddr::V6(ip) if ip.is_multicast() => {
            let [.., a, b, c, d] = ip.octets();
            Some([0x33, 0x33, a, b, c, d])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_ethernet_addresses_of_their_own() {
        let mac = |ip: &str| group_mac(ip.parse().unwrap());
        assert_eq!(mac("239.255.84.67"), Some([0x01, 0x00, 0x5e, 0x7f, 0x54, 0x43]));
        assert_eq!(mac("ff12::5443"), Some([0x33, 0x33, 0, 0, 0x54, 0x43]));
        assert_eq!(mac("192.0.2.1"), None);
    }
}
