//! Exchanges the parts of the current lane for those of another one. See lanes.rs.

use super::Connection;
use super::lanes::Lanes;
use crate::lane_id::LaneId;
use core::mem::swap;

impl Connection {
    /// Makes a lane the current one; `false`, and nothing happens, if it is not in use.
    pub(super) fn enter(&mut self, id: LaneId) -> bool {
        let Some(mut lanes) = self.components.lanes.take() else { return false };
        let has_entered = lanes.current == id || self.exchange(&mut lanes, id);
        self.components.lanes = Some(lanes);
        has_entered
    }

    /// Works on a lane, and comes back to the one that was current before; `None` if the lane is not in use.
    pub(super) fn visit<R>(&mut self, id: LaneId, work: impl FnOnce(&mut Connection) -> R) -> Option<R> {
        let before = self.components.lanes.as_ref()?.current;
        if !self.enter(id) {
            return None;
        }
        let outcome = work(self);
        self.enter(before);
        Some(outcome)
    }

    fn exchange(&mut self, lanes: &mut Lanes, id: LaneId) -> bool {
        let Some(record) = lanes.record_mut(id) else { return false };
        let Some(mut parked) = record.parked.take() else { return false };
        let (Some(peer_cids), Some(body)) = (&mut parked.peer_cids, &mut parked.body) else {
            record.parked = Some(parked);
            return false;
        };
        lanes.book(&self.counters);
        swap(&mut parked.local_cids, &mut self.components.local_cids);
        swap(peer_cids, &mut self.components.peer_cids);
        swap(&mut body.space, &mut self.spaces.application);
        swap(&mut body.paths, &mut self.paths);
        swap(&mut body.back_off, &mut self.timers.back_off);
        swap(&mut body.probed_at, &mut self.timers.probed_at);
        if let Some(keys) = &mut self.keys.one_rtt {
            keys.change_path(id, &mut body.marks);
        }
        if let Some(trace) = &mut self.trace {
            trace.enter_path(id);
        }
        let left = core::mem::replace(&mut lanes.current, id);
        if let Some(record) = lanes.record_mut(left) {
            record.parked = Some(parked);
        }
        true
    }
}
