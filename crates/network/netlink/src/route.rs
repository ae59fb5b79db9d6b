//! Which way a packet to an address would go.

use crate::conversation::ask;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteMetric, RouteType, RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::io;
use std::net::IpAddr;

/// The kernel's way to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The interface out of which packets go.
    pub ifindex: u32,
    /// The router that takes them; `None` if the address is on the link itself. It may be of the other family.
    pub gateway: Option<IpAddr>,
    /// The source address that the kernel would choose.
    pub source: Option<IpAddr>,
    /// The largest packet in bytes on this way where it is known to be smaller than the interface's MTU (set on the
    /// route, or learned by path MTU discovery).
    pub mtu: Option<u32>,
    /// Whether the address is one of this machine, so that packets never leave it.
    pub is_local: bool,
}

/// Asks which way a packet to `destination` would go.
///
/// # Errors
/// The kernel's: `ENETUNREACH` if there is none.
pub fn route_to(destination: IpAddr) -> io::Result<Route> {
    let mut message = RouteMessage::default();
    (message.header.address_family, message.header.destination_prefix_length) = match destination {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    };
    message.attributes.push(RouteAttribute::Destination(destination.into()));
    match ask(NETLINK_ROUTE, RouteNetlinkMessage::GetRoute(message))? {
        RouteNetlinkMessage::NewRoute(message) => read(&message),
        _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

fn read(message: &RouteMessage) -> io::Result<Route> {
    let mut route = Route {
        ifindex: 0,
        gateway: None,
        source: None,
        mtu: None,
        is_local: message.header.kind == RouteType::Local,
    };
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Oif(index) => route.ifindex = *index,
            RouteAttribute::Gateway(address) => route.gateway = ip(address),
            RouteAttribute::Via(RouteVia::Inet(address)) => route.gateway = Some((*address).into()),
            RouteAttribute::Via(RouteVia::Inet6(address)) => route.gateway = Some((*address).into()),
            RouteAttribute::PrefSource(address) => route.source = ip(address),
            RouteAttribute::Metrics(metrics) => route.mtu = mtu(metrics),
            _ => {}
        }
    }
    match route.ifindex {
        0 => Err(io::Error::from(io::ErrorKind::NetworkUnreachable)),
        _ => Ok(route),
    }
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

fn mtu(metrics: &[RouteMetric]) -> Option<u32> {
    metrics.iter().find_map(|metric| match metric {
        RouteMetric::Mtu(mtu) => Some(*mtu),
        _ => None,
    })
}
