//! Where a server listens.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::str::FromStr;
use std::net::UdpSocket;

/// The default port.
const PORT: u16 = 4_433;
/// The loopback interface. Linux gives it no other name.
const LOOPBACK: &str = "lo";
const EXAMPLES: &str =
    "a port such as 4433, or ADDRESS:PORT such as 127.0.0.1:4433, [::1]:4433 or localhost:4433";

/// Where a server listens, over TCP and UDP. Port 0 is any free one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Listen {
    /// At every address of this machine: `4433`, `:4433` or `*:4433`.
    Everywhere(u16),
    /// At 127.0.0.1 and ::1: `localhost:4433`.
    Localhost(u16),
    /// At this address.
    At(SocketAddr),
}

/// What is bound for a [`Listen`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    /// The address.
    pub address: SocketAddr,
    /// The interface by which clients come, if others are refused.
    pub device: Option<&'static str>,
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Listen, String> {
        if let Ok(address) = text.parse() {
            return Ok(Listen::At(address));
        }
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        match (host, port.parse()) {
            ("" | "*", Ok(port)) => Ok(Listen::Everywhere(port)),
            (host, Ok(port)) if host.eq_ignore_ascii_case("localhost") => Ok(Listen::Localhost(port)),
            _ => Err(format!("write {EXAMPLES}")),
        }
    }
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Listen {
        Listen::At(address)
    }
}

impl Listen {
    /// What to bind, the best first. The next one is for systems that refuse the one before.
    ///
    /// `localhost` is two addresses. One socket takes both: bound to the wildcard, and to the loopback interface, so that no
    /// packet from elsewhere reaches it.
    pub fn addresses(self) -> Vec<ListenAddress> {
        let at = |ip: IpAddr, port, device| ListenAddress { address: SocketAddr::new(ip, port), device };
        let any = || match has_ipv6() {
            true => Ipv6Addr::UNSPECIFIED.into(),
            false => Ipv4Addr::UNSPECIFIED.into(),
        };
        match self {
            Listen::At(address) => vec![ListenAddress { address, device: None }],
            Listen::Everywhere(port) => vec![at(any(), port, None)],
            Listen::Localhost(port) => {
                vec![at(any(), port, Some(LOOPBACK)), at(Ipv4Addr::LOCALHOST.into(), port, None)]
            }
        }
    }
}

impl Default for Listen {
    fn default() -> Listen {
        Listen::Everywhere(PORT)
    }
}

impl Listen {
    /// Whether clients that reach a server at `other` reach one that listens here, so that both cannot be bound.
    pub fn includes(self, other: Listen) -> bool {
        let ip = match other {
            Listen::At(address) => Some(address.ip()),
            Listen::Localhost(_) | Listen::Everywhere(_) => None,
        };
        let is_wider = match self {
            Listen::Everywhere(_) => true,
            Listen::Localhost(_) => ip.is_some_and(|ip| ip.is_loopback()),
            Listen::At(address) if address.ip() == Ipv6Addr::UNSPECIFIED => true,
            Listen::At(address) => address.ip().is_unspecified() && ip.is_some_and(|ip| ip.is_ipv4()),
        };
        self == other || (is_wider && self.port() == other.port())
    }

    fn port(self) -> u16 {
        match self {
            Listen::Everywhere(port) | Listen::Localhost(port) => port,
            Listen::At(address) => address.port(),
        }
    }
}

/// `all`, each once, without those that others of them include. With port 0 each is an address of its own.
pub(crate) fn distinct(all: &[Listen]) -> Vec<Listen> {
    let mut kept: Vec<Listen> = Vec::new();
    for &new in all {
        if new.port() > 0 {
            if kept.iter().any(|known| known.includes(new)) {
                continue;
            }
            kept.retain(|known| !new.includes(*known));
        }
        kept.push(new);
    }
    kept
}

impl ListenAddress {
    /// As people read it.
    pub fn describe(self, bound: SocketAddr) -> String {
        match self.device {
            Some(_) if bound.is_ipv6() => {
                format!("localhost:{0} (127.0.0.1:{0} and [::1]:{0})", bound.port())
            }
            Some(_) => format!("localhost:{0} (127.0.0.1:{0})", bound.port()),
            None => bound.to_string(),
        }
    }
}

/// Opens at the first of `addresses` where `open` succeeds. Returns the last error where none does; `None` without addresses.
pub fn first<T, E>(
    addresses: &[ListenAddress],
    mut open: impl FnMut(ListenAddress) -> Result<T, E>,
) -> Option<Result<(ListenAddress, T), E>> {
    let mut failure = None;
    for address in addresses {
        match open(*address) {
            Ok(opened) => return Some(Ok((*address, opened))),
            Err(error) => failure = Some(Err(error)),
        }
    }
    failure
}

fn has_ipv6() -> bool {
    UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_or_with_a_host_is_enough() {
        let table = [
            ("4433", Listen::Everywhere(4433)),
            (":4433", Listen::Everywhere(4433)),
            ("*:0", Listen::Everywhere(0)),
            ("localhost:4433", Listen::Localhost(4433)),
            ("LocalHost:1", Listen::Localhost(1)),
            ("127.0.0.1:4433", Listen::At(([127, 0, 0, 1], 4433).into())),
            ("[::1]:4433", Listen::At((Ipv6Addr::LOCALHOST, 4433).into())),
            ("[::]:4433", Listen::At((Ipv6Addr::UNSPECIFIED, 4433).into())),
        ];
        for (text, listen) in table {
            assert_eq!(text.parse(), Ok(listen), "{text}");
        }
        for text in ["", ":", "localhost", "example.org:4433", "127.0.0.1", "::1", "65536", "-1", "a"] {
            let error = text.parse::<Listen>().unwrap_err();
            assert!(error.contains("localhost:4433") && error.contains("[::1]:4433"), "{error}");
        }
    }

    /// Deleted, `--listen 443 --listen 127.0.0.1:443` could fail because the address is in use, by the server itself.
    #[test]
    fn an_address_that_another_includes_is_left_out() {
        let table: [(&[&str], &[&str]); 8] = [
            (&["443", "0.0.0.0:443"], &["443"]),
            (&["0.0.0.0:443", "[::]:443", "[::1]:443"], &["[::]:443"]),
            (&["127.0.0.1:443", "127.0.0.1:443"], &["127.0.0.1:443"]),
            (
                &["127.0.0.1:443", "[::1]:443", "127.0.0.1:8443"],
                &["127.0.0.1:443", "[::1]:443", "127.0.0.1:8443"],
            ),
            (&["127.0.0.1:443", "localhost:443", "10.0.0.1:443"], &["localhost:443", "10.0.0.1:443"]),
            (&["0.0.0.0:443", "10.0.0.1:443", "[::1]:443"], &["0.0.0.0:443", "[::1]:443"]),
            (&["0", "127.0.0.1:0", "127.0.0.1:0"], &["0", "127.0.0.1:0", "127.0.0.1:0"]),
            (&[], &[]),
        ];
        let parse =
            |texts: &[&str]| -> Vec<Listen> { texts.iter().map(|text| text.parse().unwrap()).collect() };
        for (asked, kept) in table {
            assert_eq!(distinct(&parse(asked)), parse(kept), "{asked:?}");
        }
    }

    #[test]
    fn localhost_is_bound_to_the_loopback_interface_or_else_to_one_address() {
        let [first, second] = Listen::Localhost(7).addresses().try_into().unwrap();
        assert_eq!((first.device, first.address.port()), (Some("lo"), 7));
        assert!(first.address.ip().is_unspecified());
        assert_eq!(second, ListenAddress { address: ([127, 0, 0, 1], 7).into(), device: None });
        let text = first.describe("[::]:7".parse().unwrap());
        assert_eq!(text, "localhost:7 (127.0.0.1:7 and [::1]:7)");
        assert_eq!(second.describe(second.address), "127.0.0.1:7");
        let refused = |_| Err::<(), _>("why");
        assert_eq!(super::first(&[first, second], refused), Some(Err("why")));
    }
}
