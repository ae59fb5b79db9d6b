//! A lab: a server's side and a client's side, joined by a veth pair, or by two with an emulated link between them.
//!
//! ```text
//! direct:  server0 198.18.0.1 fd00::1 ==========veth========== client0 198.18.0.2 fd00::2
//! wire:    server0 ==veth== to_server <- link emulator -> to_client ==veth== client0
//! ```
//!
//! The wire is a third namespace, in which the emulator's thread passes whole Ethernet frames from one interface to the
//! other; neither side can tell it from a cable but by what it does to packets.
//!
//! The addresses are of the ranges for benchmarks (RFC 2544) and for private use (RFC 4193), so a lab collides with
//! no real network even when a namespace is given a way out. Each side knows the other's Ethernet address: neither ARP
//! nor neighbour discovery delays a first packet or costs a packet that a test counts.

use crate::emulator::{Emulator, EmulatorOptions, LinkOptions, OUTSIDE};
use crate::error::{LabError, while_doing};
use crate::host_namespace::HostNamespace;
use crate::namespace::{InterfacePlan, Namespace, PREFIX};
use netlink::ethtool::Switch;
use netlink::{Mac, VethOptions};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const SERVER: InterfacePlan = InterfacePlan {
    interface: "server0",
    mac: Mac([2, 0, 0, 0, 0, 1]),
    ipv4: Ipv4Addr::new(198, 18, 0, 1),
    ipv6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1),
};
const CLIENT: InterfacePlan = InterfacePlan {
    interface: "client0",
    mac: Mac([2, 0, 0, 0, 0, 2]),
    ipv4: Ipv4Addr::new(198, 18, 0, 2),
    ipv6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2),
};

/// The ends of the two veth pairs that lie in the wire.
const TO_SERVER: (&str, Mac) = ("to_server", Mac([2, 0, 0, 0, 1, 1]));
const TO_CLIENT: (&str, Mac) = ("to_client", Mac([2, 0, 0, 0, 1, 2]));

/// What a lab is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct LabOptions {
    /// The largest packet in bytes without the Ethernet header: 1280 (IPv6 needs it) to 65,535.
    pub mtu: u32,
    /// Receive and transmit queues of each interface: 1 to 64.
    pub queues: u32,
    /// What the link does to packets, in both directions alike; `None` joins the sides directly. Each direction draws
    /// its own luck from the seed. [`Lab::emulator`] changes it while the lab runs, for one direction too.
    pub link: Option<LinkOptions>,
    /// How much of each wait the emulator spends awake, see [`EmulatorOptions::spin`].
    pub spin: Duration,
    /// Whether trains of datagrams (GSO) cross the link whole. Off, they are cut where they are sent; generic XDP at
    /// the other end needs that.
    pub udp_segmentation: Switch,
    /// Whether each side is told the other's Ethernet address; otherwise they ask.
    pub known_neighbours: bool,
}

impl Default for LabOptions {
    fn default() -> Self {
        LabOptions {
            mtu: 1500,
            queues: 1,
            link: None,
            spin: Duration::ZERO,
            udp_segmentation: Switch::On,
            known_neighbours: true,
        }
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
    /// Before the others, so that it ends first.
    wire: Option<(Emulator, HostNamespace)>,
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
        let wire = match &options.link {
            None => None,
            Some(link) => Some((HostNamespace::new("wire")?, link)),
        };
        let joined = match &wire {
            None => server.try_run(|| join(options, &client)),
            Some((host_namespace, _)) => host_namespace.run(|| lay(options, &server, &client)),
        };
        while_doing(joined, "cannot join the namespaces by veth")?;
        for (side, other) in [(&server, &CLIENT), (&client, &SERVER)] {
            let configured = side.try_run(|| configure(side, other, options));
            while_doing(configured, format!("cannot configure {}", side.interface()))?;
        }
        if let Some((host_namespace, _)) = &wire {
            let running =
                host_namespace.run(|| [TO_SERVER.0, TO_CLIENT.0].into_iter().try_for_each(until_running));
            while_doing(running, "the wire does not come up")?;
        }
        for side in [&server, &client] {
            let ready = side.try_run(|| {
                until_running(side.interface())?;
                side.addresses().into_iter().try_for_each(until_local)
            });
            while_doing(ready, format!("{} does not come up", side.interface()))?;
        }
        let wire = match wire {
            None => None,
            Some((host_namespace, link)) => {
                Some((emulate(&host_namespace, link, options.spin)?, host_namespace))
            }
        };
        Ok(Lab { wire, server, client })
    }

    /// The link between the sides, to change it and to read its counters; `None` if they are joined directly. Its
    /// left end is the client's side.
    #[must_use]
    pub fn emulator(&self) -> Option<&Emulator> {
        self.wire.as_ref().map(|(emulator, _)| emulator)
    }

    /// The wire, and the emulator in it.
    pub(crate) fn wire(&self) -> Option<&(Emulator, HostNamespace)> {
        self.wire.as_ref()
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

/// Makes the only pair and gives its far end to the client's side; called inside the server's.
fn join(options: &LabOptions, client: &Namespace) -> io::Result<()> {
    veth(options, (SERVER.interface, SERVER.mac), (CLIENT.interface, CLIENT.mac))?;
    move_link(CLIENT.interface, client)
}

/// Makes the wire's two pairs and gives their far ends to the sides; called inside the wire.
fn lay(options: &LabOptions, server: &Namespace, client: &Namespace) -> io::Result<()> {
    for (near, side) in [(TO_SERVER, server), (TO_CLIENT, client)] {
        veth(options, near, (side.interface(), side.mac()))?;
        move_link(side.interface(), side)?;
        quieten(near.0);
        netlink::set_up(netlink::link_by_name(near.0)?.index)?;
    }
    Ok(())
}

/// Starts the emulator in the wire. Both ends are up when this is called.
fn emulate(host_namespace: &HostNamespace, link: &LinkOptions, spin: Duration) -> Result<Emulator, LabError> {
    let options = EmulatorOptions {
        left: TO_CLIENT.0.to_owned(),
        right: TO_SERVER.0.to_owned(),
        to_right: link.clone(),
        to_left: LinkOptions { seed: link.seed.wrapping_add(1), ..link.clone() },
        spin,
    };
    let started = host_namespace.run(|| Ok(Emulator::start(&options)));
    while_doing(started, "cannot enter the wire")?.map_err(LabError::Emulator)
}

fn veth(options: &LabOptions, near: (&str, Mac), far: (&str, Mac)) -> io::Result<()> {
    netlink::create_veth(&VethOptions {
        names: [near.0, far.0],
        queues: options.queues,
        mtu: options.mtu,
        macs: Some([near.1, far.1]),
    })
}

pub(crate) fn move_link(name: &str, to: &Namespace) -> io::Result<()> {
    netlink::move_to_namespace(netlink::link_by_name(name)?.index, to)
}

/// Brings a side's interface up with all that it needs; called inside its namespace.
fn configure(side: &Namespace, other: &InterfacePlan, options: &LabOptions) -> io::Result<()> {
    let index = netlink::link_by_name(side.interface())?.index;
    quieten(side.interface());
    netlink::set_up(index)?;
    netlink::add_address(index, side.ipv4().into(), PREFIX.0)?;
    netlink::add_address(index, side.ipv6().into(), PREFIX.1)?;
    if options.known_neighbours {
        netlink::add_neighbour(index, other.ipv4.into(), other.mac)?;
        netlink::add_neighbour(index, other.ipv6.into(), other.mac)?;
        // Where the emulator's address translator may move the client to.
        let [a, b, c, _] = other.ipv4.octets();
        for octet in OUTSIDE {
            netlink::add_neighbour(index, Ipv4Addr::new(a, b, c, octet).into(), other.mac)?;
        }
    }
    if options.udp_segmentation == Switch::Off {
        netlink::ethtool::set_feature(side.interface(), "tx-udp-segmentation", Switch::Off)?;
    }
    Ok(())
}

/// Waits until an interface whose other end is up takes packets. The end that was up first gets its carrier from the
/// other and drops what is sent until the kernel has seen to that, which may take a second without a packet.
pub(crate) fn until_running(interface: &str) -> io::Result<()> {
    until(|| Ok(netlink::ethtool::has_carrier(interface)? && netlink::link_by_name(interface)?.is_running))
}

/// Waits until packets to an address of this namespace are received. For IPv6 a worker of the kernel sees to that some
/// time after the address was given; until then they are dropped.
fn until_local(ip: IpAddr) -> io::Result<()> {
    until(|| Ok(netlink::route_to(ip).is_ok_and(|route| route.is_local)))
}

fn until(is_done: impl Fn() -> io::Result<bool>) -> io::Result<()> {
    const STEP: Duration = Duration::from_millis(1);
    for _ in 0..5_000 {
        if is_done()? {
            return Ok(());
        }
        std::thread::sleep(STEP);
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Stops what the kernel sends of its own accord: a link-local address with its announcements, and questions for
/// routers. Where /proc/sys may not be written the link is a little less quiet, and that is all.
pub(crate) fn quieten(interface: &str) {
    let settings = format!("/proc/sys/net/ipv6/conf/{interface}");
    for (name, value) in [("addr_gen_mode", "1"), ("router_solicitations", "0"), ("accept_ra", "0")] {
        let _ = std::fs::write(format!("{settings}/{name}"), value);
    }
}
