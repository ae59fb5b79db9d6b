//! The addresses of a link.

use crate::conversation::{dump, order};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::io;
use std::net::IpAddr;

/// An address of ours on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Our address (on a point-to-point link: ours, not the other end's).
    pub ip: IpAddr,
    /// How many of its leading bits name the network.
    pub prefix: u8,
}

/// The addresses of a link, IPv4 first; none for a link that does not exist.
///
/// # Errors
/// The kernel's.
pub fn addresses(ifindex: u32) -> io::Result<Vec<Address>> {
    let all = all_addresses()?;
    let ours = all.into_iter().filter(|(index, _)| *index == ifindex);
    let mut found: Vec<Address> = ours.map(|(_, address)| address).collect();
    found.sort_by_key(|address| address.ip.is_ipv6());
    Ok(found)
}

/// The addresses of all links by one question, each with the index of its link, in the kernel's order.
///
/// # Errors
/// The kernel's.
pub fn all_addresses() -> io::Result<Vec<(u32, Address)>> {
    let answers = dump(NETLINK_ROUTE, RouteNetlinkMessage::GetAddress(AddressMessage::default()))?;
    let found = answers.into_iter().filter_map(|answer| match answer {
        RouteNetlinkMessage::NewAddress(message) => Some((message.header.index, read(&message)?)),
        _ => None,
    });
    Ok(found.collect())
}

fn read(message: &AddressMessage) -> Option<Address> {
    let (mut local, mut address) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(ip) => local = Some(*ip),
            AddressAttribute::Address(ip) => address = Some(*ip),
            _ => {}
        }
    }
    // IFA_LOCAL is ours; IPv6 sends only IFA_ADDRESS unless there is a peer
    local.or(address).map(|ip| Address { ip, prefix: message.header.prefix_len })
}

/// Gives a link an address. Duplicates of an IPv6 address are not looked for: sockets may bind to it at once, and packets
/// to it are received as soon as [`crate::route_to`] finds it local, which the kernel sees to a moment later.
///
/// # Errors
/// The kernel's: `EEXIST` if it has it, `EINVAL` for a prefix too long; CAP_NET_ADMIN is needed.
pub fn add_address(ifindex: u32, ip: IpAddr, prefix: u8) -> io::Result<()> {
    let message = RouteNetlinkMessage::NewAddress(describe(ifindex, ip, prefix));
    order(NETLINK_ROUTE, message, NLM_F_CREATE | NLM_F_EXCL)
}

/// Takes an address from a link.
///
/// # Errors
/// The kernel's: `EADDRNOTAVAIL` if it does not have it; CAP_NET_ADMIN is needed.
pub fn delete_address(ifindex: u32, ip: IpAddr, prefix: u8) -> io::Result<()> {
    order(NETLINK_ROUTE, RouteNetlinkMessage::DelAddress(describe(ifindex, ip, prefix)), 0)
}

fn describe(ifindex: u32, ip: IpAddr, prefix: u8) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.index = ifindex;
    message.header.prefix_len = prefix;
    message.header.scope = AddressScope::Universe;
    message.attributes = vec![AddressAttribute::Local(ip), AddressAttribute::Address(ip)];
    match ip {
        IpAddr::V4(_) => message.header.family = AddressFamily::Inet,
        IpAddr::V6(_) => {
            message.header.family = AddressFamily::Inet6;
            message.header.flags = AddressHeaderFlags::Nodad;
            message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
    }
    message
}
