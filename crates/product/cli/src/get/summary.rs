//! The machine's line about a download: one JSON object.

use super::{Http, paths};
use client::PathReport;
use client::report::Outcome;
use http::Version;
use serde_json::{Value, json};
use transport::EarlyStatus;

/// What is counted for HTTP/3 alone.
const NOT_COUNTED: [&str; 8] = [
    "received_datagrams",
    "sent_datagrams",
    "receive_calls",
    "send_calls",
    "waits",
    "system_calls",
    "datagrams_per_call",
    "overflowed_datagrams",
];

/// What became of `url`, as the user wrote it; the version is told where the user did not fix HTTP/3.
pub(super) fn of(url: &str, outcome: &Outcome, http: Http) -> Value {
    let seconds = outcome.elapsed.as_secs_f64();
    let usage = &outcome.usage;
    let datagrams = usage.received_datagrams + usage.sent_datagrams;
    let goodput = if seconds > 0.0 { outcome.bytes as f64 * 8.0 / seconds } else { 0.0 };
    let (error, exit_code) = match &outcome.result {
        Ok(_) => (None, 0),
        Err(error) => (Some(error.to_string()), error.exit_code()),
    };
    let file = outcome.result.as_ref().ok().and_then(Option::as_ref);
    let mut line = json!({
        "url": url,
        "final_url": outcome.url,
        "status": outcome.status,
        "exit_code": exit_code,
        "error": error,
        "file": file.map(|path| path.to_string_lossy()),
        "bytes": outcome.bytes,
        "resumed_from": outcome.resumed_from,
        "seconds": seconds,
        "first_answer_seconds": outcome.first_answer.map(|span| span.as_secs_f64()),
        "goodput_bits_per_second": goodput,
        "cpu_user_s": usage.cpu_user_s,
        "cpu_system_s": usage.cpu_system_s,
        "received_datagrams": usage.received_datagrams,
        "sent_datagrams": usage.sent_datagrams,
        "receive_calls": usage.receive_calls,
        "send_calls": usage.send_calls,
        "waits": usage.waits,
        "system_calls": usage.calls(),
        "datagrams_per_call": datagrams as f64 / usage.calls().max(1) as f64,
        "overflowed_datagrams": usage.overflowed,
    });
    if let (true, Value::Object(fields)) = (http != Http::Three, &mut line) {
        let name = outcome.version.map(|version| format!("{version:?}"));
        let name = name.as_ref().map(|name| name.trim_start_matches("HTTP/"));
        fields.insert("http_version".into(), json!(name));
        if outcome.version != Some(Version::HTTP_3) {
            NOT_COUNTED.iter().for_each(|name| drop(fields.insert((*name).into(), Value::Null)));
        }
    }
    if let (Some(path), Value::Object(fields)) = (&outcome.path, &mut line) {
        let version = if path.version == wire::Version::V2.0 { 2 } else { path.version };
        fields.insert("quic_version".into(), json!(version));
        fields.insert("cipher".into(), json!(path.suite.map(|suite| suite.to_string())));
        fields.insert("resumed".into(), json!(path.is_resumed));
        fields.insert("early_data".into(), json!(early_data_in_words(path.early_data)));
        fields.insert("packet_size".into(), json!(path.packet_size));
        fields.insert("local_address".into(), json!(path.local));
        fields.insert("peer_address".into(), json!(path.peer));
        fields.insert("migrations".into(), json!(path.migrations));
        if let Some(used) = &path.paths {
            fields.insert("paths".into(), used.iter().map(paths::of).collect());
        }
        let took = path.mtu.took.map(|span| span.as_secs_f64());
        let min_rtt = Some(path.min_rtt.as_secs_f64()).filter(|rtt| *rtt > 0.0);
        fields.insert("mtu_search_ms".into(), json!(took.map(|seconds| seconds * 1e3)));
        let rtts = took.zip(min_rtt).map(|(took, rtt)| took / rtt);
        fields.insert("mtu_search_round_trips".into(), json!(rtts));
        fields.insert("mtu_probes_sent".into(), json!(path.mtu.probes_sent));
        fields.insert("mtu_probes_lost".into(), json!(path.mtu.probes_lost));
        fields.insert("mtu_black_holes".into(), json!(path.mtu.black_holes));
        fields.insert("rtt_ms".into(), json!(path.rtt.as_secs_f64() * 1e3));
        fields.insert("received_packets".into(), json!(path.received_packets));
        fields.insert("sent_packets".into(), json!(path.sent_packets));
        fields.insert("lost_packets".into(), json!(path.lost_packets));
        fields.insert("key_updates".into(), json!(path.key_updates));
    }
    line
}

/// What is remarkable about the connection, in words for people.
pub(super) fn connection_in_words(path: Option<&PathReport>) -> &'static str {
    match path.map(|path| (path.early_data, path.is_resumed)) {
        Some((EarlyStatus::Accepted, _)) => " (connection resumed, request in early data)",
        Some((EarlyStatus::Rejected, true)) => " (connection resumed, early data refused)",
        Some((EarlyStatus::Rejected, false)) => " (early data refused)",
        Some((_, true)) => " (connection resumed)",
        _ => "",
    }
}

/// What became of early data, for programs; `None` where there was none.
fn early_data_in_words(status: EarlyStatus) -> Option<&'static str> {
    match status {
        EarlyStatus::Accepted => Some("accepted"),
        EarlyStatus::Rejected => Some("refused"),
        EarlyStatus::Offered => Some("offered"),
        EarlyStatus::None => None,
    }
}
