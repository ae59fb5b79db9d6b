//! The percentiles of a run, as machines and people read them.

use super::spans::Spans;
use core::fmt;
use serde::Serialize;

/// Percentiles of spans of time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// How many spans there are.
    pub count: u64,
    /// The shortest.
    pub min_us: f64,
    /// The mean.
    pub mean_us: f64,
    /// Half are not longer.
    pub p50_us: f64,
    /// 90 % are not longer.
    pub p90_us: f64,
    /// 99 % are not longer.
    pub p99_us: f64,
    /// 99.9 % are not longer.
    pub p99_9_us: f64,
    /// 99.99 % are not longer.
    pub p99_99_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl Latency {
    /// Of these spans; all zero when there are none.
    pub fn of(spans: &Spans) -> Latency {
        if spans.count() == 0 {
            return Latency::default();
        }
        let us = |span: base::time::Duration| span.as_nanos() as f64 / 1e3;
        Latency {
            count: spans.count(),
            min_us: us(spans.shortest()),
            mean_us: us(spans.mean()),
            p50_us: us(spans.quantile(0.5)),
            p90_us: us(spans.quantile(0.9)),
            p99_us: us(spans.quantile(0.99)),
            p99_9_us: us(spans.quantile(0.999)),
            p99_99_us: us(spans.quantile(0.9999)),
            max_us: us(spans.longest()),
        }
    }
}

/// A span of time, given in microseconds, with a fitting unit.
pub fn span(us: f64) -> String {
    match us {
        us if us < 999.5 => format!("{us:.0} µs"),
        us if us < 9_995.0 => format!("{:.2} ms", us / 1e3),
        us if us < 999_500.0 => format!("{:.0} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = [self.p50_us, self.p90_us, self.p99_us, self.p99_9_us, self.p99_99_us, self.max_us];
        for (name, us) in ["p50", "p90", "p99", "p99.9", "p99.99", "max"].into_iter().zip(figures) {
            write!(f, "{name} {}  ", span(us))?;
        }
        write!(f, "mean {}", span(self.mean_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_fitting_units() {
        let table =
            [(0.0, "0 µs"), (999.0, "999 µs"), (1_500.0, "1.50 ms"), (99_000.0, "99 ms"), (2e6, "2.00 s")];
        table.into_iter().for_each(|(us, text)| assert_eq!(span(us), text));
    }
}
