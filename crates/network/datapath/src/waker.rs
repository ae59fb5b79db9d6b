//! How another thread interrupts a port's wait: an eventfd, and a flag that keeps repeated wakes off the kernel.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};

#[derive(Debug)]
struct Shared {
    event: OwnedFd,
    /// Set by the first wake and cleared by the wait that it ends.
    pending: AtomicBool,
}

/// Interrupts the wait of the port that it came from: the present one, or the next. Whatever the worker should find
/// then must be in its queue before `wake` is called.
#[derive(Clone, Debug)]
pub struct Waker(Arc<Shared>);

impl Waker {
    /// A waker for one port.
    ///
    /// # Errors
    /// When the system has no descriptors left.
    pub fn new() -> io::Result<Waker> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Waker(Arc::new(Shared { event, pending: AtomicBool::new(false) })))
    }

    /// Ends the wait. Cheap when the port has already been woken and has not looked yet.
    pub fn wake(&self) {
        if !self.0.pending.swap(true, Ordering::AcqRel) {
            // Fails only when the counter is full, and then the port is awake anyway.
            let _ = rustix::io::write(&self.0.event, &1u64.to_ne_bytes());
        }
    }

    /// Makes the waker ready for the next wake. Called by the port alone, before it returns to its worker, which then
    /// reads its queue: a wake that comes in between is served by that reading.
    pub fn clear(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.0.event, &mut count);
        self.0.pending.swap(false, Ordering::AcqRel);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}
