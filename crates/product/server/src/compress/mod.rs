//! Compression of files: which coding a client gets, files that lie coded beside the file, and those that are coded on demand.
//!
//! ```text
//! Accept-Encoding ──▶ accept.rs ──▶ a sibling, style.css.br? ──▶ a kept result? ──▶ coded by a thread, kept
//!                             siblings.rs                    results.rs           coding.rs
//! ```
//!
//! A file beside the one asked for is sent as it lies, at no cost. Otherwise a file of a type and size that is worth it is coded
//! whole, once, so that its length and its ranges are known. Files too large to be kept are sent as they are. Rejected: coding while
//! a response is sent, which costs its CPU time for each response, on the thread that serves, and has neither length nor ranges.

mod accept;
mod coding;
pub(crate) mod results;
mod siblings;

pub(crate) use accept::Accepted;
pub use coding::Coding;
use results::Results;
pub(crate) use siblings::Siblings;
use std::fmt;
use std::sync::Arc;

/// Types whose files become much smaller.
const TYPES: &[&str] = &[
    "text/*",
    "application/*+json",
    "application/*+xml",
    "application/javascript",
    "application/json",
    "application/toml",
    "application/vnd.apple.mpegurl",
    "application/wasm",
    "application/xml",
    "application/yaml",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/svg+xml",
    "image/vnd.microsoft.icon",
];

/// What is compressed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressOptions {
    /// The codings, the preferred one first. Default: zstd, br, gzip.
    pub codings: Vec<Coding>,
    /// The types of files that are coded on demand; `*` stands for any text. Default: texts, and types like them.
    pub types: Vec<MediaRange>,
    /// Smaller files are not coded on demand, in bytes. Default 1 KiB.
    pub min_size: u64,
    /// So many bytes of results are kept. Files larger than an eighth of it are not coded on demand. Default 64 MiB; 0: none is.
    pub cache_bytes: u64,
}

impl Default for CompressOptions {
    fn default() -> CompressOptions {
        CompressOptions {
            codings: Coding::ALL.to_vec(),
            types: TYPES.iter().filter_map(|text| MediaRange::parse(text).ok()).collect(),
            min_size: 1_024,
            cache_bytes: 64 << 20,
        }
    }
}

/// A media type, or several by a `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaRange {
    before: Box<str>,
    /// What follows the `*`.
    after: Option<Box<str>>,
}

/// What is no media type. The text says what to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaRangeError;

impl fmt::Display for MediaRangeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("write a media type without parameters, such as \"text/html\", \"text/*\" or \"application/*+json\"")
    }
}

impl std::error::Error for MediaRangeError {}

impl MediaRange {
    /// `text/html`, `text/*`, `application/*+json`.
    ///
    /// # Errors
    /// It is neither.
    pub fn parse(text: &str) -> Result<MediaRange, MediaRangeError> {
        let is_type = text.split_once('/').is_some_and(|(kind, name)| !kind.is_empty() && !name.is_empty());
        let is_plain = |letter: char| letter.is_ascii_graphic() && !matches!(letter, ';' | ',' | '"');
        let count = |letter: char| text.matches(letter).count();
        if !is_type || !text.chars().all(is_plain) || count('/') != 1 || count('*') > 1 {
            return Err(MediaRangeError);
        }
        let text = text.to_ascii_lowercase();
        Ok(match text.split_once('*') {
            Some((before, after)) => MediaRange { before: before.into(), after: Some(after.into()) },
            None => MediaRange { before: text.into(), after: None },
        })
    }

    fn has(&self, kind: &str) -> bool {
        match (&self.after, kind.strip_prefix(&*self.before)) {
            (_, None) => false,
            (None, Some(rest)) => rest.is_empty(),
            (Some(after), Some(rest)) => rest.ends_with(&**after),
        }
    }
}

/// Compression as the handlers of a folder share it; clones are the same.
#[derive(Clone, Debug)]
pub struct Compression {
    options: Arc<CompressOptions>,
    pub(crate) results: Results,
}

impl Compression {
    /// Compression with nothing coded yet.
    pub fn new(options: CompressOptions) -> Compression {
        let results = Results::new(options.cache_bytes);
        Compression { options: Arc::new(options), results }
    }

    /// Whether the same is compressed in the same way.
    pub(crate) fn is_same(&self, other: &Compression) -> bool {
        self.options == other.options
    }

    /// The codings that a client accepts which sends `field` as Accept-Encoding.
    pub(crate) fn accepted(&self, field: Option<&[u8]>) -> Accepted {
        Accepted::of(field, &self.options.codings)
    }

    /// Whether a file of this type and size is coded on demand.
    pub(crate) fn wants(&self, content_type: &str, size: u64) -> bool {
        let kind = content_type.split(';').next().unwrap_or_default();
        (self.options.min_size.max(1)..=self.results.largest()).contains(&size)
            && self.options.types.iter().any(|range| range.has(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_sizes_that_are_worth_it() {
        let compression = Compression::new(CompressOptions::default());
        let largest = compression.results.largest();
        for (kind, size, is_wanted) in [
            ("text/html; charset=utf-8", 1_024, true),
            ("text/html; charset=utf-8", 1_023, false),
            ("application/manifest+json", 5_000, true),
            ("image/svg+xml", largest, true),
            ("image/svg+xml", largest + 1, false),
            ("image/png", 5_000, false),
            ("application/jsonx", 5_000, false),
            ("application/zip", 5_000, false),
        ] {
            assert_eq!(compression.wants(kind, size), is_wanted, "{kind} {size}");
        }
        let none = Compression::new(CompressOptions { cache_bytes: 0, ..CompressOptions::default() });
        assert!(!none.wants("text/html", 5_000));
        assert_eq!(CompressOptions::default().types.len(), TYPES.len());
    }

    #[test]
    fn what_is_no_media_type_is_refused() {
        for text in
            ["", "html", "text/", "/html", "text/html; charset=utf-8", "text/*/*", "*/*", "a/b/c", "é/é"]
        {
            assert!(MediaRange::parse(text).is_err(), "{text}");
        }
        assert!(MediaRange::parse("Text/HTML").unwrap().has("text/html"));
    }
}
