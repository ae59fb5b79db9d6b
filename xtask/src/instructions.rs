//! `cargo xtask instructions`: how many instructions packets, handshakes and requests take, against accepted figures.
//!
//! The program `instructions` (crates/lab/instructions), as it is released, does the work under callgrind, which counts. Its
//! standard output says which part of the counts is for what. Instructions are not time, but they are the same on a busy machine,
//! so that a change of 2 % is seen. `--accept` writes the figures into `xtask/instructions.toml`; the commit says why they changed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use toml::{Table, Value};

/// More than this above the accepted figure, in per cent, is a failure, and as much below it is told.
const TOLERANCE: u64 = 2;

/// The same with another compiler, Valgrind or CPU than those of the accepted figures: libraries choose code by the CPU.
const TOLERANCE_OF_OTHERS: u64 = 25;

const HELP: &str = "usage: cargo xtask instructions [--accept | --ledger]";

/// Instructions for each piece of work, by its name.
type Figures = BTreeMap<String, u64>;

/// Counts and compares, or accepts, or tells where a request's go. Where `CI` is set Valgrind must be there: tests/setup installs it.
pub(crate) fn run(argument: Option<&str>) -> Result<String, String> {
    let is_accepting = match argument {
        None => false,
        Some("--accept") => true,
        Some("--ledger") => return crate::request_ledger::run(),
        Some(_) => return Err(HELP.to_owned()),
    };
    let Some(valgrind) = first_line(Command::new("valgrind").arg("--version")) else {
        let what = "instructions: NOT RUN: there is no valgrind, which tests/setup installs".to_owned();
        let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        return if in_ci { Err(what) } else { Ok(what) };
    };
    let compiler = first_line(Command::new("rustc").arg("--version")).unwrap_or_default();
    let tools = Tools { arch: std::env::consts::ARCH.to_owned(), cpu: cpu(), compiler, valgrind };
    let figures = count()?;
    let file = crate::root().join("xtask/instructions.toml");
    if is_accepting {
        std::fs::write(&file, written(&tools, &figures)).map_err(|error| error.to_string())?;
        return Ok(format!(
            "instructions: {} figures are accepted in xtask/instructions.toml",
            figures.len()
        ));
    }
    let accepted = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let (known_tools, known) = read(&accepted)?;
    judge(&known, &figures, &tools.differences(&known_tools))
}

/// What figures depend on beside the code.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tools {
    arch: String,
    cpu: String,
    compiler: String,
    valgrind: String,
}

impl Tools {
    /// What differs, a line each.
    fn differences(&self, accepted: &Tools) -> String {
        let pairs = [
            (&self.arch, &accepted.arch),
            (&self.cpu, &accepted.cpu),
            (&self.compiler, &accepted.compiler),
            (&self.valgrind, &accepted.valgrind),
        ];
        let differing = pairs.into_iter().filter(|(now, then)| now != then);
        let lines = differing.map(|(now, then)| format!("  accepted with {then}, counted with {now}\n"));
        lines.collect()
    }
}

/// The CPU's model, or nothing where the kernel does not tell.
fn cpu() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        text.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
    model.map(|(_, name)| name.to_owned()).unwrap_or_default()
}

fn first_line(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}

/// Builds the program and runs it under callgrind.
fn count() -> Result<Figures, String> {
    let folder = crate::root().join("target/instructions");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let counts = folder.join("counts");
    let runner = format!(
        // Fair, so that a thread that opens a file gets its turn beside the one that waits for it in a loop.
        "valgrind --quiet --tool=callgrind --fair-sched=yes --dump-before=*dump_here* --callgrind-out-file={}",
        counts.display()
    );
    let output = Command::new(env!("CARGO"))
        .args(["run", "--release", "--locked", "--quiet", "--package", "tercel-instructions"])
        .env(crate::memcheck::runner(), runner)
        .current_dir(crate::root())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    if !output.status.success() {
        return Err("instructions: the program has failed".to_owned());
    }
    let rows = String::from_utf8_lossy(&output.stdout).into_owned();
    rows.lines().map(|row| figure(row, &counts)).collect()
}

/// What one line of the program's says: the part, a name, functions, how many pieces of work.
fn figure(row: &str, counts: &Path) -> Result<(String, u64), String> {
    let [part, name, functions, pieces] = row.split('\t').collect::<Vec<_>>()[..] else {
        return Err(format!("instructions: not a row: {row}"));
    };
    let path = PathBuf::from(format!("{}.{part}", counts.display()));
    let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = String::from_utf8_lossy(&text);
    let functions: Vec<&str> = functions.split(',').filter(|name| !name.is_empty()).collect();
    let instructions = if functions.is_empty() { total(&text) } else { inclusive(&text, &functions) };
    let pieces: u64 = pieces.parse().map_err(|_| format!("instructions: not a row: {row}"))?;
    match (instructions, pieces) {
        (0, _) | (_, 0) => Err(format!("instructions: nothing was counted for {name}")),
        (instructions, pieces) => Ok((name.to_owned(), (instructions + pieces / 2) / pieces)),
    }
}

/// All instructions of a part.
fn total(text: &str) -> u64 {
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    total.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// Instructions of calls of `functions`, and of all that they called. Source: the manual's "Callgrind Format Specification".
fn inclusive(text: &str, functions: &[&str]) -> u64 {
    let is_meant = |name: &str| functions.iter().any(|function| name.rsplit("::").next() == Some(function));
    let mut meant: BTreeMap<&str, bool> = BTreeMap::new();
    let (mut called, mut is_cost, mut sum) = ("", false, 0);
    for line in text.lines() {
        let name = line.strip_prefix("cfn=").or_else(|| line.strip_prefix("fn="));
        if let Some((id, name)) = name.map(|name| name.split_once(' ').unwrap_or((name, ""))) {
            // A name is written where its number occurs first.
            if !name.is_empty() {
                meant.insert(id, is_meant(name));
            }
            called = id;
        } else if line.starts_with("calls=") {
            is_cost = true;
        } else if std::mem::take(&mut is_cost) && meant.get(called) == Some(&true) {
            let cost = line.split_whitespace().nth(1).and_then(|cost| cost.parse::<u64>().ok());
            sum += cost.unwrap_or(0);
        }
    }
    sum
}

fn written(tools: &Tools, figures: &Figures) -> String {
    let mut text = "# Instructions for each piece of work, by callgrind. `cargo xtask instructions --accept` writes this file.\n"
        .to_owned();
    let Tools { arch, cpu, compiler, valgrind } = tools;
    let _ =
        writeln!(text, "arch = {arch:?}\ncpu = {cpu:?}\ncompiler = {compiler:?}\nvalgrind = {valgrind:?}\n");
    let _ = writeln!(text, "[instructions]");
    for (name, figure) in figures {
        let _ = writeln!(text, "{name:?} = {figure}");
    }
    text
}

fn read(text: &str) -> Result<(Tools, Figures), String> {
    let table: Table = text.parse().map_err(|error| format!("xtask/instructions.toml: {error}"))?;
    let of = |key: &str| table.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let figures = table.get("instructions").and_then(Value::as_table).into_iter().flatten();
    let number = |value: &Value| value.as_integer().and_then(|number| u64::try_from(number).ok());
    let figures = figures.filter_map(|(name, value)| Some((name.clone(), number(value)?))).collect();
    let tools =
        Tools { arch: of("arch"), cpu: of("cpu"), compiler: of("compiler"), valgrind: of("valgrind") };
    Ok((tools, figures))
}

/// Compares. `differences` are those of the tools.
fn judge(accepted: &Figures, figures: &Figures, differences: &str) -> Result<String, String> {
    let tolerance = if differences.is_empty() { TOLERANCE } else { TOLERANCE_OF_OTHERS };
    let mut table = String::new();
    let (mut is_worse, mut is_better) = (false, false);
    for (name, figure) in figures {
        let known = accepted.get(name).copied();
        let is_more = known.is_none_or(|known| figure * 100 > known * (100 + tolerance));
        let is_less = known.is_some_and(|known| figure * 100 < known * (100 - tolerance));
        let says = match (known, is_more, is_less) {
            (None, ..) => " new: not accepted",
            (_, true, _) => " more than accepted",
            (_, _, true) => " less: --accept keeps it so",
            _ => "",
        };
        (is_worse, is_better) = (is_worse || is_more, is_better || is_less);
        let change = known.map(|known| (*figure as f64 / known.max(1) as f64 - 1.0) * 100.0);
        let change = change.map_or_else(String::new, |change| format!("{change:+.1} %"));
        let _ = writeln!(table, "  {name:24} {figure:>10} {change:>9}{says}");
    }
    for name in accepted.keys().filter(|name| !figures.contains_key(*name)) {
        is_worse = true;
        let _ = writeln!(table, "  {name:24} is accepted, and was not counted");
    }
    if !differences.is_empty() {
        let _ = write!(table, "the tools are others, which changes figures by themselves:\n{differences}");
    }
    let table = table.trim_end();
    if is_worse {
        let how = "cargo xtask instructions --accept accepts them, and the commit says why";
        return Err(format!("instructions: figures are not the accepted ones\n{table}\n{how}"));
    }
    let gain = if is_better { ", or better" } else { "" };
    Ok(format!("instructions: within {tolerance} % of the accepted figures{gain}\n{table}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: &str = "\
part: 2
totals: 1234

fl=(1) world.rs
fn=(7) instructions::world::run
12 30
cfl=(1)
cfn=(8) instructions::world::server_sends
calls=3 40
13 600
cfn=(9) instructions::world::client_sends
calls=1 50
14 5

fn=(8)
40 100
cfn=(10) transport::server_sends_more
calls=3 7
41 500

fn=(11) instructions::world::step
20 1
cfn=(8)
calls=2 40
+1 44
";

    /// Deleted, the guard could add up what is not meant, or miss calls from a second place.
    #[test]
    fn calls_are_counted_with_what_they_call() {
        assert_eq!(total(PART), 1234);
        assert_eq!(inclusive(PART, &["server_sends"]), 644);
        assert_eq!(inclusive(PART, &["server_sends", "client_sends"]), 649);
        assert_eq!(inclusive(PART, &["nothing"]), 0);
    }

    fn figures(of: &[(&str, u64)]) -> Figures {
        of.iter().map(|(name, figure)| ((*name).to_owned(), *figure)).collect()
    }

    /// Deleted, a change of more than 2 %, or a figure that is no longer counted, could pass.
    #[test]
    fn two_per_cent_more_is_a_failure() {
        let accepted = figures(&[("a", 1_000), ("b", 10_000)]);
        assert!(judge(&accepted, &figures(&[("a", 1_020), ("b", 9_800)]), "").is_ok());
        let worse = judge(&accepted, &figures(&[("a", 1_021), ("b", 10_000)]), "").unwrap_err();
        assert!(worse.contains("+2.1 % more than accepted") && worse.contains("--accept"), "{worse}");
        let better = judge(&accepted, &figures(&[("a", 900), ("b", 10_000)]), "").unwrap();
        assert!(better.contains("or better") && better.contains("-10.0 %"), "{better}");
        assert!(judge(&accepted, &figures(&[("a", 1_000)]), "").unwrap_err().contains("was not counted"));
        let more = figures(&[("a", 1_000), ("b", 10_000), ("c", 1)]);
        assert!(judge(&accepted, &more, "").unwrap_err().contains("new"));
    }

    #[test]
    fn what_is_accepted_is_read_again_and_another_compiler_is_told() {
        let tools = |compiler: &str| Tools {
            arch: "x86_64".to_owned(),
            cpu: "a CPU".to_owned(),
            compiler: compiler.to_owned(),
            valgrind: "valgrind-3".to_owned(),
        };
        let accepted = figures(&[("packet sent", 7), ("request over HTTP/1.1", 8)]);
        let (known, same) = read(&written(&tools("rustc 1"), &accepted)).unwrap();
        assert_eq!((&known, &same), (&tools("rustc 1"), &accepted));
        assert_eq!(tools("rustc 1").differences(&known), "");
        let differences = tools("rustc 2").differences(&known);
        assert!(differences.contains("accepted with rustc 1, counted with rustc 2"), "{differences}");
        assert!(judge(&same, &same, &differences).unwrap().contains("rustc 2"));
        let more = |count| figures(&[("a", count)]);
        assert!(judge(&more(1_000), &more(1_250), &differences).is_ok());
        assert!(judge(&more(1_000), &more(1_251), &differences).is_err());
    }
}
