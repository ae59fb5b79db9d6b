//! The floor runs by every method, on loopback and, as root, between two namespaces. A program of its own instead of a harness,
//! because it starts itself again.
//!
//! Deleted, the figures that the data paths are held against could break without anyone noticing until they are needed.

use std::env;
use std::io;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use bench::floor::{self, FloorPlan};
use bench::method::Method;
use bench::site::Site;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [word, role] = arguments.as_slice()
        && word == "child"
    {
        return floor::child(role);
    }
    let launch = |role: &str| {
        let mut command = Command::new(env::current_exe()?);
        command.args(["child", role]);
        Ok(command)
    };
    let mut sites = vec![Site::Loopback];
    if requirements::root("the floor between namespaces") {
        sites.push(Site::veth(1).map_err(io::Error::other)?);
    }
    let mut plan = FloorPlan::new();
    (plan.seconds, plan.trials) = (0.05, 2);
    let never = AtomicBool::new(false);
    let result = floor::run(&plan, &sites, &launch, &never, &mut |line| println!("{line}"))?;
    // Each end of each method; AF_XDP has no place on loopback.
    let expected = 2 * 3 + (sites.len() - 1) * 2 * Method::ALL.len();
    assert_eq!(result.rows.len(), expected);
    for row in &result.rows {
        let interval = row.interval.map_or(0.0, |found| found.low);
        assert!(row.problem.is_none() && row.raw_ns.median > 0.0 && row.port_ns.median > 0.0, "{row:?}");
        assert!(row.ratio > 0.0 && interval > 0.0 && row.raw_ns.values.len() == 2, "{row:?}");
        assert!(row.lost_share < 0.5, "{row:?}");
    }
    assert!(result.to_string().contains("gso"));
    println!("the floor runs by every method");
    Ok(())
}
