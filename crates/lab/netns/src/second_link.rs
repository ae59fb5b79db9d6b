//! A second emulated link between the sides of a lab, for clients that use two paths at once.
//!
//! ```text
//! server1 198.18.1.1 ==veth== to_server1 <- link emulator -> to_client1 ==veth== client1 198.18.1.2
//! ```
//!
//! The client reaches all addresses of the server over it, so what leaves by `client1` arrives whichever of them it is for. IPv4 only.

use crate::emulator::{Direction, Emulator, EmulatorOptions, LinkOptions};
use crate::error::{LabError, while_doing};
use crate::laboratory::{Lab, move_link, quieten, until_running};
use netlink::VethOptions;
use std::io;
use std::net::Ipv4Addr;

/// The interface of the server's side, and that of the client's.
const SERVER: &str = "server1";
const CLIENT: &str = "client1";
/// The ends in the wire.
const TO_SERVER: &str = "to_server1";
const TO_CLIENT: &str = "to_client1";

/// A second link. It ends when this is dropped, or the lab is.
#[derive(Debug)]
pub struct SecondLink {
    emulator: Emulator,
}

impl SecondLink {
    /// Adds it to a lab with an emulated link. It begins as `link` says, in both directions.
    ///
    /// # Errors
    /// The lab's sides are joined directly, or what the kernel refused.
    pub fn new(lab: &Lab, link: &LinkOptions) -> Result<SecondLink, LabError> {
        let Some((first, wire)) = lab.wire() else {
            return Err(LabError::Option {
                name: "link",
                permitted: "an emulated one, for a second link beside it",
            });
        };
        let laid = wire.run(|| {
            for (near, far, side) in [(TO_SERVER, SERVER, lab.server()), (TO_CLIENT, CLIENT, lab.client())] {
                netlink::create_veth(&VethOptions { names: [near, far], queues: 1, mtu: 1_500, macs: None })?;
                move_link(far, side)?;
                quieten(near);
                netlink::set_up(netlink::link_by_name(near)?.index)?;
            }
            Ok(())
        });
        while_doing(laid, "cannot lay a second link")?;
        // The client's network includes that of the first link: the routes of that one are narrower, and come first.
        for (side, name, last, prefix) in [(lab.server(), SERVER, 1, 24), (lab.client(), CLIENT, 2, 16)] {
            let configured = side.try_run(|| {
                let index = netlink::link_by_name(name)?.index;
                quieten(name);
                netlink::set_up(index)?;
                netlink::add_address(index, Ipv4Addr::new(198, 18, 1, last).into(), prefix)
            });
            while_doing(configured, format!("cannot configure {name}"))?;
        }
        let up = wire.run(|| [TO_SERVER, TO_CLIENT].into_iter().try_for_each(until_running));
        while_doing(up, "the second link does not come up")?;
        for (side, name) in [(lab.server(), SERVER), (lab.client(), CLIENT)] {
            while_doing(side.try_run(|| until_running(name)), format!("{name} does not come up"))?;
        }
        let seed = first.link(Direction::ToRight).seed.wrapping_add(link.seed).wrapping_add(2);
        let options = EmulatorOptions {
            left: TO_CLIENT.to_owned(),
            right: TO_SERVER.to_owned(),
            to_right: LinkOptions { seed, ..link.clone() },
            to_left: LinkOptions { seed: seed.wrapping_add(1), ..link.clone() },
            ..EmulatorOptions::default()
        };
        let started: io::Result<_> = wire.run(|| Ok(Emulator::start(&options)));
        let emulator = while_doing(started, "cannot enter the wire")?.map_err(LabError::Emulator)?;
        Ok(SecondLink { emulator })
    }

    /// To change the link and to read its counters. Its left end is the client's side.
    #[must_use]
    pub fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    /// The interface of the client's side, which has 198.18.1.2.
    #[must_use]
    pub fn client_interface(&self) -> &'static str {
        CLIENT
    }
}
