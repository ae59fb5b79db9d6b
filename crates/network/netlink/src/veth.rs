//! A veth pair: two Ethernet interfaces, what is sent into one comes out of the other.

use crate::conversation::order;
use crate::mac::Mac;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoData, InfoKind, InfoVeth, LinkAttribute, LinkInfo, LinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::io;

/// What a veth pair is made of; both ends are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VethOptions<'a> {
    /// The names of the two ends, up to 15 bytes each.
    pub names: [&'a str; 2],
    /// Receive queues and transmit queues of each end, from 1.
    pub queues: u32,
    /// The largest packet in bytes without the Ethernet header, 68 to 65,535.
    pub mtu: u32,
    /// The Ethernet addresses of the two ends; `None` lets the kernel draw them.
    pub macs: Option<[Mac; 2]>,
}

/// Makes a veth pair in this namespace; both ends are switched off.
///
/// # Errors
/// The kernel's: `EEXIST` if a name is taken, `ERANGE` or `EINVAL` for an MTU, name or number of queues out of range;
/// CAP_NET_ADMIN is needed.
pub fn create_veth(options: &VethOptions<'_>) -> io::Result<()> {
    let [near, far] = options.names;
    let macs = options.macs.map_or([None, None], |[near, far]| [Some(near), Some(far)]);
    let peer = end(far, macs[1], options);
    let mut message = end(near, macs[0], options);
    message.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
    ]));
    order(NETLINK_ROUTE, RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
}

fn end(name: &str, mac: Option<Mac>, options: &VethOptions<'_>) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(name.to_owned()),
        LinkAttribute::Mtu(options.mtu),
        LinkAttribute::NumRxQueues(options.queues),
        LinkAttribute::NumTxQueues(options.queues),
    ];
    message.attributes.extend(mac.map(|mac| LinkAttribute::Address(mac.0.to_vec())));
    message
}
