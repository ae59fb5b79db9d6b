//! Other threads look files up on the disk, so that a slow file delays only its own requests.
//!
//! What the kernel has in memory is found at once. For the rest a thread is asked, once for a path however many wait for it.

use crate::files::cache::{Identity, stored};
use crate::files::root::{Found, OpenError, Root};
use crate::pending_results::{PendingResults, TooMany};
use crate::pool::{Wait, read_all};
use crate::readers::{Readers, ResultWaker, Ticket};
use crate::recent::OpenFile;
use base::time::Instant;
use bytes::Bytes;
use rustix::fd::AsFd as _;
use std::task::{Poll, Waker};

/// Lookups at a time, of one handler.
const MOST: usize = 256;

/// What a path leads to.
#[derive(Debug)]
pub(crate) enum Opened {
    Folder,
    File(OpenFile, Identity, Content),
}

/// The content of a small file.
#[derive(Debug)]
pub(crate) enum Content {
    /// Not read yet.
    Unread,
    /// It was read; `None` if it could not be, or the file is large.
    Read(Option<Bytes>),
}

type Result = core::result::Result<Opened, OpenError>;

/// The lookups of one handler.
#[derive(Debug)]
pub(crate) struct Lookups {
    readers: Readers,
    /// With the number of files that were stored before each began.
    asked: PendingResults<Box<[u8]>, (u64, Result)>,
    /// What the request at hand needs and is not in memory.
    wanted: Option<Box<[u8]>>,
    /// The root by where the operator's path leads now.
    root: Option<Ticket<Root>>,
}

impl Lookups {
    pub(crate) fn new(readers: Readers) -> Lookups {
        Lookups { readers, asked: PendingResults::new(MOST), wanted: None, root: None }
    }

    /// Has `root` follow the operator's path. Where that would wait a thread does it, and `root` is replaced by a later call.
    pub(crate) fn refresh(&mut self, root: &mut Root, now: Instant) {
        if let Some(ticket) = &self.root {
            let Poll::Ready(found) = ticket.poll(&|| None) else { return };
            self.root = None;
            found.into_iter().for_each(|found| *root = found);
        }
        if !root.refresh_in_memory(now) {
            let mut root = root.clone();
            let work = move || {
                root.follow();
                root
            };
            self.root = Some(self.readers.submit(Waker::noop().clone(), work));
        }
    }

    /// What `path` leads to, if that is known without waiting; else it is noted as wanted.
    pub(crate) fn look(&mut self, root: &Root, path: &[u8]) -> Option<Result> {
        match self.asked.take(path) {
            Poll::Pending => {
                self.want(path);
                return None;
            }
            Poll::Ready(Some((before, result))) if before == stored() => return Some(result),
            // A file that was stored meanwhile may be in the place of what was found.
            Poll::Ready(Some(_) | None) => {}
        }
        match root.find_in_memory(path) {
            Some(Ok(Found::File(file, _))) if self.readers.is_slow(file.as_fd()) => {}
            Some(found) => return Some(found.map(|found| Opened::of(found, root, &self.readers))),
            None => {}
        }
        self.want(path);
        None
    }

    /// The request at hand needs what `path` leads to.
    pub(crate) fn want(&mut self, path: &[u8]) {
        self.wanted = Some(path.into());
    }

    /// What the request at hand needs, if the disk must be asked.
    #[inline]
    pub(crate) fn take_wanted(&mut self) -> Option<Box<[u8]>> {
        self.wanted.take()
    }

    /// Has a thread look `path` up, and read the file if it has at most `most` bytes.
    pub(crate) fn ask(
        &mut self,
        root: &Root,
        path: Box<[u8]>,
        most: u64,
        wake_target: ResultWaker<'_>,
    ) -> core::result::Result<(), TooMany> {
        let (root, readers, name) = (root.clone(), self.readers.clone(), path.clone());
        let work = move || {
            let before = stored();
            let result = root.find(&name).map(|found| {
                if let Found::File(file, _) = &found {
                    readers.pass(file.as_fd());
                }
                Opened::of(found, &root, &readers).read(most)
            });
            (before, result)
        };
        self.asked.ask(&self.readers, path, wake_target, work)
    }
}

impl Opened {
    fn of(found: Found, root: &Root, readers: &Readers) -> Opened {
        match found {
            Found::Folder => Opened::Folder,
            Found::File(file, stat) => {
                let file = OpenFile::new(file);
                let is_of_kernel = root.is_of_kernel(&stat);
                let file = if is_of_kernel { file } else { file.closed_by(readers.clone()) };
                Opened::File(file, Identity::of(&stat), Content::Unread)
            }
        }
    }

    /// With the content of a small file.
    fn read(self, most: u64) -> Opened {
        match self {
            Opened::File(file, identity, _) => {
                let is_small = identity.size() <= most;
                let content = is_small.then(|| read_whole(&file, identity, Wait::Disk).ok()).flatten();
                Opened::File(file, identity, Content::Read(content))
            }
            Opened::Folder => Opened::Folder,
        }
    }
}

/// The content of a small file.
///
/// # Errors
/// It changed while it was read, or cannot be read; `WouldBlock` if `wait` forbids to wait for the disk.
pub(crate) fn read_whole(file: &OpenFile, identity: Identity, wait: Wait) -> std::io::Result<Bytes> {
    let size = usize::try_from(identity.size()).unwrap_or(usize::MAX);
    let mut content = vec![0; size.saturating_add(1)];
    let read = read_all(file, &mut content, 0, wait)?;
    let after = rustix::fs::fstat(file.descriptor())?;
    if read != size || Identity::of(&after) != identity {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    content.truncate(size);
    content.shrink_to_fit();
    Ok(Bytes::from(content))
}
