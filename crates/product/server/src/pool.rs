//! Memory for what is read from files: buffers of [`CHUNK`] bytes that come back when the last reader lets go.
//!
//! A chunk is lent as `Bytes` and may be held by a stream until it is acknowledged, on any thread, so the way back is its
//! destructor. Buffers are zeroed when they are made and filled by the kernel in place after that. The lock is taken twice per
//! chunk (dozens of packets), by one worker unless the other HTTP versions hold bodies, and never while anything blocks. Reads
//! of less than half a buffer get memory of their own size, so that what a slow client pins is at most twice what it was sent.
//!
//! A worker must not wait: it reads what the kernel has in memory (RWF_NOWAIT), and [`Readers`] read the rest. File systems
//! that cannot tell are of two kinds: those in memory never wait, all others are taken to.
//!
//! Where several responses read one file at a time, they read it by whole chunks, and share those: [`Recent`]. A file read by one
//! response only goes through few buffers that stay in the CPU's cache, which sharing would spoil.

use crate::readers::Readers;
use crate::recent::{ChunkSource, OpenFile, Recent};
use bytes::Bytes;
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2};
use std::io::{self, IoSliceMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Bytes per read.
pub(crate) const CHUNK: usize = 128 * 1024;
/// Up to this many bytes, a read gets memory of exactly its size.
pub(crate) const SMALL: u64 = CHUNK as u64 / 2;
/// Up to this many buffers wait for their next use (8 MiB), or as many as are on loan: a server of hundreds of files at a time does
/// not make and zero a buffer for each read.
const KEPT: usize = 64;

/// The free buffers of one handler.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    buffers: Mutex<Buffers>,
    recent: Mutex<Recent>,
    readers: Readers,
}

#[derive(Debug, Default)]
struct Buffers {
    /// All of [`CHUNK`] bytes.
    free: Vec<Vec<u8>>,
    on_loan: usize,
}

/// Whether a read may wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// It may not: it fails with `WouldBlock`.
    Never,
    /// It may.
    Disk,
}

impl Pool {
    pub(crate) fn new(readers: Readers) -> Pool {
        Pool { readers, ..Pool::default() }
    }

    pub(crate) fn readers(&self) -> &Readers {
        &self.readers
    }

    fn check(&self, file: &OpenFile, wait: Wait) -> io::Result<()> {
        match wait {
            Wait::Never if self.readers.is_slow(file.descriptor()) => Err(Errno::AGAIN.into()),
            Wait::Never => Ok(()),
            Wait::Disk => {
                self.readers.pass(file.descriptor());
                Ok(())
            }
        }
    }

    /// Reads up to `want` bytes of `file` at `offset`, at most [`CHUNK`]. Fewer come at the end of the file, none after.
    pub(crate) fn read(
        self: &Arc<Pool>,
        file: &OpenFile,
        offset: u64,
        want: u64,
        wait: Wait,
    ) -> io::Result<Bytes> {
        self.check(file, wait)?;
        if want <= SMALL {
            let mut buffer = vec![0; (want as usize).max(1)];
            let read = read_at(file, &mut buffer, offset, wait)?;
            buffer.truncate(read);
            if read < buffer.capacity() / 2 {
                buffer.shrink_to_fit();
            }
            return Ok(Bytes::from(buffer));
        }
        let mut lent = self.take();
        let want = usize::try_from(want).unwrap_or(usize::MAX).min(CHUNK);
        lent.len = read_at(file, lent.buffer.get_mut(..want).unwrap_or_default(), offset, wait)?;
        Ok(Bytes::from_owner(lent))
    }

    /// The chunk of this number: `CHUNK` bytes from `index * CHUNK` on, fewer at the end of the file, none after. A later call
    /// for the same chunk gets the same memory.
    pub(crate) fn chunk(self: &Arc<Pool>, file: &OpenFile, index: u64, wait: Wait) -> io::Result<Bytes> {
        let recent = || self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(chunk) = recent().get(file, index) {
            return Ok(chunk);
        }
        self.check(file, wait)?;
        let mut lent = self.take();
        lent.len = read_all(file, &mut lent.buffer, index.saturating_mul(CHUNK as u64), wait)?;
        let chunk = Bytes::from_owner(lent);
        // What this one displaces goes back to us after the lock is free.
        let _displaced = recent().insert(file, index, chunk.clone());
        Ok(chunk)
    }

    fn take(self: &Arc<Pool>) -> Lent {
        let kept = {
            let mut buffers = self.buffers();
            buffers.on_loan += 1;
            buffers.free.pop()
        };
        let buffer = kept.unwrap_or_else(|| vec![0; CHUNK]);
        Lent { buffer, len: 0, pool: Arc::downgrade(self) }
    }

    fn give_back(&self, buffer: Vec<u8>) {
        let mut buffers = self.buffers();
        buffers.on_loan -= 1;
        buffers.free.push(buffer);
        let most = KEPT.max(buffers.on_loan);
        buffers.free.truncate(most);
    }

    fn buffers(&self) -> MutexGuard<'_, Buffers> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One read. Fewer bytes than `buffer` has come at the end of the file, or where the next are not in memory.
fn read_at(file: &OpenFile, buffer: &mut [u8], offset: u64, wait: Wait) -> io::Result<usize> {
    let fd = file.descriptor();
    loop {
        let result = match (wait, file.residence()) {
            (Wait::Disk, ChunkSource::Unasked) => {
                file.ask_file_system();
                continue;
            }
            (Wait::Disk, _) | (Wait::Never, ChunkSource::Memory) => pread(fd, &mut *buffer, offset),
            (Wait::Never, ChunkSource::Disk | ChunkSource::Unasked) => Err(Errno::AGAIN),
            (Wait::Never, ChunkSource::Asks) => {
                preadv2(fd, &mut [IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT)
            }
        };
        match result {
            Ok(read) => return Ok(read),
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL)
                if wait == Wait::Never && file.residence() == ChunkSource::Asks =>
            {
                file.on_untold();
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Fills `buffer` as far as the file goes. Returns how far.
///
/// # Errors
/// As a read, also when only a part is in memory.
pub(crate) fn read_all(file: &OpenFile, buffer: &mut [u8], offset: u64, wait: Wait) -> io::Result<usize> {
    let mut len = 0;
    while let Some(rest) = buffer.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match read_at(file, rest, offset.saturating_add(len as u64), wait)? {
            0 => break,
            read => len += read,
        }
    }
    Ok(len)
}

/// A buffer on loan.
struct Lent {
    buffer: Vec<u8>,
    /// Bytes of it that were read.
    len: usize,
    pool: Weak<Pool>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or(&self.buffer)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.give_back(std::mem::take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::path::Path;

    fn file(content: &[u8]) -> OpenFile {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        OpenFile::new(file.into())
    }

    #[test]
    fn buffers_come_back_when_the_last_reader_lets_go() {
        let pool = Arc::new(Pool::default());
        let file = file(&[7; 3 * CHUNK]);
        let first = pool.read(&file, 0, 3 * CHUNK as u64, Wait::Disk).unwrap();
        assert_eq!(first.len(), CHUNK);
        let slice = first.slice(5..9);
        let place = first.as_ptr();
        drop(first);
        assert_eq!(pool.buffers().free.len(), 0, "a slice still reads it");
        drop(slice);
        let again = pool.read(&file, 10, 70_000, Wait::Disk).unwrap();
        assert_eq!((again.as_ptr(), again.len()), (place, 70_000), "the same memory, cut to what was wanted");
        drop(pool);
        assert_eq!(again[0], 7, "outlives its pool");
    }

    #[test]
    fn as_many_buffers_wait_as_are_on_loan_and_few_when_none_is() {
        let pool = Arc::new(Pool::default());
        let file = file(&[7; CHUNK]);
        let mut lent: Vec<Bytes> =
            (0..4 * KEPT).map(|_| pool.read(&file, 0, CHUNK as u64, Wait::Disk).unwrap()).collect();
        lent.truncate(2 * KEPT);
        assert_eq!(pool.buffers().free.len(), 2 * KEPT, "for those that follow");
        lent.clear();
        let Buffers { free, on_loan } = &*pool.buffers();
        assert_eq!((free.len(), *on_loan), (KEPT, 0));
    }

    #[test]
    fn small_reads_pin_no_large_buffer() {
        let pool = Arc::new(Pool::default());
        let file = file(b"small");
        assert_eq!(pool.read(&file, 1, 2, Wait::Disk).unwrap(), &b"ma"[..]);
        assert_eq!(pool.read(&file, 1, 1_000, Wait::Disk).unwrap(), &b"mall"[..]);
        assert_eq!(pool.read(&file, 99, 10, Wait::Disk).unwrap(), &b""[..]);
        assert!(pool.buffers().free.is_empty());
    }

    /// What is in memory is read without waiting, on every file system there may be under the test.
    #[test]
    fn what_was_just_written_is_read_without_waiting_or_known_to_be_on_a_disk() {
        let pool = Arc::new(Pool::default());
        let file = file(&[7; 3 * CHUNK]);
        for want in [1_000, CHUNK as u64] {
            match pool.read(&file, 5, want, Wait::Never) {
                Ok(bytes) => assert!(!bytes.is_empty() && bytes.iter().all(|byte| *byte == 7)),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        assert_eq!(pool.chunk(&file, 1, Wait::Disk).unwrap().len(), CHUNK);
        assert_eq!(pool.chunk(&file, 1, Wait::Never).unwrap().len(), CHUNK, "remembered");
        let in_memory = Path::new("/dev/shm");
        if in_memory.is_dir() {
            let file = tempfile::tempfile_in(in_memory).unwrap();
            file.set_len(10).unwrap();
            let file = OpenFile::new(file.into());
            assert_eq!(pool.read(&file, 0, 100, Wait::Never).unwrap().len(), 10);
        }
    }
}
