//! What a process knows and does whose place another one takes.

use super::estate::{Estate, Will};
use super::link::{self, Links};
use super::sockets::PassedSocket;
use crate::keys::Keys;
use crypto::TicketKeys;
use ports::XdpOpener;
use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transport::{Predecessor, cid_generations};
use udp::Steering;
use wire::cid::ConnectionId;
use worker::HandOffMember;

/// A handshake that is under way in another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Where its client's packets go to.
    pub(crate) destination: ConnectionId,
    /// Who has it.
    pub(crate) at: Predecessor,
}

/// Why no other process can take the place of this one. The text says what to do.
#[derive(Debug)]
pub enum UpgradeError {
    /// The server cannot be upgraded as it runs.
    Refused(String),
    /// The system refuses.
    System(io::Error),
}

impl fmt::Display for UpgradeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UpgradeError::Refused(why) => out.write_str(why),
            UpgradeError::System(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for UpgradeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            UpgradeError::Refused(_) => None,
            UpgradeError::System(error) => Some(error),
        }
    }
}

impl From<io::Error> for UpgradeError {
    fn from(error: io::Error) -> UpgradeError {
        UpgradeError::System(error)
    }
}

/// What a process has to leave.
pub(crate) struct Facts {
    pub(crate) generation: u8,
    /// Of HTTP/3, or threads where it is not served.
    pub(crate) workers: usize,
    /// None without HTTP/3.
    pub(crate) steering: Option<Steering>,
    pub(crate) keys: Keys,
    pub(crate) tickets: Arc<TicketKeys>,
    /// To the processes before this one.
    pub(crate) links: Arc<Links>,
    /// Opens AF_XDP sockets anew, if that is the data path.
    pub(crate) xdp: Option<Arc<XdpOpener>>,
}

/// The upgrades of a server that runs.
pub(crate) struct Upgrades {
    facts: Facts,
    /// Those that were under way before this process began, which it passes on.
    handshakes: Vec<Handshake>,
    /// Brings datagrams from the process that takes the place of this one. None without HTTP/3.
    bringer: Option<HandOffMember>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Copies. They keep ports open, so they go when the server stops.
    sockets: Vec<PassedSocket>,
    /// Where others send datagrams of this process's connections to.
    inbox: Option<OwnedFd>,
    /// The sockets are closed, or another process has them.
    is_over: bool,
}

impl fmt::Debug for Upgrades {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upgrades").field("generation", &self.facts.generation).finish_non_exhaustive()
    }
}

impl Upgrades {
    pub(crate) fn new(
        (facts, sockets): (Facts, Vec<PassedSocket>),
        handshakes: Vec<Handshake>,
        bringer: Option<HandOffMember>,
    ) -> Upgrades {
        let state = Mutex::new(State { sockets, ..State::default() });
        Upgrades { facts, handshakes, bringer, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the next process gets, with `others`, which have names without spaces.
    pub(crate) fn estate(&self, others: &[(&str, BorrowedFd<'_>)]) -> Result<Estate, UpgradeError> {
        let facts = &self.facts;
        let mut state = self.state();
        if state.is_over {
            return Err(UpgradeError::Refused("the server is ending already".to_owned()));
        }
        let living: Vec<(u8, &OwnedFd)> = facts.links.living().collect();
        let taken = |generation| living.iter().any(|(known, _)| *known == generation);
        let workers = u8::try_from(facts.workers).unwrap_or(u8::MAX);
        let generation = next_generation(facts.generation, workers, taken).ok_or_else(|| {
            UpgradeError::Refused(format!(
                "connection IDs tell {} processes apart where there are {workers} workers, and so many run: wait until one of \
                 those before has ended, or restart with fewer workers",
                cid_generations(workers)
            ))
        })?;
        let (keys, tickets) = (facts.keys.secret(), facts.tickets.bequeath());
        let steering = facts.steering;
        let mut estate =
            Estate::new(&Will { generation, workers: facts.workers, steering, keys, tickets: &tickets });
        state.sockets.iter().try_for_each(|socket| estate.add_socket(socket))?;
        living.iter().try_for_each(|(generation, to)| estate.add_link(*generation, to.as_fd()))?;
        if let Some(bringer) = &self.bringer {
            let inbox = match &state.inbox {
                Some(inbox) => inbox,
                None => {
                    let (receiver, sender) = link::pair()?;
                    link::receive(receiver, bringer.bringer())?;
                    state.inbox.insert(sender)
                }
            };
            estate.add_link(facts.generation, inbox.as_fd())?;
        }
        others.iter().try_for_each(|(name, socket)| estate.add_other(name, *socket))?;
        Ok(estate)
    }

    /// Opens AF_XDP sockets where workers do without because of an upgrade. Returns whether there were such.
    pub(crate) fn open_xdp(&self) -> Result<bool, String> {
        self.facts.xdp.as_ref().map_or(Ok(false), |xdp| xdp.open())
    }

    /// How many workers take datagrams in.
    pub(crate) fn paused_workers(&self) -> usize {
        if self.bringer.is_some() { self.facts.workers } else { 0 }
    }

    /// All handshakes that the next process must know, `own` by the workers that have them.
    pub(crate) fn handshakes(&self, own: Vec<(u8, Vec<ConnectionId>)>) -> Vec<Handshake> {
        let generation = self.facts.generation;
        let own = own.into_iter().flat_map(|(worker, destinations)| {
            let at = Predecessor { generation, worker };
            destinations.into_iter().map(move |destination| Handshake { destination, at })
        });
        own.chain(self.handshakes.iter().cloned()).collect()
    }

    /// There is no upgrade any more.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        state.sockets.clear();
    }
}

/// The number of the next process: one that no process has.
fn next_generation(own: u8, workers: u8, taken: impl Fn(u8) -> bool) -> Option<u8> {
    let all = cid_generations(workers);
    let after = |step| u8::try_from((u16::from(own) + step) % all).ok();
    (1..all).filter_map(after).find(|generation| !taken(*generation))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, the connections of two processes could have IDs of one generation, and both would be broken.
    #[test]
    fn a_generation_is_that_of_one_process() {
        assert_eq!(next_generation(0, 1, |_| false), Some(1));
        assert_eq!(next_generation(255, 1, |_| false), Some(0));
        assert_eq!(next_generation(1, 64, |_| false), Some(2));
        assert_eq!(next_generation(1, 64, |taken| taken != 0), Some(0));
        assert_eq!(next_generation(1, 64, |_| true), None);
        assert_eq!(next_generation(0, 129, |_| false), None, "too many workers");
    }
}
