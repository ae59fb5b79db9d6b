//! Where a measurement runs: on the loopback interface, or in a lab of two namespaces that a veth pair joins.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::{Child, Command};

use lab::emulator::{Direction, LinkOptions};
use lab::{Lab, LabError, LabOptions, Namespace, Switch};
use serde::Serialize;

/// Which end of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where servers run.
    Server,
    /// Where clients run.
    Client,
}

/// A place for two processes that talk to each other.
#[derive(Debug)]
pub enum Site {
    /// This machine's loopback interface.
    Loopback,
    /// Two namespaces.
    Veth(Box<Lab>),
}

impl Site {
    /// In a word.
    pub fn name(&self) -> &'static str {
        match self {
            Site::Loopback => "loopback",
            Site::Veth(_) => "veth",
        }
    }

    /// Two namespaces joined by veth, with Ethernet's MTU and as many queues as that.
    ///
    /// # Errors
    /// Not allowed, or the kernel refuses.
    pub fn veth(queues: u32) -> Result<Site, LabError> {
        Ok(Site::Veth(Box::new(Lab::new(&LabOptions { queues, ..LabOptions::default() })?)))
    }

    /// The same with a link between them that loses this share of datagrams, each way.
    ///
    /// # Errors
    /// Not allowed, or the kernel refuses.
    pub fn lossy(loss: f64) -> Result<Site, LabError> {
        let link = Some(LinkOptions { loss, seed: 1, ..LinkOptions::default() });
        Ok(Site::Veth(Box::new(Lab::new(&LabOptions { link, ..LabOptions::default() })?)))
    }

    /// What the link has done to datagrams on their way to the client; nothing where there is no emulated one.
    pub fn towards_client(&self) -> LinkCount {
        let emulator = match self {
            Site::Loopback => None,
            Site::Veth(lab) => lab.emulator(),
        };
        let Some(emulator) = emulator else { return LinkCount::default() };
        // The client is at the left end.
        let counted = emulator.counters(Direction::ToLeft);
        LinkCount {
            entered: counted.datagrams,
            lost: counted.lost,
            dropped: counted.overflowed + counted.refused + counted.eaten + counted.stale,
        }
    }

    fn namespace(&self, end: End) -> Option<&Namespace> {
        match (self, end) {
            (Site::Loopback, _) => None,
            (Site::Veth(lab), End::Server) => Some(lab.server()),
            (Site::Veth(lab), End::Client) => Some(lab.client()),
        }
    }

    /// The IPv4 address of an end.
    pub fn ipv4(&self, end: End) -> IpAddr {
        self.namespace(end).map_or(Ipv4Addr::LOCALHOST, Namespace::ipv4).into()
    }

    /// The IPv6 address of an end.
    pub fn ipv6(&self, end: End) -> IpAddr {
        self.namespace(end).map_or(Ipv6Addr::LOCALHOST, Namespace::ipv6).into()
    }

    /// The interface that AF_XDP may have at an end, if there is one.
    pub fn interface(&self, end: End) -> Option<&str> {
        self.namespace(end).map(Namespace::interface)
    }

    /// Starts a process at an end. In a lab it ends with the lab.
    ///
    /// # Errors
    /// The program does not start.
    pub fn spawn(&self, end: End, command: &mut Command) -> io::Result<Child> {
        match self.namespace(end) {
            Some(namespace) => namespace.spawn(command),
            None => command.spawn(),
        }
    }

    /// Calls `work` at an end: sockets that it opens are there.
    pub fn run<T: Send>(&self, end: End, work: impl FnOnce() -> T + Send) -> T {
        match self.namespace(end) {
            Some(namespace) => namespace.run(work),
            None => work(),
        }
    }

    /// Whether trains leave both ends whole, or are cut before: generic AF_XDP at the other end gets none of a whole one that
    /// is longer than a frame, because without the driver's help the kernel shows it the merged packet.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn let_trains_through(&self, trains: Trains) -> io::Result<()> {
        let switch = if trains == Trains::Whole { Switch::On } else { Switch::Off };
        [End::Client, End::Server]
            .into_iter()
            .filter_map(|end| self.namespace(end))
            .try_for_each(|namespace| namespace.set_offload("tx-udp-segmentation", switch))
    }
}

/// How trains cross a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trains {
    /// Merged, as veth can.
    Whole,
    /// As the packets they are on a wire.
    Cut,
}

/// Datagrams on an emulated link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkCount {
    /// That came to it.
    pub entered: u64,
    /// That it lost on purpose.
    pub lost: u64,
    /// That it had no room for, or could not deliver.
    pub dropped: u64,
}
