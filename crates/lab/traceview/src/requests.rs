//! The requests of HTTP/3 on a connection: what was asked, what was answered, and how long it took.

use crate::records::number;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Requests that are told of a trace; more are counted.
const MOST: usize = 1_000;
/// Characters of a method or a path that are told.
const LONGEST: usize = 120;

/// A request and its response, as far as the trace has them. Times are in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Request {
    /// Its stream.
    pub stream: u64,
    /// Its method.
    pub method: String,
    /// Its path, or the authority of CONNECT.
    pub path: String,
    /// The status of the final response.
    pub status: Option<u16>,
    /// When its head was sent, or read on a server.
    pub began_ms: f64,
    /// From then to the last bytes of the response that were received, or sent on a server.
    pub duration_ms: Option<f64>,
}

/// The requests of a trace, by their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    told: Vec<Request>,
    by_stream: BTreeMap<u64, usize>,
    /// All of them.
    pub(crate) count: u64,
}

impl Requests {
    /// A frame of HTTP/3 was written or read. Heads of other drafts look the same.
    pub(crate) fn on_frame(&mut self, time: f64, data: &Value) {
        let frame = data.get("frame").unwrap_or(&Value::Null);
        let Some(stream) = data.get("stream_id").and_then(number) else { return };
        let Some(fields) = frame.get("headers").and_then(Value::as_array) else { return };
        let field = |name: &str| {
            let found = fields.iter().find(|field| field.get("name").and_then(Value::as_str) == Some(name));
            found.and_then(|field| field.get("value")).and_then(Value::as_str)
        };
        if let Some(method) = field(":method") {
            self.count += 1;
            if self.told.len() < MOST {
                let path = field(":path").or_else(|| field(":authority")).unwrap_or_default();
                self.by_stream.insert(stream, self.told.len());
                let (method, path) = (shown(method), shown(path));
                self.told.push(Request { stream, method, path, began_ms: time, ..Request::default() });
            }
        } else if let Some(status) = field(":status").and_then(|status| status.parse::<u16>().ok())
            && let Some(request) = self.of(stream)
        {
            // Interim responses come before the one that counts.
            request.status = Some(status);
        }
    }

    /// Bytes of a response were sent, or received: its last so far.
    pub(crate) fn on_response_bytes(&mut self, time: f64, stream: u64) {
        if let Some(request) = self.of(stream) {
            request.duration_ms = Some(time - request.began_ms);
        }
    }

    fn of(&mut self, stream: u64) -> Option<&mut Request> {
        self.by_stream.get(&stream).and_then(|index| self.told.get_mut(*index))
    }

    /// Those that are told.
    pub(crate) fn into_told(self) -> Vec<Request> {
        self.told
    }
}

/// Text of a peer, fit for a terminal and a table.
fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(LONGEST)
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}
