//! The text formats of metrics: Prometheus' 0.0.4 and OpenMetrics 1.0.0.
//!
//! Sources: prometheus.io/docs/instrumenting/exposition_formats, and the specification of OpenMetrics. They differ here in the name of a
//! counter's family, in `# UNIT`, and in `# EOF` at the end.

use server::metrics::Histogram;
use std::fmt::{Display, Write as _};

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The text format of Prometheus, version 0.0.4.
    Text,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Format {
    /// The best that a client takes, by its field `accept`.
    pub fn of(accept: &str) -> Format {
        if accept.contains("application/openmetrics-text") { Format::OpenMetrics } else { Format::Text }
    }

    /// The media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The kind of a family of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number that only rises. Its samples end in `_total`.
    Counter,
    /// A number that rises and falls.
    Gauge,
    /// Spans of time by upper bounds.
    Histogram,
}

/// Metrics of one name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family {
    /// The name, with its unit at the end, without `_total`.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) help: &'static str,
}

/// A label and its value.
type Label<'a> = (&'static str, &'a str);

/// A text that is written.
pub(crate) struct Exposition {
    text: String,
    format: Format,
}

impl Exposition {
    pub(crate) fn new(format: Format) -> Exposition {
        Exposition { text: String::with_capacity(32 << 10), format }
    }

    /// Begins a family, whose samples follow.
    pub(crate) fn family(&mut self, family: &Family) -> Samples<'_> {
        let Family { name, kind, help } = *family;
        let suffix = if kind == Kind::Counter && self.format == Format::Text { "_total" } else { "" };
        let kind_name = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        // Writing to a text does not fail.
        let _ = writeln!(self.text, "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind_name}");
        let unit = ["seconds", "bytes"].into_iter().find(|unit| name.ends_with(&format!("_{unit}")));
        if let (Format::OpenMetrics, Some(unit)) = (self.format, unit) {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        Samples { text: &mut self.text, name, kind }
    }

    /// The text.
    pub(crate) fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

/// Where the samples of a family go.
pub(crate) struct Samples<'e> {
    text: &'e mut String,
    name: &'static str,
    kind: Kind,
}

impl Samples<'_> {
    /// Adds a sample without labels.
    pub(crate) fn value(&mut self, value: impl Display) {
        self.sample(&[], value);
    }

    /// Adds a sample without labels, if there is a value.
    pub(crate) fn each(&mut self, value: Option<impl Display>) {
        value.into_iter().for_each(|value| self.value(value));
    }

    /// Adds a sample.
    pub(crate) fn sample(&mut self, labels: &[Label<'_>], value: impl Display) {
        let suffix = if self.kind == Kind::Counter { "_total" } else { "" };
        self.line(suffix, labels, value);
    }

    /// Adds a histogram.
    pub(crate) fn histogram(&mut self, labels: &[Label<'_>], of: &Histogram) {
        for (bound, count) in of.cumulated() {
            self.bucket(labels, &format!("{:?}", bound.as_secs_f64()), count);
        }
        self.bucket(labels, "+Inf", of.count());
        self.line("_sum", labels, of.sum().as_secs_f64());
        self.line("_count", labels, of.count());
    }

    fn bucket(&mut self, labels: &[Label<'_>], bound: &str, count: u64) {
        let labels: Vec<Label<'_>> = labels.iter().copied().chain([("le", bound)]).collect();
        self.line("_bucket", &labels, count);
    }

    fn line(&mut self, suffix: &str, labels: &[Label<'_>], value: impl Display) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        for (number, (name, value)) in labels.iter().enumerate() {
            self.text.push(if number == 0 { '{' } else { ',' });
            self.text.push_str(name);
            self.text.push_str("=\"");
            escape(value, self.text);
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        // Writing to a text does not fail.
        let _ = writeln!(self.text, " {value}");
    }
}

/// The value of a label: a line feed, a quotation mark and a backslash would end it.
fn escape(value: &str, text: &mut String) {
    for letter in value.chars() {
        match letter {
            '\n' => text.push_str("\\n"),
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            letter => text.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAMILY: Family = Family { name: "a_bytes", kind: Kind::Counter, help: "Help." };

    /// Deleted, the name of a file or a site could write a sample of its own.
    #[test]
    fn the_value_of_a_label_ends_no_line() {
        let mut exposition = Exposition::new(Format::Text);
        exposition.family(&FAMILY).sample(&[("a", "x\"} 1\nevil 2\\"), ("b", "")], 3);
        let expected = "# HELP a_bytes_total Help.\n# TYPE a_bytes_total counter\na_bytes_total{a=\"x\\\"} 1\\nevil 2\\\\\",b=\"\"} 3\n";
        assert_eq!(exposition.finish(), expected);
    }

    #[test]
    fn openmetrics_names_the_family_without_its_suffix_and_ends() {
        let mut exposition =
            Exposition::new(Format::of("application/openmetrics-text;version=1.0.0,*/*;q=0.1"));
        exposition.family(&FAMILY).value(3);
        let expected =
            "# HELP a_bytes Help.\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\na_bytes_total 3\n# EOF\n";
        assert_eq!(exposition.finish(), expected);
        assert_eq!(Format::of("text/plain"), Format::Text);
    }
}
