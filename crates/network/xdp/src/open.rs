//! Opens ports: finds the interface, reserves the UDP port, puts the program in front, makes a socket for each queue.
//!
//! The modes are tried best first; what one mode refuses another may grant. Where the MTU is more than a frame holds, each is
//! tried with packets of several frames first. A mode is in use only if every queue took it, so that all ports of an interface
//! are alike.

use core::net::{IpAddr, SocketAddr};
use core::ops::Range;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use datapath::Waker;
use ebpf::EbpfError;
use ebpf::redirect::{AttachMode, AttachOptions, Buffers, XdpProgram};
use netlink::Link;
use socket2::{Domain, Protocol, Socket as UdpSocket, Type};
use wire::ethernet::Tag;

use crate::error::XdpError;
use crate::header_cache::HeaderCache;
use crate::interface::Interface;
use crate::layout::Sizes;
use crate::options::{Checksums, Mode, Options};
use crate::port::{Parts, Shared, XdpPort};
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::sys::socket::{Copying, Failed, Metadata, New, Setup, Socket, Step};
use crate::sys::umem::{FRAME_SIZE, Shape};

/// How often, and how far apart, a bind is tried while the queue is busy: a socket that was just closed gives its queue back
/// a moment later.
pub(crate) const BUSY_TRIES: u32 = 100;
pub(crate) const BUSY_PAUSE: Duration = Duration::from_millis(10);
/// How often the port and the place of the program are tried while they are taken: a child process that was just forked
/// has what we closed a moment longer, until it runs its own program.
const TAKEN_TRIES: u32 = 10;
/// How long a card may take to come back after a program was attached: some restart their link.
const LINK_TRIES: u32 = 300;
/// Frames of several pages to send from that there are at least, if there are as many to receive into.
const FEWEST_FRAMES: u32 = 128;
/// More addresses than the program holds are not told to it: it takes all.
const MAX_ADDRESSES: usize = 256;

/// Opens a port on each of the queues that `options` name.
///
/// # Errors
/// See [`XdpError`]: each says what to do.
pub fn open(options: &Options) -> Result<Vec<XdpPort>, XdpError> {
    let reserve = || {
        patiently(
            || reserve(options.address),
            |error| matches!(error, XdpError::Port { source, .. } if source.kind() == io::ErrorKind::AddrInUse),
        )
    };
    open_with(options, reserve)
}

/// The same at the address of `reservation`, a socket of the kernel's UDP that is bound. What it has received stays there.
///
/// # Errors
/// As [`open`].
pub fn open_at(options: &Options, reservation: std::net::UdpSocket) -> Result<Vec<XdpPort>, XdpError> {
    open_with(options, || Ok(reservation.into()))
}

fn open_with(
    options: &Options,
    reserve: impl FnOnce() -> Result<UdpSocket, XdpError>,
) -> Result<Vec<XdpPort>, XdpError> {
    let link = find(&options.interface, options.address)?;
    let sizes = Sizes::of_mtu(link.mtu as usize);
    let too_small = |most| XdpError::FrameTooSmall { payload: options.largest_payload, most };
    if options.largest_payload > sizes.payload {
        return Err(too_small(sizes.payload));
    }
    let system = |doing| move |source| XdpError::System { doing, source };
    let interface = Interface::new(&link).map_err(system("list the interface's addresses"))?;
    let reservation = reserve()?;
    let local = reservation.local_addr().map_err(system("find the reserved UDP port"))?;
    let local = local.as_socket().unwrap_or(options.address);
    let queues = queues(options, &link)?;
    let job = Job { options, interface, local, queues, reservation: reservation.into() };
    let mut refusal = None;
    for (mode, sizes) in attempts(&modes(options.mode, &link), sizes) {
        if options.largest_payload > sizes.payload {
            refusal = refusal.or(Some(too_small(sizes.payload)));
            continue;
        }
        match job.attempt(mode, sizes) {
            Err(error) if error.concerns_mode() || sizes.is_several() && error.concerns_buffers() => {
                refusal = Some(error);
            }
            result => return result,
        }
    }
    Err(refusal.unwrap_or(XdpError::NoKernelSupport))
}

/// What to try, best first. In zero-copy mode packets have one frame: no driver was at hand to try more on.
fn attempts(modes: &[Mode], sizes: Sizes) -> Vec<(Mode, Sizes)> {
    let of = |&mode: &Mode| {
        let several = (sizes.is_several() && mode != Mode::ZeroCopy).then_some((mode, sizes));
        several.into_iter().chain([(mode, Sizes::ONE)])
    };
    modes.iter().flat_map(of).collect()
}

/// The interface, if packets can go over it at all.
fn find(name: &str, address: SocketAddr) -> Result<Link, XdpError> {
    let interface = || name.to_owned();
    let link = netlink::link_by_name(name).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => XdpError::NoInterface { interface: interface() },
        _ => XdpError::System { doing: "look up the interface", source },
    })?;
    if !link.is_up {
        return Err(XdpError::Down { interface: interface() });
    }
    if link.is_loopback && address.is_ipv4() {
        return Err(XdpError::Loopback { address });
    }
    if link.mac.is_none() && !link.is_loopback {
        return Err(XdpError::NoEthernet { interface: interface() });
    }
    Ok(link)
}

/// Tries again for a moment while what it needs is still taken.
fn patiently<T>(
    mut attempt: impl FnMut() -> Result<T, XdpError>,
    is_taken: impl Fn(&XdpError) -> bool,
) -> Result<T, XdpError> {
    for _ in 1..TAKEN_TRIES {
        match attempt() {
            Err(error) if is_taken(&error) => std::thread::sleep(BUSY_PAUSE),
            result => return result,
        }
    }
    attempt()
}

/// A kernel socket on the port, which nothing reads: what reaches it was not for AF_XDP.
fn reserve(address: SocketAddr) -> Result<UdpSocket, XdpError> {
    let failed = |source| XdpError::Port { address, source };
    let socket =
        UdpSocket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP)).map_err(failed)?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified()).map_err(failed)?;
    }
    socket.bind(&address.into()).map_err(failed)?;
    // The least that the kernel grants.
    let _ = socket.set_recv_buffer_size(0);
    Ok(socket)
}

fn queues(options: &Options, link: &Link) -> Result<Range<u32>, XdpError> {
    let channels = netlink::ethtool::channels(&link.name).map_or(0, |channels| channels.receiving());
    let there = if channels > 0 { channels } else { link.rx_queues.max(1) };
    let queues = options.queues.clone().unwrap_or(0..there);
    if queues.is_empty() || queues.end > there {
        let queue = queues.start.max(there.min(queues.end.saturating_sub(1)));
        return Err(XdpError::NoQueue { interface: link.name.clone(), queue, there });
    }
    Ok(queues)
}

/// The modes to try, best first.
fn modes(asked: Mode, link: &Link) -> Vec<Mode> {
    match asked {
        Mode::Auto if link.is_loopback => vec![Mode::Generic],
        Mode::Auto => {
            // Where the driver says that it has no zero-copy (before Linux 6.3 it says nothing), attaching for it is spared.
            let may = netlink::xdp_features(link.index).map_or(true, |features| features.zero_copy);
            [Mode::ZeroCopy, Mode::Driver, Mode::Generic].into_iter().skip(usize::from(!may)).collect()
        }
        mode => vec![mode],
    }
}

/// What all attempts have in common.
struct Job<'a> {
    options: &'a Options,
    interface: Interface,
    local: SocketAddr,
    queues: Range<u32>,
    reservation: std::net::UdpSocket,
}

impl Job<'_> {
    /// Opens all ports in `mode` for packets of these sizes.
    fn attempt(&self, mode: Mode, sizes: Sizes) -> Result<Vec<XdpPort>, XdpError> {
        let attach = if mode == Mode::Generic { AttachMode::Generic } else { AttachMode::Driver };
        let addresses = self.addresses();
        let ports = [self.local.port()];
        let ifindex = self.interface.index;
        let buffers = if sizes.is_several() { Buffers::Several } else { Buffers::One };
        let options = AttachOptions { ifindex, mode: attach, buffers, ports: &ports, addresses: &addresses };
        let mut program = patiently(
            || XdpProgram::attach(&options).map_err(XdpError::from),
            |error| matches!(error, XdpError::Program(EbpfError::Occupied { .. })),
        )?;
        self.await_carrier();
        let open = |queue| Ok((queue, self.socket(queue, mode, sizes)?));
        let sockets: Vec<(u32, New)> = self.queues.clone().map(open).collect::<Result<_, XdpError>>()?;
        // Not before all are bound: until then packets go to the kernel's socket, and none is lost if one queue is refused.
        for (queue, new) in &sockets {
            program.insert(*queue, &new.socket)?;
        }
        let system = |source| XdpError::System { doing: "share what the ports have in common", source };
        let shared = Arc::new(Shared {
            _program: Mutex::new(program),
            reservation: self.reservation.try_clone().map_err(system)?,
            local: self.local,
            mode,
        });
        let ports = sockets.into_iter().map(|(queue, new)| self.port((queue, sizes), new, &shared));
        ports.collect::<io::Result<Vec<XdpPort>>>().map_err(system)
    }

    /// The addresses to take datagrams for: the one asked for, or all of this machine. Empty is any.
    fn addresses(&self) -> Vec<IpAddr> {
        let asked = self.local.ip();
        if !asked.is_unspecified() {
            return vec![asked];
        }
        let links = netlink::links().unwrap_or_default();
        let all = links.iter().flat_map(|link| netlink::addresses(link.index).unwrap_or_default());
        let ours: Vec<IpAddr> = all.map(|address| address.ip).collect();
        let ours: Vec<IpAddr> = ours.into_iter().filter(|ip| asked.is_ipv6() || ip.is_ipv4()).collect();
        if ours.len() > MAX_ADDRESSES { Vec::new() } else { ours }
    }

    fn await_carrier(&self) {
        for _ in 0..LINK_TRIES {
            match netlink::link_by_index(self.interface.index) {
                Ok(link) if link.is_up && !link.is_running => std::thread::sleep(BUSY_PAUSE),
                _ => return,
            }
        }
    }

    /// A socket bound to `queue`.
    fn socket(&self, queue: u32, mode: Mode, sizes: Sizes) -> Result<New, XdpError> {
        let copying = if mode == Mode::ZeroCopy { Copying::Zero } else { Copying::Copies };
        let half = (self.options.frames_per_queue.clamp(128, 65_536) / 2).next_power_of_two();
        // A driver in zero-copy mode may not know metadata even where the kernel does.
        let offload = self.options.checksums == Checksums::Offloaded
            && copying == Copying::Copies
            && self.interface.completes_checksums;
        let metadata = if offload { Metadata::IfKnown } else { Metadata::Never };
        // As much memory for frames of several pages as for others, but enough of them for a train or two.
        let tx_frames = half.div_ceil(sizes.pages).next_power_of_two().max(FEWEST_FRAMES.min(half));
        let shape = Shape { rx_frames: half, tx_frames, tx_pages: sizes.pages };
        let setup = Setup { shape, metadata };
        let new = Socket::open(&setup).map_err(|failed| refused(failed, &setup))?;
        if copying == Copying::Copies {
            // What a packet costs while it is on its way, by the kernel's reckoning.
            new.socket.raise_send_buffer((tx_frames * sizes.pages).saturating_mul(FRAME_SIZE as u32));
        }
        if let Some(busy) = self.options.busy_poll {
            let set = new.socket.busy_poll(busy.microseconds, busy.budget);
            set.map_err(|source| XdpError::System {
                doing: "set busy polling (Linux 5.11 or newer)",
                source,
            })?;
        }
        self.bind(&new.socket, queue, (mode, copying))?;
        Ok(new)
    }

    fn bind(&self, socket: &Socket, queue: u32, (mode, copying): (Mode, Copying)) -> Result<(), XdpError> {
        let interface = || self.interface.name.clone();
        for _ in 0..BUSY_TRIES {
            let Err(source) = socket.bind(self.interface.index, queue, copying) else { return Ok(()) };
            match source.raw_os_error().unwrap_or(0) {
                libc::EBUSY => std::thread::sleep(BUSY_PAUSE),
                libc::ENETDOWN => return Err(XdpError::Down { interface: interface() }),
                libc::ENODEV => return Err(XdpError::NoInterface { interface: interface() }),
                libc::EOPNOTSUPP | libc::EINVAL => {
                    return Err(XdpError::NoMode { interface: interface(), mode, source });
                }
                _ => return Err(XdpError::System { doing: "bind an AF_XDP socket", source }),
            }
        }
        Err(XdpError::QueueBusy { interface: interface(), queue })
    }

    fn port(&self, (queue, sizes): (u32, Sizes), new: New, shared: &Arc<Shared>) -> io::Result<XdpPort> {
        let New { mut socket, rx_frames, tx_frames } = new;
        let polls = self.options.busy_poll.is_some();
        let mut receiver = Receiver::new(&mut socket, rx_frames, self.local.port(), polls);
        if shared.mode == Mode::Generic {
            receiver.expect_trains();
        }
        let sender = Sender::new(tx_frames, sizes.payload, socket.knows_metadata());
        let tag = self.options.vlan.map(Tag::vlan);
        let header_cache = HeaderCache::new(self.interface.clone(), tag, sizes.payload);
        let header_cache = header_cache.ok_or_else(|| io::Error::other("no headers can be made"))?;
        let (waker, shared) = (Waker::new()?, Arc::clone(shared));
        Ok(XdpPort::new(Parts { socket, receiver, sender, header_cache, queue, waker, shared }))
    }
}

/// What it means when a step of making a socket failed.
fn refused(failed: Failed, setup: &Setup) -> XdpError {
    let needed = u64::from(setup.shape.pages()) * FRAME_SIZE as u64;
    let Failed { step, source } = failed;
    match (step, source.raw_os_error().unwrap_or(0)) {
        (Step::Create, libc::EPERM) => XdpError::NotPermitted,
        (Step::Create, libc::EAFNOSUPPORT) | (Step::Rings, libc::EOPNOTSUPP) => XdpError::NoKernelSupport,
        (Step::Register, libc::ENOBUFS | libc::EPERM) => XdpError::Memlock { needed },
        (Step::Create, _) => XdpError::System { doing: "create an AF_XDP socket", source },
        (Step::Allocate, _) => XdpError::System { doing: "allocate packet memory", source },
        (Step::Register, _) => XdpError::System { doing: "register packet memory", source },
        (Step::Rings, _) => XdpError::System { doing: "make the rings of an AF_XDP socket", source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_several_frames_are_tried_before_those_of_one_and_the_better_mode_before_the_worse() {
        // Deleted, a kernel without them could mean no AF_XDP at all, or one with them packets of 3,770 bytes.
        let jumbo = Sizes::of_mtu(9000);
        let modes = [Mode::ZeroCopy, Mode::Driver, Mode::Generic];
        let one = modes.map(|mode| (mode, Sizes::ONE));
        assert_eq!(attempts(&modes, Sizes::of_mtu(1500)), one);
        let [zero_copy, driver, generic] = one;
        let expected = [zero_copy, (Mode::Driver, jumbo), driver, (Mode::Generic, jumbo), generic];
        assert_eq!(attempts(&modes, jumbo), expected);
        let einval = || io::Error::from_raw_os_error(libc::EINVAL);
        let program = EbpfError::Failed { doing: "load", source: einval(), detail: String::new() };
        assert!(XdpError::Program(program).concerns_buffers(), "Linux before 5.18");
        let bind = XdpError::NoMode { interface: "x".into(), mode: Mode::Driver, source: einval() };
        assert!(bind.concerns_mode(), "Linux before 6.6");
        assert!(!XdpError::NotPermitted.concerns_buffers());
    }
}
