//! What the clients of one address, and of one network around it, hold together, in all threads of a process.
//!
//! A client that fills the budget would otherwise deny service to all others. So an address may hold a half of it, and a network
//! three quarters: beyond that its new requests are answered with 503, and others are served as before.
//!
//! Data structure: two rows of counters. A network has a counter in each row, by keyed hashes, and holds what the smaller one
//! says: a network is taken for another only if both counters are shared. So nothing is allocated for a network and nothing
//! locks. Rejected: a map behind a lock.

use super::{Budget, Level};
use base::network::Network;
use core::net::IpAddr;
use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicI64, Ordering};

/// Counters in a row.
const COUNTERS: usize = 2_048;
/// A connection tells of changes of this many bytes.
const STEP: u64 = 64 * 1024;

/// The counters of a network, one in each row.
type ShareCounters = [usize; 2];

/// What all networks hold.
#[derive(Debug)]
pub(super) struct Shares {
    rows: [Box<[AtomicI64]>; 2],
    hashes: [RandomState; 2],
}

impl Shares {
    pub(super) fn new() -> Shares {
        let row = || (0..COUNTERS).map(|_| AtomicI64::new(0)).collect();
        Shares { rows: [row(), row()], hashes: [RandomState::new(), RandomState::new()] }
    }

    fn places(&self, network: Network) -> ShareCounters {
        self.hashes.each_ref().map(|hash| hash.hash_one(network) as usize % COUNTERS)
    }

    fn counters(&self, places: ShareCounters) -> impl Iterator<Item = &AtomicI64> {
        self.rows.iter().zip(places).filter_map(|(row, place)| row.get(place))
    }

    /// What a network holds. Asked for each request.
    #[inline]
    fn held(&self, places: ShareCounters) -> u64 {
        let ([first, second], [place, other]) = (&self.rows, places);
        let [one, other] = [first.get(place), second.get(other)]
            .map(|counter| counter.map_or(0, |counter| counter.load(Ordering::Relaxed)));
        u64::try_from(one.min(other)).unwrap_or(0)
    }
}

/// What one connection adds to what its address and its network hold. Dropping it takes that back.
#[derive(Debug)]
pub(crate) struct ConnectionShare {
    budget: Budget,
    client: Cell<ShareCounters>,
    site: Cell<ShareCounters>,
    /// What the shares know of.
    told: Cell<u64>,
}

/// The counters of a client, and of the network around it.
fn places(budget: &Budget, peer: IpAddr) -> [ShareCounters; 2] {
    [Network::of_client(peer), Network::of_site(peer)].map(|network| budget.0.shares.places(network))
}

impl ConnectionShare {
    pub(super) fn new(budget: &Budget, peer: IpAddr) -> ConnectionShare {
        let [client, site] = places(budget, peer).map(Cell::new);
        ConnectionShare { budget: budget.clone(), client, site, told: Cell::new(0) }
    }

    /// The connection is another client's than was known.
    pub(crate) fn on_peer(&self, peer: IpAddr) {
        let told = self.told.get();
        self.tell(0);
        let [client, site] = places(&self.budget, peer);
        self.client.set(client);
        self.site.set(site);
        self.tell(told);
    }

    /// The connection holds this many bytes.
    #[inline]
    pub(crate) fn on_change(&self, bytes: u64) {
        let told = self.told.get();
        if told == 0 || bytes.abs_diff(told) >= STEP {
            self.tell(bytes);
        }
    }

    fn tell(&self, bytes: u64) {
        let change = super::signed(bytes).saturating_sub(super::signed(self.told.replace(bytes)));
        let shares = &self.budget.0.shares;
        for counter in shares.counters(self.client.get()).chain(shares.counters(self.site.get())) {
            counter.fetch_add(change, Ordering::Relaxed);
        }
    }

    /// How much there is for this client.
    #[inline]
    pub(crate) fn level(&self) -> Level {
        let (level, limit) = (self.budget.level(), self.budget.limit());
        let of_client = self.budget.0.shares.held(self.client.get());
        if of_client >= limit / 2 || self.budget.0.shares.held(self.site.get()) >= limit / 4 * 3 {
            Level::Short
        } else if of_client >= limit / 8 * 3 {
            level.max(Level::Scarce)
        } else {
            level
        }
    }
}

impl Drop for ConnectionShare {
    fn drop(&mut self) {
        self.tell(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn portion(budget: &Budget, peer: &str, bytes: u64) -> ConnectionShare {
        let portion = budget.portion(peer.parse().unwrap());
        portion.on_change(bytes);
        portion
    }

    /// Fails without shares: one address holds seven eighths, and every other client is answered with 503.
    #[test]
    fn an_address_and_a_network_have_a_share_and_others_are_not_concerned() {
        let budget = Budget::new(8 << 20);
        let first = portion(&budget, "192.0.2.1", 2 << 20);
        assert_eq!(first.level(), Level::Ample);
        let second = portion(&budget, "::ffff:192.0.2.1", 1 << 20);
        assert_eq!((first.level(), second.level()), (Level::Scarce, Level::Scarce));
        let third = portion(&budget, "192.0.2.1", 1 << 20);
        assert_eq!((first.level(), third.level()), (Level::Short, Level::Short));
        let neighbour = portion(&budget, "192.0.2.2", 1_000);
        let other = portion(&budget, "198.51.100.1", 1_000);
        assert_eq!((neighbour.level(), other.level()), (Level::Ample, Level::Ample));
        neighbour.on_change(2 << 20);
        assert_eq!(
            (neighbour.level(), other.level()),
            (Level::Short, Level::Ample),
            "the network has its share"
        );
        drop((first, second));
        assert_eq!((neighbour.level(), third.level()), (Level::Ample, Level::Ample));
        // It was the proxy's, and is a client's.
        let proxied = portion(&budget, "203.0.113.9", 4 << 20);
        assert_eq!(proxied.level(), Level::Short);
        proxied.on_peer("192.0.2.1".parse().unwrap());
        assert_eq!((proxied.level(), third.level()), (Level::Short, Level::Short));
        assert_eq!(portion(&budget, "203.0.113.9", 1_000).level(), Level::Ample);
        drop((third, proxied));
        drop((neighbour, other));
        let rows = &budget.0.shares.rows;
        assert!(
            rows.iter().flatten().all(|counter| counter.load(Ordering::Relaxed) == 0),
            "all was taken back"
        );
    }
}
