//! `tercel doctor`: what this machine allows, and the commands that mend the rest.
//!
//! The examination is in the room of paths; this file prints it.

use crate::print_error;
use clap::Args;
use core::fmt::Write as _;
use ports::doctor::{CheckOptions, Finding, Section, Severity, examine};
use serde_json::{Map, Value, json};
use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Flags of `tercel doctor`.
#[derive(Args)]
#[command(after_help = STATES)]
pub(crate) struct DoctorArgs {
    /// Try out which AF_XDP modes this interface takes; on some cards that interrupts its traffic for a moment.
    ///
    /// Without it the driver is asked what it offers, and nothing is touched.
    #[arg(long, value_name = "NAME")]
    try_xdp: Option<String>,
    /// Print JSON: an object for each thing that was examined.
    #[arg(long)]
    json: bool,
}

const STATES: &str = "\
ok is as it should be, note is neither good nor bad, limited works but could be better, missing does not work.
A line below that begins with $ is a command that mends it.";

/// Examines the machine and says what was found.
pub(crate) fn run(args: &DoctorArgs) -> ExitCode {
    let request = CheckOptions { try_xdp: args.try_xdp.clone(), program: program() };
    let sections = match examine(&request) {
        Ok(sections) => sections,
        Err(problem) => return print_error(problem),
    };
    if args.json {
        println!("{:#}", machine_text(&sections));
    } else {
        print!("{}", people_text(&sections));
    }
    ExitCode::SUCCESS
}

/// This program's file: privileges are given to files.
fn program() -> PathBuf {
    env::current_exe().unwrap_or_else(|_| Path::new("tercel").to_owned())
}

/// `{"machine": {"kernel": {"state": "ok", "found": …, "remedy": null}, …}, "interfaces": {"eth0": {…}, …}}`
fn machine_text(sections: &[Section]) -> Value {
    let findings = |findings: &[Finding]| -> Map<String, Value> {
        let entry = |finding: &Finding| {
            let answer = &finding.answer;
            let value = json!({"state": answer.state.name(), "found": answer.found, "remedy": answer.remedy});
            (finding.check.to_owned(), value)
        };
        findings.iter().map(entry).collect()
    };
    let about = |section: &Section| (section.about.clone(), Value::Object(findings(&section.findings)));
    let (machine, interfaces) = sections.split_at(sections.len().min(1));
    let machine = machine.iter().map(|section| findings(&section.findings)).next();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "machine": machine,
        "interfaces": interfaces.iter().map(about).collect::<Map<String, Value>>(),
    })
}

/// A paragraph for each section, a line for each finding, in columns; remedies on lines of their own.
fn people_text(sections: &[Section]) -> String {
    let findings = || sections.iter().flat_map(|section| &section.findings);
    let width = findings().map(|finding| finding.check.len()).max().unwrap_or(0);
    let mut text = String::new();
    for section in sections {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", section.about);
        for Finding { check, answer } in &section.findings {
            let _ = writeln!(text, "  {:7}  {check:width$}  {}", answer.state.name(), answer.found);
            if let Some(remedy) = &answer.remedy {
                let sign = if remedy.starts_with("sudo ") { "$ " } else { "-> " };
                let _ = writeln!(text, "  {:7}  {:width$}  {sign}{remedy}", "", "");
            }
        }
        text.push('\n');
    }
    let count = |state| findings().filter(|finding| finding.answer.state == state).count();
    let _ = match (count(Severity::Missing), count(Severity::Limited)) {
        (0, 0) => writeln!(text, "Nothing to mend."),
        (missing, limited) => writeln!(text, "{missing} missing, {limited} limited."),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use ports::doctor::CheckResult;

    fn sections() -> Vec<Section> {
        let finding = |check, state, found: &str, remedy: Option<&str>| Finding {
            check,
            answer: CheckResult { state, found: found.to_owned(), remedy: remedy.map(str::to_owned) },
        };
        vec![
            Section {
                about: "machine".to_owned(),
                findings: vec![
                    finding("gso", Severity::Good, "works", None),
                    finding("send buffer", Severity::Limited, "small", Some("sudo sysctl -w x=1")),
                ],
            },
            Section {
                about: "eth0".to_owned(),
                findings: vec![finding("link", Severity::Note, "down", None)],
            },
        ]
    }

    #[test]
    fn people_read_columns_and_commands() {
        let expected = "\
machine
  ok       gso          works
  limited  send buffer  small
                        $ sudo sysctl -w x=1

eth0
  note     link         down

0 missing, 1 limited.
";
        assert_eq!(people_text(&sections()), expected);
    }

    #[test]
    fn programs_find_each_check_by_its_name() {
        let value = machine_text(&sections());
        assert_eq!(value["machine"]["send buffer"]["remedy"], "sudo sysctl -w x=1");
        assert_eq!(value["machine"]["gso"]["state"], "ok");
        assert_eq!(value["interfaces"]["eth0"]["link"]["found"], "down");
    }
}
