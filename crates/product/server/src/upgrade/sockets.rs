//! Sockets that another process has opened: the one before this one, or a service manager.
//!
//! Those of a process before are found by what it was asked for, since port 0 and `localhost` are not what a socket is bound to. Those of
//! a service manager are found by where they are bound.

use crate::listen::ListenAddress;
use socket2::{SockRef, Type};
use std::fmt::Write as _;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What a socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// HTTP/3.
    Udp,
    /// HTTP/1.1 and 2.
    Tcp,
}

/// What was asked for when a socket was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    address: SocketAddr,
    device: Option<String>,
    /// The place of the address among all that the server listens at: port 0 may be asked for twice.
    group: usize,
}

/// A socket.
#[derive(Debug)]
pub(crate) struct PassedSocket {
    kind: Kind,
    /// None for those of a service manager.
    asked: Option<Asked>,
    socket: OwnedFd,
}

impl PassedSocket {
    /// A copy of a socket that was opened at `place`, the address of number `group`.
    pub(crate) fn copy(
        kind: Kind,
        (place, group): (ListenAddress, usize),
        socket: BorrowedFd<'_>,
    ) -> io::Result<PassedSocket> {
        let asked = Asked { address: place.address, device: place.device.map(str::to_owned), group };
        Ok(PassedSocket { kind, asked: Some(asked), socket: socket.try_clone_to_owned()? })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The line that tells it in an estate.
    pub(super) fn describe(&self, text: &mut String) {
        let kind = match self.kind {
            Kind::Udp => "udp",
            Kind::Tcp => "tcp",
        };
        if let Some(Asked { address, device, group }) = &self.asked {
            let _ = writeln!(text, "socket {kind} {group} {address} {}", device.as_deref().unwrap_or("-"));
        }
    }

    /// By the words of such a line behind the first.
    pub(super) fn read(words: &[&str], socket: OwnedFd) -> Option<PassedSocket> {
        let &[kind, group, address, device] = words else { return None };
        let kind = match kind {
            "udp" => Kind::Udp,
            "tcp" => Kind::Tcp,
            _ => return None,
        };
        let device = (device != "-").then(|| device.to_owned());
        let asked = Asked { address: address.parse().ok()?, device, group: group.parse().ok()? };
        Some(PassedSocket { kind, asked: Some(asked), socket })
    }

    fn is_at(&self, kind: Kind, place: &ListenAddress) -> bool {
        self.kind == kind
            && match &self.asked {
                Some(asked) => asked.address == place.address && asked.device.as_deref() == place.device,
                None => place.device.is_none() && self.bound() == Some(place.address),
            }
    }

    fn group(&self) -> Option<usize> {
        self.asked.as_ref().map(|asked| asked.group)
    }

    fn bound(&self) -> Option<SocketAddr> {
        SockRef::from(&self.socket).local_addr().ok()?.as_socket()
    }
}

/// Sockets that were passed and are not in use yet.
#[derive(Debug, Default)]
pub struct PassedSockets(Vec<PassedSocket>);

impl PassedSockets {
    /// Those of a service manager: bound sockets of UDP, and of TCP that listen.
    ///
    /// # Errors
    /// One line: one of them is something else.
    pub fn of_service_manager(sockets: Vec<OwnedFd>) -> Result<PassedSockets, String> {
        let passed = |(number, socket): (usize, OwnedFd)| {
            let kind = SockRef::from(&socket).r#type().ok();
            let kind = match kind {
                Some(Type::DGRAM) => Some(Kind::Udp),
                Some(Type::STREAM) => Some(Kind::Tcp),
                _ => None,
            };
            let passed = kind.map(|kind| PassedSocket { kind, asked: None, socket });
            passed.filter(|passed| passed.bound().is_some()).ok_or_else(|| {
                format!(
                    "the service manager passes as number {} what is no socket of UDP or TCP: use ListenDatagram= and ListenStream= with \
                     addresses",
                    number + 1
                )
            })
        };
        sockets.into_iter().enumerate().map(passed).collect::<Result<_, _>>().map(PassedSockets)
    }

    pub(super) fn new(sockets: Vec<PassedSocket>) -> PassedSockets {
        PassedSockets(sockets)
    }

    /// Whether there is one at `place`.
    pub(crate) fn has(&self, place: &ListenAddress) -> bool {
        [Kind::Udp, Kind::Tcp].iter().any(|kind| self.0.iter().any(|socket| socket.is_at(*kind, place)))
    }

    /// Takes those at `place`, in their order.
    pub(crate) fn take(&mut self, kind: Kind, place: &ListenAddress) -> Vec<OwnedFd> {
        let first = self.0.iter().find(|socket| socket.is_at(kind, place)).map(PassedSocket::group);
        let all = std::mem::take(&mut self.0);
        let (taken, left) =
            all.into_iter().partition(|socket| socket.is_at(kind, place) && Some(socket.group()) == first);
        self.0 = left;
        Vec::into_iter(taken).map(|socket: PassedSocket| socket.socket).collect()
    }

    /// The same of TCP, for `threads` threads. Where there are fewer, some threads share one.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub(crate) fn take_listeners(
        &mut self,
        place: &ListenAddress,
        threads: usize,
    ) -> io::Result<Vec<TcpListener>> {
        let listeners: Vec<TcpListener> = self.take(Kind::Tcp, place).into_iter().map(Into::into).collect();
        if listeners.is_empty() {
            return Ok(listeners);
        }
        for listener in &listeners {
            listener.set_nonblocking(true)?;
            // As those that the server opens itself: what is accepted has it too.
            SockRef::from(listener).set_tcp_nodelay(true)?;
        }
        let copies = listeners.len()..threads;
        let copies =
            copies.map(|thread| listeners.get(thread % listeners.len()).unwrap_or(&listeners[0]).try_clone());
        let copies: Vec<TcpListener> = copies.collect::<io::Result<_>>()?;
        Ok(listeners.into_iter().chain(copies).take(threads).collect())
    }

    /// What is to be told of those that nothing has taken.
    pub(crate) fn notes(&self) -> Vec<String> {
        let note = |at: &SocketAddr| {
            format!(
                "tercel: warning: a socket at {at} was passed on, and the server does not listen there: connections to it \
                 wait in vain; name the address with --listen"
            )
        };
        self.left().iter().map(note).collect()
    }

    fn left(&self) -> Vec<SocketAddr> {
        let mut left: Vec<SocketAddr> = self.0.iter().filter_map(PassedSocket::bound).collect();
        left.dedup();
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    fn place(text: &str) -> ListenAddress {
        ListenAddress { address: text.parse().unwrap(), device: None }
    }

    /// Deleted, a server could open a port that the process before it has, or take the sockets of another of its addresses.
    #[test]
    fn sockets_of_a_process_are_found_by_what_it_was_asked_for() {
        let any = place("127.0.0.1:0");
        let loopback = ListenAddress { device: Some("lo"), ..place("[::]:0") };
        let open = |kind, at| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let port = socket.local_addr().unwrap().port();
            let passed = PassedSocket::copy(kind, at, socket.as_fd()).unwrap();
            let mut text = String::new();
            passed.describe(&mut text);
            let words: Vec<&str> = text.split_whitespace().skip(1).collect();
            (PassedSocket::read(&words, passed.socket).unwrap(), port)
        };
        let table = [
            (Kind::Udp, (any, 0)),
            (Kind::Udp, (any, 0)),
            (Kind::Tcp, (any, 0)),
            (Kind::Udp, (any, 1)),
            (Kind::Udp, (loopback, 2)),
        ];
        let (sockets, ports): (Vec<_>, Vec<u16>) = table.into_iter().map(|(kind, at)| open(kind, at)).unzip();
        let mut passed = PassedSockets::new(sockets);
        let mut take = |kind, at: &ListenAddress| -> Vec<u16> {
            let taken = passed.take(kind, at).into_iter();
            taken.map(|socket| UdpSocket::from(socket).local_addr().unwrap().port()).collect()
        };
        assert_eq!(take(Kind::Udp, &place("[::]:0")), [0; 0], "not by another interface");
        assert_eq!(take(Kind::Udp, &any), ports[..2]);
        assert_eq!(take(Kind::Udp, &any), ports[3..4], "the second address with port 0");
        assert_eq!(take(Kind::Udp, &loopback), ports[4..]);
        assert_eq!(passed.left(), [SocketAddr::from(([127, 0, 0, 1], ports[2]))]);
        for line in
            ["", "udp 0 here -", "sctp 0 127.0.0.1:1 -", "udp x 127.0.0.1:1 -", "udp 0 127.0.0.1:1 - -"]
        {
            let words: Vec<&str> = line.split_whitespace().collect();
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            assert!(PassedSocket::read(&words, socket.into()).is_none(), "{line}");
        }
    }

    #[test]
    fn sockets_of_a_service_manager_are_found_by_where_they_are_bound() {
        let (listener, udp) = requirements::ports::over_tcp_and_udp();
        let at = ListenAddress { address: listener.local_addr().unwrap(), device: None };
        let mut passed = PassedSockets::of_service_manager(vec![udp.into(), listener.into()]).unwrap();
        assert!(passed.has(&at) && !passed.has(&place("127.0.0.1:1")));
        assert!(!passed.has(&ListenAddress { device: Some("lo"), ..at }));
        let listeners = passed.take_listeners(&at, 3).unwrap();
        assert!(listeners.iter().all(|listener| listener.local_addr().unwrap() == at.address));
        assert_eq!((listeners.len(), passed.take(Kind::Udp, &at).len(), passed.left()), (3, 1, vec![]));
        assert!(passed.take_listeners(&at, 3).unwrap().is_empty());
        let file = std::fs::File::open("/dev/null").unwrap();
        let refused = PassedSockets::of_service_manager(vec![file.into()]).unwrap_err();
        assert!(refused.contains("ListenDatagram="), "{refused}");
    }
}
