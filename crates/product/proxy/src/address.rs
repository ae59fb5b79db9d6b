//! Where an upstream is.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where an upstream is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// `http://HOST:PORT`, `h2c://HOST:PORT`, `https://HOST:PORT` over TCP, `h3://HOST:PORT` over UDP.
    Host {
        /// What is spoken.
        scheme: Scheme,
        /// A name, or an IP address; one of IPv6 without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// `unix:PATH`: HTTP/1.1 over a socket in the file system.
    Unix(PathBuf),
}

impl Address {
    /// Whether a connection there surely takes several requests at a time.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.scheme(), Scheme::H2c | Scheme::H3)
    }

    /// Whether the upstream has a certificate.
    pub fn is_secure(&self) -> bool {
        self.scheme().is_secure()
    }

    /// What is spoken there.
    pub(crate) fn scheme(&self) -> Scheme {
        match self {
            Address::Host { scheme, .. } => *scheme,
            Address::Unix(_) => Scheme::Http,
        }
    }
}

/// What is spoken with a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// HTTP/1.1.
    Http,
    /// HTTP/2 without TLS, by prior knowledge. RFC 9113 §3.3.
    H2c,
    /// HTTP/2 or 1.1 over TLS, by ALPN.
    Https,
    /// HTTP/3, by prior knowledge.
    H3,
}

impl Scheme {
    const ALL: [Scheme; 4] = [Scheme::Http, Scheme::H2c, Scheme::Https, Scheme::H3];

    /// Whether upstreams have certificates.
    pub(crate) fn is_secure(self) -> bool {
        matches!(self, Scheme::Https | Scheme::H3)
    }

    fn prefix(self) -> &'static str {
        match self {
            Scheme::Http => "http://",
            Scheme::H2c => "h2c://",
            Scheme::Https => "https://",
            Scheme::H3 => "h3://",
        }
    }

    fn port(self) -> u16 {
        if self.is_secure() { 443 } else { 80 }
    }
}

/// Why a text is no address. It says what to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressError(&'static str);

impl fmt::Display for AddressError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

impl std::error::Error for AddressError {}

/// A path is a NUL-terminated text of at most 108 bytes: unix(7).
const LONGEST_PATH: usize = 107;
const EXAMPLES: AddressError = AddressError(
    "write http://HOST:PORT such as http://127.0.0.1:8080, h2c://, https:// or h3:// in the same way, or unix:PATH such as unix:/run/app.sock",
);

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.len() {
                0 => Err(EXAMPLES),
                1..=LONGEST_PATH => Ok(Address::Unix(path.into())),
                _ => Err(AddressError("the path of a socket has at most 107 bytes")),
            };
        }
        let of = |scheme: Scheme| Some((scheme, text.strip_prefix(scheme.prefix())?));
        let (scheme, authority) = Scheme::ALL.into_iter().find_map(of).ok_or(EXAMPLES)?;
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        if authority.contains(['/', '?', '#']) {
            return Err(AddressError(
                "an upstream has no path here: \"strip-prefix\" and routes with \"rewrite\" change paths",
            ));
        }
        if authority.contains('@') {
            return Err(AddressError("an upstream has no user here: leave it out"));
        }
        let parsed: http::uri::Authority = authority.parse().map_err(|_| EXAMPLES)?;
        let port = match parsed.as_str().strip_prefix(parsed.host()) {
            Some("") => scheme.port(),
            _ => {
                parsed.port_u16().filter(|port| *port > 0).ok_or(AddressError("a port is from 1 to 65535"))?
            }
        };
        let host = parsed.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() { Err(EXAMPLES) } else { Ok(Address::Host { scheme, host, port }) }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Host { scheme, host, port } if host.contains(':') => {
                write!(out, "{}[{host}]:{port}", scheme.prefix())
            }
            Address::Host { scheme, host, port } => write!(out, "{}{host}:{port}", scheme.prefix()),
            Address::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_as_they_print() {
        for (text, shown) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://app.internal", "http://app.internal:80"),
            ("http://app.internal:81/", "http://app.internal:81"),
            ("http://[::1]:3000", "http://[::1]:3000"),
            ("h2c://app.internal:81", "h2c://app.internal:81"),
            ("https://app.internal", "https://app.internal:443"),
            ("h3://app.internal", "h3://app.internal:443"),
            ("h3://[::1]:4433", "h3://[::1]:4433"),
            ("unix:/run/a.sock", "unix:/run/a.sock"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(shown.parse(), Ok(address));
        }
        let long = format!("unix:/{}", "a".repeat(107));
        for text in [
            "",
            "unix:",
            "127.0.0.1:80",
            "h4://a",
            "H3://a",
            "h3://a/b",
            "HTTP://a",
            "http://",
            "http://a/b",
            "http://u@a",
            "http://a:0",
            "http://a:70000",
            "http://a:",
            "http://a b",
            &long,
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
