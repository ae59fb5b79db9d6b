//! All that one process leaves to the next: a text of lines, and a descriptor for each line that stands for one.
//!
//! ```text
//! tercel upgrade 1
//! generation 1 of 2 workers     what the new process puts into its connection IDs
//! steering ebpf                 how datagrams find their worker; the program is in the kernel already
//! keys 51c4…                    of stateless resets and address tokens
//! tickets 09ab…                 of session tickets
//! socket udp 0 [::]:443 -       kind, number of the address, what was asked for, interface          with a descriptor
//! link 0                        where datagrams of that generation's connections go                 with a descriptor
//! other admin                   what the program passes on besides                                  with a descriptor
//! ```
//!
//! A line of another kind is an error: a program that does not know all that it is left would lose it, and its start fails instead.

use super::link::Links;
use super::sockets::{PassedSocket, PassedSockets};
use crate::keys::Keys;
use std::fmt::Write as _;
use std::os::fd::{BorrowedFd, OwnedFd};
use udp::Steering;

const FIRST: &str = "tercel upgrade 1";

/// What a process leaves to the one that takes its place.
#[derive(Debug, Default)]
pub struct Estate {
    pub(super) text: String,
    pub(super) descriptors: Vec<OwnedFd>,
}

/// What the text says before any descriptor.
pub(super) struct Will<'a> {
    pub(super) generation: u8,
    pub(super) workers: usize,
    pub(super) steering: Option<Steering>,
    pub(super) keys: &'a [u8],
    pub(super) tickets: &'a [u8],
}

impl Estate {
    pub(super) fn new(will: &Will<'_>) -> Estate {
        let Will { generation, workers, steering, keys, tickets } = will;
        let steering = steering.map_or("-", Steering::name);
        let text = format!(
            "{FIRST}\ngeneration {generation} of {workers} workers\nsteering {steering}\nkeys {}\ntickets {}\n",
            hex(keys),
            hex(tickets)
        );
        Estate { text, descriptors: Vec::new() }
    }

    pub(super) fn add_socket(&mut self, socket: &PassedSocket) -> std::io::Result<()> {
        socket.describe(&mut self.text);
        self.add(socket.descriptor())
    }

    pub(super) fn add_link(&mut self, generation: u8, to: BorrowedFd<'_>) -> std::io::Result<()> {
        let _ = writeln!(self.text, "link {generation}");
        self.add(to)
    }

    pub(super) fn add_other(&mut self, name: &str, socket: BorrowedFd<'_>) -> std::io::Result<()> {
        let _ = writeln!(self.text, "other {name}");
        self.add(socket)
    }

    fn add(&mut self, descriptor: BorrowedFd<'_>) -> std::io::Result<()> {
        self.descriptors.push(descriptor.try_clone_to_owned()?);
        Ok(())
    }
}

/// What a server gets from elsewhere when it starts: [`crate::Builder::inherit`].
#[derive(Debug, Default)]
pub struct Inheritance {
    pub(crate) sockets: PassedSockets,
    /// None if no process was there before.
    pub(crate) process: Option<Before>,
    others: Vec<(String, OwnedFd)>,
}

/// What is left of the process before.
#[derive(Debug, Default)]
pub(crate) struct Before {
    /// The number of the process that runs now.
    pub(crate) generation: u8,
    pub(crate) workers: usize,
    pub(crate) steering: Option<Steering>,
    pub(crate) keys: [u8; 32],
    pub(crate) tickets: Vec<u8>,
    pub(crate) links: Links,
}

impl Inheritance {
    /// Nothing but sockets of a service manager, if there are any.
    pub fn of_service_manager(sockets: PassedSockets) -> Inheritance {
        Inheritance { sockets, ..Inheritance::default() }
    }

    /// What the process before has passed on besides, by its name.
    pub fn take_other(&mut self, name: &str) -> Option<OwnedFd> {
        let place = self.others.iter().position(|(known, _)| known == name)?;
        Some(self.others.swap_remove(place).1)
    }

    /// # Errors
    /// One line: this process is to have another number of workers than the one before.
    pub(crate) fn check_workers(&self, asked: usize) -> Result<(), String> {
        match &self.process {
            Some(before) if before.workers != asked => Err(format!(
                "the server that runs has {} workers, and an upgrade keeps their number: restart it to have {asked}",
                before.workers
            )),
            _ => Ok(()),
        }
    }

    pub(crate) fn steering(&self) -> Option<Steering> {
        self.process.as_ref()?.steering
    }

    pub(crate) fn keys(&self) -> Option<Keys> {
        self.process.as_ref().map(|before| Keys::inherited(before.keys))
    }

    pub(crate) fn tickets(&self) -> Option<&[u8]> {
        self.process.as_ref().map(|before| before.tickets.as_slice())
    }

    /// Whether a process was there before.
    pub fn is_upgrade(&self) -> bool {
        self.process.is_some()
    }

    /// By what [`Estate`] wrote; `None` if another version of the program did, in another form.
    pub(super) fn read(text: &str, descriptors: Vec<OwnedFd>) -> Option<Inheritance> {
        let mut lines = text.lines();
        if lines.next() != Some(FIRST) {
            return None;
        }
        let mut descriptors = descriptors.into_iter();
        let (mut before, mut sockets, mut links, mut others) =
            (Before::default(), Vec::new(), Vec::new(), Vec::new());
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["generation", generation, "of", workers, "workers"] => {
                    (before.generation, before.workers) = (generation.parse().ok()?, workers.parse().ok()?);
                }
                ["steering", "-"] => before.steering = None,
                ["steering", name] => {
                    before.steering = Some(Steering::ALL.into_iter().find(|of| of.name() == *name)?);
                }
                ["keys", digits] => before.keys = unhex(digits)?.try_into().ok()?,
                ["tickets", digits] => before.tickets = unhex(digits)?,
                ["socket", rest @ ..] => sockets.push(PassedSocket::read(rest, descriptors.next()?)?),
                ["link", generation] => links.push((generation.parse().ok()?, descriptors.next()?)),
                ["other", name] => others.push(((*name).to_owned(), descriptors.next()?)),
                _ => return None,
            }
        }
        before.links = Links::new(links);
        let is_whole = descriptors.next().is_none();
        is_whole.then(|| Inheritance { sockets: PassedSockets::new(sockets), process: Some(before), others })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.iter().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sockets::Kind;
    use super::*;
    use crate::listen::ListenAddress;
    use std::net::UdpSocket;
    use std::os::fd::AsFd as _;

    /// Deleted, a new process could take a socket for another, or begin with half of what it was left.
    #[test]
    fn an_estate_is_read_as_it_was_written_or_not_at_all() {
        let will = Will {
            generation: 3,
            workers: 2,
            steering: Some(Steering::Classic),
            keys: &[0xab; 32],
            tickets: &[1, 2, 3],
        };
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let place = ListenAddress { address: "127.0.0.1:0".parse().unwrap(), device: None };
        let mut estate = Estate::new(&will);
        estate.add_socket(&PassedSocket::copy(Kind::Udp, (place, 0), socket.as_fd()).unwrap()).unwrap();
        estate.add_link(2, socket.as_fd()).unwrap();
        estate.add_other("admin", socket.as_fd()).unwrap();
        let copies = |count: usize| -> Vec<OwnedFd> {
            (0..count).map(|_| socket.try_clone().unwrap().into()).collect()
        };
        let mut read = Inheritance::read(&estate.text, copies(3)).unwrap();
        assert!(read.take_other("admin").is_some() && read.take_other("admin").is_none());
        assert_eq!(read.sockets.take(Kind::Udp, &place).len(), 1);
        let before = read.process.unwrap();
        assert_eq!((before.generation, before.workers, before.steering), (3, 2, Some(Steering::Classic)));
        assert_eq!((before.keys, before.tickets.as_slice()), ([0xab; 32], &[1, 2, 3][..]));
        assert_eq!(before.links.generations(), [2]);
        for count in [0, 2, 4] {
            assert!(Inheritance::read(&estate.text, copies(count)).is_none(), "{count} descriptors");
        }
        for (from, to) in [
            ("upgrade 1", "upgrade 2"),
            ("link", "chain"),
            ("classic", "magic"),
            ("tickets 01", "tickets 1"),
            ("of 2", "of -2"),
            ("keys ab", "keys "),
        ] {
            let text = estate.text.replace(from, to);
            assert!(Inheritance::read(&text, copies(3)).is_none(), "{to}");
        }
    }
}
