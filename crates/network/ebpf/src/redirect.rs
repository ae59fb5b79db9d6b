//! The XDP program that hands our QUIC datagrams to AF_XDP sockets.
//!
//! It is attached to one interface, takes what is addressed to our ports (see `programs/redirect.c`) and leaves all other
//! traffic to the kernel, also our own while a queue has no socket. The attachment is a link that lives in this process:
//! whatever way the process ends, the kernel takes the program off the interface.

use core::net::IpAddr;
use std::io;
use std::os::fd::AsFd;

use aya::maps::{Array, HashMap, MapData, XskMap};
use aya::programs::{Xdp, XdpMode};
use aya::util::KernelVersion;
use aya::{Ebpf, EbpfLoader};
use nix::net::if_::{InterfaceFlags, if_indextoname};
use rustix::io::Errno;

use crate::error::{Capability, EbpfError, Step};
use crate::holder;

const OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/programs/redirect.o"));

const NEEDED: &[Capability] = &[Capability::Bpf, Capability::NetAdmin];

/// Where on a packet's way the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachMode {
    /// In the driver, before the kernel has made anything of the packet. Not every driver can.
    Driver,
    /// In the kernel's own receive path, on any interface, at a higher cost.
    Generic,
}

impl AttachMode {
    /// The name by which users know it.
    pub const fn name(self) -> &'static str {
        match self {
            AttachMode::Driver => "driver",
            AttachMode::Generic => "generic",
        }
    }
}

/// Which packets the program sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Buffers {
    /// Those that lie in one buffer of the driver.
    #[default]
    One,
    /// Those of several buffers, too: jumbo frames. From Linux 5.18, where the driver can.
    Several,
}

impl Buffers {
    /// The program's name in the object.
    const fn program(self) -> &'static str {
        match self {
            Buffers::One => "redirect",
            Buffers::Several => "redirect_parts",
        }
    }
}

/// What to attach to, and which datagrams to take.
#[derive(Clone, Copy, Debug)]
pub struct AttachOptions<'a> {
    /// The interface's index.
    pub ifindex: u32,
    /// Where the program runs.
    pub mode: AttachMode,
    /// Which packets it sees.
    pub buffers: Buffers,
    /// The UDP ports that are ours. More can be added later.
    pub ports: &'a [u16],
    /// The addresses that are ours, at most 256. None means any: a machine that forwards packets should name them, or
    /// it takes other machines' datagrams as well.
    pub addresses: &'a [IpAddr],
}

/// The attached program. Dropped, it is detached.
pub struct XdpProgram {
    object: Ebpf,
    sockets: XskMap<MapData>,
    ports: Array<MapData, u64>,
    addresses: HashMap<MapData, [u8; 16], u8>,
    mode: AttachMode,
    buffers: Buffers,
}

impl core::fmt::Debug for XdpProgram {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("XdpProgram").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl XdpProgram {
    /// Loads the program and attaches it. It takes nothing until a socket is inserted.
    ///
    /// # Errors
    /// Without CAP_BPF and CAP_NET_ADMIN; when the interface is missing, down, has a program already, or cannot run one
    /// in this mode; on a kernel before 5.9, which cannot detach the program of a killed process.
    pub fn attach(options: &AttachOptions<'_>) -> Result<XdpProgram, EbpfError> {
        let interface = interface(options.ifindex)?;
        if KernelVersion::current().is_ok_and(|version| version < KernelVersion::new(5, 9, 0)) {
            return Err(EbpfError::OldKernel { needs: "5.9" });
        }
        let mut program = XdpProgram::load(options)?;
        let mode = match options.mode {
            AttachMode::Driver => XdpMode::Driver,
            AttachMode::Generic => XdpMode::Skb,
        };
        let step = Step { doing: "attach the XDP program", needs: NEEDED };
        let attached = program.program(step)?.attach_to_if_index(options.ifindex, mode);
        match attached {
            Ok(_) => Ok(program),
            Err(error) => Err(refused(options, interface, step.failed(&error))),
        }
    }

    /// Loads the program and says what is ours.
    fn load(options: &AttachOptions<'_>) -> Result<XdpProgram, EbpfError> {
        let step = Step { doing: "load the XDP program", needs: NEEDED };
        step.permitted()?;
        let mut object = EbpfLoader::new().btf(None).load(OBJECT).map_err(|error| step.failed(&error))?;
        let mut map = |name| object.take_map(name).ok_or_else(|| step.incomplete());
        let (sockets, ports, addresses) = (map("sockets")?, map("ports")?, map("addresses")?);
        let mut only_addresses: Array<MapData, u32> =
            Array::try_from(map("only_addresses")?).map_err(|error| step.failed(&error))?;
        let only = u32::from(!options.addresses.is_empty());
        only_addresses.set(0, only, 0).map_err(|error| step.failed(&error))?;
        let mut program = XdpProgram {
            object,
            sockets: XskMap::try_from(sockets).map_err(|error| step.failed(&error))?,
            ports: Array::try_from(ports).map_err(|error| step.failed(&error))?,
            addresses: HashMap::try_from(addresses).map_err(|error| step.failed(&error))?,
            mode: options.mode,
            buffers: options.buffers,
        };
        program.program(step)?.load().map_err(|error| step.failed(&error))?;
        for &port in options.ports {
            program.add_port(port)?;
        }
        for address in options.addresses {
            let mapped = match address {
                IpAddr::V4(address) => address.to_ipv6_mapped(),
                IpAddr::V6(address) => *address,
            };
            program.addresses.insert(mapped.octets(), 1, 0).map_err(|error| step.failed(&error))?;
        }
        Ok(program)
    }

    /// Where the program runs.
    pub fn mode(&self) -> AttachMode {
        self.mode
    }

    /// Has datagrams that arrive on receive queue `queue` given to `socket`, an AF_XDP socket of that queue. It leaves
    /// when it is closed.
    ///
    /// # Errors
    /// When it is no AF_XDP socket, or `queue` is 1024 or more.
    pub fn insert(&mut self, queue: u32, socket: impl AsFd) -> Result<(), EbpfError> {
        let step = Step { doing: "give a queue's AF_XDP socket to the XDP program", needs: NEEDED };
        self.sockets.set(queue, socket.as_fd(), 0).map_err(|error| step.failed(&error))
    }

    /// Makes `port` ours.
    ///
    /// # Errors
    /// When the kernel refuses, which it has no reason to.
    pub fn add_port(&mut self, port: u16) -> Result<(), EbpfError> {
        self.change_port(port, |bits, bit| bits | bit)
    }

    /// Leaves `port` to the kernel again.
    ///
    /// # Errors
    /// When the kernel refuses, which it has no reason to.
    pub fn remove_port(&mut self, port: u16) -> Result<(), EbpfError> {
        self.change_port(port, |bits, bit| bits & !bit)
    }

    /// No other code writes the map, so reading before writing is no race.
    fn change_port(&mut self, port: u16, change: impl Fn(u64, u64) -> u64) -> Result<(), EbpfError> {
        let step = Step { doing: "tell the XDP program our ports", needs: NEEDED };
        let (word, bit) = (u32::from(port / 64), 1 << (port % 64));
        let bits = self.ports.get(&word, 0).map_err(|error| step.failed(&error))?;
        self.ports.set(word, change(bits, bit), 0).map_err(|error| step.failed(&error))
    }

    fn program(&mut self, step: Step) -> Result<&mut Xdp, EbpfError> {
        let program = self.object.program_mut(self.buffers.program()).ok_or_else(|| step.incomplete())?;
        program.try_into().map_err(|error| step.failed(&error))
    }
}

/// The name of an interface that exists and is up.
fn interface(index: u32) -> Result<String, EbpfError> {
    let name = if_indextoname(index).ok().and_then(|name| name.into_string().ok());
    let name = name.ok_or(EbpfError::NoInterface { index })?;
    let mut entries = nix::ifaddrs::getifaddrs().into_iter().flatten();
    // Every interface has an entry, with or without addresses. Where the list is not to be had the kernel decides.
    let down = entries
        .find(|entry| entry.interface_name == name)
        .is_some_and(|entry| !entry.flags.contains(InterfaceFlags::IFF_UP));
    if down { Err(EbpfError::Down { interface: name }) } else { Ok(name) }
}

/// What it means when `interface` turns the program down.
fn refused(options: &AttachOptions<'_>, interface: String, error: EbpfError) -> EbpfError {
    let EbpfError::Failed { source, .. } = &error else { return error };
    let mode = options.mode.name();
    match io::Error::raw_os_error(source).map(Errno::from_raw_os_error) {
        Some(Errno::BUSY | Errno::EXIST) => {
            EbpfError::Occupied { holder: holder::of(options.ifindex), interface }
        }
        Some(Errno::OPNOTSUPP) => EbpfError::NoSupport { interface, mode },
        Some(Errno::RANGE | Errno::NOSPC | Errno::INVAL | Errno::NOMEM)
            if options.mode == AttachMode::Driver =>
        {
            let source = io::Error::from_raw_os_error(source.raw_os_error().unwrap_or_default());
            EbpfError::Unsuitable { interface, mode, source }
        }
        Some(Errno::NODEV) => EbpfError::NoInterface { index: options.ifindex },
        _ => error,
    }
}

#[cfg(test)]
mod tests;
