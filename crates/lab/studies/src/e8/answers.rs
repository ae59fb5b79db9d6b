//! How long small requests took, and which had no answer. Arithmetic only.

use serde::Serialize;

/// With so many digits after the point: what the results keep.
pub(super) fn round(figure: f64, digits: i32) -> f64 {
    let unit = 10_f64.powi(digits);
    (figure * unit).round() / unit
}

/// The answers to the small requests of one connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Answers {
    /// From asking to the last byte, in milliseconds, sorted.
    pub(super) latencies_ms: Vec<f64>,
    /// Requests without an answer when the download was over or given up.
    pub(super) unanswered: usize,
}

impl Answers {
    /// Another request: its latency in milliseconds, if it was answered.
    pub(super) fn add(&mut self, latency: Option<f64>) {
        match latency {
            Some(ms) => self.latencies_ms.push(round(ms, 3)),
            None => self.unanswered += 1,
        }
        self.latencies_ms.sort_by(f64::total_cmp);
    }

    /// Those of both.
    pub(super) fn join(&mut self, other: &Answers) {
        self.latencies_ms.extend(&other.latencies_ms);
        self.latencies_ms.sort_by(f64::total_cmp);
        self.unanswered += other.unanswered;
    }

    /// How many requests there were.
    pub(super) fn asked(&self) -> usize {
        self.latencies_ms.len() + self.unanswered
    }

    /// What this many hundredths of the requests did not take longer than: infinite where that many were not answered, none without
    /// requests.
    pub(super) fn percentile(&self, percent: usize) -> Option<f64> {
        let rank = (self.asked() * percent).div_ceil(100).max(1);
        let answered = self.latencies_ms.get(rank - 1).copied();
        answered.or_else(|| (self.asked() > 0).then_some(f64::INFINITY))
    }
}

/// The small requests of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct SmallRequests {
    /// On the connection of the download.
    pub(super) same: Answers,
    /// On another connection.
    pub(super) other: Answers,
}
