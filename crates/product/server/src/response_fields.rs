//! What the fields of a service's response say beside what the application says: the same over all versions of HTTP.

use crate::date::{Clock, DateText};
use base::time::Instant;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

/// Fields that concern one connection, and not the message. RFC 9110 §7.6.1, RFC 9113 §8.2.2, RFC 9114 §4.2.
const CONNECTION_FIELDS: [HeaderName; 5] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Whether a response has content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HasContent {
    Yes,
    No,
}

/// Removes what concerns a connection.
pub(crate) fn remove_connection_fields(fields: &mut HeaderMap) {
    for name in &CONNECTION_FIELDS {
        fields.remove(name);
    }
}

/// Completes the fields of the response with `status` to a request with `method`, whose content has `size` bytes if that is known.
pub(crate) fn complete(
    (method, status): (&Method, StatusCode),
    fields: &mut HeaderMap,
    size: Option<u64>,
) -> HasContent {
    let is_tunnel = *method == Method::CONNECT && status.is_success();
    if status == StatusCode::NO_CONTENT || is_tunnel {
        // RFC 9110 §8.6: neither has a content-length. §6.4.1: 204 has no content.
        fields.remove(header::CONTENT_LENGTH);
        return if is_tunnel { HasContent::Yes } else { HasContent::No };
    }
    if status == StatusCode::RESET_CONTENT {
        // RFC 9110 §15.3.6
        fields.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        return HasContent::No;
    }
    if status == StatusCode::NOT_MODIFIED {
        // RFC 9110 §6.4.1, §8.6: a content-length would be that of the content that was not sent. Only the application knows it.
        return HasContent::No;
    }
    let is_head = *method == Method::HEAD;
    // RFC 9110 §9.3.2: HEAD is answered with the fields of GET. A framework may have taken the content away, so 0 says nothing.
    if let Some(size) = size.filter(|size| !is_head || *size > 0) {
        // RFC 9110 §8.6
        fields.entry(header::CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(size));
    }
    if is_head { HasContent::No } else { HasContent::Yes }
}

/// The fields of a response without content that the server makes itself.
pub(crate) fn empty() -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    fields
}

/// The Date field of a thread's responses.
#[derive(Debug)]
pub(crate) struct DateField {
    clock: Clock,
    value: Option<(DateText, HeaderValue)>,
}

impl DateField {
    /// Asks `read` for seconds since 1970.
    pub(crate) fn new(read: fn() -> u64) -> DateField {
        DateField { clock: Clock::new(read), value: None }
    }

    /// Seconds since 1970.
    pub(crate) fn unix_s(&mut self, now: Instant) -> u64 {
        self.clock.advance(now);
        self.clock.unix_s()
    }

    /// The text that goes beside `fields`; `None` if the application has said it.
    pub(crate) fn beside(&mut self, fields: &HeaderMap, now: Instant) -> Option<DateText> {
        self.clock.advance(now);
        (!fields.contains_key(header::DATE)).then(|| *self.clock.text())
    }

    /// Adds it, unless the application has said it. RFC 9110 §6.6.1: an origin server with a clock sends Date.
    pub(crate) fn add(&mut self, fields: &mut HeaderMap, now: Instant) {
        self.clock.advance(now);
        let text = self.clock.text();
        if self.value.as_ref().is_none_or(|(known, _)| known != text) {
            self.value = HeaderValue::from_bytes(text).ok().map(|value| (*text, value));
        }
        if let Some((_, value)) = &self.value {
            // One look-up for both. The value is shared and not copied.
            fields.entry(header::DATE).or_insert_with(|| value.clone());
        }
    }
}
