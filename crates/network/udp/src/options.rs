//! What a port is bound with, and what can go wrong then.

use core::fmt;
use core::net::SocketAddr;
use core::str::FromStr;
use std::error::Error;
use std::io;

/// Which system calls carry the datagrams. A choice per run, so that their costs can be compared on one binary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// A train leaves as one message that the kernel or the interface cuts up, and arrives merged; several per call.
    #[default]
    Gso,
    /// The same, but that long trains leave from packet memory without a copy (io_uring, SENDMSG_ZC), where interface and kernel can.
    Uring,
    /// One message per datagram, many messages per call.
    Mmsg,
    /// One datagram per call.
    Plain,
}

impl Variant {
    /// All of them, fastest first where the receiver is on the same machine.
    pub const ALL: [Variant; 4] = [Variant::Gso, Variant::Uring, Variant::Mmsg, Variant::Plain];

    /// Whether a train is one message.
    pub const fn sends_trains(self) -> bool {
        matches!(self, Variant::Gso | Variant::Uring)
    }

    /// The name by which users choose it.
    pub const fn name(self) -> &'static str {
        match self {
            Variant::Gso => "gso",
            Variant::Uring => "uring",
            Variant::Mmsg => "mmsg",
            Variant::Plain => "plain",
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reads what [`Variant::name`] writes; the error says what there is to choose from.
impl FromStr for Variant {
    type Err = String;

    fn from_str(name: &str) -> Result<Variant, String> {
        let found = Variant::ALL.into_iter().find(|variant| variant.name() == name);
        found.ok_or_else(|| format!("there is no variant \"{name}\": gso, uring, mmsg or plain"))
    }
}

/// What a port does without though the variant has it, for experiments that ask what each is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Without {
    /// Segmentation by the kernel: each datagram is a message of its own.
    pub gso: bool,
    /// Merging by the kernel: each datagram arrives as a message of its own.
    pub gro: bool,
    /// Several messages per call when sending.
    pub sendmmsg: bool,
    /// Several messages per call when receiving.
    pub recvmmsg: bool,
    /// More than one message at a time: a poll takes in one, and its owner acts on that before it takes in another.
    pub batches: bool,
}

/// How a port is bound. `BindOptions::new` fills in what suits a busy endpoint.
#[derive(Clone, Debug)]
pub struct BindOptions {
    /// Where. An unspecified IP address means all of its family, and port 0 any free port.
    pub address: SocketAddr,
    /// The interface whose datagrams are taken; none: every interface. Default none.
    pub device: Option<String>,
    /// Whether an IPv6 socket on `::` carries IPv4 as well. IPv4 peers then appear with IPv4 addresses all the same.
    pub dual_stack: bool,
    /// Whether other sockets of the same user may share the address, each getting a share of the flows.
    pub reuse_port: bool,
    /// Which system calls to use.
    pub variant: Variant,
    /// The kernel's receive buffer in bytes, granted as far as the system allows.
    pub receive_buffer: usize,
    /// The kernel's send buffer in bytes, granted as far as the system allows.
    pub send_buffer: usize,
    /// Most messages (trains with GRO, datagrams without) taken in by one `poll`; at least 1. Each has 64 KiB of memory,
    /// of which only what datagrams fill is ever touched.
    pub receive_batch: usize,
    /// Bytes of memory for outgoing trains between two flushes; raised to hold at least one full train.
    pub send_memory: usize,
    /// Whether to let the kernel hold trains back until they depart (`TrainPath::departs`), where the interface that they
    /// leave by has the `fq` queueing discipline; elsewhere they leave at once, and the port's capabilities say so.
    pub departure_times: bool,
    /// What of all this it does without. Default: nothing.
    pub without: Without,
}

impl BindOptions {
    /// Options for `address`: dual stack, not shared, 8 MiB buffers, no departure times, and batches that stay in a core's own cache.
    pub fn new(address: SocketAddr, variant: Variant) -> BindOptions {
        BindOptions {
            address,
            device: None,
            dual_stack: true,
            reuse_port: false,
            variant,
            receive_buffer: 8 << 20,
            send_buffer: 4 << 20,
            receive_batch: if variant.sends_trains() { 8 } else { 64 },
            send_memory: 256 << 10,
            departure_times: false,
            without: Without::default(),
        }
    }
}

/// Why a port could not be bound.
#[derive(Debug)]
pub struct BindError {
    /// Where it should have been bound.
    pub address: SocketAddr,
    /// What was being done: "create a socket for", "set IPV6_V6ONLY on", "bind".
    pub step: &'static str,
    /// What the system said.
    pub source: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} UDP {}: {}", self.step, self.address, self.source)?;
        f.write_str(match self.source.kind() {
            io::ErrorKind::AddrInUse => "; another program listens there: stop it, or choose another port",
            io::ErrorKind::AddrNotAvailable => "; no interface of this machine has that address",
            io::ErrorKind::PermissionDenied => "; ports below 1024 need root or CAP_NET_BIND_SERVICE",
            _ => "",
        })
    }
}

impl Error for BindError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}
