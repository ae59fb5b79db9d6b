//! The queueing disciplines of a link.

use crate::conversation::{dump, order};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::io;

/// The kinds of a link's queueing disciplines, in the kernel's order, each once: `["fq"]`, `["mq", "fq"]` on a card
/// with several queues, `["noqueue"]` or nothing on an interface without a queue.
///
/// # Errors
/// The kernel's.
pub fn qdiscs(ifindex: u32) -> io::Result<Vec<String>> {
    let request = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
    let mut kinds: Vec<String> = Vec::new();
    for answer in dump(NETLINK_ROUTE, request)? {
        let RouteNetlinkMessage::NewQueueDiscipline(message) = answer else { continue };
        if u32::try_from(message.header.index) != Ok(ifindex) {
            continue;
        }
        for attribute in message.attributes {
            if let TcAttribute::Kind(kind) = attribute
                && !kinds.contains(&kind)
            {
                kinds.push(kind);
            }
        }
    }
    Ok(kinds)
}

/// Gives a link a queueing discipline of this kind for all that leaves by it, in place of what it has: "fq", "pfifo".
///
/// # Errors
/// The kernel's: `ENOENT` if it has no such discipline; CAP_NET_ADMIN is needed.
pub fn set_qdisc(ifindex: u32, kind: &str) -> io::Result<()> {
    let mut message = TcMessage::default();
    message.header.index = i32::try_from(ifindex).map_err(io::Error::other)?;
    message.header.parent = TcHandle::ROOT;
    message.attributes.push(TcAttribute::Kind(kind.to_owned()));
    let message = RouteNetlinkMessage::NewQueueDiscipline(message);
    order(NETLINK_ROUTE, message, NLM_F_CREATE | NLM_F_REPLACE)
}
