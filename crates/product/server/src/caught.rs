//! Panics in what an application provides end one request, and not its connection or thread.

use std::task::Poll;

/// Calls what may panic.
pub(crate) fn caught<T>(act: impl FnOnce() -> T) -> Result<T, ()> {
    // What panicked is not used again: its future or body is dropped.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).map_err(drop)
}

/// Polls a future that may panic.
pub(crate) fn poll_caught<T>(poll: impl FnOnce() -> Poll<T>) -> Poll<Result<T, ()>> {
    match caught(poll) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(result)) => Poll::Ready(Ok(result)),
        Err(()) => Poll::Ready(Err(())),
    }
}
