//! The origin of a request: scheme, host and port. RFC 6454 §4, RFC 9110 §4.3.1.

use super::error::{Error, Kind};
use crate::error::GetError;
use crate::target::{Scheme, Target};
use http::Uri;
use std::fmt;
use std::net::Ipv6Addr;

/// Scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    scheme: Scheme,
    host: String,
    port: u16,
}

impl Origin {
    /// The origin of a URI.
    ///
    /// # Errors
    /// The URI is not absolute, or has another scheme than http and https.
    pub(crate) fn of(uri: &Uri) -> Result<Origin, Error> {
        let target = parse(&uri.to_string())?;
        Ok(Origin { scheme: target.scheme(), host: target.host().to_owned(), port: target.port() })
    }

    /// Whether connections use TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.scheme == Scheme::Https
    }

    /// The host name, or the IP address without brackets: the name that a certificate must be for.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// What to resolve for the origin itself, or for an alternative of it at `host` (the same without one).
    pub(crate) fn target(&self, host: Option<&str>, port: u16) -> Result<Target, Error> {
        let host = host.unwrap_or(&self.host);
        let host = match host.parse::<Ipv6Addr>() {
            Ok(ip) => format!("[{ip}]"),
            Err(_) => host.to_owned(),
        };
        parse(&format!("{}://{host}:{port}/", self.scheme.name()))
    }
}

/// As `https://example.org:443`.
impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Origin { scheme, host, port } = self;
        match host.parse::<Ipv6Addr>() {
            Ok(ip) => write!(out, "{}://[{ip}]:{port}", scheme.name()),
            Err(_) => write!(out, "{}://{host}:{port}", scheme.name()),
        }
    }
}

fn parse(text: &str) -> Result<Target, Error> {
    Target::parse_any(text).map_err(|error| match error {
        GetError::Url(url, what) => {
            Error::new(Kind::Request, format!("\"{url}\" cannot be requested: {what}"))
        }
        error => Error::new(Kind::Request, error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_equal_without_regard_to_case_and_default_ports() {
        let of = |text: &str| Origin::of(&text.parse().unwrap()).unwrap();
        assert_eq!(of("https://Example.org/a"), of("https://example.org:443/b?c"));
        assert_ne!(of("https://example.org/"), of("http://example.org:443/"));
        assert_ne!(of("https://example.org/"), of("https://example.org:8443/"));
        for wrong in ["/a", "ftp://h/", "example.org:80"] {
            let error = Origin::of(&wrong.parse().unwrap()).unwrap_err();
            assert_eq!(error.kind(), Kind::Request, "{wrong}");
        }
        for text in ["https://example.org:443", "https://[::1]:8443", "http://127.0.0.1:80"] {
            assert_eq!(of(text).to_string(), text);
            assert_eq!(of(&of(text).to_string()), of(text));
        }
        let elsewhere = of("https://[::1]/").target(None, 8_443).unwrap();
        assert_eq!(elsewhere.to_string(), "https://[::1]:8443/");
        assert_eq!(of("https://a/").target(Some("b"), 1).unwrap().to_string(), "https://b:1/");
    }
}
