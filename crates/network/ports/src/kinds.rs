//! The kinds of data path: their names, their open ports, and the one place that tells those apart.
//!
//! The kinds of ports are types, so that a worker is compiled for its port and no packet passes an indirect call.
//! [`OpenPorts::run`] calls the same generic code for each.

use crate::queues::Queues;
use core::fmt;
use core::str::FromStr;
use datapath::Port;
use udp::{UdpPort, Variant};
use xdp::XdpPort;

/// A data path, or the wish to have one chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataPathChoice {
    /// Whatever costs least on the interface, found by measuring.
    Auto,
    /// Trains of datagrams, segmented and merged by the kernel (GSO, GRO).
    #[default]
    Gso,
    /// Many datagrams per system call (sendmmsg, recvmmsg).
    Mmsg,
    /// One datagram per system call.
    Plain,
    /// Past the kernel's network stack (AF_XDP), one queue of the interface for each worker.
    Xdp,
}

impl DataPathChoice {
    /// All of them.
    pub const ALL: [DataPathChoice; 5] = [
        DataPathChoice::Auto,
        DataPathChoice::Gso,
        DataPathChoice::Mmsg,
        DataPathChoice::Plain,
        DataPathChoice::Xdp,
    ];

    /// The name by which users choose it.
    pub const fn name(self) -> &'static str {
        match self {
            DataPathChoice::Auto => "auto",
            DataPathChoice::Gso => "gso",
            DataPathChoice::Mmsg => "mmsg",
            DataPathChoice::Plain => "plain",
            DataPathChoice::Xdp => "xdp",
        }
    }

    /// What it is, in one line.
    pub const fn about(self) -> &'static str {
        match self {
            DataPathChoice::Auto => "Measure which of the others costs least on the interface, and take that",
            DataPathChoice::Gso => "Trains of datagrams, segmented and merged by the kernel (GSO, GRO)",
            DataPathChoice::Mmsg => "Many datagrams per system call (sendmmsg, recvmmsg)",
            DataPathChoice::Plain => "One datagram per system call",
            DataPathChoice::Xdp => {
                "Past the kernel's network stack (AF_XDP); needs privileges, a real interface, one queue for each worker"
            }
        }
    }

    /// The system calls of a path through kernel UDP; `None` for the others.
    pub const fn variant(self) -> Option<Variant> {
        match self {
            DataPathChoice::Gso => Some(Variant::Gso),
            DataPathChoice::Mmsg => Some(Variant::Mmsg),
            DataPathChoice::Plain => Some(Variant::Plain),
            DataPathChoice::Auto | DataPathChoice::Xdp => None,
        }
    }
}

impl From<Variant> for DataPathChoice {
    fn from(variant: Variant) -> DataPathChoice {
        match variant {
            Variant::Gso => DataPathChoice::Gso,
            Variant::Mmsg => DataPathChoice::Mmsg,
            Variant::Plain => DataPathChoice::Plain,
        }
    }
}

impl fmt::Display for DataPathChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reads what [`DataPathChoice::name`] writes; the error says what there is to choose from.
impl FromStr for DataPathChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<DataPathChoice, String> {
        let found = DataPathChoice::ALL.into_iter().find(|choice| choice.name() == name);
        found.ok_or_else(|| format!("there is no data path \"{name}\": auto, gso, mmsg, plain or xdp"))
    }
}

/// Ports that are open, one for each worker; there is at least one.
pub enum OpenPorts {
    /// Through the kernel's UDP.
    Udp(Vec<UdpPort>),
    /// Past it. A worker that has several queues of the interface drives them as one port.
    Xdp(Vec<Queues<XdpPort>>),
}

/// What is done with open ports, whatever their kind.
pub trait PortsVisitor: Sized {
    /// What comes of it.
    type Output;

    /// Takes ports of any kind.
    fn visit<P: Port + Send + 'static>(self, ports: Vec<P>) -> Self::Output;

    /// Takes ports of the kernel's UDP. Without an implementation of its own they are treated as all others.
    fn visit_udp(self, ports: Vec<UdpPort>) -> Self::Output {
        self.visit(ports)
    }
}

impl OpenPorts {
    /// Hands the ports to `visitor`.
    pub fn run<V: PortsVisitor>(self, visitor: V) -> V::Output {
        match self {
            OpenPorts::Udp(ports) => visitor.visit_udp(ports),
            OpenPorts::Xdp(ports) => visitor.visit(ports),
        }
    }

    /// The ports, if they go through the kernel's UDP.
    pub fn into_udp(self) -> Option<Vec<UdpPort>> {
        match self {
            OpenPorts::Udp(ports) => Some(ports),
            OpenPorts::Xdp(_) => None,
        }
    }

    /// How AF_XDP sockets share packets with the driver: "zero-copy", "driver", "generic"; `None` for kernel UDP.
    pub fn xdp_mode(&self) -> Option<&'static str> {
        match self {
            OpenPorts::Udp(_) => None,
            OpenPorts::Xdp(ports) => ports.first()?.xdp_mode(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use udp::BindOptions;

    /// Says how many ports of which path there are.
    struct Count;

    impl PortsVisitor for Count {
        type Output = (usize, &'static str);

        fn visit<P: Port + Send>(self, ports: Vec<P>) -> Self::Output {
            (ports.len(), ports.first().map_or("", |port| port.capabilities().name))
        }
    }

    /// Treats kernel UDP apart.
    struct Apart;

    impl PortsVisitor for Apart {
        type Output = (usize, &'static str);

        fn visit<P: Port + Send>(self, _: Vec<P>) -> Self::Output {
            (0, "any")
        }

        fn visit_udp(self, ports: Vec<UdpPort>) -> Self::Output {
            (ports.len(), "apart")
        }
    }

    /// Deleted, a command could run on fewer ports than were opened, or lose what it does for kernel UDP alone.
    #[test]
    fn a_visitor_gets_all_ports_and_may_treat_kernel_udp_apart() {
        let bind =
            || UdpPort::bind(&BindOptions::new("127.0.0.1:0".parse().unwrap(), Variant::Plain)).unwrap();
        let opened = || OpenPorts::Udp(vec![bind(), bind()]);
        assert_eq!(opened().run(Count), (2, "udp-plain"));
        assert_eq!(opened().run(Apart), (2, "apart"));
        assert_eq!((opened().xdp_mode(), opened().into_udp().map(|ports| ports.len())), (None, Some(2)));
    }

    #[test]
    fn every_name_reads_back_and_others_say_what_there_is() {
        for choice in DataPathChoice::ALL {
            assert_eq!(choice.name().parse(), Ok(choice));
        }
        let refused = "dpdk".parse::<DataPathChoice>().unwrap_err();
        assert!(refused.contains("\"dpdk\"") && refused.contains("xdp"), "{refused}");
    }
}
