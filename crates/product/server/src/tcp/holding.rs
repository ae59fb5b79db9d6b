//! What the connections of one thread hold, and which of them end when memory is short.

use super::timeouts::{ConnectionTimeouts, NextAction};
use crate::budget::{Budget, ConnectionShare, Level, MemoryAccount, PATIENCE};
use base::time::Instant;
use core::net::IpAddr;
use std::rc::{Rc, Weak};

/// Of those that make no progress an eighth ends at a time, at least this many.
const LEAST: usize = 16;

/// One thread's.
#[derive(Debug)]
pub(super) struct Holding {
    account: MemoryAccount,
    held: u64,
}

impl Holding {
    pub(super) fn new(budget: &Budget) -> Holding {
        Holding { account: budget.account(), held: 0 }
    }

    /// What a connection of this peer adds to what its address holds.
    pub(super) fn portion(&self, peer: IpAddr) -> ConnectionShare {
        self.account.budget().portion(peer)
    }

    /// Whether there is no memory for more connections.
    pub(super) fn is_short(&self) -> bool {
        self.account.budget().level() == Level::Short
    }

    /// Accounts for all connections. When memory is short, in all or for an address, those end that hold most of those that make
    /// no progress; returns how many.
    pub(super) fn look(&mut self, now: Instant, pulses: &[Weak<ConnectionTimeouts>]) -> u64 {
        let held = pulses.iter().filter_map(Weak::upgrade).map(|timeouts| timeouts.settle()).sum();
        self.account.on_change(self.held, held);
        self.held = held;
        let mut stalled: Vec<Rc<ConnectionTimeouts>> = pulses
            .iter()
            .filter_map(Weak::upgrade)
            .filter(|timeouts| {
                timeouts.stalled_for(now).is_some_and(|time| time >= PATIENCE) && timeouts.is_short()
            })
            .collect();
        stalled.sort_by_key(|timeouts| core::cmp::Reverse(timeouts.held()));
        let some = (stalled.len() / 8).max(LEAST);
        stalled.iter().take(some).for_each(|timeouts| timeouts.tell(NextAction::Close));
        stalled.len().min(some) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::time::Duration;

    #[test]
    fn the_largest_without_progress_end_when_memory_is_short() {
        let begun = Instant::from_nanos(1);
        let budget = Budget::new(3 << 20);
        let portion = |number: u32| budget.portion(core::net::Ipv4Addr::from_bits(number << 8).into());
        let pulses: Vec<Rc<ConnectionTimeouts>> = (0..40)
            .map(|number| Rc::new(ConnectionTimeouts::new(Rc::default(), portion(number), begun)))
            .collect();
        let waker = core::task::Waker::noop();
        for (number, timeouts) in pulses.iter().enumerate() {
            timeouts.on_secure(begun);
            timeouts.on_request(begun);
            timeouts.on_owed(number * 1_000);
        }
        let weak: Vec<Weak<ConnectionTimeouts>> = pulses.iter().map(Rc::downgrade).collect();
        let mut holding = Holding::new(&Budget::new(100 << 20));
        let later = begun + PATIENCE;
        assert_eq!(holding.look(later, &weak), 0);
        let mut holding = Holding::new(&budget);
        assert_eq!(holding.look(begun + Duration::from_millis(1), &weak), 0, "they had no time yet");
        assert!(holding.is_short());
        pulses[39].on_write(1_000);
        assert_eq!(holding.look(later, &weak), LEAST as u64);
        let ended: Vec<usize> =
            (0..40).filter(|&number| pulses[number].order(waker) == NextAction::Close).collect();
        assert_eq!(ended, (23..39).collect::<Vec<usize>>());
    }
}
