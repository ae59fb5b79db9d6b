//! The result for people.

use std::fmt;

use super::{DataPaths, PUBLISHED_GAIN, Row, Trial};
use crate::method::Method;
use crate::stats::{Ratio, Summary};

/// A trial in one line.
pub(super) fn trial_line(trial: &Trial) -> String {
    format!(
        "{:6.1} MB/s  server {:.3}  client {:.3} CPU s/GB  {:.1} datagrams per call  {}",
        trial.goodput / 1e6,
        trial.server.cpu_s_per_gb,
        trial.client.cpu_s_per_gb,
        trial.server.datagrams_per_call,
        trial.path_in_use
    )
}

/// The result as a text, published figures in grey when `colours` says so.
#[derive(Debug)]
pub struct Text<'a> {
    /// What was measured.
    pub result: &'a DataPaths,
    /// Whether the reader's terminal has colours.
    pub colours: Colours,
}

/// Whether there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// Escape sequences.
    Terminal,
    /// Plain text.
    None,
}

impl Text<'_> {
    fn grey(&self, text: &str) -> String {
        match self.colours {
            Colours::Terminal => format!("\x1b[90m{text}\x1b[0m"),
            Colours::None => text.to_owned(),
        }
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DataPaths { plan, environment, link, cipher, congestion, rows, notes, .. } = self.result;
        writeln!(f, "{:.1} GB on one connection, {link}", plan.bytes as f64 / 1e9)?;
        writeln!(f, "{environment}")?;
        writeln!(
            f,
            "{cipher}, {congestion}, {} bytes of UDP payload, server on core {}, client (gso) on core {}\n",
            plan.packet_size, plan.cores[0], plan.cores[1]
        )?;
        writeln!(
            f,
            "{:12} {:>7} {:>7} {:>5}  {:>5} {:>11}  {:>7} {:>6}  {:>7} {:>6}  {:>6} {:>5}  {:>7}  {}",
            "server's",
            "MB/s",
            "median",
            "sd",
            "times",
            "95 %",
            "server",
            "of its",
            "client",
            "of its",
            "out",
            "in",
            "payload",
            self.grey("published")
        )?;
        writeln!(
            f,
            "{:12} {:>7} {:>7} {:>5}  {:>5} {:>11}  {:>7} {:>6}  {:>7} {:>6}  {:>12}  {:>7}  {}",
            "path",
            "mean",
            "",
            "",
            rows.first().map_or("", |row| row.method.name()),
            "",
            "CPUs/GB",
            "core",
            "CPUs/GB",
            "core",
            "per call",
            "bytes",
            self.grey("MB/s")
        )?;
        for row in rows {
            self.write_row(f, row)?;
        }
        self.write_findings(f)?;
        for row in rows.iter().filter(|row| !row.trials.is_empty()) {
            let used = row.trials.last().map_or("", |trial| trial.path_in_use.as_str());
            let load = if row.is_server_at_full_load {
                "server's core at full load"
            } else {
                "server not at full load"
            };
            writeln!(f, "{}: path in use {used}, {load}", row.method)?;
        }
        for note in notes {
            writeln!(f, "{note}")?;
        }
        writeln!(
            f,
            "{}",
            self.grey(
                "published: study E1, another machine, another year; its server was at full load with both"
            )
        )
    }
}

impl Text<'_> {
    fn write_row(&self, f: &mut fmt::Formatter<'_>, row: &Row) -> fmt::Result {
        if row.trials.is_empty() {
            return writeln!(f, "{:12} -  {}", row.method, row.problem.as_deref().unwrap_or("not measured"));
        }
        let median = |figure: fn(&Trial) -> f64| Summary::of(row.trials.iter().map(figure)).median;
        let (gain, interval) = row.gain.map_or_else(Default::default, |gain| {
            (format!("{:.2}", gain.ratio), format!("{:.2}-{:.2}", gain.low, gain.high))
        });
        let published = match row.method {
            Method::Plain => self.result.published[0],
            Method::XdpGeneric | Method::XdpDriver => self.result.published[1],
            Method::Mmsg | Method::Gso | Method::Uring => [0.0; 3],
        };
        let published = if published[0] > 0.0 {
            self.grey(&published.map(|bytes| format!("{:.0}", bytes / 1e6)).join(" / "))
        } else {
            String::new()
        };
        writeln!(
            f,
            "{:12} {:>7.1} {:>7.1} {:>5.1}  {gain:>5} {interval:>11}  {:>7.3} {:>4.0} %  {:>7.3} {:>4.0} %  {:>6.1} {:>5.1}  {:>7.1}  {published}",
            row.method,
            row.goodput.mean / 1e6,
            row.goodput.median / 1e6,
            row.goodput.sd / 1e6,
            row.server_cpu_s_per_gb.median,
            median(|trial| trial.server.share) * 100.0,
            row.client_cpu_s_per_gb.median,
            median(|trial| trial.client.share) * 100.0,
            median(|trial| trial.server.datagrams_per_call),
            median(|trial| trial.client.datagrams_per_call),
            median(|trial| trial.payload_mean),
        )
    }

    /// What the table says about the study's claim.
    fn write_findings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f)?;
        let is_plain_first = self.result.rows.first().is_some_and(|row| row.method == Method::Plain);
        for row in self.result.rows.iter().filter(|row| is_plain_first && row.method.is_xdp()) {
            for (what, gain) in [("goodput", row.gain), ("GB per CPU second of the server", row.cpu_gain)] {
                let Some(gain) = gain else { continue };
                writeln!(
                    f,
                    "{} / plain, {what}: {:.2} ({:.2} to {:.2}), study {PUBLISHED_GAIN}: {}",
                    row.method,
                    gain.ratio,
                    gain.low,
                    gain.high,
                    verdict(gain)
                )?;
            }
        }
        Ok(())
    }
}

fn verdict(gain: Ratio) -> &'static str {
    if gain.low >= PUBLISHED_GAIN {
        "beats the study"
    } else if gain.ratio >= PUBLISHED_GAIN {
        "as in the study or better, not beyond doubt"
    } else if gain.high >= PUBLISHED_GAIN {
        "less than in the study, not beyond doubt"
    } else {
        "less than in the study"
    }
}
