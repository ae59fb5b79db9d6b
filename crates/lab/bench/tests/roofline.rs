//! The roofline runs, in every variant. A program of its own instead of a harness, because it starts itself again.
//!
//! Deleted, the yardstick of all measurements could break without anyone noticing until the next comparison.

use std::env;
use std::io;
use std::process::{Command, Stdio};

use bench::roofline::{self, RooflinePlan, Work};
use udp::Variant;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [word, role] = arguments.as_slice()
        && word == "child"
    {
        return roofline::child(role);
    }
    let launch = |role: &str| {
        let mut command = Command::new(env::current_exe()?);
        command.args(["child", role]);
        Ok(command)
    };
    for variant in Variant::ALL {
        for work in [Work::Whole, Work::Kernel] {
            for size in [1_472, 32_000] {
                let mut plan = RooflinePlan::new(size, 0.01, work, variant);
                plan.trials = 1;
                let result = roofline::run(&plan, &launch)?;
                assert!(result.gbit_per_second > 0.0);
                assert!(result.sender.cpu_seconds_per_gb > 0.0 && result.receiver.cpu_seconds_per_gb > 0.0);
                let [sent, _] = result.trials[0];
                let enough = (plan.datagrams * size as u64).saturating_sub(sent.bytes) <= plan.datagrams * 29;
                assert!(enough && serde_json::to_string(&result)?.contains(variant.name()));
            }
        }
    }
    // A process that cannot start is an error, not a wait.
    let plan = RooflinePlan::new(20, 0.0001, Work::Whole, Variant::Gso);
    let quiet = |role: &str| {
        let mut command = launch(role)?;
        command.stderr(Stdio::null());
        Ok(command)
    };
    assert!(roofline::run(&plan, &quiet).is_err());
    println!("the roofline runs in every variant");
    Ok(())
}
