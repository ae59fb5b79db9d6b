//! Local addresses whose interface is fixed, whatever the routes say.

use std::net::IpAddr;

/// Addresses at a time: more than the paths of a connection, for those that it has left. The oldest gives way.
const MAX: usize = 8;

/// Each with the index of the interface by which all leaves that has it as its source. Empty, as with all servers, it costs a
/// message one comparison.
#[derive(Debug, Default)]
pub(crate) struct Pins(Vec<(IpAddr, u32)>);

impl Pins {
    pub(crate) fn add(&mut self, ip: IpAddr, interface: u32) {
        self.0.retain(|(pinned, _)| *pinned != ip);
        if self.0.len() >= MAX {
            self.0.remove(0);
        }
        self.0.push((ip, interface));
    }

    #[inline]
    pub(crate) fn interface(&self, ip: IpAddr) -> Option<u32> {
        self.0.iter().find(|(pinned, _)| *pinned == ip).map(|(_, interface)| *interface)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, paths over several interfaces could all leave by one, or a client that moves for ever could hold ever more.
    #[test]
    fn several_addresses_are_pinned_and_the_oldest_gives_way() {
        let ip = |last: u8| IpAddr::from([192, 0, 2, last]);
        let mut pins = Pins::default();
        assert_eq!(pins.interface(ip(0)), None);
        for last in 0..8 {
            pins.add(ip(last), u32::from(last));
        }
        pins.add(ip(0), 40);
        assert_eq!((pins.interface(ip(0)), pins.interface(ip(1))), (Some(40), Some(1)));
        pins.add(ip(8), 8);
        assert_eq!((pins.interface(ip(0)), pins.interface(ip(1))), (Some(40), None));
        assert_eq!(pins.0.len(), MAX);
    }
}
