//! The report of the paths that a download has used at once: lines for people, JSON for programs.

use super::words::bytes_in_words;
use client::report::Outcome;
use client::{PathReport, PathState, UsedPath};
use serde_json::{Value, json};

/// One path, for programs.
pub(super) fn of(path: &UsedPath) -> Value {
    let (state, code) = match path.state {
        PathState::Closed(code) => (name(path.state), Some(code)),
        state => (name(state), None),
    };
    json!({
        "id": path.id,
        "local_address": path.local,
        "peer_address": path.peer,
        "state": state,
        "close_code": code,
        "rtt_ms": path.rtt.as_secs_f64() * 1e3,
        "probe_timeout_ms": path.probe_timeout.as_secs_f64() * 1e3,
        "received_bytes": path.received_bytes,
        "sent_bytes": path.sent_bytes,
        "sent_packets": path.sent_packets,
        "lost_packets": path.lost_packets,
    })
}

fn name(state: PathState) -> &'static str {
    match state {
        PathState::Validating => "validating",
        PathState::Open => "open",
        PathState::Backup => "backup",
        PathState::Closed(_) => "closed",
        _ => "unknown",
    }
}

/// A line for each path, for people; none where there could only be one.
pub(super) fn in_words(path: Option<&PathReport>) -> Vec<String> {
    let line = |used: &UsedPath| {
        let (state, rtt) = (name(used.state), used.rtt.as_secs_f64() * 1e3);
        let lost = used.lost_packets;
        let (received, sent) =
            (bytes_in_words(used.received_bytes as f64), bytes_in_words(used.sent_bytes as f64));
        let (id, local, peer) = (used.id, used.local.ip(), used.peer);
        format!(
            "  path {id} from {local} to {peer}: {received} received, {sent} sent, {lost} packets lost, RTT {rtt:.1} ms, {state}"
        )
    };
    path.and_then(|path| path.paths.as_ref()).map(|used| used.iter().map(line).collect()).unwrap_or_default()
}

/// What is said where fewer paths were used than `wanted`; nothing where no answer came.
pub(super) fn warning(wanted: Option<usize>, outcome: &Outcome) -> Option<String> {
    let wanted = wanted.filter(|wanted| *wanted > 1 && outcome.result.is_ok())?;
    let Some(path) = &outcome.path else { return Some("the download went over TCP, by one path".to_owned()) };
    let Some(used) = &path.paths else {
        return Some(
            "the server does not offer several paths at once: the download went over one".to_owned(),
        );
    };
    let is_open = |used: &&UsedPath| used.state != PathState::Validating;
    let count = used.iter().filter(is_open).count();
    (count < wanted).then(|| format!("{count} of {wanted} paths were used"))
}
