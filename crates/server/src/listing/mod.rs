//! The listing of a folder that has no index.html: a page, or JSON on request.
//!
//! | file | holds |
//! |---|---|
//! | read.rs | the folder's entries, bounded |
//! | view.rs | what a request asks for: the order, and page or JSON |
//! | page.rs, page.css | the page |
//! | json.rs | the JSON |
//! | text.rs | what both write: escaped names, sizes, times |
//!
//! A listing shows what a request for its entries would find, and nothing else. Hidden names are left out, as are names that
//! no request can carry, links that lead outside the root, and anything but files and folders.
//!
//! Reading a folder costs time on the worker. So [`MAX_ENTRIES`] bounds it, and a handler keeps the last [`KEPT`] listings
//! for [`FRESH_FOR`]: repeated requests for one folder read it once a second. The bytes of a listing depend on nothing but
//! the folder and the view, so its entity tag is a hash of them, and a listing that did not change keeps its memory.

mod json;
mod page;
mod read;
#[cfg(test)]
mod tests;
mod text;
mod view;

use crate::files::path::DotFiles;
use crate::files::root::{OpenError, Root};
use crate::response::Value;
use base::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
pub(crate) use view::{Format, View};

/// Entries of a folder that are read. A listing says so when there are more.
pub(crate) const MAX_ENTRIES: usize = 10_000;
/// Listings that a handler keeps.
const KEPT: usize = 8;
/// Bytes of listings that a handler keeps.
const KEPT_BYTES: usize = 16 << 20;
/// How long a listing is used before the folder is read again.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// Fields of every response with a listing. The page needs its own style and nothing else from anywhere.
pub(crate) const FIELDS: &[(&str, &str)] = &[
    ("cache-control", "no-cache"),
    ("vary", "accept"),
    ("x-content-type-options", "nosniff"),
    ("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:"),
];

/// Whether folders without an index are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listing {
    /// They are.
    #[default]
    On,
    /// They are answered with 404.
    Off,
}

/// A listing as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) bytes: Bytes,
    pub(crate) etag: Value,
}

#[derive(Debug)]
struct Kept {
    path: Box<[u8]>,
    view: View,
    listed: Listed,
    read_at: Instant,
}

/// The listings that a handler keeps, the newest first.
#[derive(Debug, Default)]
pub(crate) struct Listings {
    kept: VecDeque<Kept>,
}

/// A folder to list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Folder<'a> {
    pub(crate) root: &'a Root,
    /// Below the root, without slashes at its ends.
    pub(crate) path: &'a [u8],
    pub(crate) dot_files: DotFiles,
}

impl Listings {
    /// The listing of `folder`.
    ///
    /// # Errors
    /// There is no such folder, or it cannot be read.
    pub(crate) fn find(&mut self, folder: Folder<'_>, view: View, now: Instant) -> Result<Listed, OpenError> {
        let place = self.kept.iter().position(|kept| *kept.path == *folder.path && kept.view == view);
        let known = place.and_then(|place| self.kept.remove(place));
        let (listed, read_at) = match known {
            Some(known) if now.saturating_since(known.read_at) < FRESH_FOR => (known.listed, known.read_at),
            known => {
                let listed = make(folder, view)?;
                let same = known.filter(|known| known.listed.etag == listed.etag);
                (same.map_or(listed, |known| known.listed), now)
            }
        };
        self.kept.push_front(Kept { path: folder.path.into(), view, listed: listed.clone(), read_at });
        self.shrink();
        Ok(listed)
    }

    fn shrink(&mut self) {
        let bytes = |kept: &VecDeque<Kept>| kept.iter().map(|kept| kept.listed.bytes.len()).sum::<usize>();
        while self.kept.len() > KEPT || bytes(&self.kept) > KEPT_BYTES {
            self.kept.pop_back();
        }
    }
}

/// Reads the folder and writes its listing.
fn make(folder: Folder<'_>, view: View) -> Result<Listed, OpenError> {
    let mut contents = read::read(folder, MAX_ENTRIES)?;
    view.order.sort(&mut contents.items);
    let text = match view.format {
        Format::Page => page::write(folder.path, &contents, view),
        Format::Json => json::write(folder.path, &contents),
    };
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let etag = Value::from(format!("\"listing-{:016x}\"", hasher.finish()));
    Ok(Listed { bytes: Bytes::from(text), etag })
}
