//! `cargo xtask instructions --ledger`: where the instructions of a small request over HTTP/3 go in the server, by part of the work.
//!
//! The program `instructions` does its requests, built as it is released but with line tables, and callgrind counts only while the
//! server's end receives or sends. Each count is that of a source line, inlined or not, so that its file says what it is for. Code of the
//! standard library counts for the file of the function that it is inlined into, and functions of the C library are parts of their own.
//! What is not in it: the kernel and the data path, because datagrams go through memory.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::{Command, Stdio};

/// Crates whose lines are to be known.
const CRATES: [&str; 13] = [
    "bytes",
    "http",
    "tercel-aead",
    "tercel-base",
    "tercel-crypto",
    "tercel-http3",
    "tercel-instructions",
    "tercel-qpack",
    "tercel-recovery",
    "tercel-server",
    "tercel-transport",
    "tercel-wire",
    "tercel-worker",
];

/// Files below `crates/`, and libraries, by the beginnings of their names, and the part that they belong to. The first that fits counts.
const PARTS: &[(&str, &str)] = &[
    ("protocol/aead/", "AES-GCM"),
    ("protocol/crypto/", "keys, header protection"),
    ("protocol/wire/", "headers, frames, varints"),
    ("protocol/recovery/", "acknowledgements, loss, congestion"),
    ("protocol/transport/src/connection/acks.rs", "acknowledgements, loss, congestion"),
    ("protocol/transport/src/streams/fate.rs", "acknowledgements, loss, congestion"),
    ("protocol/transport/src/connection/receive.rs", "transport: receiving"),
    ("protocol/transport/src/connection/frames.rs", "transport: receiving"),
    ("protocol/transport/src/connection/incoming_run.rs", "transport: receiving"),
    ("protocol/transport/src/endpoint/", "transport: receiving"),
    ("protocol/transport/src/streams/incoming", "transport: receiving"),
    ("protocol/transport/src/streams/recv.rs", "transport: receiving"),
    ("protocol/transport/src/streams/send", "transport: bytes to be sent, packets"),
    ("protocol/transport/src/streams/buffer.rs", "transport: bytes to be sent, packets"),
    ("protocol/transport/src/streams/queue.rs", "transport: bytes to be sent, packets"),
    ("protocol/transport/src/streams/outgoing", "transport: bytes to be sent, packets"),
    ("protocol/transport/src/streams/", "transport: state of streams"),
    ("protocol/transport/", "transport: bytes to be sent, packets"),
    ("http/qpack/", "QPACK"),
    ("http/http3/src/fields/", "HTTP/3: judging of fields"),
    ("http/http3/", "HTTP/3: frames, exchanges"),
    ("product/server/src/http3", "server: requests and responses under way"),
    ("product/server/src/request.rs", "server: head of the request"),
    ("product/server/src/target.rs", "server: head of the request"),
    ("product/server/src/response.rs", "server: fields of the response"),
    ("product/server/src/heads.rs", "server: fields of the response"),
    ("product/server/src/date.rs", "server: fields of the response"),
    ("product/server/", "server: path, file, content, counters"),
    ("lab/", "the program itself"),
    ("malloc", "allocator"),
    ("string", "copies and comparisons"),
];

/// What no row claims: libraries.
const OTHERS: &str = "everything else";

/// Builds, counts, and tells.
pub(crate) fn run() -> Result<String, String> {
    let folder = crate::root().join("target/instructions");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let counts = folder.join("ledger");
    let runner = format!(
        "valgrind --quiet --tool=callgrind --fair-sched=yes --dump-before=*dump_here* --toggle-collect=*world::server_receives* \
         --toggle-collect=*world::server_sends* --callgrind-out-file={}",
        counts.display()
    );
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--release", "--locked", "--quiet", "--package", "tercel-instructions"]);
    for name in CRATES {
        command.arg("--config").arg(format!("profile.release.package.{name}.debug=\"line-tables-only\""));
    }
    let output = command
        .args(["--", "requests"])
        .env(crate::memcheck::runner(), runner)
        .current_dir(crate::root())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    let row = String::from_utf8_lossy(&output.stdout).into_owned();
    let [part, _, _, pieces] = row.trim_end().split('\t').collect::<Vec<_>>()[..] else {
        return Err(
            "ledger: the program has failed, or there is no valgrind, which tests/setup installs".to_owned()
        );
    };
    let path = format!("{}.{part}", counts.display());
    let text = std::fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
    let pieces: u64 = pieces.parse().map_err(|_| format!("ledger: not a row: {row}"))?;
    Ok(table(&by_file(&String::from_utf8_lossy(&text)), pieces.max(1)))
}

/// What a file is called: below `crates/`, or by its library.
fn known_as(file: &str) -> Option<&str> {
    if let Some((_, below)) =
        file.rsplit_once("/crates/").filter(|(_, below)| !below.starts_with("core_arch"))
    {
        return Some(below);
    }
    let is_of = |folder: &str| file.contains(&format!("/{folder}/"));
    ["malloc", "string"].into_iter().find(|folder| is_of(folder))
}

/// Instructions by file, of the calls that were counted. Source: the manual's "Callgrind Format Specification".
fn by_file(text: &str) -> BTreeMap<String, u64> {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let mut costs: BTreeMap<String, u64> = BTreeMap::new();
    let (mut file_of_function, mut file, mut is_call) = ("", "", false);
    for line in text.lines() {
        let (key, value) = line.split_once('=').unwrap_or(("", line));
        if matches!(key, "fl" | "fi" | "fe" | "cfi" | "cfl") {
            let (id, name) = value.split_once(' ').unwrap_or((value, ""));
            // A name is written where its number occurs first.
            if !name.is_empty() {
                names.insert(id, name);
            }
            let name = names.get(id).copied().unwrap_or("");
            match key {
                "fl" => (file_of_function, file) = (name, name),
                "fi" | "fe" => file = name,
                _ => {}
            }
        } else if key == "calls" {
            is_call = true;
        } else if value.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            // Behind a call stands the cost of what was called.
            let cost = value.split_whitespace().nth(1).and_then(|cost| cost.parse::<u64>().ok());
            if !std::mem::take(&mut is_call) {
                let name = known_as(file).or_else(|| known_as(file_of_function)).unwrap_or(OTHERS);
                *costs.entry(name.to_owned()).or_default() += cost.unwrap_or(0);
            }
        }
    }
    costs
}

/// Instructions of a part.
#[derive(Default)]
struct PartCosts<'a> {
    sum: u64,
    /// Of each file, for each request.
    files: Vec<(u64, &'a str)>,
}

/// The parts, and the files of each that take most, for each of so many requests.
fn table(costs: &BTreeMap<String, u64>, pieces: u64) -> String {
    /// Files that take less, in instructions, are not named.
    const NAMED: u64 = 50;
    let mut parts: BTreeMap<&str, PartCosts<'_>> = BTreeMap::new();
    for (file, cost) in costs {
        let part = PARTS.iter().find(|(begin, _)| file.starts_with(begin)).map_or(OTHERS, |(_, part)| part);
        let known = parts.entry(part).or_default();
        known.sum += cost;
        known.files.push((cost / pieces, file));
    }
    let total: u64 = costs.values().sum();
    let mut rows: Vec<_> = parts.into_iter().collect();
    rows.sort_by_key(|(_, costs)| std::cmp::Reverse(costs.sum));
    let mut text =
        format!("ledger: {} instructions of the server for a request over HTTP/3\n", total / pieces);
    for (part, PartCosts { sum, mut files }) in rows {
        let share = 100.0 * sum as f64 / total.max(1) as f64;
        files.sort_unstable_by(|a, b| b.cmp(a));
        let named = files.iter().filter(|(cost, file)| *cost >= NAMED && *file != part);
        let named: Vec<String> = named
            .map(|(cost, file)| {
                let name = file.rsplit_once("/src/").map_or(*file, |(_, name)| name);
                format!("{} {cost}", name.trim_end_matches(".rs"))
            })
            .collect();
        let _ = writeln!(text, "  {part:42} {:>6} {share:>5.1} %  {}", sum / pieces, named.join(", "));
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: &str = "\
part: 2
positions: line
events: Ir
fl=(1) /home/me/tercel/crates/http/qpack/src/section.rs
fn=(7) qpack::section::line
12 30
fi=(2) /rustc/x/library/core/src/slice/mod.rs
13 4
fe=(1)
+2 6
cfi=(3) ./string/../sysdeps/memmove.S
cfn=(8) memcpy
calls=3 40
13 600

fl=(3)
fn=(8)
40 100

fl=(4) /rustc/x/library/stdarch/crates/core_arch/src/x86/aes.rs
fn=(9) nothing
1 7
";

    /// Deleted, calls could count twice, or the standard library's lines for no part.
    #[test]
    fn a_count_is_for_the_file_of_its_line_or_of_its_function() {
        let costs = by_file(PART);
        let expected = [("http/qpack/src/section.rs", 40), ("string", 100), (OTHERS, 7)];
        assert_eq!(costs, expected.map(|(file, cost)| (file.to_owned(), cost)).into());
        let table = table(&costs, 1);
        assert!(table.starts_with("ledger: 147 instructions"), "{table}");
        assert!(table.contains("copies and comparisons") && table.contains("QPACK"), "{table}");
        assert!(table.contains("68.0 %"), "{table}");
    }

    /// A row that names what is no longer there would let its instructions count for another part.
    #[test]
    fn every_part_is_of_files_that_there_are() {
        for (begin, part) in PARTS.iter().filter(|(begin, _)| begin.contains('/')) {
            let path = crate::root().join("crates").join(begin);
            let (folder, name) = (path.parent().unwrap(), path.file_name().unwrap().to_string_lossy());
            let is_there = |entry: &std::path::Path| {
                entry.read_dir().is_ok_and(|mut files| {
                    files.any(|file| file.unwrap().file_name().to_string_lossy().starts_with(&*name))
                })
            };
            assert!(is_there(folder), "{part}: {begin}");
        }
    }
}
