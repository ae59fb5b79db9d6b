//! Recently read chunks of files. Responses that read the same file find them in memory.
//!
//! Two generations, as in the cache of small files: look-ups go to the young one, then to the old one (a hit moves up); when the
//! young one is full it becomes the old one, and what was old is forgotten, that is freed when the last response lets go. A file
//! is known by a number that it got when it was opened, so a changed file, which is opened again, shares nothing with its
//! former self.
//!
//! Rejected: to map files into memory (a file that is cut short ends the process by SIGBUS).

use crate::readers::Readers;
use bytes::Bytes;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::collections::HashMap;

/// Chunks of a generation. With two, 32 MiB are kept at most.
const GENERATION: usize = 128;

/// Where a file's bytes are, as far as a read can tell before it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkSource {
    /// The file system tells with each read.
    Asks,
    /// It cannot tell, and never waits.
    Memory,
    /// It cannot tell, and may wait.
    Disk,
    /// It cannot tell, and was not asked yet what it is: that waits, too, where it is another process or machine.
    Unasked,
}

/// `f_type` of file systems in memory. From linux/magic.h.
const IN_MEMORY: [u64; 3] = [
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x9584_58f6, // hugetlbfs
];

/// A file that is open for reading, with a number that no other has.
#[derive(Debug)]
pub(crate) struct OpenFile {
    /// `None` once it is being closed.
    descriptor: Option<OwnedFd>,
    /// Who closes it where that may wait: the file system of another process or machine is told, and answers.
    closer: Option<Readers>,
    number: u64,
    /// A [`ChunkSource`].
    residence: AtomicU8,
}

impl OpenFile {
    pub(crate) fn new(descriptor: OwnedFd) -> OpenFile {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        OpenFile { descriptor: Some(descriptor), closer: None, number, residence: AtomicU8::new(0) }
    }

    /// The same, of a file system that may wait when it is closed: `closer` does that.
    pub(crate) fn closed_by(mut self, closer: Readers) -> OpenFile {
        self.closer = Some(closer);
        self
    }

    pub(crate) fn residence(&self) -> ChunkSource {
        match self.residence.load(Ordering::Relaxed) {
            0 => ChunkSource::Asks,
            1 => ChunkSource::Memory,
            2 => ChunkSource::Disk,
            _ => ChunkSource::Unasked,
        }
    }

    /// A read could not tell.
    pub(crate) fn on_untold(&self) {
        // Known without waiting for files that are closed at once, which are those of the kernel itself.
        match self.closer {
            None => self.ask_file_system(),
            Some(_) => self.residence.store(3, Ordering::Relaxed),
        }
    }

    /// Finds out what to think of the file system. May wait.
    pub(crate) fn ask_file_system(&self) {
        let is_in_memory = rustix::fs::fstatfs(self.descriptor())
            .is_ok_and(|system| IN_MEMORY.contains(&(system.f_type as u64)));
        self.residence.store(if is_in_memory { 1 } else { 2 }, Ordering::Relaxed);
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        // None is left while the file is dropped alone. The folder cannot be read: an error.
        self.descriptor.as_ref().map_or(rustix::fs::CWD, |descriptor| descriptor.as_fd())
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        if let (Some(closer), Some(descriptor)) = (self.closer.take(), self.descriptor.take()) {
            closer.run(move || drop(descriptor));
        }
    }
}

type Generation = HashMap<(u64, u64), Bytes>;

/// The chunks that were read last.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    young: Generation,
    old: Generation,
}

impl Recent {
    pub(crate) fn get(&mut self, file: &OpenFile, index: u64) -> Option<Bytes> {
        let key = (file.number, index);
        if let Some(chunk) = self.young.get(&key) {
            return Some(chunk.clone());
        }
        let chunk = self.old.remove(&key)?;
        let _ = self.insert(file, index, chunk.clone());
        Some(chunk)
    }

    /// Returns what is forgotten for it.
    #[must_use]
    pub(crate) fn insert(&mut self, file: &OpenFile, index: u64, chunk: Bytes) -> Option<Generation> {
        let is_full = self.young.len() >= GENERATION;
        let forgotten = is_full.then(|| {
            let young = core::mem::take(&mut self.young);
            core::mem::replace(&mut self.old, young)
        });
        self.young.insert((file.number, index), chunk);
        forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> OpenFile {
        OpenFile::new(tempfile::tempfile().unwrap().into())
    }

    #[test]
    fn what_is_asked_for_stays_and_the_rest_is_bounded() {
        let (mut recent, file) = (Recent::default(), file());
        for index in 0..GENERATION as u64 * 20 {
            drop(recent.insert(&file, index, Bytes::from_static(b"chunk")));
            drop(recent.insert(&file, 0, Bytes::from_static(b"hot")));
            assert!(recent.get(&file, 0).is_some_and(|chunk| chunk == "hot"), "{index}");
            assert!(recent.young.len() <= GENERATION && recent.old.len() <= GENERATION);
        }
        assert!(recent.get(&file, 1).is_none());
    }

    #[test]
    fn a_chunk_that_is_looked_up_outlives_its_generation() {
        let (mut recent, file) = (Recent::default(), file());
        drop(recent.insert(&file, 0, Bytes::from_static(b"hot")));
        for index in 1..GENERATION as u64 * 20 {
            drop(recent.insert(&file, index, Bytes::new()));
            assert!(recent.get(&file, 0).is_some(), "{index}");
        }
    }

    /// Or else a file that was replaced would go on as what it was.
    #[test]
    fn files_that_were_opened_one_after_the_other_share_nothing() {
        let (mut recent, first) = (Recent::default(), file());
        drop(recent.insert(&first, 0, Bytes::from_static(b"first")));
        drop(first);
        assert_eq!(recent.get(&file(), 0), None);
    }
}
