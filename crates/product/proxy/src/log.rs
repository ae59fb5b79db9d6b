//! What is said of failures: a line for an upstream at most once a second, with the number of those that no line has told.

use http::uri::PathAndQuery;
use http::{Method, Uri};
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::time::{Duration, Instant};

/// From one line about an upstream's failures to the next.
const INTERVAL: Duration = Duration::from_secs(1);
/// Of a target, in bytes.
const LONGEST: usize = 200;

static SAY: OnceLock<fn(&str)> = OnceLock::new();

/// Lines go to `say` from now on, without the end of a line. Without it nothing is said. The first call counts.
pub fn log_to(say: fn(&str)) {
    let _ = SAY.set(say);
}

pub(crate) fn say(text: &str) {
    if let Some(say) = SAY.get() {
        say(text);
    }
}

/// When what was last said of an upstream.
#[derive(Debug, Default)]
pub(crate) struct Notice {
    /// Milliseconds since the first.
    next: AtomicU64,
    untold: AtomicU64,
    first: OnceLock<Instant>,
}

impl Notice {
    /// Whether to say something now: with how many failures that no line has told.
    fn untold(&self, now: Instant) -> Option<u64> {
        let first = *self.first.get_or_init(|| now);
        let elapsed = u64::try_from(now.saturating_duration_since(first).as_millis()).unwrap_or(u64::MAX);
        let next = self.next.load(Ordering::Relaxed);
        let after = elapsed.saturating_add(INTERVAL.as_millis() as u64);
        let is_due = elapsed >= next
            && self.next.compare_exchange(next, after, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_due {
            Some(self.untold.swap(0, Ordering::Relaxed))
        } else {
            self.untold.fetch_add(1, Ordering::Relaxed);
            None
        }
    }

    /// Warns of a failure.
    pub(crate) fn warn(&self, now: Instant, text: impl FnOnce() -> String) {
        match self.untold(now) {
            Some(0) => say(&format!("tercel: warning: proxy: {}", text())),
            Some(more) => say(&format!("tercel: warning: proxy: {} (and {more} more failures)", text())),
            None => {}
        }
    }
}

/// What a client has asked for. Its text is made when there is something to say, which is rare.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    /// The path for which another server is asked whether the client may have it.
    pub(crate) asked: Option<PathAndQuery>,
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.asked {
            write!(out, "GET {path} for ")?;
        }
        write!(out, "{} {}", self.method, self.uri)
    }
}

impl Target {
    /// Its text, such that it cannot look like anything else.
    pub(crate) fn shown(&self) -> String {
        shown(&self.to_string())
    }
}

/// What a client sent, such that it cannot look like anything else.
fn shown(sent: &str) -> String {
    let bytes = sent.as_bytes();
    let cut = bytes.get(..LONGEST).unwrap_or(bytes);
    let dots = if cut.len() < bytes.len() { "…" } else { "" };
    format!("{}{dots}", cut.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, an upstream that is down could fill the disk with lines.
    #[test]
    fn failures_are_told_once_a_second_with_their_number() {
        let notice = Notice::default();
        let now = Instant::now();
        assert_eq!(notice.untold(now), Some(0));
        for _ in 0..5 {
            assert_eq!(notice.untold(now + Duration::from_millis(999)), None);
        }
        assert_eq!(notice.untold(now + Duration::from_millis(1_001)), Some(5));
        assert_eq!(notice.untold(now + Duration::from_millis(1_002)), None);
        assert_eq!(notice.untold(now + Duration::from_secs(3)), Some(1));
    }

    #[test]
    fn what_a_client_sent_is_escaped_and_cut() {
        assert_eq!(shown("/a\n\u{1b}é"), "/a\\n\\x1b\\xc3\\xa9");
        let long = shown(&"a".repeat(1_000));
        assert_eq!((long.len(), long.ends_with('…')), (LONGEST + '…'.len_utf8(), true));
    }
}
