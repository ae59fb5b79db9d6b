//! The receiving half: a few large buffers, filled again and again.
//!
//! With GRO one message is a train of up to 64 KiB, without it one datagram. Messages fill the buffers from the first
//! on, so that a worker which keeps up touches only the first few, and they stay in its core's cache. Measured on loopback,
//! 2 to 32 buffers of trains cost the same within the noise and a single one a tenth more. Buffers lie a little more
//! than 64 KiB apart, lest all of them begin in the same cache sets.
//!
//! Invariant: every entry of `trains` names a buffer that the last `poll` filled with at least one byte.

use core::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::io;
use std::os::fd::BorrowedFd;

use base::net::{Addresses, Ecn, Train};
use datapath::RxCounters;

use crate::options::Variant;
use crate::sys::{Arrived, ReceiveBatch};

/// Distance of two buffers; at least the largest message, 65,535 bytes.
const STRIDE: usize = 65_536 + 33 * 64;
/// A poll takes no more than about this part of the kernel's buffer, so that the peer hears of it while the rest is full: half
/// of the buffer is the kernel's own bookkeeping, and there are four polls to what the other half holds.
const PART: usize = 8;
/// What messages are long before any has come.
const USUAL_LEN: usize = 1_200;
/// Errors of the socket that one poll looks past.
const MAX_ERRORS: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Filled {
    slot: usize,
    len: usize,
    segment_size: usize,
    addresses: Addresses,
    ecn: Ecn,
}

pub(crate) struct Receiver {
    memory: Box<[u8]>,
    slots: usize,
    batch: ReceiveBatch,
    trains: Vec<Filled>,
    one_per_call: bool,
    /// Bytes of datagrams after which a poll takes no more: a part of what the kernel's buffer holds.
    most_bytes: usize,
    /// The mean length of the messages that the last poll took.
    mean_len: usize,
    bound: SocketAddr,
    /// The kernel's count of lost datagrams when last seen; it wraps.
    lost: u32,
    pub(crate) counters: RxCounters,
}

impl Receiver {
    /// A receiver of up to `slots` messages per poll, for a socket bound to `bound` whose buffer is of `buffer` bytes, as the
    /// kernel counts them.
    pub(crate) fn new(variant: Variant, slots: usize, bound: SocketAddr, buffer: usize) -> Receiver {
        let slots = slots.clamp(1, 1024);
        Receiver {
            memory: vec![0; slots * STRIDE].into_boxed_slice(),
            slots,
            batch: ReceiveBatch::new(slots),
            trains: Vec::with_capacity(slots),
            one_per_call: variant == Variant::Plain,
            most_bytes: buffer / PART,
            mean_len: USUAL_LEN,
            bound,
            lost: 0,
            counters: RxCounters::default(),
        }
    }

    pub(crate) fn poll(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        self.trains.clear();
        let mut filled = 0;
        let mut errors = 0;
        let bytes_before = self.counters.bytes;
        let slots = (self.most_bytes / self.mean_len).clamp(1, self.slots);
        while filled < slots {
            let end = if self.one_per_call { filled + 1 } else { slots };
            self.counters.calls += 1;
            match self.batch.receive(socket, &mut self.memory, STRIDE, filled..end) {
                Ok(received) => {
                    for slot in filled..filled + received {
                        self.on_message(slot);
                    }
                    filled += received;
                    if !self.one_per_call {
                        break;
                    }
                }
                Err(error) => match error.raw_os_error().unwrap_or(0) {
                    libc::EAGAIN => break,
                    libc::EINTR => {}
                    libc::EBADF | libc::ENOTSOCK | libc::EFAULT | libc::EINVAL => return Err(error),
                    // An ICMP error for something sent earlier, or no memory just now: not worth a worker.
                    _ if errors < MAX_ERRORS => {
                        errors += 1;
                        self.counters.errors += 1;
                    }
                    _ => break,
                },
            }
        }
        let bytes = (self.counters.bytes - bytes_before) as usize;
        self.mean_len = bytes.checked_div(self.trains.len()).unwrap_or(self.mean_len);
        Ok(self.trains.len())
    }

    fn on_message(&mut self, slot: usize) {
        let &Arrived { ref name, ref control, len, flags } = self.batch.arrived(slot);
        let beside = control.read();
        if let Some(lost) = beside.lost {
            self.counters.overflowed += u64::from(lost.wrapping_sub(self.lost));
            self.lost = lost;
        }
        if len == 0 {
            self.counters.empty += 1;
            return;
        }
        let cut = flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0;
        let (false, Some(peer)) = (cut, name.address()) else {
            self.counters.truncated += 1;
            return;
        };
        let segment_size = beside.segment_size.filter(|&size| size > 0 && size < len).unwrap_or(len);
        let local = match beside.destination {
            Some((ip, interface)) => on_interface(ip, self.bound.port(), interface),
            None => self.bound,
        };
        let addresses = Addresses { local, peer };
        self.counters.trains += 1;
        self.counters.datagrams += if segment_size == len { 1 } else { len.div_ceil(segment_size) as u64 };
        self.counters.bytes += len as u64;
        self.trains.push(Filled { slot, len, segment_size, addresses, ecn: beside.ecn });
    }

    #[inline]
    pub(crate) fn train(&mut self, index: usize) -> Train<'_> {
        let Filled { slot, len, segment_size, addresses, ecn } = self.trains[index];
        let start = slot * STRIDE;
        Train { bytes: &mut self.memory[start..start + len], segment_size, addresses, ecn }
    }
}

/// A local address; only a link-local one needs to say on which interface.
fn on_interface(ip: IpAddr, port: u16, interface: u32) -> SocketAddr {
    match ip {
        IpAddr::V6(ip) if ip.is_unicast_link_local() => {
            SocketAddr::V6(SocketAddrV6::new(ip, port, 0, interface))
        }
        ip => SocketAddr::new(ip, port),
    }
}
