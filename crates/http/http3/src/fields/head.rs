//! What the application is lent of a message's head: views of a section that was found valid.
//!
//! A view costs nothing. To keep the head, convert it to `http` types (convert.rs) or copy it.

use qpack::{FieldSection, Line};
use transport::Priority;

/// The header section of a request, valid by RFC 9114 §4.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    pub(super) section: &'a FieldSection,
    pub(super) judgement: Judgement,
}

/// What a request's head is beside the text of its lines: a copy of the lines with it is the same head.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Judgement {
    /// How many lines at the front are pseudo-header fields.
    pub(super) pseudo_lines: usize,
    pub(super) method: LineNumber,
    pub(super) scheme: LineNumber,
    /// A pseudo-header field, or else the field host.
    pub(super) authority: LineNumber,
    pub(super) path: LineNumber,
    pub(super) protocol: LineNumber,
    pub(super) content_length: Option<u64>,
    pub(super) priority: Option<Priority>,
    /// Whether an extended CONNECT is shown as GET.
    pub(super) is_as_get: bool,
}

/// Which line of a section it is, if there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LineNumber(pub(super) Option<u32>);

impl LineNumber {
    /// The value of the line.
    #[inline]
    pub(super) fn value_in(self, section: &FieldSection) -> Option<&[u8]> {
        section.line_at(self.0? as usize).map(|line| line.value)
    }
}

impl<'a> RequestHead<'a> {
    /// The method: a token.
    pub fn method(&self) -> &'a [u8] {
        if self.judgement.is_as_get {
            return b"GET";
        }
        self.judgement.method.value_in(self.section).unwrap_or_default()
    }

    /// The scheme; `None` for CONNECT without a protocol.
    pub fn scheme(&self) -> Option<&'a [u8]> {
        self.judgement.scheme.value_in(self.section)
    }

    /// The authority, from `:authority` or else from `host`. Always there for http and https, and for CONNECT.
    pub fn authority(&self) -> Option<&'a [u8]> {
        self.judgement.authority.value_in(self.section)
    }

    /// Path and query, not empty; `None` for CONNECT without a protocol.
    pub fn path(&self) -> Option<&'a [u8]> {
        self.judgement.path.value_in(self.section)
    }

    /// The protocol that an extended CONNECT would speak on its stream, such as `websocket`: a token. Only servers that announce them
    /// get any: [`crate::Config::enable_connect_protocol`]. RFC 8441 §4, RFC 9220 §3. Outside semver.
    #[doc(hidden)]
    pub fn protocol(&self) -> Option<&'a [u8]> {
        if self.judgement.is_as_get {
            return None;
        }
        self.judgement.protocol.value_in(self.section)
    }

    /// The request without its protocol, and with GET in place of CONNECT: an extended CONNECT as HTTP/1.1 has it, by the field Upgrade.
    /// [`RequestHead::lines`] stay those that came. RFC 8441 §5. Outside semver.
    #[doc(hidden)]
    #[must_use]
    pub fn as_get(&self) -> RequestHead<'a> {
        let judgement = Judgement { is_as_get: true, ..self.judgement };
        RequestHead { judgement, ..*self }
    }

    /// The number of bytes that the content will have, when the request says so. It is held to it.
    pub fn content_length(&self) -> Option<u64> {
        self.judgement.content_length
    }

    /// What the `priority` field asks for. RFC 9218 §5.
    pub fn priority(&self) -> Option<Priority> {
        self.judgement.priority
    }

    /// Its size when decoded, in bytes: names, values, and 32 for each line. RFC 9114 §4.2.2.
    pub fn size(&self) -> u64 {
        self.section.size()
    }

    /// All lines in their order, pseudo-header fields first.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = Line<'a>> {
        self.section.lines()
    }

    /// The fields in their order, without pseudo-header fields.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = Line<'a>> + Clone {
        self.section.lines_from(self.judgement.pseudo_lines)
    }

    /// The first value of `name`.
    pub fn field(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.fields().find(|line| line.name == name).map(|line| line.value)
    }
}

/// The header section of a response, valid by RFC 9114 §4.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    pub(super) section: &'a FieldSection,
    pub(super) status: u16,
    pub(super) content_length: Option<u64>,
}

impl<'a> ResponseHead<'a> {
    /// The status code, 100 to 999. RFC 9110 §15: one above 599 means what a 5xx means.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Whether another head follows. RFC 9110 §15.2.
    pub fn is_interim(&self) -> bool {
        self.status < 200
    }

    /// The number of bytes that the content will have, or would have if there were any, when the response says so.
    pub fn content_length(&self) -> Option<u64> {
        self.content_length
    }

    /// The fields in their order, without `:status`.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = Line<'a>> + Clone {
        self.section.lines_from(1)
    }

    /// The first value of `name`.
    pub fn field(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.fields().find(|line| line.name == name).map(|line| line.value)
    }
}

/// A trailer section, valid by RFC 9114 §4.
#[derive(Clone, Copy, Debug)]
pub struct Trailers<'a> {
    pub(super) section: &'a FieldSection,
}

impl<'a> Trailers<'a> {
    /// The fields in their order.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = Line<'a>> + Clone {
        self.section.lines()
    }
}
