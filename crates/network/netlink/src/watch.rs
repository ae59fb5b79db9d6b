//! What the kernel tells of addresses, routes and links as they change.
//!
//! The socket is in the multicast groups of rtnetlink. The messages themselves are not kept: who hears of a change asks for the state
//! as it is then, because messages may be lost when many come at once (ENOBUFS), which counts as a change of both kinds.
//!
//! Source: rtnetlink(7).

use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkFlags, LinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_IFADDR, RTMGRP_IPV6_ROUTE.
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;

/// What has happened since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// An address or a route is there that was not, or a link has come up.
    pub added: bool,
    /// An address or a route is gone, or a link has gone down.
    pub removed: bool,
}

impl Changes {
    const UNKNOWN: Changes = Changes { added: true, removed: true };

    fn on_message(&mut self, message: &RouteNetlinkMessage) {
        match message {
            RouteNetlinkMessage::NewAddress(_) | RouteNetlinkMessage::NewRoute(_) => self.added = true,
            RouteNetlinkMessage::DelAddress(_)
            | RouteNetlinkMessage::DelRoute(_)
            | RouteNetlinkMessage::DelLink(_) => self.removed = true,
            RouteNetlinkMessage::NewLink(link) if is_running(link) => self.added = true,
            RouteNetlinkMessage::NewLink(_) => self.removed = true,
            _ => {}
        }
    }
}

fn is_running(link: &LinkMessage) -> bool {
    link.header.flags.contains(LinkFlags::Running)
}

/// Hears of changes in the network namespace of the thread that made it. Its descriptor is readable when there are some.
#[derive(Debug)]
pub struct Watch(Socket);

impl Watch {
    /// Begins to listen.
    ///
    /// # Errors
    /// The kernel's: a sandbox may forbid it.
    pub fn new() -> io::Result<Watch> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, GROUPS))?;
        socket.set_non_blocking(true)?;
        Ok(Watch(socket))
    }

    /// What has happened since the last call. Never blocks.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn take(&mut self) -> io::Result<Changes> {
        let mut changes = Changes::default();
        loop {
            match self.0.recv_from_full() {
                Ok((datagram, _)) => read(&datagram, &mut changes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(changes),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // ENOBUFS: messages were lost.
                Err(error) if error.raw_os_error() == Some(105) => changes = Changes::UNKNOWN,
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Reads the messages of a datagram. What cannot be decoded may be of either kind.
fn read(mut datagram: &[u8], changes: &mut Changes) {
    while let Some(length) = datagram.first_chunk::<4>().map(|bytes| u32::from_ne_bytes(*bytes) as usize) {
        let Some(bytes) = datagram.get(..length).filter(|bytes| bytes.len() >= 16) else { return };
        match NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes).map(|message| message.payload) {
            Ok(NetlinkPayload::InnerMessage(message)) => changes.on_message(&message),
            Ok(_) => {}
            Err(_) => *changes = Changes::UNKNOWN,
        }
        // messages are aligned to four bytes
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
}
