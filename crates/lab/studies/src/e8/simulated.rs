//! The same downloads in the simulator, by tercel's controllers: what real processes shall confirm.

use serde::Serialize;
use sim::networks::{ALGORITHMS, measure, name as controller_name};

use super::lane::{CellResult, Outcome};
use super::plan::{LIMIT, Plan};
use crate::context::Context;

/// Times that differ by less than this factor agree.
pub(super) const AGREES: f64 = 1.2;

/// A cell and a controller, measured in both ways.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Compared {
    pub(super) cell: String,
    pub(super) controller: String,
    /// The simulator's median, in seconds.
    pub(super) simulated: f64,
    /// The median of the processes; none if they were not there in time.
    pub(super) measured: Option<f64>,
}

impl Compared {
    /// The processes' time over the simulator's; none if either was not there in time.
    pub(super) fn ratio(&self) -> Option<f64> {
        Some(self.measured? / self.simulated).filter(|_| self.simulated <= LIMIT.as_secs_f64())
    }

    /// Whether both say the same: times within [`AGREES`], or neither in time.
    pub(super) fn agrees(&self) -> bool {
        let is_late = self.simulated > LIMIT.as_secs_f64();
        match self.ratio() {
            Some(ratio) => (1.0 / AGREES..=AGREES).contains(&ratio),
            None => is_late && self.measured.is_none(),
        }
    }
}

/// Runs the simulator for each valid cell, with the seeds of its rounds and without requests beside; what fails there is told and left out.
pub(super) fn compare(plan: &Plan, results: &[CellResult], context: &mut Context<'_>) -> Vec<Compared> {
    let mut compared = Vec::new();
    for (planned, result) in plan.cells.iter().zip(results).filter(|(_, result)| result.missed() == 0) {
        let seeds = plan.seeds.iter().enumerate().filter(|(round, _)| planned.is_due(*round));
        let seeds: Vec<u64> = seeds.map(|(_, seed)| *seed).collect();
        for algorithm in ALGORITHMS {
            let controller = controller_name(algorithm);
            let measured = match result.outcome(&format!("tercel {controller}")) {
                Outcome::Unknown => continue,
                Outcome::NotThere => None,
                Outcome::Seconds(seconds) => Some(seconds),
            };
            if context.is_stopped() {
                return compared;
            }
            match measure(&planned.cell, planned.work, algorithm, &seeds) {
                Ok(record) => compared.push(Compared {
                    cell: result.name.clone(),
                    controller: controller.to_owned(),
                    simulated: record.time_ms / 1e3,
                    measured,
                }),
                Err(error) => context.tell(&format!("in the simulator: {error}")),
            }
        }
    }
    compared
}
