//! Project automation: `cargo xtask ci` and the commands that it consists of, and others that make things.

mod api;
mod ci;
mod dependencies;
mod ebpf;
mod functions;
mod graph;
mod hollow;
mod hubs;
mod imports;
mod instructions;
mod interop;
mod inventory;
mod memcheck;
mod methods;
mod miri;
mod names;
mod package;
mod pgo;
mod request_ledger;
mod rfc;
mod simulated;
mod sources;
mod tidy;
mod tokens;
mod words;

use std::process::ExitCode;

const HELP: &str = "\
usage: cargo xtask COMMAND

  ci     everything that has to pass before a change lands: format, the next seven, lints, docs, tests, memcheck, miri,
         instructions
  tidy   walls between crates, cycles between the modules inside them, sizes of files
  rfc    normative rules against the code that cites them and the tests that they and three pages of docs/ name
  api    the public interface of the library against crates/product/tercel/api.txt; --write writes the file anew
  package  whether what is published can be packaged: descriptions, versions of dependencies
  hollow  tests that pass without having checked anything
  dependencies  licences, bans and duplicates of dependencies against xtask/dependencies.toml
  ebpf   rebuilds the eBPF objects (needs clang); --check compares with what is committed
  memcheck  the tests of the folders that hold unsafe code, under Valgrind
  miri   the same under Miri; says so where there is none
  instructions  instructions of packets, handshakes and requests under callgrind against xtask/instructions.toml; --accept writes it;
                --ledger tells where those of a request over HTTP/3 go
  interop  the cases of the public interoperability tests, on the link emulator (as root; needs tests/setup); --help tells more
  controllers  runs congestion controllers over simulated links and writes docs/controllers anew (some minutes; it says how many)
  networks  runs downloads over simulated bad links and writes docs/networks anew (some minutes)
  pgo    the program optimised by a profile of itself at work: target/pgo/tercel (needs llvm-tools)";

fn main() -> ExitCode {
    let command = std::env::args().nth(1).unwrap_or_default();
    let outcome = match command.as_str() {
        "api" => api::run(std::env::args().nth(2).as_deref()),
        "ci" => ci::run(),
        "dependencies" => dependencies::run(),
        "instructions" => instructions::run(std::env::args().nth(2).as_deref()),
        "interop" => interop::run(std::env::args().skip(2)),
        "hollow" => hollow::run(),
        "memcheck" => memcheck::run(),
        "miri" => miri::run(),
        "tidy" => tidy::run(),
        "rfc" => rfc::run(),
        "ebpf" => ebpf::run(std::env::args().nth(2).as_deref()),
        "package" => package::run(),
        "pgo" => pgo::run(),
        study @ ("controllers" | "networks") if std::env::args().len() == 2 => simulated::run(study),
        _ => Err(HELP.to_owned()),
    };
    match outcome {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(problems) => {
            eprintln!("{problems}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the workspace.
fn root() -> std::path::PathBuf {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The folders of all crates: `crates/GROUP/NAME`, in no order.
fn crate_folders(root: &std::path::Path) -> Vec<std::path::PathBuf> {
    let below = |folder: &std::path::Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let folders = below(&root.join("crates")).into_iter().flat_map(|group| below(&group));
    folders.filter(|folder| folder.join("Cargo.toml").exists()).collect()
}

/// All Rust files below `directory`, sorted.
fn rust_files(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(next) = waiting.pop() {
        for entry in std::fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}
