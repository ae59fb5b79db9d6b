//! The work on the disk: a temporary file beside the file, which takes its place at the end.
//!
//! The folder is opened beneath the root as for reading (files/root.rs), and everything else is done relative to its descriptor by names
//! without a slash, so that no link leads elsewhere. A lock is held from the last look at the file to the rename: of two uploads with
//! the same condition one is told that it no longer holds. Another program could still come between, but for a file that must be new.

use super::refused;
use crate::conditional::{Verdict, evaluate};
use crate::files::cache::{Identity, on_stored};
use crate::files::root::{OpenError, Root};
use crate::request::Head;
use crate::response::Value;
use crate::sites::RouteError;
use bytes::Bytes;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

/// What names of temporary files begin with. No client reaches them.
pub(super) const TEMPORARY: &[u8] = b".tercel-upload-";

pub(super) const BROKEN: RouteError = refused(500, "");
const FAILED: RouteError = refused(412, "the file is not as the conditions say");

/// A root, and the lock of those who change files in it.
#[derive(Debug)]
pub(super) struct Store {
    root: Mutex<Root>,
    changes: Mutex<()>,
}

/// A file that was stored.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) is_new: bool,
    pub(super) etag: Value,
}

/// A temporary file, which is removed when it is dropped.
#[derive(Debug)]
pub(super) struct Partial {
    folder: Arc<OwnedFd>,
    /// Of the file that it becomes.
    name: Vec<u8>,
    conditions: Head,
    file: File,
    temporary: Vec<u8>,
    is_there: bool,
}

impl Store {
    pub(super) fn new(root: Root) -> Store {
        Store { root: Mutex::new(root), changes: Mutex::new(()) }
    }

    /// The root, which may be another folder by now.
    fn root(&self) -> Root {
        let mut root = self.root.lock().unwrap_or_else(PoisonError::into_inner);
        root.refresh(crate::monotonic::now());
        root.clone()
    }

    /// Begins to store the file at `path`, as [`crate::files::path::resolve`] makes it.
    pub(super) fn begin(&self, path: Vec<u8>, conditions: Head) -> Result<Partial, RouteError> {
        let (folder, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => path.split_at_checked(slash + 1).unwrap_or_default(),
            None => (&b""[..], &path[..]),
        };
        let folder = folder.strip_suffix(b"/").unwrap_or(folder);
        let folder = self.root().folder(folder).map_err(|error| match error {
            OpenError::Absent => refused(409, "there is no such folder"),
            OpenError::Forbidden => refused(403, ""),
            OpenError::Exhausted => refused(503, ""),
            OpenError::Broken | OpenError::Waiting => BROKEN,
        })?;
        let old = judge(&folder, name, &conditions)?;
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|_| BROKEN)?;
        let temporary = [TEMPORARY, format!("{:016x}", u64::from_ne_bytes(random)).as_bytes()].concat();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file =
            rustix::fs::openat(&folder, &*temporary, flags, Mode::from_raw_mode(0o644)).map_err(of_errno)?;
        let partial = Partial {
            folder: Arc::new(folder),
            name: name.to_vec(),
            conditions,
            file: File::from(file),
            temporary,
            is_there: true,
        };
        if let Some(stat) = old {
            rustix::fs::fchmod(&partial.file, Mode::from_raw_mode(stat.st_mode & 0o777)).map_err(of_errno)?;
        }
        Ok(partial)
    }

    /// The temporary file takes the place of the file.
    pub(super) fn finish(&self, mut partial: Partial) -> Result<Stored, RouteError> {
        partial.file.sync_all().map_err(|error| of_error(&error))?;
        let _alone = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let old = judge(&partial.folder, &partial.name, &partial.conditions)?;
        let (folder, temporary, name) = (&*partial.folder, &*partial.temporary, &*partial.name);
        match old {
            Some(_) => rustix::fs::renameat(folder, temporary, folder, name).map_err(of_errno)?,
            None => {
                match rustix::fs::renameat_with(folder, temporary, folder, name, RenameFlags::NOREPLACE) {
                    // File systems without it.
                    Err(Errno::INVAL | Errno::NOSYS) => {
                        rustix::fs::renameat(folder, temporary, folder, name).map_err(of_errno)?;
                    }
                    Err(Errno::EXIST) => {
                        return Err(refused(409, "another program made the file meanwhile"));
                    }
                    renamed => renamed.map_err(of_errno)?,
                }
            }
        }
        partial.is_there = false;
        on_stored();
        // After the rename, which changes what the entity tag is made of.
        let stat = rustix::fs::fstat(&partial.file).map_err(of_errno)?;
        // The file is there; what a crash would leave of it is the file system's affair where this fails.
        let _ = rustix::fs::fsync(folder);
        Ok(Stored { is_new: old.is_none(), etag: Identity::of(&stat).etag() })
    }
}

impl Partial {
    pub(super) fn write(mut self, chunks: &[Bytes]) -> Result<Partial, RouteError> {
        chunks.iter().try_for_each(|chunk| self.file.write_all(chunk)).map_err(|error| of_error(&error))?;
        Ok(self)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if self.is_there {
            // A name that is gone is what is wanted.
            let _ = rustix::fs::unlinkat(&*self.folder, &*self.temporary, AtFlags::empty());
        }
    }
}

/// The file `name` as it is, if there is one and the conditions hold.
fn judge(folder: &OwnedFd, name: &[u8], conditions: &Head) -> Result<Option<Stat>, RouteError> {
    let stat = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        // RFC 9110 §13.1.1: * is for files that exist.
        Err(Errno::NOENT) if conditions.value(crate::request::Name::IfMatch).is_some() => return Err(FAILED),
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(of_errno(errno)),
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(refused(409, "a folder has this name")),
        _ => return Err(refused(409, "what has this name is no file")),
    }
    match evaluate(conditions, &Identity::of(&stat).validators()) {
        Verdict::Proceed => Ok(Some(stat)),
        Verdict::NotModified | Verdict::Failed => Err(FAILED),
    }
}

fn of_error(error: &std::io::Error) -> RouteError {
    error.raw_os_error().map_or(BROKEN, |code| of_errno(Errno::from_raw_os_error(code)))
}

fn of_errno(errno: Errno) -> RouteError {
    match errno {
        Errno::ACCESS | Errno::PERM | Errno::ROFS => refused(403, ""),
        Errno::NOSPC | Errno::DQUOT => refused(507, ""),
        Errno::FBIG => super::TOO_LARGE,
        Errno::NAMETOOLONG => refused(414, ""),
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => refused(503, ""),
        _ => BROKEN,
    }
}
