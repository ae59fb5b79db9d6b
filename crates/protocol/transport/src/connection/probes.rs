//! Datagrams that go for their own sake: path challenges and responses, path MTU probes, CONNECTION_CLOSE.
//! Source: RFC 9000 §8.2, §10.2, §14.4.

use super::assembly::Assembly;
use super::seal::{Departure, Draft};
use crate::config::MIN_PACKET_SIZE;
use crate::path::PathId;
use crate::space::{SpaceId, write_ping};

impl Assembly<'_> {
    /// PATH_CHALLENGE and PATH_RESPONSE in a datagram of 1,200 bytes, or of as few as will do where amplification forbids so
    /// many: what is left of a small credit pays for another try.
    pub(super) fn write_path_probe(&mut self, departure: Departure, path: PathId, room: &mut [u8]) -> usize {
        let credit = self.paths.path(path).map_or(0, |path| path.amplification());
        //= rfc9000/8.2.1#2
        let size = usize::try_from(credit).unwrap_or(usize::MAX).min(room.len());
        let Some(room) = room.get_mut(..size) else { return 0 };
        let min_len = if size < usize::from(MIN_PACKET_SIZE) { 0 } else { size };
        // RFC 9000 §9.5: another path gets another connection ID, so that an observer cannot link the two.
        let is_active = path == self.paths.active_id();
        //= rfc9000/9.5#2
        let dcid = if is_active {
            Some(self.components.peer_cids.active())
        } else {
            let beside = self.paths.path(path).map(|path| self.paths.beside_active(path));
            beside.and_then(|beside| self.components.peer_cids.for_probe(beside))
        };
        let Some(dcid) = dcid else { return 0 };
        let draft = Draft { departure, space: SpaceId::Application, dcid, min_len, room };
        self.write_protected(draft, |this, packet| {
            this.paths.write_probe(departure.at, path, this.rng, packet);
            if !is_active {
                packet.mark_elsewhere();
            }
        })
    }

    /// A PING, padded to the size in question.
    pub(super) fn write_mtu_probe(&mut self, departure: Departure, size: usize, room: &mut [u8]) -> usize {
        let dcid = self.components.peer_cids.active();
        let draft = Draft { departure, space: SpaceId::Application, dcid, min_len: size, room };
        let len = self.write_protected(draft, |this, packet| {
            write_ping(packet);
            this.components.ack_frequency.write_immediate_ack(packet);
            packet.mark_mtu_probe();
        });
        if let Some(size) = u16::try_from(len).ok().filter(|size| *size > 0) {
            self.paths.active_mut().on_mtu_probe_sent(departure.at, size);
        }
        len
    }

    /// One datagram with the close in every space that the peer may be able to read. Source: RFC 9000 §10.2.3.
    pub(super) fn write_close_datagram(&mut self, departure: Departure, room: &mut [u8]) -> usize {
        let Some(frame) = self.lifecycle.take_owed_close() else { return 0 };
        let confirmed = self.handshake.is_confirmed();
        let mut used = 0;
        for space in SpaceId::ALL {
            //= rfc9000/10.2.3#1
            let skip = (confirmed && space != SpaceId::Application) || !self.keys.has(space);
            let Some(rest) = room.get_mut(used..).filter(|rest| !skip && rest.len() > 100) else { continue };
            let min_len = if space == SpaceId::Initial && self.side.is_client() { rest.len() } else { 0 };
            let dcid = self.components.peer_cids.active();
            let draft = Draft { departure, space, dcid, min_len, room: rest };
            used += self.write_protected(draft, |_, builder| frame.write(space, builder));
        }
        used
    }
}
