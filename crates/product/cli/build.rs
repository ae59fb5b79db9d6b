//! Tells the program from which sources it was built, and how: `tercel --version`. A measurement that compares two builds (study E6)
//! must know that nothing else differs.
//!
//! The sources are named by a digest of their files, which is right outside a repository and for what is not committed, too. It
//! covers what the program is made of, not tests or documents, so that these may change between two builds. Builds without
//! optimisation have none: they would be made anew after each change of any file, for nothing.

use std::path::{Path, PathBuf};

/// What the program is made of, below the folder of the workspace.
const MADE_OF: [&str; 3] = ["Cargo.toml", "Cargo.lock", "crates"];
/// Files and folders of which nothing is in the program.
const APART: [&str; 4] = ["tests", "tests.rs", "examples", "benches"];

fn main() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    println!("cargo::rerun-if-changed=build.rs");
    // They are part of the answer; Cargo's own variable for them cannot be watched.
    println!("cargo::rerun-if-env-changed=RUSTFLAGS");
    let mut sources = String::new();
    if variable("PROFILE") == "release" {
        let root = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../../..");
        sources = format!("{:016x}", digest(&root));
    }
    // Below target/: PROFILE/build/PACKAGE/out. The variable PROFILE names only what it inherits from.
    let out = PathBuf::from(variable("OUT_DIR"));
    let profile = out.ancestors().nth(3).and_then(Path::file_name);
    let profile = profile.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let is_guided = variable("CARGO_ENCODED_RUSTFLAGS").contains("profile-use");
    let has_experiments = !variable("CARGO_FEATURE_EXPERIMENTS").is_empty();
    let extras = [(is_guided, "+pgo"), (has_experiments, "+experiments")];
    let extras: String = extras.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect();
    println!("cargo::rustc-env=TERCEL_PROFILE={profile}{extras}");
    println!("cargo::rustc-env=TERCEL_SOURCES={sources}");
}

/// FNV-1a over names and contents of all files, in order; says to Cargo what it looked at.
fn digest(root: &Path) -> u64 {
    let mut files = Vec::new();
    for name in MADE_OF {
        collect(&root.join(name), &mut files);
    }
    files.sort();
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for file in &files {
        let name = file.strip_prefix(root).unwrap_or(file).to_string_lossy();
        let content = std::fs::read(file).unwrap_or_default();
        for byte in name.bytes().chain([0]).chain(content) {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    digest
}

/// All files below a path that are of the program.
fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    let is_apart = path.file_name().is_some_and(|name| APART.iter().any(|apart| name == *apart));
    if is_apart {
        return;
    }
    if path.is_file() {
        println!("cargo::rerun-if-changed={}", path.display());
        return files.push(path.to_owned());
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        collect(&entry.path(), files);
    }
}
