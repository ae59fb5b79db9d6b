//! The result for people.

use std::fmt;

use super::{Comparison, Finding, Row, Trial};
use crate::stats::Summary;

/// A trial in one line.
pub(super) fn trial_line(trial: &Trial) -> String {
    format!(
        "{:6.2} Gbit/s  server {:.3}  client {:.3} CPU s/GB",
        trial.goodput_gbit_s, trial.server.cpu_s_per_gb, trial.client.cpu_s_per_gb
    )
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { plan, environment, .. } = self;
        writeln!(f, "{} GB on one connection and one stream, over loopback", plan.gigabytes)?;
        writeln!(
            f,
            "{}, {}, {} cores, tercel {} {}, load {}",
            environment.kernel,
            environment.cpu,
            environment.cores,
            environment.version,
            environment.revision,
            environment.load
        )?;
        writeln!(
            f,
            "{}, {}, {} bytes of UDP payload, server on core {}, client on core {}\n",
            self.cipher, self.congestion, plan.payload_size, plan.cores[0], plan.cores[1]
        )?;
        writeln!(
            f,
            "{:9}{:>7}{:>8}{:>6}{:>8}   {:>8}{:>7}{:>8}   {:>8}{:>7}{:>8}   {:>9}{:>6}{:>6}",
            "",
            "Gbit/s",
            "median",
            "sd",
            "of roof",
            "server",
            "sd",
            "of roof",
            "client",
            "sd",
            "of roof",
            "payload",
            "out",
            "in"
        )?;
        for row in self.rows.iter().filter(|row| !row.trials.is_empty()) {
            write_row(f, row)?;
        }
        self.write_roofline(f)?;
        writeln!(f, "{:9}{:>29}   CPU s/GB{:>18}CPU s/GB{:>20}bytes  datagrams per call\n", "", "", "", "")?;
        for finding in &self.findings {
            write_finding(f, finding)?;
        }
        for row in self.rows.iter().filter(|row| !row.trials.is_empty()) {
            writeln!(f, "{}: {}", row.name, row.settings)?;
        }
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        Ok(())
    }
}

fn write_row(f: &mut fmt::Formatter<'_>, row: &Row) -> fmt::Result {
    let per_call = |figure: &dyn Fn(&Trial) -> Option<f64>| {
        let values: Vec<f64> = row.trials.iter().filter_map(figure).collect();
        if values.is_empty() { "-".to_owned() } else { format!("{:.0}", Summary::of(values).mean) }
    };
    let [goodput, server, client] = match row.roofline_share {
        Some(share) => {
            [share.goodput, share.server_cpu, share.client_cpu].map(|of| format!("{:.0} %", of * 100.0))
        }
        None => ["", "", ""].map(str::to_owned),
    };
    writeln!(
        f,
        "{:9}{:>7.2}{:>8.2}{:>6.2}{goodput:>8}   {:>8.3}{:>7.3}{server:>8}   {:>8.3}{:>7.3}{client:>8}   {:>9.1}{:>6}{:>6}",
        row.name,
        row.goodput_gbit_s.mean,
        row.goodput_gbit_s.median,
        row.goodput_gbit_s.sd,
        row.server_cpu_s_per_gb.mean,
        row.server_cpu_s_per_gb.sd,
        row.client_cpu_s_per_gb.mean,
        row.client_cpu_s_per_gb.sd,
        row.payload_mean.mean,
        per_call(&|trial| trial.server.datagrams_per_call),
        per_call(&|trial| trial.client.datagrams_per_call),
    )
}

fn write_finding(f: &mut fmt::Formatter<'_>, finding: &Finding) -> fmt::Result {
    let Some(ratio) = finding.ratio else {
        return writeln!(f, "{}: two trials of each are needed for a ratio", finding.of);
    };
    let verdict = match finding.better {
        Some(better) => format!("{better} is better"),
        None => "no difference shown".to_owned(),
    };
    writeln!(
        f,
        "{:20} tercel / quinn {:.2} ({:.2} to {:.2}): {verdict}",
        finding.of, ratio.ratio, ratio.low, ratio.high
    )
}

impl Comparison {
    fn write_roofline(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.roofline.is_empty() {
            return Ok(());
        }
        let over =
            |figure: fn(&crate::roofline::Roofline) -> f64| Summary::of(self.roofline.iter().map(figure));
        let goodput = over(|run| run.gbit_per_second);
        let server = over(|run| run.sender.cpu_seconds_per_gb);
        let client = over(|run| run.receiver.cpu_seconds_per_gb);
        writeln!(
            f,
            "{:9}{:>7.2}{:>8.2}{:>6.2}{:>8}   {:>8.3}{:>7.3}{:>8}   {:>8.3}{:>7.3}{:>8}   {:>9}{:>6.0}{:>6.0}",
            "roofline",
            goodput.mean,
            goodput.median,
            goodput.sd,
            "",
            server.mean,
            server.sd,
            "",
            client.mean,
            client.sd,
            "",
            self.plan.payload_size,
            over(|run| run.sender.datagrams_per_call).mean,
            over(|run| run.receiver.datagrams_per_call).mean,
        )
    }
}
