//! Replays the fuzz corpus, and throws changed and made-up input at the same harnesses: tests/corpus.rs of each crate that has
//! some, which brings `TARGETS` and `seeds`.
//!
//! The corpus lives in `fuzz/corpus/<target>/`. Files named `seed-*` come from `seeds` and are written by
//! `cargo test -p CRATE --test corpus -- --ignored`; all others are inputs that a fuzzer found.

use super::{TARGETS, seeds};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz")
}

fn seed_path(target: &str, name: impl AsRef<str>) -> PathBuf {
    fuzz_folder().join("corpus").join(target).join(format!("seed-{}", name.as_ref()))
}

/// Every input that is kept passes. If this fails after a change, a bug that a fuzzer once found is back.
#[test]
fn corpus_passes() {
    for (name, harness) in TARGETS {
        let folder = fuzz_folder().join("corpus").join(name);
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut replayed = 0;
        for entry in entries {
            let path = entry.unwrap().path();
            println!("{}", path.display());
            harness(&fs::read(&path).unwrap());
            replayed += 1;
        }
        assert!(replayed > 0, "{} is empty", folder.display());
    }
}

/// Every harness can be fuzzed and has seeds: a target that is not wired up finds nothing, silently.
#[test]
fn every_target_is_wired_up() {
    let manifest = fs::read_to_string(fuzz_folder().join("Cargo.toml")).unwrap();
    let seeded: BTreeSet<_> = seeds::all().into_iter().map(|(target, _, _)| target).collect();
    for (name, _) in TARGETS {
        assert!(fuzz_folder().join(format!("fuzz_targets/{name}.rs")).is_file(), "{name}");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        assert!(seeded.contains(name), "{name}");
    }
    assert_eq!(seeded.len(), TARGETS.len());
}

/// The seeds on disk are those the generator makes, so neither can go stale.
#[test]
fn seeds_are_up_to_date() {
    for (target, name, bytes) in seeds::all() {
        let path = seed_path(target, name);
        let found = fs::read(&path).unwrap_or_default();
        assert_eq!(found, bytes, "{} (write the seeds with --ignored)", path.display());
    }
}

/// Not a test: writes the seeds.
#[test]
#[ignore = "writes fuzz/corpus"]
fn write_seeds() {
    for (target, name, bytes) in seeds::all() {
        let path = seed_path(target, name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// Any bytes at all: every parser gives a value or an error.
    #[test]
    fn any_bytes_pass(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for (_, harness) in TARGETS {
            harness(&bytes);
        }
    }

    /// Seeds with a few bytes changed, inserted, cut or repeated, which reach much further into the parsers.
    #[test]
    fn damaged_seeds_pass(
        pick in any::<prop::sample::Index>(),
        damage in prop::collection::vec((0_u8..4, any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let seeds = seeds::all();
        let (target, _, bytes) = pick.get(&seeds);
        let mut bytes = bytes.clone();
        for (kind, at, value) in damage {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = value,
                1 => bytes.insert(at, value),
                2 => bytes.truncate(at),
                _ => bytes.extend_from_within(at..),
            }
            bytes.truncate(4_000);
        }
        let (_, harness) = TARGETS.iter().find(|(name, _)| name == target).unwrap();
        harness(&bytes);
    }
}
