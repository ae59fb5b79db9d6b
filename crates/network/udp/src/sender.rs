//! The sending half: trains in one piece of memory, and their way into the kernel.
//!
//! Trains are built end to end in `memory`. `flush` describes the queue, oldest first, as messages: a train is one message
//! when it goes out segmented, else one message per datagram. Every train knows how far it has got, so a batch that the
//! kernel takes in part, or not at all, is simply described again from where it stands. When the queue is empty
//! the memory is used from its beginning again, so that an endpoint which keeps up stays in its core's cache.
//!
//! What an error means depends on the train at the front, since that is what the kernel reports on:
//! no room (keep everything), a refused segmentation (send that train in pieces and, if the pieces pass, remember the
//! destination), an old error of the socket (try again once), or a datagram that cannot be sent (count it, go on).
//!
//! With lent memory ([`Memory`]) there are several such pieces, and the next one that the kernel does not read any more is used.
//!
//! Rejected: a buffer per train (trains of a few small packets would spread over megabytes); a ring (only a stalled
//! socket would profit). Sources: Linux udp(7), `UDP_SEGMENT`.

use core::net::{IpAddr, SocketAddr};
use core::ops::Range;
use std::io;
use std::os::fd::BorrowedFd;

use base::sink::TrainPath;
use datapath::trains::{MAX_TRAIN_BYTES, MAX_TRAIN_SEGMENTS};
use datapath::{Refused, SendFault, TxCounters};

use crate::control::Outgoing;
use crate::name::{Family, Name};
use crate::options::Variant;
use crate::pins::Pins;
use crate::refusals::SendErrors;
use crate::sys::{self, Memory, Message, SendBatch};

/// Most trains in the queue.
const MAX_TRAINS: usize = 256;
/// Most refusals that are remembered.
const MAX_REFUSED: usize = 32;
/// Most messages in one call.
const MAX_MESSAGES: usize = 64;
const CACHE_LINE: usize = 64;

/// How a queued train goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As the variant has it.
    Usual,
    /// Datagram by datagram, because its segmentation was just refused; nothing of it has been sent since.
    Suspect,
    /// Datagram by datagram.
    Split,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    path: TrainPath,
    /// The first byte that has not been sent.
    next: usize,
    end: usize,
    segment_size: usize,
    form: Form,
    /// Whether an error that may have been an old one has already been forgiven.
    retried: bool,
}

impl Queued {
    fn datagrams(&self, len: usize) -> u64 {
        len.div_ceil(self.segment_size) as u64
    }
}

/// The train being built.
#[derive(Clone, Copy, Debug)]
struct Open {
    path: TrainPath,
    segment_size: usize,
    start: usize,
    /// Where the next packet goes.
    room: usize,
    /// End of the last packet.
    end: usize,
    packets: usize,
}

/// What to do about an error.
enum Next {
    Continue,
    Stop,
}

pub(crate) struct Sender {
    memory: Memory,
    /// The part of `memory` in which trains are built until all have left.
    region: Range<usize>,
    free_from: usize,
    open: Option<Open>,
    queue: Vec<Queued>,
    /// Trains of `queue` that are done with.
    done: usize,
    messages: Box<[Message]>,
    batch: SendBatch,
    segments: bool,
    /// Whether trains carry their time of departure.
    holds_back: bool,
    calls_carry: usize,
    refusals: SendErrors,
    family: Family,
    /// The address that the socket is bound to and so sends from anyway.
    bound: SocketAddr,
    pinned: Pins,
    /// Datagrams longer than their interface's MTU, the latest last, until someone asks.
    too_large: Vec<Refused>,
    pub(crate) counters: TxCounters,
    #[cfg(test)]
    pub(crate) kernel: Option<tests::FakeKernel>,
    #[cfg(test)]
    pub(crate) most_segments: usize,
}

impl Sender {
    /// From now on each message has a call of its own.
    pub(crate) fn send_singly(&mut self) {
        self.calls_carry = 1;
    }

    /// From now on long trains leave without a copy where the interface can.
    ///
    /// # Errors
    /// The system has no io_uring for us: everything stays as it is.
    pub(crate) fn lend(&mut self) -> io::Result<()> {
        self.memory = Memory::lendable(self.region.len())?;
        self.rewind();
        Ok(())
    }

    /// Builds the next trains where nothing is lent, after all that were queued have left.
    fn rewind(&mut self) {
        self.region = self.memory.next_region();
        self.free_from = self.region.start;
    }

    /// From now on what leaves from `ip` leaves by this interface.
    pub(crate) fn pin(&mut self, ip: IpAddr, interface: u32) {
        self.pinned.add(ip, interface);
    }

    /// A sender that builds trains in `memory` bytes.
    pub(crate) fn new(variant: Variant, memory: usize, family: Family, bound: SocketAddr) -> Sender {
        let memory = memory.max((MAX_TRAIN_BYTES + 1).next_multiple_of(CACHE_LINE));
        Sender {
            memory: Memory::new(memory),
            region: 0..memory,
            free_from: 0,
            open: None,
            queue: Vec::with_capacity(MAX_TRAINS),
            done: 0,
            messages: vec![Message::EMPTY; MAX_MESSAGES].into_boxed_slice(),
            batch: SendBatch::new(MAX_MESSAGES),
            segments: variant.sends_trains(),
            holds_back: false,
            calls_carry: if variant == Variant::Plain { 1 } else { MAX_MESSAGES },
            refusals: SendErrors::default(),
            family,
            bound,
            pinned: Pins::default(),
            too_large: Vec::new(),
            counters: TxCounters::default(),
            #[cfg(test)]
            kernel: None,
            #[cfg(test)]
            most_segments: MAX_TRAIN_SEGMENTS,
        }
    }

    /// Whether trains leave whole, as far as is known.
    pub(crate) fn segments(&self) -> bool {
        self.segments && !self.refusals.everyone()
    }

    /// Has the kernel told when each train departs, if it takes that of `socket`.
    pub(crate) fn hold_back(&mut self, socket: BorrowedFd<'_>) {
        self.holds_back = sys::enable_departure_times(socket).is_ok();
    }

    /// Whether the kernel is told when trains depart.
    pub(crate) fn holds_back(&self) -> bool {
        self.holds_back
    }

    /// The latest datagram that an interface refused as too long and that no call has taken yet.
    #[inline]
    pub(crate) fn take_refused(&mut self) -> Option<Refused> {
        self.too_large.pop()
    }

    /// Whether trains wait for a flush.
    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    fn most_segments(&self) -> usize {
        #[cfg(test)]
        return self.most_segments;
        #[cfg(not(test))]
        MAX_TRAIN_SEGMENTS
    }

    pub(crate) fn begin(&mut self, path: TrainPath, segment_size: usize) -> Option<usize> {
        debug_assert!(self.open.is_none(), "one train is open at a time");
        debug_assert!((1..=MAX_TRAIN_BYTES).contains(&segment_size), "a train that no kernel takes");
        let most = (MAX_TRAIN_BYTES / segment_size.max(1)).min(self.most_segments());
        let free = self.region.end - self.free_from;
        if most == 0 || self.queue.len() >= MAX_TRAINS || most * segment_size > free {
            return None;
        }
        let start = self.free_from;
        let path = TrainPath { departs: path.departs.filter(|_| self.holds_back), ..path };
        self.open = Some(Open { path, segment_size, start, room: start, end: start, packets: 0 });
        Some(most)
    }

    #[inline]
    pub(crate) fn room(&mut self) -> &mut [u8] {
        let Some(open) = &self.open else { return &mut [] };
        &mut self.memory[open.room..open.room + open.segment_size]
    }

    #[inline]
    pub(crate) fn push(&mut self, len: usize) {
        let Some(open) = &mut self.open else { return };
        debug_assert!(len >= 1 && len <= open.segment_size);
        debug_assert!(open.end == open.room, "a short packet must be the last");
        open.end = open.room + len;
        open.room += open.segment_size;
        open.packets += 1;
    }

    #[inline]
    pub(crate) fn packet(&mut self, index: usize) -> &mut [u8] {
        let Some(open) = &self.open else { return &mut [] };
        debug_assert!(index < open.packets);
        let start = open.start + index * open.segment_size;
        &mut self.memory[start..(start + open.segment_size).min(open.end)]
    }

    pub(crate) fn end(&mut self) {
        let Some(open) = self.open.take() else { return };
        if open.end == open.start {
            return;
        }
        let Open { path, segment_size, start, end, .. } = open;
        self.queue.push(Queued { path, next: start, end, segment_size, form: Form::Usual, retried: false });
        self.free_from = end.next_multiple_of(CACHE_LINE).min(self.region.end);
    }

    /// Sends until the queue is empty or the socket full.
    pub(crate) fn flush(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        debug_assert!(self.open.is_none(), "a train is open");
        while self.done < self.queue.len() {
            let count = self.describe();
            self.counters.calls += 1;
            match self.dispatch(socket, count) {
                Ok(sent) => self.on_sent(sent),
                Err(error) => match self.on_error(&error)? {
                    Next::Continue => {}
                    Next::Stop => {
                        self.counters.deferred += 1;
                        return Ok(());
                    }
                },
            }
        }
        self.queue.clear();
        self.done = 0;
        self.rewind();
        Ok(())
    }

    /// Writes messages for the front of the queue, as many as a call carries.
    fn describe(&mut self) -> usize {
        let mut count = 0;
        for train in &self.queue[self.done..] {
            let whole = self.segments
                && train.form == Form::Usual
                && !self.refusals.include(train.path.addresses.peer.ip());
            let mut start = train.next;
            while start < train.end {
                if count == self.calls_carry {
                    return count;
                }
                let len = (train.end - start).min(if whole { usize::MAX } else { train.segment_size });
                write_message(
                    &mut self.messages[count],
                    train,
                    start..start + len,
                    (self.family, self.bound, &self.pinned),
                );
                start += len;
                count += 1;
            }
        }
        count
    }

    fn dispatch(&mut self, socket: BorrowedFd<'_>, count: usize) -> io::Result<usize> {
        #[cfg_attr(not(test), expect(unused_mut, reason = "tests shorten it"))]
        let mut messages = &self.messages[..count];
        #[cfg(test)]
        if let Some(kernel) = &mut self.kernel {
            messages = &messages[..kernel.admit(messages)?];
        }
        let Some(first) = messages.first() else { return Ok(0) };
        if self.memory.lends(first.len) {
            return self.memory.send(socket, &messages[..Memory::run(messages)]);
        }
        self.batch.send(socket, &self.memory, messages)
    }

    /// Books the first `sent` messages of the batch.
    fn on_sent(&mut self, sent: usize) {
        for message in &self.messages[..sent] {
            let Some(train) = self.queue.get_mut(self.done) else { return };
            if train.form == Form::Suspect {
                // A piece as long as a segment has passed, so it was the segmentation that the destination refused,
                // not the size of the datagrams.
                train.form = Form::Split;
                if message.len == train.segment_size {
                    self.refusals.on_refused(train.path.addresses.peer.ip());
                }
            }
            self.counters.datagrams += train.datagrams(message.len);
            self.counters.bytes += message.len as u64;
            self.counters.trains += 1;
            advance(train, &mut self.done, message.len);
        }
    }

    /// Decides what an error on the message at the front means.
    fn on_error(&mut self, error: &io::Error) -> io::Result<Next> {
        let code = error.raw_os_error().unwrap_or(0);
        let len = self.messages[0].len;
        let Some(train) = self.queue.get_mut(self.done) else { return Ok(Next::Continue) };
        let segmented = len > train.segment_size;
        let fault = match code {
            libc::EAGAIN => return Ok(Next::Stop),
            libc::EINTR => return Ok(Next::Continue),
            libc::EIO | libc::EINVAL | libc::EMSGSIZE | libc::EOPNOTSUPP if segmented => {
                train.form = Form::Suspect;
                self.counters.split += 1;
                return Ok(Next::Continue);
            }
            libc::ECONNREFUSED | libc::ECONNRESET | libc::ENOPROTOOPT | libc::EPROTO => SendFault::Refused,
            libc::EHOSTUNREACH
            | libc::ENETUNREACH
            | libc::EHOSTDOWN
            | libc::ENETDOWN
            | libc::EPERM
            | libc::EACCES => SendFault::Unreachable,
            libc::EMSGSIZE => SendFault::TooLarge,
            libc::EBADF | libc::ENOTSOCK | libc::EFAULT => {
                return Err(io::Error::new(error.kind(), format!("sending on a UDP socket: {error}")));
            }
            _ => SendFault::Other,
        };
        if !train.retried && matches!(fault, SendFault::Refused | SendFault::Unreachable) {
            // The kernel reports an ICMP error for an earlier datagram on whatever is sent next, and does not send it.
            train.retried = true;
            if fault == SendFault::Refused {
                self.counters.on_fault(fault, 1);
            }
            return Ok(Next::Continue);
        }
        self.counters.on_fault(fault, train.datagrams(len));
        if fault == SendFault::TooLarge && self.too_large.len() < MAX_REFUSED {
            self.too_large.push(Refused { peer: train.path.addresses.peer, size: len });
        }
        if train.form == Form::Suspect {
            train.form = Form::Split;
        }
        advance(train, &mut self.done, len);
        Ok(Next::Continue)
    }
}

/// Moves `train`, the first of the queue, on by a message of `len` bytes, sent or lost.
fn advance(train: &mut Queued, done: &mut usize, len: usize) {
    train.next += len;
    if train.next >= train.end {
        *done += 1;
    }
}

/// Describes `bytes` of `train` for a socket of the given family that is bound to the given address, with the pinned ones.
fn write_message(
    message: &mut Message,
    train: &Queued,
    bytes: Range<usize>,
    socket: (Family, SocketAddr, &Pins),
) {
    let (family, bound, pinned) = socket;
    let base::net::Addresses { local, peer } = train.path.addresses;
    message.start = bytes.start;
    message.len = bytes.len();
    message.name = Name::of(peer, family);
    let known = !local.ip().is_unspecified() && local.ip() != bound.ip();
    let scope = match (pinned.interface(local.ip()), local) {
        (Some(interface), _) => interface,
        (_, SocketAddr::V6(local)) => local.scope_id(),
        (_, SocketAddr::V4(_)) => 0,
    };
    let outgoing = Outgoing {
        // Below 65,536 because a train is.
        segment_size: (bytes.len() > train.segment_size).then_some(train.segment_size as u16),
        ecn: train.path.ecn,
        source: known.then_some((local.ip(), scope)),
        departs: train.path.departs,
    };
    message.control.set(&outgoing, peer.ip(), family);
}

#[cfg(test)]
mod tests;
