//! The versions of HTTP that a server serves.

use core::fmt;
use core::ops::BitOr;
use core::str::FromStr;

/// A set of versions of HTTP, such as `Versions::HTTP1 | Versions::HTTP3`. It holds at least one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Versions(u8);

impl Versions {
    /// HTTP/1.1, over TCP. Source: RFC 9112.
    pub const HTTP1: Versions = Versions(1);
    /// HTTP/2, over TCP. Source: RFC 9113.
    pub const HTTP2: Versions = Versions(2);
    /// HTTP/3, over QUIC. Source: RFC 9114.
    pub const HTTP3: Versions = Versions(4);
    /// All three.
    pub const ALL: Versions = Versions(7);

    /// Whether all versions of `other` are in the set.
    pub const fn contains(self, other: Versions) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether a version over TCP is in the set.
    pub const fn over_tcp(self) -> bool {
        self.contains(Versions::HTTP1) || self.contains(Versions::HTTP2)
    }

    /// The names of application protocols over TCP, the preferred one first. Source: RFC 7301, RFC 9113 §3.1.
    pub(crate) fn alpn(self) -> Vec<Vec<u8>> {
        let names = [(Versions::HTTP2, &b"h2"[..]), (Versions::HTTP1, b"http/1.1")];
        names
            .into_iter()
            .filter(|(version, _)| self.contains(*version))
            .map(|(_, name)| name.to_vec())
            .collect()
    }
}

impl BitOr for Versions {
    type Output = Versions;

    fn bitor(self, other: Versions) -> Versions {
        Versions(self.0 | other.0)
    }
}

impl Default for Versions {
    fn default() -> Versions {
        Versions::ALL
    }
}

/// `HTTP/1.1, 2 and 3`.
impl fmt::Display for Versions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(
            match (
                self.contains(Versions::HTTP1),
                self.contains(Versions::HTTP2),
                self.contains(Versions::HTTP3),
            ) {
                (true, true, true) => "HTTP/1.1, 2 and 3",
                (true, true, false) => "HTTP/1.1 and 2",
                (true, false, true) => "HTTP/1.1 and 3",
                (false, true, true) => "HTTP/2 and 3",
                (true, false, false) => "HTTP/1.1",
                (false, true, false) => "HTTP/2",
                (false, false, _) => "HTTP/3",
            },
        )
    }
}

impl fmt::Debug for Versions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// `1,2,3`, in any order; `1.1` is 1.
impl FromStr for Versions {
    type Err = String;

    fn from_str(text: &str) -> Result<Versions, String> {
        let mut versions = Versions(0);
        for name in text.split(',') {
            let version = match name.trim() {
                "1" | "1.1" => Versions::HTTP1,
                "2" => Versions::HTTP2,
                "3" => Versions::HTTP3,
                _ => return Err("versions such as 1,2,3 or 3".to_owned()),
            };
            versions = versions | version;
        }
        Ok(versions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_listed_in_any_order() {
        let parse = |text: &str| text.parse::<Versions>();
        assert_eq!(parse("1,2,3"), Ok(Versions::ALL));
        assert_eq!(parse("3, 1.1"), Ok(Versions::HTTP1 | Versions::HTTP3));
        assert_eq!(parse("2").map(Versions::alpn), Ok(vec![b"h2".to_vec()]));
        assert_eq!(parse("1,2").map(Versions::alpn), Ok(vec![b"h2".to_vec(), b"http/1.1".to_vec()]));
        assert_eq!(parse("3,2").map(|versions| versions.to_string()), Ok("HTTP/2 and 3".to_owned()));
        assert!(!Versions::HTTP3.over_tcp() && (Versions::HTTP2 | Versions::HTTP3).over_tcp());
        assert!(["", "4", "1,", "h3"].iter().all(|text| parse(text).is_err()));
    }
}
