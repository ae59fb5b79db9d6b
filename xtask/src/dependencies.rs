//! `cargo xtask dependencies`: licences, bans and duplicates of what Cargo.lock holds.
//!
//! The rules are xtask/dependencies.toml. What there is comes from `cargo metadata`, so that nothing needs to be installed. A rule that
//! no longer applies to anything is a finding as well: the table stays short.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// A crate from a registry.
#[derive(Clone, Debug)]
struct Package {
    name: String,
    version: String,
    licence: String,
}

/// xtask/dependencies.toml.
#[derive(Debug, Default)]
struct Rules {
    licences: BTreeSet<String>,
    /// Name, and the licence that is excepted for it.
    exceptions: BTreeMap<String, String>,
    /// Name and reason.
    banned: BTreeMap<String, String>,
    /// Name and reason.
    duplicates: BTreeMap<String, String>,
}

/// Checks all packages; the error lists every finding.
pub(crate) fn run() -> Result<String, String> {
    let root = crate::root();
    let path = root.join("xtask/dependencies.toml");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(&root)
        .output()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let packages = packages(&String::from_utf8_lossy(&output.stdout))?;
    let findings = judge(&Rules::read(&text)?, &packages);
    if findings.is_empty() {
        return Ok(format!("dependencies: {} crates, nothing to report", packages.len()));
    }
    Err(format!(
        "{}\ndependencies: {} findings (xtask/dependencies.toml)",
        findings.join("\n"),
        findings.len()
    ))
}

fn packages(metadata: &str) -> Result<Vec<Package>, String> {
    let metadata: Value =
        serde_json::from_str(metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let all = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let foreign = all.iter().filter(|package| !package["source"].is_null());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let read = |package: &Value| Package {
        name: text(&package["name"]),
        version: text(&package["version"]),
        licence: text(&package["license"]),
    };
    Ok(foreign.map(read).collect())
}

impl Rules {
    fn read(text: &str) -> Result<Rules, String> {
        let table: toml::Table = text.parse().map_err(|error| format!("dependencies.toml: {error}"))?;
        let reasons = |name: &str| -> BTreeMap<String, String> {
            let entries = table.get(name).and_then(toml::Value::as_table).into_iter().flatten();
            entries.map(|(name, reason)| (name.clone(), reason.as_str().unwrap_or("").to_owned())).collect()
        };
        let licences = table.get("licences").and_then(toml::Value::as_array).into_iter().flatten();
        let mut exceptions = BTreeMap::new();
        for (name, entry) in table.get("exceptions").and_then(toml::Value::as_table).into_iter().flatten() {
            let field = |field: &str| entry.get(field).and_then(toml::Value::as_str).unwrap_or("");
            if field("reason").is_empty() {
                return Err(format!("dependencies.toml: the exception {name} needs a reason"));
            }
            exceptions.insert(name.clone(), field("licence").to_owned());
        }
        Ok(Rules {
            licences: licences.filter_map(toml::Value::as_str).map(str::to_owned).collect(),
            exceptions,
            banned: reasons("banned"),
            duplicates: reasons("duplicates"),
        })
    }
}

fn judge(rules: &Rules, packages: &[Package]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for Package { name, version, licence } in packages {
        versions.entry(name).or_default().insert(version);
        if let Some(reason) = rules.banned.get(name) {
            findings.push(format!("{name} {version}: banned: {reason}"));
        }
        let excepted = rules.exceptions.get(name).is_some_and(|excepted| excepted == licence);
        if !excepted && !permits(licence, &rules.licences) {
            findings.push(format!("{name} {version}: its licence is {licence:?}, which is not allowed"));
        }
    }
    for (name, several) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        if !rules.duplicates.contains_key(*name) {
            let several: Vec<&str> = several.iter().copied().collect();
            findings.push(format!("{name}: there in {} versions ({})", several.len(), several.join(", ")));
        }
    }
    let single = |name: &String| versions.get(name.as_str()).is_none_or(|versions| versions.len() < 2);
    let idle = rules.duplicates.keys().filter(|name| single(name));
    findings.extend(idle.map(|name| format!("{name}: no longer a duplicate: the rule can go")));
    let gone = rules.exceptions.keys().filter(|name| !versions.contains_key(name.as_str()));
    findings.extend(gone.map(|name| format!("{name}: no longer there: the exception can go")));
    findings
}

/// Whether an SPDX expression offers a way through allowed licences alone. `/` is `OR`, as crates once wrote.
fn permits(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let outcome = any(&mut words, allowed);
    outcome == Some(true) && words.next().is_none()
}

type Words<'a, 'b> = &'b mut std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: Words<'_, '_>, allowed: &BTreeSet<String>) -> Option<bool> {
    let mut outcome = every(words, allowed)?;
    while words.next_if_eq(&"OR").is_some() {
        outcome |= every(words, allowed)?;
    }
    Some(outcome)
}

fn every(words: Words<'_, '_>, allowed: &BTreeSet<String>) -> Option<bool> {
    let mut outcome = one(words, allowed)?;
    while words.next_if_eq(&"AND").is_some() {
        outcome &= one(words, allowed)?;
    }
    Some(outcome)
}

fn one(words: Words<'_, '_>, allowed: &BTreeSet<String>) -> Option<bool> {
    let word = words.next()?;
    if word == "(" {
        let outcome = any(words, allowed)?;
        return words.next_if_eq(&")").map(|_| outcome);
    }
    let name = match words.next_if_eq(&"WITH") {
        Some(_) => format!("{word} WITH {}", words.next()?),
        None => word.to_owned(),
    };
    Some(allowed.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, licence: &str) -> Package {
        Package { name: name.to_owned(), version: version.to_owned(), licence: licence.to_owned() }
    }

    fn rules() -> Rules {
        Rules::read(
            "licences = [\"MIT\", \"ISC\", \"Apache-2.0 WITH LLVM-exception\"]\n[exceptions]\nflames = { licence = \"CDDL-1.0\", reason = \"a tool\" }\n[banned]\natty = \"unmaintained\"\n[duplicates]\nsyn = \"derive macros\"\n",
        )
        .unwrap()
    }

    #[test]
    fn an_expression_needs_one_way_through_allowed_licences() {
        let allowed = rules().licences;
        for good in [
            "MIT",
            "MIT OR GPL-3.0",
            "GPL-3.0 / MIT",
            "ISC AND (GPL-3.0 OR MIT)",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
        ] {
            assert!(permits(good, &allowed), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT", "MIT MIT", "Apache-2.0", "MIT OR", "MIT WITH x"]
        {
            assert!(!permits(bad, &allowed), "{bad}");
        }
    }

    /// Deleted, a licence that asks for more, an unmaintained crate, or a second copy could come in with any update.
    #[test]
    fn findings_name_what_is_not_allowed_and_what_no_longer_applies() {
        let fine = [
            package("flames", "1.0.0", "CDDL-1.0"),
            package("syn", "2.0.0", "MIT"),
            package("syn", "3.0.0", "MIT"),
        ];
        assert_eq!(judge(&rules(), &fine), Vec::<String>::new());
        for (more, expected) in [
            (package("other", "1.0.0", "CDDL-1.0"), "licence"),
            (package("atty", "1.0.0", "MIT"), "unmaintained"),
            (package("flames", "2.0.0", "CDDL-1.0"), "versions"),
            (package("flames", "1.0.0", "GPL-3.0"), "licence"),
        ] {
            let all = [&fine[..], &[more]].concat();
            let found = judge(&rules(), &all);
            assert!(found.len() == 1 && found[0].contains(expected), "{expected}: {found:?}");
        }
        let found = judge(&rules(), &[package("syn", "2.0.0", "MIT")]);
        assert!(found.len() == 2 && found.iter().all(|it| it.contains("no longer")), "{found:?}");
    }
}
