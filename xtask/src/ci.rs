//! `cargo xtask ci`: exactly what CI runs, in the order in which it fails fastest.

use std::process::Command;
use std::time::Instant;

/// A check of this program's own.
type Check = fn() -> Result<String, String>;

const CHECKS: &[(&str, Check)] = &[
    ("tidy", crate::tidy::run),
    ("rfc", crate::rfc::run),
    ("api", || crate::api::run(None)),
    ("package", crate::package::run),
    ("hollow", crate::hollow::run),
    ("dependencies", crate::dependencies::run),
    ("ebpf", || crate::ebpf::run(Some("--check"))),
];

/// Arguments of cargo, and what its environment is given besides.
type Step = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

/// Those who read these pages have the code beside them: a link may lead to a private item, which the pages do not show.
const DOC_FLAGS: &str = "-D warnings -A rustdoc::private_intra_doc_links";

const STEPS: &[Step] = &[
    ("lints", &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"], &[]),
    (
        "lints of the command without the laboratory",
        &["clippy", "--package", "tercel-cli", "--no-default-features", "--locked", "--", "-D", "warnings"],
        &[],
    ),
    ("the transport for experiments", EXPERIMENTS, &[]),
    ("docs", &["doc", "--workspace", "--no-deps", "--locked", "--quiet"], &[("RUSTDOCFLAGS", DOC_FLAGS)]),
    ("tests", &["test", "--workspace", "--locked"], &[]),
];

/// Connections that can do without techniques: the tests of the public interface in that build. The other tests are of the ordinary one.
const EXPERIMENTS: &[&str] =
    &["test", "--package", "tercel-transport", "--features", "experiments", "--test", "public", "--locked"];

/// Runs every step; the first failure ends it.
pub(crate) fn run() -> Result<String, String> {
    let format: Step = ("format", &["fmt", "--all", "--check"], &[]);
    timed(format.0, || cargo(&format))?;
    for (name, check) in CHECKS {
        timed(name, || check().map(|summary| println!("{summary}")))?;
    }
    for step in STEPS {
        timed(step.0, || cargo(step))?;
    }
    // Behind the tests, whose programs it runs again.
    timed("memcheck", || crate::memcheck::run().map(|summary| println!("{summary}")))?;
    timed("miri", || crate::miri::run().map(|summary| println!("{summary}")))?;
    timed("instructions", || crate::instructions::run(None).map(|summary| println!("{summary}")))?;
    Ok("ci: all steps passed".to_owned())
}

fn cargo((name, arguments, environment): &Step) -> Result<(), String> {
    println!("cargo {}", arguments.join(" "));
    let status = Command::new(env!("CARGO"))
        .args(*arguments)
        .envs(environment.iter().copied())
        .current_dir(crate::root())
        .status()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("ci: {name} failed")) }
}

/// Runs a step and says how long it took: what CI takes in all is limited.
fn timed(name: &str, step: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    println!("== {name}");
    #[expect(clippy::disallowed_methods, reason = "this is not on the way of any packet")]
    let began = Instant::now();
    let outcome = step();
    println!("== {name}: {:.0} s", began.elapsed().as_secs_f64());
    outcome
}
