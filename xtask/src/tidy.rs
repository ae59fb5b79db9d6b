//! `cargo xtask tidy`: the walls of the design as a check.
//!
//! - A crate depends only on the crates that its row names; rows name lower rooms only (docs/decisions/001).
//! - A crate's folder is its group. It uses its own group and lower ones; no product uses the laboratory (docs/decisions/010).
//! - The feature `experiments`, which costs the path of a packet, is enabled by features of that name only (docs/decisions/010).
//! - Inside a crate no cycle between modules, at any level of its tree: neither by imports nor by calls of methods.
//! - A type at the centre of a crate is taken whole by few modules, which are listed (hubs.rs).
//! - A file has at most 600 lines; tests are exempt.
//! - Retired names and phrases do not come back (words.rs).

use crate::{graph, hubs, imports, methods, sources, words};
use std::collections::BTreeMap;
use std::path::Path;

/// A crate, its level, and the crates of ours that it may use. `*` is every crate of a lower level.
const ROOMS: &[(&str, u8, &[&str])] = &[
    ("aead", 0, &[]),
    ("base", 0, &[]),
    ("codec", 0, &[]),
    ("wire", 0, &["base"]),
    ("requirements", 0, &[]),
    ("body", 1, &[]),
    ("cpu", 0, &[]),
    ("crypto", 1, &["aead", "codec", "wire", "base"]),
    ("qlog", 1, &["wire", "base"]),
    ("recovery", 1, &["base"]),
    ("qpack", 1, &["base"]),
    ("datapath", 1, &["base"]),
    ("report", 1, &["base"]),
    ("transport", 2, &["wire", "crypto", "qlog", "recovery", "base"]),
    ("netlink", 1, &["base"]),
    ("ebpf", 1, &["base"]),
    ("udp", 2, &["datapath", "ebpf", "netlink", "wire", "base"]),
    ("xdp", 2, &["datapath", "ebpf", "netlink", "wire", "base"]),
    ("link", 2, &["datapath", "base"]),
    ("netns", 3, &["link", "netlink", "wire", "base"]),
    ("ports", 3, &["udp", "xdp", "datapath", "ebpf", "netlink", "wire", "base"]),
    ("http3", 3, &["transport", "qlog", "qpack", "wire", "base"]),
    ("worker", 3, &["transport", "datapath", "base"]),
    ("traces", 3, &["qlog", "base"]),
    ("quic", 4, &["*"]),
    ("server", 5, &["*"]),
    ("client", 5, &["*"]),
    ("acme", 6, &["*"]),
    ("proxy", 6, &["*"]),
    ("config", 7, &["*"]),
    ("admin", 6, &["*"]),
    ("load", 6, &["*"]),
    ("sim", 4, &["*"]),
    ("dash", 7, &["*"]),
    ("bench", 7, &["*"]),
    ("instructions", 7, &["*"]),
    ("interop", 5, &["*"]),
    ("profile", 5, &["*"]),
    ("traceview", 2, &["report"]),
    ("studies", 8, &["*"]),
    ("tercel", 6, &["*"]),
    ("cli", 9, &["*"]),
];

/// The groups, lowest first: the folders of `crates/`.
const GROUPS: &[&str] = &["protocol", "network", "http", "product", "lab"];

/// The command. It alone may use the laboratory, by optional dependencies that its feature `lab` enables.
const COMMAND: &str = "cli";

/// A file is one noun; above this a room is missing.
const MAX_LINES: usize = 600;

/// Runs all checks; the error lists every finding.
pub(crate) fn run() -> Result<String, String> {
    let root = crate::root();
    let mut findings = Vec::new();
    let mut files = 0;
    let crates = crate::crate_folders(&root);
    let groups: Groups = crates.iter().map(|folder| (name_of(folder), group_of(folder))).collect();
    for folder in &crates {
        let name = name_of(folder);
        let manifest = manifest(folder);
        // For its code and its build script; what only its tests use may come from anywhere below.
        let used = read_dependencies(&manifest);
        findings.extend(experiments(&name, &manifest));
        findings.extend(upward(&name, &used));
        findings.extend(outward(&name, &used, &groups));
        files += check_sources(&root, folder, &name, &mut findings);
    }
    files += check_sources(&root, &root.join("xtask"), "xtask", &mut findings);
    findings.extend(levels(&manifest(&root)));
    findings.sort();
    if findings.is_empty() {
        return Ok(format!("tidy: {} crates, {files} files, nothing to report", ROOMS.len()));
    }
    Err(format!("{}\ntidy: {} findings", findings.join("\n"), findings.len()))
}

fn level(name: &str) -> Option<u8> {
    ROOMS.iter().find(|(room, ..)| *room == name).map(|(_, level, _)| *level)
}

/// The group of each crate, by its place in [`GROUPS`]; `None` for a folder that is no group.
type Groups = BTreeMap<String, Option<usize>>;

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn group_of(folder: &Path) -> Option<usize> {
    let group = folder.parent().map(name_of)?;
    GROUPS.iter().position(|name| *name == group)
}

/// Dependencies that the crate's row does not name.
fn upward(name: &str, used: &[Dependency]) -> Vec<String> {
    let Some((_, own_level, allowed)) = ROOMS.iter().find(|(room, ..)| *room == name) else {
        return vec![format!("{name}: not in the table of rooms (xtask/src/tidy.rs)")];
    };
    let is_permitted = |used: &Dependency| match (level(&used.name), allowed) {
        (None, _) => true,
        (Some(its_level), ["*"]) => its_level < *own_level,
        (_, list) => list.contains(&used.name.as_str()),
    };
    let refused = used.iter().filter(|used| !is_permitted(used));
    refused.map(|used| format!("{name}: may not depend on {} (upward or sideways)", used.name)).collect()
}

/// Dependencies that lie in a higher group.
fn outward(name: &str, used: &[Dependency], groups: &Groups) -> Vec<String> {
    let Some(Some(own)) = groups.get(name) else {
        return vec![format!("{name}: its folder is none of the groups {}", GROUPS.join(", "))];
    };
    let is_higher =
        |used: &&Dependency| groups.get(&used.name).copied().flatten().is_some_and(|its| its > *own);
    let is_excused = |used: &Dependency| name == COMMAND && used.is_of_feature_lab;
    let refused = used.iter().filter(is_higher).filter(|used| !is_excused(used));
    refused
        .map(|used| format!("{name}: may not depend on {}, which is of a higher group", used.name))
        .collect()
}

/// A crate that another depends on.
#[derive(Debug)]
struct Dependency {
    /// The name under which the code uses it.
    name: String,
    /// Whether it is optional and enabled by the feature `lab`, and by no other.
    is_of_feature_lab: bool,
}

fn manifest(directory: &Path) -> toml::Table {
    let manifest = std::fs::read_to_string(directory.join("Cargo.toml")).unwrap_or_default();
    manifest.parse().unwrap_or_default()
}

/// Features other than `experiments` and dependencies that enable a feature of that name.
fn experiments(name: &str, manifest: &toml::Table) -> Vec<String> {
    let table = |name| manifest.get(name).and_then(toml::Value::as_table).into_iter().flatten();
    let names_it = |list: Option<&toml::Value>| {
        let entries =
            list.and_then(toml::Value::as_array).into_iter().flatten().filter_map(toml::Value::as_str);
        entries.map(|entry| entry.rsplit('/').next().unwrap_or(entry)).any(|entry| entry == "experiments")
    };
    let features =
        table("features").filter(|(feature, list)| *feature != "experiments" && names_it(Some(list)));
    let dependencies = table("dependencies").filter(|(_, value)| names_it(value.get("features")));
    let enabling = features.chain(dependencies);
    enabling
        .map(|(what, _)| format!("{name}: {what} enables the feature experiments for ordinary builds"))
        .collect()
}

/// Packages that the profile dist would inherit a lower level for: LLVM crashes when it links code of level 0 with the rest.
fn levels(workspace: &toml::Table) -> Vec<String> {
    let packages = |profile: &str| {
        let profile = workspace.get("profile").and_then(|profiles| profiles.get(profile));
        profile.and_then(|profile| profile.get("package")).and_then(toml::Value::as_table)
    };
    let of_dist = packages("dist");
    let lower =
        packages("release").into_iter().flatten().filter(|(_, settings)| settings.get("opt-level").is_some());
    let is_set = |name: &str| of_dist.is_some_and(|of_dist| of_dist.contains_key(name));
    let forgotten = lower.filter(|(name, _)| !is_set(name));
    forgotten
        .map(|(name, _)| {
            format!("Cargo.toml: profile.dist.package.{name} must set the level that profile.release lowers")
        })
        .collect()
}

fn read_dependencies(manifest: &toml::Table) -> Vec<Dependency> {
    let table = |name| manifest.get(name).and_then(toml::Value::as_table).into_iter().flatten();
    let enables = |feature: &toml::Value, dependency: &str| {
        let entries = feature.as_array().into_iter().flatten().filter_map(toml::Value::as_str);
        entries.filter_map(|entry| entry.strip_prefix("dep:")).any(|entry| entry == dependency)
    };
    let of_feature_lab = |dependency: &str, value: &toml::Value| {
        let is_optional = value.get("optional").and_then(toml::Value::as_bool) == Some(true);
        let enabling: Vec<&str> = table("features")
            .filter(|(_, entries)| enables(entries, dependency))
            .map(|(name, _)| name.as_str())
            .collect();
        is_optional && enabling == ["lab"]
    };
    table("dependencies")
        .chain(table("build-dependencies"))
        .map(|(name, value)| Dependency {
            name: name.clone(),
            is_of_feature_lab: of_feature_lab(name, value),
        })
        .collect()
}

/// Sizes of files and cycles between modules. Returns the number of files.
fn check_sources(root: &Path, directory: &Path, name: &str, findings: &mut Vec<String>) -> usize {
    let source = directory.join("src");
    let files = crate::rust_files(&source);
    files.iter().for_each(|path| check_size(root, path, findings));
    let names = words::file_names(root);
    let beside =
        ["tests", "examples", "benches"].iter().flat_map(|folder| crate::rust_files(&directory.join(folder)));
    findings
        .extend(files.iter().cloned().chain(beside).flat_map(|path| words::findings(root, &path, &names)));
    let modules = sources::modules(&source);
    let arrows = imports::arrows(&modules).into_iter().chain(methods::arrows(&modules));
    findings.extend(graph::cycles(arrows).into_iter().map(|cycle| format!("{name}: cycle: {cycle}")));
    findings.extend(hubs::findings(name, &modules).into_iter().map(|finding| format!("{name}: {finding}")));
    files.len()
}

fn check_size(root: &Path, path: &Path, findings: &mut Vec<String>) {
    let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
    if name.ends_with("tests.rs") || name.contains("/tests/") {
        return;
    }
    let lines = std::fs::read_to_string(path).map_or(0, |text| text.lines().count());
    if lines > MAX_LINES {
        findings.push(format!("{name}: {lines} lines, more than {MAX_LINES}: a room is missing"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outward_of(name: &str, manifest: &str) -> Vec<String> {
        let place = |group: &str| GROUPS.iter().position(|name| *name == group);
        let groups: Groups =
            [("wire", "protocol"), ("server", "product"), (COMMAND, "product"), ("report", "lab")]
                .map(|(name, group)| (name.to_owned(), place(group)))
                .into();
        outward(name, &read_dependencies(&manifest.parse().unwrap()), &groups)
    }

    /// Deleted, the product could link the laboratory again.
    #[test]
    fn a_crate_uses_its_own_group_and_lower_ones() {
        let used = |names: [&str; 2]| format!("[dependencies]\n{} = {{}}\n{} = {{}}", names[0], names[1]);
        assert!(outward_of("server", &used(["wire", "clap"])).is_empty());
        assert_eq!(outward_of("server", &used(["wire", "report"])).len(), 1);
        assert_eq!(outward_of("wire", &used(["server", "clap"])).len(), 1);
        assert!(outward_of("toy", "")[0].contains("none of the groups"));
        assert_eq!(outward_of("server", "[build-dependencies]\nreport = {}").len(), 1);
    }

    /// Deleted, an ordinary build could ask for each packet whether an experiment does without something.
    #[test]
    fn only_a_feature_of_its_name_enables_experiments() {
        let found = |manifest: &str| experiments("cli", &manifest.parse().unwrap()).len();
        assert_eq!(found("[features]\nexperiments = [\"transport/experiments\"]\ndefault = [\"lab\"]"), 0);
        assert_eq!(found("[features]\ndefault = [\"experiments\"]"), 1);
        assert_eq!(found("[features]\nlab = [\"transport/experiments\"]"), 1);
        assert_eq!(found("[dependencies]\ntransport = { features = [\"experiments\"] }"), 1);
    }

    /// Deleted, `make dist` could crash at its last link again.
    #[test]
    fn the_profile_dist_lowers_no_level() {
        let found = |dist: &str| {
            let release = "[profile.release.package]\naya = { opt-level = 0 }\n\"*\" = { debug = false }\n";
            levels(&format!("{release}{dist}").parse().unwrap()).len()
        };
        assert_eq!(found(""), 1);
        assert_eq!(found("[profile.dist.package]\naya = { opt-level = 3 }"), 0);
    }

    /// Deleted, a command without the feature `lab` could carry the laboratory.
    #[test]
    fn the_command_uses_the_laboratory_by_its_feature_only() {
        let optional = "[dependencies]\nreport = { optional = true }\n[features]\nlab = [\"dep:report\"]";
        assert!(outward_of(COMMAND, optional).is_empty());
        assert_eq!(outward_of("server", optional).len(), 1);
        assert_eq!(outward_of(COMMAND, "[dependencies]\nreport = {}").len(), 1);
        assert_eq!(outward_of(COMMAND, &format!("{optional}\nother = [\"dep:report\"]")).len(), 1);
    }
}
