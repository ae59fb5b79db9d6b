//! The state of a server as JSON, and the same for people.

use crate::process::Process;
use crate::snapshot::{Expiry, Order, Snapshot, Upstream};
use serde_json::{Value, json};
use server::date::{http_date, unix_now};
use server::metrics::Classes;
use std::fmt::Write as _;

/// The classes of status that are told apart.
const STATUSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];
const DAY_S: i64 = 24 * 3_600;

/// The state of a server.
pub fn status(snapshot: &Snapshot) -> Value {
    let process = Process::of_self();
    let metrics = &snapshot.metrics;
    let versions = metrics.requests.versions();
    let mut all = Classes::default();
    for version in versions {
        all.iter_mut().zip(version.classes).for_each(|(count, more)| *count += more);
    }
    let of_version =
        |version: usize| versions.get(version).map_or(0, |version| version.classes.iter().sum::<u64>());
    let (by_1, by_2, by_3): (u64, u64, u64) = (of_version(0), of_version(1), of_version(2));
    let sites = snapshot.sites.iter().zip(metrics.requests.sites()).skip(1);
    let counters = metrics.counters();
    json!({
        "version": snapshot.version,
        "pid": std::process::id(),
        "stage": snapshot.stage.name(),
        "uptime_s": (unix_now() as f64 - process.start_s).max(0.0).round() as u64,
        "http": snapshot.http,
        "addresses": snapshot.addresses,
        "data_path": snapshot.data_path,
        "threads": { "all": snapshot.threads, "silent": snapshot.silent },
        "connections": {
            "open": { "tcp": metrics.tcp_open, "quic": metrics.quic_open },
            "accepted": { "tcp": metrics.tcp.accepted, "quic": metrics.endpoint.incoming },
            "refused": counters.refused,
            "handshakes_failed": metrics.tcp.handshakes_failed + metrics.connections.failed,
        },
        "requests": {
            "all": by_1 + by_2 + by_3,
            "by_version": { "1": by_1, "2": by_2, "3": by_3 },
            "by_status": by_status(&all),
        },
        "sent_bytes": metrics.tcp.sent_bytes + metrics.port.tx.bytes,
        "received_bytes": metrics.tcp.received_bytes + metrics.port.rx.bytes,
        "quic": {
            "packets_sent": metrics.connections.sent_packets,
            "packets_lost": metrics.connections.lost_packets,
        },
        "memory": {
            "held": snapshot.memory_held,
            "limit": snapshot.memory_limit,
            "resident": process.resident_bytes,
        },
        "cpu_s": process.cpu_s,
        "certificates": snapshot.certificates.iter().map(certificate).collect::<Vec<Value>>(),
        "orders": {
            "issued": snapshot.orders.issued,
            "failed": snapshot.orders.failed,
            "all": snapshot.orders.all.iter().map(order).collect::<Vec<Value>>(),
        },
        "sites": sites.map(|(name, classes)| json!({ "name": name, "by_status": by_status(classes) })).collect::<Vec<Value>>(),
        "upstreams": snapshot.upstreams.iter().map(upstream).collect::<Vec<Value>>(),
        "reloads": { "succeeded": snapshot.reloads.succeeded, "failed": snapshot.reloads.failed, "last_s": snapshot.reloads.last_s },
        "lost_log_lines": snapshot.lost_log_lines,
    })
}

fn by_status(classes: &Classes) -> Value {
    let counts = STATUSES.into_iter().zip(classes.iter().skip(1));
    counts.map(|(name, count)| (name.to_owned(), json!(count))).collect::<serde_json::Map<_, _>>().into()
}

fn upstream(of: &Upstream) -> Value {
    json!({
        "name": of.name,
        "healthy": of.is_healthy,
        "active": of.active,
        "by_status": by_status(&of.classes),
        "failures": of.failures,
        "failed_checks": of.failed_checks,
        "connections": of.connections,
    })
}

fn certificate(expiry: &Expiry) -> Value {
    json!({
        "file": expiry.file.to_string_lossy(),
        "expires_s": expiry.expires_s,
        "expires": String::from_utf8_lossy(&http_date(expiry.expires_s)),
    })
}

fn order(order: &Order) -> Value {
    json!({
        "names": order.names,
        "authority": order.authority,
        "is_there": order.is_there,
        "next_s": order.next_s,
        "failures": order.failures,
        "error": order.error,
    })
}

/// A line about a certificate.
fn shown(certificate: &Value) -> String {
    let left = left(number(&certificate["expires_s"]));
    format!("{}: {left}, {}", word(&certificate["file"]), word(&certificate["expires"]))
}

/// A line about a certificate that is ordered.
fn ordered(order: &Value) -> String {
    let (names, authority) = (word(&order["names"]), word(&order["authority"]));
    let next = match number(&order["next_s"]).checked_sub(unix_now()) {
        None | Some(0) => "now".to_owned(),
        Some(seconds) => format!("in {}", span(seconds)),
    };
    match (order["error"].as_str(), order["is_there"].as_bool()) {
        (Some(error), _) => {
            format!("{names}: FAILED {} times, next attempt {next}: {error}", order["failures"])
        }
        (None, Some(true)) => format!("{names}: by {authority}, renewed {next}"),
        (None, _) => format!("{names}: none yet, ordered from {authority} {next}"),
    }
}

/// The state `now` for people. `before` is the state some `seconds` earlier, from which rates are computed.
pub fn report(before: &Value, now: &Value, seconds: f64) -> String {
    let mut text = String::new();
    let stage = word(&now["stage"]);
    let uptime = span(number(&now["uptime_s"]));
    let mut line = |what: &str, value: String| {
        // Writing to a text does not fail.
        let _ = writeln!(text, "{what:<13}{value}");
    };
    line("tercel", format!("{}, process {}, {stage}, up {uptime}", word(&now["version"]), now["pid"]));
    let addresses: Vec<&str> = now["addresses"].as_array().into_iter().flatten().map(word).collect();
    line("serves", format!("{} on {}", word(&now["http"]), addresses.join(" and ")));
    let silent = number(&now["threads"]["silent"]);
    if silent > 0 {
        line("warning", format!("{silent} of {} threads do not answer", now["threads"]["all"]));
    }
    let connections = &now["connections"];
    let (quic, tcp) = (number(&connections["open"]["quic"]), number(&connections["open"]["tcp"]));
    let accepted = number(&connections["accepted"]["quic"]) + number(&connections["accepted"]["tcp"]);
    let (refused, failed) = (&connections["refused"], &connections["handshakes_failed"]);
    line(
        "connections",
        format!(
            "{} open ({quic} QUIC, {tcp} TCP), {accepted} accepted, {refused} refused, {failed} failed handshakes",
            quic + tcp
        ),
    );
    let rate = |of: fn(&Value) -> u64| of(now).saturating_sub(of(before)) as f64 / seconds.max(1e-3);
    let requests = |state: &Value| number(&state["requests"]["all"]);
    let by_status = &now["requests"]["by_status"];
    let (client, server) = (&by_status["4xx"], &by_status["5xx"]);
    line(
        "requests",
        format!(
            "{} in all, {:.1} a second, {client} with 4xx, {server} with 5xx",
            requests(now),
            rate(requests)
        ),
    );
    let sent = rate(|state| number(&state["sent_bytes"]));
    let received = rate(|state| number(&state["received_bytes"]));
    line("network", format!("{} a second sent, {} received", bytes(sent), bytes(received)));
    let memory = &now["memory"];
    let limit =
        memory["limit"].as_u64().map_or(String::new(), |limit| format!(" of {}", bytes(limit as f64)));
    let (held, resident) = (number(&memory["held"]) as f64, number(&memory["resident"]) as f64);
    line("memory", format!("{}{limit} for connections, {} resident", bytes(held), bytes(resident)));
    for certificate in now["certificates"].as_array().into_iter().flatten() {
        line("certificate", shown(certificate));
    }
    for order in now["orders"]["all"].as_array().into_iter().flatten() {
        line("acme", ordered(order));
    }
    for site in now["sites"].as_array().into_iter().flatten() {
        line("site", site_line(site));
    }
    for upstream in now["upstreams"].as_array().into_iter().flatten() {
        line("upstream", upstream_line(upstream));
    }
    let (reloads, lost) = (&now["reloads"], number(&now["lost_log_lines"]));
    line("reloads", format!("{}, and {} that failed", reloads["succeeded"], reloads["failed"]));
    if lost > 0 {
        line("warning", format!("{lost} lines of the access log were lost"));
    }
    text
}

fn site_line(site: &Value) -> String {
    let of = &site["by_status"];
    let all: u64 = STATUSES.into_iter().map(|status| number(&of[status])).sum();
    format!("{}: {all} requests, {} with 4xx, {} with 5xx", word(&site["name"]), of["4xx"], of["5xx"])
}

fn upstream_line(upstream: &Value) -> String {
    let state = match upstream["healthy"].as_bool() {
        Some(true) => "healthy",
        Some(false) => "DOWN",
        None => "in no route",
    };
    let classes = upstream["by_status"].as_object().into_iter().flat_map(|of| of.values());
    let all: u64 = classes.map(number).sum();
    let (failures, active) = (&upstream["failures"], &upstream["active"]);
    format!("{}: {state}, {all} responses, {failures} failures, {active} under way", word(&upstream["name"]))
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// How long a certificate lasts.
fn left(expires_s: u64) -> String {
    let left = i64::try_from(expires_s).unwrap_or(i64::MAX).saturating_sub_unsigned(unix_now());
    match left {
        ..0 => format!("EXPIRED {} ago", span(left.unsigned_abs())),
        0..DAY_S => format!("expires in {}", span(left.unsigned_abs())),
        _ => format!("expires in {} days", left / DAY_S),
    }
}

/// A span of time, roughly.
fn span(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{minutes} min"),
        3_600..172_800 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} days {} h", hours % 24),
    }
}

/// A number of bytes, roughly.
fn bytes(count: f64) -> String {
    let (mut count, mut unit) = (count, "B");
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if count < 1_024.0 {
            break;
        }
        (count, unit) = (count / 1_024.0, larger);
    }
    if unit == "B" { format!("{count:.0} B") } else { format!("{count:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_what_is_wrong_in_a_line_each() {
        let mut snapshot =
            Snapshot { version: "1.2.3", silent: 1, threads: 2, lost_log_lines: 3, ..Snapshot::default() };
        let now = unix_now();
        let certificate = |file: &str, expires_s| Expiry { file: file.into(), expires_s };
        snapshot.certificates =
            vec![certificate("a.pem", now + 100 * 86_400 + 5), certificate("b.pem", now - 7_200)];
        let upstream =
            |name: &str, is_healthy| Upstream { name: name.to_owned(), is_healthy, ..Upstream::default() };
        snapshot.upstreams = vec![upstream("unix:a", Some(true)), upstream("unix:b", Some(false))];
        let order = |names: &str, is_there, error: Option<&str>| Order {
            names: names.into(),
            authority: "ca.example".into(),
            is_there,
            next_s: now + 7_205,
            failures: 3,
            error: error.map(Into::into),
        };
        snapshot.orders.all =
            vec![order("a", false, None), order("b", true, None), order("c", true, Some("it is down"))];
        let state = status(&snapshot);
        let text = report(&state, &state, 1.0);
        for part in [
            "tercel       1.2.3, process ",
            ", starting, up ",
            "1 of 2 threads do not answer",
            "0 in all, 0.0 a second, 0 with 4xx, 0 with 5xx",
            "a.pem: expires in 100 days",
            "b.pem: EXPIRED 2 h 0 min ago",
            "acme         a: none yet, ordered from ca.example in 2 h 0 min",
            "acme         b: by ca.example, renewed in 2 h 0 min",
            "acme         c: FAILED 3 times, next attempt in 2 h 0 min: it is down",
            "3 lines of the access log were lost",
            "unix:a: healthy, 0 responses, 0 failures, 0 under way",
            "unix:b: DOWN, ",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn rates_are_what_came_between() {
        let state = |all: u64| json!({ "requests": { "all": all }, "sent_bytes": 3_000 * all });
        let text = report(&state(10), &state(30), 2.0);
        assert!(
            text.contains("30 in all, 10.0 a second") && text.contains("29.3 KiB a second sent"),
            "{text}"
        );
        assert_eq!((span(59), span(61), span(90_000)), ("59 s".into(), "1 min".into(), "25 h 0 min".into()));
    }
}
