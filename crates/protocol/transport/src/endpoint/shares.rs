//! What the clients of one address, and of one network around it, have of an endpoint: connections, handshakes under way, and
//! handshakes begun of late. No address or network can use all of them.
//!
//! *Handshakes under way* follow dynamic thresholds: a network may have as many as a multiple of the places that are free
//! ([`OF_CLIENT`], [`OF_SITE`]). One that is alone gets most of the places; each further one that asks for as many as it can
//! get lowers the threshold for all. A part of the places ([`KEPT`]) is kept for networks that have a few at most. Rejected:
//! taking a place away from the network that has most, which needs an order among them and ends handshakes that may be honest.
//!
//! *Handshakes begun* are limited only while they delay others, since what a CPU can take is not known: in the moments after a
//! turn of the worker that was long because of handshakes, or while many wait for others, a network begins a few ([`FEW`]) in each [`WINDOW`].
//!
//! Data structure: a count for each network that has a connection, so the memory follows the number of connections.

use super::config::EndpointConfig;
use super::hash::KeyedHash;
use base::network::Network;
use base::time::{Duration, Instant};
use core::net::IpAddr;
use std::collections::HashMap;

/// An address may have this many times as many handshakes under way as there are free places: alone, 58 % of all.
const OF_CLIENT: usize = 2;
/// The same for the network around it: alone, 70 % of all.
const OF_SITE: usize = 4;
/// One place of this many does not count as free, but for networks with fewer than [`FEW`] handshakes under way.
const KEPT: usize = 8;
/// Handshakes that any network may have under way as long as there is a place, and may begin in a [`WINDOW`].
const FEW: u32 = 4;

/// A turn that began handshakes and took longer delays others.
const LONG_TURN: Duration = Duration::from_millis(5);
/// Handshakes of a turn that may have made it long.
const MANY: u32 = 4;
/// For how long a long turn is remembered.
const MEMORY: Duration = Duration::from_millis(200);
/// The time in which handshakes begun are counted.
const WINDOW: Duration = Duration::from_millis(100);

/// Whose a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    client: Network,
    site: Network,
}

impl Owner {
    pub(super) fn new(peer: IpAddr) -> Owner {
        Owner { client: Network::of_client(peer), site: Network::of_site(peer) }
    }
}

/// Why no connection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitExceeded {
    /// There are as many connections as there may be, in all or from there.
    Connections,
    /// There are as many handshakes under way as there may be.
    HalfOpen,
    /// The client's address, or the network around it, has had its share of handshakes.
    Share,
}

/// What a network has.
#[derive(Clone, Copy, Debug, Default)]
struct PrefixUsage {
    connections: usize,
    half_open: usize,
    /// Handshakes begun in `window`.
    begun: u32,
    window: u64,
}

impl PrefixUsage {
    fn begun_in(&self, window: u64) -> u32 {
        if self.window == window { self.begun } else { 0 }
    }
}

/// The shares of all networks.
pub(super) struct Shares {
    held: HashMap<Network, PrefixUsage, KeyedHash>,
    connections: usize,
    half_open: usize,
    /// Handshakes begun since the worker's turn began.
    begun: u32,
    /// Until when handshakes count as what delays others.
    contended_until: Instant,
}

impl Shares {
    pub(super) fn new(hash: KeyedHash) -> Shares {
        Shares {
            held: HashMap::with_hasher(hash),
            connections: 0,
            half_open: 0,
            begun: 0,
            contended_until: Instant::ZERO,
        }
    }

    /// Handshakes of clients that are under way.
    pub(super) fn half_open(&self) -> usize {
        self.half_open
    }

    /// Whether a client of `owner` may begin a connection now.
    ///
    /// # Errors
    /// What there is too much of.
    pub(super) fn check(
        &self,
        now: Instant,
        owner: &Owner,
        config: &EndpointConfig,
    ) -> Result<(), LimitExceeded> {
        let [client, site] = [self.held(owner.client), self.held(owner.site)];
        if self.connections >= config.max_connections
            || client.connections >= config.max_connections_per_address
            || site.connections >= config.max_connections_per_prefix
        {
            return Err(LimitExceeded::Connections);
        }
        let free = config.max_half_open.saturating_sub(self.half_open);
        if free == 0 {
            return Err(LimitExceeded::HalfOpen);
        }
        let shared = free.saturating_sub(config.max_half_open / KEPT);
        let most = |times: usize| shared.saturating_mul(times).max(FEW as usize);
        let is_large = client.half_open >= most(OF_CLIENT) || site.half_open >= most(OF_SITE);
        let window = window(now);
        let is_fast = client.begun_in(window) >= FEW || site.begun_in(window) >= FEW * OF_SITE as u32;
        // A network that is alone delays only itself.
        let is_contended = now < self.contended_until && self.connections > site.connections;
        if is_large || (is_fast && is_contended) { Err(LimitExceeded::Share) } else { Ok(()) }
    }

    /// A connection begins.
    pub(super) fn on_begun(&mut self, now: Instant, owner: &Owner) {
        self.connections += 1;
        self.half_open += 1;
        self.begun = self.begun.saturating_add(1);
        let window = window(now);
        self.change(owner, |held| {
            held.connections += 1;
            held.half_open += 1;
            (held.begun, held.window) = (held.begun_in(window).saturating_add(1), window);
        });
    }

    /// A connection's handshake is over: complete, or the connection is.
    pub(super) fn on_handshake_over(&mut self, owner: &Owner) {
        self.half_open = self.half_open.saturating_sub(1);
        self.change(owner, |held| held.half_open = held.half_open.saturating_sub(1));
    }

    /// A connection is gone.
    pub(super) fn on_gone(&mut self, owner: &Owner) {
        self.connections = self.connections.saturating_sub(1);
        self.change(owner, |held| held.connections = held.connections.saturating_sub(1));
        for network in [owner.client, owner.site] {
            if self.held(network).connections == 0 {
                self.held.remove(&network);
            }
        }
    }

    /// The worker's last turn has taken so long.
    pub(super) fn on_turn(&mut self, now: Instant, took: Duration) {
        if core::mem::take(&mut self.begun) >= MANY && took > LONG_TURN {
            self.on_delay(now);
        }
    }

    /// Handshakes delay each other.
    pub(super) fn on_delay(&mut self, now: Instant) {
        self.contended_until = now + MEMORY;
    }

    fn held(&self, network: Network) -> PrefixUsage {
        self.held.get(&network).copied().unwrap_or_default()
    }

    fn change(&mut self, owner: &Owner, change: impl Fn(&mut PrefixUsage)) {
        for network in [owner.client, owner.site] {
            change(self.held.entry(network).or_default());
        }
    }

    /// Networks that are remembered.
    #[cfg(test)]
    pub(super) fn networks(&self) -> usize {
        self.held.len()
    }
}

fn window(now: Instant) -> u64 {
    now.as_nanos() / WINDOW.as_nanos().max(1)
}
