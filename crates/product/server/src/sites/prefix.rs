//! Which paths begin with a prefix.
//!
//! Both are compared segment by segment, each decoded once, so that no other spelling of a path reaches another route: `/%61pi` is
//! `/api`, and `//api` too, but an encoded slash is a part of its segment. Dot segments are refused before (RFC 3986 §5.2.4: clients
//! resolve them).

use percent_encoding::percent_decode;
use std::fmt;

/// The beginning of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prefix {
    /// Decoded.
    segments: Vec<Box<[u8]>>,
    /// Whether something like a slash must follow the segments.
    is_folder: bool,
    is_whole: bool,
}

/// What is no prefix of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixError(&'static str);

impl fmt::Display for PrefixError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

impl std::error::Error for PrefixError {}

impl Prefix {
    /// `/a` is the beginning of `/a`, `/a/` and `/a/b`, and not of `/ab`; `/a/` of those with the second slash. Percent-encoding is
    /// decoded.
    ///
    /// # Errors
    /// It does not begin with a slash, or has something that no path has; the text says what.
    pub fn parse(text: &str) -> Result<Prefix, PrefixError> {
        if !text.starts_with('/') {
            return Err(PrefixError("a path begins with a slash"));
        }
        if text.contains(['?', '#']) {
            return Err(PrefixError("a path has no query and no fragment"));
        }
        if text.contains('*') {
            return Err(PrefixError("a path is the beginning of others as it is, and takes no *"));
        }
        if !is_sound(text.as_bytes()) {
            return Err(PrefixError(
                "a path has no . or .. and no percent sign without two hexadecimal digits",
            ));
        }
        let segments = text.split('/').filter(|segment| !segment.is_empty());
        let segments: Vec<Box<[u8]>> =
            segments.map(|segment| percent_decode(segment.as_bytes()).collect()).collect();
        let is_folder = text.ends_with('/') && !segments.is_empty();
        Ok(Prefix { segments, is_folder, is_whole: false })
    }

    /// The path itself, and not those that begin with it.
    #[must_use]
    pub fn whole(self) -> Prefix {
        Prefix { is_whole: true, ..self }
    }

    /// Whether every path that `other` takes is taken.
    pub fn covers(&self, other: &Prefix) -> bool {
        if self.is_whole {
            return self == other;
        }
        let begins = other.segments.starts_with(&self.segments);
        let is_longer = other.segments.len() > self.segments.len();
        begins && (!self.is_folder || is_longer || other.is_folder)
    }

    /// What follows in `path`, as it was sent, without slashes at its beginning; `None` if the path does not begin so.
    pub(crate) fn rest<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        let mut behind = path;
        for segment in &self.segments {
            let (next, rest) = next_segment(behind)?;
            if !percent_decode(next).eq(segment.iter().copied()) {
                return None;
            }
            behind = rest;
        }
        let rest = without_slashes(behind);
        let ends_in_slash = behind.starts_with(b"/") && !self.segments.is_empty();
        let fits = match (self.is_whole, self.is_folder) {
            (true, is_folder) => rest.is_empty() && is_folder == ends_in_slash,
            (false, true) => ends_in_slash,
            (false, false) => true,
        };
        fits.then_some(rest)
    }
}

/// Whether a path begins with a slash, has no dot segments, and is encoded as it should be.
pub(crate) fn is_sound(path: &[u8]) -> bool {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let is_encoded =
        |(at, byte): (usize, &u8)| *byte != b'%' || is_digit(path.get(at + 1)) && is_digit(path.get(at + 2));
    let is_plain = |segment: &[u8]| {
        // A dot is one byte, or three.
        segment.len() > 6 || !matches!(&*percent_decode(segment).collect::<Box<[u8]>>(), b"." | b"..")
    };
    path.starts_with(b"/")
        && (is_simple(path)
            || path.iter().enumerate().all(is_encoded) && path.split(|byte| *byte == b'/').all(is_plain))
}

/// Whether nothing of a path is encoded, and no segment begins with a dot, as of most: then it is sound.
fn is_simple(path: &[u8]) -> bool {
    let mut last = b'/';
    path.iter().all(|byte| *byte != b'%' && (std::mem::replace(&mut last, *byte), *byte) != (b'/', b'.'))
}

/// The first segment that is not empty, and what follows it.
fn next_segment(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let path = without_slashes(path);
    let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
    path.split_at_checked(end).filter(|(segment, _)| !segment.is_empty())
}

pub(crate) fn without_slashes(path: &[u8]) -> &[u8] {
    let start = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
    path.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest<'p>(prefix: &str, path: &'p str) -> Option<&'p str> {
        Prefix::parse(prefix).unwrap().rest(path.as_bytes()).map(|rest| std::str::from_utf8(rest).unwrap())
    }

    /// Deleted, a path could be spelled so that it reaches another route than the operator means.
    #[test]
    fn a_prefix_is_of_whole_segments_however_they_are_spelled() {
        for (prefix, path, expected) in [
            ("/", "/", Some("")),
            ("/", "/a/b", Some("a/b")),
            ("/", "//evil.example", Some("evil.example")),
            ("/a", "/a", Some("")),
            ("/a", "/a/", Some("")),
            ("/a", "/a/b/", Some("b/")),
            ("/a", "/%61/b", Some("b")),
            ("/a", "//a//b", Some("b")),
            ("/a", "/ab", None),
            ("/a", "/", None),
            ("/a", "/A", None),
            ("/a/", "/a", None),
            ("/a/", "/a/", Some("")),
            ("/a/", "/a/b%2Fc", Some("b%2Fc")),
            ("/a/b", "/a%2fb", None),
            ("/a/b", "/a/b/c", Some("c")),
            ("/caf%C3%A9", "/caf%c3%a9/x", Some("x")),
            ("/café", "/caf%c3%a9/x", Some("x")),
        ] {
            assert_eq!(rest(prefix, path), expected, "{prefix} {path}");
        }
        for (prefix, path, fits) in [
            ("/", "/", true),
            ("/", "/a", false),
            ("/a", "/a", true),
            ("/a", "/a/", false),
            ("/a/", "/a/", true),
            ("/a", "/a/b", false),
        ] {
            let whole = Prefix::parse(prefix).unwrap().whole();
            assert_eq!(whole.rest(path.as_bytes()).is_some(), fits, "{prefix} {path}");
        }
    }

    #[test]
    fn a_prefix_covers_what_it_would_take_before_another() {
        let covers =
            |one: &str, other: &str| Prefix::parse(one).unwrap().covers(&Prefix::parse(other).unwrap());
        assert!(covers("/", "/a") && covers("/a", "/a/") && covers("/a", "/a/b") && covers("/a/", "/a/b"));
        assert!(!covers("/a", "/") && !covers("/a/", "/a") && !covers("/a", "/ab"));
        let root = Prefix::parse("/").unwrap();
        assert!(root.covers(&root.clone().whole()) && !root.clone().whole().covers(&root));
    }

    #[test]
    fn dot_segments_and_broken_encodings_are_told() {
        for path in ["/a/../b", "/.", "/%2e%2E/", "/a/%2e", "/%", "/%2", "/%zz", "a", ""] {
            assert!(!is_sound(path.as_bytes()), "{path}");
        }
        for path in ["/", "/...", "/a.b", "/.a", "/%2e%2e%2e", "/a%20b", "//"] {
            assert!(is_sound(path.as_bytes()), "{path}");
        }
        for text in ["", "a", "/a?b", "/a#b", "/*", "/a/..", "/%x"] {
            assert!(Prefix::parse(text).is_err(), "{text}");
        }
    }
}
