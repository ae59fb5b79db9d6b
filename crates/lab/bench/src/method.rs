//! The ways in which datagrams reach the kernel, as measurements tell them apart.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which system calls, or which rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// One datagram per call.
    Plain,
    /// Many per call: sendmmsg, recvmmsg.
    Mmsg,
    /// Trains: GSO, GRO.
    Gso,
    /// The same, long trains without a copy: io_uring.
    Uring,
    /// AF_XDP without the driver's help.
    XdpGeneric,
    /// AF_XDP in the driver, copying.
    XdpDriver,
}

impl Method {
    /// Those that are compared, dearest first: `uring` is `gso` where both ends are on one machine.
    pub const ALL: [Method; 5] =
        [Method::Plain, Method::Mmsg, Method::Gso, Method::XdpGeneric, Method::XdpDriver];

    /// As it is printed.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Plain => "plain",
            Method::Mmsg => "mmsg",
            Method::Gso => "gso",
            Method::Uring => "uring",
            Method::XdpGeneric => "xdp generic",
            Method::XdpDriver => "xdp driver",
        }
    }

    /// Whether it needs an interface of its own.
    pub const fn is_xdp(self) -> bool {
        matches!(self, Method::XdpGeneric | Method::XdpDriver)
    }

    /// What every name of such a path contains.
    pub const fn family(self) -> &'static str {
        match self {
            Method::Plain => "plain",
            Method::Mmsg => "mmsg",
            Method::Gso => "gso",
            Method::Uring => "uring",
            Method::XdpGeneric | Method::XdpDriver => "xdp",
        }
    }

    /// What `tercel serve` and `tercel get` are told, AF_XDP on `interface`.
    pub fn flags(self, interface: Option<&str>) -> Vec<String> {
        let mode = match self {
            Method::Plain | Method::Mmsg | Method::Gso | Method::Uring => {
                return ["--datapath", self.name()].map(str::to_owned).to_vec();
            }
            Method::XdpGeneric => "generic",
            Method::XdpDriver => "driver",
        };
        let interface = interface.unwrap_or_default();
        ["--datapath", "xdp", "--interface", interface, "--xdp-mode", mode].map(str::to_owned).to_vec()
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
