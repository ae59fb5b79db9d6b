//! Links: what interfaces exist, and bringing them up, resizing, moving and deleting them.

use crate::conversation::{dump, order};
use crate::mac::Mac;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    LinkAttribute, LinkFlags, LinkInfo, LinkMessage, LinkXdp, XdpAttached as KernelXdp,
};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its number in this namespace, from 1.
    pub index: u32,
    /// Its name, up to 15 bytes.
    pub name: String,
    /// Its Ethernet address; `None` where it has none (a tunnel) or one of another length.
    pub mac: Option<Mac>,
    /// The largest network-layer packet in bytes; the Ethernet header comes on top.
    pub mtu: u32,
    /// Whether it was switched on.
    pub is_up: bool,
    /// Whether it was switched on, has a carrier (a veth's other end is up, a cable is plugged in) and passes packets. The
    /// last may come up to a second later; [`crate::ethtool::has_carrier`] hurries it.
    pub is_running: bool,
    /// Whether it is the loopback interface.
    pub is_loopback: bool,
    /// The kind of a software interface ("veth", "tun", "bridge"); `None` for hardware and loopback.
    pub kind: Option<String>,
    /// The bus that the device below it is on ("pci", "virtio", "usb"); `None` for software interfaces and before Linux 5.14.
    pub bus: Option<String>,
    /// Receive queues it was made with.
    pub rx_queues: u32,
    /// Transmit queues it was made with.
    pub tx_queues: u32,
    /// The XDP program attached to it, if any.
    pub xdp: Option<XdpAttached>,
}

/// An XDP program that is attached to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpAttached {
    /// Where it runs.
    pub mode: XdpMode,
    /// The program's number in the kernel; 0 when the kernel names none (several programs).
    pub program_id: u32,
}

/// Where an XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver, before a socket buffer exists.
    Driver,
    /// In the stack, on socket buffers.
    Generic,
    /// On the card.
    Hardware,
    /// In more than one of these places.
    Several,
}

/// All links of this namespace.
///
/// # Errors
/// The kernel's.
pub fn links() -> io::Result<Vec<Link>> {
    let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
    let answers = dump(NETLINK_ROUTE, request)?;
    Ok(answers
        .into_iter()
        .filter_map(|answer| match answer {
            RouteNetlinkMessage::NewLink(message) => Some(read(message)),
            _ => None,
        })
        .collect())
}

/// The link of this name.
///
/// # Errors
/// `NotFound` if there is none in this namespace; else the kernel's.
pub fn link_by_name(name: &str) -> io::Result<Link> {
    links()?.into_iter().find(|link| link.name == name).ok_or_else(|| no_link(name))
}

/// The link of this number.
///
/// # Errors
/// `NotFound` if there is none in this namespace; else the kernel's.
pub fn link_by_index(index: u32) -> io::Result<Link> {
    links()?.into_iter().find(|link| link.index == index).ok_or_else(|| no_link(&format!("number {index}")))
}

fn no_link(which: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no interface {which}"))
}

fn read(message: LinkMessage) -> Link {
    let flags = message.header.flags;
    let mut link = Link {
        index: message.header.index,
        name: String::new(),
        mac: None,
        mtu: 0,
        is_up: flags.contains(LinkFlags::Up),
        is_running: flags.contains(LinkFlags::Up | LinkFlags::LowerUp | LinkFlags::Running),
        is_loopback: flags.contains(LinkFlags::Loopback),
        kind: None,
        bus: None,
        rx_queues: 1,
        tx_queues: 1,
        xdp: None,
    };
    for attribute in message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name = name,
            LinkAttribute::Address(bytes) => link.mac = Mac::from_bytes(&bytes),
            LinkAttribute::Mtu(mtu) => link.mtu = mtu,
            LinkAttribute::NumRxQueues(queues) => link.rx_queues = queues,
            LinkAttribute::NumTxQueues(queues) => link.tx_queues = queues,
            LinkAttribute::LinkInfo(infos) => link.kind = kind(&infos),
            LinkAttribute::ParentDevBusName(bus) => link.bus = Some(bus),
            LinkAttribute::Xdp(xdp) => link.xdp = attached(&xdp),
            _ => {}
        }
    }
    link
}

fn kind(infos: &[LinkInfo]) -> Option<String> {
    infos.iter().find_map(|info| match info {
        LinkInfo::Kind(kind) => Some(kind.to_string()),
        _ => None,
    })
}

fn attached(xdp: &[LinkXdp]) -> Option<XdpAttached> {
    let mode = xdp.iter().find_map(|attribute| match attribute {
        LinkXdp::Attached(KernelXdp::Driver) => Some(XdpMode::Driver),
        LinkXdp::Attached(KernelXdp::SocketBuffer) => Some(XdpMode::Generic),
        LinkXdp::Attached(KernelXdp::Hardware) => Some(XdpMode::Hardware),
        LinkXdp::Attached(KernelXdp::Multiple) => Some(XdpMode::Several),
        _ => None,
    })?;
    let program_id = xdp.iter().find_map(|attribute| match attribute {
        LinkXdp::ProgId(id) => Some(*id),
        _ => None,
    });
    Some(XdpAttached { mode, program_id: program_id.unwrap_or(0) })
}

fn change(index: u32, prepare: impl FnOnce(&mut LinkMessage)) -> io::Result<()> {
    let mut message = LinkMessage::default();
    message.header.index = index;
    prepare(&mut message);
    order(NETLINK_ROUTE, RouteNetlinkMessage::SetLink(message), 0)
}

/// Switches a link on.
///
/// # Errors
/// The kernel's; CAP_NET_ADMIN is needed.
pub fn set_up(index: u32) -> io::Result<()> {
    change(index, |message| {
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
    })
}

/// Sets the largest packet of a link, in bytes without the Ethernet header.
///
/// # Errors
/// The kernel's: `EINVAL` outside what the driver can do, and while an XDP program that needs small packets is
/// attached; CAP_NET_ADMIN is needed.
pub fn set_mtu(index: u32, mtu: u32) -> io::Result<()> {
    change(index, |message| message.attributes.push(LinkAttribute::Mtu(mtu)))
}

/// Moves a link into the network namespace that `namespace` refers to. It arrives switched off and without addresses,
/// under its name, and may get another number.
///
/// # Errors
/// The kernel's: `EEXIST` if the name is taken there; CAP_NET_ADMIN is needed in both.
pub fn move_to_namespace(index: u32, namespace: impl AsFd) -> io::Result<()> {
    let fd = namespace.as_fd().as_raw_fd();
    change(index, |message| message.attributes.push(LinkAttribute::NetNsFd(fd)))
}

/// Deletes a link; a veth takes its other end with it.
///
/// # Errors
/// The kernel's: `EOPNOTSUPP` for hardware; CAP_NET_ADMIN is needed.
pub fn delete_link(index: u32) -> io::Result<()> {
    let mut message = LinkMessage::default();
    message.header.index = index;
    order(NETLINK_ROUTE, RouteNetlinkMessage::DelLink(message), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_tells_the_bus_that_it_is_on() {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName("eth9".to_owned()));
        assert_eq!(read(message.clone()).bus, None);
        message.attributes.push(LinkAttribute::ParentDevBusName("virtio".to_owned()));
        assert_eq!(read(message).bus.as_deref(), Some("virtio"));
    }
}
