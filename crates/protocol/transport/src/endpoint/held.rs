//! 0-RTT packets that overtake the Initial packet of their client: kept for a moment. Source: RFC 9001 §5.7, RFC 9000 §5.2.2.
//!
//! Unknown peers can fill this, so it is small, and off unless the server takes early data: this many datagrams in all, a few of each
//! client, none for long. One that is not kept is lost, and the client sends it again.

use base::net::{Addresses, Ecn};
use base::time::{Duration, Instant};
use std::collections::VecDeque;
use wire::cid::ConnectionId;

/// Datagrams of one client.
const MAX_EACH: usize = 4;
/// The largest datagram that is kept, in bytes.
const MAX_LEN: usize = 1_500;
/// How long one is kept.
const LIFETIME: Duration = Duration::from_millis(100);

/// A datagram that begins with a 0-RTT packet.
struct Held {
    until: Instant,
    dcid: ConnectionId,
    addresses: Addresses,
    ecn: Ecn,
    bytes: Box<[u8]>,
}

/// The datagrams, the oldest first.
pub(super) struct HeldDatagrams {
    most: usize,
    held: VecDeque<Held>,
}

impl HeldDatagrams {
    pub(super) fn new(most: usize) -> HeldDatagrams {
        HeldDatagrams { most, held: VecDeque::new() }
    }

    /// Keeps a datagram for the client that sends to `dcid`. Says whether it does.
    pub(super) fn hold(
        &mut self,
        now: Instant,
        dcid: ConnectionId,
        (addresses, ecn): (Addresses, Ecn),
        bytes: &[u8],
    ) -> bool {
        while self.held.front().is_some_and(|held| held.until <= now) {
            self.held.pop_front();
        }
        let of_client = self.held.iter().filter(|held| held.dcid == dcid).count();
        let has_room = self.held.len() < self.most && of_client < MAX_EACH && bytes.len() <= MAX_LEN;
        if has_room {
            self.held.push_back(Held { until: now + LIFETIME, dcid, addresses, ecn, bytes: bytes.into() });
        }
        has_room
    }

    /// The datagrams of the client that begins now.
    pub(super) fn take(
        &mut self,
        now: Instant,
        dcid: ConnectionId,
        addresses: Addresses,
    ) -> Vec<(Ecn, Box<[u8]>)> {
        let mut taken = Vec::new();
        if self.held.is_empty() {
            return taken;
        }
        for held in core::mem::take(&mut self.held) {
            if held.dcid != dcid {
                self.held.push_back(held);
            } else if held.addresses == addresses && now < held.until {
                taken.push((held.ecn, held.bytes));
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(port: u16) -> (Addresses, Ecn) {
        let at = |port| core::net::SocketAddr::from(([127, 0, 0, 1], port));
        (Addresses { local: at(1), peer: at(port) }, Ecn::NotEct)
    }

    fn cid(byte: u8) -> ConnectionId {
        ConnectionId::new(&[byte; 8]).unwrap()
    }

    /// Deleted, unknown peers could have a server keep what they like for as long as they like.
    #[test]
    fn what_unknown_peers_can_have_kept_is_bounded_in_number_size_and_time() {
        let (mut held, start) = (HeldDatagrams::new(6), Instant::from_nanos(1 << 40));
        let kept = (0..10).filter(|_| held.hold(start, cid(1), from(9), &[7; 100])).count();
        assert_eq!(kept, MAX_EACH);
        assert!(!held.hold(start, cid(2), from(9), &[7; MAX_LEN + 1]));
        let kept = (2..10).filter(|byte| held.hold(start, cid(*byte), from(9), &[7; 100])).count();
        assert_eq!(kept, 2);
        assert_eq!(held.take(start, cid(1), from(8).0).len(), 0, "they came from elsewhere");
        assert_eq!(held.take(start, cid(2), from(9).0).len(), 1);
        assert_eq!(held.take(start + LIFETIME, cid(3), from(9).0).len(), 0, "too old");
        assert!(held.hold(start + LIFETIME, cid(4), from(9), &[7; 100]));
        assert_eq!(held.held.len(), 1);
    }
}
