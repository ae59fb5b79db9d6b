//! What a server says of itself: what is in the ready file, the summary, advice about socket buffers.

use super::log::{self, Level};
use super::ready::{ReadyFile, replace};
use admin::Address;
use datapath::Counters;
use serde_json::{Value, json};
use server::credentials::Credentials;
use server::packet_sizes::PacketSizes;
use server::served::Served;
use server::tcp::ThreadCounters;
use server::{Report, Summary, TcpRecord, WorkerRecord};
use std::path::Path;
use transport::{DropReason, EndpointCounters, ResumeCounters};

/// Says on standard error where the server listens and how to reach it, and writes the ready file.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn announce(
    info: &Report,
    credentials: &Credentials,
    (admin, ready_file): (Option<&Address>, Option<&Path>),
) -> Result<Option<ReadyFile>, String> {
    let on = info.interface.as_ref().map_or(String::new(), |name| format!(" of {name}"));
    let mode = info.xdp_mode.map_or(String::new(), |mode| format!(", {mode} mode"));
    let datapath = info.data_path.map_or(String::new(), |name| format!(", datapath {name}{on}{mode}"));
    let several = match (info.workers, info.steering) {
        (1, _) => String::new(),
        (workers, Some(steering)) => format!(", {workers} workers, steering {steering}"),
        (workers, None) => format!(", {workers} workers"),
    };
    let places = info.places.join(" and ");
    say(&format!("tercel serves {} on {places}{datapath}{several}", info.versions));
    if let Some(development) = &credentials.development {
        say(&development.how_to_use(info.address));
    }
    if let Some(place) = admin {
        say(&format!("metrics, health and status are at {place}: tercel status --admin {place}"));
    }
    let ready = json!({
        "port": info.address.port(),
        "addresses": info.addresses,
        "tcp_port": info.versions.over_tcp().then_some(info.address.port()),
        "pid": std::process::id(),
        "admin": admin.map(ToString::to_string),
        "certificate": credentials.certificate,
        "datapath": info.data_path,
        "interface": info.interface,
        "xdp_mode": info.xdp_mode,
        "workers": info.workers,
        "steering": info.steering,
    });
    ready_file.map(|path| ReadyFile::write(path, &ready)).transpose()
}

/// What the server did, for people on standard error and for machines in the summary file.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn summarize(info: &Report, done: &Summary, summary_file: Option<&Path>) -> Result<(), String> {
    let (records, tcp) = (done.workers(), done.tcp_threads());
    let mut total = Counters::default();
    records.iter().for_each(|record| total += record.counters);
    let cpu_s = cpu::process_seconds();
    let per_call = |datagrams: u64, calls: u64| datagrams as f64 / calls.max(1) as f64;
    say(&format!(
        "tercel served {} datagrams ({:.1} per system call), heard {} ({:.1} per system call), {:.2} s of CPU",
        total.tx.datagrams,
        per_call(total.tx.datagrams, total.tx.calls),
        total.rx.datagrams,
        per_call(total.rx.datagrams, total.rx.calls),
        cpu_s,
    ));
    let mut tally = ThreadCounters::default();
    tcp.iter().for_each(|record| tally += record.counters);
    if tally.accepted > 0 {
        say(&format!(
            "over TCP {} connections, {} requests of HTTP/1.1 and {} of HTTP/2, {} bytes",
            tally.accepted, tally.http1.requests, tally.http2.requests, tally.sent_bytes,
        ));
    }
    if tally.accept_failures > 0 {
        say("connections had to wait because descriptors or memory had run out: see ulimit -n and --memory");
    }
    let mut served = Served::default();
    records.iter().for_each(|record| served += record.served);
    let mut summary = summary(info, records, &total, cpu_s);
    let more = json!({
        "http": { "1": version(&tally.http1), "2": version(&tally.http2), "3": version(&served) },
        "tcp": tcp_flows(&tally),
        "tcp_threads": tcp.iter().map(tcp_thread).collect::<Vec<Value>>(),
    });
    extend(&mut summary, more);
    summary_file.map_or(Ok(()), |path| replace(path, &format!("{summary}\n")))
}

/// What was done for one version of HTTP.
fn version(served: &Served) -> Value {
    json!({
        "connections": served.connections,
        "requests": served.requests,
        "content_bytes": served.content_bytes,
        "stalled": served.stalled,
        "evicted": served.evicted,
    })
}

fn tcp_thread(record: &TcpRecord) -> Value {
    let mut line = tcp_flows(&record.counters);
    let more = json!({
        "thread": record.number,
        "core": record.core,
        "cpu_s": record.cpu_s,
        "http": { "1": version(&record.counters.http1), "2": version(&record.counters.http2) },
    });
    extend(&mut line, more);
    line
}

fn tcp_flows(tally: &ThreadCounters) -> Value {
    json!({
        "connections": tally.accepted,
        "refused": tally.refused,
        "handshakes_failed": tally.handshakes_failed,
        "expired": tally.expired,
        "accept_failures": tally.accept_failures,
        "sent_bytes": tally.sent_bytes,
        "send_calls": tally.send_calls,
        "received_bytes": tally.received_bytes,
        "receive_calls": tally.receive_calls,
    })
}

fn summary(info: &Report, records: &[WorkerRecord], total: &Counters, cpu_s: f64) -> Value {
    let frames = |place: usize| -> Option<usize> {
        records.iter().map(|record| record.frames.map(|frames| frames[place].free)).sum()
    };
    let mut summary = flows(total);
    let first = records.first();
    let more = json!({
        "cpu_s": cpu_s,
        "datapath": first.map(|record| record.capabilities.name),
        "segments_offloaded": records.iter().all(|record| record.capabilities.segments_offloaded),
        "coalesces": records.iter().all(|record| record.capabilities.coalesces),
        "departure_times": records.iter().all(|record| record.capabilities.departure_times),
        "interface": info.interface,
        "steering": info.steering,
        "handed_off": records.iter().map(|record| record.hand_offs.handed_out).sum::<u64>(),
        "hand_off_dropped": records.iter().map(|record| record.hand_offs.hand_off_dropped).sum::<u64>(),
        "xdp_mode": first.and_then(|record| record.xdp_mode),
        "free_frames_at_start": frames(0),
        "free_frames_at_end": frames(1),
        "connections": records.iter().map(|record| record.endpoint.incoming).sum::<u64>(),
        "quic_versions": quic_versions(records),
        "refused": refused(records),
        "packet_sizes": packet_sizes(records),
        "workers": records.iter().map(worker).collect::<Vec<Value>>(),
    });
    extend(&mut summary, more);
    summary
}

/// Connections by version, those that this server has moved to another version, and clients that were told which versions there are.
fn quic_versions(records: &[WorkerRecord]) -> Value {
    let sum = |count: fn(&EndpointCounters) -> u64| -> u64 {
        records.iter().map(|record| count(&record.endpoint)).sum()
    };
    json!({
        "1": sum(|c| (c.incoming - c.incoming_v2 + c.moved_to_v1).saturating_sub(c.moved_to_v2)),
        "2": sum(|c| (c.incoming_v2 + c.moved_to_v2).saturating_sub(c.moved_to_v1)),
        "moved_to_1": sum(|c| c.moved_to_v1),
        "moved_to_2": sum(|c| c.moved_to_v2),
        "version_negotiations": sum(|counters| counters.version_negotiations),
    })
}

/// Clients that were not let in, by what there was too much of.
fn refused(records: &[WorkerRecord]) -> Value {
    let sum = |count: fn(&EndpointCounters) -> u64| -> u64 {
        records.iter().map(|record| count(&record.endpoint)).sum()
    };
    json!({
        "connections": sum(|counters| counters.refused_connections),
        "handshakes": sum(|counters| counters.dropped(DropReason::HalfOpenLimit)),
        "handshake_shares": sum(|counters| counters.dropped(DropReason::HandshakeShare)),
    })
}

/// How large packets were in the connections that have closed, and what it cost to find out.
fn packet_sizes(records: &[WorkerRecord]) -> Value {
    let mut all = PacketSizes::default();
    records.iter().for_each(|record| all.merge(&record.packet_sizes));
    json!({
        "connections": all.connections,
        "smallest": all.smallest,
        "largest": all.largest,
        "longest_search_ms": all.longest_search.map(|span| span.as_secs_f64() * 1e3),
        "probes_sent": all.probes_sent,
        "probes_lost": all.probes_lost,
        "black_holes": all.black_holes,
    })
}

fn worker(record: &WorkerRecord) -> Value {
    let mut line = flows(&record.counters);
    let more = json!({
        "worker": record.number,
        "core": record.core,
        "cpu_s": record.cpu_s,
        "connections": record.endpoint.incoming,
        "careful_resume": resumes(&record.endpoint.resumes),
        "handed_out": record.hand_offs.handed_out,
        "handed_in": record.hand_offs.handed_in,
        "hand_off_dropped": record.hand_offs.hand_off_dropped,
        "datapath": record.capabilities.name,
        "xdp_mode": record.xdp_mode,
        "free_frames_at_start": record.frames.map(|frames| frames[0].free),
        "free_frames_at_end": record.frames.map(|frames| frames[1].free),
        "frames": record.frames.map(|frames| frames[1].all),
    });
    extend(&mut line, more);
    line
}

/// Connections by what became of careful resume, and the largest jump in bytes.
fn resumes(counters: &ResumeCounters) -> Value {
    json!({
        "learned": counters.learned,
        "offered": counters.offered,
        "jumped": counters.jumped,
        "validated": counters.validated,
        "retreated": counters.retreated,
        "other_path": counters.other_path,
        "largest_jump": counters.largest_jump,
    })
}

/// Bytes, datagrams and system calls.
fn flows(counters: &Counters) -> Value {
    json!({
        "sent_bytes": counters.tx.bytes,
        "sent_datagrams": counters.tx.datagrams,
        "send_calls": counters.tx.calls,
        "sends_lost": counters.tx.lost(),
        "received_bytes": counters.rx.bytes,
        "received_datagrams": counters.rx.datagrams,
        "receive_calls": counters.rx.calls,
        "overflowed_datagrams": counters.rx.overflowed,
        "waits": counters.waits,
    })
}

fn say(text: &str) {
    log::say(Level::Info, text);
}

fn extend(object: &mut Value, more: Value) {
    if let (Value::Object(fields), Value::Object(more)) = (object, more) {
        fields.extend(more);
    }
}
