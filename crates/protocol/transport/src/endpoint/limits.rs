//! What keeps an endpoint from being used against others: rates of answers, and ports that must not be answered.
//! Source: RFC 9000 §21.5 (request forgery), §10.3.3 (loops).

use super::config::EndpointConfig;
use super::hash::KeyedHash;
use base::network::Network;
use base::rng::Rng;
use base::time::Instant;
use base::token_bucket::TokenBucket;
use core::hash::BuildHasher;
use core::net::{IpAddr, SocketAddr};

/// Source ports of services that answer any datagram, or that never send QUIC: unspecified, quote of the day,
/// chargen, DNS, port mapper, NTP, NetBIOS, SNMP, LDAP, IKE.
const BLOCKED_PORTS: [u16; 11] = [0, 17, 19, 53, 111, 123, 137, 138, 161, 389, 500];
/// Source ports that reflect too but that an honest client may happen to have: SSDP, WS-Discovery, mDNS, LLMNR, memcached.
const THROTTLED_PORTS: [u16; 5] = [1_900, 3_702, 5_353, 5_355, 11_211];
/// Datagrams in a second that throttled ports together may send us.
const THROTTLED_PER_SECOND: u64 = 10;

/// Places for counts by peer. Peers that meet in one share its allowance, so the memory does not depend on their number.
const PLACES: usize = 1_024;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Answers given to one place's peers in one second.
#[derive(Clone, Copy, Debug, Default)]
struct ReplyCount {
    second: u64,
    answers: u16,
}

/// All limits on replies to unknown peers.
pub(super) struct Limits {
    replies: TokenBucket,
    retries: TokenBucket,
    throttled: TokenBucket,
    places: Box<[ReplyCount]>,
    per_peer: u16,
    hash: KeyedHash,
}

impl Limits {
    pub(super) fn new(config: &EndpointConfig, rng: &mut Rng) -> Limits {
        let bucket = |rate: u64| TokenBucket::new(rate, rate, Instant::ZERO);
        Limits {
            replies: bucket(config.replies_per_second),
            retries: bucket(config.retries_per_second),
            throttled: bucket(THROTTLED_PER_SECOND),
            places: vec![ReplyCount::default(); PLACES].into_boxed_slice(),
            per_peer: config.replies_per_second_and_peer,
            hash: KeyedHash::new(rng),
        }
    }

    /// Whether the endpoint processes datagrams from this source port.
    pub(super) fn hears(&mut self, now: Instant, peer: SocketAddr) -> bool {
        let port = peer.port();
        //= rfc9000/21.5.6#1
        !BLOCKED_PORTS.contains(&port) && (!THROTTLED_PORTS.contains(&port) || self.throttled.take(now))
    }

    /// Whether a Version Negotiation, a stateless reset or a refusal may go there.
    pub(super) fn may_reply(&mut self, now: Instant, peer: SocketAddr) -> bool {
        self.counts_for(now, peer.ip()) && self.replies.take(now)
    }

    /// Whether a Retry may leave. Not limited by peer: thousands of honest clients may share an address.
    pub(super) fn may_retry(&mut self, now: Instant) -> bool {
        self.retries.take(now)
    }

    fn counts_for(&mut self, now: Instant, peer: IpAddr) -> bool {
        let index = self.hash.hash_one(Network::of_client(peer)) as usize % PLACES;
        let Some(place) = self.places.get_mut(index) else { return false };
        let second = now.as_nanos() / NANOS_PER_SECOND;
        if place.second != second {
            *place = ReplyCount { second, answers: 0 };
        }
        let granted = place.answers < self.per_peer;
        place.answers = place.answers.saturating_add(1);
        granted
    }
}
