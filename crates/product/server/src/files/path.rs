//! From a request target to a path below the root.
//!
//! Order matters, and each step happens once: cut off the query, split at `/`, then decode each segment, then judge it.
//! So an encoded `/` can never become a separator (`%2F` is refused) and nothing is decoded twice (`%252e` names a file
//! with a percent sign). Segments are compared as bytes: no Unicode normalisation, no case folding, no trimming of dots
//! or spaces, so a name reaches exactly the file that is called so. Empty segments are dropped, which is also what keeps
//! `//evil.example` from surviving into a redirect.
//!
//! Refused although Linux would allow them: `\` and `:`, which mean other files elsewhere (`c:/windows`, streams, and
//! proxies that turn `\` into `/`); `.` and `..`, which clients resolve themselves (RFC 3986 §5.2.4); control characters.
//! The kernel is the second wall: `openat2` with RESOLVE_BENEATH, see [`super::root`].

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// Longer targets are answered with 414. Twice what the kernel takes as a path, for percent-encoding and a query.
pub const MAX_TARGET: usize = 8 * 1024;

/// The kernel's PATH_MAX, less its terminating zero.
const MAX_PATH: usize = 4_095;

/// Bytes that stay as they are in a redirect's path.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Whether files and folders whose names begin with a dot exist for clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DotFiles {
    /// They are answered with 404, except below `.well-known` (RFC 8615): `.git` and `.env` are not meant to be published.
    #[default]
    Hide,
    /// They are files like all others.
    Serve,
}

/// Why a target names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathError {
    /// 400
    Malformed(&'static str),
    /// 404
    Hidden,
    /// 404: no file can have this name.
    TooLongForAFile,
    /// 414
    TooLong,
}

/// Whether a path ends in a slash, and so asks for a folder's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `/a/b`
    File,
    /// `/a/b/` or `/`
    Folder,
}

/// Resolves `target` into `path` (cleared first): decoded segments joined by `/`, no leading or trailing one; the root is
/// the empty path.
pub(crate) fn resolve(target: &[u8], dot_files: DotFiles, path: &mut Vec<u8>) -> Result<Shape, PathError> {
    path.clear();
    if target.len() > MAX_TARGET {
        return Err(PathError::TooLong);
    }
    if target.len() <= MAX_PATH
        && let Some(shape) = resolve_plain(target, path)
    {
        return Ok(shape);
    }
    let (encoded, _query) = split_query(target);
    let Some(segments) = encoded.strip_prefix(b"/") else {
        return Err(PathError::Malformed("the path must begin with a slash"));
    };
    for segment in segments.split(|byte| *byte == b'/').filter(|segment| !segment.is_empty()) {
        if !path.is_empty() {
            path.push(b'/');
        }
        let start = path.len();
        decode(segment, path)?;
        judge(path.get(start..).unwrap_or(b""), dot_files)?;
    }
    if path.len() > MAX_PATH {
        return Err(PathError::TooLongForAFile);
    }
    Ok(if encoded.ends_with(b"/") { Shape::Folder } else { Shape::File })
}

/// Whether a request can name `name`, an entry of a folder, and finds it if it does.
pub(crate) fn is_served(name: &[u8], dot_files: DotFiles) -> bool {
    judge(name, dot_files).is_ok()
}

/// The query of a target, without its question mark.
pub(crate) fn query(target: &[u8]) -> Option<&[u8]> {
    split_query(target).1
}

/// The path and the query (without its question mark) of a target.
pub(crate) fn split_query(target: &[u8]) -> (&[u8], Option<&[u8]>) {
    match target.iter().position(|byte| *byte == b'?') {
        Some(mark) => (target.get(..mark).unwrap_or(target), target.get(mark + 1..)),
        None => (target, None),
    }
}

/// Resolves a target that is its own path, as most are: no query, nothing encoded, no empty segment, and none that begins with a dot.
/// `None`: it is another one.
fn resolve_plain(target: &[u8], path: &mut Vec<u8>) -> Option<Shape> {
    let rest = target.strip_prefix(b"/")?;
    // Without a branch for each byte.
    let (mut begins, mut faults) = (NO_BEGINNING, 0);
    for &byte in rest {
        let kind = KINDS.get(usize::from(byte)).copied().unwrap_or(SPECIAL);
        faults |= kind & (SPECIAL | begins);
        begins = (kind / SLASH) & NO_BEGINNING;
    }
    if faults != 0 {
        return None;
    }
    path.extend_from_slice(rest.strip_suffix(b"/").unwrap_or(rest));
    Some(if begins == 0 { Shape::File } else { Shape::Folder })
}

/// Bytes that [`resolve_plain`] leaves to the general way where a segment begins with them: a dot or another slash.
const NO_BEGINNING: u8 = 1;
/// The slash.
const SLASH: u8 = 2;
/// Bytes that it leaves to the general way wherever they stand.
const SPECIAL: u8 = 4;

static KINDS: [u8; 256] = kinds();

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated at compile time, where a wrong index does not compile"
)]
const fn kinds() -> [u8; 256] {
    let mut kinds = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        kinds[byte] = match byte as u8 {
            b'.' => NO_BEGINNING,
            b'/' => SLASH | NO_BEGINNING,
            b'%' | b'?' => SPECIAL,
            byte if is_refused(byte) => SPECIAL,
            _ => 0,
        };
        byte += 1;
    }
    kinds
}

/// Whether no name has this byte.
const fn is_refused(byte: u8) -> bool {
    byte.is_ascii_control() || matches!(byte, b'/' | b'\\' | b':' | b'#')
}

fn decode(segment: &[u8], path: &mut Vec<u8>) -> Result<(), PathError> {
    let mut bytes = segment.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            path.push(byte);
            continue;
        }
        let mut digit =
            || bytes.next().and_then(|byte| char::from(*byte).to_digit(16)).map(|digit| digit as u8);
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(PathError::Malformed("a percent sign must be followed by two hexadecimal digits"));
        };
        path.push(high << 4 | low);
    }
    Ok(())
}

fn judge(segment: &[u8], dot_files: DotFiles) -> Result<(), PathError> {
    if matches!(segment, b"." | b"..") {
        return Err(PathError::Malformed("dot segments are not allowed"));
    }
    match segment.iter().find(|byte| is_refused(**byte)) {
        None if hides(dot_files, segment) => Err(PathError::Hidden),
        None => Ok(()),
        Some(b'/') => Err(PathError::Malformed("an encoded slash is not allowed")),
        Some(b'\\') => Err(PathError::Malformed("a backslash is not allowed")),
        Some(b':') => Err(PathError::Malformed("a colon is not allowed")),
        Some(b'#') => Err(PathError::Malformed("a number sign is not allowed")),
        Some(_) => Err(PathError::Malformed("control characters are not allowed")),
    }
}

fn hides(dot_files: DotFiles, segment: &[u8]) -> bool {
    dot_files == DotFiles::Hide && segment.starts_with(b".") && segment != b".well-known"
}

/// The target that names the folder `path` (as [`resolve`] left it): one leading slash, path only, so that it cannot
/// lead to another host; the query of `target` behind it.
pub(crate) fn folder_target(path: &[u8], target: &[u8]) -> String {
    let encoded = percent_encode(path, KEPT);
    match split_query(target).1.and_then(|query| std::str::from_utf8(query).ok()) {
        Some(query) if query.bytes().all(|byte| byte.is_ascii_graphic()) => format!("/{encoded}/?{query}"),
        _ => format!("/{encoded}/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PathError::{Hidden, Malformed, TooLong, TooLongForAFile};
    use proptest::prelude::*;

    fn resolved(target: &[u8]) -> Result<(Vec<u8>, Shape), PathError> {
        let mut path = b"left over".to_vec();
        resolve(target, DotFiles::Hide, &mut path).map(|shape| (path, shape))
    }

    #[test]
    fn names_are_decoded_once_and_taken_as_bytes() {
        let table: &[(&[u8], &[u8], Shape)] = &[
            (b"/", b"", Shape::Folder),
            (b"/a", b"a", Shape::File),
            (b"/a/b/", b"a/b", Shape::Folder),
            (b"//evil.example/", b"evil.example", Shape::Folder),
            (b"///a//b", b"a/b", Shape::File),
            (b"/a?b/../c", b"a", Shape::File),
            (b"/?", b"", Shape::Folder),
            (b"/%61%2e%62", b"a.b", Shape::File),
            // Decoded once: these are names with percent signs, not dots and slashes.
            (b"/%252e%252e/%252f", b"%2e%2e/%2f", Shape::File),
            // Overlong and invalid UTF-8, full-width dots, composed and decomposed: other bytes, other names.
            (b"/%c0%ae%c0%ae/x", b"\xc0\xae\xc0\xae/x", Shape::File),
            (b"/%ff", b"\xff", Shape::File),
            (b"/%EF%BC%8E%EF%BC%8E/x", "\u{ff0e}\u{ff0e}/x".as_bytes(), Shape::File),
            (b"/caf%C3%A9", "caf\u{e9}".as_bytes(), Shape::File),
            (b"/cafe%CC%81", "cafe\u{301}".as_bytes(), Shape::File),
            (b"/a.", b"a.", Shape::File),
            (b"/a%20", b"a ", Shape::File),
            (b"/a...b/..c"[..7].as_ref(), b"a...b", Shape::Folder),
            (b"/.well-known/x", b".well-known/x", Shape::File),
            (b"/%3f", b"?", Shape::File),
        ];
        for (target, path, shape) in table {
            assert_eq!(resolved(target), Ok((path.to_vec(), *shape)), "{}", target.escape_ascii());
        }
    }

    #[test]
    fn what_could_lead_elsewhere_is_refused() {
        let malformed: &[&[u8]] = &[
            b"",
            b"a",
            b"*",
            b"https://example.org/",
            b"../a",
            b"/..",
            b"/../a",
            b"/a/..",
            b"/a/../../b",
            b"/./a",
            b"/%2e%2e/a",
            b"/%2E./a",
            b"/.%2e",
            b"/a%2fb",
            b"/admin%2Fconfig",
            b"/%2f%2fetc",
            b"/..%2f..%2fetc",
            b"/a%5cb",
            b"/..\\a",
            b"/\\evil.example/",
            b"/c:/windows/win.ini",
            b"/c%3a/windows",
            b"/a%3A%3a$DATA",
            b"/a%00.txt",
            b"/a%0d%0ab",
            b"/a\x7f",
            b"/a%",
            b"/a%4",
            b"/%zz",
            b"/%+1",
            b"/a#b",
        ];
        for target in malformed {
            assert!(matches!(resolved(target), Err(Malformed(_))), "{}", target.escape_ascii());
        }
        for target in [&b"/.git/config"[..], b"/a/.env", b"/%2eenv", b"/...", b"/.well-known/.x"] {
            assert_eq!(resolved(target), Err(Hidden), "{}", target.escape_ascii());
        }
        let mut path = Vec::new();
        assert_eq!(resolve(b"/.env", DotFiles::Serve, &mut path), Ok(Shape::File));
        assert!(resolve(b"/..", DotFiles::Serve, &mut path).is_err());
    }

    #[test]
    fn long_paths() {
        let long = |len: usize| [b"/", "a/".repeat(len / 2).as_bytes()].concat();
        assert_eq!(resolved(&long(9_000)), Err(TooLong));
        assert_eq!(resolved(&long(5_000)), Err(TooLongForAFile));
        assert!(resolved(&long(4_000)).is_ok());
    }

    #[test]
    fn redirects_stay_here() {
        assert_eq!(folder_target(b"a b/\xc3\xa9", b"/x?q=1&r"), "/a%20b/%C3%A9/?q=1&r");
        assert_eq!(folder_target(b"evil.example", b"//evil.example?"), "/evil.example/?");
        assert_eq!(folder_target(b"a", b"/a?x\r\nset-cookie:y"), "/a/");
    }

    proptest! {
        /// Deleted, the quick way could resolve a target otherwise than the general one.
        #[test]
        fn a_plain_target_resolves_as_any_other(target in "/?([a./?%:-]|[a-c]{1,3}/|.){0,12}") {
            let mut quick = Vec::new();
            if let Some(shape) = resolve_plain(target.as_bytes(), &mut quick) {
                // A query, which is not part of the path, makes it take the general way.
                let mut path = Vec::new();
                let general = resolve([target.as_bytes(), b"?"].concat().as_slice(), DotFiles::Hide, &mut path);
                prop_assert_eq!((general, path), (Ok(shape), quick));
            }
        }

        /// Whatever is asked for, what reaches the kernel has no dot segment, no separator that was encoded, no NUL.
        #[test]
        fn nothing_slips_through(target in "/?([a./\\\\:%?#]|%2[eEfF5]|%[0-9a-f]{2}|.){0,40}") {
            let mut path = Vec::new();
            if resolve(target.as_bytes(), DotFiles::Serve, &mut path).is_ok() && !path.is_empty() {
                prop_assert!(!path.starts_with(b"/") && !path.ends_with(b"/"));
                for segment in path.split(|byte| *byte == b'/') {
                    prop_assert!(!matches!(segment, b"" | b"." | b".."));
                    prop_assert!(!segment.iter().any(|byte| matches!(byte, 0 | b'\\' | b':')));
                }
            }
        }
    }
}
