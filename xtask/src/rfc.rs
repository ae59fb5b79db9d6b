//! `cargo xtask rfc`: normative rules against code, and names of tests against the tests that there are.
//!
//! `specs/rfcNNNN.toml` lists rules, each with a key (`"13.2.1#3"`: section, and a number of ours within it), in `rule` what it
//! demands in our words, and a `status`: `done`, with the `test` that would fail if the rule were broken, or `exception`, with
//! its `reason`. Code cites a rule by a comment line `//= rfcNNNN/KEY`.
//!
//! - A rule that is done is cited. What is cited exists.
//! - A rule that is done names a test that exists and that CI runs. An exception names none.
//! - docs/threats.md, docs/quic.md and docs/features.md name such tests only.

use crate::inventory::Inventory;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Pages that name tests.
const PAGES: [&str; 3] = ["docs/threats.md", "docs/quic.md", "docs/features.md"];

/// What specs/ says of a rule.
#[derive(Debug, Default)]
struct Rule {
    rule: String,
    status: String,
    reason: String,
    test: String,
}

/// Checks all of it; the error lists every finding.
pub(crate) fn run() -> Result<String, String> {
    let root = crate::root();
    let rules = rules(&root.join("specs"))?;
    let inventory = Inventory::of(&root);
    let mut findings = judge(&rules, &citations(&root), &inventory);
    for page in PAGES {
        let text = std::fs::read_to_string(root.join(page)).map_err(|error| format!("{page}: {error}"))?;
        findings.extend(misnamed(&text, &inventory).into_iter().map(|it| format!("{page}:{it}")));
    }
    if findings.is_empty() {
        let exceptions = rules.values().filter(|rule| rule.status == "exception").count();
        let done = rules.len() - exceptions;
        return Ok(format!("rfc: {done} rules cited, each with a test that runs, {exceptions} exceptions"));
    }
    Err(format!("{}\nrfc: {} findings", findings.join("\n"), findings.len()))
}

fn rules(specs: &Path) -> Result<BTreeMap<String, Rule>, String> {
    let mut rules = BTreeMap::new();
    for entry in std::fs::read_dir(specs).into_iter().flatten().flatten() {
        let path = entry.path();
        let document = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let table: toml::Table = text.parse().map_err(|error| format!("{}: {error}", path.display()))?;
        for (key, value) in table {
            let field = |name: &str| value.get(name).and_then(toml::Value::as_str).unwrap_or("").to_owned();
            let rule = Rule {
                rule: field("rule"),
                status: field("status"),
                reason: field("reason"),
                test: field("test"),
            };
            rules.insert(format!("{document}/{key}"), rule);
        }
    }
    Ok(rules)
}

fn judge(rules: &BTreeMap<String, Rule>, cited: &BTreeSet<String>, inventory: &Inventory) -> Vec<String> {
    let mut findings = Vec::new();
    for (key, Rule { rule, status, reason, test }) in rules {
        let mut find = |what: &str| findings.push(format!("{key}: {what}"));
        if rule.is_empty() {
            find("no rule text");
        }
        match status.as_str() {
            "done" => {
                if !cited.contains(key) {
                    find("done, but no code cites it");
                }
                if test.is_empty() {
                    find("done, but it names no test that would fail if it were broken");
                } else if let Some(objection) = inventory.objection(test) {
                    find(&format!("test {test}: {objection}"));
                }
            }
            "exception" if reason.is_empty() => find("an exception needs a reason"),
            "exception" if !test.is_empty() => find("an exception with a test: one of the two is wrong"),
            "exception" => {}
            other => find(&format!("unknown status {other:?}")),
        }
    }
    let unknown = cited.iter().filter(|key| !rules.contains_key(*key));
    findings.extend(unknown.map(|key| format!("{key}: cited, not in specs/")));
    findings
}

fn citations(root: &Path) -> BTreeSet<String> {
    crate::rust_files(&root.join("crates"))
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .flat_map(|text| {
            let keys = text.lines().filter_map(|line| line.trim().strip_prefix("//= "));
            keys.map(|key| key.trim().to_owned()).collect::<Vec<_>>()
        })
        .collect()
}

/// Names between backticks that are to be tests and are none, with their lines. A name with `::` that begins with a crate is a test
/// or a module; one in snake case without is a fuzz target, since the whole name of a test has its crate.
fn misnamed(document: &str, inventory: &Inventory) -> Vec<String> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(document.lines()) {
        for name in line.split('`').skip(1).step_by(2) {
            let is_path = name.split("::").all(|part| {
                !part.is_empty()
                    && part
                        .chars()
                        .all(|letter| letter.is_ascii_lowercase() || "_0123456789".contains(letter))
            });
            if !is_path {
                continue;
            }
            let objection = match name.split_once("::") {
                Some(_) if inventory.modules.contains(name) => None,
                Some(_) => inventory.objection(name),
                None if inventory.is_test_function(name) => {
                    Some("a test is named with its crate and module".to_owned())
                }
                None => None,
            };
            findings.extend(objection.map(|objection| format!("{number}: {name}: {objection}")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace of one crate, in xtask/fixtures.
    fn toy() -> Inventory {
        Inventory::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures"))
    }

    fn findings(status: &str, test: &str, reason: &str) -> Vec<String> {
        let text = |text: &str| text.to_owned();
        let rule =
            Rule { rule: text("A rule."), status: text(status), reason: text(reason), test: text(test) };
        let key = || "rfc1/2#3".to_owned();
        judge(&BTreeMap::from([(key(), rule)]), &BTreeSet::from([key()]), &toy())
    }

    /// Deleted, a rule could be called done with a test that was renamed, removed, ignored or never compiled.
    #[test]
    fn a_rule_that_is_done_names_a_test_that_runs() {
        for test in [
            "toy::tests::beside_the_code",
            "toy::below::tests::in_another_file",
            "toy::below::tests::of_a_property",
            "toy::outside::in_the_folder_of_tests",
            "toy::outside::helper::in_a_module_of_it",
            "toy::program",
        ] {
            assert_eq!(findings("done", test, ""), Vec::<String>::new(), "{test}");
        }
        for (test, why) in [
            ("", "names no test"),
            ("toy::tests::renamed", "no such test"),
            ("toy::tests::takes_long", "ignores it"),
            ("toy::tests::somewhere_else", "only"),
            ("toy::tests::helper", "not a test"),
            ("toy::orphan::tests::never_compiled", "no such test"),
            ("toy::program::without_a_harness", "no harness"),
            ("beside_the_code", "no such test"),
        ] {
            let found = findings("done", test, "");
            assert!(found.len() == 1 && found[0].contains(why), "{test}: {found:?}");
        }
    }

    #[test]
    fn exceptions_have_a_reason_and_no_test_and_what_is_cited_exists() {
        assert_eq!(findings("exception", "", "not built").len(), 0);
        assert_eq!(findings("exception", "", "").len(), 1);
        assert_eq!(findings("exception", "toy::tests::beside_the_code", "not built").len(), 1);
        assert_eq!(findings("later", "", "").len(), 1);
        let cited = BTreeSet::from(["rfc1/9#9".to_owned()]);
        assert_eq!(judge(&BTreeMap::new(), &cited, &toy()), ["rfc1/9#9: cited, not in specs/"]);
    }

    /// Deleted, the table of threats could go on naming tests that do not run any more.
    #[test]
    fn documents_name_tests_in_full_that_run() {
        let line = |name: &str| misnamed(&format!("| threat | `A` | `unsafe`: `{name}`. |"), &toy());
        for name in ["toy::tests::beside_the_code", "toy::below", "wire_frames", "setpriv", "crates/toy/src"]
        {
            assert_eq!(line(name), Vec::<String>::new(), "{name}");
        }
        for name in ["toy::tests::renamed", "below::tests::in_another_file", "in_another_file"] {
            assert_eq!(line(name).len(), 1, "{name}");
        }
    }
}
