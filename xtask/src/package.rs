//! `cargo xtask package`: what is published can be packaged.
//!
//! A crate is published unless its manifest says `publish = false`: the laboratory, the command and this program are not. Each
//! published crate has a description, which sends readers of an internal crate to `tercel`. Packages are made and not built here;
//! `cargo package` without `--no-verify` builds them, which takes some minutes.

use std::process::Command;

/// The public library. The other published crates are internal.
const LIBRARY: &str = "tercel";

/// How the description of an internal crate begins.
const INTERNAL: &str = "Internal: use tercel. ";

/// Checks the manifests and makes the packages.
pub(crate) fn run() -> Result<String, String> {
    let root = crate::root();
    let read = |folder: std::path::PathBuf| {
        let text = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        let is_lab = folder.parent().is_some_and(|group| group.ends_with("lab"));
        text.parse::<toml::Table>().ok().map(|manifest| (manifest, is_lab))
    };
    let manifests: Vec<_> = crate::crate_folders(&root).into_iter().filter_map(read).collect();
    let problems: Vec<String> =
        manifests.iter().filter_map(|(manifest, is_lab)| problem(manifest, *is_lab)).collect();
    if !problems.is_empty() {
        return Err(problems.join("\n"));
    }
    let published: Vec<&str> = manifests.iter().filter_map(|(manifest, _)| published(manifest)).collect();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["package", "--no-verify", "--allow-dirty", "--locked", "--quiet"]).current_dir(&root);
    cargo.args(published.iter().flat_map(|name| ["--package", name]));
    let status = cargo.status().map_err(|error| format!("cargo does not start: {error}"))?;
    if !status.success() {
        return Err("package: cargo package failed".to_owned());
    }
    Ok(format!("package: {} crates can be packaged", published.len()))
}

fn text<'a>(manifest: &'a toml::Table, key: &str) -> Option<&'a str> {
    manifest.get("package")?.get(key)?.as_str()
}

/// The name of a crate that is published.
fn published(manifest: &toml::Table) -> Option<&str> {
    let is_kept = manifest.get("package")?.get("publish").and_then(toml::Value::as_bool) == Some(false);
    text(manifest, "name").filter(|_| !is_kept)
}

/// What is wrong with a manifest.
fn problem(manifest: &toml::Table, is_lab: bool) -> Option<String> {
    let name = published(manifest)?;
    if is_lab {
        return Some(format!("{name}: the laboratory is not published: publish = false"));
    }
    let description = text(manifest, "description").unwrap_or_default();
    let is_right = if name == LIBRARY { !description.is_empty() } else { description.starts_with(INTERNAL) };
    (!is_right).then(|| format!("{name}: its description must begin with {INTERNAL:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(package: &str, is_lab: bool) -> Option<String> {
        problem(&format!("[package]\n{package}").parse().unwrap(), is_lab)
    }

    /// Deleted, a laboratory crate could be published, or an internal one without a word that it is internal.
    #[test]
    fn only_described_crates_outside_of_the_laboratory_are_published() {
        let internal = "name = \"tercel-wire\"\ndescription = \"Internal: use tercel. Headers.\"";
        assert_eq!(told(internal, false), None);
        assert!(told(internal, true).is_some());
        assert_eq!(told(&format!("{internal}\npublish = false"), true), None);
        assert!(told("name = \"tercel-wire\"\ndescription = \"Headers.\"", false).is_some());
        assert!(told("name = \"tercel\"", false).is_some());
        assert_eq!(
            told("name = \"tercel\"\ndescription = \"A library.\"\npublish.workspace = true", false),
            None
        );
    }
}
