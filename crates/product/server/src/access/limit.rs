//! How many requests of a client are answered: a bucket of tokens for each, in one table that all threads share.
//!
//! A bucket is one number, the time at which it will be full again (the generic cell rate algorithm): a request moves it on by the time
//! of one token, and is refused where it would lie further ahead than a burst lasts. A bucket whose time has passed is full, which is what
//! an unknown client has too; so forgetting it changes nothing.
//!
//! Data structure: sets of [`WAYS`] buckets, of which a client has one by a keyed hash. Both numbers of a bucket are atomic and there is no
//! lock. Bounded by its size. Where a set is full of clients that are all in debt, the one that owes least is forgotten, which gives it a
//! full bucket. Two threads that take one bucket at the same moment may count one request too few.
//!
//! Rejected: a table for each thread, which needs no atomics and permits a client the limit once for each thread that its connections
//! reach, so that what an operator has written would depend on the number of cores.

use super::{Asked, Refusal};
use crate::request::Name;
use crate::response::Value;
use base::time::{Duration, Instant};
use http::header::HeaderName;
use std::fmt;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};

/// Clients that are told apart. A power of two.
const BUCKETS: usize = 64 * 1_024;
/// Places of a set.
const WAYS: usize = 8;

/// By what clients are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitKey {
    /// By their address: of IPv6 the first 64 bits, which one customer has.
    Address,
    /// By what they send in `authorization`, else by their address.
    Authorization,
    /// By what they send in this field, all its values, else by their address. All fields of requests are kept then.
    Field(HeaderName),
}

/// A limit of requests, and what clients have used of it.
pub struct RateLimit {
    key: LimitKey,
    /// The time of one token, in nanoseconds.
    interval: u64,
    /// How far ahead a bucket's time may lie, in nanoseconds.
    burst: u64,
    hasher: RandomState,
    buckets: Box<[Bucket]>,
}

/// A client's bucket.
#[derive(Debug, Default)]
struct Bucket {
    /// Whose; 0: none's.
    hash: AtomicU64,
    /// When it is full, in nanoseconds.
    full_at: AtomicU64,
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RateLimit { key, interval, burst, .. } = self;
        out.debug_struct("RateLimit")
            .field("key", key)
            .field("interval", interval)
            .field("burst", burst)
            .finish_non_exhaustive()
    }
}

impl RateLimit {
    /// At most `requests` in `period` on average, and `burst` at once. All are at least 1.
    pub fn new(requests: u64, period: std::time::Duration, burst: u64, key: LimitKey) -> RateLimit {
        let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        let interval = (period / requests.max(1)).max(1);
        RateLimit {
            key,
            interval,
            burst: interval.saturating_mul(burst.max(1)),
            hasher: RandomState::new(),
            buckets: (0..BUCKETS).map(|_| Bucket::default()).collect(),
        }
    }

    /// Counts a request.
    ///
    /// # Errors
    /// Its client has asked too often: 429 with the time after which to ask again. RFC 6585 §4.
    pub(super) fn count(&self, asked: &Asked<'_>) -> Result<(), Refusal> {
        let sent = match &self.key {
            LimitKey::Address => None,
            LimitKey::Authorization => {
                asked.head.value(Name::Authorization).map(|sent| self.hasher.hash_one(sent))
            }
            LimitKey::Field(name) => self.hash_of(name, asked),
        };
        let hash = sent.unwrap_or_else(|| self.hasher.hash_one(network(asked.connection.peer().ip())));
        self.take(hash.max(1), asked.now).map_err(|wait| Refusal {
            status: 429,
            what: "",
            field: Some(("retry-after", Value::decimal(wait.as_nanos().div_ceil(1_000_000_000)))),
        })
    }

    /// Whether all fields of requests must be kept.
    pub(crate) fn reads_fields(&self) -> bool {
        matches!(self.key, LimitKey::Field(_))
    }

    /// Of all values of the field; `None` without any, or if the head was not kept.
    fn hash_of(&self, name: &HeaderName, asked: &Asked<'_>) -> Option<u64> {
        let mut hasher = self.hasher.build_hasher();
        // The length of each is hashed, too, so that "ab" and "a", "b" are two clients.
        let mut is_sent = false;
        let mut take = |value: &[u8]| {
            is_sent = true;
            value.hash(&mut hasher);
        };
        match asked.map {
            Some(map) => map.get_all(name).iter().for_each(|value| take(value.as_bytes())),
            None => {
                let head = asked.whole.kept()?;
                let values = head.fields().filter(|line| line.name == name.as_str().as_bytes());
                values.for_each(|line| take(line.value));
            }
        }
        is_sent.then(|| hasher.finish())
    }

    /// Takes a token of the bucket of `hash`; else how long until there is one.
    fn take(&self, hash: u64, now: Instant) -> Result<(), Duration> {
        let now = now.as_nanos();
        let Some(bucket) = self.bucket(hash, now) else { return Ok(()) };
        let mut full_at = bucket.full_at.load(Ordering::Relaxed);
        loop {
            let next = full_at.max(now).saturating_add(self.interval);
            if next > now.saturating_add(self.burst) {
                return Err(Duration::from_nanos(next - now - self.burst));
            }
            let order = Ordering::Relaxed;
            match bucket.full_at.compare_exchange_weak(full_at, next, order, order) {
                Ok(_) => return Ok(()),
                Err(newer) => full_at = newer,
            }
        }
    }

    /// The bucket of a client: its own, else an empty one, else the one that owes least.
    fn bucket(&self, hash: u64, now: u64) -> Option<&Bucket> {
        let start = (hash as usize % (BUCKETS / WAYS)) * WAYS;
        let set = self.buckets.get(start..start + WAYS)?;
        if let Some(own) = set.iter().find(|bucket| bucket.hash.load(Ordering::Relaxed) == hash) {
            return Some(own);
        }
        let least = set.iter().min_by_key(|bucket| bucket.full_at.load(Ordering::Relaxed))?;
        least.hash.store(hash, Ordering::Relaxed);
        least.full_at.store(now, Ordering::Relaxed);
        Some(least)
    }
}

/// What of an address is one client's. RFC 4291 §2.5.5.2: an IPv4 address may come as one of IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection_info::{ConnectionInfo, ConnectionView, Viewed};
    use crate::informational::Informational;
    use crate::request::Head;
    use http3::HeadBuffer;
    use std::sync::Arc;

    fn second() -> std::time::Duration {
        std::time::Duration::from_secs(1)
    }

    #[test]
    fn a_burst_and_then_the_rate() {
        let limit = RateLimit::new(10, second(), 3, LimitKey::Address);
        let start = Instant::from_nanos(5);
        assert!((0..3).all(|_| limit.take(7, start).is_ok()));
        assert_eq!(limit.take(7, start), Err(Duration::from_millis(100)));
        assert!(limit.take(8, start).is_ok(), "another client");
        let later = start + Duration::from_millis(100);
        assert!(limit.take(7, later).is_ok() && limit.take(7, later).is_err());
        // A long rest saves no more than a burst.
        let much_later = start + Duration::from_secs(3_600);
        assert_eq!((0..9).filter(|_| limit.take(7, much_later).is_ok()).count(), 3);
    }

    /// Deleted, an attacker with many addresses could make the table grow, or take another client's bucket for good.
    #[test]
    fn the_table_has_a_bound_and_a_client_in_debt_stays_in_it() {
        let limit = RateLimit::new(1, second(), 1, LimitKey::Address);
        let start = Instant::from_nanos(0);
        assert!(limit.take(7, start).is_ok());
        // Clients whose debts have passed give way first.
        let later = start + Duration::from_millis(1_500);
        assert!(limit.take(7, later).is_ok());
        for number in 1..=(WAYS as u64 - 1) {
            assert!(limit.take(7 + number * (BUCKETS / WAYS) as u64, start).is_ok());
        }
        assert!(limit.take(7 + 100 * (BUCKETS / WAYS) as u64, later).is_ok());
        assert!(limit.take(7, later).is_err());
        for hash in 1..BUCKETS as u64 * 4 {
            let _ = limit.take(hash, later);
        }
        assert_eq!(limit.buckets.len(), BUCKETS);
    }

    /// Deleted, clients behind one address could share a limit that is for each of their keys, or invent keys until memory has gone.
    #[test]
    fn a_field_tells_clients_apart_and_many_of_them_cost_no_memory() {
        let name = HeaderName::from_static("x-api-key");
        let field = LimitKey::Field(name.clone());
        let limit = RateLimit::new(1, std::time::Duration::from_secs(3_600), 1, field);
        let info = ConnectionInfo {
            peer: ([192, 0, 2, 1], 1).into(),
            local: ([192, 0, 2, 2], 443).into(),
            alpn: "h2",
            server_name: None,
            client_certificates: None,
            informational: Informational::UNSUPPORTED,
            early: None,
        };
        let connection = ConnectionView { viewed: Viewed::Tcp(&info), early: None };
        let head = Head::of("GET", "/");
        let count = |values: &[&str]| {
            let (mut came, mut whole) = (HeadBuffer::default(), HeadBuffer::default());
            let request = http::Request::get("https://a.org/");
            let request = values.iter().fold(request, |request, value| request.header("X-Api-Key", *value));
            let request = request.body(()).unwrap();
            whole.keep(&came.request(&request).unwrap());
            let (map, empty) = (None, HeadBuffer::default());
            let asked =
                Asked { head: &head, map, whole: &whole, host: b"a.org", connection, now: Instant::ZERO };
            let by_map = Asked { map: Some(request.headers()), whole: &empty, ..asked };
            assert_eq!(limit.hash_of(&name, &by_map), limit.hash_of(&name, &asked), "whichever version");
            limit.count(&asked).is_ok()
        };
        for values in [&["one"][..], &["two"], &["One"], &["one", "two"], &["onetwo"], &[""], &[]] {
            assert_eq!([count(values), count(values)], [true, false], "{values:?}");
        }
        let whole = HeadBuffer::default();
        let asked =
            Asked { head: &head, map: None, whole: &whole, host: b"a.org", connection, now: Instant::ZERO };
        assert!(limit.count(&asked).is_err(), "a head that was not kept counts by address, too");
        for number in 0..2 * BUCKETS {
            count(&[&number.to_string()]);
        }
        assert_eq!(limit.buckets.len(), BUCKETS);
    }

    #[test]
    fn threads_count_together() {
        let limit = Arc::new(RateLimit::new(1, second(), 1_000, LimitKey::Address));
        let count = |limit: Arc<RateLimit>| (0..500).filter(|_| limit.take(7, Instant::ZERO).is_ok()).count();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn({
                    let limit = Arc::clone(&limit);
                    move || count(limit)
                })
            })
            .collect();
        assert_eq!(threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>(), 1_000);
    }

    #[test]
    fn a_client_is_an_address_of_ipv4_or_a_network_of_ipv6() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::3"), of("2001:db8:1:3::3"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("::ffff:192.0.2.1"), of("::ffff:192.0.2.2"));
    }
}
