//! The entries of a folder.
//!
//! A symbolic link is followed as a request for it would be: by [`Root::find`], which stays below the root. Everything else is
//! judged by one `statat` that follows no link, so that nothing outside the root is told.

use super::Folder;
use crate::files::path;
use crate::files::root::{Found, OpenError};
use rustix::fd::AsFd as _;
use rustix::fs::{AtFlags, FileType, RawDir, Stat, statat};
use rustix::io::Errno;
use std::ffi::CStr;

/// The kernel fills this many bytes with entries at a time.
const BUFFER: usize = 32 * 1024;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Folder,
    File,
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// As the file system has it: any bytes but NUL and those that [`path::resolve`] refuses.
    pub(super) name: Box<[u8]>,
    pub(super) kind: Kind,
    /// In bytes. 0 for folders.
    pub(super) size: u64,
    /// Seconds since 1970; 0 for what is older.
    pub(super) modified_s: u64,
}

/// What a folder contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    pub(super) items: Vec<Item>,
    /// Whether the folder has more entries than were read.
    pub(super) is_cut: bool,
}

/// Reads at most `max_entries` entries of `folder`.
///
/// # Errors
/// There is no such folder, or it cannot be read.
pub(super) fn read(folder: Folder<'_>, max_entries: usize) -> Result<Contents, OpenError> {
    let opened = folder.root.folder(folder.path)?;
    folder.readers.pass(opened.as_fd());
    let mut buffer = Vec::with_capacity(BUFFER);
    let mut entries = RawDir::new(opened.as_fd(), buffer.spare_capacity_mut());
    let mut contents = Contents::default();
    let mut examined = 0;
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(OpenError::of(errno)),
        };
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if examined == max_entries {
            contents.is_cut = true;
            break;
        }
        examined += 1;
        if !path::is_served(name.to_bytes(), folder.dot_files) {
            continue;
        }
        let stat = match entry.file_type() {
            FileType::Symlink => behind_link(folder, name.to_bytes()),
            _ => behind_name(folder, opened.as_fd(), name),
        };
        contents.items.extend(stat.and_then(|stat| Item::of(name.to_bytes(), &stat)));
    }
    Ok(contents)
}

fn behind_name(folder: Folder<'_>, opened: rustix::fd::BorrowedFd<'_>, name: &CStr) -> Option<Stat> {
    let stat = statat(opened, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    // Some file systems do not say in the folder which entries are links.
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => behind_link(folder, name.to_bytes()),
        _ => Some(stat),
    }
}

fn behind_link(folder: Folder<'_>, name: &[u8]) -> Option<Stat> {
    let mut path = folder.path.to_vec();
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    match folder.root.find(&path) {
        Ok(Found::File(_, stat)) => Some(stat),
        Ok(Found::Folder) => folder.root.folder(&path).ok().and_then(|folder| rustix::fs::fstat(folder).ok()),
        Err(_) => None,
    }
}

impl Item {
    fn of(name: &[u8], stat: &Stat) -> Option<Item> {
        let (kind, size) = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => (Kind::Folder, 0),
            FileType::RegularFile => (Kind::File, u64::try_from(stat.st_size).unwrap_or(0)),
            _ => return None,
        };
        Some(Item { name: name.into(), kind, size, modified_s: u64::try_from(stat.st_mtime).unwrap_or(0) })
    }
}
