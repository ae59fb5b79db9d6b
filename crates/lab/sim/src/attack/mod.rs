//! An attacker off the path that sends what no endpoint should: datagrams that were seen and changed, made up, or forged as
//! far as that is possible without a connection's keys.
//!
//! Initial packets are the exception: their keys follow from what is on the wire, so an attacker can write any frame into
//! them. The attacker does not see the honest handshakes while they run (on the path it could end them, RFC 9000 §21.2), but
//! does see, copy and change everything that follows them.

mod attack_run;
mod forge;
mod mutate;

pub use attack_run::{AttackReport, AttackRun};

use crate::network::CapturedDatagram;
use base::net::Ecn;
use base::rng::Rng;
use base::time::Duration;
use core::net::{IpAddr, SocketAddr};

/// Datagrams of the honest connections that are remembered.
const LIVE: usize = 256;

/// An attacker off the path.
#[derive(Debug)]
pub struct Attacker {
    rng: Rng,
    /// Whole conversations from before.
    old: Vec<CapturedDatagram>,
    /// Those of them that an attacker can open.
    initials: Vec<forge::Opened>,
    /// What was seen lately.
    live: Vec<CapturedDatagram>,
    server: SocketAddr,
    /// Datagrams made so far.
    pub sent: u64,
}

impl Attacker {
    /// Someone who knows these conversations with `server`.
    pub fn new(rng: Rng, old: Vec<CapturedDatagram>, server: SocketAddr) -> Attacker {
        let open = |sighting: &CapturedDatagram| forge::open_initial(&mut sighting.bytes.clone());
        let initials = old.iter().filter_map(open).collect();
        Attacker { rng, old, initials, live: Vec::new(), server, sent: 0 }
    }

    /// Remembers what passes by.
    pub fn overhear(&mut self, sighting: CapturedDatagram) {
        if self.live.len() < LIVE {
            self.live.push(sighting);
        } else if let Some(place) = self.live.get_mut(self.rng.below(LIVE as u64) as usize) {
            *place = sighting;
        }
    }

    /// The next datagram. `client` is how the honest client appears at present.
    pub fn next_datagram(&mut self, client: SocketAddr) -> CapturedDatagram {
        self.sent += 1;
        let bytes = match self.rng.below(10) {
            0..=2 => self.changed(Pool::Live),
            3..=6 => self.changed(Pool::Old),
            7..=8 => self.forged(),
            _ => mutate::made_up(&mut self.rng),
        };
        let (source, destination) =
            if self.rng.below(4) == 0 { (self.server, client) } else { (self.source(client), self.server) };
        let ecn = Ecn::from_bits(self.rng.below(4) as u8);
        CapturedDatagram { at: Duration::ZERO, source, destination, ecn, bytes }
    }

    fn changed(&mut self, pool: Pool) -> Vec<u8> {
        let one = self.pick(pool);
        let other = self.pick(pool);
        mutate::changed(&mut self.rng, one, &other)
    }

    fn pick(&mut self, pool: Pool) -> Vec<u8> {
        let pool = match pool {
            Pool::Live if !self.live.is_empty() => &self.live,
            _ => &self.old,
        };
        let index = self.rng.below(pool.len() as u64) as usize;
        pool.get(index).map(|sighting| sighting.bytes.clone()).unwrap_or_default()
    }

    /// An Initial packet that opens, with frames that are not what they should be.
    fn forged(&mut self) -> Vec<u8> {
        let index = self.rng.below(self.initials.len() as u64) as usize;
        match self.initials.get(index) {
            Some(opened) => forge::reseal(&mut self.rng, opened.clone()),
            None => mutate::made_up(&mut self.rng),
        }
    }

    /// Where it claims to come from: somewhere else each time, the same few places, the honest client's address.
    fn source(&mut self, client: SocketAddr) -> SocketAddr {
        let port = 1_024 + self.rng.below(60_000) as u16;
        match self.rng.below(8) {
            0 => client,
            1 => SocketAddr::new(client.ip(), port),
            2 | 3 => SocketAddr::new(IpAddr::from([203, 0, 113, 7]), port % 4 + 5_000),
            _ => SocketAddr::new(IpAddr::from(self.rng.bytes::<4>()), port),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Pool {
    Old,
    Live,
}
