//! A response: a status, a short list of fields, and a body to be pulled.
//!
//! The list is ours because what fills it is ours: names are static and in lower case, most values are static or short
//! enough to lie in the entry itself, so that a response costs one small allocation, and none where the list is that of a response
//! before. All three HTTP versions read it as pairs of byte strings.

use crate::body::Body;
use crate::low::{self, Measure};
use bytes::Bytes;
use std::sync::Arc;

/// The longest value that needs no memory of its own.
const INLINE: usize = 38;

/// A field's value.
#[derive(Clone, Debug)]
pub enum Value {
    /// Known when we were compiled.
    Static(&'static str),
    /// Short.
    Inline {
        /// How many of the bytes count.
        len: u8,
        /// The value, and zeros behind it.
        bytes: [u8; INLINE],
    },
    /// Anything else.
    Shared(Bytes),
}

impl Value {
    /// A copy of `bytes`.
    pub fn copied(bytes: &[u8]) -> Value {
        let mut inline = [0; INLINE];
        match inline.get_mut(..bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                Value::Inline { len: bytes.len() as u8, bytes: inline }
            }
            None => Value::Shared(Bytes::copy_from_slice(bytes)),
        }
    }

    /// `number` in decimal.
    pub fn decimal(mut number: u64) -> Value {
        let mut bytes = [0; INLINE];
        let mut digits = [0_u8; 20];
        let mut len = 0_usize;
        for digit in &mut digits {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
            len += 1;
            if number == 0 {
                break;
            }
        }
        for (place, digit) in bytes.iter_mut().zip(digits.iter().take(len).rev()) {
            *place = *digit;
        }
        Value::Inline { len: len as u8, bytes }
    }

    /// The entity tag of `name`, which is short, and `number` in hexadecimal, with its quotes.
    pub(crate) fn tag(name: &'static str, number: u64) -> Value {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        debug_assert!(name.len() + 18 <= INLINE);
        let digits = number.max(1).ilog2() / 4 + 1;
        let len = name.len() + digits as usize + 2;
        let mut bytes = [0; INLINE];
        if let Some([first, middle @ .., last]) = bytes.get_mut(..len) {
            let (text, number_text) = middle.split_at_mut(name.len());
            text.copy_from_slice(name.as_bytes());
            let mut rest = number;
            for digit in number_text.iter_mut().rev() {
                *digit = DIGITS[(rest & 15) as usize];
                rest >>= 4;
            }
            (*first, *last) = (b'"', b'"');
        }
        Value::Inline { len: len.min(INLINE) as u8, bytes }
    }

    /// The value as it is sent.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Value::Static(text) => text.as_bytes(),
            Value::Inline { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or(bytes),
            Value::Shared(bytes) => bytes,
        }
    }
}

impl PartialEq for Value {
    #[inline]
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            // Of one known length, which costs no call. What lies behind the values is zero.
            (Value::Inline { len, bytes }, Value::Inline { len: other_len, bytes: other_bytes }) => {
                len == other_len && bytes == other_bytes
            }
            _ => self.as_bytes() == other.as_bytes(),
        }
    }
}

impl Eq for Value {}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::copied(text.as_bytes())
    }
}

/// A name in lower case and its value.
type Line = (&'static str, Value);

/// A response's fields in the order in which they are sent.
#[derive(Clone, Debug)]
pub struct Fields(Lines);

#[derive(Clone, Debug)]
enum Lines {
    Own(Vec<Line>),
    /// Made once for many responses.
    Shared(Arc<SharedLines>),
}

#[derive(Debug)]
struct SharedLines {
    lines: Vec<Line>,
    measure: Measure,
}

impl Default for Fields {
    fn default() -> Fields {
        Fields(Lines::Own(Vec::new()))
    }
}

impl PartialEq for Fields {
    /// Each request asks this of a response that was sent before (heads.rs), so lines, and then names, are looked into only where they
    /// are not the same memory.
    fn eq(&self, other: &Fields) -> bool {
        if let (Lines::Shared(ours), Lines::Shared(theirs)) = (&self.0, &other.0)
            && Arc::ptr_eq(ours, theirs)
        {
            return true;
        }
        let same = |(ours, theirs): (&Line, &Line)| {
            (core::ptr::eq(ours.0, theirs.0) || ours.0 == theirs.0) && ours.1 == theirs.1
        };
        let (ours, theirs) = (self.as_lines(), other.as_lines());
        ours.len() == theirs.len() && ours.iter().zip(theirs).all(same)
    }
}

impl Eq for Fields {}

impl Fields {
    /// Adds a field. `name` must be in lower case.
    pub fn push(&mut self, name: &'static str, value: Value) {
        debug_assert!(!name.bytes().any(|byte| byte.is_ascii_uppercase()));
        self.change(|lines| {
            if lines.capacity() == 0 {
                // Enough for a file's response, so that the list grows once.
                lines.reserve_exact(8);
            }
            lines.push((name, value));
        });
    }

    /// Gives the first field `name` another value, if there is one.
    pub(crate) fn replace(&mut self, name: &str, value: Value) {
        self.change(|lines| {
            if let Some((_, known)) = lines.iter_mut().find(|(known, _)| *known == name) {
                *known = value;
            }
        });
    }

    /// The same fields, of which a clone is no copy until it is changed.
    #[must_use]
    pub(crate) fn shared(self) -> Fields {
        let measure = low::FieldLines::measure(&self);
        match self.0 {
            Lines::Own(lines) => Fields(Lines::Shared(Arc::new(SharedLines { lines, measure }))),
            Lines::Shared(_) => self,
        }
    }

    /// The fields as names and values, without pseudo-header fields.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static [u8], &[u8])> {
        self.as_lines().iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()))
    }

    /// The fields as they were pushed.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&'static str, &Value)> {
        self.as_lines().iter().map(|(name, value)| (*name, value))
    }

    /// The first value of `name`.
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        self.as_lines().iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_bytes())
    }

    #[inline]
    fn as_lines(&self) -> &[Line] {
        match &self.0 {
            Lines::Own(lines) => lines,
            Lines::Shared(shared) => &shared.lines,
        }
    }

    /// Lets `change` have the lines, which are this list's own afterwards.
    #[inline]
    fn change(&mut self, change: impl FnOnce(&mut Vec<Line>)) {
        let mut lines = match core::mem::replace(&mut self.0, Lines::Own(Vec::new())) {
            Lines::Own(lines) => lines,
            Lines::Shared(shared) => shared.lines.clone(),
        };
        change(&mut lines);
        self.0 = Lines::Own(lines);
    }
}

impl low::FieldLines for Fields {
    type Kept = Fields;

    const REPEATS: bool = true;

    #[inline]
    fn is(&self, kept: &Fields) -> bool {
        self == kept
    }

    #[inline]
    fn keep(self, kept: &mut Fields) {
        *kept = self;
    }

    #[inline]
    fn lines(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.iter().map(|(name, value)| -> (&[u8], &[u8]) { (name, value) })
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.value("etag").unwrap_or_default()
    }

    #[inline]
    fn measure(&self) -> Measure {
        match &self.0 {
            Lines::Own(_) => Measure::of(self),
            Lines::Shared(shared) => shared.measure,
        }
    }
}

/// What the handler of files answers.
pub type Response = low::Response<Fields, Body>;

/// The reason phrase, for HTTP/1.1 and for the text of error bodies. RFC 9110 §15.
pub fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        410 => "Gone",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        416 => "Range Not Satisfiable",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::low::FieldLines as _;

    #[test]
    fn values_say_what_they_were_given() {
        for number in [0, 7, 10, 1_234_567_890, u64::MAX] {
            assert_eq!(Value::decimal(number).as_bytes(), number.to_string().as_bytes());
        }
        for number in [0, 9, 10, 15, 16, 0x2bcd, u64::MAX] {
            assert_eq!(Value::tag("a-1-", number).as_bytes(), format!("\"a-1-{number:x}\"").as_bytes());
        }
        for len in [0, 1, INLINE, INLINE + 1, 1_000] {
            assert_eq!(Value::copied(&vec![b'x'; len]).as_bytes(), &vec![b'x'; len][..]);
        }
        assert!(size_of::<Value>() <= 40, "{}", size_of::<Value>());
    }

    /// Deleted, a head that was encoded for other fields could be sent (heads.rs), or none be found again.
    #[test]
    fn fields_are_the_same_by_what_they_say() {
        let long = "x".repeat(INLINE + 1);
        let of = |name: &str, value: Value| {
            let mut fields = Fields::default();
            // Names of other memory than the program's own.
            fields.push(String::from(name).leak(), value);
            fields
        };
        let texts = ["", "1", "10", "text/plain", &long];
        for (place, text) in texts.into_iter().enumerate() {
            let fields = of("etag", Value::copied(text.as_bytes()));
            assert_eq!(fields, of("etag", Value::Static(String::from(text).leak())), "{text}");
            assert_eq!(fields, of("etag", Value::Shared(Bytes::copy_from_slice(text.as_bytes()))), "{text}");
            assert_ne!(fields, of("date", Value::copied(text.as_bytes())), "{text}");
            for (other, text) in texts.into_iter().enumerate() {
                let is_same = fields == of("etag", Value::copied(text.as_bytes()));
                assert_eq!(is_same, place == other, "{place} {other}");
            }
        }
        let mut more = of("etag", Value::Static("1"));
        more.push("date", Value::Static(""));
        assert_ne!(more, of("etag", Value::Static("1")));
        assert_eq!(of("age", Value::decimal(10)), of("age", Value::Static("10")));
    }

    /// Deleted, what one response adds could go out with another, or shared fields be remembered as others.
    #[test]
    fn shared_fields_stay_as_they_are() {
        let mut own = Fields::default();
        own.push("date", Value::Static("now"));
        own.push("etag", Value::copied(b"\"1\""));
        let shared = own.clone().shared();
        assert_eq!((&shared, shared.measure()), (&own, own.measure()));
        assert_eq!(shared.measure().bytes, 6);
        let mut added = shared.clone();
        assert_eq!(added, shared);
        added.push("age", Value::decimal(7));
        added.replace("date", Value::Static("then"));
        assert_eq!(shared, own);
        assert_eq!((added.value("date"), added.value("age")), (Some(&b"then"[..]), Some(&b"7"[..])));
        assert_ne!((&added, added.measure()), (&shared, shared.measure()));
        assert_eq!(added.measure(), added.clone().shared().measure());
        assert_ne!(own.clone().shared().measure().key, Fields::default().measure().key);
    }
}
