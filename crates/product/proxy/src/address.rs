//! Where an upstream is.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where an upstream is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// `http://HOST:PORT`: HTTP/1.1 over TCP.
    Http {
        /// A name, or an IP address; one of IPv6 without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// `unix:PATH`: HTTP/1.1 over a socket in the file system.
    Unix(PathBuf),
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
    "write http://HOST:PORT such as http://127.0.0.1:8080, or unix:PATH such as unix:/run/app.sock",
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
        let authority = text.strip_prefix("http://").ok_or(EXAMPLES)?;
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
            Some("") => 80,
            _ => {
                parsed.port_u16().filter(|port| *port > 0).ok_or(AddressError("a port is from 1 to 65535"))?
            }
        };
        let host = parsed.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() { Err(EXAMPLES) } else { Ok(Address::Http { host, port }) }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Http { host, port } if host.contains(':') => write!(out, "http://[{host}]:{port}"),
            Address::Http { host, port } => write!(out, "http://{host}:{port}"),
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
            "https://a",
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
