//! A packet socket on one interface: whole frames in and out, many in one system call.
//!
//! PACKET_VNET_HDR keeps super-packets whole, both ways: without it the kernel cuts them and completes every checksum before we
//! see them. PACKET_IGNORE_OUTGOING hides what we send. SO_TIMESTAMPNS tells when the kernel got a frame, so a frame's delay is
//! exact even if this thread gets the CPU late. Promiscuous mode is not needed: a veth passes frames with any address on,
//! and packet sockets see those for other hosts too.
//!
//! Rejected: PACKET_QDISC_BYPASS, because that path drops a super-packet which the interface would have to have cut (one whose
//! segmentation is off); the queueing discipline of a veth is none anyway. Rejected: TPACKET rings, shared memory that safe code
//! cannot touch and that saves one copy of two.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, LinkAddr, MsgFlags, MultiHeaders, SockFlag,
    SockProtocol, SockType, bind, getsockopt, recvmmsg, sendmmsg, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;

use super::held::HeldQueue;
use super::pool::Buffer;

/// Frames per system call.
pub(crate) const BATCH: usize = 32;

/// What the kernel may keep for us while we are not on the CPU: 50 ms at 10 Gbit/s.
const SOCKET_BUFFER: usize = 64 << 20;

/// `struct virtio_net_hdr` before each frame (linux/if_packet.h).
#[derive(Clone, Copy, Debug)]
struct VnetHeader;
nix::setsockopt_impl!(VnetHeader, libc::SOL_PACKET, libc::PACKET_VNET_HDR, bool, sockopt::SetBool);

/// Nothing that this host sends comes in (linux/if_packet.h, since Linux 4.20).
#[derive(Clone, Copy, Debug)]
struct IgnoreOutgoing;
nix::setsockopt_impl!(IgnoreOutgoing, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, bool, sockopt::SetBool);

/// How many frames found the kernel's buffer full since the last question.
#[derive(Clone, Copy, Debug)]
struct Statistics;
nix::getsockopt_impl!(
    Statistics,
    libc::SOL_PACKET,
    libc::PACKET_STATISTICS,
    libc::tpacket_stats,
    sockopt::GetStruct<libc::tpacket_stats>
);

/// A frame that came in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Bytes, the virtio header included.
    pub(crate) length: usize,
    /// Wall-clock time at which the kernel got it, in nanoseconds; none if the kernel did not say.
    pub(crate) wall_nanos: Option<u64>,
}

/// One end of the wire.
pub(crate) struct PacketSocket {
    socket: OwnedFd,
    incoming: MultiHeaders<()>,
    outgoing: MultiHeaders<()>,
}

impl PacketSocket {
    /// A socket on `interface` in the calling thread's network namespace.
    pub(crate) fn open(interface: &str) -> io::Result<PacketSocket> {
        let address = link_address(interface)?;
        let socket = socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC,
            SockProtocol::EthAll,
        )?;
        // An address without a protocol leaves the socket its own: all of them.
        bind(socket.as_raw_fd(), &address)?;
        setsockopt(&socket, VnetHeader, &true)?;
        setsockopt(&socket, IgnoreOutgoing, &true)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        set_buffers(&socket)?;
        let mut socket = PacketSocket {
            socket,
            incoming: headers_with_time(),
            outgoing: MultiHeaders::preallocate(BATCH, None),
        };
        socket.discard()?;
        Ok(socket)
    }

    /// A second descriptor of the socket, for `missed`.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone()
    }

    /// Throws away what came before the socket was bound and set: from any interface, without virtio headers.
    fn discard(&mut self) -> io::Result<()> {
        let mut waste = [0; 64];
        loop {
            match nix::sys::socket::recv(self.socket.as_raw_fd(), &mut waste, MsgFlags::MSG_DONTWAIT) {
                Ok(_) => {}
                Err(Errno::EAGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Receives frames into `landings`, describes them in `arrivals` and says how many; 0 when none wait.
    pub(crate) fn receive(
        &mut self,
        landings: &mut [Buffer; BATCH],
        arrivals: &mut [Arrival; BATCH],
    ) -> io::Result<usize> {
        let mut slices = landings.each_mut().map(|landing| {
            // Landings have one owner; were it not so, the kernel would get no room and the frame be truncated to nothing.
            [IoSliceMut::new(Rc::get_mut(landing).map_or(&mut [][..], Vec::as_mut_slice))]
        });
        let results = match recvmmsg(
            self.socket.as_raw_fd(),
            &mut self.incoming,
            slices.iter_mut(),
            MsgFlags::MSG_DONTWAIT,
            None,
        ) {
            Ok(results) => results,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(0),
            // The interface is down or a frame was of a kind that virtio cannot tell: the next one may do.
            Err(Errno::ENETDOWN | Errno::EINVAL) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        let mut count = 0;
        for (result, arrival) in results.zip(arrivals.iter_mut()) {
            let wall_nanos = result.cmsgs().ok().and_then(|mut messages| {
                messages.find_map(|message| match message {
                    ControlMessageOwned::ScmTimestampns(time) => nanos(time),
                    _ => None,
                })
            });
            *arrival = Arrival { length: result.bytes, wall_nanos };
            count += 1;
        }
        // The binding keeps the kernel's lengths of control data: after a frame without a time there would be no room for one.
        if arrivals[..count].iter().any(|arrival| arrival.wall_nanos.is_none()) {
            self.incoming = headers_with_time();
        }
        Ok(count)
    }

    /// Sends the first `count` pieces of `queue`, at most a batch; says how many the kernel took, and what stopped it.
    pub(crate) fn send(&mut self, queue: &HeldQueue, count: usize) -> Result<usize, Errno> {
        let slices: [[IoSlice<'_>; 2]; BATCH] = std::array::from_fn(|n| match queue.nth(n) {
            Some(held) if n < count => {
                [IoSlice::new(held.piece.head.as_slice()), IoSlice::new(held.payload())]
            }
            _ => [IoSlice::new(&[]), IoSlice::new(&[])],
        });
        let addresses = [None::<()>; BATCH];
        let messages: [ControlMessage<'_>; 0] = [];
        let slices = slices[..count.min(BATCH)].iter();
        let sent = sendmmsg(
            self.socket.as_raw_fd(),
            &mut self.outgoing,
            slices,
            addresses,
            messages,
            MsgFlags::MSG_DONTWAIT,
        )?;
        Ok(sent.count())
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// How many frames a socket of ours lost, because this process did not come to read them, since the last question.
pub(crate) fn missed(socket: &OwnedFd) -> u64 {
    getsockopt(socket, Statistics).map_or(0, |statistics| u64::from(statistics.tp_drops))
}

/// The address that binds to `interface`. Among the addresses of interfaces is one of the link layer for each.
fn link_address(interface: &str) -> io::Result<LinkAddr> {
    nix::ifaddrs::getifaddrs()?
        .filter(|entry| entry.interface_name == interface)
        .find_map(|entry| entry.address?.as_link_addr().copied())
        .ok_or_else(|| io::Error::from(Errno::ENODEV))
}

/// As root beyond the system's limits; else as far as they allow.
fn set_buffers(socket: &OwnedFd) -> nix::Result<()> {
    if setsockopt(socket, sockopt::RcvBufForce, &SOCKET_BUFFER).is_err() {
        setsockopt(socket, sockopt::RcvBuf, &SOCKET_BUFFER)?;
    }
    if setsockopt(socket, sockopt::SndBufForce, &SOCKET_BUFFER).is_err() {
        setsockopt(socket, sockopt::SndBuf, &SOCKET_BUFFER)?;
    }
    Ok(())
}

fn headers_with_time() -> MultiHeaders<()> {
    MultiHeaders::preallocate(BATCH, Some(nix::cmsg_space!(TimeSpec)))
}

fn nanos(time: TimeSpec) -> Option<u64> {
    let seconds = u64::try_from(time.tv_sec()).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(u64::try_from(time.tv_nsec()).ok()?)
}

#[cfg(test)]
mod tests;
