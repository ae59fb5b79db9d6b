//! What a run is expected to achieve, written as `p99<5ms`; whether it did.

use super::report::Report;
use core::fmt;
use core::str::FromStr;
use serde::Serialize;

/// How expectations are written.
pub const GRAMMAR: &str = "\
METRIC<VALUE, with <, <=, >, >= or =
  latency     min mean p50 p90 p99 p99.9 p99.99 max, as in p99<5ms (us, ms or s)
  handshakes  the same with handshake_ before, as in handshake_p50<3ms
  rate        requests a second, as in rate>1000 or rate>=20k
  bytes       content a second, as in bytes>100MB (kB, MB or GB)
  errors      whatever failed, as a number or a share, as in errors=0 or errors<1%";

/// A figure of a report.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Metric {
    Rate,
    Bytes,
    Errors,
    ErrorShare,
    Latency(Percentile),
    Handshake(Percentile),
}

type Percentile = &'static str;

/// The names of what reports know about spans of time.
const PERCENTILES: [Percentile; 8] = ["min", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Below,
    AtMost,
    Above,
    AtLeast,
    Equal,
}

/// The longer ones first: one begins with the other.
const RELATIONS: [(&str, Relation); 5] = [
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("<", Relation::Below),
    (">", Relation::Above),
    ("=", Relation::Equal),
];

/// An expectation.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    text: String,
    metric: Metric,
    relation: Relation,
    /// In microseconds, bytes, shares of 1, or as it is.
    value: f64,
}

/// What became of an expectation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExpectationResult {
    /// As it was written.
    pub expectation: String,
    /// What was measured: microseconds, bytes or requests a second, a number, or a share of 1; none if nothing was.
    pub measured: Option<f64>,
    /// Whether it was met.
    pub met: bool,
    /// What was measured, for people.
    #[serde(skip)]
    words: String,
}

impl fmt::Display for ExpectationResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let met = if self.met { "met" } else { "NOT MET" };
        write!(f, "{met:<8} {} ({})", self.expectation, self.words)
    }
}

impl FromStr for Expectation {
    type Err = String;

    fn from_str(text: &str) -> Result<Expectation, String> {
        let wrong = |what: String| format!("{text:?} {what}; write\n{GRAMMAR}");
        let at = text.find(['<', '>', '=']).ok_or_else(|| wrong("has no <, > or =".into()))?;
        let (name, rest) = text.split_at(at);
        let found = RELATIONS.iter().find_map(|(sign, relation)| Some((rest.strip_prefix(sign)?, *relation)));
        let (value, relation) = found.ok_or_else(|| wrong("has no <, > or =".into()))?;
        let (name, value) = (name.trim(), value.trim());
        let metric = match (name, value.ends_with('%')) {
            ("rate", _) => Metric::Rate,
            ("bytes", _) => Metric::Bytes,
            ("errors", true) => Metric::ErrorShare,
            ("errors", false) => Metric::Errors,
            (name, _) => {
                let (bare, is_handshake) = match name.strip_prefix("handshake_") {
                    Some(bare) => (bare, true),
                    None => (name, false),
                };
                let known = PERCENTILES.into_iter().find(|known| *known == bare);
                let known =
                    known.ok_or_else(|| wrong(format!("has no known metric before the {}", &rest[..1])))?;
                if is_handshake { Metric::Handshake(known) } else { Metric::Latency(known) }
            }
        };
        let value = read(value, metric.units()).ok_or_else(|| {
            let units: Vec<&str> =
                metric.units().iter().map(|(unit, _)| *unit).filter(|unit| !unit.is_empty()).collect();
            let units = if units.is_empty() { String::new() } else { format!(" with {}", units.join(", ")) };
            wrong(format!("needs a number{units} after the sign"))
        })?;
        Ok(Expectation { text: text.to_owned(), metric, relation, value })
    }
}

/// A number and its unit.
fn read(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    Some(number.parse::<f64>().ok()? * factor)
}

impl Metric {
    const fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Metric::Latency(_) | Metric::Handshake(_) => &[("us", 1.0), ("µs", 1.0), ("ms", 1e3), ("s", 1e6)],
            Metric::Rate => &[("", 1.0), ("k", 1e3), ("M", 1e6)],
            Metric::Bytes => &[("", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9)],
            Metric::ErrorShare => &[("%", 0.01)],
            Metric::Errors => &[("", 1.0)],
        }
    }

    /// Of a run; `None` when there was nothing to measure.
    fn of(self, run: &Report) -> Option<f64> {
        let errors = run.failed + run.not_begun + run.connection_failures.total();
        let (spans, name) = match self {
            Metric::Rate => return Some(run.requests_per_second),
            Metric::Bytes => return Some(run.content_bytes_per_second),
            Metric::Errors => return Some(errors as f64),
            Metric::ErrorShare => return Some(errors as f64 / (run.succeeded + errors).max(1) as f64),
            Metric::Latency(name) => (&run.latency, name),
            Metric::Handshake(name) => (&run.handshake, name),
        };
        let figure = match name {
            "min" => spans.min_us,
            "mean" => spans.mean_us,
            "p50" => spans.p50_us,
            "p90" => spans.p90_us,
            "p99" => spans.p99_us,
            "p99.9" => spans.p99_9_us,
            "p99.99" => spans.p99_99_us,
            _ => spans.max_us,
        };
        (spans.count > 0).then_some(figure)
    }

    fn words(self, value: f64) -> String {
        match self {
            Metric::Rate => format!("{value:.0}/s"),
            Metric::Bytes => format!("{:.2} MB/s", value / 1e6),
            Metric::Errors => format!("{value:.0}"),
            Metric::ErrorShare => format!("{:.3} %", value * 100.0),
            Metric::Latency(_) | Metric::Handshake(_) => super::latency::span(value),
        }
    }
}

impl Expectation {
    /// Whether it is about failures: it says how many are too many.
    pub fn is_about_errors(&self) -> bool {
        matches!(self.metric, Metric::Errors | Metric::ErrorShare)
    }

    /// Whether these runs meet it: by their mean, but errors by their sum or by the worst of the shares.
    pub fn judge(&self, runs: &[Report]) -> ExpectationResult {
        let figures: Option<Vec<f64>> = runs.iter().map(|run| self.metric.of(run)).collect();
        let figures = figures.filter(|figures| !figures.is_empty());
        let measured = figures.map(|figures| match self.metric {
            Metric::Errors => figures.iter().sum(),
            Metric::ErrorShare => figures.iter().copied().fold(0.0, f64::max),
            _ => figures.iter().sum::<f64>() / figures.len() as f64,
        });
        let met = measured.is_some_and(|measured: f64| match self.relation {
            Relation::Below => measured < self.value,
            Relation::AtMost => measured <= self.value,
            Relation::Above => measured > self.value,
            Relation::AtLeast => measured >= self.value,
            Relation::Equal => (measured - self.value).abs() <= self.value.abs() * 1e-9,
        });
        let words =
            measured.map_or("nothing was measured".to_owned(), |measured| self.metric.words(measured));
        ExpectationResult { expectation: self.text.clone(), measured, met, words }
    }
}

#[cfg(test)]
mod tests;
