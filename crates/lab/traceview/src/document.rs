//! Traces of the current drafts as one document of qlog 0.3, which qvis and other public viewers open: they know no later version.
//!
//! Names of events and members change, and what 0.3 does not have becomes a message. Viewers take packet numbers as unique in a trace,
//! so each further path of a connection becomes a trace of its own. Members that 0.3 does not name stay: it permits them, and viewers
//! skip them. Members that qvis alone reads (`byte_length`, `element_id`, `max_packet_size`) and quiche's reader alone
//! (`raw_frame_type`) are there too.
//!
//! Source: draft-ietf-quic-qlog-main-schema-05, draft-ietf-quic-qlog-quic-events-04, draft-ietf-quic-qlog-h3-events-04.

#[cfg(test)]
mod tests;

use crate::records::{Unreadable, contents, sequence, text};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// A document of qlog 0.3. Viewers look for the version and the format in its first 1,024 bytes: the order of members counts.
#[derive(Debug, Serialize)]
pub struct Document {
    qlog_version: &'static str,
    qlog_format: &'static str,
    title: &'static str,
    traces: Vec<Value>,
}

impl Default for Document {
    fn default() -> Self {
        Document { qlog_version: "0.3", qlog_format: "JSON", title: "tercel", traces: Vec::new() }
    }
}

impl Document {
    /// Adds the trace in a file.
    ///
    /// # Errors
    /// The file cannot be read, or is no sequence by the current drafts.
    pub fn add(&mut self, path: &Path) -> Result<(), Unreadable> {
        let added = contents(path).and_then(|text| self.add_text(&text));
        added.map_err(|reason| Unreadable::of(path, &reason))
    }

    pub(crate) fn add_text(&mut self, text: &str) -> Result<(), String> {
        let sequence = sequence(text)?;
        if sequence.header.get("file_schema").is_none() {
            let version =
                sequence.header.get("qlog_version").and_then(Value::as_str).unwrap_or("another version");
            return Err(format!("this is qlog {version}: only traces by the current drafts are converted"));
        }
        let mut paths: BTreeMap<String, Vec<Value>> = BTreeMap::from([(String::new(), Vec::new())]);
        for mut record in sequence.records {
            let path = record.get("tuple").and_then(Value::as_str).unwrap_or_default().to_owned();
            if let Some(record) = record.as_object_mut() {
                rename_event(record);
                paths.entry(path).or_default().push(Value::Object(core::mem::take(record)));
            }
        }
        let header = sequence.header.get("trace").unwrap_or(&Value::Null);
        for (path, mut events) in paths {
            let time = |event: &Value| event.get("time").and_then(Value::as_f64).unwrap_or(0.0);
            events.sort_by(|one, other| time(one).total_cmp(&time(other)));
            self.traces.push(trace(header, &path, events));
        }
        Ok(())
    }

    /// The document as text.
    ///
    /// # Errors
    /// A time or another number is not finite.
    pub fn to_json(&self) -> Result<String, String> {
        serde_json::to_string(self).map_err(|error| error.to_string())
    }
}

fn trace(header: &Value, path: &str, events: Vec<Value>) -> Value {
    let common = header.get("common_fields").unwrap_or(&Value::Null);
    let id = text(common, "group_id").unwrap_or_default();
    let clock = common.pointer("/reference_time/wall_clock_time").and_then(Value::as_str);
    let title = if path.is_empty() { id.clone() } else { format!("{id}, path {path}") };
    json!({
        "title": title,
        "vantage_point": {"type": header.pointer("/vantage_point/type").and_then(Value::as_str).unwrap_or("unknown")},
        "common_fields": {
            "ODCID": id,
            "group_id": id,
            "protocol_type": ["QUIC", "HTTP3"],
            "time_format": "relative",
            "reference_time": clock.and_then(unix_ms).unwrap_or(0),
        },
        "events": events,
    })
}

/// Milliseconds since 1970 of a time of RFC 3339 in UTC, as tercel writes it: 2026-11-23T13:37:32.992Z.
fn unix_ms(time: &str) -> Option<i64> {
    let field = |from: usize, to: usize| time.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (field(0, 4)?, field(5, 7)?, field(8, 10)?);
    // Years begin in March, so that the leap day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469;
    let of_day = (field(11, 13)? * 60 + field(14, 16)?) * 60 + field(17, 19)?;
    let fraction = time.get(20..23).and_then(|ms| ms.parse::<i64>().ok()).unwrap_or(0);
    Some((days * 86_400 + of_day) * 1_000 + fraction)
}

type Members = Map<String, Value>;

fn rename_event(record: &mut Members) {
    let named = record.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some((schema, event)) = named.split_once(':') else { return };
    let mut no_data = Members::new();
    let data = record.get_mut("data").and_then(Value::as_object_mut).unwrap_or(&mut no_data);
    move_member(data, "initiator", "owner");
    let name = match (schema, event) {
        ("quic", "tuple_assigned" | "migration_state_updated" | "ecn_state_updated") => {
            let message = format!("{event} {}", Value::Object(core::mem::take(data)));
            data.insert("message".to_owned(), message.into());
            "loglevel:info".to_owned()
        }
        ("quic", _) => of_quic(event, data),
        ("http3", _) => {
            of_http(event, data);
            format!("http:{event}")
        }
        _ => named,
    };
    record.insert("name".to_owned(), name.into());
}

/// Converts the data of an event and returns its name.
fn of_quic(event: &str, data: &mut Members) -> String {
    match event {
        "connection_started" => started(data),
        "connection_closed" => closed(data),
        "alpn_information" => alpn(data),
        "parameters_set" => copy_member(data, "max_udp_payload_size", "max_packet_size"),
        "packet_sent" | "packet_received" => {
            let frames = data.get_mut("frames").and_then(Value::as_array_mut).into_iter().flatten();
            frames.filter_map(Value::as_object_mut).for_each(rename_frame);
        }
        "packet_dropped" => dropped(data),
        // Secrets are in no trace, and the member has to be there.
        "key_updated" => {
            data.insert("new".to_owned(), "".into());
            move_member(data, "key_phase", "generation");
        }
        "timer_updated" if is(data, "timer_type", "loss_timeout") => {
            data.insert("timer_type".to_owned(), "ack".into());
        }
        _ => {}
    }
    let (category, name) = match event {
        "key_updated" => ("security", event),
        "recovery_parameters_set" => ("recovery", "parameters_set"),
        "recovery_metrics_updated" => ("recovery", "metrics_updated"),
        "timer_updated" => ("recovery", "loss_timer_updated"),
        "congestion_state_updated" | "packet_lost" => ("recovery", event),
        "mtu_updated" => ("connectivity", event),
        _ if event.starts_with("connection_") => ("connectivity", event),
        _ => ("transport", event),
    };
    format!("{category}:{name}")
}

fn started(data: &mut Members) {
    for (end, prefix) in [("local", "src"), ("remote", "dst")] {
        let Some(end) = data.remove(end) else { continue };
        let (version, ip, port) =
            if end.get("ip_v4").is_some() { ("v4", "ip_v4", "port_v4") } else { ("v6", "ip_v6", "port_v6") };
        data.insert("ip_version".to_owned(), version.into());
        let members =
            [("ip", end.get(ip)), ("port", end.get(port)), ("cid", end.pointer("/connection_ids/0"))];
        for (name, value) in members {
            data.extend(value.map(|value| (format!("{prefix}_{name}"), value.clone())));
        }
    }
    data.insert("protocol".to_owned(), "QUIC".into());
}

fn closed(data: &mut Members) {
    error_code(data, "connection_error", "connection_code");
    error_code(data, "application_error", "application_code");
    // 0.3 has no word for the others.
    data.retain(|name, value| {
        name != "trigger" || !["aborted", "unspecified"].iter().any(|word| value == word)
    });
}

/// An error by its name, or by its number where it has none.
fn error_code(data: &mut Members, from: &str, to: &str) {
    if let Some(error) = data.remove(from) {
        let number = if error == "unknown" { data.remove("error_code") } else { None };
        data.insert(to.to_owned(), number.unwrap_or(error));
    }
}

fn alpn(data: &mut Members) {
    if let Some(chosen) = data.get_mut("chosen_alpn") {
        let text = chosen.get("string_value").or_else(|| chosen.get("byte_value")).cloned();
        *chosen = text.unwrap_or_default();
    }
}

fn dropped(data: &mut Members) {
    let trigger = match data.get("trigger").and_then(Value::as_str) {
        Some("duplicate") => "general",
        Some("key_unavailable") => "decryption_failure",
        _ => return,
    };
    let cause = data.insert("trigger".to_owned(), trigger.into());
    let details = data.entry("details").or_insert_with(|| json!({}));
    if let Some(details) = details.as_object_mut() {
        details.insert("cause".to_owned(), cause.unwrap_or_default());
    }
}

fn rename_frame(frame: &mut Members) {
    let raw = frame.remove("raw").unwrap_or_default();
    let length = |name: &str| raw.get(name).cloned().unwrap_or_else(|| 0.into());
    match frame.get("frame_type").and_then(Value::as_str).unwrap_or_default() {
        "stream" => {
            frame.entry("offset").or_insert_with(|| 0.into());
            frame.insert("length".to_owned(), length("payload_length"));
            frame.insert("raw".to_owned(), raw);
        }
        "crypto" | "datagram" => {
            frame.insert("length".to_owned(), length("payload_length"));
        }
        "padding" => {
            frame.insert("payload_length".to_owned(), length("length"));
        }
        "reset_stream" | "stop_sending" | "connection_close" => error_code(frame, "error", "error_code"),
        "reset_stream_at" => {
            error_code(frame, "error", "error_code");
            frame.insert("frame_type".to_owned(), "unknown".into());
            unknown_frame(frame, 0x24.into(), raw);
        }
        "unknown" => {
            let number = frame.remove("frame_type_bytes").unwrap_or_default();
            unknown_frame(frame, number, raw);
        }
        _ => {}
    }
}

fn unknown_frame(frame: &mut Members, number: Value, raw: Value) {
    frame.insert("raw_frame_type".to_owned(), number.clone());
    frame.insert("frame_type_value".to_owned(), number);
    if raw.is_object() {
        frame.insert("raw".to_owned(), raw);
    }
}

fn of_http(event: &str, data: &mut Members) {
    move_member(data, "stream_type_bytes", "stream_type_value");
    if !event.starts_with("frame_") {
        return;
    }
    let Some(frame) = data.get_mut("frame").and_then(Value::as_object_mut) else { return };
    move_member(frame, "frame_type_bytes", "frame_type_value");
    if is(frame, "frame_type", "priority_update") {
        copy_member(frame, "stream_id", "element_id");
        copy_member(frame, "priority_field_value", "value");
    }
    if let Some(length) = frame.get("raw").and_then(|raw| raw.get("payload_length")).cloned() {
        data.insert("length".to_owned(), length.clone());
        data.insert("byte_length".to_owned(), length);
    }
}

fn is(members: &Members, name: &str, value: &str) -> bool {
    members.get(name).is_some_and(|found| found == value)
}

fn move_member(members: &mut Members, from: &str, to: &str) {
    if let Some(value) = members.remove(from) {
        members.insert(to.to_owned(), value);
    }
}

fn copy_member(members: &mut Members, from: &str, to: &str) {
    if let Some(value) = members.get(from).cloned() {
        members.insert(to.to_owned(), value);
    }
}
