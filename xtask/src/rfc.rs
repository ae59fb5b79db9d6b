//! `cargo xtask rfc`: normative rules against code.
//!
//! `specs/rfcNNNN.toml` lists rules, each with a key (`"13.2.1#3"`: section, and a number of ours within it), a `status`
//! (`done`, or `exception` with its `reason`), and in `rule` what it demands, in our words. Code cites a rule by a comment
//! line `//= rfcNNNN/KEY`. A rule that is done must be cited; whatever is cited must exist.

use std::collections::{BTreeMap, BTreeSet};

/// Checks both directions; the error lists every finding.
pub(crate) fn run() -> Result<String, String> {
    let root = crate::root();
    let mut rules = BTreeMap::new();
    let mut findings = Vec::new();
    for entry in std::fs::read_dir(root.join("specs")).into_iter().flatten().flatten() {
        let path = entry.path();
        let document = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let table: toml::Table = text.parse().map_err(|error| format!("{}: {error}", path.display()))?;
        for (key, rule) in table {
            let field = |name: &str| rule.get(name).and_then(toml::Value::as_str).unwrap_or("").to_owned();
            let (status, reason) = (field("status"), field("reason"));
            if field("rule").is_empty() {
                findings.push(format!("{document}/{key}: no rule text"));
            }
            match status.as_str() {
                "done" => {}
                "exception" if !reason.is_empty() => {}
                "exception" => findings.push(format!("{document}/{key}: an exception needs a reason")),
                other => findings.push(format!("{document}/{key}: unknown status {other:?}")),
            }
            rules.insert(format!("{document}/{key}"), status);
        }
    }
    let cited = citations(&root);
    findings.extend(
        cited
            .iter()
            .filter(|key| !rules.contains_key(*key))
            .map(|key| format!("{key}: cited, not in specs/")),
    );
    let uncited = rules.iter().filter(|(key, status)| *status == "done" && !cited.contains(*key));
    findings.extend(uncited.map(|(key, _)| format!("{key}: done, but no code cites it")));
    if findings.is_empty() {
        let exceptions = rules.values().filter(|status| *status == "exception").count();
        return Ok(format!("rfc: {} rules cited, {exceptions} exceptions", rules.len() - exceptions));
    }
    Err(format!("{}\nrfc: {} findings", findings.join("\n"), findings.len()))
}

fn citations(root: &std::path::Path) -> BTreeSet<String> {
    crate::rust_files(&root.join("crates"))
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .flat_map(|text| {
            let keys = text.lines().filter_map(|line| line.trim().strip_prefix("//= "));
            keys.map(|key| key.trim().to_owned()).collect::<Vec<_>>()
        })
        .collect()
}
