//! How a player fared.

use base::time::{Duration, Instant};

/// What a viewer has seen.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaybackRecord {
    /// When it was wanted.
    pub began: Instant,
    /// From then to the first picture; `None` when there never was one.
    pub startup: Option<Duration>,
    /// How often it stood still, after it had begun to play.
    pub stalls: u64,
    /// For how long altogether.
    pub stalled: Duration,
    /// What was played.
    pub played: Duration,
    /// Segments of another quality than the one before.
    pub switches: u64,
    /// What was fetched of each quality of the picture, the lowest first.
    pub qualities: Vec<Duration>,
    /// The mean bitrate of that.
    pub bits_per_second: f64,
    /// Everything that was fetched.
    pub bytes: u64,
    /// Fetches that failed.
    pub failures: u64,
}

impl PlaybackRecord {
    pub(super) fn new(began: Instant, qualities: usize) -> PlaybackRecord {
        PlaybackRecord {
            began,
            startup: None,
            stalls: 0,
            stalled: Duration::ZERO,
            played: Duration::ZERO,
            switches: 0,
            qualities: vec![Duration::ZERO; qualities],
            bits_per_second: 0.0,
            bytes: 0,
            failures: 0,
        }
    }

    pub(super) fn on_segment(&mut self, quality: usize, plays: Duration, before: Option<usize>) {
        if let Some(total) = self.qualities.get_mut(quality) {
            *total = *total + plays;
        }
        self.switches += u64::from(before.is_some_and(|before| before != quality));
    }

    pub(super) fn on_stall(&mut self, span: Duration) {
        self.stalls += 1;
        self.stalled = self.stalled + span;
    }

    pub(super) fn settle(&mut self, bitrates: &[u64]) {
        let parts = self.qualities.iter().zip(bitrates);
        let bits: f64 = parts.map(|(span, bitrate)| span.as_secs_f64() * *bitrate as f64).sum();
        let seconds: f64 = self.qualities.iter().map(|span| span.as_secs_f64()).sum();
        self.bits_per_second = if seconds > 0.0 { bits / seconds } else { 0.0 };
    }

    /// The share of the time since the first picture in which it stood still.
    pub fn stall_ratio(&self) -> f64 {
        let (stalled, played) = (self.stalled.as_secs_f64(), self.played.as_secs_f64());
        if stalled + played > 0.0 { stalled / (stalled + played) } else { 0.0 }
    }
}
