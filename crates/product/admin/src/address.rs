//! Where the admin address is.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// Where `tercel status` looks.
pub const DEFAULT: &str = "127.0.0.1:9433";

const EXAMPLES: &str = "write a port such as 9433, ADDRESS:PORT such as 127.0.0.1:9433, or unix:PATH such as unix:/run/tercel/admin.sock";

/// An admin address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Over TCP. Port 0 is any free one.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl Address {
    /// Whether only programs of this machine reach it.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Address::Unix(_) => true,
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            // A path is a NUL-terminated text of at most 108 bytes: unix(7).
            return match path.len() {
                1..=107 => Ok(Address::Unix(PathBuf::from(path))),
                0 => Err(EXAMPLES.to_owned()),
                _ => Err("the path of a socket has at most 107 bytes".to_owned()),
            };
        }
        if let Ok(address) = text.parse() {
            return Ok(Address::Tcp(address));
        }
        let (host, port) = text.rsplit_once(':').unwrap_or(("localhost", text));
        match port.parse() {
            Ok(port) if host.eq_ignore_ascii_case("localhost") => {
                Ok(Address::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)))
            }
            _ => Err(EXAMPLES.to_owned()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(out),
            Address::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a port alone could come to mean every address, and show the metrics to other machines.
    #[test]
    fn a_port_alone_is_of_this_machine() {
        for (text, shown, is_local) in [
            ("9433", "127.0.0.1:9433", true),
            ("localhost:1", "127.0.0.1:1", true),
            ("[::1]:9433", "[::1]:9433", true),
            ("[::ffff:127.0.0.1]:9433", "[::ffff:127.0.0.1]:9433", true),
            ("0.0.0.0:9433", "0.0.0.0:9433", false),
            ("192.0.2.1:80", "192.0.2.1:80", false),
            ("unix:/run/a.sock", "unix:/run/a.sock", true),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!((address.to_string().as_str(), address.is_local()), (shown, is_local), "{text}");
            assert_eq!(shown.parse(), Ok(address));
        }
        assert!(DEFAULT.parse::<Address>().is_ok_and(|address| address.is_local()));
        let long = format!("unix:/{}", "a".repeat(107));
        for text in ["", "unix:", "example.org:1", "65536", "off", &long] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
