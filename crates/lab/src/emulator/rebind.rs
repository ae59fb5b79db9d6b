//! An address translator that forgets: it gives the left end's UDP ports new numbers in the middle of a conversation.
//!
//! Until it is first asked, packets pass untouched. From then on each source port from the left gets a port of the translator's
//! own, and only packets to such a port find back; what comes to a forgotten port is dropped, as home routers do when a mapping
//! timed out. Asked again, it forgets all and begins anew.
//!
//! A mapping belongs to a port number, whatever the addresses. At most as many mappings exist as there are ports of its own;
//! then the oldest goes. Rejected: changing the source address too, which would need routes and neighbours at the far end.

use std::collections::HashMap;

use super::checksum::repaired;
use super::frame::{Carries, Layout};

/// The translator's own ports: outside the range that Linux gives to clients by default.
const FIRST_PORT: u16 = 61_001;
const LAST_PORT: u16 = 65_500;

/// The translator's memory.
#[derive(Debug, Default)]
pub(crate) struct Rebinder {
    is_active: bool,
    outside_of: HashMap<u16, u16>,
    inside_of: HashMap<u16, u16>,
    given: u16,
}

impl Rebinder {
    /// Forgets every mapping; the next packet of each flow gets a new port.
    pub(crate) fn forget(&mut self) {
        self.is_active = true;
        self.outside_of.clear();
        self.inside_of.clear();
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
    }

    /// Rewrites the destination port of a frame that goes from right to left; says false if its port is forgotten.
    pub(crate) fn returns(&self, frame: &mut [u8], layout: &Layout) -> bool {
        if !self.is_active || layout.carries != Carries::Udp {
            return true;
        }
        let at = layout.transport + 2;
        match self.inside_of.get(&port(frame, at)) {
            Some(inside) => rewrite(frame, layout, at, *inside),
            None => return false,
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

#[cfg(test)]
mod tests;
