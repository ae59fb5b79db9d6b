//! What was found under a path, remembered for a moment: small files with their content, large ones with their open
//! descriptor.
//!
//! An entry is used without asking the file system for [`CacheLimits::fresh_for`]; after that the file is opened again and
//! the entry lives on if it is still the same one (device, inode, size, times). So a hot small file costs no system call,
//! and a change is seen within a second, or at once if this process has stored a file: then every entry is asked about again. Each
//! handler has its own cache: no lock. Rejected: to forget the file that was stored alone, since links and other roots lead to it by
//! other paths.
//!
//! It keeps the fields of a response, too, so that those of one file and one second are made once and shared.
//!
//! Two generations: look-ups go to the young one, then to the old one (a hit moves up). When the young one holds half of
//! a limit it becomes the old one, and what was old is forgotten. It bounds count and bytes at the one place of insertion,
//! needs no links between entries, and a scan of many files costs the hot ones nothing more than a move. Large files are
//! held weakly, so that a deleted file frees its disk space when its last reader ends.

use crate::body::Source;
use crate::conditional::Validators;
use crate::pool::Pool;
use crate::recent::OpenFile;
use crate::response::{Fields, Value};
use base::time::{Duration, Instant};
use bytes::Bytes;
use rustix::fs::Stat;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Bounds of a handler's cache.
#[derive(Clone, Copy, Debug)]
pub struct CacheLimits {
    /// Files up to this many bytes are kept in memory. Default 64 KiB; 0 turns that off.
    pub file_bytes: u64,
    /// All contents and names together, in bytes. Default 32 MiB.
    pub total_bytes: u64,
    /// Entries. Default 8,192.
    pub entries: usize,
    /// How long an entry is used before the file is looked at again. Default one second.
    pub fresh_for: Duration,
}

impl Default for CacheLimits {
    fn default() -> CacheLimits {
        CacheLimits {
            file_bytes: 64 * 1024,
            total_bytes: 32 * 1024 * 1024,
            entries: 8_192,
            fresh_for: Duration::from_secs(1),
        }
    }
}

/// Files that were stored by this process: what was known before has to be looked at again.
static STORED: AtomicU64 = AtomicU64::new(0);

/// A file has taken the place of another one. Threads that begin to look for a file from now on find it.
pub(crate) fn on_stored() {
    STORED.fetch_add(1, Ordering::Release);
}

/// How many files were stored until now.
pub(crate) fn stored() -> u64 {
    STORED.load(Ordering::Acquire)
}

/// When the file system was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    at: Instant,
    /// Files that were stored until then.
    stored: u64,
}

impl Moment {
    /// This one. To be taken before the file system is asked.
    pub(crate) fn of(now: Instant) -> Moment {
        Moment { at: now, stored: stored() }
    }
}

/// What an entry costs beside its name and content, with the fields of a response.
const OVERHEAD: u64 = 896;

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    pub(crate) fn of(stat: &Stat) -> Identity {
        Identity {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    #[cfg(test)]
    pub(crate) fn of_size(size: u64) -> Identity {
        Identity { device: 1, inode: 2, size, modified: (3, 4), changed: (5, 6) }
    }

    /// An entity tag of modification time (nanoseconds) and size.
    pub(crate) fn etag(&self) -> Value {
        let (seconds, nanoseconds) = self.modified;
        Value::from(format!("\"{seconds:x}.{nanoseconds:x}-{:x}\"", self.size))
    }

    /// The tag and the time of modification.
    pub(crate) fn validators(&self) -> Validators {
        Validators::new(self.etag(), self.modified_s())
    }

    /// When it was modified, in seconds since 1970, unless it was before.
    pub(crate) fn modified_s(&self) -> Option<u64> {
        u64::try_from(self.modified.0).ok()
    }
}

/// A file as responses need it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) identity: Identity,
    pub(crate) validators: Arc<Validators>,
    pub(crate) content_type: &'static str,
    content: Content,
    /// When the file system was last asked.
    checked: Moment,
    /// The fields of a response with all of it, and the second since 1970 that they are of.
    fields: Option<(u64, Fields)>,
}

#[derive(Clone, Debug)]
enum Content {
    Memory(Bytes),
    Open(Weak<OpenFile>),
}

impl Entry {
    /// An entry for a small file and all of its content.
    pub(crate) fn in_memory(
        identity: Identity,
        content_type: &'static str,
        bytes: Bytes,
        checked: Moment,
    ) -> Entry {
        Entry::new(identity, content_type, Content::Memory(bytes), checked)
    }

    /// An entry for a file that is read as it is sent.
    pub(crate) fn open(
        identity: Identity,
        content_type: &'static str,
        file: &Arc<OpenFile>,
        checked: Moment,
    ) -> Entry {
        Entry::new(identity, content_type, Content::Open(Arc::downgrade(file)), checked)
    }

    fn new(identity: Identity, content_type: &'static str, content: Content, checked: Moment) -> Entry {
        let validators = Arc::new(identity.validators());
        Entry { identity, validators, content_type, content, checked, fields: None }
    }

    /// Where its bytes come from; `None` when the descriptor was closed in the meantime.
    pub(crate) fn source(&self, pool: &Arc<Pool>) -> Option<Source> {
        match &self.content {
            Content::Memory(bytes) => Some(Source::Memory(bytes.clone())),
            Content::Open(file) => file.upgrade().map(|file| Source::File { file, pool: Arc::clone(pool) }),
        }
    }

    /// The fields of a response with all of it in the second `unix_s`, shared by all of them: `make` makes them for the first.
    #[inline]
    pub(crate) fn fields_of(&mut self, unix_s: u64, make: impl FnOnce() -> Fields) -> Fields {
        match &self.fields {
            Some((of, fields)) if *of == unix_s => fields.clone(),
            _ => {
                let fields = make().shared();
                self.fields = Some((unix_s, fields.clone()));
                fields
            }
        }
    }

    fn cost(&self, path: &[u8]) -> u64 {
        let content = match &self.content {
            Content::Memory(bytes) => bytes.len() as u64,
            Content::Open(_) => 0,
        };
        OVERHEAD + path.len() as u64 + content
    }
}

/// Entries by path, bounded. See the file's head.
#[derive(Debug)]
pub(crate) struct Cache {
    limits: CacheLimits,
    young: Generation,
    old: Generation,
    young_bytes: u64,
}

/// Rejected: SipHash, which takes two hundred instructions of each request, and a multiplication of our own, which was weak for one secret
/// in nine. Only files that there are have entries, so a client cannot fill the table with paths of its choice.
type Generation = HashMap<Box<[u8]>, Entry, foldhash::fast::RandomState>;

impl Cache {
    pub(crate) fn new(limits: CacheLimits) -> Cache {
        let hash = foldhash::fast::RandomState::default();
        let generation = || HashMap::with_hasher(hash.clone());
        Cache { limits, young: generation(), old: generation(), young_bytes: 0 }
    }

    /// Whether a file of `size` bytes is worth its memory.
    pub(crate) fn wants(&self, size: u64) -> bool {
        // An empty file needs none: its entry says all.
        size <= self.largest()
    }

    /// Up to this many bytes a file is wanted.
    pub(crate) fn largest(&self) -> u64 {
        self.limits.file_bytes.min((self.limits.total_bytes / 8).saturating_sub(OVERHEAD))
    }

    /// The entry of `path` if it may be used without asking the file system.
    pub(crate) fn fresh(&mut self, path: &[u8], now: Instant) -> Option<&mut Entry> {
        self.fresh_at(path, Moment::of(now))
    }

    fn fresh_at(&mut self, path: &[u8], now: Moment) -> Option<&mut Entry> {
        let fresh_for = self.limits.fresh_for;
        let is_fresh = |entry: &&mut Entry| {
            now.at.saturating_since(entry.checked.at) < fresh_for && now.stored == entry.checked.stored
        };
        self.promote(path);
        self.young.get_mut(path).filter(is_fresh)
    }

    /// The entry of `path` if the file was opened again and is still in the state `identity`; it is then fresh.
    pub(crate) fn confirmed(
        &mut self,
        path: &[u8],
        identity: Identity,
        checked: Moment,
    ) -> Option<&mut Entry> {
        self.promote(path);
        let entry = self.young.get_mut(path).filter(|entry| entry.identity == identity)?;
        entry.checked = checked;
        Some(entry)
    }

    fn promote(&mut self, path: &[u8]) {
        if !self.old.is_empty()
            && let Some((path, entry)) = self.old.remove_entry(path)
        {
            self.insert(path, entry);
        }
    }

    /// Remembers `entry`. The only place where the cache grows.
    pub(crate) fn insert(&mut self, path: Box<[u8]>, entry: Entry) {
        let cost = entry.cost(&path);
        if cost > self.limits.total_bytes / 2 || self.limits.entries < 2 {
            return;
        }
        let full = self.young.len() + 1 > self.limits.entries / 2;
        if full || self.young_bytes.saturating_add(cost) > self.limits.total_bytes / 2 {
            // The new one has the memory of the old one.
            std::mem::swap(&mut self.old, &mut self.young);
            self.young.clear();
            self.young_bytes = 0;
        }
        self.old.remove(&path);
        self.young_bytes += cost;
        if let Some(replaced) = self.young.insert(path.clone(), entry) {
            self.young_bytes = self.young_bytes.saturating_sub(replaced.cost(&path));
        }
    }

    /// Forgets `path`: it led nowhere.
    pub(crate) fn remove(&mut self, path: &[u8]) {
        self.old.remove(path);
        if let Some(entry) = self.young.remove(path) {
            self.young_bytes = self.young_bytes.saturating_sub(entry.cost(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other tests of this process may store files.
    fn at(now: Instant) -> Moment {
        Moment { at: now, stored: 7 }
    }

    fn entry(size: usize, now: Instant) -> Entry {
        Entry::in_memory(Identity::of_size(size as u64), "text/plain", Bytes::from(vec![0; size]), at(now))
    }

    #[test]
    fn bounded_in_count_and_bytes_and_hot_entries_stay() {
        let limits = CacheLimits { total_bytes: 100_000, entries: 64, ..CacheLimits::default() };
        let now = Instant::from_nanos(1);
        for size in [0, 10, 5_000] {
            let mut cache = Cache::new(limits);
            cache.insert(b"hot"[..].into(), entry(size, now));
            for number in 0..1_000 {
                cache.insert(number.to_string().as_bytes().into(), entry(size, now));
                assert!(cache.fresh_at(b"hot", at(now)).is_some(), "size {size}, after {number}");
                let held = cache.young.iter().chain(&cache.old);
                assert!(cache.young.len() + cache.old.len() <= 64);
                assert!(held.map(|(path, entry)| entry.cost(path)).sum::<u64>() <= 100_000);
            }
        }
    }

    #[test]
    fn an_entry_is_asked_about_after_its_time() {
        let mut cache = Cache::new(CacheLimits::default());
        let start = Instant::from_nanos(5);
        cache.insert(b"a"[..].into(), entry(7, start));
        let later = start + Duration::from_secs(1);
        assert!(cache.fresh_at(b"a", at(later - Duration::from_nanos(1))).is_some());
        assert!(cache.fresh_at(b"a", at(later)).is_none());
        assert!(cache.confirmed(b"a", Identity::of_size(8), at(later)).is_none(), "another file");
        assert!(cache.confirmed(b"a", Identity::of_size(7), at(later)).is_some());
        assert!(cache.fresh_at(b"a", at(later)).is_some());
        // A file was stored.
        let next = Moment { stored: 8, ..at(later) };
        assert!(cache.fresh_at(b"a", next).is_none());
        assert!(cache.confirmed(b"a", Identity::of_size(7), next).is_some());
        assert!(cache.fresh_at(b"a", next).is_some() && cache.fresh_at(b"a", at(later)).is_none());
        cache.remove(b"a");
        assert!(cache.fresh_at(b"a", next).is_none());
        assert_eq!(cache.young_bytes, 0);
    }

    /// Deleted, a response could have the date of another second, or each request make a list of its own.
    #[test]
    fn fields_are_made_once_a_second() {
        let mut entry = entry(7, Instant::ZERO);
        let mut made = Vec::new();
        for second in [5, 5, 5, 6, 6, 5] {
            let fields = entry.fields_of(second, || {
                made.push(second);
                let mut fields = Fields::default();
                fields.push("date", Value::decimal(second));
                fields
            });
            assert_eq!(fields.value("date"), Some(second.to_string().as_bytes()));
        }
        assert_eq!(made, [5, 6, 5], "a clock may be set back");
    }

    #[test]
    fn what_is_too_large_or_turned_off_is_not_kept() {
        let mut cache = Cache::new(CacheLimits { entries: 0, ..CacheLimits::default() });
        cache.insert(b"a"[..].into(), entry(7, Instant::ZERO));
        assert!(cache.young.is_empty());
        let cache = Cache::new(CacheLimits::default());
        assert!(cache.wants(65_536) && !cache.wants(65_537));
    }
}
