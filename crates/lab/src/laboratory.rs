//! A lab: a server's side and a client's side, joined by a veth pair.
//!
//! ```text
//! server0 198.18.0.1 fd00::1  ===veth===  198.18.0.2 fd00::2 client0
//! ```
//!
//! The addresses are of the ranges for benchmarks (RFC 2544) and for private use (RFC 4193), so a lab collides with
//! no real network even when a namespace is given a way out. Each side knows the other's Ethernet address: neither ARP
//! nor neighbour discovery delays a first packet or costs a packet that a test counts.

use crate::error::{LabError, while_doing};
use crate::namespace::{Namespace, PREFIX, Plan};
use netlink::ethtool::Switch;
use netlink::{Mac, VethOptions};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

const SERVER: Plan = Plan {
    interface: "server0",
    mac: Mac([2, 0, 0, 0, 0, 1]),
    ipv4: Ipv4Addr::new(198, 18, 0, 1),
    ipv6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1),
};
const CLIENT: Plan = Plan {
    interface: "client0",
    mac: Mac([2, 0, 0, 0, 0, 2]),
    ipv4: Ipv4Addr::new(198, 18, 0, 2),
    ipv6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2),
};

/// What a lab is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct LabOptions {
    /// The largest packet in bytes without the Ethernet header: 1280 (IPv6 needs it) to 65,535.
    pub mtu: u32,
    /// Receive and transmit queues of each interface: 1 to 64.
    pub queues: u32,
    /// Whether trains of datagrams (GSO) cross the link whole. Off, they are cut where they are sent; generic XDP at
    /// the other end needs that.
    pub udp_segmentation: Switch,
    /// Whether each side is told the other's Ethernet address; otherwise they ask.
    pub known_neighbours: bool,
}

impl Default for LabOptions {
    fn default() -> Self {
        LabOptions { mtu: 1500, queues: 1, udp_segmentation: Switch::On, known_neighbours: true }
    }
}

impl LabOptions {
    fn check(&self) -> Result<(), LabError> {
        if !(1280..=65_535).contains(&self.mtu) {
            return Err(LabError::Option { name: "mtu", permitted: "1280 to 65535" });
        }
        if !(1..=64).contains(&self.queues) {
            return Err(LabError::Option { name: "queues", permitted: "1 to 64" });
        }
        Ok(())
    }
}

/// Two network namespaces joined by a link; they end when this is dropped.
#[derive(Debug)]
pub struct Lab {
    server: Namespace,
    client: Namespace,
}

impl Lab {
    /// Builds a lab; both sides can talk when it returns.
    ///
    /// # Errors
    /// [`LabError::NotAllowed`] without CAP_SYS_ADMIN and CAP_NET_ADMIN; else what was out of range or what the kernel
    /// refused. Nothing remains of a lab that could not be finished.
    pub fn new(options: &LabOptions) -> Result<Lab, LabError> {
        options.check()?;
        let (server, client) = (Namespace::new(SERVER)?, Namespace::new(CLIENT)?);
        let joined = server.try_run(|| {
            veth(options, &SERVER, (CLIENT.interface, CLIENT.mac))?;
            move_link(CLIENT.interface, &client)
        });
        while_doing(joined, "cannot join the namespaces by veth")?;
        for (side, other) in [(&server, &CLIENT), (&client, &SERVER)] {
            let configured = side.try_run(|| configure(side, other, options));
            while_doing(configured, format!("cannot configure {}", side.interface()))?;
        }
        Ok(Lab { server, client })
    }

    /// The server's side: 198.18.0.1 and fd00::1 on `server0`.
    #[must_use]
    pub fn server(&self) -> &Namespace {
        &self.server
    }

    /// The client's side: 198.18.0.2 and fd00::2 on `client0`.
    #[must_use]
    pub fn client(&self) -> &Namespace {
        &self.client
    }
}

fn veth(options: &LabOptions, near: &Plan, far: (&str, Mac)) -> io::Result<()> {
    netlink::create_veth(&VethOptions {
        names: [near.interface, far.0],
        queues: options.queues,
        mtu: options.mtu,
        macs: Some([near.mac, far.1]),
    })
}

fn move_link(name: &str, to: &Namespace) -> io::Result<()> {
    netlink::move_to_namespace(netlink::link_by_name(name)?.index, to)
}

/// Brings a side's interface up with all that it needs; called inside its namespace.
fn configure(side: &Namespace, other: &Plan, options: &LabOptions) -> io::Result<()> {
    let index = netlink::link_by_name(side.interface())?.index;
    quieten(side.interface());
    netlink::set_up(index)?;
    netlink::add_address(index, side.ipv4().into(), PREFIX.0)?;
    netlink::add_address(index, side.ipv6().into(), PREFIX.1)?;
    if options.known_neighbours {
        netlink::add_neighbour(index, other.ipv4.into(), other.mac)?;
        netlink::add_neighbour(index, other.ipv6.into(), other.mac)?;
    }
    if options.udp_segmentation == Switch::Off {
        netlink::ethtool::set_feature(side.interface(), "tx-udp-segmentation", Switch::Off)?;
    }
    Ok(())
}

/// Stops what the kernel sends of its own accord: a link-local address with its announcements, and questions for
/// routers. Where /proc/sys may not be written the link is a little less quiet, and that is all.
fn quieten(interface: &str) {
    let settings = format!("/proc/sys/net/ipv6/conf/{interface}");
    for (name, value) in [("addr_gen_mode", "1"), ("router_solicitations", "0"), ("accept_ra", "0")] {
        let _ = std::fs::write(format!("{settings}/{name}"), value);
    }
}
