//! A download together with its times: what moves from connection to connection until it is over.

use crate::download::{Download, Standing};
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
    /// What was there when something last arrived.
    heard: (u64, u16, Instant),
}

impl Transfer {
    pub(crate) fn new(download: Download, now: Instant, usage: Usage) -> Transfer {
        Transfer { download, began: now, usage, answered: None, heard: (0, 0, now) }
    }

    /// Something may have happened: notes when.
    pub(crate) fn on_turn(&mut self, now: Instant) {
        if self.answered.is_none() && self.download.status() != 0 {
            self.answered = Some(now);
        }
    }

    /// The silence before this is not the server's fault.
    pub(crate) fn on_connected(&mut self, now: Instant) {
        self.heard.2 = now;
    }

    /// Time has passed: gives up when nothing arrived for `silence`.
    pub(crate) fn on_tick(&mut self, now: Instant, silence: Duration) {
        let (bytes, status) = (self.download.transferred(), self.download.status());
        if (bytes, status) != (self.heard.0, self.heard.1) {
            self.heard = (bytes, status, now);
        }
        // One that waits for its turn among others is not the server's fault either.
        if self.download.standing() == Standing::Running && !self.download.is_waiting() {
            if !silence.is_zero() && now.saturating_since(self.heard.2) >= silence {
                let seconds = silence.as_millis() / 1_000;
                self.download.fail(GetError::Timeout(Silence::Transferring, seconds));
            }
        } else {
            self.heard.2 = now;
        }
    }
}
