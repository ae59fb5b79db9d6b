//! `cargo xtask ebpf`: the eBPF objects from their sources.
//!
//! The objects are committed, so that a build of tercel needs no clang. `--check` builds them again elsewhere and
//! compares. The compiler is told to leave out what depends on its version or on the place (identification, address tables,
//! debug information), so the same clang gives the same bytes anywhere. Another version may order symbols differently:
//! what counts are the sections that are loaded, instructions, constants, maps and licence. It may also choose other
//! instructions (14 and 16 do not, for these programs); then only the version that built what is committed can tell, and
//! the message names it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// v3 instructions came with Linux 5.1; what the programs need came with 5.9.
const FLAGS: &[&str] = &[
    "-target",
    "bpfel",
    "-mcpu=v3",
    "-O2",
    "-std=c11",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fno-ident",
    "-fno-addrsig",
    "-g0",
];

/// The major version that built the committed objects.
const VERSION: &str = "14";

/// Rebuilds the objects in place or, with `--check`, compares with what is there.
pub(crate) fn run(argument: Option<&str>) -> Result<String, String> {
    let programs = crate::root().join("crates/network/ebpf/programs");
    match argument {
        None => {
            let built = build(&programs, &programs)?;
            Ok(format!("ebpf: {built} objects built"))
        }
        Some("--check") => check(&programs),
        Some(other) => Err(format!("ebpf: {other} is unknown; the only option is --check")),
    }
}

fn check(programs: &Path) -> Result<String, String> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), PathBuf::from);
    let fresh = target.join("ebpf-check");
    std::fs::create_dir_all(&fresh).map_err(|error| format!("{}: {error}", fresh.display()))?;
    let built = build(programs, &fresh)?;
    let mut findings = Vec::new();
    for source in sources(programs)? {
        let name = source.with_extension("o");
        let name = name.file_name().unwrap_or_default();
        let read =
            |path: PathBuf| std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()));
        let (committed, rebuilt) = (read(programs.join(name))?, read(fresh.join(name))?);
        if committed != rebuilt {
            findings.extend(differences(&name.to_string_lossy(), &committed, &rebuilt));
        }
    }
    let _ = std::fs::remove_dir_all(&fresh);
    if findings.is_empty() {
        return Ok(format!("ebpf: {built} objects are what their sources say"));
    }
    let advice = match version() {
        Some(version) if version != VERSION => {
            format!(
                "this is clang {version}; the committed objects are by clang {VERSION}, which may differ: use that"
            )
        }
        _ => "run cargo xtask ebpf and commit the objects".to_owned(),
    };
    Err(format!("{}\nebpf: {advice}", findings.join("\n")))
}

/// The compiler's major version.
fn version() -> Option<String> {
    let output = Command::new("clang").arg("-dumpversion").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split('.').next().map(|major| major.trim().to_owned())
}

/// Compiles every source of `programs` into `into`; returns how many.
fn build(programs: &Path, into: &Path) -> Result<usize, String> {
    let sources = sources(programs)?;
    for source in &sources {
        let name = source.file_name().unwrap_or_default();
        // In the sources' directory, by relative name: no path gets into the object.
        let status = Command::new("clang")
            .args(FLAGS)
            .arg("-c")
            .arg(name)
            .arg("-o")
            .arg(into.join(name).with_extension("o"))
            .current_dir(programs)
            .status()
            .map_err(|error| format!("clang does not start ({error}); tests/setup installs it"))?;
        if !status.success() {
            return Err(format!("ebpf: clang failed on {}", source.display()));
        }
    }
    Ok(sources.len())
}

fn sources(programs: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(programs).map_err(|error| format!("{}: {error}", programs.display()))?;
    let mut sources: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    sources.sort();
    Ok(sources)
}

/// The sections that the kernel gets to see and that differ, as text.
fn differences(name: &str, committed: &[u8], rebuilt: &[u8]) -> Vec<String> {
    let (Some(committed), Some(rebuilt)) = (sections(committed), sections(rebuilt)) else {
        return vec![format!("{name}: not an object")];
    };
    let names: std::collections::BTreeSet<&String> = committed.keys().chain(rebuilt.keys()).collect();
    let differ = names.into_iter().filter(|section| committed.get(*section) != rebuilt.get(*section));
    differ.map(|section| format!("{name}: section {section:?} is not what the source says")).collect()
}

/// The contents of the sections that are loaded, by name: instructions and data, without tables of symbols and strings.
/// Relocations name symbols by number, which differs where the order does; that they are as many is in the instructions.
fn sections(object: &[u8]) -> Option<BTreeMap<String, Vec<u8>>> {
    const PROGRAM_BITS: u64 = 1;
    let number = |at: usize, size: usize| {
        let bytes = object.get(at..at.checked_add(size)?)?;
        Some(bytes.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    let place = |at: usize| Some((number(at + 24, 8)? as usize, number(at + 32, 8)? as usize));
    // ELF64: the table of sections is found by bytes 40, 58 (entry size), 60 (count), 62 (which holds the names).
    let (table, size, count) = (number(40, 8)? as usize, number(58, 2)? as usize, number(60, 2)? as usize);
    let (names, _) = place(table + size * number(62, 2)? as usize)?;
    let mut sections = BTreeMap::new();
    for header in (0..count).map(|index| table + index * size) {
        let name = object.get(names + number(header, 4)? as usize..)?;
        let name = name.split(|byte| *byte == 0).next()?;
        let (start, length) = place(header)?;
        if number(header + 4, 4)? == PROGRAM_BITS && length > 0 {
            let content = object.get(start..start.checked_add(length)?)?;
            sections.insert(String::from_utf8_lossy(name).into_owned(), content.to_vec());
        }
    }
    Some(sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_objects_have_their_sections_and_a_changed_byte_is_seen() {
        let steer = std::fs::read(crate::root().join("crates/network/ebpf/programs/steer.o")).unwrap();
        let sections = sections(&steer).unwrap();
        let names: Vec<&str> = sections.keys().map(String::as_str).collect();
        assert_eq!(names, ["license", "maps", "sk_reuseport"]);
        let mut changed = steer.clone();
        // The first instruction lies right behind the file's header of 64 bytes.
        changed[64] ^= 1;
        let found = differences("steer.o", &steer, &changed);
        assert_eq!(found, ["steer.o: section \"sk_reuseport\" is not what the source says"]);
        assert_eq!(differences("steer.o", &steer, b"text").len(), 1);
    }
}
