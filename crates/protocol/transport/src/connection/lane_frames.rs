//! The frames of several paths at once, as they arrive. Source: draft-ietf-quic-multipath §4.

use super::Connection;
use super::components::Components;
use super::lanes::{Stage, violation};
use crate::cid::{PeerCids, ResetToken};
use crate::error::TransportError;
use crate::space::SpaceId;
use base::time::Instant;
use wire::cid::ConnectionId;
use wire::error::Code;
use wire::frame;

type Outcome = Result<(), TransportError>;

impl Connection {
    /// Packets of a lane were received. Source: draft-ietf-quic-multipath §4.1.
    pub(super) fn on_path_ack(
        &mut self,
        now: Instant,
        arrived: Instant,
        path: u64,
        ack: &frame::Ack<'_>,
    ) -> Outcome {
        let Some(lanes) = &self.components.lanes else { return Ok(()) };
        let Some(id) = lanes.named(path)? else { return Ok(()) };
        let outcome = self.visit(id, |connection| connection.on_ack(now, arrived, SpaceId::Application, ack));
        outcome.unwrap_or_else(|| Err(violation("acknowledges a packet never sent")))
    }
}

impl Components {
    /// Whether these are the last bytes of a stateless reset, on any lane in use. Source: RFC 9000 §10.3.1.
    pub(super) fn is_reset_token(&self, tail: &ResetToken) -> bool {
        let elsewhere = self.lanes.as_ref().is_some_and(|lanes| lanes.is_reset_token(tail));
        self.peer_cids.is_reset_token(tail) | elsewhere
    }

    /// NEW_CONNECTION_ID or PATH_NEW_CONNECTION_ID.
    pub(super) fn on_new_cid(&mut self, path: u64, new: &frame::NewConnectionId) -> Outcome {
        let Some(lanes) = &self.lanes else { return self.peer_cids.on_new_connection_id(new) };
        let Some(id) = lanes.named(path)? else { return Ok(()) };
        let is_current = lanes.current == id;
        //= multipath/3.2.1#2
        let is_known = self.peer_cids.holds(&new.cid) || lanes.holds_peer_cid(&new.cid);
        if is_known && !self.peer_cids_of(id).is_some_and(|cids| cids.holds(&new.cid)) {
            return Err(violation("one connection ID for two paths"));
        }
        if let Some(cids) = self.peer_cids_of(id) {
            return cids.on_new_connection_id(new);
        }
        let parked = self.lanes.as_mut().and_then(|lanes| lanes.parked_mut(id));
        if let Some(parked) = parked.filter(|_| !is_current) {
            parked.peer_cids = Some(PeerCids::of_lane(id, new)?);
        }
        Ok(())
    }

    /// RETIRE_CONNECTION_ID or PATH_RETIRE_CONNECTION_ID, in a packet to `used`.
    pub(super) fn on_retire_cid(&mut self, path: u64, sequence: u64, used: &ConnectionId) -> Outcome {
        let Some(lanes) = &self.lanes else { return self.local_cids.on_retire(sequence, used) };
        let Some(id) = lanes.named(path)? else { return Ok(()) };
        self.local_cids_of(id).map_or(Ok(()), |cids| cids.on_retire(sequence, used))
    }

    /// PATH_ABANDON: the lane ends when the packet is through.
    pub(super) fn on_path_abandon(&mut self, frame: &frame::PathAbandon) -> Outcome {
        let Some(lanes) = &mut self.lanes else { return Ok(()) };
        let Some(id) = lanes.named(frame.path)? else { return Ok(()) };
        let has_others = lanes.has_open_beside(id);
        let is_unused = lanes.record(id).is_some_and(|record| record.stage == Stage::Unused);
        if !has_others && !is_unused {
            //= multipath/3.4#3
            return Err(TransportError::new(Code::NO_ERROR, "the peer has abandoned the only path"));
        }
        if let Some(record) = lanes.record_mut(id) {
            record.ending = Some(Code(frame.code));
        }
        lanes.is_unsettled = true;
        Ok(())
    }

    pub(super) fn on_path_status(&mut self, frame: &frame::PathStatus) -> Outcome {
        self.lanes.as_mut().map_or(Ok(()), |lanes| lanes.on_status(frame))
    }

    pub(super) fn on_max_path_id(&mut self, frame: &frame::MaxPathId) -> Outcome {
        self.lanes.as_mut().map_or(Ok(()), |lanes| lanes.on_max_path_id(frame))
    }

    pub(super) fn on_paths_blocked(&mut self, frame: &frame::PathsBlocked) -> Outcome {
        self.lanes.as_ref().map_or(Ok(()), |lanes| lanes.on_paths_blocked(frame))
    }

    /// PATH_CIDS_BLOCKED: we give as many connection IDs as we are willing to in any case.
    pub(super) fn on_path_cids_blocked(&mut self, frame: &frame::PathCidsBlocked) -> Outcome {
        let Some(lanes) = &self.lanes else { return Ok(()) };
        let Some(id) = lanes.named(frame.path)? else { return Ok(()) };
        //= multipath/4.7#2
        if self.local_cids_of(id).is_some_and(|cids| frame.next_sequence > cids.next_sequence()) {
            return Err(violation("waits for a connection ID that is not the next one"));
        }
        Ok(())
    }
}
