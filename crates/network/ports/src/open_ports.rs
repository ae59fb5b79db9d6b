//! Ports that are open, and the one place that tells their kinds apart.
//!
//! The kinds of ports are types, so that a worker is compiled for its port and no packet passes an indirect call.
//! [`OpenPorts::run`] calls the same generic code for each.

use crate::queues::Queues;
use datapath::Port;
use udp::UdpPort;
use xdp::XdpPort;

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
    use udp::{BindOptions, Variant};

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
}
