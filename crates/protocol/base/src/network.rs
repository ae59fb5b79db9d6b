//! Whom a limit by address is about: the network that one party most likely has to itself, and the one around it.

use core::net::IpAddr;

/// Bits of an IPv4 address in front of it, when it is written as an IPv6 address. Source: RFC 4291 §2.5.5.2.
const MAPPED: u8 = 96;

/// A block of addresses. IPv4 addresses and their IPv6-mapped forms are in the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Network {
    /// The address as IPv6, with zeros behind the prefix.
    bits: u128,
    /// The prefix length of `bits`.
    len: u8,
}

impl Network {
    /// What one client has: an IPv4 address, or an IPv6 /64, since one link has a whole one to send from.
    pub fn of_client(address: IpAddr) -> Network {
        Network::new(address, MAPPED + 32, 64)
    }

    /// What one site or small provider has: an IPv4 /24, or an IPv6 /48.
    pub fn of_site(address: IpAddr) -> Network {
        Network::new(address, MAPPED + 24, 48)
    }

    fn new(address: IpAddr, v4_len: u8, v6_len: u8) -> Network {
        let (bits, len) = match address.to_canonical() {
            IpAddr::V4(address) => (address.to_ipv6_mapped().to_bits(), v4_len),
            IpAddr::V6(address) => (address.to_bits(), v6_len),
        };
        let host_bits = 128 - u32::from(len);
        Network { bits: bits.checked_shr(host_bits).unwrap_or(0).checked_shl(host_bits).unwrap_or(0), len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_site_and_not_more() {
        let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
        for (one, other, same_client, same_site) in [
            ("192.0.2.1", "192.0.2.1", true, true),
            ("192.0.2.1", "::ffff:192.0.2.1", true, true),
            ("192.0.2.1", "192.0.2.2", false, true),
            ("192.0.2.1", "192.0.3.1", false, false),
            ("2001:db8:1:2::1", "2001:db8:1:2:3::9", true, true),
            ("2001:db8:1:2::1", "2001:db8:1:3::1", false, true),
            ("2001:db8:1:2::1", "2001:db8:2:2::1", false, false),
        ] {
            let (one, other) = (ip(one), ip(other));
            assert_eq!(Network::of_client(one) == Network::of_client(other), same_client, "{one} {other}");
            assert_eq!(Network::of_site(one) == Network::of_site(other), same_site, "{one} {other}");
            assert_ne!(Network::of_client(one), Network::of_site(one));
        }
    }
}
