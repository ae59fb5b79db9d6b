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
use crate::layout::MAX_PAYLOAD;
use crate::neighbours::{Freshness, Hop, Neighbours};
use crate::resolver::{self, Answer};

/// How long what the kernel said is relied on.
const RELY_FOR: Duration = Duration::from_secs(30);
/// How long "no way" is believed, so that a lost cause does not cost a system call a packet.
const GIVE_UP_FOR: Duration = Duration::from_millis(200);

/// Whether packets can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// [`Paths::headers`] are theirs.
    Known,
    /// The kernel is asking for the next hop's address.
    Asked,
    /// They cannot.
    None(SendFault),
}

/// Headers that were made last, and for what.
#[derive(Clone, Copy, Debug)]
struct Made {
    path: TrainPath,
    version: u64,
    until: Instant,
    headers: Headers,
}

pub(crate) struct Paths {
    pub(crate) interface: Interface,
    pub(crate) neighbours: Neighbours,
    /// The tag for peers that have not shown one.
    tag: Option<Tag>,
    made: Made,
    hopeless: Option<(IpAddr, Instant)>,
    now: Instant,
}

impl Paths {
    /// Paths out of an interface. Peers that have not shown a VLAN are reached with `tag`.
    pub(crate) fn new(interface: Interface, tag: Option<Tag>) -> Option<Paths> {
        // Made for nobody, so that there are always some.
        let any = SocketAddr::from(([0, 0, 0, 0], 0));
        let path = TrainPath::new(Addresses { local: any, peer: any }, base::net::Ecn::NotEct);
        let blank = Ethernet { destination: [0; 6], source: [0; 6], tags: [None; 2], kind: 0 };
        let headers = Headers::new(blank, &path.addresses, path.ecn, 0)?;
        let made = Made { path, version: 0, until: Instant::ZERO, headers };
        let neighbours = Neighbours::new();
        Some(Paths { interface, neighbours, tag, made, hopeless: None, now: Instant::ZERO })
    }

    /// Tells the time; it need not be exact.
    #[inline]
    pub(crate) fn set_now(&mut self, now: Instant) {
        self.now = now;
    }

    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// Makes [`Paths::headers`] those of `path`.
    #[inline]
    pub(crate) fn way(&mut self, path: &TrainPath) -> Way {
        let Made { path: made, version, until, .. } = &self.made;
        let same = made.addresses == path.addresses && made.ecn == path.ecn;
        if same && *version == self.neighbours.version() && self.now < *until {
            return Way::Known;
        }
        self.find(path)
    }

    /// The headers of the path that was last found [`Way::Known`].
    #[inline]
    pub(crate) fn headers(&self) -> &Headers {
        &self.made.headers
    }

    /// The longest payload that goes out in one packet with these headers.
    #[inline]
    pub(crate) fn max_payload(&self) -> usize {
        let above_ethernet = self.made.headers.size() - self.made.headers.ethernet_size();
        self.interface.mtu.saturating_sub(above_ethernet).min(MAX_PAYLOAD)
    }

    /// Where packets to `peer` would leave from, as far as anyone knows.
    pub(crate) fn source_towards(&self, peer: IpAddr) -> Option<IpAddr> {
        match resolver::look_up(&self.interface, peer, self.tag) {
            Answer::Known(Hop { source: Some(source), .. }) => Some(source),
            _ => self.interface.source_towards(peer),
        }
    }

    fn find(&mut self, path: &TrainPath) -> Way {
        let peer = path.addresses.peer.ip();
        let hop = match self.neighbours.get(peer, self.now) {
            Some((hop, Freshness::Fresh)) => hop,
            Some((hop, Freshness::Stale)) => match resolver::look_up(&self.interface, peer, self.tag) {
                Answer::Known(newer) => self.rely(peer, newer),
                // The last that is known serves on.
                Answer::Asked | Answer::None => self.rely(peer, hop),
            },
            None => match self.ask(peer) {
                Answer::Known(hop) => self.rely(peer, hop),
                Answer::Asked => return Way::Asked,
                Answer::None => return Way::None(SendFault::Unreachable),
            },
        };
        match self.make(path, &hop) {
            Some(headers) => {
                let (version, until) = (self.neighbours.version(), self.now + RELY_FOR);
                self.made = Made { path: *path, version, until, headers };
                Way::Known
            }
            None => Way::None(SendFault::Unreachable),
        }
    }

    fn ask(&mut self, peer: IpAddr) -> Answer {
        if self.hopeless.is_some_and(|(ip, until)| ip == peer && self.now < until) {
            return Answer::None;
        }
        let answer = resolver::look_up(&self.interface, peer, self.tag);
        if answer == Answer::None {
            self.hopeless = Some((peer, self.now + GIVE_UP_FOR));
        }
        answer
    }

    fn rely(&mut self, peer: IpAddr, hop: Hop) -> Hop {
        self.neighbours.look_up_said(peer, hop, self.now + RELY_FOR);
        hop
    }

    fn make(&self, path: &TrainPath, hop: &Hop) -> Option<Headers> {
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
