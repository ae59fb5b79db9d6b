//! The result for people.

use std::fmt;

use super::{Buffer, Cell, Comparison, Finding, Implementation, Row, Trial};
use crate::stats::Summary;

/// A trial in one line.
pub(super) fn trial_line(cell: Cell, counted: &str, trial: &Trial) -> String {
    let Cell { client, buffer, server } = cell;
    format!(
        "{:6} from {:6} {:7} {counted:8} {:6.2} Gbit/s  server {:.3}  client {:.3} CPU s/GB",
        client.name(),
        server.name(),
        buffer.name(),
        trial.goodput_gbit_s,
        trial.server.cpu_s_per_gb,
        trial.client.cpu_s_per_gb
    )
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { plan, environment, .. } = self;
        writeln!(
            f,
            "{} GB on one connection and one stream, over loopback, {} trials",
            plan.gigabytes, plan.trials
        )?;
        writeln!(f, "{environment}")?;
        writeln!(
            f,
            "{}, {}, {} bytes of UDP payload, servers on core {}, clients on core {}",
            self.cipher, self.congestion, plan.payload_size, plan.cores[0], plan.cores[1]
        )?;
        writeln!(f, "{}", self.versions.join("; "))?;
        self.matrix(f, "Goodput in Gbit/s: mean and standard deviation", |row| &row.goodput_gbit_s)?;
        self.matrix(f, "CPU seconds of the server for 10^9 bytes", |row| &row.server_cpu_s_per_gb)?;
        self.matrix(f, "CPU seconds of the client for 10^9 bytes", |row| &row.client_cpu_s_per_gb)?;
        if !self.roofline.is_empty() {
            let roof = Summary::of(self.roofline.iter().map(|run| run.gbit_per_second));
            writeln!(f, "\nroofline, without a protocol: {:.2} ({:.2}) Gbit/s", roof.mean, roof.sd)?;
        }
        writeln!(f)?;
        for finding in &self.findings {
            write_finding(f, finding)?;
        }
        let missing = self.findings.iter().filter(|finding| finding.ratio.is_none()).count();
        if missing > 0 {
            writeln!(f, "{missing} ratios are missing: two trials of each are needed")?;
        }
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        Ok(())
    }
}

impl Comparison {
    /// A figure of all cells: a line for each client and buffer, a column for each server.
    fn matrix(&self, f: &mut fmt::Formatter<'_>, title: &str, of: fn(&Row) -> &Summary) -> fmt::Result {
        let measured = || self.rows.iter().filter(|row| !row.trials.is_empty());
        let servers =
            Implementation::ALL.into_iter().filter(|who| measured().any(|row| row.cell.server == *who));
        let servers: Vec<Implementation> = servers.collect();
        write!(f, "\n{title}\n{:8}{:9}", "client", "buffer")?;
        for server in &servers {
            write!(f, "{:>18}", format!("{}'s server", server.name()))?;
        }
        writeln!(f)?;
        for client in Implementation::ALL {
            for buffer in Buffer::ALL {
                let of_line =
                    || measured().filter(|row| (row.cell.client, row.cell.buffer) == (client, buffer));
                if of_line().next().is_none() {
                    continue;
                }
                write!(f, "{:8}{:9}", client.name(), buffer.name())?;
                for server in &servers {
                    let text = of_line().find(|row| row.cell.server == *server).map(|row| {
                        let Summary { mean, sd, .. } = of(row);
                        format!("{mean:.2} ({sd:.2})")
                    });
                    write!(f, "{:>18}", text.unwrap_or_default())?;
                }
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

fn write_finding(f: &mut fmt::Formatter<'_>, finding: &Finding) -> fmt::Result {
    let Some(ratio) = finding.ratio else { return Ok(()) };
    let verdict = match finding.better {
        Some(better) => format!(", {better} is better"),
        None if ratio.spans_one() => ", no difference shown".to_owned(),
        None => String::new(),
    };
    writeln!(f, "{} {:.2} ({:.2} to {:.2}){verdict}", finding.of, ratio.ratio, ratio.low, ratio.high)
}
