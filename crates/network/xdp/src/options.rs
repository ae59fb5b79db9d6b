//! What ports are opened with.

use core::fmt;
use core::net::SocketAddr;
use core::ops::Range;
use core::str::FromStr;

/// How packets get between the driver and our frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The best of the others that works here.
    #[default]
    Auto,
    /// The driver reads and writes our frames itself. Few drivers can; veth cannot.
    ZeroCopy,
    /// Packets are taken in the driver, before the kernel has made anything of them, and copied.
    Driver,
    /// Packets are taken in the kernel's own receive path and copied: works with every interface.
    Generic,
}

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 4] = [Mode::Auto, Mode::ZeroCopy, Mode::Driver, Mode::Generic];

    /// The name by which users choose it.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Auto => "auto",
            Mode::ZeroCopy => "zero-copy",
            Mode::Driver => "driver",
            Mode::Generic => "generic",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reads what [`Mode::name`] writes; the error says what there is to choose from.
impl FromStr for Mode {
    type Err = String;

    fn from_str(name: &str) -> Result<Mode, String> {
        let found = Mode::ALL.into_iter().find(|mode| mode.name() == name);
        found.ok_or_else(|| format!("there is no mode \"{name}\": auto, zero-copy, driver or generic"))
    }
}

/// Who computes UDP checksums of what is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksums {
    /// The kernel or the device where they can, otherwise we. On veth they stay empty, which is cheapest.
    #[default]
    Offloaded,
    /// We, always.
    Ours,
}

/// How the kernel polls the device on our behalf instead of waiting for its interrupts. Costs a core, saves latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyPoll {
    /// How long a poll lasts at most, in microseconds.
    pub microseconds: u32,
    /// Most packets per poll; the kernel allows up to 65,535 and wants CAP_NET_ADMIN for more than 64.
    pub budget: u32,
}

impl Default for BusyPoll {
    fn default() -> Self {
        BusyPoll { microseconds: 20, budget: 64 }
    }
}

/// What to open. `Options::new` fills in what suits a busy endpoint.
#[derive(Clone, Debug)]
pub struct Options {
    /// The interface's name.
    pub interface: String,
    /// The address and UDP port that are ours. An unspecified IP address is all of this machine's (of both families if it
    /// is `::`), port 0 any free port.
    pub address: SocketAddr,
    /// How packets get between the driver and us.
    pub mode: Mode,
    /// The receive queues to open a port on; `None` is all. What arrives on a queue without a port is lost to us.
    pub queues: Option<Range<u32>>,
    /// Busy polling; `None` leaves it to the device's interrupts.
    pub busy_poll: Option<BusyPoll>,
    /// Frames of 4,096 bytes per queue, one half for each direction: 128 to 65,536, rounded up to a power of two. Where the MTU
    /// is more than one holds, those to send from are several of these in a row and fewer.
    pub frames_per_queue: u32,
    /// The longest UDP payload in bytes that must be possible; more than the interface's MTU carries (and than 3,770 in any case)
    /// is refused.
    pub largest_payload: usize,
    /// Who computes checksums.
    pub checksums: Checksums,
    /// The VLAN of peers from which nothing has arrived yet; `None` is untagged. Replies carry the tags of what they reply to.
    pub vlan: Option<u16>,
}

impl Options {
    /// Options for `address` on `interface`: the best mode, all queues, no busy polling, 16 MiB of frames per queue.
    pub fn new(interface: &str, address: SocketAddr) -> Options {
        Options {
            interface: interface.to_owned(),
            address,
            mode: Mode::Auto,
            queues: None,
            busy_poll: None,
            frames_per_queue: 4096,
            largest_payload: 1472,
            checksums: Checksums::Offloaded,
            vlan: None,
        }
    }
}
