//! Under which Ethernet address each peer is reached.
//!
//! A table of fixed size, keyed by the peer's IP address: what arrives tells it, look-ups of clients fill it. Addresses go to
//! buckets of a few neighbours by a hash with a secret key, so that no sender can aim at a bucket; in a full bucket the least
//! recently used one gives way. A flood from unknown addresses can therefore at worst push out entries that have to be looked up
//! again, and never makes the table grow.
//!
//! What was learned from a packet gives way to newer packets, since a peer may move behind another router. What was looked
//! up does not: packets with a forged source must not lead a client's packets astray.
//!
//! Rejected: keying by next hop, which takes a route look-up of our own; asking the kernel for every new peer, a system
//! call for each first packet from an unknown address.

use core::net::IpAddr;
use std::hash::{BuildHasher, RandomState};

use base::time::Instant;
use wire::ethernet::Tag;

/// Buckets in the table; a power of two.
const BUCKETS: usize = 1024;
/// Places in a bucket.
const WAYS: usize = 4;

/// Where packets to a peer go on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextHop {
    /// The peer's Ethernet address, or its router's.
    pub(crate) mac: [u8; 6],
    /// The VLAN tags to send with, outermost first.
    pub(crate) tags: [Option<Tag>; 2],
    /// Where the kernel would send from, where it was asked.
    pub(crate) source: Option<IpAddr>,
}

/// How a hop became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Learned,
    /// The kernel said so; to be asked again after this.
    LookedUp(Instant),
}

#[derive(Clone, Copy, Debug)]
struct CachedNeighbour {
    ip: IpAddr,
    hop: NextHop,
    origin: Origin,
    used: u64,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Neighbours {
    buckets: Box<[[Option<CachedNeighbour>; WAYS]]>,
    key: RandomState,
    /// Counts uses.
    clock: u64,
    /// Counts changes of known hops: who remembers a hop compares.
    version: u64,
    /// What was learned last, for the peer that sends many packets in a row.
    latest: Option<(IpAddr, NextHop)>,
}

impl Neighbours {
    pub(crate) fn new() -> Neighbours {
        Neighbours {
            buckets: vec![[None; WAYS]; BUCKETS].into_boxed_slice(),
            key: RandomState::new(),
            clock: 0,
            version: 0,
            latest: None,
        }
    }

    /// Moves on whenever a hop that was known has become another.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Takes note that a packet of `ip` came by `hop`.
    #[inline]
    pub(crate) fn learn(&mut self, ip: IpAddr, hop: NextHop) {
        if self.latest != Some((ip, hop)) {
            self.latest = Some((ip, hop));
            self.insert(ip, hop, Origin::Learned);
        }
    }

    /// Takes note of what the kernel says, to be asked again after `until`.
    pub(crate) fn look_up_said(&mut self, ip: IpAddr, hop: NextHop, until: Instant) {
        self.latest = None;
        self.insert(ip, hop, Origin::LookedUp(until));
    }

    /// How `ip` is reached, and whether the kernel should be asked again.
    pub(crate) fn get(&mut self, ip: IpAddr, now: Instant) -> Option<(NextHop, Freshness)> {
        self.clock += 1;
        let clock = self.clock;
        let bucket = self.bucket(ip);
        let cached = bucket.iter_mut().flatten().find(|cached| cached.ip == ip)?;
        cached.used = clock;
        let stale = matches!(cached.origin, Origin::LookedUp(until) if until <= now);
        Some((cached.hop, if stale { Freshness::Stale } else { Freshness::Fresh }))
    }

    fn insert(&mut self, ip: IpAddr, hop: NextHop, origin: Origin) {
        self.clock += 1;
        let entry = CachedNeighbour { ip, hop, origin, used: self.clock };
        let bucket = self.bucket(ip);
        let known = bucket.iter_mut().flatten().find(|cached| cached.ip == ip);
        if let Some(cached) = known {
            if origin == Origin::Learned && matches!(cached.origin, Origin::LookedUp(_)) {
                return;
            }
            let changed = cached.hop != hop;
            *cached = entry;
            self.version += u64::from(changed);
            return;
        }
        let victim = bucket.iter_mut().min_by_key(|cached| cached.map_or(0, |cached| cached.used));
        if let Some(victim) = victim {
            *victim = Some(entry);
        }
    }

    fn bucket(&mut self, ip: IpAddr) -> &mut [Option<CachedNeighbour>; WAYS] {
        let index = self.key.hash_one(ip) as usize % BUCKETS;
        &mut self.buckets[index]
    }
}

/// Whether a hop may be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// It may.
    Fresh,
    /// It serves until the kernel has been asked again.
    Stale,
}

#[cfg(test)]
mod tests {
    use base::time::Duration;

    use super::*;

    fn hop(last: u8) -> NextHop {
        NextHop { mac: [2, 0, 0, 0, 0, last], tags: [None; 2], source: None }
    }

    fn ip(number: u32) -> IpAddr {
        core::net::Ipv4Addr::from(number).into()
    }

    #[test]
    fn what_arrives_teaches_and_newer_packets_win() {
        let mut table = Neighbours::new();
        assert_eq!(table.get(ip(1), Instant::ZERO), None);
        table.learn(ip(1), hop(1));
        assert_eq!(table.get(ip(1), Instant::ZERO), Some((hop(1), Freshness::Fresh)));
        let version = table.version();
        table.learn(ip(1), hop(1));
        assert_eq!(table.version(), version);
        table.learn(ip(1), hop(2));
        assert_eq!(table.get(ip(1), Instant::ZERO), Some((hop(2), Freshness::Fresh)));
        assert_ne!(table.version(), version, "the holder of the old entry must notice");
    }

    #[test]
    fn packets_do_not_change_what_the_kernel_said() {
        let mut table = Neighbours::new();
        let until = Instant::ZERO + Duration::from_secs(30);
        table.look_up_said(ip(1), hop(1), until);
        table.learn(ip(1), hop(66));
        assert_eq!(table.get(ip(1), Instant::ZERO), Some((hop(1), Freshness::Fresh)));
        assert_eq!(table.get(ip(1), until), Some((hop(1), Freshness::Stale)));
        table.look_up_said(ip(1), hop(3), until + Duration::from_secs(30));
        assert_eq!(table.get(ip(1), until), Some((hop(3), Freshness::Fresh)));
    }

    #[test]
    fn a_flood_of_strangers_is_bounded_and_spares_who_is_in_use() {
        let mut table = Neighbours::new();
        table.learn(ip(7), hop(7));
        for other in 0..100_000 {
            table.learn(ip(1_000_000 + other), hop(1));
            assert!(table.get(ip(7), Instant::ZERO).is_some(), "pushed out by {other}");
        }
        let held: usize = table.buckets.iter().map(|bucket| bucket.iter().flatten().count()).sum();
        assert!(held <= BUCKETS * WAYS);
        assert!(held > BUCKETS * WAYS * 9 / 10, "the table fills up: {held}");
    }
}
