//! `--http`: which versions of HTTP are served.

use core::str::FromStr;

/// A choice of versions, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    pub(crate) http1: bool,
    pub(crate) http2: bool,
    pub(crate) http3: bool,
}

impl FromStr for Versions {
    type Err = String;

    fn from_str(text: &str) -> Result<Versions, String> {
        let mut versions = Versions { http1: false, http2: false, http3: false };
        for name in text.split(',') {
            match name.trim() {
                "1" | "1.1" => versions.http1 = true,
                "2" => versions.http2 = true,
                "3" => versions.http3 = true,
                _ => return Err("versions such as 1,2,3 or 3".to_owned()),
            }
        }
        Ok(versions)
    }
}

impl Versions {
    /// Whether there is anything over TCP.
    pub(crate) fn over_tcp(self) -> bool {
        self.http1 || self.http2
    }

    /// The names of application protocols over TCP, the preferred one first.
    pub(crate) fn alpn(self) -> Vec<Vec<u8>> {
        let names = [(self.http2, &b"h2"[..]), (self.http1, b"http/1.1")];
        names.into_iter().filter(|(is_served, _)| *is_served).map(|(_, name)| name.to_vec()).collect()
    }

    /// As people read it: `HTTP/1.1, 2 and 3`.
    pub(crate) fn text(self) -> &'static str {
        match (self.http1, self.http2, self.http3) {
            (true, true, true) => "HTTP/1.1, 2 and 3",
            (true, true, false) => "HTTP/1.1 and 2",
            (true, false, true) => "HTTP/1.1 and 3",
            (false, true, true) => "HTTP/2 and 3",
            (true, false, false) => "HTTP/1.1",
            (false, true, false) => "HTTP/2",
            (false, false, _) => "HTTP/3",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_listed_in_any_order() {
        let parse = |text: &str| text.parse::<Versions>();
        assert_eq!(parse("1,2,3"), Ok(Versions { http1: true, http2: true, http3: true }));
        assert_eq!(parse("3, 1.1"), Ok(Versions { http1: true, http2: false, http3: true }));
        assert_eq!(parse("2").map(Versions::alpn), Ok(vec![b"h2".to_vec()]));
        assert_eq!(parse("1,2").map(Versions::alpn), Ok(vec![b"h2".to_vec(), b"http/1.1".to_vec()]));
        assert!(["", "4", "1,", "h3"].iter().all(|text| parse(text).is_err()));
    }
}
