//! Where a measurement runs: on the loopback interface, or in a lab of two namespaces that a veth pair joins.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::process::{Child, Command};
use std::time::Duration;

use netns::emulator::{Direction, LinkOptions, Waits};
use netns::{Lab, LabError, LabOptions, Namespace, Switch};
use rustix::net::sockopt;
use serde::Serialize;

/// The congestion control of the kernel's TCP in a lab, where the kernel has it: what tercel's default begins as, so that a comparison of
/// HTTP over TCP and over QUIC does not compare congestion controls.
pub const TCP_CONGESTION: &str = "cubic";

/// How long a connection may take that is only made to be looked at.
const PATIENCE: Duration = Duration::from_secs(2);

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

    /// Two namespaces joined by veth, with Ethernet's MTU and as many queues as that. The kernel's TCP between them uses
    /// [`TCP_CONGESTION`] if it has that, and the machine's own otherwise.
    ///
    /// # Errors
    /// Not allowed, or the kernel refuses.
    pub fn veth(queues: u32) -> Result<Site, LabError> {
        Site::of(&LabOptions { queues, ..LabOptions::default() })
    }

    /// The same with one queue and packets of up to `mtu` bytes, 1280 to 65,535.
    ///
    /// # Errors
    /// Not allowed, or the kernel refuses.
    pub fn veth_of_mtu(mtu: u32) -> Result<Site, LabError> {
        Site::of(&LabOptions { mtu, ..LabOptions::default() })
    }

    /// The same with a link between them that loses this share of datagrams, each way.
    ///
    /// # Errors
    /// Not allowed, or the kernel refuses.
    pub fn lossy(loss: f64) -> Result<Site, LabError> {
        let link = Some(LinkOptions { loss, seed: 1, ..LinkOptions::default() });
        Site::of(&LabOptions { link, ..LabOptions::default() })
    }

    /// The same with a link that delays each datagram by `each_way`, in both directions.
    ///
    /// # Errors
    /// Not allowed, or the kernel refuses.
    pub fn delayed(each_way: Duration) -> Result<Site, LabError> {
        let link = Some(LinkOptions { delay: each_way, ..LinkOptions::default() });
        Site::of(&LabOptions { link, ..LabOptions::default() })
    }

    /// The same with an emulated link that does this on its way to the client, and that on its way to the server. Both ends cut trains
    /// and TCP's segments into packets before the link, so that each meets a fate of its own.
    ///
    /// # Errors
    /// Not allowed, the kernel refuses, or the link's options contradict themselves.
    pub fn linked(to_client: &LinkOptions, to_server: &LinkOptions) -> Result<Site, LabError> {
        let link = Some(LinkOptions::default());
        let site = Site::of(&LabOptions { link, udp_segmentation: Switch::Off, ..LabOptions::default() })?;
        if let Site::Veth(lab) = &site {
            let refused = |error| LabError::Kernel { doing: "cannot cut TCP's segments".to_owned(), error };
            for side in [lab.server(), lab.client()] {
                side.set_offload("tx-tcp-segmentation", Switch::Off).map_err(refused)?;
            }
            if let Some(emulator) = lab.emulator() {
                // The client is at the left end.
                emulator.set(Direction::ToLeft, to_client).map_err(LabError::Emulator)?;
                emulator.set(Direction::ToRight, to_server).map_err(LabError::Emulator)?;
            }
        }
        Ok(site)
    }

    fn of(options: &LabOptions) -> Result<Site, LabError> {
        let lab = Lab::new(options)?;
        for side in [lab.server(), lab.client()] {
            // Refused, they keep what they have: measurements of TCP state what `tcp_congestion` tells.
            let _ = side.set_tcp_congestion_control(TCP_CONGESTION);
        }
        Ok(Site::Veth(Box::new(lab)))
    }

    /// The congestion control that the kernel's TCP uses at the server's end, by the kernel's name: asked of a connection from the
    /// client's end that is made for it. "unknown" if none can be made.
    pub fn tcp_congestion(&self) -> String {
        self.connection_congestion(End::Server, self.ipv4(End::Server))
            .unwrap_or_else(|_| "unknown".to_owned())
    }

    /// Chooses the congestion control of TCP connections that are made from now on at both ends, by the kernel's name of it.
    ///
    /// # Errors
    /// The kernel's, if it has none of this name. On loopback always, which is the machine's own.
    pub fn set_tcp_congestion(&self, name: &str) -> io::Result<()> {
        [End::Server, End::Client].into_iter().try_for_each(|end| match self.namespace(end) {
            Some(namespace) => namespace.set_tcp_congestion_control(name),
            None => Err(io::Error::other("the machine's own TCP is left as it is")),
        })
    }

    /// What a connection to the server's end at `address` has at an end.
    fn connection_congestion(&self, end: End, address: IpAddr) -> io::Result<String> {
        let listener = self.run(End::Server, || TcpListener::bind((address, 0)))?;
        let to = listener.local_addr()?;
        let connected = self.run(End::Client, || TcpStream::connect_timeout(&to, PATIENCE))?;
        let socket = match end {
            End::Client => connected,
            // It waits already, for the client's end is connected.
            End::Server => listener.accept()?.0,
        };
        Ok(sockopt::tcp_congestion(&socket)?)
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
            dropped: counted.overflowed + counted.refused + counted.black_holed + counted.stale,
        }
    }

    /// How long datagrams on their way to the client have waited in the queue of the emulated link; none where there is no such link, or
    /// its rate has no limit.
    pub fn waits_towards_client(&self) -> Waits {
        match self {
            Site::Loopback => Waits::default(),
            // The client is at the left end.
            Site::Veth(lab) => {
                lab.emulator().map_or_else(Waits::default, |emulator| emulator.waits(Direction::ToLeft))
            }
        }
    }

    /// How badly the emulated link has kept its promises in both directions so far; not at all where there is none.
    pub fn link_faults(&self) -> LinkFaults {
        let emulator = match self {
            Site::Loopback => None,
            Site::Veth(lab) => lab.emulator(),
        };
        let Some(emulator) = emulator else { return LinkFaults::default() };
        let [left, right] = [Direction::ToLeft, Direction::ToRight].map(|way| emulator.counters(way));
        LinkFaults {
            missed: left.missed + right.missed,
            worst_late: Duration::from_nanos(left.worst_late_nanos.max(right.worst_late_nanos)),
        }
    }

    /// Gives what leaves an end a queueing discipline, by the kernel's name of it: "fq" keeps departure times.
    ///
    /// # Errors
    /// The kernel's: `NotFound` if it has no such discipline. On loopback always, which is the machine's own.
    pub fn set_queueing(&self, end: End, discipline: &str) -> io::Result<()> {
        let Some(namespace) = self.namespace(end) else {
            return Err(io::Error::other("the loopback interface of the machine is left as it is"));
        };
        let set = || netlink::set_qdisc(netlink::link_by_name(namespace.interface())?.index, discipline);
        namespace.run(set)
    }

    /// Gives the client's UDP flows new source ports, once its end has sent this many more bytes of UDP payload; what is under way to
    /// the old ones still arrives. Nothing happens where there is no emulated link.
    pub fn rebind(&self, after_bytes: u64) {
        if let Site::Veth(lab) = self
            && let Some(emulator) = lab.emulator()
        {
            emulator.rebind_gently(after_bytes);
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

/// What an emulated link did that it was not told to, because it did not get the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkFaults {
    /// Frames that never reached it. If it is not 0, what was measured is worth nothing.
    pub missed: u64,
    /// How long after its time the latest frame left.
    pub worst_late: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, HTTP over TCP could run with the machine's BBR beside CUBIC over QUIC while reports say CUBIC; or a measurement could
    /// change the machine.
    #[test]
    fn tcp_in_a_lab_uses_cubic_where_the_kernel_has_it_and_the_machine_keeps_what_it_has() {
        let before = Site::Loopback.tcp_congestion();
        assert_ne!(before, "unknown");
        let site = match Site::veth(1) {
            Ok(site) => site,
            Err(error) => return requirements::missing(error),
        };
        let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
        let has_it = available.unwrap_or_default().split_whitespace().any(|name| name == TCP_CONGESTION);
        let expected = if has_it { TCP_CONGESTION } else { &before };
        assert_eq!(site.tcp_congestion(), expected);
        let everywhere = |expected: &str| {
            for end in [End::Server, End::Client] {
                for address in [site.ipv4(End::Server), site.ipv6(End::Server)] {
                    assert_eq!(
                        site.connection_congestion(end, address).unwrap(),
                        expected,
                        "{end:?} {address}"
                    );
                }
            }
        };
        everywhere(expected);
        assert_eq!(Site::Loopback.tcp_congestion(), before);
        let Site::Veth(lab) = &site else { unreachable!() };
        for side in [lab.server(), lab.client()] {
            assert!(side.set_tcp_congestion_control("reno").is_ok());
        }
        everywhere("reno");
        assert_eq!(Site::Loopback.tcp_congestion(), before);
        assert!(lab.server().set_tcp_congestion_control("no such").is_err());
        everywhere("reno");
    }
}
