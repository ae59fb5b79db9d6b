//! Where a measurement runs: on the loopback interface, or in a lab of two namespaces that a veth pair joins.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command};

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
}

impl Site {
    /// In a word.
    pub fn name(&self) -> &'static str {
        match self {
            Site::Loopback => "loopback",
        }
    }

    /// The address of an end.
    pub fn ipv4(&self, _: End) -> IpAddr {
        match self {
            Site::Loopback => Ipv4Addr::LOCALHOST.into(),
        }
    }

    /// The interface that AF_XDP may have at an end, if there is one.
    pub fn interface(&self, _: End) -> Option<&str> {
        match self {
            Site::Loopback => None,
        }
    }

    /// Starts a process at an end.
    ///
    /// # Errors
    /// The program does not start.
    pub fn spawn(&self, _: End, command: &mut Command) -> io::Result<Child> {
        match self {
            Site::Loopback => command.spawn(),
        }
    }
}
