//! A writer of JSON text into a buffer of bytes.
//!
//! It writes what qlog needs and nothing else: members in the order of the calls, no white space, one line. Integers above 2^53 are
//! written as strings, as programs with floating-point numbers would round them (draft-ietf-quic-qlog-main-schema §11.2, RFC 7493
//! §2.2). Rejected: serde_json with a type per event, which would allocate for each of them.

use base::time::Duration;
use std::io::Write;

/// The largest integer that all readers of JSON take exactly. Source: RFC 7493 §2.2.
const MAX_EXACT: u64 = (1 << 53) - 1;

/// Begins a record of a sequence. Source: RFC 7464 §2.2.
pub(crate) const RECORD_SEPARATOR: u8 = 0x1e;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// The members of an object that is being written.
#[derive(Debug)]
pub struct Object<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

/// The elements of an array that is being written.
#[derive(Debug)]
pub struct Array<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

/// Writes an object.
pub(crate) fn object(out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
    out.push(b'{');
    fill(&mut Object { out: &mut *out, is_empty: true });
    out.push(b'}');
}

impl Object<'_> {
    fn member(&mut self, name: &'static str) -> &mut Vec<u8> {
        if !core::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// A text of any origin.
    pub fn text(&mut self, name: &'static str, value: &str) -> &mut Self {
        text(self.member(name), value);
        self
    }

    /// Bytes that should be UTF-8: what is not is replaced.
    pub fn lossy(&mut self, name: &'static str, value: &[u8]) -> &mut Self {
        self.text(name, &String::from_utf8_lossy(value))
    }

    /// An integer.
    pub fn number(&mut self, name: &'static str, value: u64) -> &mut Self {
        number(self.member(name), value);
        self
    }

    /// An integer, if there is one.
    pub fn number_if(&mut self, name: &'static str, value: Option<u64>) -> &mut Self {
        if let Some(value) = value {
            self.number(name, value);
        }
        self
    }

    /// A number with three decimal places.
    pub fn thousandths(&mut self, name: &'static str, value: u64) -> &mut Self {
        let out = self.member(name);
        let _ = write!(out, "{}.{:03}", value / 1_000, value % 1_000);
        self
    }

    /// A member that is `true`. One that is false is left out.
    pub fn yes(&mut self, name: &'static str) -> &mut Self {
        self.member(name).extend_from_slice(b"true");
        self
    }

    /// A span in milliseconds, as all times of qlog are.
    pub fn milliseconds(&mut self, name: &'static str, span: Duration) -> &mut Self {
        milliseconds(self.member(name), span);
        self
    }

    /// Bytes in hexadecimal.
    pub fn hex(&mut self, name: &'static str, bytes: &[u8]) -> &mut Self {
        hex(self.member(name), bytes);
        self
    }

    /// An object within.
    pub fn object(&mut self, name: &'static str, fill: impl FnOnce(&mut Object<'_>)) -> &mut Self {
        object(self.member(name), fill);
        self
    }

    /// A value that is JSON already.
    pub(crate) fn encoded(&mut self, name: &'static str, value: &[u8]) -> &mut Self {
        self.member(name).extend_from_slice(value);
        self
    }

    /// An array within.
    pub fn array(&mut self, name: &'static str, fill: impl FnOnce(&mut Array<'_>)) -> &mut Self {
        array(self.member(name), fill);
        self
    }

    /// `raw`: how long something was, in place of what it was.
    pub fn length(&mut self, bytes: usize) -> &mut Self {
        self.object("raw", |raw| {
            raw.number("length", bytes as u64);
        })
    }
}

impl Array<'_> {
    fn element(&mut self) -> &mut Vec<u8> {
        if !core::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
        self.out
    }

    /// An object.
    pub fn object(&mut self, fill: impl FnOnce(&mut Object<'_>)) {
        object(self.element(), fill);
    }

    /// An array.
    pub fn array(&mut self, fill: impl FnOnce(&mut Array<'_>)) {
        array(self.element(), fill);
    }

    /// An integer.
    pub fn number(&mut self, value: u64) {
        number(self.element(), value);
    }

    /// A text of any origin.
    pub fn text(&mut self, value: &str) {
        text(self.element(), value);
    }

    /// Bytes in hexadecimal.
    pub fn hex(&mut self, bytes: &[u8]) {
        hex(self.element(), bytes);
    }
}

fn array(out: &mut Vec<u8>, fill: impl FnOnce(&mut Array<'_>)) {
    out.push(b'[');
    fill(&mut Array { out: &mut *out, is_empty: true });
    out.push(b']');
}

fn number(out: &mut Vec<u8>, value: u64) {
    // Writing to a vector does not fail.
    let _ = if value > MAX_EXACT { write!(out, "\"{value}\"") } else { write!(out, "{value}") };
}

fn milliseconds(out: &mut Vec<u8>, span: Duration) {
    let nanos = span.as_nanos();
    let _ = write!(out, "{}.{:06}", nanos / 1_000_000, nanos % 1_000_000);
}

fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    for byte in bytes {
        for digit in [byte >> 4, byte & 0xf] {
            out.extend(HEX.get(usize::from(digit)));
        }
    }
    out.push(b'"');
}

/// Quotes and control characters are escaped, C1 controls and the two separators of lines that JavaScript knows among them: a peer's
/// text can neither end the record nor drive a terminal.
fn text(out: &mut Vec<u8>, value: &str) {
    out.push(b'"');
    for character in value.chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            // All of them are below U+FFFF.
            _ if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}') => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => {
                let mut bytes = [0; 4];
                out.extend_from_slice(character.encode_utf8(&mut bytes).as_bytes());
            }
        }
    }
    out.push(b'"');
}
