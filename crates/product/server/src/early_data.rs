//! Requests in early data, which an attacker may send a second time. RFC 8470, RFC 8446 §8.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// What becomes of requests that arrive before the handshake is complete, of clients that come back with a ticket.
///
/// An attacker can send a copy of such a request. A server takes each ticket's early data once; servers that share a file of ticket
/// keys take it once each. Source: RFC 8446 §8, RFC 8470 §3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EarlyData {
    /// Clients are not told that they may send any.
    #[default]
    Off,
    /// GET, HEAD, OPTIONS and TRACE are answered; other requests get 425 (Too Early), and their clients repeat them when the
    /// handshake is complete. Source: RFC 8470 §5.2.
    SafeMethods,
    /// All are handed over. The application decides by [`ConnectionInfo::is_early`](crate::ConnectionInfo::is_early), and may wait for
    /// [`ConnectionInfo::handshake_done`](crate::ConnectionInfo::handshake_done) or answer 425.
    Application,
}

/// Whether a request may be carried out twice. Source: RFC 9110 §9.2.1.
pub(crate) fn is_safe(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE")
}

/// What early requests of a connection wait for: the end of its handshake.
pub(crate) struct Gate {
    /// Those that wait; `None` once the handshake is complete.
    waiting: Mutex<Option<Vec<Waker>>>,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate { waiting: Mutex::new(Some(Vec::new())) }
    }
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Option<Vec<Waker>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handshake is complete.
    pub(crate) fn open(&self) {
        let waiting = self.lock().take();
        waiting.into_iter().flatten().for_each(Waker::wake);
    }

    /// Waits until the handshake is complete.
    pub(crate) async fn opened(&self) {
        poll_fn(|context| self.poll(context)).await;
    }

    fn poll(&self, context: &Context<'_>) -> Poll<()> {
        let mut waiting = self.lock();
        let Some(wakers) = &mut *waiting else { return Poll::Ready(()) };
        if !wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            wakers.push(context.waker().clone());
        }
        Poll::Pending
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Gate").field("is_open", &self.lock().is_none()).finish()
    }
}
