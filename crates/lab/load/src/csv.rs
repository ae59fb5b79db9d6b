//! The time series as lines that spreadsheets and plotting programs read.

use super::report::Report;
use std::io::{self, Write};

/// Writes the series of these runs, a line for each slice.
///
/// # Errors
/// What the writer says.
pub fn write_csv(runs: &[Report], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "trial,from_s,succeeded,failed,requests_per_second,content_bytes,p50_ms,p99_ms,max_ms")?;
    for (trial, run) in (1..).zip(runs) {
        let length = run.slice_s.unwrap_or(1.0);
        for slice in &run.series {
            // The last one may be cut short.
            let seconds = (run.seconds - slice.from_s).min(length);
            let rate = if seconds > 0.0 { slice.succeeded as f64 / seconds } else { 0.0 };
            writeln!(
                out,
                "{trial},{:.3},{},{},{rate:.1},{},{:.3},{:.3},{:.3}",
                slice.from_s,
                slice.succeeded,
                slice.failed,
                slice.content_bytes,
                slice.p50_us / 1e3,
                slice.p99_us / 1e3,
                slice.max_us / 1e3
            )?;
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SliceReport;
    use crate::sample::report;

    #[test]
    fn a_line_for_each_slice() {
        let mut run = report();
        (run.slice_s, run.seconds) = (Some(1.0), 1.5);
        let slice = SliceReport { succeeded: 10, p99_us: 1_500.0, ..SliceReport::default() };
        run.series = vec![slice, SliceReport { from_s: 1.0, ..slice }];
        let mut out = Vec::new();
        write_csv(&[run.clone(), run], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        assert_eq!(lines[1], "1,0.000,10,0,10.0,0,0.000,1.500,0.000");
        assert!(lines[2].starts_with("1,1.000,10,0,20.0,") && lines[3].starts_with("2,0.000,"));
        let columns = lines[0].split(',').count();
        assert!(lines.iter().all(|line| line.split(',').count() == columns));
    }
}
