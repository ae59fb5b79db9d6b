//! Coded files: made once, by threads of their own, and kept.
//!
//! A result belongs to a state of a file ([`Identity`]) and a coding, so a changed file is another one. Its entity tag is a digest of
//! the coded bytes: a coder of another version makes other bytes, and a range must not continue what another one has begun (RFC 9110
//! §8.8.3.3). What is not worth coding is remembered as that. A request that finds too much under way gets its file as it is.

use super::coding::Coding;
use crate::conditional::Validators;
use crate::files::cache::Identity;
use crate::kept_work::{Bounds, KeptWork, Known};
use crate::lookups::read_whole;
use crate::pool::Wait;
use crate::readers::{ResultWaker, ThreadRule};
use crate::recent::OpenFile;
use crate::response::Value;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// Files that wait to be coded, or are.
const UNDER_WAY: usize = 64;
/// What a result costs beside its bytes.
const OVERHEAD: u64 = 256;
/// Results that are kept, with those that say that a file is not worth it.
const ENTRIES: usize = 16_384;
/// A thread's stack, in bytes.
const STACK: usize = 1 << 20;

/// A state of a file, and a coding.
pub(crate) type Key = (Identity, Coding);

/// A coded file.
#[derive(Clone, Debug)]
pub(crate) struct Coded {
    pub(crate) bytes: Bytes,
    /// With an entity tag of its own.
    pub(crate) validators: Arc<Validators>,
}

/// The bytes to be coded.
#[derive(Debug)]
pub(crate) enum Content {
    Memory(Bytes),
    /// A file in the state of the key.
    File(Arc<OpenFile>),
}

/// Coded files; clones are the same. `None`: coded, a file would be no smaller.
#[derive(Clone, Debug)]
pub(crate) struct Results {
    kept: KeptWork<Key, Option<Coded>>,
    largest: u64,
}

impl Results {
    /// Keeps `bytes` of results.
    pub(crate) fn new(bytes: u64) -> Results {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // Serving goes before coding.
        let rule = ThreadRule { name: "coder", most: cores.div_ceil(2).min(8), stack: STACK, niceness: 10 };
        let weigh =
            |coded: &Option<Coded>| OVERHEAD + coded.as_ref().map_or(0, |coded| coded.bytes.len() as u64);
        let bounds = Bounds { entries: ENTRIES, weight: bytes, weigh, under_way: UNDER_WAY };
        Results { kept: KeptWork::new(bounds, rule), largest: (bytes / 8).saturating_sub(OVERHEAD) }
    }

    /// Larger files are not coded, in bytes.
    pub(crate) fn largest(&self) -> u64 {
        self.largest
    }

    pub(crate) fn find(&self, key: &Key) -> Known<Option<Coded>> {
        self.kept.find(key)
    }

    /// Has a thread code `content`, and wakes `wake_target` when it is done.
    pub(crate) fn ask(&self, key: Key, content: Content, wake_target: ResultWaker<'_>) {
        self.kept.ask(key, None, wake_target, move || code(key, content));
    }
}

/// The file in the coding of `key`; `None` if it is not smaller so, or has changed.
fn code((identity, coding): Key, content: Content) -> Option<Coded> {
    let content = match content {
        Content::Memory(bytes) => bytes,
        Content::File(file) => read_whole(&file, identity, Wait::Disk).ok()?,
    };
    let coded = coding.encode(&content).ok().filter(|coded| coded.len() < content.len())?;
    let digest = Sha256::digest(&coded);
    let digest = digest.iter().take(8).fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let etag = Value::from(format!("\"{digest:016x}-{}\"", coding.name()));
    let validators = Arc::new(Validators::new(etag, identity.modified_s()));
    Some(Coded { bytes: Bytes::from(coded.into_boxed_slice()), validators })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_gets_no_smaller_or_has_changed_is_not_coded() {
        let key = |size| (Identity::of_size(size), Coding::Gzip);
        let again = Bytes::from(b"again ".repeat(1_000));
        let first = code(key(6_000), Content::Memory(again.clone())).unwrap();
        assert!(first.validators.etag.as_bytes().ends_with(b"-gzip\"") && first.bytes.len() < 200);
        let other = code(key(6_000), Content::Memory(Bytes::from(b"other ".repeat(1_000)))).unwrap();
        assert_ne!(other.validators.etag, first.validators.etag);
        assert!(code(key(1), Content::Memory(Bytes::from_static(b"x"))).is_none());
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &again).unwrap();
        let open = || Arc::new(OpenFile::new(std::fs::File::open(file.path()).unwrap().into()));
        let now = Identity::of(&rustix::fs::stat(file.path()).unwrap());
        let read = code((now, Coding::Gzip), Content::File(open())).unwrap();
        assert_eq!((read.bytes, &read.validators.etag), (first.bytes, &first.validators.etag));
        assert!(code(key(6_000), Content::File(open())).is_none(), "another state");
    }

    #[test]
    fn a_cache_of_nothing_takes_nothing() {
        assert_eq!(Results::new(0).largest(), 0);
        assert_eq!(Results::new(64 << 20).largest(), (8 << 20) - OVERHEAD);
    }
}
