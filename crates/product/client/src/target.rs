//! Where a download comes from: a URL taken apart, with errors that say what to type instead.

use crate::error::GetError;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use url::{Host, ParseError, Position, Url};

/// Whether what is said to a server is secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `https`: through TLS.
    Https,
    /// `http`: in the clear. For measurements only.
    Http,
}

impl Scheme {
    /// As URLs name it.
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::Https => "https",
            Scheme::Http => "http",
        }
    }

    /// The port of URLs that name none.
    const fn port(self) -> u16 {
        match self {
            Scheme::Https => 443,
            Scheme::Http => 80,
        }
    }
}

/// Which schemes a caller can do with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allowed {
    Https,
    Both,
}

/// What a request needs of its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    url: Url,
    host: String,
    ip: Option<IpAddr>,
    port: u16,
    scheme: Scheme,
}

impl Target {
    /// Takes apart what a user typed; it must be `https`.
    ///
    /// # Errors
    /// What is wrong, and what to type instead.
    pub fn parse(text: &str) -> Result<Target, GetError> {
        Target::read(text, Allowed::Https)
    }

    /// The same, but `http` will do.
    ///
    /// # Errors
    /// What is wrong, and what to type instead.
    pub fn parse_any(text: &str) -> Result<Target, GetError> {
        Target::read(text, Allowed::Both)
    }

    fn read(text: &str, allowed: Allowed) -> Result<Target, GetError> {
        let error = |what: String| GetError::Url(text.to_string(), what);
        if text.trim().is_empty() {
            return Err(error("it is empty".into()));
        }
        // The URL standard drops some of these silently; what is requested shall be what was typed.
        if text.chars().any(|c| c.is_control()) {
            return Err(error("it contains control characters".into()));
        }
        match text.split_once("://") {
            None => return Err(error(format!("it has no scheme; write https://{text}"))),
            // The standard would take the first path segment as the host.
            Some((_, rest)) if rest.starts_with(['/', '\\']) => return Err(error("it has no host".into())),
            Some(_) => {}
        }
        let url = Url::parse(text).map_err(|reason| error(explain(reason)))?;
        Target::from_url(url, allowed).map_err(error)
    }

    /// Where a redirect leads: `location` as the server sent it, relative to this target.
    pub fn follow(&self, location: &str) -> Result<Target, GetError> {
        let error = |what: String| GetError::Url(location.to_string(), what);
        let url = self.url.join(location).map_err(|reason| error(explain(reason)))?;
        Target::from_url(url, Allowed::Https).map_err(error)
    }

    fn from_url(mut url: Url, allowed: Allowed) -> Result<Target, String> {
        let scheme = match url.scheme() {
            "https" => Scheme::Https,
            "http" if allowed == Allowed::Both => Scheme::Http,
            "http" => {
                let rest = url.as_str().strip_prefix("http://").unwrap_or("");
                return Err(format!("plain http:// is not supported; write https://{rest}"));
            }
            scheme => return Err(format!("{scheme}:// is not supported, only https:// is")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err("a user name or password in a URL is not supported".into());
        }
        let port = url.port().unwrap_or(scheme.port());
        if port == 0 {
            return Err("port 0 does not exist".into());
        }
        let (host, ip) = match url.host() {
            // The root label's dot is no part of a certificate's names. RFC 6066 §3.
            Some(Host::Domain(name)) => (name.strip_suffix('.').unwrap_or(name).to_string(), None),
            Some(Host::Ipv4(ip)) => (ip.to_string(), Some(ip.into())),
            Some(Host::Ipv6(ip)) => (ip.to_string(), Some(IpAddr::V6(ip))),
            None => return Err("it has no host".into()),
        };
        if host.is_empty() {
            return Err("it has no host".into());
        }
        // A fragment is the reader's, not the server's. RFC 9110 §4.2.5.
        url.set_fragment(None);
        Ok(Target { url, host, ip, port, scheme })
    }

    /// The host name, or the IP address without brackets: for the resolver and for TLS.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The host, if it is an address already.
    pub fn ip(&self) -> Option<IpAddr> {
        self.ip
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The scheme.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// `:authority`: the host, and the port unless it is the scheme's own.
    pub fn authority(&self) -> String {
        let port = if self.port == self.scheme.port() { String::new() } else { format!(":{}", self.port) };
        match self.host.parse::<Ipv6Addr>() {
            Ok(ip) => format!("[{ip}]{port}"),
            Err(_) => format!("{}{port}", self.host),
        }
    }

    /// `:path`: path and query, never empty.
    pub fn path(&self) -> &str {
        &self.url[Position::BeforePath..]
    }

    /// The last segment of the path, still encoded; empty for a folder.
    pub fn last_segment(&self) -> &str {
        self.url.path().rsplit('/').next().unwrap_or("")
    }

    /// Whether `other` can be asked on the same connection.
    pub fn same_server(&self, other: &Target) -> bool {
        (&self.host, self.port, self.scheme) == (&other.host, other.port, other.scheme)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.as_str())
    }
}

fn explain(reason: ParseError) -> String {
    match reason {
        ParseError::EmptyHost => "it has no host".into(),
        ParseError::InvalidPort => "the port is not a number from 1 to 65535".into(),
        ParseError::InvalidIpv6Address => {
            "the address in brackets is no IPv6 address; write https://[2001:db8::1]/path".into()
        }
        ParseError::InvalidIpv4Address => "the address is no IPv4 address".into(),
        ParseError::InvalidDomainCharacter | ParseError::IdnaError => {
            "the host contains characters that no host name has".into()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn urls_taken_apart() {
        let table = [
            ("https://example.org", "example.org", 443, "example.org", "/"),
            ("https://example.org:443/a", "example.org", 443, "example.org", "/a"),
            ("https://localhost:4433/a/b?c=d#e", "localhost", 4_433, "localhost:4433", "/a/b?c=d"),
            ("https://[::1]:4433/x", "::1", 4_433, "[::1]:4433", "/x"),
            ("https://127.0.0.1?q", "127.0.0.1", 443, "127.0.0.1", "/?q"),
            ("HTTPS://EXAMPLE.org./A%20b c", "example.org", 443, "example.org", "/A%20b%20c"),
            ("https://b\u{fc}cher.example/", "xn--bcher-kva.example", 443, "xn--bcher-kva.example", "/"),
            ("https://example.org//x/../y", "example.org", 443, "example.org", "//y"),
        ];
        for (text, host, port, authority, path) in table {
            let target = Target::parse(text).unwrap();
            assert_eq!((target.host(), target.port(), target.path()), (host, port, path), "{text}");
            assert_eq!(target.authority(), authority);
        }
        assert_eq!(
            Target::parse("https://[::1]/").unwrap().ip(),
            Some(IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]))
        );
        assert_eq!(Target::parse("https://h/a/b%2Fc.txt?x/y").unwrap().last_segment(), "b%2Fc.txt");
    }

    #[test]
    fn what_is_wrong_and_what_to_type() {
        let table = [
            ("", "it is empty"),
            ("example.org/file", "write https://example.org/file"),
            ("localhost:4433/file", "write https://localhost:4433/file"),
            ("http://example.org/a", "write https://example.org/a"),
            ("ftp://example.org/", "only https:// is"),
            ("https://", "no host"),
            ("https:///path", "no host"),
            ("https://user:pass@example.org/", "user name or password"),
            ("https://example.org:0/", "port 0"),
            ("https://example.org:99999/", "port is not a number"),
            ("https://example.org:x/", "port is not a number"),
            ("https://[::1/", "write https://[2001:db8::1]/path"),
            ("https://exa mple.org/", "characters that no host name has"),
            ("https://example.org/\r\nx: y", "control characters"),
            ("https://./", "no host"),
        ];
        for (text, what) in table {
            let error = Target::parse(text).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
            assert_eq!(error.exit_code(), 3);
        }
    }

    #[test]
    fn plain_text_where_it_is_allowed() {
        let plain = Target::parse_any("http://example.org/a").unwrap();
        assert_eq!(
            (plain.scheme(), plain.port(), plain.authority().as_str()),
            (Scheme::Http, 80, "example.org")
        );
        let secure = Target::parse_any("https://example.org:80/a").unwrap();
        assert_eq!((secure.scheme().name(), secure.authority().as_str()), ("https", "example.org:80"));
        assert!(!plain.same_server(&secure) && Target::parse_any("ftp://h/").is_err());
    }

    #[test]
    fn redirects() {
        let target = Target::parse("https://example.org:8443/a/b").unwrap();
        assert_eq!(target.follow("c").unwrap().to_string(), "https://example.org:8443/a/c");
        assert_eq!(target.follow("/c?d").unwrap().path(), "/c?d");
        assert!(target.same_server(&target.follow("/x").unwrap()));
        assert!(!target.same_server(&target.follow("//other.example/x").unwrap()));
        assert!(target.follow("http://example.org/").is_err(), "never down to plain text");
        assert!(target.follow("file:///etc/passwd").is_err());
    }

    proptest! {
        /// What reaches the request line has no spaces, line ends or controls, whatever was typed.
        #[test]
        fn paths_are_clean(text in "https://h/.{0,40}") {
            if let Ok(target) = Target::parse(&text) {
                prop_assert!(target.path().starts_with('/'));
                prop_assert!(target.path().bytes().all(|byte| byte.is_ascii_graphic()), "{}", target.path());
            }
        }
    }
}
