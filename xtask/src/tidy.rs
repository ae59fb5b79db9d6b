//! `cargo xtask tidy`: the walls of the design as a check.
//!
//! - A crate depends only on the crates that its row names; rows name lower rooms only (docs/decisions/001).
//! - Inside a crate no cycle between modules, at any level of its tree: neither by imports nor by calls of methods.
//! - A file has at most 600 lines; tests are exempt.

use crate::{graph, imports, methods, sources};
use std::path::Path;

/// A crate, its level, and the crates of ours that it may use. `*` is every crate of a lower level.
const ROOMS: &[(&str, u8, &[&str])] = &[
    ("base", 0, &[]),
    ("wire", 0, &["base"]),
    ("requirements", 0, &[]),
    ("body", 1, &[]),
    ("crypto", 1, &["wire", "base"]),
    ("recovery", 1, &["base"]),
    ("qpack", 1, &["base"]),
    ("datapath", 1, &["base"]),
    ("report", 1, &["base"]),
    ("transport", 2, &["wire", "crypto", "recovery", "base"]),
    ("netlink", 1, &["base"]),
    ("ebpf", 1, &["base"]),
    ("udp", 2, &["datapath", "ebpf", "netlink", "wire", "base"]),
    ("xdp", 2, &["datapath", "ebpf", "netlink", "wire", "base"]),
    ("lab", 2, &["netlink", "wire", "base"]),
    ("paths", 3, &["udp", "xdp", "datapath", "ebpf", "netlink", "wire", "base"]),
    ("http3", 3, &["transport", "qpack", "wire", "base"]),
    ("worker", 3, &["transport", "datapath", "base"]),
    ("quic", 4, &["*"]),
    ("server", 4, &["*"]),
    ("load", 4, &["*"]),
    ("sim", 4, &["*"]),
    ("perf", 5, &["*"]),
    ("dash", 5, &["*"]),
    ("bench", 5, &["*"]),
    ("profile", 5, &["*"]),
    ("studies", 6, &["*"]),
    ("tercel", 7, &["*"]),
];

/// A file is one noun; above this a room is missing.
const MAX_LINES: usize = 600;

/// Runs all checks; the error lists every finding.
pub(crate) fn run() -> Result<String, String> {
    let root = crate::root();
    let mut findings = Vec::new();
    let mut files = 0;
    for entry in std::fs::read_dir(root.join("crates")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        check_dependencies(&name, &entry.path(), &mut findings);
        files += check_sources(&root, &entry.path(), &name, &mut findings);
    }
    files += check_sources(&root, &root.join("xtask"), "xtask", &mut findings);
    findings.sort();
    if findings.is_empty() {
        return Ok(format!("tidy: {} crates, {files} files, nothing to report", ROOMS.len()));
    }
    Err(format!("{}\ntidy: {} findings", findings.join("\n"), findings.len()))
}

fn level(name: &str) -> Option<u8> {
    ROOMS.iter().find(|(room, ..)| *room == name).map(|(_, level, _)| *level)
}

fn check_dependencies(name: &str, directory: &Path, findings: &mut Vec<String>) {
    let Some((_, own_level, allowed)) = ROOMS.iter().find(|(room, ..)| *room == name) else {
        findings.push(format!("{name}: not in the table of rooms (xtask/src/tidy.rs)"));
        return;
    };
    for dependency in dependencies(directory) {
        let Some(its_level) = level(&dependency) else { continue };
        let permitted = match allowed {
            ["*"] => its_level < *own_level,
            list => list.contains(&dependency.as_str()),
        };
        if !permitted {
            findings.push(format!("{name}: may not depend on {dependency} (upward or sideways)"));
        }
    }
}

/// The names under which a crate depends on others, for its code; what only its tests use may come from anywhere below.
fn dependencies(directory: &Path) -> Vec<String> {
    let manifest = std::fs::read_to_string(directory.join("Cargo.toml")).unwrap_or_default();
    let manifest: toml::Table = manifest.parse().unwrap_or_default();
    let table = manifest.get("dependencies").and_then(toml::Value::as_table);
    table.into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

/// Sizes of files and cycles between modules. Returns the number of files.
fn check_sources(root: &Path, directory: &Path, name: &str, findings: &mut Vec<String>) -> usize {
    let source = directory.join("src");
    let files = crate::rust_files(&source);
    files.iter().for_each(|path| check_size(root, path, findings));
    let modules = sources::modules(&source);
    let arrows = imports::arrows(&modules).into_iter().chain(methods::arrows(&modules));
    findings.extend(graph::cycles(arrows).into_iter().map(|cycle| format!("{name}: cycle: {cycle}")));
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
