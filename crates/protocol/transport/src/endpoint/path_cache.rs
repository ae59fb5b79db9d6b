//! Saved parameters of paths, for later connections on the same path. Source: RFC 9959.
//!
//! One entry for a pair of our address and a peer's network: an IPv4 address, or a /64 of IPv6, behind which one access
//! line is likely. At most one connection uses an entry at a time, and gives it back when it is over, whatever became
//! of it: of its handshake, its controller, or its place. Entries are few ([`MAX_PATHS`]) and live as long as the
//! configuration says; where a new one finds no room, the oldest goes. An entry is made by a connection that has
//! carried some tens of kilobytes to a validated address, so that filling the table costs a peer an address for each
//! place.
//!
//! A tree instead of a hash table: no seed to need, and no peer chooses the keys' order to our harm.

use base::net::Addresses;
use base::time::{Duration, Instant};
use core::net::{IpAddr, Ipv6Addr};
use recovery::congestion::{SavedParameters, SavedParametersUpdate};
use std::collections::BTreeMap;

/// Paths that are remembered at most.
pub(super) const MAX_PATHS: usize = 1_024;

/// Ours, and the peer's network.
type Key = (IpAddr, IpAddr);

#[derive(Clone, Copy, Debug)]
struct SavedPath {
    saved: SavedParameters,
    seen_at: Instant,
    /// A connection relies on it and has not ended.
    is_taken: bool,
}

/// The paths that are remembered.
#[derive(Debug)]
pub(super) struct PathCache {
    entries: BTreeMap<Key, SavedPath>,
    lifetime: Duration,
}

impl PathCache {
    pub(super) const fn new(lifetime: Duration) -> PathCache {
        PathCache { entries: BTreeMap::new(), lifetime }
    }

    /// What is known of the path, for one connection to use.
    pub(super) fn recall(&mut self, now: Instant, addresses: &Addresses) -> Option<SavedParameters> {
        let key = key(addresses);
        let entry = self.entries.get_mut(&key)?;
        //= rfc9959/3.2#4
        if now.saturating_since(entry.seen_at) > self.lifetime {
            self.entries.remove(&key);
            return None;
        }
        //= rfc9959/3.2#2
        if core::mem::replace(&mut entry.is_taken, true) {
            return None;
        }
        Some(SavedParameters { valid_until: entry.seen_at + self.lifetime, ..entry.saved })
    }

    /// The connection that relied on what is known of the path is over.
    pub(super) fn give_back(&mut self, addresses: &Addresses) {
        if let Some(entry) = self.entries.get_mut(&key(addresses)) {
            entry.is_taken = false;
        }
    }

    /// What a connection that is over, and has given back what it had, has to say, as of `seen_at`. Another that relies on
    /// the entry goes on to.
    pub(super) fn learn(
        &mut self,
        seen_at: Instant,
        addresses: &Addresses,
        saved_parameters: SavedParametersUpdate,
    ) {
        let key = key(addresses);
        match saved_parameters {
            SavedParametersUpdate::Learned(saved) => {
                let is_taken = match self.entries.get(&key) {
                    Some(entry) => entry.is_taken,
                    None => {
                        self.make_room();
                        false
                    }
                };
                //= rfc9959/3.1#1
                self.entries.insert(key, SavedPath { saved, seen_at, is_taken });
            }
            SavedParametersUpdate::Unused => {}
            SavedParametersUpdate::Forget => {
                self.entries.remove(&key);
            }
        }
    }

    fn make_room(&mut self) {
        if self.entries.len() < MAX_PATHS {
            return;
        }
        let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.seen_at).map(|(key, _)| *key);
        if let Some(key) = oldest {
            self.entries.remove(&key);
        }
    }
}

fn key(addresses: &Addresses) -> Key {
    //= rfc9959/3.2#3
    let network = match addresses.peer.ip().to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    };
    (addresses.local.ip().to_canonical(), network)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::SocketAddr;

    const LIFETIME: Duration = Duration::from_secs(60);
    /// Of second 0, with its lifetime.
    const SAVED: SavedParameters = SavedParameters {
        capacity: 400_000,
        rtt: Duration::from_millis(50),
        valid_until: Instant::from_nanos(1_060_000_000_000),
    };

    fn at(peer: &str) -> Addresses {
        let peer: SocketAddr = peer.parse().unwrap();
        Addresses { local: "192.0.2.1:443".parse().unwrap(), peer }
    }

    fn later(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(1_000 + seconds)
    }

    fn knowing(peer: &str) -> PathCache {
        let mut path_cache = PathCache::new(LIFETIME);
        path_cache.learn(later(0), &at(peer), SavedParametersUpdate::Learned(SAVED));
        path_cache
    }

    /// RFC 9959: one connection at a time; a retreat is for everyone who follows.
    #[test]
    fn an_entry_serves_one_connection_at_a_time() {
        let mut path_cache = knowing("203.0.113.9:1");
        let path = at("203.0.113.9:2");
        assert_eq!(path_cache.recall(later(1), &path), Some(SAVED), "whatever the port");
        assert_eq!(path_cache.recall(later(1), &path), None);
        path_cache.give_back(&path);
        path_cache.learn(later(2), &path, SavedParametersUpdate::Unused);
        assert_eq!(path_cache.recall(later(3), &path), Some(SAVED));
        path_cache.learn(later(4), &path, SavedParametersUpdate::Forget);
        assert_eq!(path_cache.recall(later(5), &path), None);
    }

    /// Two would jump at once: one with what another is still relying on.
    #[test]
    fn what_another_has_learned_meanwhile_frees_nothing() {
        let mut path_cache = knowing("203.0.113.9:1");
        let path = at("203.0.113.9:2");
        assert_eq!(path_cache.recall(later(1), &path), Some(SAVED));
        let learned = SavedParameters { capacity: 500_000, ..SAVED };
        path_cache.learn(later(2), &path, SavedParametersUpdate::Learned(learned));
        assert_eq!(path_cache.recall(later(3), &path), None);
        path_cache.give_back(&path);
        assert_eq!(path_cache.recall(later(4), &path).map(|saved| saved.capacity), Some(500_000));
    }

    #[test]
    fn an_entry_is_not_used_beyond_its_lifetime() {
        assert!(knowing("203.0.113.9:1").recall(later(60), &at("203.0.113.9:1")).is_some());
        let mut path_cache = knowing("203.0.113.9:1");
        assert_eq!(path_cache.recall(later(61), &at("203.0.113.9:1")), None);
        assert!(path_cache.entries.is_empty(), "and is deleted");
        // Not having been used does not make it younger.
        let mut path_cache = knowing("203.0.113.9:1");
        path_cache.recall(later(50), &at("203.0.113.9:1"));
        path_cache.give_back(&at("203.0.113.9:1"));
        assert_eq!(path_cache.recall(later(61), &at("203.0.113.9:1")), None);
    }

    #[test]
    fn neighbours_are_told_apart_and_sites_are_not() {
        let mut path_cache = knowing("[2001:db8:1:2::7]:1");
        assert_eq!(path_cache.recall(later(1), &at("[2001:db8:1:3::7]:1")), None);
        assert_eq!(path_cache.recall(later(1), &at("[2001:db8:1:2:9::1]:1")), Some(SAVED));
        let mut path_cache = knowing("203.0.113.9:1");
        assert_eq!(path_cache.recall(later(1), &at("203.0.113.8:1")), None);
        assert_eq!(path_cache.recall(later(1), &at("[::ffff:203.0.113.9]:1")), Some(SAVED));
    }

    /// Lost without it: memory that grows with every peer there is.
    #[test]
    fn the_table_is_bounded_and_the_oldest_goes() {
        let mut path_cache = PathCache::new(LIFETIME * 1_000_000);
        for peer in 0..2 * MAX_PATHS as u64 {
            let address = Addresses {
                peer: SocketAddr::from((core::net::Ipv4Addr::from_bits(peer as u32), 1)),
                ..at("203.0.113.9:1")
            };
            path_cache.learn(later(peer), &address, SavedParametersUpdate::Learned(SAVED));
            assert!(path_cache.entries.len() <= MAX_PATHS);
        }
        let oldest = path_cache.entries.values().map(|entry| entry.seen_at).min();
        assert_eq!(oldest, Some(later(MAX_PATHS as u64)));
    }
}
