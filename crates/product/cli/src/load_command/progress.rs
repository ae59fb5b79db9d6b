//! The line that changes while load is generated: rate, errors and percentiles so far.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use load::{Record, Watcher};
use std::io::IsTerminal as _;
use std::time::Duration;

/// The line; it vanishes when this is dropped.
pub(super) struct Line {
    /// It has a clock of its own, which says how long the line is there.
    bar: ProgressBar,
    /// When measuring began.
    began: Option<Duration>,
    /// What was done when the rate was last looked at, and when.
    last: (u64, Duration),
    rate: f64,
    /// What is said first.
    prefix: String,
}

/// Over this many seconds the rate is taken.
const WINDOW_S: f64 = 0.5;

impl Line {
    /// On standard error, if that is a terminal. It begins with `prefix`.
    pub(super) fn on_terminal(prefix: String) -> Option<Line> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        bar.set_style(
            ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        bar.set_message(format!("{prefix}connecting"));
        bar.tick();
        Some(Line { bar, began: None, last: (0, Duration::ZERO), rate: 0.0, prefix })
    }
}

impl Watcher for Line {
    fn on_progress(&mut self, record: &Record) {
        let now = self.bar.elapsed();
        let began = *self.began.get_or_insert_with(|| {
            self.last = (record.succeeded, now);
            now
        });
        let passed = now.saturating_sub(self.last.1).as_secs_f64();
        if passed >= WINDOW_S {
            self.rate = record.succeeded.saturating_sub(self.last.0) as f64 / passed;
            self.last = (record.succeeded, now);
        }
        let ms = |share: f64| record.latency.quantile(share).as_secs_f64() * 1e3;
        self.bar.set_message(format!(
            "{}{:.1} s  {:.0}/s  {} done  {} failed  p50 {:.2} ms  p99 {:.2} ms  p99.9 {:.2} ms  max {:.2} ms",
            self.prefix,
            now.saturating_sub(began).as_secs_f64(),
            self.rate,
            record.succeeded,
            record.failures.total(),
            ms(0.5),
            ms(0.99),
            ms(0.999),
            record.latency.longest().as_secs_f64() * 1e3,
        ));
        self.bar.tick();
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
