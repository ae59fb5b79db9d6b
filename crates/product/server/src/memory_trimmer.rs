//! Memory that connections gave back and the allocator keeps: it returns to the operating system after a peak.
//!
//! The allocator keeps what lies below a block that is in use, so that a server that once had ten thousand connections would keep
//! their memory for ever. A thread of its own waits, without waking, until connections hold at most half of what they held, and
//! 16 MiB less. If that is still so after a quiet time, it returns what is free, and waits for the next peak.
//!
//! Nothing here is on the path of a packet: threads tell the budget of changes of 64 KiB, and compare two numbers then.

use crate::budget::Budget;
use crate::peak::has_fallen;
use std::io;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// How long memory should have been held no more before it is returned.
pub const QUIET: Duration = Duration::from_secs(5);

/// The thread that returns memory. It ends when this is dropped.
#[derive(Debug)]
pub struct MemoryTrimmer {
    budget: Budget,
    thread: Option<JoinHandle<()>>,
}

impl MemoryTrimmer {
    /// WakeList `give_back` when the connections of `budget` have held much less than before for `quiet`. A budget has one such
    /// thread; further ones do nothing.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn start(
        budget: &Budget,
        quiet: Duration,
        mut give_back: impl FnMut() + Send + 'static,
    ) -> io::Result<MemoryTrimmer> {
        let shared = budget.clone();
        let thread = Builder::new().name("surplus".to_owned()).spawn(move || {
            let peak = shared.peak();
            if peak.thread.set(std::thread::current()).is_err() {
                return;
            }
            while !peak.stop.load(Ordering::Acquire) {
                if !peak.is_called.load(Ordering::Acquire) {
                    std::thread::park();
                    continue;
                }
                let highest = peak.highest.swap(shared.held(), Ordering::Relaxed);
                std::thread::park_timeout(quiet);
                let since = peak.highest.load(Ordering::Relaxed);
                if has_fallen(highest, since) {
                    give_back();
                } else {
                    peak.highest.fetch_max(highest, Ordering::Relaxed);
                }
                peak.is_called.store(false, Ordering::Release);
            }
        })?;
        Ok(MemoryTrimmer { budget: budget.clone(), thread: Some(thread) })
    }
}

impl Drop for MemoryTrimmer {
    fn drop(&mut self) {
        self.budget.peak().stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic in there has been reported by its hook already.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peak::LEAST;
    use std::sync::mpsc::{Receiver, channel};

    fn started(budget: &Budget, quiet: Duration) -> (MemoryTrimmer, Receiver<()>) {
        let (sender, returned) = channel();
        let memory_trimmer = MemoryTrimmer::start(budget, quiet, move || sender.send(()).unwrap()).unwrap();
        // The thread is known before it is called.
        while budget.peak().thread.get().is_none() {
            std::thread::yield_now();
        }
        (memory_trimmer, returned)
    }

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn memory_is_returned_once_after_each_peak() {
        let budget = Budget::default();
        let (memory_trimmer, returned) = started(&budget, Duration::from_millis(1));
        let mut account = budget.account();
        for peak in [100 << 20, 40 << 20] {
            account.on_change(0, peak);
            account.on_change(peak, peak * 3 / 4);
            assert!(!budget.peak().is_called.load(Ordering::Acquire), "three quarters are still held");
            account.on_change(peak * 3 / 4, 0);
            returned.recv_timeout(LONG).unwrap();
            while budget.peak().is_called.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
        account.on_change(0, LEAST - 1);
        account.on_change(LEAST - 1, 0);
        assert!(!budget.peak().is_called.load(Ordering::Acquire), "too little to be worth the while");
        drop(memory_trimmer);
        assert!(returned.recv().is_err(), "the thread has ended, and returned nothing more");
    }

    #[test]
    fn memory_that_is_used_again_is_not_returned() {
        let budget = Budget::default();
        let (memory_trimmer, returned) = started(&budget, LONG);
        let mut account = budget.account();
        account.on_change(0, 100 << 20);
        account.on_change(100 << 20, 0);
        while budget.peak().highest.load(Ordering::Acquire) > 0 {
            std::thread::yield_now();
        }
        account.on_change(0, 90 << 20);
        drop(memory_trimmer);
        assert!(returned.recv().is_err());
        assert_eq!(
            budget.peak().highest.load(Ordering::Acquire),
            100 << 20,
            "the peak is still to come back from"
        );
    }
}
