//! What a queue has for a datagram before it is full, by its discipline, and what it remembers for that.

use crate::codel::CoDelState;
use crate::node::{Discipline, Queue};
use crate::pie::PieState;
use base::rng::Rng;
use base::time::{Duration, Instant};

/// What a queue's discipline has for a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    None,
    /// A mark if it says ECT, or else it is dropped.
    Mark,
    Drop,
}

/// PIE marks while it would drop less than this. Source: RFC 8033 §5.1.
const MOST_MARKED: f64 = 0.1;

/// What a queue remembers for its discipline.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum EarlyState {
    #[default]
    None,
    CoDel(CoDelState),
    Pie(PieState),
}

impl EarlyState {
    /// What the discipline has for the datagram that comes now to a line that is free then.
    pub(crate) fn sign(&mut self, queue: &Queue, (now, free_at): (Instant, Instant), rng: &mut Rng) -> Sign {
        let wait = free_at.saturating_since(now);
        let waiting = waiting(wait, queue.bits_per_second);
        self.begin(queue.discipline);
        let (drops, may_mark) = match (queue.discipline, self) {
            // It is asked when the datagram's turn comes.
            (Discipline::CoDel(codel), EarlyState::CoDel(state)) => {
                (state.drops(codel, now + wait, (wait, waiting)), true)
            }
            (Discipline::Pie(pie), EarlyState::Pie(state)) => {
                let drops = state.drops(pie, now, (free_at, waiting), rng);
                (drops, state.probability() < MOST_MARKED)
            }
            _ => (false, false),
        };
        match (drops, queue.marks_early && may_mark) {
            (false, _) => Sign::None,
            (true, true) => Sign::Mark,
            (true, false) => Sign::Drop,
        }
    }

    /// A queue of another discipline begins anew.
    fn begin(&mut self, discipline: Discipline) {
        match (discipline, &self) {
            (Discipline::CoDel(_), EarlyState::CoDel(_)) | (Discipline::Pie(_), EarlyState::Pie(_)) => {}
            (Discipline::CoDel(_), _) => *self = EarlyState::CoDel(CoDelState::default()),
            (Discipline::Pie(_), _) => *self = EarlyState::Pie(PieState::default()),
            (Discipline::Tail, _) => *self = EarlyState::None,
        }
    }
}

/// Bytes that a line sends in such a time.
pub(crate) fn waiting(wait: Duration, bits_per_second: u64) -> u64 {
    let bytes = u128::from(wait.as_nanos()) * u128::from(bits_per_second) / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
