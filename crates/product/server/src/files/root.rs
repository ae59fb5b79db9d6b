//! The folder that is served, and how files below it are opened.
//!
//! The kernel does the confinement: `openat2` with RESOLVE_BENEATH resolves the whole path, symbolic links included, in
//! one step and fails if any part of it would leave the root, so there is no moment between a check and its use. The
//! policy on symbolic links: one that stays inside the root is followed, one that leads outside never is, absolute ones
//! included even when they point back inside. Where `openat2` is missing (Linux before 5.6, some sandboxes) the path is
//! walked with one `openat` per segment and no symbolic link is followed at all.
//!
//! The operator names a path, and what it leads to may change: a deployment switches a symbolic link, or replaces the folder.
//! So the path is looked at again once a second, when a file is looked for, and the folder opened anew if it is another one.
//!
//! A thread that serves looks in memory only: by RESOLVE_CACHED, and not beyond the root's own file system, since another one
//! below it may ask another process or machine when a file is opened, read or closed.
//!
//! What is opened is judged by its descriptor, never by its name: only regular files are served. O_NONBLOCK keeps a FIFO
//! from blocking the worker. Kernel file systems (proc, sysfs and the like) are refused even if a careless root contains
//! them, since their "regular files" are the machine's secrets.

use base::time::{Duration, Instant};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, StatxFlags};
use rustix::io::Errno;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How often the operator's path is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// `openat2` gives up with EAGAIN when something is renamed while it resolves `..` in a symbolic link.
const RENAME_RETRIES: usize = 4;

/// `f_type` of file systems whose files are views into the kernel. From linux/magic.h.
const KERNEL_FILE_SYSTEMS: [u64; 12] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x7363_6673, // securityfs
    0xf97c_ff8c, // selinuxfs
    0xcafe_4a11, // bpf
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0x6265_6570, // configfs
];

/// Why a root cannot be served. The text says what to do.
#[derive(Debug)]
pub struct RootError {
    path: PathBuf,
    errno: Errno,
}

impl fmt::Display for RootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.errno {
            Errno::NOENT => write!(f, "the root folder {path} does not exist: create it or name another one"),
            Errno::NOTDIR => {
                write!(f, "the root {path} is not a folder: name the folder that holds the files")
            }
            Errno::ACCESS | Errno::PERM => {
                write!(
                    f,
                    "the root folder {path} may not be read: change its permissions or name another one"
                )
            }
            errno => write!(f, "cannot open the root folder {path}: {errno}"),
        }
    }
}

impl std::error::Error for RootError {}

/// `f_type` of file systems that ask another process or machine when a file is opened. From linux/magic.h.
const REMOTE_FILE_SYSTEMS: [u64; 8] = [
    0x6573_5546, // fuse
    0x6969,      // nfs
    0xff53_4d42, // cifs
    0xfe53_4d42, // smb2
    0x00c3_6400, // ceph
    0x0102_1997, // 9p
    0x5346_414f, // afs
    0x786f_4256, // vboxsf
];

/// How paths are resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolver {
    /// One `openat2`, which can be told not to wait for the disk.
    Memory,
    /// One `openat2`.
    Kernel,
    /// One `openat` per segment, no symbolic links.
    Walk,
}

/// What a path leads to.
#[derive(Debug)]
pub(crate) enum Found {
    /// A regular file and its state when it was opened.
    File(OwnedFd, Stat),
    /// A folder.
    Folder,
}

/// Why a path leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// 404: it does not exist, leads outside, or is nothing to be served.
    Absent,
    /// 403: it exists and we may not read it.
    Forbidden,
    /// 503: the process or the machine has no more descriptors or memory.
    Exhausted,
    /// 500: the disk, most likely.
    Broken,
    /// None yet: the disk must be asked.
    Waiting,
}

/// An open root folder. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Root {
    /// As the operator named it.
    path: Arc<Path>,
    folder: Arc<OwnedFd>,
    device: u64,
    inode: u64,
    resolver: Resolver,
    /// When the path is looked at again.
    look_at: Instant,
}

impl Root {
    /// Opens the folder at `path`, following symbolic links: the operator named it.
    pub fn open(path: &Path) -> Result<Root, RootError> {
        let error = |errno| RootError { path: path.to_owned(), errno };
        // Opened for reading, not as O_PATH, so that a folder without permission is found out now.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty()).map_err(error)?;
        let Stat { st_dev: device, st_ino: inode, .. } = rustix::fs::fstat(&folder).map_err(error)?;
        let is_remote = rustix::fs::fstatfs(&folder)
            .is_ok_and(|system| REMOTE_FILE_SYSTEMS.contains(&(system.f_type as u64)));
        let resolver = match open_beneath(folder.as_fd(), b".") {
            Ok(_) if !is_remote && open_in_memory(folder.as_fd(), b".").is_ok() => Resolver::Memory,
            Ok(_) => Resolver::Kernel,
            Err(_) => Resolver::Walk,
        };
        Ok(Root {
            path: path.into(),
            folder: Arc::new(folder),
            device,
            inode,
            resolver,
            look_at: Instant::ZERO,
        })
    }

    /// Whether it is the same folder, by the same path.
    pub(crate) fn is_same(&self, other: &Root) -> bool {
        (&self.path, self.device, self.inode) == (&other.path, other.device, other.inode)
    }

    /// Opens the folder anew if the operator's path leads to another one by now; looks once a second at most, and may wait for
    /// the disk. A path that leads nowhere changes nothing, since a deployment may be in the middle of it.
    pub(crate) fn refresh(&mut self, now: Instant) {
        if self.take_due(now) {
            self.follow();
        }
    }

    /// The same without waiting. `false`: the path must be followed by a thread that may.
    pub(crate) fn refresh_in_memory(&mut self, now: Instant) -> bool {
        if !self.take_due(now) {
            return true;
        }
        match folder_in_memory(&self.path) {
            Ok(found) if found == (self.device, self.inode) => true,
            Ok((device, _)) if device == self.device && self.resolver == Resolver::Memory => {
                self.follow();
                true
            }
            Err(Errno::NOENT) => true,
            _ => false,
        }
    }

    /// Whether the path is to be looked at, which it then is.
    fn take_due(&mut self, now: Instant) -> bool {
        let is_due = now >= self.look_at;
        if is_due {
            self.look_at = now + LOOK_EVERY;
        }
        is_due
    }

    /// Opens the folder anew if the operator's path leads to another one.
    pub(crate) fn follow(&mut self) {
        let is_same = |stat: &Stat| (stat.st_dev, stat.st_ino) == (self.device, self.inode);
        if rustix::fs::stat(&*self.path).is_ok_and(|stat| !is_same(&stat))
            && let Ok(root) = Root::open(&self.path)
        {
            *self = Root { look_at: self.look_at, ..root };
        }
    }

    /// Whether a file in this state is known to be of a file system that nothing else must be asked about: it is closed without a
    /// wait.
    pub(crate) fn is_of_kernel(&self, stat: &Stat) -> bool {
        self.resolver == Resolver::Memory && stat.st_dev == self.device
    }

    /// Opens `path`: segments joined by single slashes, as [`super::path::resolve`] makes them; empty for the root.
    pub(crate) fn find(&self, path: &[u8]) -> Result<Found, OpenError> {
        self.judge(self.open_any(path)?)
    }

    /// Opens the folder `path`, so that its entries can be read.
    pub(crate) fn folder(&self, path: &[u8]) -> Result<OwnedFd, OpenError> {
        let (folder, stat) = self.open_any(path)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if self.is_on_disk(&folder, &stat) => Ok(folder),
            _ => Err(OpenError::Absent),
        }
    }

    fn open_any(&self, path: &[u8]) -> Result<(OwnedFd, Stat), OpenError> {
        let path = if path.is_empty() { b"." } else { path };
        with_state(match self.resolver {
            Resolver::Memory | Resolver::Kernel => open_beneath(self.folder.as_fd(), path),
            Resolver::Walk => open_walking(self.folder.as_fd(), path),
        })
    }

    /// As [`Root::find`], if that does not wait for the disk; else `None`.
    pub(crate) fn find_in_memory(&self, path: &[u8]) -> Option<Result<Found, OpenError>> {
        if self.resolver != Resolver::Memory {
            return None;
        }
        let path = if path.is_empty() { b"." } else { path };
        match open_in_memory(self.folder.as_fd(), path) {
            // EXDEV: outside of the root, or on another file system. A thread that may wait finds out.
            Err(Errno::AGAIN | Errno::INTR | Errno::XDEV) => None,
            opened => Some(with_state(opened).and_then(|opened| self.judge(opened))),
        }
    }

    fn judge(&self, (file, stat): (OwnedFd, Stat)) -> Result<Found, OpenError> {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Ok(Found::Folder),
            FileType::RegularFile if self.is_on_disk(&file, &stat) => Ok(Found::File(file, stat)),
            _ => Err(OpenError::Absent),
        }
    }

    fn is_on_disk(&self, file: &OwnedFd, stat: &Stat) -> bool {
        // Nearly every file is on the root's own device, which saves the call; and a root that is itself such a file
        // system was named by the operator.
        stat.st_dev == self.device
            || rustix::fs::fstatfs(file)
                .is_ok_and(|system| !KERNEL_FILE_SYSTEMS.contains(&(system.f_type as u64)))
    }

    #[cfg(test)]
    pub(crate) fn without_openat2(mut self) -> Root {
        self.resolver = Resolver::Walk;
        self
    }
}

impl OpenError {
    pub(crate) fn of(errno: Errno) -> OpenError {
        match errno {
            // EXDEV: it would leave the root. ENXIO, ENODEV: a device or socket.
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::LOOP
            | Errno::XDEV
            | Errno::NAMETOOLONG
            | Errno::NXIO
            | Errno::NODEV
            | Errno::INVAL
            | Errno::ILSEQ => OpenError::Absent,
            Errno::ACCESS | Errno::PERM => OpenError::Forbidden,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => OpenError::Exhausted,
            _ => OpenError::Broken,
        }
    }
}

fn with_state(opened: Result<OwnedFd, Errno>) -> Result<(OwnedFd, Stat), OpenError> {
    let file = opened.map_err(OpenError::of)?;
    let stat = rustix::fs::fstat(&file).map_err(OpenError::of)?;
    Ok((file, stat))
}

fn flags() -> OFlags {
    OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY
}

fn open_beneath(root: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(root, path, flags(), Mode::empty(), resolve) {
            Err(Errno::AGAIN) if tries < RENAME_RETRIES => tries += 1,
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Fails with EAGAIN where the disk would have to be asked, and with EXDEV where the path leads to another file system: opening
/// may wait there although the name is in memory. Since Linux 5.12.
fn open_in_memory(root: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    let resolve =
        ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::CACHED | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(root, path, flags(), Mode::empty(), resolve)
}

/// Device and inode of the folder at `path`. Fails with EAGAIN where they are not in memory.
fn folder_in_memory(path: &Path) -> Result<(u64, u64), Errno> {
    // O_PATH opens nothing of the file system's own.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::CACHED)?;
    let how = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let state = rustix::fs::statx(&folder, "", how, StatxFlags::INO)?;
    Ok((rustix::fs::makedev(state.stx_dev_major, state.stx_dev_minor), state.stx_ino))
}

fn open_walking(root: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    let (folders, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (path.get(..slash), path.get(slash + 1..).unwrap_or(b"")),
        None => (None, path),
    };
    let mut folder: Option<OwnedFd> = None;
    let no_links = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for segment in folders.into_iter().flat_map(|folders| folders.split(|byte| *byte == b'/')) {
        let at = folder.as_ref().map_or(root, AsFd::as_fd);
        let next =
            rustix::fs::openat(at, segment, OFlags::PATH | OFlags::DIRECTORY | no_links, Mode::empty())?;
        folder = Some(next);
    }
    let at = folder.as_ref().map_or(root, AsFd::as_fd);
    rustix::fs::openat(at, name, flags() | no_links, Mode::empty())
}
