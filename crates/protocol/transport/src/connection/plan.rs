//! What may go now: the pure first step of assembly. Nothing here writes a byte or changes the connection.
//!
//! Everything that ever leaves is one of the kinds below. Probes of the path, of its size, or after a timeout are plans
//! like any other, so that the steps after this one need not know why a packet is sent.

use super::assembly::Assembly;
use super::components::{self, Permission};
use super::lanes::LaneUse;
use crate::config::MIN_PACKET_SIZE;
use crate::path::{MtuProbe, PathId};
use crate::space::SpaceId;
use base::time::Instant;

/// A set of packet-number spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpaceSet(u8);

impl SpaceSet {
    const EMPTY: SpaceSet = SpaceSet(0);

    fn with(self, space: SpaceId) -> SpaceSet {
        SpaceSet(self.0 | 1 << space.index())
    }

    pub(super) fn contains(self, space: SpaceId) -> bool {
        self.0 & 1 << space.index() != 0
    }

    /// Whether `space` is the last one of the set.
    pub(super) fn ends_with(self, space: SpaceId) -> bool {
        self.0 >> space.index() == 1
    }
}

/// What congestion control and pacing allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowance {
    /// Bytes of UDP payload.
    pub(super) bytes: u64,
    /// The components that may write.
    pub(super) permission: Permission,
}

/// What the next datagrams are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// CONNECTION_CLOSE in every space that the peer may be able to read.
    Close,
    /// A PATH_CHALLENGE or PATH_RESPONSE on its own path.
    PathProbe,
    /// A padded PING of the size that is searched for. Source: RFC 9000 §14.4.
    MtuProbe,
    /// One datagram of coalesced packets, while the handshake lasts.
    Coalesced(SpaceSet, Permission),
    /// A train of 1-RTT packets.
    Train(Allowance),
}

/// What goes next, where, and in datagrams of which size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) kind: Kind,
    pub(super) path: PathId,
    pub(super) size: usize,
}

/// A TLS message of more bytes than this, with its headers, fills a datagram of 1,200 bytes: one with a post-quantum key share.
const LARGE_HELLO: usize = 1_000;

impl Assembly<'_> {
    /// The next thing to send, when the pacer allows `paced` bytes; `None` when nothing may or need go.
    pub(super) fn plan(&self, now: Instant, paced: u64) -> Option<Plan> {
        let path = self.paths.active_id();
        let small = usize::from(MIN_PACKET_SIZE);
        if self.lifecycle.is_over() {
            //= rfc9000/10.2.1#2
            let fits = self.paths.active().amplification() >= small as u64;
            return (fits && self.lifecycle.owes_close()).then_some(Plan {
                kind: Kind::Close,
                path,
                size: small,
            });
        }
        if self.handshake.is_complete()
            && let Some(probed) = self.paths.wants_probe(now, &self.components.peer_cids)
        {
            return Some(Plan { kind: Kind::PathProbe, path: probed, size: small });
        }
        let active = self.paths.active();
        let credit = active.amplification();
        let handshaking = self.spaces.handshaking();
        if active.is_amplification_limited() && !(handshaking && active.affords_handshake_packet()) {
            return None;
        }
        // A new path may be given less credit than the packets are large that the old one carried.
        let affordable = usize::try_from(credit).unwrap_or(usize::MAX);
        let most = if handshaking { small } else { usize::from(active.max_packet_size) };
        let size = most.min(affordable);
        let Allowance { bytes: budget, permission } = self.budget(paced, size as u64);
        if handshaking {
            if self.handshake.is_waiting() {
                // An acknowledgement alone would take a padded datagram of the credit that the answer needs.
                return None;
            }
            let set = self.spaces_with_something(now, permission, size);
            if set == SpaceSet::EMPTY {
                let size = self.early_mtu_probe(permission)?;
                return Some(Plan { kind: Kind::MtuProbe, path, size: usize::from(size) });
            }
            return Some(Plan { kind: Kind::Coalesced(set, permission), path, size });
        }
        // A timeout asks for packets that arrive if any do: they are no larger than every path is assumed to carry.
        let (size, budget) = if self.spaces.owes_probe() {
            let size = size.min(usize::from(active.safe_packet_size()));
            (size, 2 * size as u64)
        } else {
            (size, budget)
        };
        // RFC 8899 §3: probes are under congestion control. Little data goes before them, much leaves them room.
        let in_flight = self.spaces.in_flight_bytes();
        let permission = if permission == Permission::All
            && !self.spaces.owes_probe()
            && !self.fits_beside_probes(now, active.congestion.available(in_flight))
        {
            match active.next_mtu_probe(now, in_flight) {
                MtuProbe::Go(size) => {
                    return Some(Plan { kind: Kind::MtuProbe, path, size: usize::from(size) });
                }
                MtuProbe::Wait => Permission::AckOnly,
                MtuProbe::None => permission,
            }
        } else {
            permission
        };
        self.space_wants(now, SpaceId::Application, permission).then(|| Plan {
            kind: Kind::Train(Allowance { bytes: budget.min(credit), permission }),
            path,
            size,
        })
    }

    /// A server's flight is followed by a probe, if credit is left: by the time that a request arrives its acknowledgement does.
    /// docs/decisions/006-packet-size.md
    fn early_mtu_probe(&self, permission: Permission) -> Option<u16> {
        let may_go = self.side.is_server() && self.keys.one_rtt.is_some() && permission == Permission::All;
        let in_flight = self.spaces.in_flight_bytes();
        may_go.then(|| self.paths.active().early_mtu_probe(in_flight)).flatten()
    }

    /// Whether there is something to send, and the window has room for all of it: probes can wait until it has left. Where it
    /// has not, data waits for the window anyway.
    fn fits_beside_probes(&self, now: Instant, room: u64) -> bool {
        let unsent = components::unsent(self.components);
        unsent + unsent / 16 < room && self.space_wants(now, SpaceId::Application, Permission::All)
    }

    /// How many bytes congestion control and pacing allow now. A timeout probe goes whatever they say (RFC 9002 §7.5).
    fn budget(&self, paced: u64, size: u64) -> Allowance {
        let path = self.paths.active();
        let room = path.congestion.window().saturating_sub(self.spaces.in_flight_bytes());
        //= rfc9002/7#1
        let budget = room.min(paced);
        if budget >= size {
            Allowance { bytes: budget, permission: Permission::All }
        //= rfc9002/7.5#1
        } else if self.spaces.owes_probe() {
            let permission = match self.usage {
                LaneUse::Data => Permission::All,
                LaneUse::Standby => Permission::Probe,
            };
            Allowance { bytes: 2 * size, permission }
        } else if self.spaces.is_handshake_stranded() {
            // Else 1-RTT packets that fill the window could keep the handshake from ever ending.
            Allowance { bytes: size, permission: Permission::All }
        } else {
            Allowance { bytes: size, permission: Permission::AckOnly }
        }
    }

    /// Which spaces share the next datagram of `size` bytes. An Initial that fills it goes alone: the peer could not
    /// read what stands beside half a ServerHello. One of less than 1,200 bytes has no Initial (RFC 9000 §14.1).
    fn spaces_with_something(&self, now: Instant, permission: Permission, size: usize) -> SpaceSet {
        let fills =
            self.spaces.space(SpaceId::Initial).is_some_and(|space| space.crypto.unsent() > LARGE_HELLO);
        let holds_initial = size >= usize::from(MIN_PACKET_SIZE);
        SpaceId::ALL
            .into_iter()
            .filter(|&space| space != SpaceId::Initial || holds_initial)
            .filter(|&space| self.space_wants(now, space, permission))
            .take(if fills { 1 } else { SpaceId::ALL.len() })
            .fold(SpaceSet::EMPTY, SpaceSet::with)
    }

    /// Whether a space has keys and something to send that may go.
    fn space_wants(&self, now: Instant, id: SpaceId, permission: Permission) -> bool {
        self.keys.has(id) && components::wants(self.components, self.spaces, now, id, permission)
    }

    /// Whether anything waits that could fill a packet now, whatever congestion control says.
    #[inline]
    pub(super) fn wants_packet(&self, now: Instant) -> bool {
        SpaceId::ALL.into_iter().rev().any(|id| self.space_wants(now, id, Permission::All))
    }
}
