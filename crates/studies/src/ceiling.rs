//! The roofline of a study: what two cores can do that copy, seal and send, with no protocol between them.

use std::io;
use std::process::Command;

use bench::roofline::{self, Roofline, Work};
use bench::stats::Summary;
use udp::Variant;

use crate::context::Context;

/// What a reader must know of it.
pub const METHOD: &str = "The roofline is UDP over loopback with datagrams of the same size: content is copied, sealed and sent in trains \
    by one core, received, opened and copied by another; there is no protocol. It is measured once in each round, and a row's share is \
    its goodput over the roofline's mean. TCP, which needs no datagrams, may pass it.";

/// One trial on the study's cores.
///
/// # Errors
/// The two processes fail, or all shall end.
pub fn measure(context: &Context<'_>, payload_size: u16, gigabytes: f64) -> io::Result<Roofline> {
    let mut plan = roofline::Plan::new(payload_size.into(), gigabytes, Work::Whole, Variant::Gso);
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

/// Content in 10^6 bytes per second, over all trials.
pub fn mb_per_second(ceilings: &[Roofline]) -> Summary {
    Summary::of(ceilings.iter().map(|run| run.gbit_per_second * 125.0))
}

/// The sender's CPU seconds per 10^9 bytes of content.
pub fn sender_cpu(ceilings: &[Roofline]) -> Summary {
    Summary::of(ceilings.iter().map(|run| run.sender.cpu_seconds_per_gb))
}
