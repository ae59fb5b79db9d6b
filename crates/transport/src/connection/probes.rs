//! Packets that go for their own sake: path challenges and responses, path MTU probes; and what a finished train means for
//! the path it took. Source: RFC 9000 §8.2, §9, §14.4.

use super::Connection;
use super::plan::Plan;
use super::transmit::Draft;
use crate::config::MIN_PACKET_SIZE;
use crate::path::PathId;
use crate::space::{SpaceId, write_ping};
use base::net::Ecn;
use base::time::Instant;

impl Connection {
    /// PATH_CHALLENGE and PATH_RESPONSE in a datagram of 1,200 bytes, or of as few as will do where amplification forbids so
    /// many: what is left of a small credit pays for another try.
    pub(super) fn write_path_probe(
        &mut self,
        (now, ecn): (Instant, Ecn),
        path: PathId,
        room: &mut [u8],
    ) -> usize {
        let credit = self.paths.path(path).map_or(0, |path| path.credit());
        //= rfc9000/8.2.1#2
        let size = usize::try_from(credit).unwrap_or(usize::MAX).min(room.len());
        let Some(room) = room.get_mut(..size) else { return 0 };
        let min_len = if size < usize::from(MIN_PACKET_SIZE) { 0 } else { size };
        // RFC 9000 §9.5: another path gets another connection ID, so that an observer cannot link the two.
        let is_active = path == self.paths.active_id();
        //= rfc9000/9.5#2
        let dcid = if is_active { self.peer_cids.active() } else { self.peer_cids.for_probe() };
        let draft = Draft { now, space: SpaceId::Application, dcid, ecn, min_len, room };
        self.write_protected(draft, |this, packet| {
            this.paths.write_probe(now, path, &mut this.rng, packet);
            if !is_active {
                packet.mark_elsewhere();
            }
        })
    }

    /// A PING, padded to the size in question.
    pub(super) fn write_mtu_probe(
        &mut self,
        (now, ecn): (Instant, Ecn),
        size: usize,
        room: &mut [u8],
    ) -> usize {
        let dcid = self.peer_cids.active();
        let draft = Draft { now, space: SpaceId::Application, dcid, ecn, min_len: size, room };
        let len = self.write_protected(draft, |this, packet| {
            write_ping(packet);
            this.ack_frequency.write_immediate_ack(packet);
            packet.mark_mtu_probe();
        });
        if let Some(size) = u16::try_from(len).ok().filter(|size| *size > 0) {
            self.paths.active_mut().on_mtu_probe_sent(now, size);
        }
        len
    }

    /// Congestion control, pacing and address validation learn what left, or departs at `at`.
    pub(super) fn on_train_sent(&mut self, (now, at): (Instant, Instant), plan: &Plan, bytes: u64) {
        self.counters.sent_bytes += bytes;
        let in_flight = self.spaces.in_flight_bytes();
        let Some(path) = self.paths.path_mut(plan.path) else { return };
        path.on_sent(bytes);
        path.congestion.on_sent(at, bytes, in_flight);
        if in_flight <= bytes {
            path.repace(); // after idleness the rate may be another
        }
        path.pacer.on_sent(now, bytes);
    }

    /// A non-probing packet with the highest number came from another address. Source: RFC 9000 §9.3.
    pub(super) fn on_peer_moved(&mut self, now: Instant, path: PathId) {
        if self.side.is_client() || !self.handshake.is_confirmed() {
            return;
        }
        if self.paths.on_peer_moved(now, path) {
            self.on_path_changed();
        }
    }

    /// The active path is another one. Source: RFC 9000 §9.4, §9.5.
    pub(super) fn on_path_changed(&mut self) {
        // A new path gets a new connection ID, so that the two cannot be linked.
        //= rfc9000/9.5#1
        self.peer_cids.switch();
        self.ack_frequency.on_path_changed();
        //= rfc9000/9.4#2
        let ledger = &mut self.spaces.application.ledger;
        ledger.on_path_change();
        self.paths.active_mut().first_pn = ledger.largest_sent().map_or(0, |last| last + 1);
        self.counters.migrations += 1;
    }
}
