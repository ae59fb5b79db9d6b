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
//! Reading a folder may wait for the disk thousands of times, so other threads read and write listings, at most [`AT_A_TIME`] for
//! a handler. [`MAX_ENTRIES`] bounds each, and a handler keeps the last [`KEPT`] for [`FRESH_FOR`]: repeated requests for one
//! folder read it once a second. The bytes of a listing depend on nothing but the folder and the view, so its entity tag is a
//! hash of them, and a listing that did not change keeps its memory.

mod json;
mod page;
mod read;
#[cfg(test)]
mod tests;
mod text;
mod view;

use crate::files::path::DotFiles;
use crate::files::root::{OpenError, Root};
use crate::pending_results::PendingResults;
use crate::readers::{Readers, ResultWaker};
use crate::response::Value;
use base::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::task::Poll;
pub(crate) use view::{Format, View};

/// Entries of a folder that are read. A listing says so when there are more.
pub(crate) const MAX_ENTRIES: usize = 10_000;
/// Listings that are made for a handler at a time. Further requests wait.
const AT_A_TIME: usize = 4;
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

/// A folder below the root, without slashes at its ends, and a view of it.
pub(crate) type Key = (Box<[u8]>, View);

#[derive(Debug)]
struct Kept {
    key: Key,
    listed: Listed,
    made_at: Instant,
}

/// The listings of one handler.
#[derive(Debug)]
pub(crate) struct Listings {
    readers: Readers,
    asked: PendingResults<Key, Result<Listed, OpenError>>,
    /// The newest first.
    kept: VecDeque<Kept>,
    /// What the request at hand needs and is not kept.
    wanted: Option<Key>,
}

/// A folder to list.
#[derive(Clone, Copy, Debug)]
struct Folder<'a> {
    root: &'a Root,
    /// Below the root, without slashes at its ends.
    path: &'a [u8],
    dot_files: DotFiles,
    readers: &'a Readers,
}

impl Listings {
    pub(crate) fn new(readers: Readers) -> Listings {
        Listings { readers, asked: PendingResults::new(AT_A_TIME), kept: VecDeque::new(), wanted: None }
    }

    /// The listing of `path` if it was made just now, or why there is none.
    pub(crate) fn find(
        &mut self,
        path: &[u8],
        view: impl FnOnce() -> View,
        now: Instant,
    ) -> Option<Result<Listed, OpenError>> {
        // Most folders have an index and are not listed.
        if self.asked.is_empty() && !self.kept.iter().any(|kept| *kept.key.0 == *path) {
            return None;
        }
        let key = (path.into(), view());
        if let Poll::Ready(Some(made)) = self.asked.take(&key) {
            return Some(made.map(|listed| self.keep(key, listed, now)));
        }
        let is_it = |kept: &Kept| kept.key == key && now.saturating_since(kept.made_at) < FRESH_FOR;
        let place = self.kept.iter().position(is_it)?;
        let kept = self.kept.remove(place)?;
        let listed = kept.listed.clone();
        self.kept.push_front(kept);
        Some(Ok(listed))
    }

    /// The request at hand needs this listing.
    pub(crate) fn want(&mut self, path: &[u8], view: View) {
        self.wanted = Some((path.into(), view));
    }

    /// What the request at hand needs.
    #[inline]
    pub(crate) fn take_wanted(&mut self) -> Option<Key> {
        self.wanted.take()
    }

    /// Has a thread make a listing; `whom` is woken when it is there, or when another one can be made.
    pub(crate) fn ask(
        &mut self,
        (root, dot_files): (&Root, DotFiles),
        key: Key,
        now: Instant,
        wake_target: ResultWaker<'_>,
    ) {
        if self.asked.is_full() {
            // Requests that wait for these find them among the kept ones.
            for (key, made) in self.asked.take_done() {
                if let Ok(listed) = made {
                    self.keep(key, listed, now);
                }
            }
        }
        let (root, readers, (path, view)) = (root.clone(), self.readers.clone(), key.clone());
        let work = move || make(Folder { root: &root, path: &path, dot_files, readers: &readers }, view);
        // A request that meets too many comes again.
        let _ = self.asked.ask(&self.readers, key, wake_target, work);
    }

    fn keep(&mut self, key: Key, listed: Listed, now: Instant) -> Listed {
        let known = self.kept.iter().position(|kept| kept.key == key);
        let known = known.and_then(|place| self.kept.remove(place)).map(|known| known.listed);
        let listed = known.filter(|known| known.etag == listed.etag).unwrap_or(listed);
        self.kept.push_front(Kept { key, listed: listed.clone(), made_at: now });
        self.shrink();
        listed
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
