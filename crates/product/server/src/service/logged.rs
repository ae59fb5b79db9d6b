//! What the access log says of a request, copied: the request itself belongs to the application.

use crate::access_log::RequestLine;
use http::Method;
use http3::RequestHead;
use std::ops::Range;

/// Text that is longer than this, in bytes, is not kept for the next request.
const KEPT: usize = 4_096;

/// A request's line and two of its fields, in memory that is reused.
#[derive(Debug, Default)]
pub(super) struct Logged {
    method: Method,
    text: Vec<u8>,
    host: Option<Range<usize>>,
    target: Option<Range<usize>>,
    referer: Option<Range<usize>>,
    user_agent: Option<Range<usize>>,
}

impl Logged {
    pub(super) fn method(&self) -> &Method {
        &self.method
    }

    /// Keeps a head, and says whether its client waits for 100 (Continue).
    pub(super) fn keep(&mut self, head: &RequestHead<'_>) -> bool {
        self.method = Method::from_bytes(head.method()).unwrap_or_default();
        self.host = head.authority().map(|host| self.push(host));
        self.target = head.path().map(|path| self.push(path));
        let mut expects_continue = None;
        for line in head.fields() {
            match line.name {
                // RFC 9110 §10.1.1
                b"expect" if expects_continue.is_none() => {
                    expects_continue = Some(line.value.eq_ignore_ascii_case(b"100-continue"));
                }
                b"referer" if self.referer.is_none() => self.referer = Some(self.push(line.value)),
                b"user-agent" if self.user_agent.is_none() => self.user_agent = Some(self.push(line.value)),
                _ => {}
            }
        }
        expects_continue.unwrap_or(false)
    }

    fn push(&mut self, text: &[u8]) -> Range<usize> {
        let from = self.text.len();
        self.text.extend_from_slice(text);
        from..self.text.len()
    }

    pub(super) fn clear(&mut self) {
        self.method = Method::default();
        self.text.clear();
        if self.text.capacity() > KEPT {
            self.text = Vec::new();
        }
        (self.host, self.target, self.referer, self.user_agent) = (None, None, None, None);
    }

    pub(super) fn line(&self) -> RequestLine<'_> {
        let part = |of: &Option<Range<usize>>| of.clone().and_then(|range| self.text.get(range));
        RequestLine {
            method: Some(self.method.as_str().as_bytes()),
            host: part(&self.host),
            target: part(&self.target),
            referer: part(&self.referer),
            user_agent: part(&self.user_agent),
        }
    }
}
