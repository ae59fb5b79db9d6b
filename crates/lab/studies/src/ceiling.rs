//! The roofline of a study: what two cores can do that copy, seal and send, with no protocol between them.

use std::io;
use std::process::Command;

use bench::process::is_interruption;
use bench::roofline::{self, Roofline, Work};
use bench::stats::Summary;
use report::model::{Cell, Row};
use serde::Serialize;
use udp::Variant;

use crate::context::Context;

/// What a reader must know of it; `when` it is measured ends a sentence.
pub fn method(when: &str) -> String {
    format!(
        "The roofline is UDP over loopback with datagrams of the same size: content is copied, sealed and sent in trains by one core, \
         received, opened and copied by another; there is no protocol. It is measured {when}, and a row's share is its goodput over the \
         roofline's mean. TCP, which needs no datagrams, may pass it."
    )
}

/// Its trials in a study.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Ceiling {
    trials: Vec<Roofline>,
}

impl Ceiling {
    /// One more trial.
    ///
    /// # Errors
    /// The two processes fail, or all shall end.
    pub fn measure(
        &mut self,
        context: &mut Context<'_>,
        payload_size: u16,
        gigabytes: f64,
    ) -> io::Result<()> {
        let run = trial(context, payload_size, gigabytes)?;
        context.tell(&format!("roofline: {:.0} MB/s", run.gbit_per_second * 125.0));
        self.trials.push(run);
        Ok(())
    }

    /// One more trial for a study that goes on without; why it failed is then a note.
    ///
    /// # Errors
    /// All shall end.
    pub fn try_measure(
        &mut self,
        context: &mut Context<'_>,
        (payload_size, gigabytes): (u16, f64),
        notes: &mut Vec<String>,
    ) -> io::Result<()> {
        match self.measure(context, payload_size, gigabytes) {
            Err(error) if is_interruption(&error, context.stop) => Err(error),
            Err(error) => {
                notes.push(format!("A trial of the roofline could not be measured: {error}."));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// What rates are of its mean, in per cent; 10^6 bytes of content per second.
    pub fn share(&self, rates: impl IntoIterator<Item = f64>) -> Cell {
        let mean = self.mb_per_second().mean;
        let shares = Summary::of(rates.into_iter().map(|rate| rate / mean * 100.0));
        if self.trials.is_empty() || shares.values.is_empty() { Cell::Empty } else { Cell::Trials(shares, 0) }
    }

    /// Its own row for a table of this many columns, of which these have the rate, the share and the sender's CPU seconds per
    /// 10^9 bytes; none if there was no trial.
    pub fn row(&self, columns: usize, [rate, share, cost]: [usize; 3]) -> Option<Row> {
        let mut cells = vec![Cell::Empty; columns];
        let costs = Summary::of(self.trials.iter().map(|run| run.sender.cpu_seconds_per_gb));
        let figures = [
            (rate, Cell::Trials(self.mb_per_second(), 0)),
            (share, Cell::Number(100.0, 0)),
            (cost, Cell::Trials(costs, 3)),
        ];
        for (column, cell) in figures {
            *cells.get_mut(column)? = cell;
        }
        let name = "roofline (UDP, no protocol)".to_owned();
        (!self.trials.is_empty()).then_some(Row { name, is_published: false, cells })
    }

    /// Its trials.
    pub fn trials(&self) -> &[Roofline] {
        &self.trials
    }

    /// Content in 10^6 bytes per second, over all trials.
    pub fn mb_per_second(&self) -> Summary {
        Summary::of(self.trials.iter().map(|run| run.gbit_per_second * 125.0))
    }
}

fn trial(context: &Context<'_>, payload_size: u16, gigabytes: f64) -> io::Result<Roofline> {
    let mut plan = roofline::RooflinePlan::new(payload_size.into(), gigabytes, Work::Whole, Variant::Gso);
    plan.trials = 1;
    plan.cores = context.cores;
    let launch = |role: &str| {
        let mut command = Command::new(&context.program);
        command.args(["bench", "child", role]);
        Ok(command)
    };
    let measured = roofline::run(&plan, &launch);
    // A child that died by the signal that is meant for us is no failure of its own.
    if context.is_stopped() { Err(io::ErrorKind::Interrupted.into()) } else { measured }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ceiling(rates: &[f64]) -> Ceiling {
        let side = bench::roofline::Side {
            cpu_seconds_per_gb: 0.25,
            nanoseconds_per_datagram: 1.0,
            datagrams_per_call: 1.0,
            busy: 1.0,
        };
        let plan = roofline::RooflinePlan::new(1_472, 1.0, Work::Whole, Variant::Gso);
        let trial = |rate: &f64| Roofline {
            plan: plan.clone(),
            gbit_per_second: *rate,
            sender: side,
            receiver: side,
            trials: Vec::new(),
        };
        Ceiling { trials: rates.iter().map(trial).collect() }
    }

    /// Deleted, shares could be of another unit, or the row's figures stand in other columns.
    #[test]
    fn shares_are_of_the_mean_and_the_row_fits_its_columns() {
        // 8 and 16 Gbit/s are 1,000 and 2,000 MB/s.
        let two = ceiling(&[8.0, 16.0]);
        let Cell::Trials(share, 0) = two.share([750.0, 3_000.0]) else { panic!("no share") };
        assert_eq!(share.values, [50.0, 200.0]);
        let row = two.row(5, [4, 1, 0]).unwrap();
        assert!(matches!(&row.cells[4], Cell::Trials(rate, 0) if rate.values == [1_000.0, 2_000.0]));
        assert!(matches!(&row.cells[0], Cell::Trials(cost, 3) if cost.mean == 0.25));
        assert_eq!((&row.cells[1], &row.cells[2]), (&Cell::Number(100.0, 0), &Cell::Empty));
        assert!(two.share([]) == Cell::Empty && two.row(5, [5, 1, 0]).is_none());

        let none = ceiling(&[]);
        assert!(none.share([1.0]) == Cell::Empty && none.row(5, [4, 1, 0]).is_none());
    }
}
