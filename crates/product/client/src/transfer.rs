//! A download together with its times: what moves from connection to connection until it is over.

use crate::download::{Download, DownloadState};
use crate::error::{GetError, Silence};
use crate::usage::Usage;
use base::time::{Duration, Instant};

/// A download and when what happened.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) download: Download,
    pub(crate) began: Instant,
    pub(crate) usage: Usage,
    /// When the first answer came.
    pub(crate) answered: Option<Instant>,
    /// What had arrived when it was last looked at: bytes, and the last status.
    seen: (u64, u16),
    /// When it came to its connection.
    waits_since: Instant,
}

impl Transfer {
    pub(crate) fn new(download: Download, now: Instant, usage: Usage) -> Transfer {
        Transfer { download, began: now, usage, answered: None, seen: (0, 0), waits_since: now }
    }

    /// Something may have happened: notes when.
    pub(crate) fn on_turn(&mut self, now: Instant) {
        if self.answered.is_none() && self.download.status() != 0 {
            self.answered = Some(now);
        }
    }

    /// The silence before this is not the server's fault.
    pub(crate) fn on_connected(&mut self, now: Instant) {
        self.waits_since = now;
    }

    /// Whether anything arrived since the last call.
    pub(crate) fn has_advanced(&mut self) -> bool {
        let present = (self.download.transferred(), self.download.status());
        core::mem::replace(&mut self.seen, present) != present
    }

    /// Time has passed. The connection was `heard` at that time last: a server may serve its requests one after the other,
    /// so that silence about one of them means nothing. Gives up after a silence of `patience`.
    pub(crate) fn on_tick(&mut self, now: Instant, heard: Instant, patience: Duration) {
        if self.download.is_held_up() {
            // Nor is this silence.
            self.waits_since = now;
        }
        let since = self.waits_since.max(heard);
        let asked = self.download.standing() == DownloadState::Running && !self.download.is_waiting();
        if asked && !patience.is_zero() && now.saturating_since(since) >= patience {
            let seconds = patience.as_millis() / 1_000;
            self.download.fail(GetError::Timeout(Silence::Transferring, seconds));
        }
    }
}
