//! The place of a process among those before and after it, from the opening of its ports until it serves.

use super::estate::Inheritance;
use super::link::Links;
use super::predecessor::{Facts, Handshake, Upgrades};
use super::sockets::PassedSocket;
use crate::keys::Keys;
use crate::report::Report;
use crypto::TicketKeys;
use ports::OpenOutcome;
use std::sync::Arc;
use transport::Predecessors;
use worker::HandOffMember;

/// A process that may have one before it, and may get one after it.
pub(crate) struct Succession {
    facts: Facts,
    sockets: Vec<PassedSocket>,
    handshakes: Vec<Handshake>,
}

impl Succession {
    /// `udp` is what was opened for HTTP/3, `sockets` are copies of everything that is open.
    pub(crate) fn new(
        inheritance: Inheritance,
        (keys, tickets): (&Keys, &Arc<TicketKeys>),
        (report, udp): (&Report, Option<&OpenOutcome>),
        sockets: Vec<PassedSocket>,
    ) -> Succession {
        let before = inheritance.process.unwrap_or_default();
        let facts = Facts {
            generation: before.generation,
            workers: report.workers,
            steering: udp.map(|udp| udp.steering),
            keys: keys.clone(),
            tickets: Arc::clone(tickets),
            links: Arc::new(before.links),
            xdp: udp.and_then(|udp| udp.xdp.clone()),
        };
        Succession { facts, sockets, handshakes: Vec::new() }
    }

    pub(crate) fn generation(&self) -> u8 {
        self.facts.generation
    }

    /// These handshakes are under way in other processes. Returns what the endpoints must know of those.
    pub(crate) fn hear(&mut self, handshakes: Vec<Handshake>) -> Predecessors {
        let listed = handshakes.iter().map(|handshake| (handshake.destination, handshake.at));
        let predecessors = Predecessors::new(self.facts.links.generations(), listed);
        self.handshakes = handshakes;
        predecessors
    }

    /// A worker that hands datagrams of other processes' connections to them, if there are any.
    pub(crate) fn connect(&self, worker: HandOffMember) -> HandOffMember {
        match self.facts.links.generations().is_empty() {
            true => worker,
            false => worker.with_others(Arc::<Links>::clone(&self.facts.links)),
        }
    }

    /// The server serves; `worker` is one of its workers.
    pub(crate) fn begin(self, worker: Option<&HandOffMember>) -> Upgrades {
        let bringer = worker.map(HandOffMember::bringer);
        Upgrades::new((self.facts, self.sockets), self.handshakes, bringer)
    }
}
