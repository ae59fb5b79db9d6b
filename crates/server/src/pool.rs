//! Memory for what is read from files: buffers of [`CHUNK`] bytes that come back when the last reader lets go.
//!
//! A chunk is lent as `Bytes` and may be held by a stream until it is acknowledged, on any thread, so the way back is its
//! destructor. Buffers are filled by the kernel in place and never zeroed. The lock is taken twice per chunk (dozens of
//! packets), by one worker unless the other HTTP versions hold bodies, and never while anything blocks. Reads of less than
//! half a buffer get memory of their own size, so that what a slow client pins is at most twice what it was sent.
//!
//! Where several responses read one file at a time, they read it by whole chunks, and share those: [`Recent`]. A file read by one
//! response only goes through few buffers that stay in the CPU's cache, which sharing would spoil.

use crate::recent::{OpenFile, Recent};
use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, OwnedFd};
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Bytes per read.
pub(crate) const CHUNK: usize = 128 * 1024;
/// Up to this many bytes, a read gets memory of exactly its size.
pub(crate) const SMALL: u64 = CHUNK as u64 / 2;
/// How many buffers wait for their next use at most; the others are freed (8 MiB are kept).
const KEPT: usize = 64;

/// The free buffers of one handler.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: Mutex<Vec<Vec<u8>>>,
    recent: Mutex<Recent>,
}

impl Pool {
    /// Reads up to `want` bytes of `file` at `offset`, at most [`CHUNK`]. Fewer come at the end of the file, none after.
    pub(crate) fn read(self: &Arc<Pool>, file: &OwnedFd, offset: u64, want: u64) -> io::Result<Bytes> {
        if want <= SMALL {
            let mut buffer = Vec::with_capacity((want as usize).max(1));
            fill(file, &mut buffer, offset, want)?;
            return Ok(Bytes::from(buffer));
        }
        let mut buffer = self.take();
        let result = fill(file, &mut buffer, offset, want);
        let lent = Lent { buffer, pool: Arc::downgrade(self) };
        result.map(|()| Bytes::from_owner(lent))
    }

    /// The chunk of this number: `CHUNK` bytes from `index * CHUNK` on, fewer at the end of the file, none after. Whoever asks for
    /// it a little later gets the same memory.
    pub(crate) fn chunk(self: &Arc<Pool>, file: &OpenFile, index: u64) -> io::Result<Bytes> {
        let recent = || self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(chunk) = recent().get(file, index) {
            return Ok(chunk);
        }
        let chunk = self.read(file.descriptor(), index.saturating_mul(CHUNK as u64), CHUNK as u64)?;
        // What this one displaces goes back to us after the lock is free.
        let _displaced = recent().insert(file, index, chunk.clone());
        Ok(chunk)
    }

    fn take(&self) -> Vec<u8> {
        let kept = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| Vec::with_capacity(CHUNK))
    }

    fn give_back(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < KEPT {
            free.push(buffer);
        }
    }
}

/// One read into an empty buffer. A buffer larger than what is wanted may be filled further than that; it is cut.
fn fill(file: &OwnedFd, buffer: &mut Vec<u8>, offset: u64, want: u64) -> io::Result<()> {
    rustix::io::retry_on_intr(|| rustix::io::pread(file.as_fd(), spare_capacity(buffer), offset))?;
    buffer.truncate(usize::try_from(want).unwrap_or(usize::MAX));
    Ok(())
}

/// A buffer on loan.
struct Lent {
    buffer: Vec<u8>,
    pool: Weak<Pool>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
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

    fn file(content: &[u8]) -> OwnedFd {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        file.into()
    }

    #[test]
    fn buffers_come_back_when_the_last_reader_lets_go() {
        let pool = Arc::new(Pool::default());
        let file = file(&[7; 3 * CHUNK]);
        let first = pool.read(&file, 0, 3 * CHUNK as u64).unwrap();
        assert_eq!(first.len(), CHUNK);
        let slice = first.slice(5..9);
        let place = first.as_ptr();
        drop(first);
        assert_eq!(pool.free.lock().unwrap().len(), 0, "a slice still reads it");
        drop(slice);
        let again = pool.read(&file, 10, 70_000).unwrap();
        assert_eq!((again.as_ptr(), again.len()), (place, 70_000), "the same memory, cut to what was wanted");
        drop(pool);
        assert_eq!(again[0], 7, "outlives its pool");
    }

    #[test]
    fn small_reads_pin_no_large_buffer() {
        let pool = Arc::new(Pool::default());
        let file = file(b"small");
        assert_eq!(pool.read(&file, 1, 2).unwrap(), &b"ma"[..]);
        assert_eq!(pool.read(&file, 1, 1_000).unwrap(), &b"mall"[..]);
        assert_eq!(pool.read(&file, 99, 10).unwrap(), &b""[..]);
        assert!(pool.free.lock().unwrap().is_empty());
    }
}
