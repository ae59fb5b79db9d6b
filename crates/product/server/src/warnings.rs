//! Warnings for the operator while a server runs, with a limited rate.
//!
//! How to use it. [`start`] makes the [`Warnings`] of a server and the [`Printer`] that writes them. `Warnings` is cheap to
//! clone, and any thread may call [`Warnings::note`]: one addition to an atomic counter, and a wake-up of the printing thread
//! if the counter was 0. It never blocks and never writes. `Handler::warnings` gives the clone that a handler was made with.
//! State machines below this crate know no warnings: they export counters that only rise, and their owner hands these totals
//! to a [`Watch`], which notes by how much each has risen. To add a warning, add a variant to [`Warning`] and a row to
//! [`TEXTS`].
//!
//! What is printed. One line for each kind of warning, at most every ten seconds, with the number of events since the last
//! such line. The first line follows the first event by a fifth of a second. Nothing runs while nothing is noted.
//!
//! A thread of its own prints, because a write to standard error can block. The end of the program waits for it for
//! half a second at most.

use rustix::time::{ClockId, clock_gettime};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// How long events are gathered before the first line about them.
const GATHER: Duration = Duration::from_millis(200);
/// From one line about a kind of warning to the next.
const INTERVAL: Duration = Duration::from_secs(10);
/// How long the end of the program waits for standard error.
const PATIENCE: Duration = Duration::from_millis(500);

/// Something that an operator should hear of. The discriminant is the row in [`TEXTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// Clients that were not let in because too many handshakes are under way.
    HandshakesRefused,
    /// Connections that had to wait for want of descriptors or memory.
    ConnectionsRefused,
    /// Connections that were refused because there are too many: in all, of an address or of a network.
    ConnectionsBeyondLimit,
    /// Clients that were not let in because their address or network has had its share of handshakes.
    HandshakeSharesExceeded,
    /// Responses with status 503.
    Unavailable,
    /// Requests or connections that were ended because the memory budget is used up.
    BudgetExceeded,
    /// Connections that were ended because the client made no progress.
    SlowClients,
    /// Lines of the access log that were lost.
    LogLinesLost,
    /// The access log could not be opened anew; lines go where they went before.
    LogNotReopened,
    /// The file of ticket keys could not be read or rotated; the keys in use go on.
    TicketKeysUnusable,
    /// Connections from a proxy that began with no header, or a wrong one.
    ProxyHeadersWrong,
}

/// How many kinds of warnings there are.
const KINDS: usize = TEXTS.len();

/// What has run out may be of the process or of its budget.
const OUT: &str =
    "descriptors or memory have run out, or what one address may hold; see ulimit -n and --memory";

/// What happened, after a number; and what to do about it.
const TEXTS: [(&str, &str); 11] = [
    ("new QUIC connections were dropped", "too many handshakes are under way"),
    ("TCP connections had to wait", OUT),
    ("connections were refused", "there are as many as --max-connections and its companions allow"),
    ("new QUIC connections were dropped", "their addresses had too many handshakes under way"),
    ("responses with status 503", OUT),
    ("requests or connections were ended", "the memory budget is used up"),
    ("connections were ended", "the client made no progress"),
    (
        "lines of the access log were lost",
        "the disk is full or too slow, or the reader of the log has stopped",
    ),
    ("times the access log could not be opened anew", "lines go on to the old file; look at its folder"),
    (
        "times the file of --ticket-keys could not be used",
        "it is gone, cut, or open to all users; the keys in use go on",
    ),
    (
        "connections from proxies were closed",
        "they began without a header of the PROXY protocol, or with a wrong one; configure the proxies to send it, or leave them out of --proxy-protocol-from",
    ),
];

#[derive(Debug, Default)]
struct Shared {
    /// Events that no line has told yet, by kind.
    untold: [AtomicU64; KINDS],
    stop: AtomicBool,
    thread: OnceLock<Thread>,
}

/// Where events are noted. Clones are the same place. The default one counts, and nothing is printed.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<Shared>);

impl Warnings {
    /// `count` events happened. Any thread may say so; none waits.
    pub fn note(&self, warning: Warning, count: u64) {
        if count == 0 {
            return;
        }
        let Some(untold) = self.0.untold.get(warning as usize) else { return };
        if untold.fetch_add(count, Ordering::Relaxed) == 0
            && let Some(thread) = self.0.thread.get()
        {
            thread.unpark();
        }
    }

    /// Events of a kind that no line has told yet.
    pub fn untold(&self, warning: Warning) -> u64 {
        self.0.untold.get(warning as usize).map_or(0, |untold| untold.load(Ordering::Relaxed))
    }

    /// Notes counters that only rise.
    pub fn watch(&self) -> Watch {
        Watch { warnings: self.clone(), seen: [0; KINDS] }
    }
}

/// Notes by how much counters have risen. Each owner of counters has one of its own.
#[derive(Debug)]
pub struct Watch {
    warnings: Warnings,
    seen: [u64; KINDS],
}

impl Watch {
    /// The counter of this kind shows `total`.
    pub fn on_total(&mut self, warning: Warning, total: u64) {
        if let Some(seen) = self.seen.get_mut(warning as usize) {
            self.warnings.note(warning, total.saturating_sub(*seen));
            *seen = total;
        }
    }
}

/// The printing thread. Dropping it prints what was noted until then.
#[derive(Debug)]
pub struct Printer {
    warnings: Warnings,
    thread: Option<JoinHandle<()>>,
    done: Receiver<()>,
}

/// Prints warnings to `output`, which is standard error but for tests.
///
/// # Errors
/// The operating system has no thread left.
pub fn start(output: impl Write + Send + 'static) -> std::io::Result<(Warnings, Printer)> {
    start_with(output, INTERVAL)
}

fn start_with(
    output: impl Write + Send + 'static,
    interval: Duration,
) -> std::io::Result<(Warnings, Printer)> {
    let warnings = Warnings::default();
    let shared = Arc::clone(&warnings.0);
    let (finished, done) = sync_channel(1);
    let thread = std::thread::Builder::new().name("warnings".to_owned()).spawn(move || {
        Lines { output, shared, interval, due: [None; KINDS], printed: [None; KINDS] }.run();
        // The receiver may have ended.
        let _ = finished.try_send(());
    })?;
    let _ = warnings.0.thread.set(thread.thread().clone());
    // Warnings noted before the thread started have woken no thread.
    thread.thread().unpark();
    Ok((warnings.clone(), Printer { warnings, thread: Some(thread), done }))
}

impl Drop for Printer {
    fn drop(&mut self) {
        self.warnings.0.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        thread.thread().unpark();
        if self.done.recv_timeout(PATIENCE).is_ok() {
            // A panic in there has been reported by its hook already.
            let _ = thread.join();
        }
    }
}

/// What the thread owns.
struct Lines<W> {
    output: W,
    shared: Arc<Shared>,
    interval: Duration,
    /// When a line about this kind is due, by [`uptime`], if anything happened.
    due: [Option<Duration>; KINDS],
    /// When the last one was printed.
    printed: [Option<Duration>; KINDS],
}

impl<W: Write> Lines<W> {
    fn run(mut self) {
        loop {
            let stop = self.shared.stop.load(Ordering::Acquire);
            let now = uptime();
            let next = (0..KINDS).filter_map(|kind| self.look(kind, now, stop)).min();
            if stop {
                return;
            }
            match next {
                Some(at) => std::thread::park_timeout(at.saturating_sub(now)),
                None => std::thread::park(),
            }
        }
    }

    /// Prints the line about this kind if it is due, or at the end. Returns when it is due.
    fn look(&mut self, kind: usize, now: Duration, stop: bool) -> Option<Duration> {
        let (untold, due, printed) =
            (self.shared.untold.get(kind)?, self.due.get_mut(kind)?, self.printed.get_mut(kind)?);
        if untold.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let earliest = printed.map_or(now, |printed| printed + self.interval);
        let at = *due.get_or_insert(earliest.max(now + GATHER));
        if at > now && !stop {
            return Some(at);
        }
        (*due, *printed) = (None, Some(now));
        let count = untold.swap(0, Ordering::Relaxed);
        let (what, why) = TEXTS.get(kind)?;
        // A failed write to standard error cannot be reported.
        let _ = writeln!(self.output, "tercel: warning: {count} {what}: {why}");
        None
    }
}

/// The monotonic clock. Warnings have to do with no connection's time.
pub(crate) fn uptime() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}
