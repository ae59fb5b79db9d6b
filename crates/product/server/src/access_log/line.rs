//! A line of the access log: the combined format, or JSON with the fields that the operator has chosen.
//!
//! What a client sent is escaped in both, byte by byte: everything but plain printable ASCII. So no request can write a line of its own,
//! end a text, or colour a terminal. CVE-2025-58189 and its kind.

use super::{Entry, Protocol};
use crate::date::http_date;
use std::io::Write as _;

/// Longer texts of a client's are cut, in bytes as sent.
pub(super) const MAX_TEXT: usize = 2_048;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// What a line looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The combined format of log tools, with the duration at its end.
    #[default]
    Combined,
    /// An object with these fields, in this order.
    Json(Vec<Field>),
}

/// A field of a JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// When the request was over: `2026-11-21T04:31:20Z`.
    Time,
    /// The client's address.
    Client,
    /// The method.
    Method,
    /// The host that was asked for.
    Host,
    /// The request target.
    Target,
    /// `HTTP/1.1`, `HTTP/2` or `HTTP/3`.
    Protocol,
    /// The status.
    Status,
    /// Bytes of content that were handed over.
    Bytes,
    /// Seconds from the head's arrival.
    Duration,
    /// The field `referer`.
    Referer,
    /// The field `user-agent`.
    UserAgent,
}

impl Field {
    /// All fields, with their names in the object, which are those in the configuration too.
    pub const NAMED: [(Field, &'static str); 11] = [
        (Field::Time, "time"),
        (Field::Client, "client"),
        (Field::Method, "method"),
        (Field::Host, "host"),
        (Field::Target, "target"),
        (Field::Protocol, "protocol"),
        (Field::Status, "status"),
        (Field::Bytes, "bytes"),
        (Field::Duration, "duration"),
        (Field::Referer, "referer"),
        (Field::UserAgent, "user_agent"),
    ];

    /// All fields.
    pub fn all() -> Vec<Field> {
        Field::NAMED.map(|(field, _)| field).to_vec()
    }

    fn name(self) -> &'static str {
        Field::NAMED.iter().find(|(field, _)| *field == self).map_or("", |(_, name)| name)
    }
}

/// A second as the formats write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timestamp {
    /// In seconds since 1970.
    pub(super) unix_s: u64,
    /// `21/Nov/2026:04:31:20 +0000`
    combined: [u8; 26],
    /// `2026-11-21T04:31:20Z`
    json: [u8; 20],
}

impl Timestamp {
    /// Cut out of the HTTP date of the same second, `Sat, 21 Nov 2026 04:31:20 GMT`.
    pub(super) fn of(unix_s: u64) -> Timestamp {
        const MONTHS: [&[u8]; 12] =
            [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
        let date = http_date(unix_s);
        let name = date.get(8..11).unwrap_or_default();
        let number = 1 + MONTHS.iter().position(|month| *month == name).unwrap_or(0);
        let month = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        let (mut combined, mut json) = (*b"01/Jan/1970:00:00:00 +0000", *b"1970-01-01T00:00:00Z");
        let copy = |to: Option<&mut [u8]>, from: Option<&[u8]>| {
            if let (Some(to), Some(from)) = (to, from) {
                to.copy_from_slice(from);
            }
        };
        for (to, from) in [(0..2, 5..7), (3..6, 8..11), (7..11, 12..16), (12..20, 17..25)] {
            copy(combined.get_mut(to), date.get(from));
        }
        for (to, from) in [(0..4, 12..16), (8..10, 5..7), (11..19, 17..25)] {
            copy(json.get_mut(to), date.get(from));
        }
        copy(json.get_mut(5..7), Some(&month));
        Timestamp { unix_s, combined, json }
    }
}

/// Adds the line of a request to `line`.
pub(super) fn write(line: &mut Vec<u8>, format: &Format, entry: &Entry<'_>, at: &Timestamp) {
    match format {
        Format::Combined => combined(line, entry, at),
        Format::Json(fields) => json(line, fields, entry, at),
    }
}

/// Adds a line that says how many are missing.
pub(super) fn write_lost(line: &mut Vec<u8>, format: &Format, lost: u64) {
    // Writing to a Vec cannot fail.
    let _ = match format {
        Format::Combined => {
            writeln!(line, "# {lost} lines lost: the log could not be written fast enough")
        }
        Format::Json(_) => writeln!(line, "{{\"lost_lines\":{lost}}}"),
    };
}

fn protocol(of: Protocol) -> &'static str {
    match of {
        Protocol::Http1 => "HTTP/1.1",
        Protocol::Http2 => "HTTP/2",
        Protocol::Http3 => "HTTP/3",
    }
}

fn combined(line: &mut Vec<u8>, entry: &Entry<'_>, at: &Timestamp) {
    // Writing to a Vec cannot fail.
    let _ = write!(line, "{} - - [", entry.peer.to_canonical());
    line.extend_from_slice(&at.combined);
    line.extend_from_slice(b"] \"");
    quote(line, entry.line.method);
    line.push(b' ');
    quote(line, entry.line.target);
    let _ = write!(line, " {}\" {} {} \"", protocol(entry.protocol), entry.status, entry.bytes);
    quote(line, entry.line.referer);
    line.extend_from_slice(b"\" \"");
    quote(line, entry.line.user_agent);
    line.extend_from_slice(b"\" ");
    seconds(line, entry);
    line.push(b'\n');
}

fn json(line: &mut Vec<u8>, fields: &[Field], entry: &Entry<'_>, at: &Timestamp) {
    line.push(b'{');
    for (place, field) in fields.iter().enumerate() {
        if place > 0 {
            line.push(b',');
        }
        // Writing to a Vec cannot fail.
        let _ = write!(line, "\"{}\":", field.name());
        match field {
            Field::Time => {
                line.push(b'"');
                line.extend_from_slice(&at.json);
                line.push(b'"');
            }
            Field::Client => _ = write!(line, "\"{}\"", entry.peer.to_canonical()),
            Field::Method => string(line, entry.line.method),
            Field::Host => string(line, entry.line.host),
            Field::Target => string(line, entry.line.target),
            Field::Protocol => _ = write!(line, "\"{}\"", protocol(entry.protocol)),
            Field::Status => _ = write!(line, "{}", entry.status),
            Field::Bytes => _ = write!(line, "{}", entry.bytes),
            Field::Duration => seconds(line, entry),
            Field::Referer => string(line, entry.line.referer),
            Field::UserAgent => string(line, entry.line.user_agent),
        }
    }
    line.extend_from_slice(b"}\n");
}

fn seconds(line: &mut Vec<u8>, entry: &Entry<'_>) {
    let micros = entry.duration.as_micros();
    let _ = write!(line, "{}.{:06}", micros / 1_000_000, micros % 1_000_000);
}

/// A client's text inside quotation marks, other bytes as `\xHH`; `-` for none.
fn quote(line: &mut Vec<u8>, text: Option<&[u8]>) {
    let text = text.filter(|text| !text.is_empty()).unwrap_or(b"-");
    escape(line, text, b"\\x");
}

/// A client's text as a string of JSON, other bytes as `\u00HH`; `null` for none. RFC 8259 §7.
fn string(line: &mut Vec<u8>, text: Option<&[u8]>) {
    let Some(text) = text else { return line.extend_from_slice(b"null") };
    line.push(b'"');
    escape(line, text, b"\\u00");
    line.push(b'"');
}

fn escape(line: &mut Vec<u8>, text: &[u8], prefix: &[u8]) {
    let digit = |nibble: u8| DIGITS[usize::from(nibble & 15)];
    for byte in text.iter().take(MAX_TEXT) {
        match byte {
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', *byte]),
            0x20..=0x7e => line.push(*byte),
            _ => {
                line.extend_from_slice(prefix);
                line.extend_from_slice(&[digit(byte >> 4), digit(*byte)]);
            }
        }
    }
    if text.len() > MAX_TEXT {
        line.extend_from_slice(b"...");
    }
}
