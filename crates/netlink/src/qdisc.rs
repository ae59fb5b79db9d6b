//! The queueing disciplines of a link.

use crate::conversation::dump;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcMessage};
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
