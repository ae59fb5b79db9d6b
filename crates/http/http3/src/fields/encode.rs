//! From the application's heads to encoded field sections, with their size as RFC 9114 §4.2.2 counts it.

use super::names::Name;
use http::{Method, Uri, header::HeaderMap, request};

/// Appends lines to an encoded field section and counts their size.
struct Sizer<'a> {
    out: &'a mut Vec<u8>,
    size: u64,
}

impl<'a> Sizer<'a> {
    fn begin(out: &'a mut Vec<u8>) -> Sizer<'a> {
        qpack::write_prefix(out);
        Sizer { out, size: 0 }
    }

    #[inline]
    fn line(&mut self, name: &[u8], value: &[u8]) {
        self.size += name.len() as u64 + value.len() as u64 + 32;
        qpack::write_line(name, value, self.out);
    }

    /// Fields of a header map, without those that do not exist in HTTP/3. RFC 9114 §4.2.
    fn fields(&mut self, headers: &HeaderMap, authority: Option<&str>) {
        for (name, value) in headers {
            let (name, value) = (name.as_str().as_bytes(), value.as_bytes());
            match Name::of_bytes(name) {
                Name::ConnectionSpecific => {}
                Name::Te if value != b"trailers" => {}
                // RFC 9114 §4.3.1: :authority instead of host.
                Name::Host if authority.is_some() => {}
                _ => self.line(name, value),
            }
        }
    }
}

/// The protocol of an extended CONNECT, in the extensions of its request, which has a scheme and a path then. It may be sent to servers that
/// announce it: [`crate::Settings::enable_connect_protocol`]. RFC 8441 §4, RFC 9220 §3. Outside semver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol(pub &'static str);

/// Appends the encoded header section of a request; returns its decoded size in bytes.
pub(crate) fn write_request(head: &request::Parts, out: &mut Vec<u8>) -> u64 {
    let mut sizer = Sizer::begin(out);
    // RFC 9114 §4.3.1: user information never goes on the wire.
    let authority = head.uri.authority().and_then(|authority| authority.as_str().rsplit('@').next());
    sizer.line(b":method", head.method.as_str().as_bytes());
    let is_connect = head.method == Method::CONNECT;
    let protocol = if is_connect { head.extensions.get::<Protocol>() } else { None };
    let has_target = !is_connect || protocol.is_some();
    if let Some(Protocol(protocol)) = protocol {
        sizer.line(b":protocol", protocol.as_bytes());
    }
    if has_target {
        sizer.line(b":scheme", head.uri.scheme_str().unwrap_or("https").as_bytes());
    }
    if let Some(authority) = authority {
        sizer.line(b":authority", authority.as_bytes());
    }
    if has_target {
        sizer.line(b":path", path(&head.uri, &head.method).as_bytes());
    }
    sizer.fields(&head.headers, authority);
    sizer.size
}

/// RFC 9114 §4.3.1: never empty; OPTIONS without a path asks about the server as a whole.
fn path<'a>(uri: &'a Uri, method: &Method) -> &'a str {
    match uri.path_and_query() {
        Some(path) if !path.as_str().is_empty() => path.as_str(),
        _ if method == Method::OPTIONS => "*",
        _ => "/",
    }
}

/// Appends the encoded header section of a response; returns its decoded size in bytes.
pub(crate) fn write_response<'a>(
    status: u16,
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    out: &mut Vec<u8>,
) -> u64 {
    let digit = |unit: u16| b'0' + (status / unit % 10) as u8;
    let mut sizer = Sizer::begin(out);
    sizer.line(b":status", &[digit(100), digit(10), digit(1)]);
    for (name, value) in fields {
        if Name::of_bytes(name) != Name::ConnectionSpecific {
            sizer.line(name, value);
        }
    }
    sizer.size
}

/// Appends an encoded section of these lines, whatever they are; returns its decoded size in bytes.
pub(crate) fn write_lines<'a>(
    lines: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    out: &mut Vec<u8>,
) -> u64 {
    let mut sizer = Sizer::begin(out);
    lines.into_iter().for_each(|(name, value)| sizer.line(name, value));
    sizer.size
}

/// Appends an encoded trailer section; returns its decoded size in bytes.
pub(crate) fn write_trailers(trailers: &HeaderMap, out: &mut Vec<u8>) -> u64 {
    let mut sizer = Sizer::begin(out);
    sizer.fields(trailers, None);
    sizer.size
}
