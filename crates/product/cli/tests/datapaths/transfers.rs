//! Files from one byte to many megabytes, a range, a generated body, and what is not there: over IPv4, then over IPv6.
//!
//! With several workers, several clients do it at the same time.

use crate::case::Case;
use crate::connection::{expect, no_frame_leaked, number, parts};
use base::pattern;
use bench::pair::ProgramPair;
use bench::site::{End, Site};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// For one client; the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest is the last.
const FILES: [(&str, usize); 6] = [
    ("one", 1),
    ("packet", 1_400),
    ("odd", 65_521),
    ("train", 131_072),
    ("mega", 1_000_000),
    ("large", 20_000_003),
];
/// A generated body.
const BODY: &str = "bytes/10MB";

pub(crate) fn run(case: &Case, site: &Site, never: &AtomicBool) -> Result<String, String> {
    let mut told = String::new();
    for address in [site.ipv4(End::Server), site.ipv6(End::Server)] {
        told = over(case, site, never, address).map_err(|problem| format!("over {address}: {problem}"))?;
    }
    Ok(told)
}

fn over(case: &Case, site: &Site, never: &AtomicBool, address: IpAddr) -> Result<String, String> {
    let program = Path::new(env!("CARGO_BIN_EXE_tercel"));
    let pair = ProgramPair::new(program, site, never).map_err(text)?;
    let root = make_files(pair.folder())?;
    let flags = [&[root.as_str()][..], &case.server_flags()].concat();
    let server = pair.serve(case.server, address, &[], &flags).map_err(text)?;
    let clients = usize::from(case.workers);
    let done: Result<Vec<()>, String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|client| {
                let (pair, server) = (&pair, &server);
                scope.spawn(move || downloads(case, pair, &|path| server.url(path), client))
            })
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|done| done.unwrap_or_else(|_| Err("a client's thread panicked".to_owned()))).collect()
    });
    done?;
    let (_, summary) = server.finish(never).map_err(text)?;
    no_frame_leaked(&summary)?;
    let longest = number(&summary["packet_sizes"], "largest")?;
    expect(longest >= case.place.least_packet(), || {
        format!("the server's packets stayed at {longest}: {summary}")
    })?;
    let of_version = |name| number(&summary["quic_versions"], name);
    expect(of_version("1")? + of_version("2")? == number(&summary, "connections")?, || {
        format!("the versions of connections do not add up: {summary}")
    })?;
    if case.workers > 1 {
        let parts = parts(&summary)?;
        expect(parts.len() == clients, || format!("{} workers, not {clients}: {summary}", parts.len()))?;
        let all: u64 = parts.iter().map(|part| part.connections).sum();
        expect(all == number(&summary, "connections")?, || {
            format!("workers' connections do not add up: {summary}")
        })?;
    }
    let path = summary["datapath"].as_str().unwrap_or("unknown").to_owned();
    expect(path.contains(case.server.family()), || format!("the server used {path}: {summary}"))?;
    Ok(format!(" ({path})"))
}

/// All that one client asks for.
fn downloads(
    case: &Case,
    pair: &ProgramPair<'_>,
    url: &dyn Fn(&str) -> String,
    client: usize,
) -> Result<(), String> {
    let place = pair.folder().join(format!("client-{client}"));
    fs::create_dir_all(&place).map_err(text)?;
    let folder = format!("{}/", place.display());
    let fetch = |arguments: &[&str]| pair.fetch(case.client, &[], arguments, PATIENCE);

    let urls = FILES.map(|(name, _)| url(name));
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let (_, lines) = fetch(&[&urls[..], &["--parallel", "3", "-o", &folder]].concat()).map_err(text)?;
    expect(lines.len() == FILES.len(), || format!("{} of {} answers", lines.len(), FILES.len()))?;
    for (name, size) in FILES {
        let got = fs::read(place.join(name)).map_err(|error| format!("{name}: {error}"))?;
        expect(got.len() == size, || format!("{name}: {} bytes, not {size}", got.len()))?;
        let same = Sha256::digest(&got) == Sha256::digest(content(name, size));
        expect(same, || format!("{name}: the content differs"))?;
    }

    let (begin, end) = (777_777, 7_777_777);
    let part = place.join("part");
    let range = format!("{begin}-{}", end - 1);
    fetch(&[&url("large"), "--range", &range, "-o", &part.display().to_string()]).map_err(text)?;
    let got = fs::read(&part).map_err(text)?;
    expect(got == content("large", end)[begin..], || {
        format!("range {range}: {} bytes, or others", got.len())
    })?;

    let (_, lines) = fetch(&[&url(BODY), "--verify-pattern"]).map_err(text)?;
    let bytes = lines.first().and_then(|line| line["bytes"].as_u64());
    expect(bytes == Some(10_000_000), || format!("a generated body of {bytes:?} bytes"))?;
    let longest = lines.first().and_then(|line| line["packet_size"].as_u64());
    expect(longest >= Some(case.place.least_packet()), || {
        format!("the client's packets stayed at {longest:?}")
    })?;

    let missing = fetch(&[&url("there/is/none"), "--discard"]);
    let answer = missing.map(|_| "success".to_owned()).unwrap_or_else(text);
    expect(answer.contains("404"), || format!("what is not there: {answer}"))
}

fn make_files(folder: &Path) -> Result<String, String> {
    let root = folder.join("root");
    fs::create_dir_all(&root).map_err(text)?;
    for (name, size) in FILES {
        fs::write(root.join(name), content(name, size)).map_err(text)?;
    }
    Ok(root.display().to_string())
}

/// Bytes that no other file has in that place.
pub(crate) fn content(name: &str, size: usize) -> Vec<u8> {
    let begin = name.bytes().fold(7_u64, |sum, byte| sum * 31 + u64::from(byte));
    pattern::at(begin).iter().cycle().take(size).copied().collect()
}

pub(crate) fn text(error: impl core::fmt::Display) -> String {
    error.to_string()
}
