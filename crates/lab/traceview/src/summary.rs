//! What the events of a trace say of its connection.

use crate::records::{Event, Trace, number, packet, text};
use crate::requests::{Request, Requests};
use crate::sequence::{Content, Sequence};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The longest times without progress that are told.
const STALLS: usize = 5;
/// A pause that is shorter is no stall, in milliseconds.
const SHORTEST_STALL: f64 = 50.0;

/// What a connection did. Times are in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Which end has written the trace.
    pub vantage: String,
    /// From the first event to the last.
    pub duration_ms: f64,
    /// Until the handshake was complete, or confirmed where the trace does not say that.
    pub handshake_ms: Option<f64>,
    /// The version of QUIC, as the trace has it.
    pub version: Option<String>,
    /// The application protocol.
    pub alpn: Option<String>,
    /// Addresses: ours, the peer's.
    pub addresses: [Option<String>; 2],
    /// Packets sent and received.
    pub packets: [u64; 2],
    /// Bytes in them.
    pub bytes: [u64; 2],
    /// Bytes of content of streams in them, repetitions included.
    pub stream_bytes: [u64; 2],
    /// Packets that were declared lost.
    pub lost: u64,
    /// Packets that were declared lost and acknowledged later.
    pub spurious: u64,
    /// Packets that arrived and were dropped.
    pub dropped: u64,
    /// Round-trip times: the lowest, the median, the 99th percentile of samples.
    pub rtt_ms: Option<[f64; 3]>,
    /// The largest congestion window, in bytes.
    pub largest_window: Option<u64>,
    /// Requests of HTTP/3.
    pub request_count: u64,
    /// The first thousand of them.
    pub requests: Vec<Request>,
    /// The longest times without progress, the longest first.
    pub stalls: Vec<Stall>,
    /// How it ended.
    pub end: Option<String>,
    /// Events in all.
    pub events: u64,
    /// Events that the summary has no use for, by name.
    pub others: BTreeMap<String, u64>,
    #[serde(skip)]
    pub(crate) curves: Curves,
    #[serde(skip)]
    pub(crate) sequence: Sequence,
}

/// A time in which no stream made progress, though some did before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stall {
    /// When it began.
    pub began_ms: f64,
    /// How long it was.
    pub lasted_ms: f64,
    /// What came next.
    pub ended_by: String,
}

/// Figures over time: milliseconds, and a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Curves {
    pub(crate) window: Vec<(f64, f64)>,
    pub(crate) in_flight: Vec<(f64, f64)>,
    pub(crate) threshold: Vec<(f64, f64)>,
    pub(crate) rtt: Vec<(f64, f64)>,
    pub(crate) smoothed: Vec<(f64, f64)>,
    /// New content of streams, added up: sent, received.
    pub(crate) content: [Vec<(f64, f64)>; 2],
    pub(crate) lost: Vec<(f64, f64)>,
}

/// What is remembered while the events are read.
#[derive(Default)]
struct Reading {
    /// The end of what each stream has carried, by direction.
    streams: [BTreeMap<u64, u64>; 2],
    /// All of them added up.
    carried: [u64; 2],
    progressed_at: Option<f64>,
    lost: BTreeMap<(String, u64), ()>,
    requests: Requests,
}

impl Summary {
    /// Reads a trace.
    pub fn of(trace: &Trace) -> Summary {
        let mut summary = Summary {
            vantage: trace.vantage.clone(),
            duration_ms: trace.events.last().map_or(0.0, |event| event.time),
            events: trace.events.len() as u64,
            ..Summary::default()
        };
        let mut reading = Reading::default();
        for event in &trace.events {
            summary.add(&mut reading, event);
        }
        summary.request_count = reading.requests.count;
        summary.requests = reading.requests.into_told();
        summary.stalls.sort_by(|one, other| other.lasted_ms.total_cmp(&one.lasted_ms));
        summary.stalls.truncate(STALLS);
        let mut samples: Vec<f64> = summary.curves.rtt.iter().map(|(_, rtt)| *rtt).collect();
        samples.sort_by(f64::total_cmp);
        let at = |share: f64| samples.get(((samples.len() as f64 - 1.0) * share).round() as usize).copied();
        summary.rtt_ms =
            at(0.0).zip(at(0.5)).zip(at(0.99)).map(|((lowest, median), high)| [lowest, median, high]);
        summary.largest_window = summary.curves.window.iter().map(|(_, window)| *window as u64).max();
        summary
    }

    fn add(&mut self, reading: &mut Reading, event: &Event) {
        let Event { time, name, data, .. } = event;
        match name.as_str() {
            "packet_sent" => self.on_packet(reading, event, 0),
            "packet_received" => self.on_packet(reading, event, 1),
            "packet_lost" => {
                self.lost += 1;
                self.sequence.on_lost(event);
                self.curves.lost.push((*time, reading.carried[0] as f64));
                if let Some(packet) = packet(data) {
                    reading.lost.insert(packet, ());
                }
            }
            "packet_dropped" => self.dropped += 1,
            "packets_acked" => {
                let space = text(data, "packet_number_space").unwrap_or_default();
                if space == "application_data" {
                    self.sequence.on_acknowledged(event);
                }
                let numbers = data.get("packet_numbers").and_then(Value::as_array);
                let again = numbers.into_iter().flatten().filter_map(Value::as_u64);
                let again = again.filter(|number| reading.lost.remove(&(space.clone(), *number)).is_some());
                self.spurious += again.count() as u64;
            }
            "recovery_metrics_updated" => self.on_metrics(*time, data),
            "connection_started" => {
                self.addresses = [address(data, "local", "src"), address(data, "remote", "dst")];
            }
            "tuple_assigned" if self.addresses == [None, None] => {
                self.addresses = [address(data, "tuple_local", ""), address(data, "tuple_remote", "")];
            }
            "version_information" => {
                let chosen = data.get("chosen_version").filter(|version| !version.is_null());
                self.version = chosen.map(version).or_else(|| self.version.take());
            }
            "alpn_information" => {
                let chosen =
                    data.get("chosen_alpn").map(|alpn| text(alpn, "string_value").unwrap_or(in_words(alpn)));
                self.alpn = chosen.filter(|alpn| alpn != "null").or_else(|| self.alpn.take());
            }
            "connection_state_updated" => self.on_state(*time, data),
            "frame_created" | "frame_parsed" => reading.requests.on_frame(*time, data),
            "connection_closed" => self.end = Some(ending(data)),
            _ => *self.others.entry(name.clone()).or_default() += 1,
        }
    }

    fn on_packet(&mut self, reading: &mut Reading, event: &Event, direction: usize) {
        let Event { time, data, .. } = event;
        self.packets[direction] += 1;
        let length = data.pointer("/raw/length").or_else(|| data.pointer("/header/packet_size"));
        self.bytes[direction] += length.and_then(number).unwrap_or(0);
        let frames = data.get("frames").and_then(Value::as_array);
        let (mut is_new, mut has_content) = (false, false);
        for frame in frames.into_iter().flatten() {
            let ty = text(frame, "frame_type").unwrap_or_default();
            if ty == "handshake_done" && self.handshake_ms.is_none() {
                self.handshake_ms = Some(*time);
            }
            if ty == "connection_close" && self.end.is_none() && direction == 1 {
                self.end = Some(format!("by the peer: {}", ending(frame)));
            }
            if ty != "stream" {
                continue;
            }
            let length = ["/raw/payload_length", "/raw/length", "/length"]
                .iter()
                .find_map(|path| number(frame.pointer(path)?));
            let length = length.unwrap_or(0);
            self.stream_bytes[direction] += length;
            has_content |= length > 0;
            let id = frame.get("stream_id").and_then(number).unwrap_or(0);
            let end = frame.get("offset").and_then(number).unwrap_or(0).saturating_add(length);
            if (direction == 0) == (self.vantage == "server") {
                reading.requests.on_response_bytes(*time, id);
            }
            let known = reading.streams[direction].entry(id).or_default();
            if end > *known {
                reading.carried[direction] += end - *known;
                *known = end;
                is_new = true;
            }
        }
        let content = if has_content && !is_new { Content::Repeated } else { Content::New };
        match direction {
            0 => self.sequence.on_sent(event, content),
            _ => self.sequence.on_received(event, content),
        }
        if is_new {
            self.curves.content[direction].push((*time, reading.carried[direction] as f64));
            if let Some(before) = reading.progressed_at.filter(|before| time - before >= SHORTEST_STALL) {
                let ended_by = if direction == 0 { "new content sent" } else { "new content received" };
                let stall =
                    Stall { began_ms: before, lasted_ms: time - before, ended_by: ended_by.to_owned() };
                self.stalls.push(stall);
            }
            reading.progressed_at = Some(*time);
        }
    }

    fn on_metrics(&mut self, time: f64, data: &Value) {
        let value = |names: [&str; 2]| names.iter().find_map(|name| data.get(name)?.as_f64());
        let curves = &mut self.curves;
        let figures = [
            (&mut curves.window, value(["congestion_window", "cwnd"])),
            (&mut curves.in_flight, value(["bytes_in_flight", ""])),
            (&mut curves.threshold, value(["ssthresh", ""])),
            (&mut curves.rtt, value(["latest_rtt", ""])),
            (&mut curves.smoothed, value(["smoothed_rtt", ""])),
        ];
        for (curves, value) in figures {
            curves.extend(value.map(|value| (time, value)));
        }
    }

    fn on_state(&mut self, time: f64, data: &Value) {
        let state = text(data, "new").unwrap_or_default();
        let is_complete =
            ["handshake_complete", "handshake_completed", "connected"].contains(&state.as_str());
        if is_complete || (state == "handshake_confirmed" && self.handshake_ms.is_none()) {
            self.handshake_ms = Some(time);
        }
    }
}

/// A version of QUIC by its number: in words where it has a name. Source: RFC 9000 §15, RFC 9369 §3.1.
fn version(value: &Value) -> String {
    let told = in_words(value);
    match told.trim_start_matches("0x").trim_start_matches('0') {
        "1" => "1".to_owned(),
        "6b3343cf" | "1798521807" => "2".to_owned(),
        _ => told,
    }
}

fn address(data: &Value, now: &str, before: &str) -> Option<String> {
    let of = |end: &Value| {
        let ip = ["ip_v4", "ip_v6"].iter().find_map(|name| text(end, name))?;
        let port = ["port_v4", "port_v6"].iter().find_map(|name| number(end.get(name)?))?;
        Some(if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") })
    };
    let older = || {
        let (ip, port) = (text(data, &format!("{before}_ip"))?, data.get(format!("{before}_port"))?);
        Some(format!("{ip}:{}", in_words(port)))
    };
    data.get(now).and_then(of).or_else(older)
}

/// How a connection was closed, from the event or the frame.
fn ending(data: &Value) -> String {
    let by = text(data, "initiator").or_else(|| text(data, "owner"));
    let code = [
        "error_code",
        "application_code",
        "connection_code",
        "application_error",
        "connection_error",
        "error",
    ]
    .iter()
    .find_map(|name| data.get(name).filter(|code| !code.is_null()).map(in_words));
    let words = [
        by.map(|by| format!("{by} close")),
        code.map(|code| format!("code {code}")),
        text(data, "reason").filter(|reason| !reason.is_empty()).map(|reason| format!("\"{reason}\"")),
        text(data, "trigger").map(|trigger| format!("({trigger})")),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    if words.is_empty() { "closed".to_owned() } else { words.join(" ") }
}

fn in_words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
