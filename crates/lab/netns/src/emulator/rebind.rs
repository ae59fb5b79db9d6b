//! An address translator that forgets: it gives the left end's UDP ports new numbers in the middle of a conversation.
//!
//! Until it is first asked, packets pass untouched. From then on each source port from the left gets a port of the translator's
//! own, and only packets to such a port find back; what comes to a forgotten port is dropped, as home routers do when a mapping
//! timed out. Asked again, it forgets all and begins anew. It can also give new ports and let replies to the old ones find back: then a
//! client that waits in silence hears what was under way, and nothing but its port changes.
//!
//! A mapping belongs to a port number, whatever the addresses. At most as many mappings exist as there are ports of its own;
//! then the oldest goes. On request each renewal gives a new IPv4 address too, the next of [`OUTSIDE`]; the right end must know the
//! Ethernet address behind them, as a `Lab` sees to. Over IPv6 the address stays.

use std::collections::HashMap;

use super::checksum::repaired;
use super::frame::{Carries, Layout};

/// The translator's own ports: outside the range that Linux gives to clients by default.
const FIRST_PORT: u16 = 61_001;
const LAST_PORT: u16 = 65_500;

/// The last octets of the translator's own IPv4 addresses, in the network of the left end.
pub(crate) const OUTSIDE: std::ops::Range<u8> = 16..32;

/// What a renewal changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Ports.
    #[default]
    Port,
    /// Ports and IPv4 addresses.
    Address,
}

/// What becomes of the ports that flows had before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OldPorts {
    /// Packets to them are dropped.
    #[default]
    Forgotten,
    /// Packets to them still arrive.
    Kept,
}

/// The translator's memory.
#[derive(Debug, Default)]
pub(crate) struct Rebinder {
    is_active: bool,
    old: OldPorts,
    outside_of: HashMap<u16, u16>,
    inside_of: HashMap<u16, u16>,
    given: u16,
    /// The last octet of the address outside, and what it is inside: known once a packet has left with it.
    octets: Option<(u8, Option<u8>)>,
}

impl Rebinder {
    /// The next packet of each flow gets a new port.
    pub(crate) fn renew(&mut self, old: OldPorts, scope: Scope) {
        if scope == Scope::Address {
            let next = self.octets.map_or(OUTSIDE.start, |(octet, _)| octet + 1);
            self.octets = Some((if OUTSIDE.contains(&next) { next } else { OUTSIDE.start }, None));
        }
        self.is_active = true;
        self.old = old;
        self.outside_of.clear();
        if old == OldPorts::Forgotten {
            self.inside_of.clear();
        }
    }

    /// Rewrites the source port of a frame that goes from left to right.
    pub(crate) fn leaves(&mut self, frame: &mut [u8], layout: &Layout) {
        if !self.is_active || layout.carries != Carries::Udp {
            return;
        }
        let inside = port(frame, layout.transport);
        let outside = match self.outside_of.get(&inside) {
            Some(outside) => *outside,
            None => self.map(inside),
        };
        rewrite(frame, layout, layout.transport, outside);
        if let Some((outside, inside)) = self.octets.as_mut().filter(|_| !layout.is_ipv6) {
            let was = rewrite_octet(frame, layout, SOURCE, *outside);
            *inside = inside.or(Some(was));
        }
    }

    /// Rewrites the destination port of a frame that goes from right to left; says false if its port is forgotten.
    pub(crate) fn returns(&self, frame: &mut [u8], layout: &Layout) -> bool {
        if !self.is_active || layout.carries != Carries::Udp {
            return true;
        }
        let at = layout.transport + 2;
        match self.inside_of.get(&port(frame, at)) {
            Some(inside) => {
                rewrite(frame, layout, at, *inside);
                if let Some((_, Some(octet))) = self.octets.filter(|_| !layout.is_ipv6) {
                    rewrite_octet(frame, layout, DESTINATION, octet);
                }
            }
            // Its own port, from before it was first translated.
            None => return self.old == OldPorts::Kept,
        }
        true
    }

    fn map(&mut self, inside: u16) -> u16 {
        let mut outside = FIRST_PORT + self.given;
        self.given = (self.given + 1) % (LAST_PORT - FIRST_PORT);
        if outside == inside {
            outside = LAST_PORT;
        }
        if let Some(previous) = self.inside_of.insert(outside, inside) {
            self.outside_of.remove(&previous);
        }
        self.outside_of.insert(inside, outside);
        outside
    }
}

fn port(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

/// A partial checksum covers the pseudo-header only, which has no ports: it stays. Zero says that there is none (IPv4).
fn rewrite(frame: &mut [u8], layout: &Layout, at: usize, new: u16) {
    let old = port(frame, at);
    frame[at..at + 2].copy_from_slice(&new.to_be_bytes());
    mend_checksum(frame, layout, old, new);
}

/// Makes up for a word of a UDP datagram that was `old` and is `new`.
pub(crate) fn mend_checksum(frame: &mut [u8], layout: &Layout, old: u16, new: u16) {
    let checksum_at = layout.transport + 6;
    let checksum = port(frame, checksum_at);
    if layout.has_partial_checksum || checksum == 0 {
        return;
    }
    let checksum = match repaired(checksum, old, new) {
        0 => 0xffff,
        checksum => checksum,
    };
    frame[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// Where the addresses are in an IPv4 header.
const SOURCE: usize = 12;
const DESTINATION: usize = 16;

/// Gives an IPv4 address a new last octet; returns the old one. Both checksums cover it, the partial one too.
fn rewrite_octet(frame: &mut [u8], layout: &Layout, address: usize, octet: u8) -> u8 {
    let at = layout.ip + address + 2;
    let old = port(frame, at);
    let new = old & 0xff00 | u16::from(octet);
    frame[at..at + 2].copy_from_slice(&new.to_be_bytes());
    let header_at = layout.ip + 10;
    let header = repaired(port(frame, header_at), old, new);
    frame[header_at..header_at + 2].copy_from_slice(&header.to_be_bytes());
    if layout.has_partial_checksum {
        // The sum so far, not complemented.
        let sum_at = layout.transport + 6;
        let sum = !repaired(!port(frame, sum_at), old, new);
        frame[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
    } else {
        mend_checksum(frame, layout, old, new);
    }
    (old & 0xff) as u8
}

#[cfg(test)]
mod tests;
