//! Where a measurement runs: on the loopback interface, or in a lab of two namespaces that a veth pair joins.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::{Child, Command};

use lab::{Lab, LabError, LabOptions, Namespace, Switch};

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

    /// Two namespaces joined by veth, with Ethernet's MTU.
    ///
    /// # Errors
    /// Not allowed, or the kernel refuses.
    pub fn veth() -> Result<Site, LabError> {
        Ok(Site::Veth(Box::new(Lab::new(&LabOptions::default())?)))
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

    /// Whether trains leave the client's end whole, or are cut before: generic AF_XDP at the server's end sees only the
    /// first datagram of a whole one, because without the driver's help the kernel shows it the merged packet.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn let_trains_through(&self, trains: Trains) -> io::Result<()> {
        let switch = if trains == Trains::Whole { Switch::On } else { Switch::Off };
        self.namespace(End::Client)
            .map_or(Ok(()), |namespace| namespace.set_offload("tx-udp-segmentation", switch))
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
