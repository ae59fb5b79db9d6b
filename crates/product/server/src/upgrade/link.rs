//! Datagrams from the process that has the sockets to one whose connections they belong to.
//!
//! A link is a pair of sockets that keeps the borders of messages (SOCK_SEQPACKET), a message for each train: 64 bytes of
//! head, then the datagrams back to back. The sender never waits: what the kernel's buffer does not hold is lost, as in any full socket.
//! The receiver's end closes with its process, which the sender is told by its next message.
//!
//! Rejected: unix datagrams (ten may wait, by the kernel's default), and shared memory (two versions of the program would have to
//! agree about far more than a head).

use base::net::{Addresses, Ecn, Train};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, recv, sendmsg,
    socketpair, sockopt,
};
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, sleep};
use std::time::Duration;
use transport::Predecessor;
use worker::{HandOffMember, OtherProcesses};

/// Bytes in front of the datagrams.
const HEAD: usize = 64;
/// The longest train, in bytes.
const LONGEST: usize = 65_535;
/// Bytes that may wait in a link, as far as the system grants it.
const BUFFER: usize = 8 << 20;
/// How often the receiver tries again where a worker's queue is full, and how long it waits before.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(1);

/// The two ends of a link: where its owner receives, and where others send.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (receiver, sender) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    if sockopt::set_socket_send_buffer_size_force(&sender, BUFFER).is_err() {
        // What is granted then is enough for acknowledgements.
        let _ = sockopt::set_socket_send_buffer_size(&sender, BUFFER);
    }
    Ok((receiver, sender))
}

/// The way to one process.
#[derive(Debug)]
struct Link {
    generation: u8,
    socket: OwnedFd,
    has_ended: AtomicBool,
}

/// The ways to the processes whose place this one has taken.
#[derive(Debug, Default)]
pub(crate) struct Links(Vec<Link>);

impl Links {
    pub(super) fn new(links: Vec<(u8, OwnedFd)>) -> Links {
        let link = |(generation, socket)| Link { generation, socket, has_ended: AtomicBool::new(false) };
        Links(links.into_iter().map(link).collect())
    }

    /// The generations of those that have not ended, as far as it is known, with their sockets.
    pub(super) fn living(&self) -> impl Iterator<Item = (u8, &OwnedFd)> {
        let living = self.0.iter().filter(|link| !link.has_ended.load(Ordering::Relaxed));
        living.filter(|link| !is_closed(&link.socket)).map(|link| (link.generation, &link.socket))
    }

    pub(crate) fn generations(&self) -> Vec<u8> {
        self.0.iter().map(|link| link.generation).collect()
    }
}

/// Whether the other end is closed.
fn is_closed(socket: &OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut events = [PollFd::new(socket, PollFlags::empty())];
    let asked = poll(&mut events, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    asked.is_ok() && events[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

impl OtherProcesses for Links {
    fn hand_over(&self, to: Predecessor, train: &Train<'_>) -> Option<u64> {
        let link = self.0.iter().find(|link| link.generation == to.generation)?;
        if link.has_ended.load(Ordering::Relaxed) {
            return None;
        }
        let head = head(to.worker, train);
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let parts = [IoSlice::new(&head), IoSlice::new(train.bytes)];
        match sendmsg(&link.socket, &parts, &mut SendAncillaryBuffer::default(), flags) {
            Ok(_) => Some(train.bytes.len().div_ceil(train.segment_size.max(1)) as u64),
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::INTR | Errno::MSGSIZE) => Some(0),
            Err(_) => {
                link.has_ended.store(true, Ordering::Relaxed);
                None
            }
        }
    }
}

/// The form, the worker, the marking, the length of datagrams, then both addresses.
fn head(worker: u8, train: &Train<'_>) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    let segment = u16::try_from(train.segment_size).unwrap_or(u16::MAX).to_be_bytes();
    head[..5].copy_from_slice(&[FORM, worker, train.ecn as u8, segment[0], segment[1]]);
    head[8..36].copy_from_slice(&address(train.addresses.local));
    head[36..64].copy_from_slice(&address(train.addresses.peer));
    head
}

const FORM: u8 = 1;

/// The address as one of IPv6, with a first byte that tells whether it is, then port and scope.
fn address(of: SocketAddr) -> [u8; 28] {
    let mut bytes = [0; 28];
    let (ip, scope) = match of {
        SocketAddr::V4(of) => (of.ip().to_ipv6_mapped(), 0),
        SocketAddr::V6(of) => (*of.ip(), of.scope_id()),
    };
    bytes[0] = u8::from(of.is_ipv6());
    bytes[2..4].copy_from_slice(&of.port().to_be_bytes());
    bytes[4..20].copy_from_slice(&ip.octets());
    bytes[20..24].copy_from_slice(&scope.to_be_bytes());
    bytes
}

fn read_address(bytes: &[u8]) -> Option<SocketAddr> {
    let is_ipv6 = *bytes.first()? == 1;
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    let ip = Ipv6Addr::from(*bytes.get(4..)?.first_chunk::<16>()?);
    let scope = u32::from_be_bytes(*bytes.get(20..)?.first_chunk()?);
    match (is_ipv6, ip.to_ipv4_mapped()) {
        (true, _) => Some(SocketAddrV6::new(ip, port, 0, scope).into()),
        (false, Some(ip)) => Some(SocketAddr::new(IpAddr::V4(ip), port)),
        (false, None) => None,
    }
}

/// The worker and the train of a message; `None` if it is of another form.
fn read(message: &mut [u8]) -> Option<(u8, Train<'_>)> {
    let (head, bytes) = message.split_at_mut_checked(HEAD)?;
    let &mut [FORM, worker, ecn, high, low, ..] = head else { return None };
    let ecn = Ecn::from_bits(ecn);
    let segment_size = usize::from(u16::from_be_bytes([high, low]));
    let addresses = Addresses { local: read_address(head.get(8..)?)?, peer: read_address(head.get(36..)?)? };
    let is_whole = segment_size > 0 && !bytes.is_empty();
    is_whole.then_some((worker, Train { bytes, segment_size, addresses, ecn }))
}

/// Brings what arrives at `receiver` to the workers, on a thread of its own, for as long as the process lives.
///
/// # Errors
/// The system has no thread left.
pub(super) fn receive(receiver: OwnedFd, workers: HandOffMember) -> io::Result<()> {
    let bring = move || {
        let mut message = vec![0; HEAD + LONGEST];
        loop {
            match recv(&receiver, message.as_mut_slice(), RecvFlags::empty()) {
                Ok((_, 0)) => return,
                Ok((_, length)) => {
                    if let Some((worker, train)) = message.get_mut(..length).and_then(read) {
                        bring(&workers, worker, train);
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    };
    Builder::new().name("hand-off".to_owned()).spawn(bring).map(drop)
}

/// A queue that is full gets a little time. What it does not take then is lost, as in any full socket.
fn bring(workers: &HandOffMember, worker: u8, train: Train<'_>) {
    let Train { mut bytes, segment_size, addresses, ecn } = train;
    for _ in 0..TRIES {
        let rest = Train { bytes: &mut *bytes, segment_size, addresses, ecn };
        let taken = workers.send(worker, &rest);
        let taken = usize::try_from(taken).unwrap_or(usize::MAX).saturating_mul(segment_size);
        match bytes.split_at_mut_checked(taken) {
            Some((_, rest)) if !rest.is_empty() => bytes = rest,
            _ => return,
        }
        sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use worker::HandOff;

    fn train<'a>(bytes: &'a mut [u8], segment_size: usize, addresses: [&str; 2]) -> Train<'a> {
        let [local, peer] = addresses.map(|address| address.parse().unwrap());
        Train { bytes, segment_size, addresses: Addresses { local, peer }, ecn: Ecn::Ce }
    }

    /// Deleted, the old process could answer from the wrong address, or take a datagram for another one.
    #[test]
    fn a_train_arrives_as_it_was_sent() {
        for addresses in [
            ["192.0.2.1:443", "198.51.100.7:5000"],
            ["[2001:db8::1]:443", "[fe80::1%7]:1"],
            ["[::ffff:192.0.2.1]:443", "[::1]:65535"],
        ] {
            let mut bytes = vec![7; 2_500];
            let sent = train(&mut bytes, 1_200, addresses);
            let mut message = [&head(3, &sent)[..], sent.bytes].concat();
            let (worker, read) = read(&mut message).unwrap();
            assert_eq!((worker, read.segment_size, read.ecn), (3, 1_200, Ecn::Ce));
            assert_eq!((read.addresses, &*read.bytes), (sent.addresses, &*sent.bytes));
        }
        let mut bytes = [1, 2, 3];
        let sent = train(&mut bytes, 3, ["192.0.2.1:443", "192.0.2.2:443"]);
        let message = [&head(3, &sent)[..], sent.bytes].concat();
        let mut other = message.clone();
        other[0] = FORM + 1;
        assert!(read(&mut other).is_none(), "another form");
        for length in 0..=HEAD {
            assert!(read(&mut message.clone()[..length]).is_none(), "{length}");
        }
    }

    /// Deleted, a process would go on sending to one that has ended, whose clients hear nothing; or memory could fill up, or the sender wait.
    #[test]
    fn a_link_is_bounded_and_tells_when_the_other_process_has_ended() {
        let (receiver, sender) = pair().unwrap();
        let links = Links::new(vec![(5, sender)]);
        let to = Predecessor { generation: 5, worker: 0 };
        let addresses = ["127.0.0.1:443", "127.0.0.1:5000"];
        let mut bytes = vec![7; 60_000];
        assert_eq!(
            links.hand_over(Predecessor { generation: 4, ..to }, &train(&mut bytes, 1_200, addresses)),
            None
        );
        let mut sent = 0;
        while links.hand_over(to, &train(&mut bytes, 1_200, addresses)) == Some(50) {
            sent += bytes.len();
            assert!(sent < 4 * BUFFER, "it is bounded");
        }
        assert_eq!(links.hand_over(to, &train(&mut bytes, 1_200, addresses)), Some(0), "it is full");
        assert_eq!(links.living().count(), 1);
        drop(receiver);
        assert_eq!(links.living().count(), 0);
        assert_eq!(links.hand_over(to, &train(&mut bytes, 1_200, addresses)), None);
        assert_eq!(links.hand_over(to, &train(&mut bytes, 1_200, addresses)), None);
        assert_eq!(links.generations(), [5]);
    }

    #[test]
    fn what_arrives_reaches_its_worker() {
        let (receiver, sender) = pair().unwrap();
        let waker = datapath::Waker::new().unwrap();
        let group = HandOff::group(vec![None, Some(waker.clone())]);
        receive(receiver, group[0].bringer()).unwrap();
        let links = Links::new(vec![(0, sender)]);
        let mut bytes = vec![7; 3_000];
        let sent = train(&mut bytes, 1_200, ["127.0.0.1:443", "127.0.0.1:5000"]);
        assert_eq!(links.hand_over(Predecessor { generation: 0, worker: 1 }, &sent), Some(3));
        let mut fds = [rustix::event::PollFd::new(&waker, rustix::event::PollFlags::IN)];
        let patience = rustix::event::Timespec { tv_sec: 20, tv_nsec: 0 };
        assert_eq!(rustix::event::poll(&mut fds, Some(&patience)).unwrap(), 1, "the worker is woken");
    }
}
