//! The whole of HTTP/3 over every data path: real processes of the built program, on loopback and between two namespaces
//! that veth joins.
//!
//! A program of its own instead of a harness: one line for each case, in order, with what was expected and what happened when
//! it fails. Words on the command line choose cases whose names contain all of them; `--list` prints the names.
//!
//! Deleted, a data path could lose, repeat or reorder a byte, a worker could lose a connection whose client moves to another
//! port, and packet memory could leak, without any other test noticing: they run on one path, one worker, one address.
//!
//! Namespaces need root. Without it those cases do not run, which the first and the last line say; where CI is set, that is a
//! failure.

mod case;
mod connection;
mod rebinding;
mod relay;
mod soak;
mod transfers;
mod upgrade;

use case::{Case, TestNetwork};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // What cargo passes on to harnesses has no meaning here.
    let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let cases: Vec<Case> =
        case::all().into_iter().filter(|case| words.iter().all(|word| case.name().contains(*word))).collect();
    if arguments.iter().any(|word| word == "--list") {
        cases.iter().for_each(|case| println!("{}: test", case.name()));
        return ExitCode::SUCCESS;
    }
    let (on_loopback, in_namespaces): (Vec<&Case>, Vec<&Case>) =
        cases.iter().partition(|case| case.place == TestNetwork::Loopback);
    let rooted = in_namespaces.is_empty() || requirements::root("a case between namespaces");
    let skipped = if rooted { 0 } else { in_namespaces.len() };
    let (mut passed, mut failed) = (0, 0);
    let began = cpu::clock_seconds();
    for case in if rooted { cases.iter().collect() } else { on_loopback } {
        let started = cpu::clock_seconds();
        let outcome = run(case);
        let seconds = cpu::clock_seconds() - started;
        match outcome {
            Ok(told) => {
                passed += 1;
                println!("passed  {seconds:6.1} s {}{told}", case.name());
            }
            Err(problem) => {
                failed += 1;
                println!("FAILED  {seconds:6.1} s {}\n                 {problem}", case.name());
            }
        }
    }
    let seconds = cpu::clock_seconds() - began;
    println!(
        "datapaths: {passed} passed, {failed} failed, {skipped} skipped, {} cores, {seconds:.0} s",
        cpu::allowed().len()
    );
    if skipped > 0 {
        println!("datapaths: run as root to see veth and AF_XDP tested");
    }
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Characters of a problem that are printed.
const LONGEST: usize = 1_500;

/// What a case has to tell beside that it passed, or what went wrong.
fn run(case: &Case) -> Result<String, String> {
    let site = case.place.site()?;
    let never = AtomicBool::new(false);
    case.run(&site, &never).map_err(|problem| problem.replace('\n', " ").chars().take(LONGEST).collect())
}
