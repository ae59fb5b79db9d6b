//! Which upstream gets a request.
//!
//! Upstreams that are healthy and have room are asked first. Where none is, those are that have failed: a request is better tried than
//! refused. Data structure: none but a counter; there are few upstreams, and each is looked at.

use crate::settings::Balance;
use crate::upstream::Upstream;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::Instant;

/// Chooses among upstreams.
#[derive(Debug)]
pub(crate) struct Chooser {
    balance: Balance,
    /// Whose turn it is.
    turn: AtomicUsize,
}

/// Upstreams that were tried for a request, as bits.
pub(crate) type Tried = u64;

/// A route has no more upstreams.
pub const MOST: usize = 64;

impl Chooser {
    pub(crate) fn new(balance: Balance) -> Chooser {
        Chooser { balance, turn: AtomicUsize::new(0) }
    }

    /// The number of an upstream that was not tried; `None` if all others are full. `key` is what is hashed.
    pub(crate) fn choose(&self, all: &[Upstream], key: u64, tried: Tried, now: Instant) -> Option<usize> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let left = || {
            let in_turn = (0..all.len()).map(move |place| turn.wrapping_add(place) % all.len());
            let found = in_turn.filter_map(|number| Some((number, all.get(number)?)));
            found.filter(move |(number, upstream)| tried & 1 << number == 0 && upstream.has_room())
        };
        let best = |is_wanted: &dyn Fn(&Upstream) -> bool| {
            let mut wanted = left().filter(|(_, upstream)| is_wanted(upstream));
            match self.balance {
                Balance::LeastConnections => wanted.min_by_key(|(_, upstream)| upstream.active()),
                Balance::RoundRobin => wanted.next(),
                // Rendezvous hashing: when an upstream fails, the keys of the others stay where they are.
                Balance::HashAddress | Balance::HashPath => {
                    wanted.max_by_key(|(number, _)| mix(key ^ mix(*number as u64 + 1)))
                }
            }
        };
        let found = best(&|upstream| upstream.is_healthy(now)).or_else(|| best(&|_| true));
        found.map(|(number, _)| number)
    }

    pub(crate) fn balance(&self) -> Balance {
        self.balance
    }
}

/// Spreads the bits of a number. Source: the finalizer of SplitMix64.
fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// The key of a text. FNV-1a.
pub(crate) fn hash(text: &[u8]) -> u64 {
    text.iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use std::time::Duration;

    fn upstreams(count: u16) -> Vec<Upstream> {
        // Upstreams at one address share their health: those of each test have their own.
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let first = NEXT.fetch_add(usize::from(count), Ordering::Relaxed);
        let address = |number| format!("unix:/{}", first + usize::from(number)).parse().unwrap();
        let mut settings = Settings::new((0..count).map(address).collect());
        settings.connections = 2;
        Upstream::all(&settings)
    }

    #[test]
    fn each_way_of_balancing_has_its_choice() {
        let all = upstreams(3);
        let now = Instant::now();
        let turns = Chooser::new(Balance::RoundRobin);
        let in_turn: Vec<_> = (0..6).map(|_| turns.choose(&all, 0, 0, now).unwrap()).collect();
        assert_eq!(in_turn, [0, 1, 2, 0, 1, 2]);
        let least = Chooser::new(Balance::LeastConnections);
        let busy = [all[0].enter().unwrap(), all[2].enter().unwrap()];
        assert_eq!([(); 3].map(|()| least.choose(&all, 0, 0, now).unwrap()), [1; 3]);
        drop(busy);
        let by_hash = Chooser::new(Balance::HashAddress);
        let mut counts = [0; 3];
        for key in 0..=255 {
            let key = hash(&[key]);
            let place = by_hash.choose(&all, key, 0, now).unwrap();
            assert_eq!(by_hash.choose(&all, key, 0, now), Some(place));
            counts[place] += 1;
            // Without another upstream the key stays where it is.
            assert_eq!(by_hash.choose(&all, key, 1 << ((place + 1) % 3), now), Some(place));
        }
        assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
    }

    /// Deleted, requests could go to an upstream that is down while another is up, or to none while all are said to be down.
    #[test]
    fn what_fails_or_is_full_is_passed_over_and_all_that_fail_are_tried() {
        let all = upstreams(2);
        let now = Instant::now();
        let turns = Chooser::new(Balance::RoundRobin);
        (0..3).for_each(|_| _ = all[0].on_failure(now));
        assert_eq!([(); 3].map(|()| turns.choose(&all, 0, 0, now).unwrap()), [1; 3]);
        (0..3).for_each(|_| _ = all[1].on_failure(now));
        let mut both = [turns.choose(&all, 0, 0, now).unwrap(), turns.choose(&all, 0, 0, now).unwrap()];
        both.sort_unstable();
        assert_eq!(both, [0, 1]);
        assert_eq!(turns.choose(&all, 0, 1, now), Some(1));
        assert_eq!(turns.choose(&all, 0, 3, now), None);
        let later = now + Duration::from_secs(11);
        assert!(all[0].is_healthy(later));
        let full = [all[0].enter().unwrap(), all[0].enter().unwrap()];
        assert!(all[0].enter().is_none());
        assert_eq!([(); 3].map(|()| turns.choose(&all, 0, 0, later).unwrap()), [1; 3]);
        drop(full);
        assert!(all[0].enter().is_some());
    }
}
