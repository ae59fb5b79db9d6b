//! The active path becomes another one: the peer moved, or a move failed. Source: RFC 9000 §9.

use super::Connection;
use crate::path::PathId;
use crate::space::SpaceId;
use base::time::Instant;
use recovery::timers::PROBES;

impl Connection {
    /// A non-probing packet with the highest number came from another address. Source: RFC 9000 §9.3.
    pub(super) fn on_peer_moved(&mut self, now: Instant, path: PathId) {
        if self.side.is_client() {
            return;
        }
        if self.handshake.is_confirmed() {
            if self.paths.on_peer_moved(now, path) {
                self.on_path_changed();
                self.speak_up(SpaceId::Application);
            }
        } else if self.paths.on_peer_rebound(path) {
            self.counters.migrations += 1;
            self.speak_up(SpaceId::Initial);
            self.speak_up(SpaceId::Handshake);
        }
    }

    /// The path is a new one. When timeouts have told that the peer hears nothing on the old one, what it waits for goes on the
    /// new one now, and not after the next of them.
    pub(super) fn speak_up(&mut self, id: SpaceId) {
        let waits = self.spaces.space(id).is_some_and(|space| space.ledger.ack_eliciting_in_flight() > 0);
        if waits && (self.timers.has_backed_off() || id != SpaceId::Application) {
            self.timers.reset_back_off();
            self.owe_probes(id, PROBES);
        }
    }

    /// The active path is another one. Source: RFC 9000 §9.4, §9.5.
    pub(super) fn on_path_changed(&mut self) {
        // A new path gets a new connection ID, so that the two cannot be linked.
        //= rfc9000/9.5#1
        self.components.peer_cids.switch();
        self.components.ack_frequency.on_path_changed();
        self.components.timestamps.iter_mut().for_each(|timestamps| timestamps.on_path_changed());
        //= rfc9000/9.4#2
        let ledger = &mut self.spaces.application.ledger;
        ledger.on_path_change();
        self.paths.active_mut().first_pn = ledger.largest_sent().map_or(0, |last| last + 1);
        self.counters.migrations += 1;
    }
}
