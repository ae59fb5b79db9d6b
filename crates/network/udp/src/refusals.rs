//! The destinations that do not take segmented sends.
//!
//! The kernel turns a GSO send down when the route's interface cannot compute checksums or an IPsec policy applies, so it
//! is the destination that refuses, not the socket. A few are remembered by address; when there are more, the machine
//! is taken to be the cause and the whole socket goes on without GSO. Nothing is forgotten: a wrong refusal costs speed,
//! a forgotten one costs a failed call per train.

use core::net::IpAddr;

const REMEMBERED: usize = 8;

/// Who refused so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendErrors {
    destinations: [Option<IpAddr>; REMEMBERED],
    count: usize,
}

impl SendErrors {
    /// Takes note that `destination` refused.
    pub(crate) fn on_refused(&mut self, destination: IpAddr) {
        if self.include(destination) {
            return;
        }
        if let Some(place) = self.destinations.get_mut(self.count) {
            *place = Some(destination);
        }
        self.count += 1;
    }

    /// Whether a train for `destination` has to leave datagram by datagram.
    #[inline]
    pub(crate) fn include(&self, destination: IpAddr) -> bool {
        self.count > 0 && (self.everyone() || self.destinations.contains(&Some(destination)))
    }

    /// Whether the whole socket does without.
    pub(crate) fn everyone(&self) -> bool {
        self.count > REMEMBERED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_destinations_refuse_alone_and_many_refuse_for_all() {
        let host = |n: u32| IpAddr::V4(n.into());
        let mut refusals = SendErrors::default();
        assert!(!refusals.include(host(0)));
        for n in 0..8 {
            refusals.on_refused(host(n));
            refusals.on_refused(host(n));
        }
        assert!(refusals.include(host(7)) && !refusals.include(host(8)) && !refusals.everyone());
        refusals.on_refused(host(8));
        assert!(refusals.include(host(99)));
    }
}
