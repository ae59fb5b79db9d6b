//! An incomplete file on disk: `NAME.part` holds the bytes, `NAME.part.state` says which of them are there and of which
//! version of which URL. When the last byte is there, one rename makes it `NAME`; what was there before stays until then.
//!
//! Order makes it safe. The state is replaced by rename and only ever names bytes that were written before. Ctrl-C and
//! every error, even a panic, end in [`PartFile::suspend`] (by drop), which keeps all that was received. After a crash of
//! the machine, bytes that were written may be missing although the state names them, so a state that was not synced
//! counts only for the boot that wrote it. Nothing is ever overwritten that might be the user's: a `.part` that is not
//! ours, or of another URL, is an error and not an empty file.
//!
//! Bytes are gathered in a [`Run`] per stream and written 256 KiB at a time: packets are small, system calls are not.

use crate::answer::Version;
use crate::error::GetError;
use base::ranges::RangeSet;
use core::ops::Range;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// Bytes gathered before a write.
const RUN: usize = 256 * 1024;
/// A state is a few hundred bytes for each hundred of gaps. More is not ours.
const MAX_STATE: u64 = 1 << 20;

/// Whether what an earlier attempt left is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// If it can be.
    Allowed,
    /// No: start over and overwrite it.
    Never,
}

/// What `NAME.part.state` holds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    url: String,
    version: Version,
    /// Half-open ranges that are in the file.
    received: Vec<(u64, u64)>,
    /// The boot during which this was written, unless the bytes were synced to the disk first.
    boot: Option<String>,
}

/// Bytes of one stream on their way to the file.
#[derive(Debug)]
pub struct Run {
    start: u64,
    buffer: Vec<u8>,
}

impl Run {
    /// A run that begins at `offset` of the file.
    pub fn new(offset: u64) -> Run {
        Run { start: offset, buffer: Vec::new() }
    }

    /// The offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.start.saturating_add(self.buffer.len() as u64)
    }
}

/// An incomplete file. Dropping it keeps what was received.
#[derive(Debug)]
pub struct PartFile {
    file: File,
    paths: Paths,
    url: String,
    version: Version,
    received: RangeSet,
    boot: Option<String>,
    /// Whether there is anything that the state on disk does not say yet.
    dirty: bool,
}

#[derive(Clone, Debug)]
struct Paths {
    complete: PathBuf,
    part: PathBuf,
    state: PathBuf,
}

impl Paths {
    fn new(complete: &Path) -> Paths {
        let with = |suffix: &str| {
            let mut path = complete.as_os_str().to_owned();
            path.push(suffix);
            PathBuf::from(path)
        };
        Paths { complete: complete.to_owned(), part: with(".part"), state: with(".part.state") }
    }
}

impl PartFile {
    /// Opens or creates the incomplete file of `complete` for a download of `url`. Fails while another process downloads
    /// to the same place.
    pub fn open(complete: &Path, url: &str, resume: Resume) -> Result<PartFile, GetError> {
        let paths = Paths::new(complete);
        let error = |error| GetError::Write(paths.part.clone(), error);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&paths.part);
        let file = file.map_err(error)?;
        let lock = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        if let Err(errno) = rustix::fs::flock(&file, lock) {
            return Err(match errno {
                rustix::io::Errno::WOULDBLOCK => {
                    let part = paths.part.display();
                    GetError::Usage(format!(
                        "another download to {part} is running: wait for it or choose another -o"
                    ))
                }
                errno => error(errno.into()),
            });
        }
        let found = file.metadata().map_err(error)?;
        // The other download may have finished between our open and our lock: then what we hold is its complete file.
        let named = std::fs::metadata(&paths.part).map_err(error)?;
        if (found.dev(), found.ino()) != (named.dev(), named.ino()) {
            return Err(GetError::Usage(format!(
                "another download to {} has just finished",
                complete.display()
            )));
        }
        let length = found.len();
        let boot = boot();
        let kept =
            if length == 0 || resume == Resume::Never { None } else { kept(&paths, url, length, &boot)? };
        let (version, received) = kept.unwrap_or_default();
        let mut part = PartFile { file, paths, url: url.to_string(), version, received, boot, dirty: true };
        if part.received.is_empty() {
            part.restart(Version::default())?;
        }
        Ok(part)
    }

    /// What to put into If-Range to fetch the rest, or to fetch pieces in parallel; `None`: there is nothing to add to, or
    /// no safe way to.
    pub fn validator(&self) -> Option<&str> {
        self.version.validator().filter(|_| !self.received.is_empty())
    }

    /// The version that the received bytes belong to.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// How many bytes are there.
    pub fn received(&self) -> u64 {
        self.received.iter().map(|range| range.end - range.start).sum()
    }

    /// What is not there, in order; the last range ends at `u64::MAX` as long as the length is not known.
    pub fn missing(&self) -> Vec<Range<u64>> {
        let end = self.version.size.unwrap_or(u64::MAX);
        let mut missing = Vec::new();
        let mut next = 0;
        for range in self.received.iter() {
            missing.push(next..range.start.min(end));
            next = range.end;
        }
        missing.push(next..end);
        missing.retain(|range| !range.is_empty());
        missing
    }

    /// Forgets what was received: a new version begins from its first byte.
    pub fn restart(&mut self, version: Version) -> Result<(), GetError> {
        self.received.clear();
        self.version = version;
        // The state first: it must never name bytes that are not there.
        self.dirty = true;
        self.checkpoint()?;
        self.file.set_len(0).map_err(|error| self.error(error))
    }

    /// An answer says to which version its bytes belong. The same as before: goes on. Another one: fails with
    /// [`GetError::Changed`], and only [`restart`](Self::restart) helps.
    pub fn on_version(&mut self, version: &Version) -> Result<(), GetError> {
        if !self.version.agrees_with(version) {
            return Err(GetError::Changed);
        }
        let known = &mut self.version;
        let learns = (known.etag.is_none() && version.etag.is_some())
            || (known.last_modified.is_none() && version.last_modified.is_some())
            || (known.size.is_none() && version.size.is_some());
        if learns {
            known.etag = known.etag.take().or_else(|| version.etag.clone());
            known.last_modified = known.last_modified.take().or_else(|| version.last_modified.clone());
            known.size = known.size.or(version.size);
            self.dirty = true;
            // The earlier, the more a kill leaves to continue from.
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Adds bytes to a run, and writes it when there are enough.
    #[inline]
    pub fn append(&mut self, run: &mut Run, mut bytes: &[u8]) -> Result<(), GetError> {
        while !bytes.is_empty() {
            if run.buffer.is_empty()
                && let Some((now, later)) = bytes.split_at_checked(RUN)
            {
                self.write_at(run.start, now)?;
                run.start = run.start.saturating_add(RUN as u64);
                bytes = later;
                continue;
            }
            if run.buffer.capacity() == 0 {
                run.buffer.reserve_exact(RUN);
            }
            let room = RUN - run.buffer.len();
            let (now, later) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            run.buffer.extend_from_slice(now);
            bytes = later;
            if run.buffer.len() == RUN {
                self.flush(run)?;
            }
        }
        Ok(())
    }

    /// Writes what a run holds. To be called at the end of each answer, and before the file is suspended.
    pub fn flush(&mut self, run: &mut Run) -> Result<(), GetError> {
        self.write_at(run.start, &run.buffer)?;
        run.start = run.offset();
        run.buffer.clear();
        Ok(())
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), GetError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.file.write_all_at(bytes, offset).map_err(|error| self.error(error))?;
        self.received.insert(offset..offset.saturating_add(bytes.len() as u64));
        self.dirty = true;
        Ok(())
    }

    /// Saves the state, so that a kill loses nothing older. Costs a small file; call it about once a second.
    pub fn checkpoint(&mut self) -> Result<(), GetError> {
        if !self.dirty {
            return Ok(());
        }
        self.save(self.boot.clone())
    }

    /// Saves everything for a later attempt, the machine's crash included. Returns where it is kept; `None` if nothing was
    /// received, and then nothing is left behind.
    pub fn suspend(&mut self) -> Result<Option<PathBuf>, GetError> {
        if self.received.is_empty() {
            self.dirty = false;
            let _ = std::fs::remove_file(&self.paths.state);
            // While the lock is held: no other process' file is removed.
            return match std::fs::remove_file(&self.paths.part) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.error(error)),
                _ => Ok(None),
            };
        }
        // At once what survives everything but a crash: the user may press Ctrl-C again while the disk is busy.
        self.checkpoint()?;
        self.file.sync_data().map_err(|error| self.error(error))?;
        self.save(None)?;
        Ok(Some(self.paths.part.clone()))
    }

    /// The body is over: gives the file its name. Fails with [`GetError::Short`] if bytes are missing, and keeps the rest.
    pub fn finish(mut self) -> Result<PathBuf, GetError> {
        let size = self.version.size.unwrap_or_else(|| self.received.last().map_or(0, |last| last.end));
        self.version.size = Some(size);
        if !self.missing().is_empty() {
            return Err(GetError::Short(size, self.received()));
        }
        // A server may have sent less than an earlier attempt left behind.
        self.file.set_len(size).map_err(|error| self.error(error))?;
        let complete = self.paths.complete.clone();
        std::fs::rename(&self.paths.part, &complete)
            .map_err(|error| GetError::Write(complete.clone(), error))?;
        self.dirty = false;
        // The file is complete and has its name; a state that stays behind is replaced by the next download.
        let _ = std::fs::remove_file(&self.paths.state);
        Ok(complete)
    }

    fn save(&mut self, boot: Option<String>) -> Result<(), GetError> {
        let state = State {
            url: self.url.clone(),
            version: self.version.clone(),
            received: self.received.iter().map(|range| (range.start, range.end)).collect(),
            boot,
        };
        let path = &self.paths.state;
        let new = path.with_extension("state.new");
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(serde_json::to_string(&state)?.as_bytes())?;
            if state.boot.is_none() {
                file.sync_data()?;
            }
            std::fs::rename(&new, path)
        };
        write().map_err(|error| GetError::Write(path.clone(), error))?;
        self.dirty = false;
        Ok(())
    }

    fn error(&self, error: io::Error) -> GetError {
        GetError::Write(self.paths.part.clone(), error)
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if self.dirty {
            // No caller is left to tell; an explicit `suspend` reports its errors.
            let _ = self.suspend();
        }
    }
}

/// What an earlier attempt left, if it can be continued. An error if it is not ours to overwrite.
fn kept(
    paths: &Paths,
    url: &str,
    length: u64,
    boot: &Option<String>,
) -> Result<Option<(Version, RangeSet)>, GetError> {
    let part = paths.part.display();
    let state = read_state(&paths.state).ok_or_else(|| {
        GetError::Usage(format!(
            "{part} exists and is no unfinished download of ours: move it away or choose another -o"
        ))
    })?;
    if state.url != url {
        let other = state.url;
        return Err(GetError::Usage(format!(
            "{part} is an unfinished download of {other}: finish or delete it, or choose another -o"
        )));
    }
    let crashed = state.boot.is_some() && state.boot != *boot;
    let mut received = RangeSet::new();
    for (start, end) in state.received {
        received.insert(start..end);
    }
    let is_there = received.last().is_none_or(|last| last.end <= length);
    let can_go_on = !crashed && is_there && state.version.validator().is_some();
    Ok(can_go_on.then_some((state.version, received)))
}

fn read_state(path: &Path) -> Option<State> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_STATE).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// What this boot of the machine is called; `None` if the kernel does not say.
fn boot() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_string())
}
