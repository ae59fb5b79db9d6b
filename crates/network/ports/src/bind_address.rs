//! Which interface a name or an address means.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use netlink::Link;
use std::path::Path;

/// Where datagrams of an endpoint go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BindAddress {
    /// To this machine itself.
    Loopback,
    /// Out.
    Interface(Interface),
}

/// A real interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) index: u32,
    /// Bytes of an IP packet.
    pub(crate) mtu: u32,
    pub(crate) is_up: bool,
    pub(crate) is_wireless: bool,
    /// Queues that receive.
    pub(crate) queues: u32,
    pub(crate) addresses: Vec<IpAddr>,
}

/// The interface of this name.
///
/// # Errors
/// There is none; says which there are.
pub(crate) fn named(name: &str) -> Result<BindAddress, String> {
    let links = links()?;
    match links.iter().find(|link| link.name == name) {
        Some(link) => place(link),
        None => {
            let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
            Err(format!("there is no interface named {name}: there are {}", names.join(", ")))
        }
    }
}

/// The interface of a local address; of the default route when the address is unspecified; without such a route the only
/// one that is up.
///
/// # Errors
/// Nothing tells; says so and asks for a name.
pub(crate) fn of(address: IpAddr) -> Result<BindAddress, String> {
    let address = address.to_canonical();
    if address.is_loopback() {
        return Ok(BindAddress::Loopback);
    }
    let links = links()?;
    if !address.is_unspecified() {
        for link in &links {
            let here = netlink::addresses(link.index).unwrap_or_default();
            if here.iter().any(|here| here.ip == address) {
                return place(link);
            }
        }
        return Err(format!("no interface has the address {address}: name one with --interface"));
    }
    if let Some(link) = default_route().and_then(|index| links.iter().find(|link| link.index == index)) {
        return place(link);
    }
    let outward: Vec<&Link> = links.iter().filter(|link| link.is_up && !link.is_loopback).collect();
    match outward.as_slice() {
        [link] => place(link),
        _ => Err("there is no default route: name the interface with --interface".to_owned()),
    }
}

/// The interface by which `peer` is reached.
///
/// # Errors
/// There is no way to it.
pub(crate) fn towards(peer: IpAddr) -> Result<BindAddress, String> {
    let route = netlink::route_to(peer.to_canonical()).map_err(|_| format!("there is no route to {peer}"))?;
    if route.is_local {
        return Ok(BindAddress::Loopback);
    }
    let link = netlink::link_by_index(route.ifindex);
    place(&link.map_err(|error| format!("the interface towards {peer} cannot be looked at: {error}"))?)
}

/// The interface of the default route. Addresses for documentation have no host, so that only the default route
/// can lead there (RFC 5737, RFC 3849); asking sends nothing.
fn default_route() -> Option<u32> {
    let unknown =
        [Ipv4Addr::new(203, 0, 113, 1).into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()];
    unknown.into_iter().find_map(|ip| Some(netlink::route_to(ip).ok()?.ifindex))
}

fn links() -> Result<Vec<Link>, String> {
    netlink::links().map_err(|error| format!("the kernel does not list its interfaces: {error}"))
}

fn place(link: &Link) -> Result<BindAddress, String> {
    if link.is_loopback {
        return Ok(BindAddress::Loopback);
    }
    let addresses = netlink::addresses(link.index)
        .map_err(|error| format!("the kernel does not list the addresses of {}: {error}", link.name))?;
    Ok(BindAddress::Interface(Interface {
        name: link.name.clone(),
        index: link.index,
        mtu: link.mtu,
        is_up: link.is_up,
        is_wireless: is_wireless(&link.name),
        queues: queues(link),
        addresses: addresses.into_iter().map(|address| address.ip).collect(),
    }))
}

/// Queues that receive: those in use where the driver tells, else those that the interface was made with.
pub(crate) fn queues(link: &Link) -> u32 {
    let used = netlink::ethtool::channels(&link.name).map_or(0, |channels| channels.receiving());
    if used > 0 { used } else { link.rx_queues.max(1) }
}

fn is_wireless(name: &str) -> bool {
    let folder = Path::new("/sys/class/net").join(name);
    folder.join("phy80211").exists() || folder.join("wireless").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_itself_are_the_loopback_interface() {
        for ip in ["127.0.0.1", "::1", "127.9.9.9", "::ffff:127.0.0.1"] {
            assert_eq!(of(ip.parse().unwrap()), Ok(BindAddress::Loopback), "{ip}");
        }
        assert_eq!(named("lo"), Ok(BindAddress::Loopback));
        for ip in ["127.0.0.1", "::1"] {
            assert_eq!(towards(ip.parse().unwrap()), Ok(BindAddress::Loopback), "{ip}");
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_those_that_there_are() {
        let refused = named("eth77").unwrap_err();
        assert!(refused.contains("eth77") && refused.contains("lo"), "{refused}");
        let refused = of("203.0.113.77".parse().unwrap()).unwrap_err();
        assert!(refused.contains("--interface"), "{refused}");
    }
}
