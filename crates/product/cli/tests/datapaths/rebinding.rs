//! A download during which the client's port changes again and again, as behind a translator that forgets.
//!
//! The connection must stay one connection, on the worker that it began on, and not a byte may be lost. Who brings the
//! datagrams to that worker is the steering's business: with eBPF and classic BPF the kernel, so that the other worker sees
//! none; with hand-off the other worker passes them on.

use crate::case::{Case, Steering, TestNetwork};
use crate::connection::{expect, no_frame_leaked, number, parts};
use crate::relay::{Relay, Sockets};
use crate::transfers::{content, text};
use bench::pair::ProgramPair;
use bench::site::{End, Site};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(90);
/// Ports that the server sees. Where a hash of them chooses the worker, all eleven choose the same once in a thousand runs.
const PORTS: usize = 11;
const SIZE: usize = 40_000_000;
/// Datagrams that may come to the worker without the connection: a stateless reset has random bytes where others have a CID.
const STRAYS: u64 = 20;
/// The port changes after this many bytes.
const EVERY: u64 = (SIZE / (PORTS + 1)) as u64;

pub(crate) fn run(case: &Case, site: &Site, never: &AtomicBool) -> Result<String, String> {
    let program = Path::new(env!("CARGO_BIN_EXE_tercel"));
    let pair = ProgramPair::new(program, site, never).map_err(text)?;
    let root = pair.folder().join("root");
    fs::create_dir_all(&root).map_err(text)?;
    fs::write(root.join("moving"), content("moving", SIZE)).map_err(text)?;
    let root = root.display().to_string();
    let flags = [&[root.as_str()][..], &case.server_flags()].concat();
    let server = pair.serve(case.server, site.ipv4(End::Server), &[], &flags).map_err(text)?;

    let near = IpAddr::from(Ipv4Addr::LOCALHOST);
    let far = site.ipv4(End::Client);
    let sockets = site.run(End::Client, || Sockets::open(near, far, server.address, PORTS)).map_err(text)?;
    let relay = Relay::start(sockets, EVERY).map_err(text)?;
    let got = pair.folder().join("moving");
    let url = format!("https://{}/moving", relay.address);
    pair.fetch(case.client, &[], &[&url, "-o", &got.display().to_string()], PATIENCE).map_err(text)?;
    let moves = relay.finish().map_err(text)?;

    let got = fs::read(&got).map_err(text)?;
    expect(got.len() == SIZE, || format!("{} bytes, not {SIZE}", got.len()))?;
    let same = Sha256::digest(&got) == Sha256::digest(content("moving", SIZE));
    expect(same, || "the content differs".to_owned())?;
    let ports = moves.ports.len();
    expect(ports == PORTS && moves.since > 0, || format!("the port did not change often enough: {moves:?}"))?;
    let (_, summary) = server.finish(never).map_err(text)?;
    no_frame_leaked(&summary)?;
    stayed(case, &summary)
}

/// Whether the connection stayed where it was, and who saw to it.
fn stayed(case: &Case, summary: &Value) -> Result<String, String> {
    let connections = number(summary, "connections")?;
    expect(connections == 1, || format!("{connections} connections instead of one: {summary}"))?;
    if case.workers == 1 {
        return Ok(format!(" ({PORTS} ports)"));
    }
    let (parts, handed_off) = (parts(summary)?, number(summary, "handed_off")?);
    let owners = parts.iter().filter(|part| part.connections == 1).count();
    expect(owners == 1, || format!("not on one worker: {summary}"))?;
    let steering = summary["steering"].as_str().unwrap_or("none");
    let elsewhere: u64 = parts.iter().filter(|part| part.connections == 0).map(|part| part.received).sum();
    let is_udp = !case.server.is_xdp();
    match case.steering {
        Steering::Ebpf | Steering::Classic => {
            let asked = case.steering.flag();
            expect(steering == asked, || format!("steering by {steering}, not {asked}: {summary}"))?;
            expect(handed_off == 0, || {
                format!("{handed_off} datagrams came to the wrong worker: {summary}")
            })?;
            let most = "the idle worker received datagrams of the connection";
            expect(elsewhere <= STRAYS, || format!("{most}, {elsewhere}: {summary}"))?;
        }
        Steering::HandOff => {
            expect(handed_off > 0, || format!("nothing was handed off: {summary}"))?;
        }
        // Which queue of an interface gets a datagram is the interface's choice.
        Steering::Auto => {}
    }
    expect(is_udp || case.place != TestNetwork::Loopback, || "AF_XDP on loopback".to_owned())?;
    Ok(format!(" ({PORTS} ports, {handed_off} datagrams handed off)"))
}
