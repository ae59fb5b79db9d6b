//! The result for people.

use std::fmt;

use super::{Comparison, Finding, Part, Row, Subject, Trial, Verdict};
use crate::stats::Summary;

/// A trial in one line. `round` is its number, 0 for one that is not counted, and how many there are.
pub(super) fn trial_line(subject: Subject, round: (usize, usize), trial: &Trial) -> String {
    let counted = match round {
        (0, _) => "warm-up".to_owned(),
        (round, of) => format!("{round}/{of}"),
    };
    let (rate, cpu) = units(subject.part());
    let (digits, busy) = (digits(subject.part()), trial.server_busy * 100.0);
    format!(
        "{:18} {counted:8} {:9.digits$} {rate}  server {:.3}  client {:.3} {cpu}  server's core {busy:3.0} %",
        subject.name(),
        trial.rate,
        trial.server_cpu,
        trial.client_cpu,
    )
}

/// The units of rates and of CPU times.
fn units(part: Part) -> (&'static str, &'static str) {
    match part {
        Part::Hello => ("requests/s", "µs/request"),
        Part::Stream => ("Gbit/s", "CPU s/GB"),
    }
}

fn digits(part: Part) -> usize {
    match part {
        Part::Hello => 0,
        Part::Stream => 2,
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { plan, environment, .. } = self;
        writeln!(f, "{environment}")?;
        writeln!(
            f,
            "over loopback, AES-128-GCM, CUBIC (tercel: auto, which begins as it), {} bytes of UDP payload, servers on core {}, clients on core {}, {} trials",
            plan.payload_size, plan.cores[0], plan.cores[1], plan.trials
        )?;
        for part in Part::ALL {
            let rows: Vec<&Row> =
                self.rows.iter().filter(|row| row.subject.part() == part && !row.trials.is_empty()).collect();
            if !rows.is_empty() {
                self.write_part(f, part, &rows)?;
            }
        }
        writeln!(f)?;
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        Ok(())
    }
}

impl Comparison {
    fn write_part(&self, f: &mut fmt::Formatter<'_>, part: Part, rows: &[&Row]) -> fmt::Result {
        let plan = &self.plan;
        let (rate, cpu) = units(part);
        match part {
            Part::Hello => writeln!(
                f,
                "\nhello over HTTP/3, {} connections x {} requests at a time, {} s a trial: means and standard deviations",
                plan.connections, plan.streams, plan.seconds
            )?,
            Part::Stream => writeln!(
                f,
                "\none stream without HTTP, {} GB a trial: means and standard deviations",
                plan.gigabytes
            )?,
        }
        writeln!(
            f,
            "{:18}{rate:>12}{:>9}  server {cpu:>10}{:>8}  client {cpu:>10}{:>8}  server's core",
            "", "sd", "sd", "sd"
        )?;
        for row in rows {
            let figure = |summary: &Summary, (width, digits): (usize, usize)| {
                format!("{:>width$.digits$}", summary.mean)
            };
            let digits = digits(part);
            writeln!(
                f,
                "{:18}{}{:>9.digits$}{}{:>8.3}{}{:>8.3}{:>13.0} %",
                row.subject.name(),
                figure(&row.rate, (12, digits)),
                row.rate.sd,
                figure(&row.server_cpu, (19, 3)),
                row.server_cpu.sd,
                figure(&row.client_cpu, (19, 3)),
                row.client_cpu.sd,
                row.server_busy.mean * 100.0
            )?;
        }
        for finding in self.findings.iter().filter(|finding| finding.over.part() == part) {
            write_finding(f, finding)?;
        }
        Ok(())
    }
}

fn write_finding(f: &mut fmt::Formatter<'_>, finding: &Finding) -> fmt::Result {
    let Finding { over, under, aim, .. } = finding;
    let names = format!("{} / {}", over.name(), under.name());
    let Some(rate) = finding.rate else {
        return writeln!(f, "{names:36} two trials of each are needed for a ratio");
    };
    let verdict = match finding.verdict {
        Verdict::Reached => "reached",
        Verdict::Missed => "missed",
        Verdict::Open => "not shown",
    };
    write!(
        f,
        "{names:36} rate {:.2} ({:.2} to {:.2}), aim {aim}: {verdict}",
        rate.ratio, rate.low, rate.high
    )?;
    if let Some(cpu) = finding.server_cpu {
        write!(f, "; server's CPU {:.2} ({:.2} to {:.2})", cpu.ratio, cpu.low, cpu.high)?;
    }
    writeln!(f)
}
