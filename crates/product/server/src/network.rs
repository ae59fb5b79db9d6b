//! Networks as an operator writes them, such as those of proxies in front of this server whose word of the client counts.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An address, or all that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: u128,
    /// How many bits of it count.
    bits: u32,
}

/// The text is no network. It says what to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkError;

impl fmt::Display for NetworkError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("write an address such as 192.0.2.7, or a network such as 10.0.0.0/8")
    }
}

impl std::error::Error for NetworkError {}

/// As IPv6 has it: RFC 4291 §2.5.5.2.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn mask(bits: u32) -> u128 {
    u128::MAX.checked_shl(128 - bits).unwrap_or(0)
}

impl Network {
    /// Whether it has `address` in it.
    pub fn has(&self, address: IpAddr) -> bool {
        (number(address) ^ self.address) & mask(self.bits) == 0
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Network, NetworkError> {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| NetworkError)?;
        let (all, before) = if address.is_ipv4() { (32, 96) } else { (128, 0) };
        let bits = match bits {
            None => all,
            Some(bits) if bits.len() <= 3 && bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                bits.parse().ok().filter(|bits| *bits <= all).ok_or(NetworkError)?
            }
            Some(_) => return Err(NetworkError),
        };
        let network = Network { address: number(address), bits: bits + before };
        // Bits that do not count are a slip: 10.1.0.0/8.
        if network.address & !mask(network.bits) == 0 { Ok(network) } else { Err(NetworkError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a client could say whose address it has.
    #[test]
    fn a_network_has_its_addresses_and_no_others() {
        let has = |network: &str, address: &str| -> bool {
            network.parse::<Network>().unwrap().has(address.parse().unwrap())
        };
        assert!(has("10.0.0.0/8", "10.255.0.1") && !has("10.0.0.0/8", "11.0.0.1"));
        assert!(has("10.0.0.0/8", "::ffff:10.0.0.1") && !has("10.0.0.0/8", "::a00:1"));
        assert!(has("192.0.2.7", "192.0.2.7") && !has("192.0.2.7", "192.0.2.6"));
        assert!(has("2001:db8::/32", "2001:db8:1::1") && !has("2001:db8::/32", "2001:db9::1"));
        assert!(has("::/0", "1.2.3.4") && has("0.0.0.0/0", "1.2.3.4") && !has("0.0.0.0/0", "2001:db8::1"));
        for text in ["", "a", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "10.1.0.0/8", "::1/129", "10.0.0/8"]
        {
            assert_eq!(text.parse::<Network>(), Err(NetworkError), "{text}");
        }
    }
}
