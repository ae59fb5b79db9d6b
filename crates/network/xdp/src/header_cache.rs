//! From a train's path to the headers of its packets.
//!
//! Headers are made once for a path and kept until another path is asked for or its hop changes: a worker sends trains
//! of many packets, and often several to one peer in a row.

use core::net::{IpAddr, SocketAddr};

use base::net::Addresses;
use base::sink::TrainPath;
use base::time::{Duration, Instant};
use datapath::SendFault;
use wire::ethernet::{Ethernet, Tag};
use wire::ip::Headers;

use crate::interface::Interface;
use crate::neighbours::{Freshness, Neighbours, NextHop};
use crate::resolver::{self, Answer, Reason};

/// How long what the kernel said is relied on.
const RELY_FOR: Duration = Duration::from_secs(30);
/// How long "no way" is believed, so that a lost cause does not cost a system call a packet.
const GIVE_UP_FOR: Duration = Duration::from_millis(200);

/// Whether packets can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reachability {
    /// [`HeaderCache::headers`] are theirs.
    Known,
    /// The kernel is asking for the next hop's address.
    Asked,
    /// They cannot.
    None(SendFault),
}

/// Headers that were made last, and for what.
#[derive(Clone, Copy, Debug)]
struct CachedHeaders {
    path: TrainPath,
    version: u64,
    until: Instant,
    headers: Headers,
}

pub(crate) struct HeaderCache {
    pub(crate) interface: Interface,
    pub(crate) neighbours: Neighbours,
    /// The tag for peers that have not shown one.
    tag: Option<Tag>,
    made: CachedHeaders,
    hopeless: Option<(IpAddr, Instant)>,
    now: Instant,
    /// The longest payload that the port can send.
    most: usize,
}

impl HeaderCache {
    /// HeaderCache out of an interface for payloads of up to `most` bytes. Peers that have not shown a VLAN are reached with `tag`.
    pub(crate) fn new(interface: Interface, tag: Option<Tag>, most: usize) -> Option<HeaderCache> {
        // Headers of no peer, so that there are always some.
        let any = SocketAddr::from(([0, 0, 0, 0], 0));
        let path = TrainPath::new(Addresses { local: any, peer: any }, base::net::Ecn::NotEct);
        let blank = Ethernet { destination: [0; 6], source: [0; 6], tags: [None; 2], kind: 0 };
        let headers = Headers::new(blank, &path.addresses, path.ecn, 0)?;
        let made = CachedHeaders { path, version: 0, until: Instant::ZERO, headers };
        let neighbours = Neighbours::new();
        Some(HeaderCache { interface, neighbours, tag, made, hopeless: None, now: Instant::ZERO, most })
    }

    /// Tells the time; it need not be exact.
    #[inline]
    pub(crate) fn set_now(&mut self, now: Instant) {
        self.now = now;
    }

    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// Makes [`HeaderCache::headers`] those of `path`.
    #[inline]
    pub(crate) fn way(&mut self, path: &TrainPath) -> Reachability {
        let CachedHeaders { path: made, version, until, .. } = &self.made;
        let same = made.addresses == path.addresses && made.ecn == path.ecn;
        if same && *version == self.neighbours.version() && self.now < *until {
            return Reachability::Known;
        }
        self.find(path)
    }

    /// The headers of the path that was last found [`Reachability::Known`].
    #[inline]
    pub(crate) fn headers(&self) -> &Headers {
        &self.made.headers
    }

    /// The longest payload that goes out in one packet with these headers.
    #[inline]
    pub(crate) fn max_payload(&self) -> usize {
        let above_ethernet = self.made.headers.size() - self.made.headers.ethernet_size();
        self.interface.mtu.saturating_sub(above_ethernet).min(self.most)
    }

    /// The same for any path from `local`.
    pub(crate) fn largest_payload(&self, local: IpAddr) -> usize {
        let above_ethernet = if local.is_ipv4() { 28 } else { 48 };
        self.interface.mtu.saturating_sub(above_ethernet).min(self.most)
    }

    /// Where packets to `peer` would leave from, as far as anyone knows.
    pub(crate) fn source_towards(&self, peer: IpAddr) -> Option<IpAddr> {
        match resolver::look_up(&self.interface, peer, self.tag, Reason::Unknown) {
            Answer::Known(NextHop { source: Some(source), .. }) => Some(source),
            _ => self.interface.source_towards(peer),
        }
    }

    fn find(&mut self, path: &TrainPath) -> Reachability {
        let peer = path.addresses.peer.ip();
        let hop = match self.neighbours.get(peer, self.now) {
            Some((hop, Freshness::Fresh)) => hop,
            Some((hop, Freshness::Stale)) => {
                match resolver::look_up(&self.interface, peer, self.tag, Reason::Stale) {
                    Answer::Known(newer) => self.rely(peer, newer),
                    // The last that is known serves on.
                    Answer::Asked | Answer::None => self.rely(peer, hop),
                }
            }
            None => match self.ask(peer) {
                Answer::Known(hop) => self.rely(peer, hop),
                Answer::Asked => return Reachability::Asked,
                Answer::None => return Reachability::None(SendFault::Unreachable),
            },
        };
        match self.make(path, &hop) {
            Some(headers) => {
                let (version, until) = (self.neighbours.version(), self.now + RELY_FOR);
                self.made = CachedHeaders { path: *path, version, until, headers };
                Reachability::Known
            }
            None => Reachability::None(SendFault::Unreachable),
        }
    }

    fn ask(&mut self, peer: IpAddr) -> Answer {
        if self.hopeless.is_some_and(|(ip, until)| ip == peer && self.now < until) {
            return Answer::None;
        }
        let answer = resolver::look_up(&self.interface, peer, self.tag, Reason::Unknown);
        if answer == Answer::None {
            self.hopeless = Some((peer, self.now + GIVE_UP_FOR));
        }
        answer
    }

    fn rely(&mut self, peer: IpAddr, hop: NextHop) -> NextHop {
        self.neighbours.look_up_said(peer, hop, self.now + RELY_FOR);
        hop
    }

    fn make(&self, path: &TrainPath, hop: &NextHop) -> Option<Headers> {
        let Addresses { local, peer } = path.addresses;
        let source = if local.ip().is_unspecified() {
            hop.source.or_else(|| self.interface.source_towards(peer.ip()))?
        } else {
            local.ip()
        };
        let addresses = Addresses { local: SocketAddr::new(source, local.port()), peer };
        let source = self.interface.mac;
        let ethernet = Ethernet { destination: hop.mac, source, tags: hop.tags, kind: 0 };
        Headers::new(ethernet, &addresses, path.ecn, flow_label(&addresses))
    }
}

/// The same number for all packets of a flow, so that routers which spread load keep it on one way. RFC 6437 §3.
fn flow_label(addresses: &Addresses) -> u32 {
    let fold = |address: SocketAddr| {
        let ip = match address.ip() {
            IpAddr::V4(ip) => u128::from(ip.to_bits()),
            IpAddr::V6(ip) => ip.to_bits(),
        };
        (ip as u64 ^ (ip >> 64) as u64).wrapping_add(u64::from(address.port()) << 48)
    };
    let mixed = fold(addresses.local).rotate_left(23) ^ fold(addresses.peer);
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) as u32
}

#[cfg(test)]
mod tests {
    use base::net::Ecn;
    use wire::ip::Datagram;

    use super::*;

    fn paths(tag: Option<Tag>) -> HeaderCache {
        let addresses = ["192.0.2.1", "2001:db8::1"].map(|ip| ip.parse().unwrap()).to_vec();
        let (index, name, mac) = (1, "x".to_owned(), [2; 6]);
        let interface = Interface {
            index,
            name,
            mac,
            mtu: 1500,
            is_loopback: false,
            completes_checksums: true,
            addresses,
        };
        HeaderCache::new(interface, tag, 3770).unwrap()
    }

    fn path(local: &str, peer: &str) -> TrainPath {
        TrainPath::new(Addresses { local: local.parse().unwrap(), peer: peer.parse().unwrap() }, Ecn::Ce)
    }

    fn hop(last: u8, tags: [Option<Tag>; 2]) -> NextHop {
        NextHop { mac: [4, 0, 0, 0, 0, last], tags, source: None }
    }

    fn written(paths: &HeaderCache) -> Datagram {
        let mut frame = vec![0; paths.headers().size()];
        paths.headers().write_complete(&mut frame, b"");
        Datagram::read(&frame).unwrap()
    }

    #[test]
    fn answers_go_back_by_the_way_and_the_vlan_by_which_the_question_came() {
        let mut paths = paths(None);
        for peer in ["198.51.100.7:5000", "[2001:db8::7]:5000"] {
            let peer: SocketAddr = peer.parse().unwrap();
            let tags = [Some(Tag { kind: wire::ethernet::PROVIDER_VLAN, control: 9 }), Some(Tag::vlan(7))];
            paths.neighbours.learn(peer.ip(), hop(1, tags));
            let local = if peer.is_ipv4() { "192.0.2.99:443" } else { "[2001:db8::99]:443" };
            let path = path(local, &peer.to_string());
            assert_eq!(paths.way(&path), Reachability::Known);
            let sent = written(&paths);
            assert_eq!((sent.ethernet.source, sent.ethernet.destination), ([2; 6], [4, 0, 0, 0, 0, 1]));
            assert_eq!((sent.source, sent.destination, sent.ecn), (path.addresses.local, peer, Ecn::Ce));
            assert_eq!(sent.ethernet.tags, tags);
            let above = if peer.is_ipv4() { 28 } else { 48 };
            assert_eq!(paths.max_payload(), 1500 - above, "tags do not count against the MTU");
            assert_eq!(paths.largest_payload(path.addresses.local.ip()), 1500 - above);
        }
    }

    #[test]
    fn headers_follow_a_peer_that_moves_and_a_path_that_changes() {
        let mut paths = paths(None);
        let unbound = path("0.0.0.0:443", "198.51.100.7:5000");
        let peer = unbound.addresses.peer.ip();
        paths.neighbours.learn(peer, hop(1, [None; 2]));
        assert_eq!(paths.way(&unbound), Reachability::Known);
        assert_eq!(written(&paths).source, "192.0.2.1:443".parse().unwrap(), "the interface's address");
        paths.neighbours.learn(peer, hop(2, [None; 2]));
        assert_eq!(paths.way(&unbound), Reachability::Known);
        assert_eq!(written(&paths).ethernet.destination[5], 2, "headers made before the peer moved");
        assert_eq!(paths.way(&TrainPath { ecn: Ecn::Ect1, ..unbound }), Reachability::Known);
        assert_eq!(written(&paths).ecn, Ecn::Ect1, "headers made for another marking");
        let other = path("192.0.2.5:443", "198.51.100.7:5001");
        assert_eq!(paths.way(&other), Reachability::Known);
        assert_eq!(written(&paths).destination.port(), 5001, "headers made for another port");
        assert_eq!(
            paths.way(&path("[::1]:443", "198.51.100.7:5000")),
            Reachability::None(SendFault::Unreachable)
        );
    }
}
