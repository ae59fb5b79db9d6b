//! Heads of HTTP/1.1 and 2 in the shape of HTTP/3's, for what reads heads of every version.

use super::head::{Judgement, RequestHead, Trailers};
use super::target::{ExtendedConnect, Malformed};
use super::validate;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request};
use qpack::FieldSection;
use std::collections::HashSet;

/// Fields that HTTP/3 has not. RFC 9114 §4.2. The authority has a line of its own.
const LEFT_OUT: [HeaderName; 6] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::HOST,
];

/// Memory for one head.
#[derive(Debug, Default)]
pub struct HeadBuffer {
    section: FieldSection,
    /// Of a head that is kept.
    judgement: Option<Judgement>,
}

impl HeadBuffer {
    /// The head of `request`, copied as HTTP/3 would have brought it: RFC 9114 §4.3.1. A request without a scheme came over TLS.
    ///
    /// # Errors
    /// It breaks a rule of heads; says which.
    pub fn request<B>(&mut self, request: &Request<B>) -> Result<RequestHead<'_>, Malformed> {
        self.fill(request, None)
    }

    /// The same of an extended CONNECT for `protocol`. RFC 8441 §4.
    ///
    /// # Errors
    /// As [`HeadBuffer::request`].
    pub fn extended_connect<B>(
        &mut self,
        request: &Request<B>,
        protocol: &[u8],
    ) -> Result<RequestHead<'_>, Malformed> {
        self.fill(request, Some(protocol))
    }

    fn fill<B>(
        &mut self,
        request: &Request<B>,
        protocol: Option<&[u8]>,
    ) -> Result<RequestHead<'_>, Malformed> {
        self.clear();
        let (section, uri, fields) = (&mut self.section, request.uri(), request.headers());
        section.push(b":method", request.method().as_str().as_bytes());
        if let Some(protocol) = protocol {
            section.push(b":protocol", protocol);
        }
        if request.method() != Method::CONNECT || protocol.is_some() {
            section.push(b":scheme", uri.scheme_str().unwrap_or("https").as_bytes());
            let path = uri.path_and_query().map_or("/", |path| path.as_str());
            section.push(b":path", path.as_bytes());
        }
        // RFC 9112 §3.2.2: the target counts, instead of the host field.
        let authority = uri.authority().map(|authority| authority.as_str().as_bytes());
        let host = fields.get(header::HOST).map(header::HeaderValue::as_bytes);
        if let Some(authority) = authority.or(host) {
            section.push(b":authority", authority);
        }
        push(section, fields);
        let judgement = validate::request(section, 0..section.len(), ExtendedConnect::Announced)?;
        Ok(RequestHead { section, judgement })
    }

    /// Keeps a copy of `head`, in memory that is used again.
    pub fn keep(&mut self, head: &RequestHead<'_>) {
        self.section.copy(head.section);
        self.judgement = Some(head.judgement);
    }

    /// The head that was kept last; `None` if none was.
    pub fn kept(&self) -> Option<RequestHead<'_>> {
        self.judgement.map(|judgement| RequestHead { section: &self.section, judgement })
    }

    /// Forgets the head, and keeps the memory unless it is much.
    pub fn clear(&mut self) {
        self.section.clear();
        self.judgement = None;
    }

    /// Bytes that it holds.
    pub fn memory(&self) -> usize {
        self.section.memory()
    }

    /// Trailer fields.
    ///
    /// # Errors
    /// They break a rule of fields; says which.
    pub fn trailers(&mut self, fields: &HeaderMap) -> Result<Trailers<'_>, Malformed> {
        self.clear();
        push(&mut self.section, fields);
        let section = &self.section;
        validate::trailers(section, 0..section.len())?;
        Ok(Trailers { section })
    }
}

fn push(section: &mut FieldSection, fields: &HeaderMap) {
    let nominated = nominated(fields);
    for (name, value) in fields {
        if !is_left_out(name, value, &nominated) {
            section.push(name.as_str().as_bytes(), value.as_bytes());
        }
    }
}

/// Whether a line is none of HTTP/3's. `nominated`: as [`nominated`] says.
pub(super) fn is_left_out(name: &HeaderName, value: &HeaderValue, nominated: &HashSet<HeaderName>) -> bool {
    LEFT_OUT.contains(name)
        || *name == header::TE && value.as_bytes() != b"trailers"
        || !nominated.is_empty() && nominated.contains(name)
}

/// The fields that concern the connection alone, by a value of the field connection. RFC 9110 §7.6.1. Content has its length whatever a
/// client says of that. A set, because a client may name as many as a head has room for, and each as often.
pub(super) fn nominated(fields: &HeaderMap) -> HashSet<HeaderName> {
    let values = fields.get_all(header::CONNECTION).iter().map(HeaderValue::as_bytes);
    let options = values.flat_map(|value| value.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    let named = options.filter(|option| !is_about_the_connection(option));
    named
        .filter_map(|option| HeaderName::from_bytes(option).ok())
        .filter(|name| *name != header::CONTENT_LENGTH && fields.contains_key(name))
        .collect()
}

/// What nearly every field connection says. It names no field that is not left out anyway.
fn is_about_the_connection(option: &[u8]) -> bool {
    [&b"keep-alive"[..], b"close", b"upgrade"].iter().any(|known| option.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a handler could read another request over HTTP/1.1 or 2 than over HTTP/3.
    #[test]
    fn a_head_of_another_version_reads_as_one_of_http3() {
        let mut buffer = HeadBuffer::default();
        let request = Request::get("/a?b").header("host", "h:1").header("connection", "close");
        let request = request.header("connection", "x-hop, Content-Length").header("x-hop", "1");
        let request =
            request.header("te", "gzip").header("x-mine", "1").header("x-mine", "2").body(()).unwrap();
        let head = buffer.request(&request).unwrap();
        assert_eq!((head.method(), head.scheme()), (&b"GET"[..], Some(&b"https"[..])));
        assert_eq!((head.authority(), head.path()), (Some(&b"h:1"[..]), Some(&b"/a?b"[..])));
        assert_eq!(
            head.fields().map(|line| (line.name, line.value)).collect::<Vec<_>>(),
            [(&b"x-mine"[..], &b"1"[..]), (b"x-mine", b"2")]
        );
        let many = format!("Close, {}x-last", "x-mine, x-none, ".repeat(2_000));
        let request = Request::get("/").header("host", "h").header("connection", many).header("x-mine", "1");
        let request = request.header("x-last", "1").header("x-kept", "1").body(()).unwrap();
        let head = buffer.request(&request).unwrap();
        assert_eq!(head.fields().map(|line| line.name).collect::<Vec<_>>(), [b"x-kept"]);
        let request = Request::options("https://h/*").header("content-length", "7").body(()).unwrap();
        assert_eq!(buffer.request(&request).unwrap().content_length(), Some(7));
        let mut kept = HeadBuffer::default();
        assert!(kept.kept().is_none());
        kept.keep(&buffer.request(&request).unwrap());
        let head = kept.kept().unwrap();
        assert_eq!((head.path(), head.authority()), (Some(&b"/*"[..]), Some(&b"h"[..])));
        assert!(head.field(b"content-length").is_some() && kept.memory() > 0);
        let connect = Request::connect("h:443").body(()).unwrap();
        let head = buffer.request(&connect).unwrap();
        assert_eq!((head.scheme(), head.path(), head.authority()), (None, None, Some(&b"h:443"[..])));
        let websocket = Request::connect("https://h/chat").body(()).unwrap();
        let head = buffer.extended_connect(&websocket, b"websocket").unwrap();
        assert_eq!((head.method(), head.protocol()), (&b"CONNECT"[..], Some(&b"websocket"[..])));
        assert_eq!((head.path(), head.authority()), (Some(&b"/chat"[..]), Some(&b"h"[..])));
        let head = head.as_get();
        assert_eq!((head.method(), head.protocol(), head.path()), (&b"GET"[..], None, Some(&b"/chat"[..])));
        assert_eq!(head.to_request().unwrap().uri(), "https://h/chat");
        let bad = Request::get("/").header("host", "h").header("content-length", "x").body(()).unwrap();
        assert!(buffer.request(&bad).is_err());
        let trailers = HeaderMap::from_iter([(HeaderName::from_static("x-sum"), 7.into())]);
        assert_eq!(buffer.trailers(&trailers).unwrap().fields().len(), 1);
    }
}
