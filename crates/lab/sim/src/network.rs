//! Hosts, links and the one clock.
//!
//! The network is shared by the ports of its hosts and by the driver of the run. Time stands still unless the driver moves
//! it: the scenario's scheduler between turns, or a port that waits. All datagrams under way are events; those of equal time
//! happen in the order in which they were sent, so that nothing but the seed decides.

use crate::datagram::{Datagram, Symbol};
use crate::digest::Digest;
use crate::host::{Host, HostOptions, Rebinding};
use crate::protection::{Code, Measure, Protection, Protector};
use base::net::{Addresses, Ecn};
use base::rng::Rng;
use base::time::{Duration, Instant};
use core::net::SocketAddr;
use link::{EventQueue, Link, LinkCounters, Node, Waits};

/// When a run begins: not at zero, so that a subtraction before the beginning shows.
const BEGINNING: Instant = Instant::from_nanos(1_000_000_000);

/// A host of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(usize);

/// A copy of a datagram as it left its sender.
#[derive(Clone, Debug)]
pub struct CapturedDatagram {
    /// When, counted from the beginning of the run.
    pub at: Duration,
    /// Who sent it, as others see it.
    pub source: SocketAddr,
    /// Whom it was for.
    pub destination: SocketAddr,
    /// Its marking.
    pub ecn: Ecn,
    /// The UDP payload.
    pub bytes: Vec<u8>,
}

#[derive(Debug)]
enum NetworkEvent {
    /// A datagram reaches node `node` of a route's link.
    Reach { route: usize, node: usize, datagram: Datagram },
    /// A host notices what has arrived.
    Notice(usize),
    /// Nothing was sent over a protected route since then, perhaps.
    Pause { route: usize, sent_at: Instant, code: Code },
    /// What waits behind a protected route for a gap need not any longer, perhaps.
    Release(usize),
    /// A datagram departs that its host's port has held back.
    Depart { from: HostId, local: SocketAddr, destination: SocketAddr, ecn: Ecn, bytes: Vec<u8> },
}

/// The link from one host to another.
#[derive(Debug)]
struct Route {
    from: usize,
    to: usize,
    link: Link,
    protector: Option<Box<Protector>>,
}

impl Route {
    fn joins(&self, from: HostId, to: HostId) -> bool {
        (self.from, self.to) == (from.0, to.0)
    }
}

/// The whole virtual world.
#[derive(Debug)]
pub struct Network {
    now: Instant,
    hosts: Vec<Host>,
    /// Few, so a scan finds them.
    routes: Vec<Route>,
    events: EventQueue<NetworkEvent>,
    rng: Rng,
    digest: Digest,
    unroutable: u64,
    tap: Option<Vec<CapturedDatagram>>,
}

impl Network {
    /// An empty network whose chance comes from `seed`.
    pub fn new(seed: u64) -> Network {
        Network {
            now: BEGINNING,
            hosts: Vec::new(),
            routes: Vec::new(),
            events: EventQueue::new(),
            rng: Rng::from_u64(seed),
            digest: Digest::default(),
            unroutable: 0,
            tap: None,
        }
    }

    /// Adds a host. Every host has a network of its own (a /24, or a /112 with IPv6): rebinding moves it about in there.
    pub fn add_host(&mut self, address: SocketAddr, options: HostOptions) -> HostId {
        debug_assert!(self.hosts.iter().all(|host| !host.owns(address)), "hosts share a network");
        self.hosts.push(Host::new(address, options));
        HostId(self.hosts.len() - 1)
    }

    /// Gives a host another address, in its own network; no translator stands before it.
    pub fn add_address(&mut self, host: HostId, address: SocketAddr) {
        if let Some(host) = self.hosts.get_mut(host.0).filter(|host| host.owns(address)) {
            host.others.push(address);
        }
    }

    /// Lays a link of `nodes` from one host to another. Without a link nothing passes.
    pub fn add_link(&mut self, from: HostId, to: HostId, nodes: Vec<Node>) {
        if let Some(host) = self.hosts.get_mut(from.0) {
            for node in &nodes {
                if let Node::Rebind { at, every, times, what } = node {
                    host.rebind(Rebinding { at: *at, every: *every, times: *times, what: *what });
                }
            }
        }
        let rng = self.rng.fork();
        let link = Link::new(nodes, rng);
        self.routes.push(Route { from: from.0, to: to.0, link, protector: None });
    }

    /// Protects what goes over a link.
    pub fn protect(&mut self, from: HostId, to: HostId, plan: Protection) {
        let route = self.routes.iter_mut().find(|route| route.joins(from, to));
        if let Some(route) = route {
            route.protector = Some(Box::new(Protector::new(plan)));
        }
    }

    /// From now on the link has these nodes, one for each that it had: datagrams under way are between two of them.
    ///
    /// # Panics
    /// If there is no such link, or it has another number of nodes.
    pub fn change_link(&mut self, from: HostId, to: HostId, nodes: Vec<Node>) {
        let rng = self.rng.fork();
        let route = self.routes.iter_mut().find(|route| route.joins(from, to));
        let had = route.as_ref().map(|route| route.link.len());
        assert_eq!(
            had,
            Some(nodes.len()),
            "nodes of the link from {from:?} to {to:?}, and of what it is to become"
        );
        if let Some(route) = route {
            route.link = Link::new(nodes, rng);
        }
    }

    /// The rebindings of a host begin: their times count from now. Not from the beginning of the run, because one that
    /// happens during the handshake ends it (RFC 9000 §9), and how long that takes is up to chance.
    pub fn arm_rebinding(&mut self, host: HostId) {
        let age = self.age();
        if let Some(host) = self.hosts.get_mut(host.0) {
            host.arm(age);
        }
    }

    /// Randomness for something else of the same run.
    pub fn fork_rng(&mut self) -> Rng {
        self.rng.fork()
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Time since the beginning.
    pub fn age(&self) -> Duration {
        self.now.saturating_since(BEGINNING)
    }

    /// Where a host is bound.
    pub fn address(&self, host: HostId) -> SocketAddr {
        self.hosts[host.0].address
    }

    /// How a host appears to others at present.
    pub fn external_address(&self, host: HostId) -> SocketAddr {
        self.hosts[host.0].external(self.age())
    }

    /// Everything that was sent so far, as one number.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// What happened on the link between two hosts.
    pub fn link_counters(&self, from: HostId, to: HostId) -> LinkCounters {
        let found = self.routes.iter().find(|route| route.joins(from, to));
        found.map_or_else(LinkCounters::default, |route| route.link.counters)
    }

    /// How long datagrams waited in the marking queues between two hosts, since the last call.
    pub fn take_waits(&mut self, from: HostId, to: HostId) -> Waits {
        let found = self.routes.iter_mut().find(|route| route.joins(from, to));
        found.map_or_else(Waits::default, |route| core::mem::take(&mut route.link.waits))
    }

    /// Datagrams lost for want of a receiver, and those that receivers did not take in fast enough.
    pub fn lost_at_edges(&self) -> (u64, u64) {
        (self.unroutable, self.hosts.iter().map(|host| host.overflowed).sum())
    }

    /// Keeps a copy of everything sent from now on.
    pub fn start_tap(&mut self) {
        self.tap.get_or_insert_default();
    }

    /// The copies so far.
    pub fn take_sightings(&mut self) -> Vec<CapturedDatagram> {
        self.tap.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// A host sends a datagram.
    pub fn send(&mut self, from: HostId, destination: SocketAddr, ecn: Ecn, bytes: &[u8]) {
        let local = self.address(from);
        self.send_from(from, Addresses { local, peer: destination }, ecn, bytes);
    }

    /// A host sends a datagram from one of its addresses.
    fn send_from(&mut self, from: HostId, addresses: Addresses, ecn: Ecn, bytes: &[u8]) {
        let Some(host) = self.hosts.get(from.0) else { return };
        let Addresses { local, peer: destination } = addresses;
        let is_other = host.others.contains(&local);
        let source = if is_other { local } else { host.external(self.age()) };
        self.inject(
            from,
            CapturedDatagram { at: self.age(), source, destination, ecn, bytes: bytes.to_vec() },
        );
    }

    /// A host sends a datagram, which its port holds back until it departs.
    pub(crate) fn send_at(
        &mut self,
        departs: Option<Instant>,
        from: HostId,
        (addresses, ecn): (Addresses, Ecn),
        bytes: &[u8],
    ) {
        match departs.filter(|departs| *departs > self.now) {
            None => self.send_from(from, addresses, ecn, bytes),
            Some(departs) => {
                let (bytes, Addresses { local, peer: destination }) = (bytes.to_vec(), addresses);
                self.events.schedule(departs, NetworkEvent::Depart { from, local, destination, ecn, bytes });
            }
        }
    }

    /// A datagram enters the link of host `from`, whatever source it claims: what an attacker beside that host can do.
    pub fn inject(&mut self, from: HostId, datagram: CapturedDatagram) {
        let CapturedDatagram { source, destination, ecn, bytes, .. } = datagram;
        let to = self.hosts.iter().position(|host| host.owns(destination));
        let len = bytes.len();
        self.digest.on_sent(self.now, (from.0, to.unwrap_or(usize::MAX)), len, ecn);
        let at = self.age();
        if let Some(tap) = &mut self.tap {
            tap.push(CapturedDatagram { at, source, destination, ecn, bytes: bytes.clone() });
        }
        let route = self.routes.iter().position(|route| route.from == from.0 && Some(route.to) == to);
        let Some(route) = route else {
            self.unroutable += 1;
            return;
        };
        self.routes[route].link.counters.entered += 1;
        self.enter(route, Datagram { source, destination, ecn, bytes, symbol: Symbol::Plain });
    }

    /// A datagram goes to the link, with what protects it.
    fn enter(&mut self, route: usize, mut datagram: Datagram) {
        let now = self.now;
        let Some(Route { link, protector: Some(protector), .. }) = self.routes.get_mut(route) else {
            return self.travel(route, 0, datagram);
        };
        match protector.measure(&datagram) {
            Measure::None => self.travel(route, 0, datagram),
            Measure::Spared => {
                let first = link.first_after_losses();
                self.travel(route, first, datagram);
            }
            Measure::Copy(after) => {
                let copy = NetworkEvent::Reach { route, node: 0, datagram: datagram.clone() };
                self.events.schedule(now + after, copy);
                self.travel(route, 0, datagram);
            }
            Measure::Code(code) => {
                let repairs = protector.on_sent(now, code, &mut datagram);
                self.events.schedule(now + code.pause, NetworkEvent::Pause { route, sent_at: now, code });
                for datagram in core::iter::once(datagram).chain(repairs) {
                    self.travel(route, 0, datagram);
                }
            }
        }
    }

    /// Repairs leave at the end of a flight.
    fn on_pause(&mut self, route: usize, sent_at: Instant, code: Code) {
        let protector = self.routes.get_mut(route).and_then(|route| route.protector.as_mut());
        let repairs = protector.map(|protector| protector.on_pause(sent_at, code)).unwrap_or_default();
        repairs.into_iter().for_each(|repair| self.travel(route, 0, repair));
    }

    /// What a protected route's receiver gets now.
    fn release(&mut self, route: usize) {
        let Some(Route { to, protector: Some(protector), .. }) = self.routes.get_mut(route) else { return };
        let (to, released) = (*to, protector.release(self.now));
        released.into_iter().for_each(|datagram| self.arrive(to, datagram));
    }

    /// Takes a datagram from node to node until one keeps it or it has arrived.
    fn travel(&mut self, route: usize, first: usize, datagram: Datagram) {
        let (now, age) = (self.now, self.age());
        let Some(Route { to, link, protector, .. }) = self.routes.get_mut(route) else { return };
        let hold = |at, node, datagram| {
            self.events.schedule(at, NetworkEvent::Reach { route, node, datagram });
        };
        let Some(datagram) = link.travel(first, (now, age), datagram, hold) else { return };
        let to = *to;
        let Some(protector) = protector else { return self.arrive(to, datagram) };
        let (arrived, until) = protector.on_arrival(now, datagram);
        if let Some(until) = until {
            self.events.schedule(until, NetworkEvent::Release(route));
        }
        arrived.into_iter().for_each(|datagram| self.arrive(to, datagram));
    }

    fn arrive(&mut self, to: usize, datagram: Datagram) {
        let (now, age) = (self.now, self.age());
        let Some(host) = self.hosts.get_mut(to) else { return };
        if host.external(age) != datagram.destination && !host.others.contains(&datagram.destination) {
            // The translator has no such binding any more, or no host listens on the port.
            self.unroutable += 1;
            return;
        }
        if host.on_arrival(datagram) {
            let then = now + host.options.coalesce;
            self.events.schedule(then, NetworkEvent::Notice(to));
        }
    }

    /// The next datagram of a host.
    pub(crate) fn take_arrival(&mut self, host: HostId) -> Option<Arrival> {
        let host = self.hosts.get_mut(host.0)?;
        let Datagram { source, destination, ecn, bytes, .. } = host.take()?;
        let local = if host.others.contains(&destination) { destination } else { host.address };
        Some(Arrival { source, local, ecn, bytes })
    }

    /// Whether a host has something to take in.
    pub fn has_arrivals(&self, host: HostId) -> bool {
        self.hosts.get(host.0).is_some_and(Host::has_arrivals)
    }

    /// When something happens next by itself.
    pub fn next_event_at(&self) -> Option<Instant> {
        self.events.next_at()
    }

    /// Moves time to `then` (never back) and lets everything happen that falls due on the way.
    pub fn advance(&mut self, then: Instant) {
        while let Some((at, happening)) = self.events.take_due(then) {
            self.now = self.now.max(at);
            match happening {
                NetworkEvent::Reach { route, node, datagram } => self.travel(route, node, datagram),
                NetworkEvent::Notice(host) => self.hosts[host].notice(),
                NetworkEvent::Pause { route, sent_at, code } => self.on_pause(route, sent_at, code),
                NetworkEvent::Release(route) => self.release(route),
                NetworkEvent::Depart { from, local, destination, ecn, bytes } => {
                    self.send_from(from, Addresses { local, peer: destination }, ecn, &bytes);
                }
            }
        }
        self.now = self.now.max(then);
    }

    /// Moves time until `host` has something to take in, but not beyond `deadline`. Without a deadline and without anything
    /// under way, time stands still.
    pub(crate) fn advance_for(&mut self, host: HostId, deadline: Option<Instant>) {
        while !self.has_arrivals(host) {
            let next = match (self.next_event_at(), deadline) {
                (Some(event), Some(deadline)) => event.min(deadline),
                (Some(event), None) => event,
                (None, Some(deadline)) => deadline,
                (None, None) => return,
            };
            self.advance(next);
            if deadline.is_some_and(|deadline| deadline <= self.now) {
                return;
            }
        }
    }
}

/// A datagram as its receiver sees it.
pub(crate) struct Arrival {
    pub source: SocketAddr,
    pub local: SocketAddr,
    pub ecn: Ecn,
    pub bytes: Vec<u8>,
}

#[cfg(test)]
mod tests;
