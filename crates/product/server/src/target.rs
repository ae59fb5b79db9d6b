//! One validation of requests for three versions of HTTP.
//!
//! The rules of targets are [`http3::Target`]'s. HTTP/3 applies them while it reads a head, and to HTTP/1.1 and 2 they are
//! applied here, to what hyper hands over. A request that breaks them is answered with 400 over HTTP/1.1 and 2; over HTTP/3
//! its stream is reset with H3_MESSAGE_ERROR, and h2 resets with PROTOCOL_ERROR what it finds itself (RFC 9113 §8.1.1, RFC
//! 9114 §4.1.2 and RFC 9112 §3.2 permit both).
//!
//! What hyper and its parsers do not show, and what follows:
//!
//! | evidence | over | what happens |
//! |---|---|---|
//! | a fragment in the path | HTTP/1.1, 2 | `http::Uri` cuts it off, so the request is served without it; HTTP/3 refuses |
//! | `:scheme` without `:authority` | HTTP/2 | h2 drops the scheme, so one that is not served is not noticed |
//! | blanks around values | HTTP/1.1 | they are not part of the value (RFC 9112 §5), so the request is served |
//! | more than one content-length, all alike | HTTP/1.1 | hyper takes them for one (RFC 9110 §8.6) |

use crate::request::{Head, Name};
use http::{Method, Request, Version};
use http3::Target;
use hyper::ext::Protocol;

/// RFC 9110 §7.4: a server refuses what it is not the origin of.
pub(crate) fn judge_scheme(scheme: Option<&[u8]>, head: &mut Head) {
    let is_served = |scheme: &[u8]| {
        scheme == b"https" || scheme.eq_ignore_ascii_case(b"https") || scheme.eq_ignore_ascii_case(b"http")
    };
    if !scheme.is_none_or(is_served) {
        head.refuse(421, "only http and https are served");
    }
}

/// Takes what we read of a request of HTTP/1.1 or 2 into `head`, and refuses what must be refused.
pub(crate) fn take<B>(request: &Request<B>, head: &mut Head) {
    let uri = request.uri();
    head.on_field(b":method", request.method().as_str().as_bytes());
    head.on_field(b":path", uri.path_and_query().map_or("", |target| target.as_str()).as_bytes());
    if let Some(authority) = uri.authority() {
        head.on_field(b":authority", authority.as_str().as_bytes());
    }
    let is_http2 = request.version() == Version::HTTP_2;
    let mut hosts = Hosts::default();
    let mut lengths = 0_u32;
    for (name, value) in request.headers() {
        let value = value.as_bytes();
        if is_http2 && !http3::is_trimmed(value) {
            head.refuse(400, "blanks around a field value");
        }
        match head.take_field(name.as_str().as_bytes(), value) {
            // No other field is read as one.
            Some(Name::Authority) => hosts.add(value),
            Some(Name::ContentLength) => lengths += 1,
            _ => {}
        }
    }
    if lengths > 1 {
        head.refuse(400, "more than one content-length");
    }
    if let Err(what) = judge(request, &hosts) {
        head.refuse(400, what);
    }
    judge_scheme(uri.scheme_str().map(str::as_bytes), head);
}

/// The protocol of an extended CONNECT over HTTP/2. RFC 8441 §4.
pub(crate) fn protocol<B>(request: &Request<B>) -> Option<&[u8]> {
    request.extensions().get::<Protocol>().map(AsRef::as_ref)
}

/// The host fields of a request.
#[derive(Default)]
struct Hosts<'a> {
    first: Option<&'a [u8]>,
    count: u32,
}

impl<'a> Hosts<'a> {
    fn add(&mut self, value: &'a [u8]) {
        self.first.get_or_insert(value);
        self.count += 1;
    }
}

/// Whether the target is valid. RFC 9112 §3.2, RFC 9113 §8.3.1.
fn judge<B>(request: &Request<B>, hosts: &Hosts<'_>) -> Result<(), &'static str> {
    let uri = request.uri();
    let mut host = hosts.first;
    if hosts.count > 1 {
        return Err("more than one host");
    }
    let authority = uri.authority().map(|authority| authority.as_str().as_bytes());
    match request.version() {
        Version::HTTP_11 if host.is_none() => return Err("HTTP/1.1 wants one host field"),
        // No name is needed where none was known yet.
        Version::HTTP_10 if host.is_none() && authority.is_none() => host = Some(b"unknown"),
        _ => {}
    }
    // RFC 9112 §3.2.2: an absolute target counts instead of the host field, which must be valid all the same.
    if request.version() != Version::HTTP_2
        && authority.is_some()
        && let Some(unused) = host.take()
        && !http3::is_authority(unused)
    {
        return Err("invalid host");
    }
    let is_connect = request.method() == Method::CONNECT;
    let protocol = if is_connect { protocol(request) } else { None };
    let target = Target {
        method: request.method().as_str().as_bytes(),
        scheme: uri.scheme_str().map(str::as_bytes).or((!is_connect).then_some(b"https")),
        authority,
        host,
        path: uri.path_and_query().map(|path| path.as_str().as_bytes()),
        protocol,
    };
    target.judge().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header;

    fn refusal(version: Version, target: &str, fields: &[(&str, &[u8])]) -> Option<u16> {
        let mut request = Request::get(target).version(version).body(()).unwrap();
        for (name, value) in fields {
            let name = header::HeaderName::from_bytes(name.as_bytes()).unwrap();
            request.headers_mut().append(name, header::HeaderValue::from_bytes(value).unwrap());
        }
        let mut head = Head::new();
        take(&request, &mut head);
        head.refusal().map(|(status, _)| status)
    }

    /// RFC 9112 §3.2: what is wrong with a host field, and what is not.
    #[test]
    fn host_fields() {
        let invalid: [&[u8]; 10] =
            [b"a b", b"a/b", b"a, b", b"u@h", b"h:abc", b"\xe9", b"", b"[::1", b"h:99999", b"h:1:2"];
        for value in invalid {
            let text = value.escape_ascii().to_string();
            assert_eq!(refusal(Version::HTTP_11, "/", &[("host", value)]), Some(400), "{text}");
            assert_eq!(refusal(Version::HTTP_2, "/", &[("host", value)]), Some(400), "{text}");
            let absolute = refusal(Version::HTTP_11, "https://a.example/", &[("host", value)]);
            assert_eq!(absolute, Some(400), "{text} beside an absolute target");
        }
        for value in [&b"h"[..], b"h:443", b"h:", b"[::1]", b"[::1]:443", b"192.0.2.1", b"a_b.example"] {
            assert_eq!(refusal(Version::HTTP_11, "/", &[("host", value)]), None);
        }
        assert_eq!(refusal(Version::HTTP_11, "/", &[]), Some(400));
        assert_eq!(refusal(Version::HTTP_10, "/", &[]), None);
        assert_eq!(refusal(Version::HTTP_11, "/", &[("host", b"a"), ("host", b"a")]), Some(400));
        // RFC 9112 §3.2.2 and RFC 9113 §8.3.1 differ here.
        assert_eq!(refusal(Version::HTTP_11, "https://a/", &[("host", b"b")]), None);
        assert_eq!(refusal(Version::HTTP_2, "https://a/", &[("host", b"b")]), Some(400));
        assert_eq!(refusal(Version::HTTP_2, "https://a/", &[("host", b"A")]), None);
    }

    /// RFC 8441 §4: deleted, a tunnel could be opened for what is no target of this server.
    #[test]
    fn targets_of_extended_connect() {
        let refusal = |target: &str, protocol: Option<&'static str>| {
            let mut request = Request::connect(target).version(Version::HTTP_2).body(()).unwrap();
            protocol.map(|protocol| request.extensions_mut().insert(Protocol::from_static(protocol)));
            let mut head = Head::new();
            take(&request, &mut head);
            head.refusal().map(|(status, _)| status)
        };
        assert_eq!(refusal("https://a/chat", Some("websocket")), None);
        assert_eq!(refusal("https://a/chat", Some("connect-udp")), None, "the handler says what it speaks");
        assert_eq!(refusal("https://a/chat", Some("web socket")), Some(400));
        assert_eq!(refusal("https://a/chat", None), Some(400));
        assert_eq!(refusal("a:443", Some("websocket")), Some(400));
        assert_eq!(refusal("/chat", Some("websocket")), Some(400));
        assert_eq!(refusal("ftp://a/chat", Some("websocket")), Some(421));
        assert_eq!(refusal("a:443", None), None, "as before");
    }

    #[test]
    fn schemes_and_lengths() {
        assert_eq!(refusal(Version::HTTP_2, "ftp://a/", &[]), Some(421));
        assert_eq!(refusal(Version::HTTP_2, "http://a/", &[]), None);
        assert_eq!(refusal(Version::HTTP_11, "ftp://a/", &[("host", b"a")]), Some(421));
        let host = ("host", &b"a"[..]);
        let twice = [host, ("content-length", b"5"), ("content-length", b"5")];
        assert_eq!(refusal(Version::HTTP_2, "/", &twice), Some(400));
        assert_eq!(refusal(Version::HTTP_2, "/", &[host, ("range", b"bytes=0-1 ")]), Some(400));
    }
}
