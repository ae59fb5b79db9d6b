//! Whether the kernel would keep a train's time of departure.
//!
//! A message can say when it departs (SO_TXTIME), but only the queueing discipline `fq` acts on it, on the clock that ours
//! is; every other sends at once. So before anyone paces by it, the interface is asked for its discipline. A socket that is
//! bound to an address leaves by the interface that has it; one that is bound to all of them, by that of the default
//! route of its family, or of both families. An interface with several queues has one discipline for each below an `mq`.
//!
//! Asked once, when the port is bound: an operator who changes the discipline restarts the server. Taken for granted
//! wrongly, trains of one round of sending leave as a burst; that is what the answer errs against.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses for documentation (RFC 5737, RFC 3849): the way to them is the default route.
const ELSEWHERE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];

/// Whether trains that leave from `local` are held back until they depart.
pub(crate) fn are_kept(local: IpAddr) -> bool {
    let interfaces = egress(local);
    !interfaces.is_empty()
        && interfaces.into_iter().all(|index| netlink::qdiscs(index).is_ok_and(|kinds| keep(&kinds)))
}

/// The interfaces by which a socket bound to `local` sends, by index; those that cannot be told are left out.
fn egress(local: IpAddr) -> Vec<u32> {
    if local.is_unspecified() {
        let families = ELSEWHERE.into_iter().filter(|address| local.is_ipv6() || address.is_ipv4());
        return families.filter_map(|address| Some(netlink::route_to(address).ok()?.ifindex)).collect();
    }
    let has = |index: u32| {
        let addresses = netlink::addresses(index).unwrap_or_default();
        addresses.iter().any(|address| address.ip == local)
    };
    let links = netlink::links().unwrap_or_default();
    links.into_iter().map(|link| link.index).filter(|&index| has(index)).collect()
}

/// Whether an interface with disciplines of these kinds keeps departure times.
fn keep(kinds: &[String]) -> bool {
    // What works on arriving packets is listed as well.
    let mut leaving =
        kinds.iter().filter(|kind| !["mq", "ingress", "clsact"].contains(&kind.as_str())).peekable();
    leaving.peek().is_some() && leaving.all(|kind| kind == "fq")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fq_keeps_departure_times() {
        let keep = |kinds: &[&str]| super::keep(&kinds.iter().map(|&kind| kind.into()).collect::<Vec<_>>());
        assert!(keep(&["fq"]) && keep(&["mq", "fq"]) && keep(&["fq", "clsact"]));
        for kinds in
            [&[][..], &["mq"], &["noqueue"], &["fq_codel"], &["mq", "fq", "pfifo_fast"], &["ingress"]]
        {
            assert!(!keep(kinds), "{kinds:?}");
        }
    }

    #[test]
    fn loopback_is_found_by_its_address_and_keeps_nothing() {
        let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
        assert_eq!(egress(loopback).len(), 1);
        assert!(!are_kept(loopback));
        assert!(!are_kept(ELSEWHERE[0]), "an address of no interface");
    }
}
