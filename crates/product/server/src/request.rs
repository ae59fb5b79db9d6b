//! The head of a request, reduced to what the handler and the access log read.
//!
//! One text buffer and a table of spans into it, both reused from request to request: a head costs no allocation once
//! warm, and the three HTTP versions fill it through the same call, field by field. A field that occurs more than once
//! is joined with ", " (RFC 9110 §5.3): for lists that is what it means, and for single values it makes a text that
//! does not parse and is then ignored, which is what the RFC asks for too. Rejected: a map of all fields, since a peer
//! chooses its size and we read ten of them.

use crate::access_log::RequestLine;
use http3::Line;

/// Fields longer than this together (name + value + 32 each) are answered with 431.
pub const MAX_FIELDS_SIZE: usize = 64 * 1024;
/// More fields than this are answered with 431.
pub const MAX_FIELDS: usize = 256;

/// Longer content of a request is answered with 413, in bytes. It is received and thrown away.
pub const MAX_CONTENT: u64 = 64 << 20;

/// So many bytes of content that come after the answer are received and thrown away; then the client is asked to stop. Some
/// clients look for an answer only when they have sent all.
pub const MAX_DISCARDED: u64 = 256 << 20;

/// What the handler reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Name {
    /// `:method`
    Method,
    /// `:path`, the request target.
    Target,
    /// `:authority` or `host`
    Authority,
    /// `range`
    Range,
    /// `if-range`
    IfRange,
    /// `if-match`
    IfMatch,
    /// `if-none-match`
    IfNoneMatch,
    /// `if-modified-since`
    IfModifiedSince,
    /// `if-unmodified-since`
    IfUnmodifiedSince,
    /// `user-agent`
    UserAgent,
    /// `referer`
    Referer,
    /// `content-length`
    ContentLength,
    /// `accept`
    Accept,
    /// `accept-encoding`
    AcceptEncoding,
    /// `authorization`
    Authorization,
    /// `expect`
    Expect,
}

/// What the text of most heads fits into, in bytes.
const TEXT: usize = 256;

const NAMES: usize = Name::Expect as usize + 1;

impl Name {
    fn of(field: &[u8]) -> Option<Name> {
        Some(match field {
            b":method" => Name::Method,
            b":path" => Name::Target,
            b":authority" | b"host" => Name::Authority,
            b"range" => Name::Range,
            b"if-range" => Name::IfRange,
            b"if-match" => Name::IfMatch,
            b"if-none-match" => Name::IfNoneMatch,
            b"if-modified-since" => Name::IfModifiedSince,
            b"if-unmodified-since" => Name::IfUnmodifiedSince,
            b"user-agent" => Name::UserAgent,
            b"referer" => Name::Referer,
            b"content-length" => Name::ContentLength,
            b"accept" => Name::Accept,
            b"accept-encoding" => Name::AcceptEncoding,
            b"authorization" => Name::Authorization,
            b"expect" => Name::Expect,
            _ => return None,
        })
    }

    /// The same of a line of HTTP/3. A name of the static table is known by its index, without a look at its bytes.
    #[inline]
    fn of_line(line: &Line<'_>) -> Option<Name> {
        let Some(index) = line.static_name else { return Name::of(line.name) };
        Some(match index.as_usize() {
            0 => Name::Authority,
            1 => Name::Target,
            4 => Name::ContentLength,
            8 => Name::IfModifiedSince,
            9 => Name::IfNoneMatch,
            13 => Name::Referer,
            15..=21 => Name::Method,
            29 | 30 => Name::Accept,
            31 => Name::AcceptEncoding,
            55 => Name::Range,
            84 => Name::Authorization,
            89 => Name::IfRange,
            95 => Name::UserAgent,
            _ => return None,
        })
    }
}

/// Where a value lies in the text. Never beyond its end.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    end: u32,
    present: bool,
}

const NO_SPAN: Span = Span { start: 0, end: 0, present: false };

/// What a request asks to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET
    Get,
    /// HEAD
    Head,
    /// OPTIONS
    Options,
    /// POST: to generated bodies only.
    Post,
    /// Anything else, which the handler refuses with 405.
    Other,
}

impl Method {
    fn of(text: &[u8]) -> Method {
        match text {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"OPTIONS" => Method::Options,
            b"POST" => Method::Post,
            _ => Method::Other,
        }
    }
}

/// A request's head. Filled by [`on_field`](Head::on_field), reused after [`clear`](Head::clear).
#[derive(Debug)]
pub struct Head {
    method: Method,
    text: Vec<u8>,
    spans: [Span; NAMES],
    fields: usize,
    size: usize,
    refusal: Option<Refusal>,
}

impl Default for Head {
    fn default() -> Head {
        Head::new()
    }
}

/// A status and what is wrong, in words of ours.
pub type Refusal = (u16, &'static str);

impl Head {
    /// An empty head.
    pub const fn new() -> Head {
        Head {
            method: Method::Other,
            text: Vec::new(),
            spans: [NO_SPAN; NAMES],
            fields: 0,
            size: 0,
            refusal: None,
        }
    }

    /// A head with a method and a target, as HTTP/1.1 and tests have them.
    pub fn of(method: &str, target: &str) -> Head {
        let mut head = Head::new();
        head.on_field(b":method", method.as_bytes());
        head.on_field(b":path", target.as_bytes());
        head
    }

    /// Bytes that it holds.
    pub fn memory(&self) -> usize {
        size_of::<Head>() + self.text.capacity()
    }

    /// Forgets the request, keeps the memory unless it is much.
    pub(crate) fn recycle(&mut self) {
        const KEPT: usize = 2 * 1024;
        self.clear();
        self.text.shrink_to(KEPT);
    }

    /// Forgets the request, keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.method = Method::Other;
        self.spans = [NO_SPAN; NAMES];
        self.fields = 0;
        self.size = 0;
        self.refusal = None;
    }

    /// The request must be answered by `status`, whatever it asks for. The first refusal counts. `what` must come from us,
    /// not from the request.
    pub fn refuse(&mut self, status: u16, what: &'static str) {
        self.refusal.get_or_insert((status, what));
    }

    /// Why the request is refused, if it is.
    pub fn refusal(&self) -> Option<Refusal> {
        self.refusal
    }

    /// Takes in a field in order of arrival. `name` is in lower case, as HTTP/2 and HTTP/3 require. Fields without
    /// a reader are only counted, and nothing is kept of a head that is already too large.
    pub fn on_field(&mut self, name: &[u8], value: &[u8]) {
        self.take_field(name, value);
    }

    /// The same. Returns what it is read as.
    pub(crate) fn take_field(&mut self, name: &[u8], value: &[u8]) -> Option<Name> {
        let known = Name::of(name);
        self.take_value(known, name.len(), value);
        known
    }

    /// The same of a line of HTTP/3.
    #[inline]
    pub(crate) fn take_line(&mut self, line: &Line<'_>) {
        self.take_value(Name::of_line(line), line.name.len(), line.value);
    }

    #[inline]
    fn take_value(&mut self, known: Option<Name>, name_len: usize, value: &[u8]) {
        self.fields = self.fields.saturating_add(1);
        self.size = self.size.saturating_add(name_len).saturating_add(value.len()).saturating_add(32);
        if let Some(name) = known.filter(|_| !self.is_too_large()) {
            self.keep(name, value);
        }
    }

    /// Takes another target in place of the one that was sent.
    pub(crate) fn replace_target(&mut self, target: &[u8]) {
        let Some(span) = self.spans.get_mut(Name::Target as usize) else { return };
        if span.end as usize == self.text.len() {
            // The last of the text is not needed again.
            self.text.truncate(span.start as usize);
        }
        let start = self.text.len();
        self.text.extend_from_slice(target);
        *span = Span { start: start as u32, end: self.text.len() as u32, present: true };
    }

    #[inline]
    fn keep(&mut self, name: Name, value: &[u8]) {
        let start = self.text.len();
        let Some(span) = self.spans.get_mut(name as usize) else { return };
        if span.present {
            // HTTP/1.1 clients send Host beside an absolute target, HTTP/2 ones sometimes beside :authority.
            if name == Name::Authority {
                return;
            }
            self.text.extend_from_within(span.start as usize..span.end as usize);
            self.text.extend_from_slice(b", ");
        }
        if self.text.capacity() == 0 {
            // Room for most heads at once, where it would grow field by field.
            self.text.reserve(TEXT.max(value.len()));
        }
        self.text.extend_from_slice(value);
        // The text stays below MAX_FIELDS_SIZE times a small number, so 32 bits hold its length.
        *span = Span { start: start as u32, end: self.text.len() as u32, present: true };
        if name == Name::Method {
            self.method = Method::of(self.text.get(start..).unwrap_or_default());
        }
        if self.text.len() > 4 * MAX_FIELDS_SIZE {
            self.size = usize::MAX;
        }
    }

    /// Whether the fields passed a limit. RFC 6585 §5.
    pub fn is_too_large(&self) -> bool {
        self.size > MAX_FIELDS_SIZE || self.fields > MAX_FIELDS
    }

    /// The value of `name`, all of its occurrences joined; `None` when there was none.
    pub fn value(&self, name: Name) -> Option<&[u8]> {
        let span = self.spans.get(name as usize).filter(|span| span.present)?;
        self.text.get(span.start as usize..span.end as usize)
    }

    /// The method.
    #[inline]
    pub fn method(&self) -> Method {
        self.method
    }

    /// What the access log says of it.
    pub(crate) fn line(&self) -> RequestLine<'_> {
        RequestLine {
            method: self.value(Name::Method),
            host: self.value(Name::Authority),
            target: self.value(Name::Target),
            referer: self.value(Name::Referer),
            user_agent: self.value(Name::UserAgent),
        }
    }

    /// Whether more content is announced than is taken.
    pub fn announces_too_much(&self) -> bool {
        let text = self.value(Name::ContentLength).and_then(|text| std::str::from_utf8(text).ok());
        text.and_then(|text| text.parse::<u64>().ok()).is_some_and(|bytes| bytes > MAX_CONTENT)
    }

    /// Whether the client waits for 100 (Continue) before it sends content. RFC 9110 §10.1.1.
    pub fn expects_continue(&self) -> bool {
        self.value(Name::Expect).is_some_and(|text| text.eq_ignore_ascii_case(b"100-continue"))
    }

    /// The request target, empty when there was none.
    pub fn target(&self) -> &[u8] {
        self.value(Name::Target).unwrap_or(b"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_sent_in_two_lines_is_one_list() {
        let mut head = Head::of("GET", "/");
        head.on_field(b"if-none-match", b"\"a\"");
        head.on_field(b"user-agent", b"test");
        head.on_field(b"if-none-match", b"\"b\"");
        assert_eq!(head.value(Name::IfNoneMatch), Some(&b"\"a\", \"b\""[..]));
        assert_eq!(head.value(Name::UserAgent), Some(&b"test"[..]));
        head.clear();
        assert_eq!(head.value(Name::IfNoneMatch), None);
        assert_eq!(head.method(), Method::Other);
    }

    /// The shortcut by index must not read a name otherwise than its bytes say.
    #[test]
    fn names_by_index_are_names_by_bytes() {
        let mut decoded = qpack::FieldSection::new();
        let limits = qpack::Limits { max_field_section_size: 1 << 20, max_lines: 200 };
        for index in 0..99_u8 {
            // RFC 9204 §4.5.2: an indexed field line of the static table.
            let line: &[u8] = if index < 63 { &[0xc0 | index] } else { &[0xff, index - 63] };
            decoded.decode(&[&[0, 0], line].concat(), &limits).unwrap();
            let line = decoded.line_at(0).unwrap();
            assert!(line.static_name.is_some());
            assert_eq!(Name::of_line(&line), Name::of(line.name), "{index}");
        }
    }

    /// A peer that repeats one field must not make us copy it quadratically.
    #[test]
    fn repeated_fields_are_bounded() {
        let mut head = Head::of("GET", "/");
        for _ in 0..10_000 {
            head.on_field(b"range", &[b'x'; 1_000]);
        }
        assert!(head.is_too_large());
        assert!(head.text.capacity() < 16 * MAX_FIELDS_SIZE, "{}", head.text.capacity());
        let mut head = Head::of("GET", "/");
        for _ in 0..MAX_FIELDS {
            head.on_field(b"x", b"");
        }
        assert!(head.is_too_large());
    }
}
