//! The result for people.

use std::fmt;

use super::{AIM, Comparison, Finding, Row};
use crate::stats::Summary;

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { plan, environment, .. } = self;
        writeln!(
            f,
            "requests on {} connections x {} streams from {} threads, {} s a trial, loopback, gso",
            plan.connections, plan.streams, plan.threads, plan.seconds
        )?;
        writeln!(f, "{environment}")?;
        writeln!(f, "server on cores {:?}, generator on cores {:?}\n", plan.server_cores, plan.client_cores)?;
        writeln!(
            f,
            "{:15}{:>8}{:>11}{:>8}{:>11}{:>8}{:>11}{:>8}{:>17}   limit",
            "", "workers", "requests/s", "sd", "server µs", "sd", "client µs", "sd", "derived rate*"
        )?;
        for row in self.rows.iter().filter(|row| !row.trials.is_empty()) {
            write_row(f, row)?;
        }
        writeln!(
            f,
            "\n* derived, not measured: workers / server's CPU seconds per request, as if each worker had a core to itself\n"
        )?;
        for finding in &self.findings {
            write_finding(f, finding)?;
        }
        if plan.shares_cores() {
            writeln!(
                f,
                "Server and generator shared {} core(s): the measured rates are those of both together, and cannot show what \
                 a second worker is worth. A worker that waits for a core finds more packets at once, and a request in a larger \
                 batch costs less: that makes the derived rate of two workers more than twice that of one.",
                plan.server_cores.len()
            )?;
        }
        let failed: u64 = self.rows.iter().flat_map(|row| &row.trials).map(|trial| trial.failed).sum();
        if failed > 0 {
            writeln!(f, "{failed} requests FAILED.")?;
        }
        Ok(())
    }
}

fn write_row(f: &mut fmt::Formatter<'_>, row: &Row) -> fmt::Result {
    let figure =
        |summary: &Summary, digits: usize| format!("{:>11.digits$}{:>8.digits$}", summary.mean, summary.sd);
    writeln!(
        f,
        "{:15}{:>8}{}{}{}{:>17.0}   {}",
        row.work.name(),
        row.workers,
        figure(&row.rate, 0),
        figure(&row.server_us, 2),
        figure(&row.client_us, 2),
        row.derived_rate.mean,
        limits(row)
    )
}

/// Implementation was at its end, and how often.
fn limits(row: &Row) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for trial in &row.trials {
        match counts.iter_mut().find(|(limit, _)| *limit == trial.limit) {
            Some((_, count)) => *count += 1,
            None => counts.push((&trial.limit, 1)),
        }
    }
    let words: Vec<String> = counts.iter().map(|(limit, count)| format!("{limit} x {count}")).collect();
    let busiest = |side: usize| {
        Summary::of(row.trials.iter().filter_map(|trial| trial.busiest.get(side).copied())).mean * 100.0
    };
    format!("{} (busiest thread: server {:.0} %, client {:.0} %)", words.join(", "), busiest(0), busiest(1))
}

fn write_finding(f: &mut fmt::Formatter<'_>, finding: &Finding) -> fmt::Result {
    for (kind, ratio) in [("measured", finding.measured), ("derived", finding.derived)] {
        match ratio {
            Some(ratio) => writeln!(
                f,
                "{:15} two workers over one, {kind}: {:.2} ({:.2} to {:.2}); aim {AIM}",
                finding.work.name(),
                ratio.ratio,
                ratio.low,
                ratio.high
            )?,
            None => writeln!(f, "{:15} two trials of each are needed for a ratio", finding.work.name())?,
        }
    }
    Ok(())
}
