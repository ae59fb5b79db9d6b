//! The connections of processes whose place this one has taken: upgrades of a server's program.
//!
//! The process that runs now receives everything. A short header, and the long header of a Handshake packet, name the generation of the
//! process that issued the connection ID (cid/generator.rs). The destinations of first packets are made up by clients, so a process lists
//! those of its handshakes under way when another takes its place. What neither tells is this process's own.
//!
//! Memory: the list is as long as the limit of handshakes under way allows, and lives as long as the endpoint.

use crate::cid::{CidLayout, LOCAL_CID_LEN};
use std::collections::BTreeMap;
use wire::cid::ConnectionId;
use wire::packet::{LongType, Packet};

/// A worker of a process whose place this one has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// The process.
    pub generation: u8,
    /// Its worker.
    pub worker: u8,
}

/// What is known of the connections of other processes.
#[derive(Clone, Debug, Default)]
pub struct Predecessors {
    generations: Vec<u8>,
    handshakes: BTreeMap<ConnectionId, Predecessor>,
}

impl Predecessors {
    /// Processes of these generations have connections; `handshakes` are the destinations of the packets of handshakes that were under
    /// way when another process took their place ([`crate::Endpoint::handshakes`]), with the worker that has the connection.
    pub fn new(
        generations: Vec<u8>,
        handshakes: impl IntoIterator<Item = (ConnectionId, Predecessor)>,
    ) -> Predecessors {
        Predecessors { generations, handshakes: handshakes.into_iter().collect() }
    }

    /// Whether no other process has connections.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.generations.is_empty()
    }

    /// Whose datagram this is, if it is none of this process.
    pub(super) fn of(&self, datagram: &[u8], layout: &CidLayout) -> Option<Predecessor> {
        let cid = match Packet::parse(datagram, LOCAL_CID_LEN).ok()? {
            Packet::Short(header) => header.dcid,
            Packet::Long { ty: LongType::Handshake, dcid, .. } => dcid,
            Packet::Long { ty: LongType::Initial | LongType::ZeroRtt, dcid, .. } => {
                return self.handshakes.get(&dcid).copied();
            }
            _ => return None,
        };
        let cid = cid.as_slice().try_into().ok()?;
        let generation = layout.generation_of(cid);
        let is_theirs = generation != layout.generation && self.generations.contains(&generation);
        is_theirs.then(|| Predecessor { generation, worker: layout.worker_of(cid) })
    }
}
