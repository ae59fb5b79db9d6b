//! What is sent again although it may still arrive: by probes, and on other lanes. Source: RFC 9002 §6.2.4.

use super::Connection;
use super::components::ledger_and_owners;
use crate::sent::SentFrame;
use crate::space::SpaceId;
use recovery::packet::SentPacket;

impl Connection {
    /// What the oldest packets carried is sent again by the probes of a timeout, which are so many; of two 1-RTT packets that leave together one
    /// carries what the newest did. Source: RFC 9002 §6.2.4.
    pub(super) fn owe_probes(&mut self, id: SpaceId, count: u8) {
        let goes_on_elsewhere = self.components.lanes.as_ref().is_some_and(|lanes| lanes.has_fit_beside());
        let Some((ledger, mut owners)) =
            ledger_and_owners(&mut self.components, &mut self.spaces, id, self.config.without)
        else {
            return;
        };
        let mut visit = |_: &SentPacket, frames: &[SentFrame]| owners.repeat(frames);
        if goes_on_elsewhere {
            // All of it at once: a second timeout would be too late for what waits on this lane.
            ledger.probe_fresh(&mut visit);
        } else if id == SpaceId::Application {
            ledger.probe_ends(usize::from(count), &mut visit);
        } else {
            ledger.probe(usize::from(count), &mut visit);
        }
        if let Some(space) = self.spaces.space_mut(id) {
            //= rfc9002/6.2.4#1
            space.owe_probes(count);
        }
    }

    /// What is in flight on the current lane goes on others now, once, whatever becomes of it here.
    pub(super) fn repeat_elsewhere(&mut self) {
        let id = SpaceId::Application;
        let without = self.config.without;
        let Some((ledger, mut owners)) =
            ledger_and_owners(&mut self.components, &mut self.spaces, id, without)
        else {
            return;
        };
        ledger.probe_fresh(&mut |_, frames| owners.repeat(frames));
    }
}
