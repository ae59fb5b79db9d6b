//! `cargo xtask hollow`: tests that pass without having checked anything.
//!
//! - A test that says itself that it was skipped passes where it should fail: the crate `requirements` says so for all, and fails
//!   where `CI` is set.
//! - A test without anything that can fail is no test. What can fail is an assertion, an unwrapped value, `should_panic`, a `?`, or
//!   a helper that has one of these.

use crate::functions;
use crate::inventory::{Entry, Inventory, Kind};
use std::collections::BTreeSet;
use std::path::Path;

/// Names that make a function able to fail. Macros count without their `!`.
const ABLE: &[&str] = &["unwrap", "expect", "unwrap_err", "expect_err", "panic", "unreachable", "ExitCode"];

/// Tests of that kind, by the end of their name, and what they check all the same.
const BY_NATURE: &[(&str, &str)] = &[
    ("::no_bytes_panic", "a panic, which fails them"),
    ("::any_bytes_pass", "what the harnesses assert"),
    ("::a_program_may_belong_to_any_thread", "that it compiles"),
    ("::handlers_and_bodies_can_move_between_threads", "that it compiles"),
];

/// Checks all tests; the error lists every finding.
pub(crate) fn run() -> Result<String, String> {
    let root = crate::root();
    let inventory = Inventory::of(&root);
    let (excused, mut findings) = unasserting(&inventory)
        .into_iter()
        .partition::<Vec<_>, _>(|finding| BY_NATURE.iter().any(|(name, _)| finding.ends_with(name)));
    for (name, _) in BY_NATURE {
        if !excused.iter().any(|finding| finding.ends_with(name)) {
            findings.push(format!("{name}: the exception in xtask/src/hollow.rs can go"));
        }
    }
    let tests = inventory.entries.values().flatten().filter(|entry| entry.kind == Kind::Test).count();
    for path in crate::rust_files(&root.join("crates")) {
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        if !Path::new(&name).starts_with("crates/lab/requirements") {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            findings.extend(skipping(&text).into_iter().map(|line| {
                format!("{name}:{line}: says \"skipped\" on its own; requirements::missing says it, and fails in CI")
            }));
        }
    }
    if findings.is_empty() {
        return Ok(format!("hollow: {tests} tests, of which none passes without a check"));
    }
    Err(format!("{}\nhollow: {} findings", findings.join("\n"), findings.len()))
}

/// Lines of code with a text that begins or ends with "skipped".
fn skipping(text: &str) -> Vec<usize> {
    let code = functions::blank(text);
    let lines = (1..).zip(text.lines().zip(code.lines()));
    let says = |line: &str| line.contains("\"skipped") || line.contains("skipped\"");
    lines
        .filter(|(_, (line, code))| says(line) && !code.trim().is_empty())
        .map(|(number, _)| number)
        .collect()
}

/// Tests that nothing can fail in.
fn unasserting(inventory: &Inventory) -> Vec<String> {
    let mut findings = Vec::new();
    let rooms: BTreeSet<&str> = all(inventory).map(|entry| entry.room.as_str()).collect();
    for room in rooms {
        let entries: Vec<&Entry> = all(inventory).filter(|entry| entry.room == room).collect();
        // What a test can call: the functions of its crate that belong to tests, until no other is found able to fail.
        let mut able: BTreeSet<&str> = BTreeSet::new();
        loop {
            let more = entries.iter().filter(|entry| is_able(entry, &able));
            let grown: BTreeSet<&str> = more.map(|entry| entry.function.name.as_str()).collect();
            if grown.len() == able.len() {
                break;
            }
            able = grown;
        }
        let hollow = entries.iter().filter(|entry| entry.kind == Kind::Test && !is_able(entry, &able));
        findings.extend(hollow.map(|entry| {
            format!("{}: a test that nothing can fail: ::{}", entry.place, entry.function.name)
        }));
    }
    findings
}

fn all(inventory: &Inventory) -> impl Iterator<Item = &Entry> {
    inventory.entries.values().flatten()
}

fn is_able(entry: &Entry, able: &BTreeSet<&str>) -> bool {
    let function = &entry.function;
    let of_tests =
        entry.kind != Kind::Plain || entry.place.contains("/tests") || entry.place.contains("testing");
    let of_tests = of_tests || function.attributes.iter().any(|attribute| attribute == "cfg(test)");
    let body = function.body.as_str();
    function.attributes.iter().any(|attribute| attribute.starts_with("should_panic"))
        || of_tests
            && (body.contains('?')
                || words(body)
                    .any(|word| word.contains("assert") || ABLE.contains(&word) || able.contains(word)))
}

fn words(body: &str) -> impl Iterator<Item = &str> {
    body.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hollow(test: &str) -> bool {
        let text =
            format!("fn helper() {{ assert!(true); }}\nfn idle() {{}}\n#[test]\nfn named() {{ {test} }}");
        let mut inventory = Inventory::default();
        inventory.add("toy", "crates/toy/tests/a.rs", &text);
        !unasserting(&inventory).is_empty()
    }

    /// Deleted, a test whose assertions went away in a change would go on being counted as one.
    #[test]
    fn a_test_has_something_that_can_fail() {
        for test in ["assert_eq!(1, 1);", "one().unwrap();", "helper();", "prop_assert!(true);"] {
            assert!(!hollow(test), "{test}");
        }
        for test in ["", "idle();", "let _ = one();", "// assert!(true);"] {
            assert!(hollow(test), "{test}");
        }
    }

    /// Deleted, a test could again pass in CI without having run.
    #[test]
    fn no_test_says_skipped_by_itself() {
        let text = "eprintln!(\"skipped: needs root\");\nprintln!(\"it is not there: skipped\");\n// println!(\"skipped\")\nlet skipped = 1;";
        assert_eq!(skipping(text), [1, 2]);
    }
}
