//! An AF_XDP socket with its memory and its four rings.
//!
//! Every frame belongs to one direction for good. A receiving one goes round: fill ring, kernel, RX ring, us. A sending one:
//! us, TX ring, kernel, completion ring. Each ring that the kernel fills has a place for every frame of its direction, and
//! each that we fill has two: the kernel takes entries in batches and shows later that it did, when the frames may be back
//! with us already. So none of the rings is ever full, on either side. Where a frame to send from is several pages, "place" means
//! one for each piece that it may leave in (see [`super::pieces`]).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::pieces::{Cut, Pieces};
use super::ring::{Consumer, Descriptor, Layout, Producer, Wakeup};
use super::umem::{FRAME_SIZE, Frame, METADATA_SIZE, Shape, Umem};

/// The flag of metadata by which a checksum is to be completed: `XDP_TXMD_FLAGS_CHECKSUM`. Two numbers of 16 bits behind
/// the flags say where summing begins and, from there, where the sum goes.
pub(crate) const COMPLETE_CHECKSUM: u64 = libc::XDP_TXMD_FLAGS_CHECKSUM as u64;

/// The option that sets how many packets one call sends in copy mode; from Linux 6.17.
const XDP_MAX_TX_SKB_BUDGET: i32 = 9;

/// Options of busy polling that the C library lacks. Source: asm-generic/socket.h.
const SO_PREFER_BUSY_POLL: i32 = 69;
const SO_BUSY_POLL_BUDGET: i32 = 70;

/// What is to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// The frames. Those to receive into are a power of two; those to send from are, if they are one page. If they are more,
    /// packets may come and go in several pieces.
    pub(crate) shape: Shape,
    /// Whether metadata may stand in front of packets, if the kernel knows of it.
    pub(crate) metadata: Metadata,
}

/// Whether the kernel is asked to look at metadata in front of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metadata {
    /// If it can.
    IfKnown,
    /// No.
    Never,
}

/// Whether the driver is to use our frames itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copying {
    /// The driver reads and writes our frames.
    Zero,
    /// The kernel copies between its own buffers and our frames.
    Copies,
}

/// What the kernel makes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// The bytes before it mean nothing.
    None,
    /// [`METADATA_SIZE`] bytes of metadata lie before it.
    Metadata,
}

/// A step of making a socket that failed.
#[derive(Debug)]
pub(crate) struct Failed {
    /// Which.
    pub(crate) step: Step,
    /// What the system said.
    pub(crate) source: io::Error,
}

/// The steps of making a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Creating it.
    Create,
    /// Finding memory.
    Allocate,
    /// Registering the memory.
    Register,
    /// Making and mapping rings.
    Rings,
}

impl Step {
    fn failed(self) -> impl Fn(io::Error) -> Failed {
        move |source| Failed { step: self, source }
    }
}

/// Losses that the kernel counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    /// Packets that found no frame, or were too long for one, or found no room in the RX ring.
    pub(crate) received: u64,
    /// Descriptors of ours that the kernel did not like; a bug, if there are any.
    pub(crate) invalid: u64,
}

/// The socket, its memory and its rings.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    umem: Umem,
    fill: Producer<u64>,
    completion: Consumer<u64>,
    rx: Consumer<Descriptor>,
    tx: Producer<Descriptor>,
    /// Where packets may be longer than a piece.
    pieces: Option<Pieces>,
    knows_metadata: bool,
}

/// A received packet, or a part of one.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) frame: Frame,
    /// Where it lies in the frame.
    pub(crate) range: std::ops::Range<usize>,
    /// Whether the next arrival is more of this packet.
    pub(crate) continues: bool,
}

/// What a new socket comes with.
pub(crate) struct New {
    pub(crate) socket: Socket,
    /// Frames to receive into; they belong in the fill ring.
    pub(crate) rx_frames: Vec<Frame>,
    /// Frames to send from.
    pub(crate) tx_frames: Vec<Frame>,
}

impl Socket {
    /// Makes a socket that is not bound yet.
    pub(crate) fn open(setup: &Setup) -> Result<New, Failed> {
        let fd = create().map_err(Step::Create.failed())?;
        let Setup { shape, .. } = *setup;
        let (umem, mut rx_frames) = Umem::new(shape).map_err(Step::Allocate.failed())?;
        let tx_frames = rx_frames.split_off(shape.rx_frames as usize);
        let knows_metadata = register(fd.as_fd(), &umem, setup).map_err(Step::Register.failed())?;
        let cut = if knows_metadata { Cut::Evenly } else { Cut::AtPages };
        let pieces = (shape.tx_pages > 1).then(|| Pieces::new(shape, cut));
        let rings = Step::Rings.failed();
        let leaving = match &pieces {
            Some(_) => (shape.tx_frames * Pieces::most(shape.tx_pages)).next_power_of_two(),
            None => shape.tx_frames,
        };
        let (fill_size, tx_size) = (shape.rx_frames * 2, leaving * 2);
        let sizes = [
            (libc::XDP_UMEM_FILL_RING, fill_size),
            (libc::XDP_UMEM_COMPLETION_RING, leaving),
            (libc::XDP_RX_RING, shape.rx_frames),
            (libc::XDP_TX_RING, tx_size),
        ];
        for (option, size) in sizes {
            set(fd.as_fd(), libc::SOL_XDP, option, &size).map_err(&rings)?;
        }
        // Older kernels send 32 packets a call; it takes more calls then.
        let _ = set(fd.as_fd(), libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &leaving);
        let offsets = offsets(fd.as_fd()).map_err(&rings)?;
        let layout = |at: libc::xdp_ring_offset, file: u64| Layout {
            producer: at.producer,
            consumer: at.consumer,
            flags: at.flags,
            entries: at.desc,
            file: file as libc::off_t,
        };
        let fill = layout(offsets.fr, libc::XDP_UMEM_PGOFF_FILL_RING);
        let completion = layout(offsets.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING);
        let rx = layout(offsets.rx, libc::XDP_PGOFF_RX_RING as u64);
        let tx = layout(offsets.tx, libc::XDP_PGOFF_TX_RING as u64);
        let socket = Socket {
            fill: Producer::map(fd.as_fd(), fill, fill_size).map_err(&rings)?,
            completion: Consumer::map(fd.as_fd(), completion, leaving).map_err(&rings)?,
            rx: Consumer::map(fd.as_fd(), rx, shape.rx_frames).map_err(&rings)?,
            tx: Producer::map(fd.as_fd(), tx, tx_size).map_err(&rings)?,
            fd,
            umem,
            pieces,
            knows_metadata,
        };
        Ok(New { socket, rx_frames, tx_frames })
    }

    /// Binds it to a queue of an interface.
    pub(crate) fn bind(&self, ifindex: u32, queue: u32, copying: Copying) -> io::Result<()> {
        let mode = match copying {
            Copying::Zero => libc::XDP_ZEROCOPY,
            Copying::Copies => libc::XDP_COPY,
        };
        // From Linux 6.6; before that the flag is refused.
        let several = if self.pieces.is_some() { libc::XDP_USE_SG } else { 0 };
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: mode | libc::XDP_USE_NEED_WAKEUP | several,
            sxdp_ifindex: ifindex,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        let size = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
        #[expect(unsafe_code, reason = "no safe wrapper knows AF_XDP addresses")]
        // SAFETY: the descriptor is ours and open; `address` lives across the call, which reads `size` bytes of it.
        let result = unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), size) };
        done(result)
    }

    /// Lets the kernel poll the device for up to `microseconds` when we ask, at most `budget` packets at a time, and
    /// keeps the device's interrupts off meanwhile.
    pub(crate) fn busy_poll(&self, microseconds: u32, budget: u32) -> io::Result<()> {
        let options =
            [(SO_PREFER_BUSY_POLL, 1), (libc::SO_BUSY_POLL, microseconds), (SO_BUSY_POLL_BUDGET, budget)];
        options.into_iter().try_for_each(|(option, value)| {
            set(self.fd.as_fd(), libc::SOL_SOCKET, option, &value.min(i32::MAX as u32))
        })
    }

    /// Lets packets worth `bytes` be on their way in copy mode, as far as the system allows.
    pub(crate) fn raise_send_buffer(&self, bytes: u32) {
        let bytes = bytes.min(i32::MAX as u32 / 4);
        if set(self.fd.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &bytes).is_err() {
            let _ = set(self.fd.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, &bytes);
        }
    }

    /// Whether metadata in front of packets is looked at.
    pub(crate) fn knows_metadata(&self) -> bool {
        self.knows_metadata
    }

    /// Bytes of a frame.
    #[inline]
    pub(crate) fn bytes<'a>(
        &'a mut self,
        frame: &'a mut Frame,
        range: std::ops::Range<usize>,
    ) -> &'a mut [u8] {
        self.umem.bytes(frame, range)
    }

    /// Puts a frame into the fill ring, for the kernel to see with the next [`Socket::publish_fill`].
    #[inline]
    pub(crate) fn give(&mut self, frame: Frame) {
        self.fill.room(1);
        self.fill.push(frame.into_address(0));
    }

    /// Shows the kernel what was given. With [`Wakeup::Needed`] the driver takes it only after [`Socket::poke`].
    #[inline]
    pub(crate) fn publish_fill(&mut self) -> Wakeup {
        self.fill.publish()
    }

    /// Whether the driver waits to be told that there are frames to receive into.
    #[inline]
    pub(crate) fn fill_wakeup(&self) -> Wakeup {
        self.fill.wakeup()
    }

    /// How many packets have arrived; looks anew if there are fewer than `wanted`.
    #[inline]
    pub(crate) fn arrived(&mut self, wanted: u32) -> u32 {
        self.rx.available(wanted)
    }

    /// The oldest packet, or part of one, of those that [`Socket::arrived`] told of.
    #[inline]
    pub(crate) fn receive(&mut self) -> Option<Arrival> {
        let Descriptor { address, len, options } = self.rx.pop()?;
        let (frame, start) = Frame::from_address(address);
        let range = start..(start + len as usize).min(FRAME_SIZE);
        Some(Arrival { frame, range, continues: options & libc::XDP_PKT_CONTD != 0 })
    }

    /// Tells the kernel that the packets taken have been taken.
    #[inline]
    pub(crate) fn release_received(&mut self) {
        self.rx.release();
    }

    /// Puts a packet, `range` of `frame`, into the TX ring, for the kernel to see with the next [`Socket::publish_tx`].
    #[inline]
    pub(crate) fn send(&mut self, frame: Frame, range: std::ops::Range<usize>, lead: Lead) {
        let options = match lead {
            Lead::None => 0,
            Lead::Metadata => libc::XDP_TX_METADATA,
        };
        if let Some(pieces) = &mut self.pieces {
            return pieces.send(&mut self.tx, frame, range, options);
        }
        let address = frame.into_address(range.start);
        self.tx.room(1);
        self.tx.push(Descriptor { address, len: range.len() as u32, options });
    }

    /// Shows the kernel what is to be sent. With [`Wakeup::Needed`] it leaves only after [`Socket::kick`].
    #[inline]
    pub(crate) fn publish_tx(&mut self) -> Wakeup {
        self.tx.publish()
    }

    /// Published packets, or pieces of them, that the kernel has not taken.
    #[inline]
    pub(crate) fn tx_waiting(&mut self) -> u32 {
        self.tx.waiting()
    }

    /// Whether packets leave only when the kernel is told.
    #[inline]
    pub(crate) fn tx_needs_wakeup(&self) -> bool {
        self.tx.wakeup() == Wakeup::Needed
    }

    /// A frame whose packet has left.
    #[inline]
    pub(crate) fn completed(&mut self) -> Option<Frame> {
        loop {
            let address = match self.completion.pop() {
                Some(address) => address,
                None if self.completion.available(1) > 0 => self.completion.pop()?,
                None => return None,
            };
            let Some(pieces) = &mut self.pieces else { return Some(Frame::from_address(address).0) };
            let whole = pieces.completed(address);
            if whole.is_some() {
                return whole;
            }
        }
    }

    /// How many frames wait to be taken back. Of packets in pieces it is known only when all have left.
    pub(crate) fn completions(&self) -> u32 {
        let entries = self.completion.peek();
        self.pieces.as_ref().map_or(entries, |pieces| pieces.frames_of(entries))
    }

    /// Tells the kernel that the completed frames have been taken.
    #[inline]
    pub(crate) fn release_completed(&mut self) {
        self.completion.release();
    }

    /// Has the kernel send what was published.
    pub(crate) fn kick(&self) -> io::Result<()> {
        let flags = libc::MSG_DONTWAIT;
        #[expect(unsafe_code, reason = "no safe wrapper sends zero bytes without an address")]
        // SAFETY: the descriptor is ours and open; there are no bytes to read and no address.
        let result =
            unsafe { libc::sendto(self.fd.as_raw_fd(), std::ptr::null(), 0, flags, std::ptr::null(), 0) };
        done(result as i32)
    }

    /// Has the kernel look for packets, and the driver for frames to receive into.
    pub(crate) fn poke(&self) -> io::Result<()> {
        let flags = libc::MSG_DONTWAIT;
        #[expect(unsafe_code, reason = "no safe wrapper receives nothing")]
        // SAFETY: the descriptor is ours and open; there are no bytes to write and no address is asked for.
        let result = unsafe {
            libc::recvfrom(
                self.fd.as_raw_fd(),
                std::ptr::null_mut(),
                0,
                flags,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
        done(result as i32)
    }

    /// Says whether the socket still has an interface.
    pub(crate) fn check(&self) -> io::Result<()> {
        match rustix::net::sockopt::socket_error(&self.fd) {
            Ok(Err(rustix::io::Errno::NETDOWN | rustix::io::Errno::NXIO)) => {
                Err(io::Error::new(io::ErrorKind::NotConnected, "the interface of an AF_XDP socket has gone"))
            }
            _ => Ok(()),
        }
    }

    /// What the kernel lost so far; zeros where it does not say.
    pub(crate) fn losses(&self) -> Losses {
        let empty = libc::xdp_statistics {
            rx_dropped: 0,
            rx_invalid_descs: 0,
            tx_invalid_descs: 0,
            rx_ring_full: 0,
            rx_fill_ring_empty_descs: 0,
            tx_ring_empty_descs: 0,
        };
        let told = get(self.fd.as_fd(), libc::XDP_STATISTICS, empty).unwrap_or(empty);
        Losses {
            received: told.rx_dropped.saturating_add(told.rx_ring_full),
            invalid: told.rx_invalid_descs.saturating_add(told.tx_invalid_descs),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn create() -> io::Result<OwnedFd> {
    #[expect(unsafe_code, reason = "no safe wrapper knows AF_XDP")]
    // SAFETY: the call takes no pointers; a descriptor that it returns is new and has no other owner.
    unsafe {
        let fd = libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// Registers the memory with the socket. Returns whether the kernel looks at metadata.
fn register(socket: BorrowedFd<'_>, umem: &Umem, setup: &Setup) -> io::Result<bool> {
    let (addr, len) = umem.extent();
    let plain = libc::xdp_umem_reg {
        addr,
        len,
        chunk_size: FRAME_SIZE as u32,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    if setup.metadata == Metadata::IfKnown {
        let chunks = if setup.shape.tx_pages > 1 { libc::XDP_UMEM_UNALIGNED_CHUNK_FLAG } else { 0 };
        // From Linux 6.8; before that the flag is refused.
        let (flags, tx_metadata_len) = (chunks | libc::XDP_UMEM_TX_METADATA_LEN, METADATA_SIZE as u32);
        let with_metadata = libc::xdp_umem_reg { flags, tx_metadata_len, ..plain };
        match set(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &with_metadata) {
            Ok(()) => return Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            Err(error) => return Err(error),
        }
    }
    set(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &plain).map(|()| false)
}

fn offsets(socket: BorrowedFd<'_>) -> io::Result<libc::xdp_mmap_offsets> {
    let none = libc::xdp_ring_offset { producer: 0, consumer: 0, desc: 0, flags: 0 };
    get(socket, libc::XDP_MMAP_OFFSETS, libc::xdp_mmap_offsets { rx: none, tx: none, fr: none, cr: none })
}

fn done(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn set<T: Copy>(socket: BorrowedFd<'_>, level: i32, option: i32, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    #[expect(unsafe_code, reason = "no safe wrapper knows these options")]
    // SAFETY: the descriptor is open while borrowed; `value` lives across the call, and the kernel reads `size` bytes,
    // its size. Memory that an `xdp_umem_reg` names is kept mapped by the socket's owner, and the kernel pins it.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), size)
    };
    done(result)
}

/// Reads an option of AF_XDP into `value`: a structure of integers, which the kernel may know a shorter version of.
fn get<T: Copy>(socket: BorrowedFd<'_>, option: i32, mut value: T) -> io::Result<T> {
    let mut size = size_of::<T>() as libc::socklen_t;
    #[expect(unsafe_code, reason = "no safe wrapper knows these options")]
    // SAFETY: the descriptor is open while borrowed; `value` and `size` live across the call, which writes at most `size`
    // bytes. Both structures that are asked for (offsets, statistics) consist of u64 alone, for which any bits are a value.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_XDP, option, (&raw mut value).cast(), &raw mut size)
    };
    done(result)?;
    // Before Linux 5.4 the rings had no flags, and the structure another shape.
    if size as usize == size_of::<T>() || option == libc::XDP_STATISTICS {
        Ok(value)
    } else {
        Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
    }
}

/// A socket for tests whose rings lie in memory and have no kernel behind them.
#[cfg(test)]
pub(crate) mod in_memory {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use std::os::unix::net::UnixDatagram;

    const LAYOUT: Layout = Layout { producer: 0, consumer: 64, flags: 128, entries: 192, file: 0 };
    const PAGE: u64 = 4096;
    /// System calls that are counted.
    const MOST_CALLS: usize = 8;

    /// The kernel's side.
    pub(crate) struct Kernel {
        rx: Producer<Descriptor>,
        calls: UnixDatagram,
    }

    /// A socket with eight frames in each direction, those to receive into, and its kernel.
    pub(crate) fn socket() -> (Socket, Vec<Frame>, Kernel) {
        let file = || {
            let file = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
            ftruncate(&file, PAGE).unwrap();
            file
        };
        let (umem, mut frames) = Umem::new(Shape { rx_frames: 8, tx_frames: 8, tx_pages: 1 }).unwrap();
        drop(frames.split_off(8));
        // Each `poke` takes a datagram from the pair, so what is left tells how many there were.
        let (ours, calls) = UnixDatagram::pair().unwrap();
        (0..MOST_CALLS).for_each(|_| assert_eq!(calls.send(b"call").unwrap(), 4));
        let calls = ours.try_clone().unwrap();
        calls.set_nonblocking(true).unwrap();
        let rx = file();
        let socket = Socket {
            fd: ours.into(),
            umem,
            fill: Producer::map(file().as_fd(), LAYOUT, 16).unwrap(),
            completion: Consumer::map(file().as_fd(), LAYOUT, 8).unwrap(),
            rx: Consumer::map(rx.as_fd(), LAYOUT, 8).unwrap(),
            tx: Producer::map(file().as_fd(), LAYOUT, 16).unwrap(),
            pieces: None,
            knows_metadata: false,
        };
        (socket, frames, Kernel { rx: Producer::map(rx.as_fd(), LAYOUT, 8).unwrap(), calls })
    }

    impl Socket {
        /// Whether the kernel asks to be told of frames to receive into.
        pub(crate) fn set_fill_wakeup(&self, wakeup: Wakeup) {
            self.fill.set_wakeup(wakeup);
        }
    }

    impl Kernel {
        /// A packet of `len` zeros arrives in the frame with this number.
        pub(crate) fn deliver(&mut self, frame: u32, len: u32) {
            self.rx.room(1);
            self.rx.push(Descriptor { address: u64::from(frame) * FRAME_SIZE as u64, len, options: 0 });
            let _ = self.rx.publish();
        }

        /// System calls so far; ends the counting.
        pub(crate) fn calls(self) -> usize {
            let left = std::iter::from_fn(|| self.calls.recv(&mut [0; 8]).ok()).count();
            MOST_CALLS - left
        }
    }
}
