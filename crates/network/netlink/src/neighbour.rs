//! The Ethernet addresses of neighbours: what ARP and neighbour discovery found, or what was set by hand.

use crate::conversation::{ask, order};
use crate::mac::Mac;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::io;
use std::net::IpAddr;

/// The Ethernet address under which the kernel reaches `ip` on a link; `None` if it does not know it (yet):
/// [`provoke_neighbour`] makes it find out.
///
/// # Errors
/// The kernel's.
pub fn neighbour(ifindex: u32, ip: IpAddr) -> io::Result<Option<Mac>> {
    let request = RouteNetlinkMessage::GetNeighbour(about(ifindex, ip));
    let message = match ask(NETLINK_ROUTE, request) {
        Ok(RouteNetlinkMessage::NewNeighbour(message)) => message,
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if matches!(
        message.header.state,
        NeighbourState::Incomplete | NeighbourState::Failed | NeighbourState::None
    ) {
        return Ok(None);
    }
    Ok(message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(bytes) => Mac::from_bytes(bytes),
        _ => None,
    }))
}

/// Tells the kernel, for good, under which Ethernet address a neighbour is reached; replaces what it knew.
///
/// # Errors
/// The kernel's: `ENETDOWN` if the link is off; CAP_NET_ADMIN is needed.
pub fn add_neighbour(ifindex: u32, ip: IpAddr, mac: Mac) -> io::Result<()> {
    let mut message = about(ifindex, ip);
    message.header.state = NeighbourState::Permanent;
    message.attributes.push(NeighbourAttribute::LinkLayerAddress(mac.0.to_vec()));
    order(NETLINK_ROUTE, RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_REPLACE)
}

/// Makes the kernel ask the link for a neighbour's Ethernet address, or confirm a stale one. It returns at once; the
/// answer appears in [`neighbour`], usually within a millisecond.
///
/// # Errors
/// The kernel's; CAP_NET_ADMIN is needed. (Without it, sending any datagram to the address does the same.)
pub fn provoke_neighbour(ifindex: u32, ip: IpAddr) -> io::Result<()> {
    let mut message = about(ifindex, ip);
    message.header.flags = NeighbourFlags::Use;
    order(NETLINK_ROUTE, RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_REPLACE)
}

fn about(ifindex: u32, ip: IpAddr) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.ifindex = ifindex;
    message.header.family = match ip {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    };
    message.attributes.push(NeighbourAttribute::Destination(ip.into()));
    message
}
