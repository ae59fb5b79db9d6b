//! Ten seconds at full rate over a link that loses one datagram of a hundred: every byte arrives, no frame is lost.

use crate::case::Case;
use crate::transfers::text;
use bench::site::Site;
use bench::soak::{self, SoakPlan};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

const SECONDS: f64 = 10.0;

pub(crate) fn run(case: &Case, site: &Site, never: &AtomicBool) -> Result<String, String> {
    let plan = SoakPlan {
        program: PathBuf::from(env!("CARGO_BIN_EXE_tercel")),
        seconds: SECONDS,
        loss: 0.01,
        method: case.server,
        clients: 4,
        bytes: 20_000_000,
    };
    let soak = soak::run(&plan, site, never, &mut |_| {}).map_err(text)?;
    match soak.problem() {
        None => Ok(format!(
            " ({:.0} MB, {:.1} % lost on the way)",
            soak.bytes as f64 / 1e6,
            soak.lost_share() * 100.0
        )),
        Some(problem) => Err(problem),
    }
}
