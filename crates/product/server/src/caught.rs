//! Panics in what an application provides end one request, and not its connection or thread.

use std::task::Poll;

/// Calls what may panic.
#[inline]
pub(crate) fn caught<T>(act: impl FnOnce() -> T) -> Result<T, ()> {
    // What panicked is not used again: its future or body is dropped. The result is left here, because a response that goes through
    // catch_unwind is copied several times.
    let mut result = None;
    let call = std::panic::AssertUnwindSafe(|| result = Some(act()));
    std::panic::catch_unwind(call).map_err(drop)?;
    result.ok_or(())
}

/// Polls a future that may panic.
#[inline]
pub(crate) fn poll_caught<T>(poll: impl FnOnce() -> Poll<T>) -> Poll<Result<T, ()>> {
    match caught(poll) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(result)) => Poll::Ready(Ok(result)),
        Err(()) => Poll::Ready(Err(())),
    }
}
