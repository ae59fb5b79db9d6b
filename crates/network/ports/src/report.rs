//! What a port tells beyond [`datapath::Capabilities`], for reports of whoever runs workers on it.

use crate::queues::Queues;
use datapath::Port;
use datapath::hold::Hold;
use datapath::trains::MAX_TRAIN_BYTES;
use udp::UdpPort;
use xdp::XdpPort;

/// A port of one of the kinds that [`crate::OpenPorts`] has.
pub trait OpenPort: Port {
    /// How an AF_XDP socket shares packets with the driver: "zero-copy", "driver", "generic"; `None` for kernel UDP.
    fn xdp_mode(&self) -> Option<&'static str> {
        None
    }

    /// Packet frames of this port that nobody holds, and all that it has; `None` for kernel UDP.
    fn frames(&self) -> Option<Frames> {
        None
    }

    /// A line for the user when the system grants less than the port asked for: what, and what to type.
    fn advice(&self) -> Option<String> {
        None
    }
}

/// Packet memory of an AF_XDP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames {
    /// Frames that neither the kernel nor the port holds for a packet.
    pub free: usize,
    /// All of them.
    pub all: usize,
}

impl OpenPort for UdpPort {
    fn advice(&self) -> Option<String> {
        self.buffer_advice()
    }
}

impl<P: OpenPort> OpenPort for Hold<P> {
    fn xdp_mode(&self) -> Option<&'static str> {
        self.inner().xdp_mode()
    }

    fn frames(&self) -> Option<Frames> {
        self.inner().frames()
    }

    fn advice(&self) -> Option<String> {
        self.inner().advice()
    }
}

impl OpenPort for Queues<XdpPort> {
    fn xdp_mode(&self) -> Option<&'static str> {
        self.ports().first().map(|port| port.mode().name())
    }

    fn frames(&self) -> Option<Frames> {
        let sum = |count: fn(&XdpPort) -> usize| self.ports().iter().map(count).sum();
        Some(Frames { free: sum(XdpPort::free_frames), all: sum(XdpPort::frames) })
    }

    /// What keeps packets shorter than the MTU allows.
    fn advice(&self) -> Option<String> {
        let port = self.ports().first()?;
        let ((name, mtu), most) = (port.interface(), port.most_payload());
        // IP and UDP take 28 bytes at least.
        (mtu > most + 28 && most < MAX_TRAIN_BYTES).then(|| {
            format!(
                "{name} carries packets of {mtu} bytes, but AF_XDP in {} mode here no payload beyond {most}: a packet has one frame \
                 there; for longer ones try --xdp-mode driver or generic (Linux 6.6), or --datapath gso",
                port.mode()
            )
        })
    }
}
