//! Which lane carries data, and in which order: a function of what is known of each. See multipath.rs.
//!
//! Only lanes of the best class that there is carry data: those that answer, else those meant as backups, else those whose last
//! timeout was not answered, else those whose path is not validated.

use super::lanes::{LaneUse, MAX_LANES};
use crate::config::Scheduler;
use crate::lane_id::LaneId;
use base::time::Duration;

/// What speaks against a lane, in the order of how much it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Good,
    Backup,
    Silent,
    Unproved,
}

/// A lane in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) id: LaneId,
    pub(super) class: Class,
    pub(super) rtt: Duration,
}

/// A lane's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) id: LaneId,
    pub(super) usage: LaneUse,
}

/// All turns, the first one first; the lanes that carry data come before the others.
pub(super) fn turns(
    scheduler: Scheduler,
    rotation: usize,
    mut candidates: [Option<Candidate>; MAX_LANES],
) -> [Option<Turn>; MAX_LANES] {
    let best = candidates.iter().flatten().map(|candidate| candidate.class).min();
    // Stable, with the places that are empty at the end.
    candidates.sort_by_key(|place| match place {
        Some(Candidate { class, rtt, id }) => (0, *class, *rtt, *id),
        None => (1, Class::Unproved, Duration::ZERO, LaneId::FIRST),
    });
    let carrying = candidates.iter().flatten().filter(|candidate| Some(candidate.class) == best).count();
    if let Some(carrying) = candidates.get_mut(..carrying).filter(|_| scheduler == Scheduler::RoundRobin) {
        carrying.sort_by_key(|place| place.map(|candidate| candidate.id));
        if !carrying.is_empty() {
            carrying.rotate_left(rotation % carrying.len());
        }
    }
    candidates.map(|place| {
        place.map(|Candidate { id, class, .. }| {
            let usage = if Some(class) == best { LaneUse::Data } else { LaneUse::Standby };
            Turn { id, usage }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(id: u32, class: Class, ms: u64) -> Option<Candidate> {
        Some(Candidate { id: LaneId(id), class, rtt: Duration::from_millis(ms) })
    }

    fn order(
        scheduler: Scheduler,
        rotation: usize,
        lanes: [Option<Candidate>; MAX_LANES],
    ) -> Vec<(u32, bool)> {
        let turns = turns(scheduler, rotation, lanes);
        turns.iter().flatten().map(|turn| (turn.id.0, turn.usage == LaneUse::Data)).collect()
    }

    /// Deleted, data could prefer the slow path, or be spread where one path is enough.
    #[test]
    fn the_lane_with_the_lowest_rtt_comes_first() {
        let lanes = [lane(0, Class::Good, 30), lane(2, Class::Good, 10), None, lane(3, Class::Good, 20)];
        assert_eq!(order(Scheduler::LowestRtt, 5, lanes), [(2, true), (3, true), (0, true)]);
        assert_eq!(order(Scheduler::Redundant, 5, lanes), [(2, true), (3, true), (0, true)]);
    }

    #[test]
    fn each_lane_has_the_first_turn_once_in_a_round() {
        let lanes = [lane(0, Class::Good, 30), lane(2, Class::Good, 10), None, lane(3, Class::Backup, 20)];
        assert_eq!(order(Scheduler::RoundRobin, 4, lanes), [(0, true), (2, true), (3, false)]);
        assert_eq!(order(Scheduler::RoundRobin, 5, lanes), [(2, true), (0, true), (3, false)]);
    }

    /// Deleted, data could go where the last timeout was not answered, or wait though a backup would carry it.
    #[test]
    fn only_the_best_class_carries_data() {
        for (classes, carrying) in [
            ([Class::Good, Class::Backup, Class::Silent, Class::Unproved], 0),
            ([Class::Silent, Class::Backup, Class::Silent, Class::Unproved], 1),
            ([Class::Unproved, Class::Unproved, Class::Silent, Class::Unproved], 2),
        ] {
            let mut lanes = [None; MAX_LANES];
            for (at, class) in classes.into_iter().enumerate() {
                lanes[at] = lane(at as u32, class, 40 - at as u64);
            }
            let turns = order(Scheduler::LowestRtt, 0, lanes);
            assert_eq!(turns.iter().filter(|turn| turn.1).collect::<Vec<_>>(), [&(carrying, true)]);
            assert_eq!(turns[0].0, carrying);
        }
    }
}
