//! The result for people.

use std::fmt;

use super::{AIM, Direction, Floor, Row};

/// A row in one line.
pub(super) fn row_line(row: &Row) -> String {
    let direction = match row.direction {
        Direction::Send => "send",
        Direction::Receive => "receive",
    };
    let begin = format!("{:9} {direction:8} {:12}", row.site, row.method);
    if let Some(problem) = &row.problem {
        return format!("{begin} -  {problem}");
    }
    let interval =
        row.interval.map_or_else(String::new, |found| format!("{:.2}-{:.2}", found.low, found.high));
    let verdict = if row.is_within_aim() { "ok" } else { "ABOVE THE AIM" };
    format!(
        "{begin} {:>8.0} {:>8.0} {:>6.2}  {interval:>10}  {:>7.0} {:>7.0} {:>7.1}  {verdict}",
        row.raw_ns.median,
        row.port_ns.median,
        row.ratio,
        row.wall_ns[0],
        row.wall_ns[1],
        row.port_datagrams_per_call
    )
}

impl fmt::Display for Floor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Floor { plan, environment, rows } = self;
        writeln!(
            f,
            "CPU nanoseconds per datagram of {} bytes, {} trials of {} s each, medians",
            plan.datagram_size, plan.trials, plan.seconds
        )?;
        writeln!(f, "{environment}\n")?;
        writeln!(
            f,
            "{:9} {:8} {:12} {:>8} {:>8} {:>6}  {:>10}  {:>7} {:>7} {:>7}",
            "", "", "", "floor", "port", "ratio", "95 %", "wall", "wall", "a call"
        )?;
        for row in rows {
            writeln!(f, "{}", row_line(row))?;
        }
        writeln!(
            f,
            "\nwall: from first to last datagram, of floor and port: more than the CPU time where an end waited for the other."
        )?;
        writeln!(
            f,
            "Aim: a ratio of {AIM} at most. Study E1's kind of machine: plain sendmsg 4500, AF_XDP copying 3000, GSO into GRO 220."
        )?;
        if let Some(worst) = rows.iter().map(|row| row.lost_share).max_by(f64::total_cmp)
            && worst > 0.001
        {
            writeln!(
                f,
                "Up to {:.1} % of a row's datagrams were lost: their cost is only that of sending.",
                worst * 100.0
            )?;
        }
        Ok(())
    }
}
