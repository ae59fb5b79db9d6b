//! From a snapshot of a server to its metrics as text.

use crate::exposition::{Exposition, Family, Format};
use crate::families as f;
use crate::process::Process;
use crate::snapshot::{Snapshot, Stage, Upstream};
use server::metrics::{Classes, Metrics};
use transport::DropReason;

/// The versions of HTTP, as labels.
const VERSIONS: [&str; 3] = ["1", "2", "3"];
/// The classes of status, as labels.
const STATUSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The metrics of a server in this format.
pub fn exposition(snapshot: &Snapshot, format: Format) -> String {
    let mut out = Exposition::new(format);
    about(&mut out, snapshot);
    http(&mut out, &snapshot.metrics, &snapshot.sites);
    upstreams(&mut out, &snapshot.upstreams);
    connections(&mut out, &snapshot.metrics);
    network(&mut out, &snapshot.metrics);
    datagrams(&mut out, &snapshot.metrics);
    quic(&mut out, &snapshot.metrics);
    operation(&mut out, snapshot);
    process(&mut out, &Process::of_self());
    out.finish()
}

fn about(out: &mut Exposition, snapshot: &Snapshot) {
    out.family(&f::BUILD).sample(&[("version", snapshot.version)], 1);
    out.family(&f::STAGE).value(u8::from(snapshot.stage == Stage::Ready));
    out.family(&f::THREADS).value(snapshot.threads);
    out.family(&f::SILENT).value(snapshot.silent);
}

fn http(out: &mut Exposition, metrics: &Metrics, sites: &[String]) {
    let versions = || VERSIONS.into_iter().zip(metrics.requests.versions());
    let mut samples = out.family(&f::REQUESTS);
    for (version, tally) in versions() {
        for (status, count) in by_status(&tally.classes) {
            samples.sample(&[("version", version), ("status", status)], count);
        }
    }
    let mut samples = out.family(&f::DURATIONS);
    versions().for_each(|(version, tally)| samples.histogram(&[("version", version)], &tally.durations));
    let served = [&metrics.tcp.http1, &metrics.tcp.http2, &metrics.http3];
    by_version(out, &f::CONTENT, served.map(|served| served.content_bytes));
    by_version(out, &f::STALLED, served.map(|served| served.stalled));
    by_version(out, &f::EVICTED, served.map(|served| served.evicted));
    let mut samples = out.family(&f::SITES);
    for (site, classes) in sites.iter().zip(metrics.requests.sites()) {
        for (status, count) in by_status(classes) {
            samples.sample(&[("site", site.as_str()), ("status", status)], count);
        }
    }
}

fn upstreams(out: &mut Exposition, upstreams: &[Upstream]) {
    if upstreams.is_empty() {
        return;
    }
    let mut samples = out.family(&f::UPSTREAM_REQUESTS);
    for Upstream { name, classes, .. } in upstreams {
        // A change of the protocol is a final response.
        for (status, count) in STATUSES.into_iter().zip(*classes) {
            samples.sample(&[("upstream", name.as_str()), ("status", status)], count);
        }
    }
    let mut samples = out.family(&f::UPSTREAM_DURATIONS);
    upstreams.iter().for_each(|of| samples.histogram(&[("upstream", of.name.as_str())], &of.durations));
    type Count = fn(&Upstream) -> Option<u64>;
    let counts: [(&Family, Count); 5] = [
        (&f::UPSTREAM_FAILURES, |of| Some(of.failures)),
        (&f::UPSTREAM_CHECKS_FAILED, |of| Some(of.failed_checks)),
        (&f::UPSTREAM_ACTIVE, |of| Some(of.active)),
        (&f::UPSTREAM_CONNECTIONS, |of| Some(of.connections)),
        (&f::UPSTREAM_HEALTHY, |of| of.is_healthy.map(u64::from)),
    ];
    for (family, count) in counts {
        let mut samples = out.family(family);
        for of in upstreams {
            count(of).into_iter().for_each(|count| samples.sample(&[("upstream", of.name.as_str())], count));
        }
    }
}

/// Adds a family with a sample for each version of HTTP.
fn by_version(out: &mut Exposition, family: &Family, counts: [u64; 3]) {
    let mut samples = out.family(family);
    for (version, count) in VERSIONS.into_iter().zip(counts) {
        samples.sample(&[("version", version)], count);
    }
}

/// Counts with their labels; only final responses are counted.
fn by_status(classes: &Classes) -> impl Iterator<Item = (&'static str, u64)> {
    STATUSES.into_iter().zip(*classes).skip(1)
}

/// Adds a family with a sample for TCP and one for QUIC.
fn both(out: &mut Exposition, family: &Family, tcp: u64, quic: u64) {
    let mut samples = out.family(family);
    samples.sample(&[("transport", "tcp")], tcp);
    samples.sample(&[("transport", "quic")], quic);
}

fn connections(out: &mut Exposition, metrics: &Metrics) {
    let Metrics { tcp, connections, endpoint, .. } = metrics;
    both(out, &f::OPEN, metrics.tcp_open, metrics.quic_open);
    both(out, &f::ACCEPTED, tcp.accepted, endpoint.incoming);
    both(out, &f::REFUSED, tcp.refused, endpoint.refused_connections);
    let mut samples = out.family(&f::HANDSHAKES);
    for (transport, kind, count) in [
        ("tcp", "full", tcp.handshakes_full),
        ("tcp", "resumed", tcp.handshakes_resumed),
        ("quic", "full", connections.full),
        ("quic", "resumed", connections.resumed),
        ("quic", "early", connections.early),
    ] {
        samples.sample(&[("transport", transport), ("kind", kind)], count);
    }
    both(out, &f::HANDSHAKES_FAILED, tcp.handshakes_failed, connections.failed);
    out.family(&f::EXPIRED).value(tcp.expired);
    out.family(&f::ACCEPT_FAILURES).value(tcp.accept_failures);
}

fn network(out: &mut Exposition, metrics: &Metrics) {
    let Metrics { tcp, port, .. } = metrics;
    both(out, &f::SENT, tcp.sent_bytes, port.tx.bytes);
    both(out, &f::RECEIVED, tcp.received_bytes, port.rx.bytes);
    both(out, &f::SEND_CALLS, tcp.send_calls, port.tx.calls);
    both(out, &f::RECEIVE_CALLS, tcp.receive_calls, port.rx.calls);
}

fn datagrams(out: &mut Exposition, metrics: &Metrics) {
    let Metrics { port, endpoint, hand_offs, .. } = metrics;
    out.family(&f::DATAGRAMS_SENT).value(port.tx.datagrams);
    out.family(&f::DATAGRAMS_RECEIVED).value(port.rx.datagrams);
    let mut samples = out.family(&f::DATAGRAMS_UNSENT);
    for (reason, count) in [
        ("refused", port.tx.refused),
        ("unreachable", port.tx.unreachable),
        ("too_large", port.tx.too_large),
        ("other", port.tx.dropped),
    ] {
        samples.sample(&[("reason", reason)], count);
    }
    out.family(&f::DATAGRAMS_OVERFLOWED).value(port.rx.overflowed);
    let mut samples = out.family(&f::DATAGRAMS_DROPPED);
    for (reason, name) in DropReason::NAMED {
        samples.sample(&[("reason", name)], endpoint.dropped(reason));
    }
    out.family(&f::HAND_OFFS).value(hand_offs.handed_out);
    out.family(&f::HAND_OFFS_DROPPED).value(hand_offs.hand_off_dropped);
}

fn quic(out: &mut Exposition, metrics: &Metrics) {
    let Metrics { connections, endpoint, .. } = metrics;
    for (family, count) in [
        (&f::PACKETS_SENT, connections.sent_packets),
        (&f::PACKETS_RECEIVED, connections.received_packets),
        (&f::PACKETS_LOST, connections.lost_packets),
        (&f::PROBE_TIMEOUTS, connections.probe_timeouts),
        (&f::MIGRATIONS, connections.migrations),
        (&f::KEY_UPDATES, connections.key_updates),
        (&f::RETRIES, endpoint.retries),
        (&f::NEGOTIATIONS, endpoint.version_negotiations),
        (&f::RESETS, endpoint.stateless_resets),
    ] {
        out.family(family).value(count);
    }
    out.family(&f::ROUND_TRIPS).histogram(&[], &connections.round_trips);
}

fn operation(out: &mut Exposition, snapshot: &Snapshot) {
    out.family(&f::MEMORY_HELD).value(snapshot.memory_held);
    out.family(&f::MEMORY_LIMIT).each(snapshot.memory_limit);
    let traces = snapshot.traces.as_ref();
    out.family(&f::TRACE_FILES).value(traces.map_or(0, |traces| traces.files));
    out.family(&f::TRACE_BYTES).value(traces.map_or(0, |traces| traces.bytes));
    let mut samples = out.family(&f::TRACES_LOST);
    for (what, count) in [
        ("connections", traces.map_or(0, |traces| traces.left_out)),
        ("chunks", traces.map_or(0, |traces| traces.refused)),
        ("files", traces.map_or(0, |traces| traces.failed)),
    ] {
        samples.sample(&[("what", what)], count);
    }
    out.family(&f::LOG_LOST).value(snapshot.lost_log_lines);
    let mut samples = out.family(&f::CERTIFICATE);
    for certificate in &snapshot.certificates {
        let file = certificate.file.to_string_lossy();
        samples.sample(&[("file", file.as_ref())], certificate.expires_s);
    }
    let orders = &snapshot.orders;
    let mut samples = out.family(&f::ORDERS);
    samples.sample(&[("result", "issued")], orders.issued);
    samples.sample(&[("result", "failed")], orders.failed);
    let mut samples = out.family(&f::ORDER_FAILURES);
    orders.all.iter().for_each(|order| samples.sample(&[("names", order.names.as_str())], order.failures));
    let mut samples = out.family(&f::ORDER_NEXT);
    orders.all.iter().for_each(|order| samples.sample(&[("names", order.names.as_str())], order.next_s));
    let mut samples = out.family(&f::RELOADS);
    samples.sample(&[("result", "success")], snapshot.reloads.succeeded);
    samples.sample(&[("result", "failure")], snapshot.reloads.failed);
    out.family(&f::RELOADED).each(snapshot.reloads.last_s);
}

fn process(out: &mut Exposition, process: &Process) {
    out.family(&f::CPU).value(process.cpu_s);
    out.family(&f::START).value(process.start_s);
    out.family(&f::RESIDENT).value(process.resident_bytes);
    out.family(&f::VIRTUAL).value(process.virtual_bytes);
    out.family(&f::DESCRIPTORS).value(process.open_descriptors);
    out.family(&f::DESCRIPTORS_LIMIT).each(process.max_descriptors);
}
