//! What the interfaces of this machine hold in one packet, by the addresses they have.
//!
//! A socket that is bound to all addresses leaves by any interface, so the limit belongs to the local address of a path. The
//! kernel is asked for all addresses at once, at the first question and again when the answer has become old; a server that
//! accepts many connections asks it no more than every few seconds. Where it does not say, nothing is limited here: the kernel
//! refuses what is too long (EMSGSIZE), and the search for the path's MTU learns from that.
//!
//! Rejected: the kernel's idea of a route's MTU (IP_MTU of a connected socket). It includes what came by ICMP, which anyone can
//! forge.

use core::net::IpAddr;

use base::time::{Duration, Instant};

/// How long an answer serves.
const FRESH_FOR: Duration = Duration::from_secs(10);
/// The UDP header.
const UDP: usize = 8;

/// The interfaces, as far as they were asked for.
#[derive(Debug, Default)]
pub(crate) struct Interfaces {
    /// Addresses and the largest IP packet in bytes, sorted by address.
    packets: Vec<(IpAddr, u32)>,
    asked_at: Option<Instant>,
}

impl Interfaces {
    /// The longest UDP payload, in bytes, that leaves from `local` in one packet; `None` if that is not known.
    pub(crate) fn largest_payload(&mut self, now: Instant, local: IpAddr) -> Option<usize> {
        if self.asked_at.is_none_or(|at| now.saturating_since(at) > FRESH_FOR) {
            self.asked_at = Some(now);
            self.packets = ask();
        }
        let place = self.packets.binary_search_by_key(&local, |(address, _)| *address).ok()?;
        let (_, packet) = self.packets.get(place)?;
        let ip = if local.is_ipv4() { 20 } else { 40 };
        (*packet as usize).checked_sub(ip + UDP)
    }
}

/// All addresses of this machine; none if it does not say. Of several interfaces with one address the one that holds most.
/// Two questions, however many interfaces there are.
fn ask() -> Vec<(IpAddr, u32)> {
    let mut mtus: Vec<(u32, u32)> =
        netlink::links().unwrap_or_default().iter().map(|link| (link.index, link.mtu)).collect();
    mtus.sort_unstable();
    let mtu_of = |index| {
        let place = mtus.binary_search_by_key(&index, |(index, _)| *index).ok()?;
        mtus.get(place).map(|(_, mtu)| *mtu)
    };
    let addresses = netlink::all_addresses().unwrap_or_default();
    let mut packets: Vec<(IpAddr, u32)> =
        addresses.into_iter().filter_map(|(index, address)| Some((address.ip, mtu_of(index)?))).collect();
    packets.sort_by_key(|(address, mtu)| (*address, core::cmp::Reverse(*mtu)));
    packets.dedup_by_key(|(address, _)| *address);
    packets
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    /// What was asked at once is what asking for each interface says.
    #[test]
    fn every_address_is_known_by_its_own_interface() {
        let packets = ask();
        assert!(packets.is_sorted_by(|a, b| a.0 < b.0), "an address twice: {packets:?}");
        let loopback = netlink::link_by_name("lo").unwrap();
        let addresses = netlink::addresses(loopback.index).unwrap();
        assert!(!addresses.is_empty());
        for address in addresses {
            let (_, mtu) = packets.iter().find(|(ip, _)| *ip == address.ip).unwrap();
            assert!(*mtu >= loopback.mtu, "{address:?}: {mtu}");
        }
    }

    #[test]
    fn loopback_holds_what_its_mtu_says_and_strangers_addresses_nothing() {
        let mut interfaces = Interfaces::default();
        let now = Instant::from_nanos(1);
        let loopback = netlink::link_by_name("lo").unwrap();
        let held = interfaces.largest_payload(now, Ipv4Addr::LOCALHOST.into());
        assert_eq!(held, Some(loopback.mtu as usize - 28));
        assert_eq!(interfaces.largest_payload(now, Ipv4Addr::new(192, 0, 2, 1).into()), None);
        // An answer serves for a while, then the kernel is asked again.
        interfaces.packets.clear();
        assert_eq!(interfaces.largest_payload(now + FRESH_FOR, Ipv4Addr::LOCALHOST.into()), None);
        let later = now + FRESH_FOR + FRESH_FOR;
        assert_eq!(interfaces.largest_payload(later, Ipv4Addr::LOCALHOST.into()), held);
    }
}
