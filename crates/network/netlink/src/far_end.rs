//! The other end of a veth pair, which may be in another network namespace.

use crate::conversation::{ask, dump};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::io;

/// The other end of a veth pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FarEnd {
    /// Its number in its namespace.
    index: u32,
    /// The number by which this namespace knows that one; `None`: it is this one.
    namespace: Option<i32>,
}

impl FarEnd {
    /// The other end of the interface `name`; `None` if it has none.
    ///
    /// # Errors
    /// The kernel's.
    pub fn of(name: &str) -> io::Result<Option<FarEnd>> {
        let answers = dump(NETLINK_ROUTE, RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
        let found = answers.into_iter().find_map(|answer| match answer {
            RouteNetlinkMessage::NewLink(message) if is_named(&message, name) => Some(message),
            _ => None,
        });
        let mut far = FarEnd { index: 0, namespace: None };
        for attribute in found.into_iter().flat_map(|message| message.attributes) {
            match attribute {
                LinkAttribute::Link(index) => far.index = index,
                LinkAttribute::LinkNetNsId(id) => far.namespace = Some(id),
                _ => {}
            }
        }
        Ok((far.index > 0).then_some(far))
    }

    /// The largest network-layer packet that it takes, in bytes.
    ///
    /// # Errors
    /// The kernel's: `ENODEV` once it is gone.
    pub fn mtu(self) -> io::Result<u32> {
        let mut message = LinkMessage::default();
        message.header.index = self.index;
        message.attributes.extend(self.namespace.map(LinkAttribute::IfNetnsId));
        let RouteNetlinkMessage::NewLink(link) = ask(NETLINK_ROUTE, RouteNetlinkMessage::GetLink(message))?
        else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let mtu = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::Mtu(mtu) => Some(*mtu),
            _ => None,
        });
        mtu.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

fn is_named(message: &LinkMessage, name: &str) -> bool {
    message.attributes.iter().any(|attribute| matches!(attribute, LinkAttribute::IfName(own) if own == name))
}
