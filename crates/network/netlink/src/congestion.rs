//! Which congestion control the kernel's TCP uses on the routes of a link.
//!
//! A route may name one (RTAX_CC_ALGO, `ip route … congctl NAME`); connections that are made over it, at either end, then use it
//! whatever the namespace's default is. The sysctl of a namespace accepts only what the machine allows to everybody
//! (`net.ipv4.tcp_allowed_congestion_control`); a route accepts whatever the kernel has, because it takes CAP_NET_ADMIN to change one.

use crate::conversation::{ask, dump, order};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::io;
use std::net::IpAddr;

/// Names the congestion control of TCP connections on all unicast routes of a link, of IPv4 and IPv6, by the kernel's name of it:
/// "cubic", "reno". Other properties of the routes stay; connections that exist keep what they have. Returns how many routes there were.
///
/// # Errors
/// The kernel's: `EINVAL` if it has no such congestion control; CAP_NET_ADMIN is needed.
pub fn set_tcp_congestion_control(ifindex: u32, name: &str) -> io::Result<usize> {
    let mut changed = 0;
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let mut question = RouteMessage::default();
        question.header.address_family = family;
        let answers = dump(NETLINK_ROUTE, RouteNetlinkMessage::GetRoute(question))?;
        let routes = answers.into_iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewRoute(route) => Some(route),
            _ => None,
        });
        for route in routes.filter(|route| is_of(route, ifindex)) {
            let message = RouteNetlinkMessage::NewRoute(with_metric(route, name));
            order(NETLINK_ROUTE, message, NLM_F_CREATE | NLM_F_REPLACE)?;
            changed += 1;
        }
    }
    Ok(changed)
}

/// The congestion control that the route to `destination` names; `None` if it names none, so that the namespace's default holds.
///
/// # Errors
/// The kernel's: `ENETUNREACH` if there is no route.
pub fn tcp_congestion_control_to(destination: IpAddr) -> io::Result<Option<String>> {
    let mut message = RouteMessage::default();
    (message.header.address_family, message.header.destination_prefix_length) = match destination {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    };
    message.attributes.push(RouteAttribute::Destination(destination.into()));
    match ask(NETLINK_ROUTE, RouteNetlinkMessage::GetRoute(message))? {
        RouteNetlinkMessage::NewRoute(message) => Ok(metrics(&message).find_map(|metric| match metric {
            RouteMetric::CcAlgo(name) => Some(name.clone()),
            _ => None,
        })),
        _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

fn metrics(message: &RouteMessage) -> impl Iterator<Item = &RouteMetric> {
    let lists = message.attributes.iter().filter_map(|attribute| match attribute {
        RouteAttribute::Metrics(metrics) => Some(metrics),
        _ => None,
    });
    lists.flatten()
}

/// Whether it is a way out by this link that was configured, not one that the kernel keeps as a copy.
fn is_of(route: &RouteMessage, ifindex: u32) -> bool {
    let is_configured = route.header.kind == RouteType::Unicast
        && route.header.table == RouteHeader::RT_TABLE_MAIN
        && !route.header.flags.contains(RouteFlags::Cloned);
    is_configured && route.attributes.contains(&RouteAttribute::Oif(ifindex))
}

/// The same route as an order; what the kernel reports of its use is no part of that.
fn with_metric(route: RouteMessage, name: &str) -> RouteMessage {
    let mut wanted: Vec<RouteMetric> =
        metrics(&route).filter(|metric| !matches!(metric, RouteMetric::CcAlgo(_))).cloned().collect();
    wanted.push(RouteMetric::CcAlgo(name.to_owned()));
    let mut order = RouteMessage::default();
    order.header = route.header;
    order.header.flags = RouteFlags::empty();
    order.attributes = route
        .attributes
        .into_iter()
        .filter(|attribute| !matches!(attribute, RouteAttribute::Metrics(_) | RouteAttribute::CacheInfo(_)))
        .collect();
    order.attributes.push(RouteAttribute::Metrics(wanted));
    order
}
