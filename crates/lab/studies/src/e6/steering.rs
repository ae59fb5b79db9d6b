//! Steering by connection ID: what it costs a server of two workers when packets come to the wrong one.
//!
//! A client that keeps its address finds its worker by the kernel's hash of addresses just as well. So the connections here, each
//! from a socket of its own, get other ports soon after the beginning, as behind a home router: from then on the hash sends about half of them
//! to the other worker, which hands each of their packets over, unless the kernel reads the connection ID. What is under way to the
//! old ports still arrives: a client that only waits would otherwise wait until it gives up.

use std::io;
use std::time::Duration;

use bench::estimate::Estimate;
use bench::method::Method;
use bench::pair::{ProgramPair, number};
use bench::process::is_interruption;
use bench::site::{End, Site};
use bench::workers;

use super::techniques::SIZE;
use crate::context::Context;
use crate::downloads::{DownloadSeries, Trial, last_json};

/// Content of a response: many trains of requests and acknowledgements come to the server for what it sends.
const BODY: &str = "bytes/16KiB";
/// Connections, each with a thread and a socket of its own: with this many, the hash moves some of them with near certainty.
const CONNECTIONS: &str = "16";
/// Requests at a time on each.
const STREAMS: &str = "10";
/// UDP payload from the clients after which ports change: more than all handshakes have.
const REBIND_AFTER: u64 = 150_000;
/// Where the kernel reads connection IDs, no more than this share of datagrams may need to be handed over.
const STRAY: f64 = 0.01;

/// Without the technique, as the table has it.
pub(super) const NAME: &str = "handed over between two workers, not steered by connection ID";

/// The lanes with and without steering; how many requests make a trial is scaled.
///
/// # Errors
/// [`io::ErrorKind::Interrupted`] when all shall end, with what was measured lost; anything else that keeps it from being
/// measured.
pub(super) fn measure(context: &mut Context<'_>, trials: usize) -> io::Result<[DownloadSeries; 2]> {
    // A link that loses nothing: it is there to change ports.
    let site = Site::lossy(0.0).map_err(io::Error::other)?;
    let program = context.program.clone();
    let pair = ProgramPair::new(&program, &site, context.stop)?;
    let requests = context.scaled("120000", "30000");
    let lane = |name: &str, steering: &str| {
        let server = [&["--workers", "2", "--steering", steering], &SIZE[..]].concat();
        let load = ["--http", "3", "-n", requests, "-c", CONNECTIONS, "-t", CONNECTIONS, "-m", STREAMS];
        DownloadSeries::apart(name, Method::Gso, &server, &[&load, &SIZE[..]].concat())
    };
    let mut lanes = [lane("two workers, steered by eBPF", "ebpf"), lane(NAME, "hand-off")];
    let mut estimate = Estimate::of_rounds(lanes.len(), trials + 1);
    for round in 0..=trials {
        for place in [round % 2, (round + 1) % 2] {
            let lane = &mut lanes[place];
            let trial = one(&pair, lane)?;
            context.tell(&format!(
                "{:9} {:34.34} {round}/{trials} server {:.3} CPU s/GB, {:.0} handed over{}",
                "steering",
                lane.name,
                trial.server_cpu_s_per_gb,
                trial.handed_off,
                estimate.step(1.0)
            ));
            lane.trials.extend((round > 0).then_some(trial));
        }
    }
    Ok(lanes)
}

fn one(pair: &ProgramPair<'_>, lane: &DownloadSeries) -> io::Result<Trial> {
    let cores = workers::WorkersPlan::new(pair.program.to_owned());
    let flags: Vec<&str> = lane.server.iter().map(String::as_str).collect();
    let server = pair.serve(lane.method, pair.site.ipv4(End::Server), &cores.server_cores, &flags)?;
    let url = server.url(BODY);
    let mut flags: Vec<&str> = lane.client.iter().map(String::as_str).collect();
    flags.push(&url);
    let gone = || io::Error::other("the server has gone");
    let before = cpu::seconds_of(server.id()).ok_or_else(gone)?;
    pair.site.rebind(REBIND_AFTER);
    let ended = pair.load(&cores.client_cores, &flags)?.finish(Duration::from_secs(300), pair.stop)?;
    let server_cpu_s = cpu::seconds_of(server.id()).ok_or_else(gone)? - before;
    let (_, summary) = server.finish(pair.stop)?;
    let told = last_json(&ended.output)?;
    let (bytes, seconds) = (number(&told, "content_bytes")?, number(&told, "seconds")?);
    let failed = number(&told, "failed")?;
    if failed > 0.0 {
        return Err(io::Error::other(format!("{failed} requests failed")));
    }
    let (handed_off, received) = (number(&summary, "handed_off")?, number(&summary, "received_datagrams")?);
    let is_steered = summary["steering"] == "ebpf";
    if is_steered == (handed_off > received * STRAY) {
        return Err(io::Error::other(format!("{handed_off} of {received} datagrams were handed over")));
    }
    Ok(Trial {
        server_cpu_s_per_gb: server_cpu_s * 1e9 / bytes,
        client_cpu_s_per_gb: ended.usage.total_s() * 1e9 / bytes,
        megabytes_per_second: bytes / seconds / 1e6,
        server_share: server_cpu_s / seconds,
        client_share: ended.usage.total_s() / seconds,
        server_datagrams: number(&summary, "sent_datagrams")?,
        client_datagrams: received,
        payload: number(&summary, "sent_bytes")? / number(&summary, "sent_datagrams")?.max(1.0),
        handed_off,
        ..Trial::default()
    })
}

/// The lanes, or a note that says why there are none.
///
/// # Errors
/// [`io::ErrorKind::Interrupted`] when all shall end.
pub(super) fn lanes(
    context: &mut Context<'_>,
    trials: usize,
) -> io::Result<Result<[DownloadSeries; 2], String>> {
    match measure(context, trials) {
        Ok(lanes) => Ok(Ok(lanes)),
        Err(error) if is_interruption(&error, context.stop) => Err(io::ErrorKind::Interrupted.into()),
        Err(error) => Ok(Err(format!("Steering by connection ID was not measured: {error}"))),
    }
}
