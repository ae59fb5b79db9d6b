//! Which tickets have brought early data lately: each may do so once. RFC 8446 §8.2.
//!
//! A client says how old its ticket is, and that is held against the time of issue (issued.rs), so that a copy of its first flight
//! is too late after a few seconds. For these seconds a ticket is remembered here. The register is a table of buckets with eight
//! places each; a ticket's fingerprint names the bucket and stands in the place, with the time until which it counts.
//!
//! All workers of a process share the register. It has no lock: a place is taken by one compare-and-swap, and after that the bucket
//! is read again. Of two workers that enter the same fingerprint at the same time, each has written before it reads; so at least one
//! of them finds two, and refuses. A full bucket refuses, too: the register errs towards a full round trip.
//!
//! Rejected: a register for each worker (a copied first flight reaches another worker from another port), and Bloom filters as
//! used.rs has for tokens (they lose entries while one is cleared, which there costs a Retry less and here would be a replay).

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

/// Places in a bucket.
const PLACES: usize = 8;

/// The tickets that were used within the window.
pub struct StrikeRegister {
    buckets: Box<[[AtomicU64; PLACES]]>,
}

impl StrikeRegister {
    /// A register for at least `entries` tickets, in 8 bytes each. One for none refuses all.
    pub fn new(entries: usize) -> StrikeRegister {
        let buckets = match entries.div_ceil(PLACES) {
            0 => 0,
            buckets => buckets.next_power_of_two().min(1 << 24),
        };
        StrikeRegister { buckets: (0..buckets).map(|_| Default::default()).collect() }
    }

    /// Whether the ticket with this fingerprint comes for the first time. It counts as used until `until_s`.
    pub(super) fn is_first_use(&self, fingerprint: u64, now_s: u64, until_s: u64) -> bool {
        let mask = self.buckets.len().saturating_sub(1);
        let Some(bucket) = self.buckets.get((fingerprint >> 32) as usize & mask) else { return false };
        let (now, until) = (seconds(now_s), seconds(until_s));
        let entry = until << 32 | fingerprint & u64::from(u32::MAX);
        // Order matters between threads, so all accesses have one.
        let order = Ordering::SeqCst;
        let is_same = |held: u64| held as u32 == entry as u32 && held >> 32 >= now && held != 0;
        if bucket.iter().any(|place| is_same(place.load(order))) {
            return false;
        }
        let entered = bucket.iter().any(|place| {
            let held = place.load(order);
            (held >> 32 < now || held == 0) && place.compare_exchange(held, entry, order, order).is_ok()
        });
        entered && bucket.iter().filter(|place| is_same(place.load(order))).count() == 1
    }
}

/// Seconds as the register keeps them: until the year 2106.
fn seconds(time_s: u64) -> u64 {
    time_s.clamp(1, u64::from(u32::MAX))
}

impl Default for StrikeRegister {
    /// For 262,144 tickets, in 2 MiB: over 10,000 early flights a second within the usual window.
    fn default() -> StrikeRegister {
        StrikeRegister::new(1 << 18)
    }
}

impl fmt::Debug for StrikeRegister {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StrikeRegister").field("entries", &(self.buckets.len() * PLACES)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn a_ticket_counts_once_within_the_window_and_again_after_it() {
        let register = StrikeRegister::new(64);
        assert!(register.is_first_use(7, 1_000, 1_020));
        assert!(!register.is_first_use(7, 1_000, 1_020));
        assert!(!register.is_first_use(7, 1_020, 1_040), "the last second of the window");
        assert!(register.is_first_use(7, 1_021, 1_041));
        assert!(register.is_first_use(8, 1_021, 1_041));
    }

    /// Deleted, many clients could push a ticket out that is then replayed.
    #[test]
    fn a_full_register_refuses_what_is_new_and_forgets_nothing() {
        let register = StrikeRegister::new(64);
        let taken: Vec<u64> =
            (0..1_000).map(|n| n << 32 | n).filter(|n| register.is_first_use(*n, 1_000, 1_020)).collect();
        assert_eq!(taken.len(), 64);
        assert!(taken.iter().all(|n| !register.is_first_use(*n, 1_010, 1_030)));
        assert!(register.is_first_use(1, 1_031, 1_051), "room again when the window is over");
    }

    /// The race that a lock would settle.
    #[test]
    fn of_threads_that_enter_a_ticket_together_at_most_one_is_first() {
        let threads = 4;
        let (register, barrier) = (StrikeRegister::new(1 << 12), Barrier::new(threads));
        let firsts: Vec<Vec<u64>> = std::thread::scope(|scope| {
            let run = || {
                barrier.wait();
                (0..2_000_u64).filter(|n| register.is_first_use(n << 33 | n, 1_000, 1_020)).collect()
            };
            let handles: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
            handles.into_iter().map(|handle| handle.join().unwrap()).collect()
        });
        let mut all: Vec<u64> = firsts.concat();
        all.sort_unstable();
        let before = all.len();
        all.dedup();
        assert_eq!(all.len(), before, "a ticket counted twice");
        assert!(before > 1_500, "{before} of 2,000: rejections are for races and full buckets only");
    }
}
