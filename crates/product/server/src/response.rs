//! A response: a status, a short list of fields, and a body to be pulled.
//!
//! The list is ours because what fills it is ours: names are static and in lower case, most values are static or short
//! enough to lie in the entry itself, so that a response costs one small allocation. All three HTTP versions read it as
//! pairs of byte strings.

use crate::body::Body;
use crate::low;
use bytes::Bytes;

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

/// A response's fields in the order in which they are sent.
#[derive(Clone, Debug, Default)]
pub struct Fields(Vec<(&'static str, Value)>);

impl PartialEq for Fields {
    /// Each request asks this of a response that was sent before (heads.rs), so names are looked into only where they are not
    /// the same memory.
    fn eq(&self, other: &Fields) -> bool {
        let same = |(ours, theirs): (&(&str, Value), &(&str, Value))| {
            (core::ptr::eq(ours.0, theirs.0) || ours.0 == theirs.0) && ours.1 == theirs.1
        };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

impl Eq for Fields {}

impl Fields {
    /// Adds a field. `name` must be in lower case.
    pub fn push(&mut self, name: &'static str, value: Value) {
        debug_assert!(!name.bytes().any(|byte| byte.is_ascii_uppercase()));
        if self.0.capacity() == 0 {
            // Enough for a file's response, so that the list grows once.
            self.0.reserve_exact(8);
        }
        self.0.push((name, value));
    }

    /// Gives the first field `name` another value, if there is one.
    pub(crate) fn replace(&mut self, name: &str, value: Value) {
        if let Some((_, known)) = self.0.iter_mut().find(|(known, _)| *known == name) {
            *known = value;
        }
    }

    /// The fields as names and values, without pseudo-header fields.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static [u8], &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()))
    }

    /// The fields as they were pushed.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    /// The first value of `name`.
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_bytes())
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
        self.0.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()))
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.value("etag").unwrap_or_default()
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
}
