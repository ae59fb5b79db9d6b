//! `--datapath auto`: what this interface gives with each path that may be used, found out in a quarter of a second.
//!
//! ## Where the datagrams go
//! On `lo` to a socket of our own, which merges what arrives as a server or client of ours does; it is emptied between the
//! bursts, outside what is measured.
//!
//! On a real interface they must leave through its driver, or the figures would be of something else, and must reach no host.
//! They go to an empty multicast group: 239.255.84.67 (administratively scoped, RFC 2365) with a TTL of 1, or
//! ff12::5443 (transient, of this link only, RFC 4291), port 9 (discard). No router forwards them; hosts drop them in the
//! interface's filter; a switch may copy them to its other ports. They are zeros, about 270 on each path and 1.6 MB in all, in bursts
//! of 44: less than one page of the web. Wireless interfaces are left in peace: there multicast takes the air from
//! everybody at the lowest rate. Rejected: the gateway's address (a host that must handle them), TTL 0 (the kernel drops
//! them before the driver), made-up Ethernet addresses (floods switches for as long).

use crate::bind_address::{BindAddress, Interface};
use crate::measure::{self, Burst, clock};
use crate::selection::{self, BUDGET, Candidate, Selection};
use base::net::Addresses;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use datapath::{Port as _, Rx as _};
use std::cell::RefCell;
use udp::{BindOptions, UdpPort, Variant};

/// The empty group, IPv4.
const GROUP_V4: Ipv4Addr = Ipv4Addr::new(239, 255, 84, 67);
/// The empty group, IPv6.
const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, 0, 0x5443);
/// Where hosts discard what they get. Source: RFC 863.
const DISCARD: u16 = 9;
/// UDP payload of a datagram that fills an Ethernet frame over IPv4.
const FULL: usize = 1_472;
/// Datagrams of a burst on `lo`: fits the smallest receive buffer that distributions set.
const LOOPBACK_BURST: u64 = 132;
/// Datagrams of a burst on a real interface: one full train.
const BURST: u64 = 44;

/// Measures the kernel's paths in `place`, and `more` beside them.
pub(crate) fn among(place: &BindAddress, more: Vec<Candidate<'_>>) -> Selection {
    match place {
        BindAddress::Loopback => on_loopback(more),
        BindAddress::Interface(interface) => match burst_on(interface) {
            Ok(burst) => on(interface, &burst, more),
            Err(why) => Selection::unmeasured(why),
        },
    }
}

fn on_loopback(more: Vec<Candidate<'_>>) -> Selection {
    let ours = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
    let sink = ours
        .into_iter()
        .find_map(|ip| UdpPort::bind(&BindOptions::new(SocketAddr::new(ip, 0), Variant::Gso)).ok());
    let Some(sink) = sink else { return Selection::unmeasured("no socket can be had on lo") };
    let peer = sink.local_address();
    let sink = RefCell::new(sink);
    let mut contestants: Vec<Candidate<'_>> = Vec::new();
    for variant in Variant::ALL {
        let Some(mut port) = bind(SocketAddr::new(peer.ip(), 0), variant) else { continue };
        let addresses = Addresses { local: port.local_address(), peer };
        let burst = Burst { addresses, size: FULL, datagrams: LOOPBACK_BURST };
        let sink = &sink;
        contestants.push(Candidate {
            choice: variant.into(),
            name: variant.name().to_owned(),
            burst: Box::new(move || {
                let figure = measure::send(&mut port, &burst);
                while sink.borrow_mut().poll()? > 0 {}
                figure
            }),
        });
    }
    contestants.extend(more);
    selection::run("lo", &mut contestants, clock() + BUDGET)
}

/// A port of this variant; none where it would be gso under another name.
fn bind(address: SocketAddr, variant: Variant) -> Option<UdpPort> {
    let port = UdpPort::bind(&BindOptions::new(address, variant)).ok()?;
    (variant != Variant::Uring || port.variant() == variant).then_some(port)
}

fn on(interface: &Interface, burst: &Burst, more: Vec<Candidate<'_>>) -> Selection {
    let mut contestants = Vec::new();
    for variant in Variant::ALL {
        let Some(mut port) = bind(burst.addresses.local, variant) else { continue };
        let burst = Burst {
            addresses: Addresses { local: port.local_address(), peer: burst.addresses.peer },
            ..*burst
        };
        contestants.push(Candidate {
            choice: variant.into(),
            name: variant.name().to_owned(),
            burst: Box::new(move || measure::send(&mut port, &burst)),
        });
    }
    contestants.extend(more);
    selection::run(&interface.name, &mut contestants, clock() + BUDGET)
}

/// What is sent on a real interface, and from where.
///
/// # Errors
/// Why nothing should be sent there.
pub(crate) fn burst_on(interface: &Interface) -> Result<Burst, String> {
    let name = &interface.name;
    if !interface.is_up {
        return Err(format!("{name} is down"));
    }
    if interface.is_wireless {
        return Err(format!("{name} is wireless, where measuring would take the air from others"));
    }
    let v4 = interface.addresses.iter().copied().find(IpAddr::is_ipv4);
    let v6 = interface.addresses.iter().copied().find(IpAddr::is_ipv6);
    let scoped = |ip, port| SocketAddr::V6(SocketAddrV6::new(ip, port, 0, interface.index));
    let (local, peer, headers) = match (v4, v6) {
        (Some(ip), _) => (SocketAddr::new(ip, 0), SocketAddr::from((GROUP_V4, DISCARD)), 28),
        (None, Some(IpAddr::V6(ip))) => (scoped(ip, 0), scoped(GROUP_V6, DISCARD), 48),
        _ => return Err(format!("{name} has no address")),
    };
    let size = (interface.mtu as usize).saturating_sub(headers).min(FULL);
    if size == 0 {
        return Err(format!("{name} has an MTU of {} bytes", interface.mtu));
    }
    Ok(Burst { addresses: Addresses { local, peer }, size, datagrams: BURST })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::DataPathChoice;

    fn interface() -> Interface {
        Interface {
            name: "eth9".to_owned(),
            index: 9,
            mtu: 1_500,
            is_up: true,
            is_wireless: false,
            queues: 1,
            addresses: vec!["fe80::1".parse().unwrap(), "192.0.2.1".parse().unwrap()],
        }
    }

    #[test]
    fn the_loopback_interface_is_measured_within_its_time() {
        let began = clock();
        let verdict = among(&BindAddress::Loopback, Vec::new());
        let took = clock().saturating_since(began);
        assert!(took.as_millis() < 2_000, "{} ms, of which a busy machine explains some", took.as_millis());
        assert!(verdict.measured.len() >= 3, "{verdict}");
        for path in &verdict.measured {
            let cost = path.cost.as_ref().unwrap();
            assert!((1.0..1e6).contains(cost), "{verdict}");
        }
        println!("{verdict}");
    }

    #[test]
    fn what_goes_out_on_a_real_interface_fits_it_and_reaches_nobody() {
        let burst = burst_on(&interface()).unwrap();
        let IpAddr::V4(group) = burst.addresses.peer.ip() else { panic!("IPv4 first") };
        assert!(group.is_multicast() && group.octets()[..2] == [239, 255]);
        assert_eq!((burst.size, burst.addresses.local.ip().to_string().as_str()), (1_472, "192.0.2.1"));

        let v6 = Interface { mtu: 1_280, addresses: vec!["fe80::1".parse().unwrap()], ..interface() };
        let burst = burst_on(&v6).unwrap();
        let SocketAddr::V6(group) = burst.addresses.peer else { panic!("IPv6") };
        assert_eq!((group.ip().segments()[0], group.scope_id(), burst.size), (0xff12, 9, 1_232));
    }

    #[test]
    fn interfaces_that_should_not_be_measured_are_left_alone() {
        for (interface, reason) in [
            (Interface { is_up: false, ..interface() }, "down"),
            (Interface { is_wireless: true, ..interface() }, "wireless"),
            (Interface { addresses: Vec::new(), ..interface() }, "no address"),
        ] {
            let verdict = among(&BindAddress::Interface(interface), Vec::new());
            assert!(verdict.to_string().contains(reason), "{verdict}");
            assert_eq!(verdict.choice, DataPathChoice::Gso);
        }
    }
}
