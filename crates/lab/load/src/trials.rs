//! The same run several times: what varies, and by how much.

use super::latency::span;
use super::report::Report;
use core::fmt;
use report::stats::Summary;
use serde::Serialize;

/// Figures of several runs, each with its mean and standard deviation.
#[derive(Clone, Debug, Serialize)]
pub struct Trials {
    /// Requests with a status below 400 a second.
    pub requests_per_second: Summary,
    /// Bytes of content a second.
    pub content_bytes_per_second: Summary,
    /// Seconds that each took.
    pub seconds: Summary,
    /// Half of the latencies are not longer, in microseconds.
    pub p50_us: Summary,
    /// 99 % are not longer.
    pub p99_us: Summary,
    /// The longest.
    pub max_us: Summary,
    /// CPU seconds of the generator for each million requests, which is microseconds for each.
    pub generator_cpu_us_per_request: Summary,
    /// The same of the server, where it was looked at every time.
    pub server_cpu_us_per_request: Option<Summary>,
    /// Requests that failed.
    pub failed: Summary,
}

impl Trials {
    /// Of these runs.
    pub fn of(runs: &[Report]) -> Trials {
        let of = |figure: fn(&Report) -> f64| Summary::of(runs.iter().map(figure));
        let server: Option<Vec<f64>> =
            runs.iter().map(|run| run.server.map(|server| server.cpu_us_per_request)).collect();
        Trials {
            requests_per_second: of(|run| run.requests_per_second),
            content_bytes_per_second: of(|run| run.content_bytes_per_second),
            seconds: of(|run| run.seconds),
            p50_us: of(|run| run.latency.p50_us),
            p99_us: of(|run| run.latency.p99_us),
            max_us: of(|run| run.latency.max_us),
            generator_cpu_us_per_request: of(|run| run.generator.cpu_us_per_request),
            server_cpu_us_per_request: server.map(Summary::of),
            failed: of(|run| run.failed as f64),
        }
    }
}

/// Its heading, its values, and how one is written.
type Column<'a> = (&'static str, &'a Summary, fn(f64) -> String);

/// A row for each trial, and one each for mean and standard deviation.
impl fmt::Display for Trials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.seconds.values.len();
        let columns: [Column<'_>; 6] = [
            ("requests/s", &self.requests_per_second, |rate| format!("{rate:.0}")),
            ("p50", &self.p50_us, span),
            ("p99", &self.p99_us, span),
            ("max", &self.max_us, span),
            ("seconds", &self.seconds, |seconds| format!("{seconds:.3}")),
            ("failed", &self.failed, |failed| format!("{failed:.1}")),
        ];
        write!(f, "{:<10}", "trial")?;
        columns.iter().try_for_each(|(name, ..)| write!(f, "{name:>12}"))?;
        let mut row = |name: &str, figure: &dyn Fn(&Summary) -> f64| {
            write!(f, "\n{name:<10}")?;
            columns.iter().try_for_each(|(_, summary, words)| write!(f, "{:>12}", words(figure(summary))))
        };
        for trial in 0..count {
            row(&(trial + 1).to_string(), &|summary| summary.values.get(trial).copied().unwrap_or(0.0))?;
        }
        row("mean", &|summary| summary.mean)?;
        row("sd", &|summary| summary.sd)
    }
}
