//! How many connections a thread has, in all and from each network, and the waker that runs when one ends.

use super::limits::Limits;
use base::network::Network;
use core::net::IpAddr;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::task::Waker;

/// The connections of a thread.
#[derive(Default)]
pub(super) struct ConnectionLimiter {
    open: usize,
    /// Of the networks that have any.
    networks: HashMap<Network, usize>,
    /// The task that waits for a connection to end.
    pub(super) waiting: Option<Waker>,
}

impl ConnectionLimiter {
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// A place for a connection whose client is not known yet.
    pub(super) fn enter(limiter: &Rc<RefCell<ConnectionLimiter>>) -> ConnectionPermit {
        limiter.borrow_mut().open += 1;
        ConnectionPermit { limiter: Rc::clone(limiter), networks: None }
    }

    /// A place for a connection of this peer; `None` where its address, or the network around it, has as many as it may.
    pub(super) fn admit(
        limiter: &Rc<RefCell<ConnectionLimiter>>,
        peer: IpAddr,
        limits: &Limits,
    ) -> Option<ConnectionPermit> {
        let mut permit = ConnectionLimiter::enter(limiter);
        permit.claim(peer, limits).then_some(permit)
    }
}

/// A connection's place. Dropping it makes room.
pub(super) struct ConnectionPermit {
    limiter: Rc<RefCell<ConnectionLimiter>>,
    /// Those of its client, once that is known.
    networks: Option<[Network; 2]>,
}

impl ConnectionPermit {
    /// The connection is this client's. Returns whether its address, and the network around it, may have one more.
    #[must_use]
    pub(super) fn claim(&mut self, client: IpAddr, limits: &Limits) -> bool {
        let mut held = self.limiter.borrow_mut();
        let networks = [Network::of_client(client), Network::of_site(client)];
        let most = [limits.connections_per_address, limits.connections_per_prefix];
        let counts = |network| held.networks.get(network).copied().unwrap_or(0);
        if networks.iter().zip(most).any(|(network, most)| counts(network) >= most) {
            return false;
        }
        for network in networks {
            *held.networks.entry(network).or_default() += 1;
        }
        self.networks = Some(networks);
        true
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut limiter = self.limiter.borrow_mut();
        limiter.open -= 1;
        for network in self.networks.iter().flatten() {
            if let Some(count) = limiter.networks.get_mut(network) {
                *count -= 1;
                if *count == 0 {
                    limiter.networks.remove(network);
                }
            }
        }
        if let Some(waker) = limiter.waiting.take() {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_and_no_network_gets_more_than_its_share() {
        let limits = Limits { connections_per_address: 2, connections_per_prefix: 3, ..Limits::default() };
        let limiter = Rc::default();
        let admit = |peer: &str| ConnectionLimiter::admit(&limiter, peer.parse().unwrap(), &limits);
        let first = [admit("192.0.2.1"), admit("::ffff:192.0.2.1")];
        assert!(first.iter().all(Option::is_some));
        assert!(admit("192.0.2.1").is_none(), "two from one address");
        let neighbour = admit("192.0.2.2");
        assert!(neighbour.is_some() && admit("192.0.2.3").is_none(), "three from one network");
        assert!(admit("192.0.3.1").is_some(), "and other networks are not concerned");
        drop(first);
        assert!(admit("192.0.2.1").is_some());
        drop(neighbour);
        // Of a proxy: it counts for its client once that is known.
        let mut unknown = [0; 3].map(|_| ConnectionLimiter::enter(&limiter));
        assert_eq!(limiter.borrow().open(), 3);
        let client = "192.0.2.1".parse().unwrap();
        assert_eq!(unknown.each_mut().map(|permit| permit.claim(client, &limits)), [true, true, false]);
        assert!(admit("192.0.2.1").is_none() && admit("192.0.2.2").is_some());
        drop(unknown);
        assert!(limiter.borrow().networks.is_empty() && limiter.borrow().open() == 0);
    }
}
