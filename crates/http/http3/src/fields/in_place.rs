//! Heads of HTTP/1.1 and 2 as requests of HTTP/3, in their own memory.
//!
//! A short cut: the same as [`HeadBuffer::request`](super::HeadBuffer::request) and
//! [`RequestHead::to_request`](super::RequestHead::to_request), which judge the head, without two copies of it. What they leave out is
//! left out here by the same functions, and a test holds both against each other.

use super::buffer::{is_left_out, nominated};
use super::convert::{COOKIE_SEPARATOR, INVALID_URI, InvalidHead};
use bytes::Bytes;
use http::header::{COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, TE};
use http::request::Parts;
use http::uri::{self, Authority, PathAndQuery, Scheme};
use http::{Extensions, Uri, Version};

/// Makes a head of HTTP/1.1 or 2, which was judged and found valid, one of HTTP/3: RFC 9114 §4.2, §4.3.1. A request without a scheme
/// came over TLS. Its extensions go. Not for CONNECT, which has no path.
///
/// # Errors
/// The `http` crate refuses a part.
pub fn convert_in_place(parts: &mut Parts) -> Result<(), InvalidHead> {
    let host = parts.headers.remove(HOST);
    strip(&mut parts.headers);
    join_cookies(&mut parts.headers);
    parts.version = Version::HTTP_3;
    parts.extensions = Extensions::new();
    let uri = &parts.uri;
    if uri.scheme().is_none() || uri.authority().is_none() || uri.path_and_query().is_none() {
        parts.uri = absolute(std::mem::take(&mut parts.uri), host)?;
    }
    Ok(())
}

/// Removes what concerns the connection.
fn strip(fields: &mut HeaderMap) {
    let nominated = nominated(fields);
    let left_out = |(name, value): &(&HeaderName, &HeaderValue)| is_left_out(name, value, &nominated);
    let names: Vec<HeaderName> = fields.iter().filter(left_out).map(|(name, _)| name.clone()).collect();
    for name in names {
        // Of this field alone some lines are left out, and others are not.
        let kept =
            fields.get_all(&name).iter().filter(|value| name == TE && !is_left_out(&name, value, &nominated));
        let kept: Vec<HeaderValue> = kept.cloned().collect();
        fields.remove(&name);
        kept.into_iter().for_each(|value| _ = fields.append(name.clone(), value));
    }
}

/// RFC 9113 §8.2.3: a cookie that was split for the compression is put together again.
fn join_cookies(fields: &mut HeaderMap) {
    let mut cookies = fields.get_all(COOKIE).iter();
    let Some(first) = cookies.next() else { return };
    if cookies.next().is_none() && !first.is_empty() {
        return;
    }
    let mut text = Vec::new();
    for cookie in fields.get_all(COOKIE) {
        if !text.is_empty() {
            text.extend_from_slice(COOKIE_SEPARATOR);
        }
        text.extend_from_slice(cookie.as_bytes());
    }
    fields.remove(COOKIE);
    // Made of values, it is one.
    let joined = HeaderValue::from_maybe_shared(Bytes::from(text)).ok().filter(|joined| !joined.is_empty());
    joined.into_iter().for_each(|joined| _ = fields.insert(COOKIE, joined));
}

/// RFC 9112 §3.2.2: the target counts, instead of the host field.
fn absolute(uri: Uri, host: Option<HeaderValue>) -> Result<Uri, InvalidHead> {
    let mut parts = uri.into_parts();
    parts.scheme.get_or_insert(Scheme::HTTPS);
    if let (None, Some(host)) = (&parts.authority, host) {
        parts.authority = Some(Authority::try_from(host.as_bytes()).map_err(|_| INVALID_URI)?);
    }
    parts.path_and_query.get_or_insert(PathAndQuery::from_static("/"));
    let parts: uri::Parts = parts;
    Uri::from_parts(parts).map_err(|_| INVALID_URI)
}

#[cfg(test)]
mod tests {
    use super::super::HeadBuffer;
    use super::*;
    use http::Request;

    /// Both ways, of a request that is valid.
    fn agree(request: Request<()>) {
        let text = format!("{request:?}");
        let mut buffer = HeadBuffer::default();
        let copied = buffer.request(&request).unwrap().to_request();
        let (mut parts, ()) = request.into_parts();
        let in_place = convert_in_place(&mut parts).map(|()| parts);
        match (copied, in_place) {
            (Ok(copied), Ok(in_place)) => {
                assert_eq!((copied.method(), copied.uri()), (&in_place.method, &in_place.uri), "{text}");
                assert_eq!(
                    (copied.version(), copied.headers()),
                    (in_place.version, &in_place.headers),
                    "{text}"
                );
                assert!(in_place.extensions.is_empty());
            }
            (Err(copied), Err(in_place)) => assert_eq!(copied, in_place, "{text}"),
            (copied, in_place) => panic!("{text}: {copied:?} {in_place:?}"),
        }
    }

    fn request(method: &str, target: &str, fields: &[(&str, &str)]) -> Request<()> {
        let request = Request::builder().method(method).uri(target);
        let request = fields.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.extension(7_u8).body(()).unwrap()
    }

    /// Deleted, a service could see another request over HTTP/1.1 and 2 than over HTTP/3.
    #[test]
    fn it_makes_what_the_copy_is() {
        let lists: &[&[(&str, &str)]] = &[
            &[],
            &[("accept", "*/*"), ("user-agent", "a b"), ("x-mine", "1"), ("x-mine", "2"), ("x-mine", "")],
            &[("cookie", "a=1")],
            &[("cookie", "a=1"), ("accept", "*/*"), ("cookie", ""), ("cookie", "b=2; c=3")],
            &[("cookie", "")],
            &[("cookie", ""), ("cookie", "")],
            &[("te", "trailers")],
            &[("te", "gzip")],
            &[("te", "trailers"), ("te", "gzip"), ("te", "trailers")],
            &[("connection", "close")],
            &[
                ("connection", "keep-alive, X-Hop"),
                ("x-hop", "1"),
                ("x-hop", "2"),
                ("keep-alive", "timeout=5"),
            ],
            &[("connection", "te"), ("te", "trailers")],
            &[("connection", "cookie, content-length, host"), ("cookie", "a"), ("content-length", "7")],
            &[("upgrade", "websocket"), ("connection", "upgrade"), ("proxy-connection", "close")],
            &[("transfer-encoding", "chunked"), ("content-type", "text/plain")],
            &[("x-obs", "\u{e9}\u{ff}"), ("x-tab", "a\tb")],
        ];
        for fields in lists {
            for method in ["GET", "POST", "OPTIONS", "PURGE"] {
                for target in [
                    "https://h:1/a?b",
                    "https://h",
                    "http://h:80/a",
                    "HTTPS://H/a//b?c?d",
                    "https://[::1]:8/",
                ] {
                    agree(request(method, target, fields));
                }
                for host in ["h", "h:1", "H.example.", "[::1]:443", "192.0.2.1"] {
                    let fields = [&[("host", host)], *fields].concat();
                    agree(request(method, "/a?b=%20", &fields));
                    agree(request(method, "https://other/a", &fields));
                    agree(request("OPTIONS", "*", &fields));
                }
            }
        }
    }
}
