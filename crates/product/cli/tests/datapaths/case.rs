//! Every case: a place, the paths of server and client, workers, and what is done. Adding a row adds a test.

use crate::{rebinding, soak, transfers, upgrade};
use bench::method::Method;
use bench::site::{Site, Trains};
use std::sync::atomic::AtomicBool;

/// Where a case runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestNetwork {
    Loopback,
    /// Two namespaces joined by veth.
    Veth,
    /// The same with an MTU of 9,000.
    Jumbo,
    /// The same with Ethernet's, and a link that loses one datagram of a hundred.
    Lossy,
}

/// Who decides which worker gets a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steering {
    /// What the server thinks best.
    Auto,
    Ebpf,
    Classic,
    HandOff,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Files, a range, a generated body, what is not there; over IPv4 and IPv6.
    Transfers,
    /// A file while the client's port changes again and again.
    Rebinding,
    /// Ten seconds at full rate.
    Soak,
    /// Other processes take the place of the server.
    Upgrade,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) place: TestNetwork,
    pub(crate) server: Method,
    pub(crate) client: Method,
    pub(crate) workers: u8,
    pub(crate) steering: Steering,
    pub(crate) deed: Deed,
}

impl TestNetwork {
    pub(crate) fn site(self) -> Result<Site, String> {
        let site = match self {
            TestNetwork::Loopback => Ok(Site::Loopback),
            TestNetwork::Veth => Site::veth(2),
            TestNetwork::Jumbo => Site::veth_of_mtu(9_000),
            TestNetwork::Lossy => Site::lossy(0.01),
        };
        site.map_err(|error| error.to_string())
    }

    fn name(self) -> &'static str {
        match self {
            TestNetwork::Loopback => "loopback",
            TestNetwork::Veth => "veth",
            TestNetwork::Jumbo => "veth, MTU 9,000",
            TestNetwork::Lossy => "veth, 1 % loss",
        }
    }

    /// Packets must become at least as long as this, in bytes of UDP payload: the largest that IPv6 has there.
    pub(crate) fn least_packet(self) -> u64 {
        match self {
            TestNetwork::Jumbo => 8_952,
            TestNetwork::Loopback | TestNetwork::Veth | TestNetwork::Lossy => 0,
        }
    }
}

impl Steering {
    /// What the server is told.
    pub(crate) fn flag(self) -> &'static str {
        match self {
            Steering::Auto => "auto",
            Steering::Ebpf => "ebpf",
            Steering::Classic => "classic",
            Steering::HandOff => "hand-off",
        }
    }
}

impl Case {
    pub(crate) fn name(&self) -> String {
        let deed = match self.deed {
            Deed::Transfers => "transfers",
            Deed::Rebinding => "the client's port changes",
            Deed::Soak => "soak",
            Deed::Upgrade => "upgrades",
        };
        let workers = match (self.workers, self.steering) {
            (1, _) => "1 worker".to_owned(),
            (workers, Steering::Auto) => format!("{workers} workers"),
            (workers, steering) => format!("{workers} workers by {}", steering.flag()),
        };
        format!(
            "{}: server {}, client {}, {workers}: {deed}",
            self.place.name(),
            self.server.name(),
            self.client.name()
        )
    }

    pub(crate) fn run(&self, site: &Site, never: &AtomicBool) -> Result<String, String> {
        if [self.server, self.client].contains(&Method::Uring) && !lends() {
            requirements::missing("io_uring that lends memory to sockets is not there (Linux 6.15)");
            return Ok(", which did not run".to_owned());
        }
        let sees_pieces = [self.server, self.client].contains(&Method::XdpGeneric);
        let trains = if sees_pieces { Trains::Cut } else { Trains::Whole };
        site.let_trains_through(trains).map_err(|error| format!("cannot switch offloads: {error}"))?;
        match self.deed {
            Deed::Transfers => transfers::run(self, site, never),
            Deed::Rebinding => rebinding::run(self, site, never),
            Deed::Soak => soak::run(self, site, never),
            Deed::Upgrade => upgrade::run(self, site, never),
        }
    }

    /// What the server is told beside its path.
    pub(crate) fn server_flags(&self) -> Vec<&'static str> {
        match self.workers {
            1 => Vec::new(),
            _ => vec!["--workers", "2", "--steering", self.steering.flag()],
        }
    }
}

/// Whether this system can send without a copy.
fn lends() -> bool {
    let options = udp::BindOptions::new(([127, 0, 0, 1], 0).into(), udp::Variant::Uring);
    udp::UdpPort::bind(&options).is_ok_and(|port| port.variant() == udp::Variant::Uring)
}

/// The rows.
pub(crate) fn all() -> Vec<Case> {
    use Method::{Gso, Mmsg, Plain, Uring, XdpDriver, XdpGeneric};
    let case = |place, server, client, workers| Case {
        place,
        server,
        client,
        workers,
        steering: Steering::Auto,
        deed: Deed::Transfers,
    };
    let mut cases = Vec::new();
    for path in [Plain, Mmsg, Gso] {
        cases.extend([1, 2].map(|workers| case(TestNetwork::Loopback, path, path, workers)));
    }
    for server in [Gso, XdpGeneric, XdpDriver] {
        cases.extend([1, 2].map(|workers| case(TestNetwork::Veth, server, Gso, workers)));
    }
    for (server, client) in
        [(Gso, XdpGeneric), (Gso, XdpDriver), (XdpGeneric, XdpGeneric), (XdpDriver, XdpDriver)]
    {
        cases.push(case(TestNetwork::Veth, server, client, 1));
    }
    for (server, client) in
        [(XdpGeneric, Gso), (Gso, XdpGeneric), (XdpDriver, Gso), (Gso, XdpDriver), (XdpDriver, XdpDriver)]
    {
        cases.push(case(TestNetwork::Jumbo, server, client, 1));
    }
    cases.push(case(TestNetwork::Loopback, Uring, Uring, 2));
    cases.push(case(TestNetwork::Veth, Uring, Uring, 1));
    cases.push(case(TestNetwork::Jumbo, Uring, Gso, 1));
    let moving = |place, server, workers, steering| Case {
        steering,
        deed: Deed::Rebinding,
        ..case(place, server, Gso, workers)
    };
    cases.push(moving(TestNetwork::Loopback, Gso, 1, Steering::Auto));
    for steering in [Steering::Ebpf, Steering::Classic, Steering::HandOff] {
        cases.push(moving(TestNetwork::Loopback, Gso, 2, steering));
    }
    cases.push(moving(TestNetwork::Loopback, Plain, 2, Steering::Ebpf));
    cases.push(moving(TestNetwork::Veth, Gso, 2, Steering::Ebpf));
    for server in [XdpGeneric, XdpDriver] {
        cases.extend([1, 2].map(|workers| moving(TestNetwork::Veth, server, workers, Steering::Auto)));
    }
    for server in [Gso, XdpGeneric, XdpDriver] {
        cases.push(Case { deed: Deed::Soak, ..case(TestNetwork::Lossy, server, Gso, 1) });
    }
    for server in [XdpGeneric, XdpDriver] {
        let upgrade = |workers| Case { deed: Deed::Upgrade, ..case(TestNetwork::Veth, server, Gso, workers) };
        cases.extend([1, 2].map(upgrade));
    }
    cases
}
