//! What connections held at most: an account says what they hold, and a thread hears when it is much less. See memory_trimmer.rs.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;

/// A fall by less is not worth the while, in bytes.
pub(crate) const LEAST: u64 = 16 << 20;

/// The most memory that connections held, and the thread that waits for it to fall.
#[derive(Debug, Default)]
pub(crate) struct PeakMemory {
    /// In bytes, since the last time that memory was returned or the quiet time began.
    pub(crate) highest: AtomicU64,
    pub(crate) is_called: AtomicBool,
    pub(crate) stop: AtomicBool,
    pub(crate) thread: OnceLock<Thread>,
}

impl PeakMemory {
    /// Connections hold this many bytes now.
    #[inline]
    pub(crate) fn on_held(&self, held: u64) {
        let highest = self.highest.load(Ordering::Relaxed);
        if held > highest {
            self.highest.fetch_max(held, Ordering::Relaxed);
        } else if has_fallen(highest, held) && !self.is_called.load(Ordering::Relaxed) {
            self.call();
        }
    }

    #[cold]
    fn call(&self) {
        if let Some(thread) = self.thread.get()
            && !self.is_called.swap(true, Ordering::AcqRel)
        {
            thread.unpark();
        }
    }
}

/// Whether so much less is held that it is worth the while to return memory.
pub(crate) fn has_fallen(highest: u64, held: u64) -> bool {
    held <= highest / 2 && highest - held >= LEAST
}
