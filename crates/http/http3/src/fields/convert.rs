//! From lent heads to the types of the `http` crate.
//!
//! A head that is valid for HTTP/3 can still be one that these types refuse: their rules for URIs are not quite the same.
//! A header map has room for some 24,000 fields and panics beyond them; the number of lines is capped long before, and
//! only its fallible methods are used.
//!
//! Values of fields share one piece of memory, [`HeadMemory`], which is used again for the next head once nothing of the last one
//! is kept. Rejected: memory for each value, which costs an allocation for each, and two where values are cloned.

use super::head::{RequestHead, ResponseHead, Trailers};
use bytes::{Bytes, BytesMut};
use http::header::{COOKIE, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Response, StatusCode, Uri, Version, uri};
use qpack::Line;
use qpack::static_table::{self, Index};
use std::sync::LazyLock;

/// A head that the `http` crate cannot express; says which part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidHead(pub &'static str);

impl core::fmt::Display for InvalidHead {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(self.0)
    }
}

impl core::error::Error for InvalidHead {}

/// Memory for the text of heads, used again from head to head.
#[derive(Debug, Default)]
pub struct HeadMemory {
    text: BytesMut,
    /// The authority of the last request: most requests of a connection have the same.
    authority: Option<Authority>,
    /// Bytes that the largest head took.
    size: usize,
}

impl HeadMemory {
    /// The smallest memory, in bytes, which most heads fit into.
    const LEAST: usize = 256;

    /// Bytes that are kept for the next head.
    pub fn bytes(&self) -> usize {
        self.size
    }

    /// Memory for one head of `size` bytes.
    fn new(size: u64) -> HeadMemory {
        let mut memory = HeadMemory::default();
        memory.reserve(size);
        memory
    }

    /// `size`: as RFC 9114 §4.2.2 counts it, which is more than the text.
    fn reserve(&mut self, size: u64) {
        let size = usize::try_from(size).unwrap_or(0).max(HeadMemory::LEAST);
        self.text.reserve(size);
        self.size = self.size.max(size);
    }

    fn authority(&mut self, text: &[u8]) -> Result<Authority, InvalidHead> {
        if let Some(known) = self.authority.as_ref().filter(|known| known.as_str().as_bytes() == text) {
            return Ok(known.clone());
        }
        let authority = Authority::try_from(text).map_err(|_| INVALID_URI)?;
        Ok(self.authority.insert(authority).clone())
    }
}

pub(super) const INVALID_URI: InvalidHead = InvalidHead("URI");

impl RequestHead<'_> {
    /// The request without its content.
    ///
    /// # Errors
    /// The `http` crate refuses a part, in practice the URI.
    pub fn to_request(&self) -> Result<Request<()>, InvalidHead> {
        let mut request = Request::new(());
        self.write_request(&mut request, &mut HeadMemory::default())?;
        Ok(request)
    }

    /// As [`RequestHead::to_request`], into a new `request` where that lies, with texts in `memory`.
    ///
    /// # Errors
    /// The same. The request is then to be thrown away.
    pub fn write_request(
        &self,
        request: &mut Request<()>,
        memory: &mut HeadMemory,
    ) -> Result<(), InvalidHead> {
        *request.version_mut() = Version::HTTP_3;
        *request.method_mut() = Method::from_bytes(self.method()).map_err(|_| InvalidHead("method"))?;
        memory.reserve(self.size());
        let path = fill(request.headers_mut(), self.fields(), self.path().unwrap_or_default(), memory)?;
        *request.uri_mut() = self.uri(path, memory)?;
        Ok(())
    }

    fn uri(&self, path: Bytes, memory: &mut HeadMemory) -> Result<Uri, InvalidHead> {
        let mut parts = uri::Parts::default();
        parts.scheme = match self.scheme() {
            None => None,
            Some(b"https") => Some(Scheme::HTTPS),
            Some(scheme) => Some(Scheme::try_from(scheme).map_err(|_| INVALID_URI)?),
        };
        parts.authority = self.authority().map(|authority| memory.authority(authority)).transpose()?;
        if self.path().is_some() {
            parts.path_and_query = Some(PathAndQuery::from_maybe_shared(path).map_err(|_| INVALID_URI)?);
        }
        Uri::from_parts(parts).map_err(|_| INVALID_URI)
    }
}

impl ResponseHead<'_> {
    /// The response without its content.
    ///
    /// # Errors
    /// The `http` crate refuses a part.
    pub fn to_response(&self) -> Result<Response<()>, InvalidHead> {
        let mut response = Response::new(());
        *response.version_mut() = Version::HTTP_3;
        *response.status_mut() = StatusCode::from_u16(self.status).map_err(|_| InvalidHead("status"))?;
        fill(response.headers_mut(), self.fields(), b"", &mut HeadMemory::new(self.section.size()))?;
        Ok(response)
    }
}

impl Trailers<'_> {
    /// The fields as a map.
    ///
    /// # Errors
    /// The `http` crate refuses a part.
    pub fn to_headers(&self) -> Result<HeaderMap, InvalidHead> {
        let mut headers = HeaderMap::new();
        fill(&mut headers, self.fields(), b"", &mut HeadMemory::new(self.section.size()))?;
        Ok(headers)
    }
}

/// Fills a map with fields. Their text, and that of `extra`, shares `memory`, which has room for it; returns the latter.
fn fill<'a>(
    headers: &mut HeaderMap,
    fields: impl ExactSizeIterator<Item = Line<'a>> + Clone,
    extra: &[u8],
    memory: &mut HeadMemory,
) -> Result<Bytes, InvalidHead> {
    const TOO_MANY: InvalidHead = InvalidHead("too many fields");
    headers.try_reserve(fields.len()).map_err(|_| TOO_MANY)?;
    let HeadMemory { text, .. } = memory;
    text.extend_from_slice(extra);
    let extra = text.split().freeze();
    let mut has_cookies = false;
    for line in fields.clone() {
        if line.name == b"cookie" {
            has_cookies = true;
            continue;
        }
        text.extend_from_slice(line.value);
        let value = HeaderValue::from_maybe_shared(text.split().freeze());
        let mut value = value.map_err(|_| InvalidHead("field value"))?;
        value.set_sensitive(line.never_indexed);
        headers.try_append(field_name(&line)?, value).map_err(|_| TOO_MANY)?;
    }
    // RFC 9114 §4.2.1: a cookie that was split for the compression is put together again.
    //= rfc9114/4.2.1#1
    if has_cookies {
        for line in fields.filter(|line| line.name == b"cookie") {
            if !text.is_empty() {
                text.extend_from_slice(COOKIE_SEPARATOR);
            }
            text.extend_from_slice(line.value);
        }
    }
    if !text.is_empty() {
        let value = HeaderValue::from_maybe_shared(text.split().freeze());
        headers.try_append(COOKIE, value.map_err(|_| InvalidHead("cookie"))?).map_err(|_| TOO_MANY)?;
    }
    Ok(extra)
}

/// Between the parts of a cookie.
pub(super) const COOKIE_SEPARATOR: &[u8] = b"; ";

/// The name of a line. One of the static table is not read again.
fn field_name(line: &Line<'_>) -> Result<HeaderName, InvalidHead> {
    static KNOWN: LazyLock<Vec<Option<HeaderName>>> = LazyLock::new(|| {
        let indices = (0..static_table::LEN).map(|number| Index::new(number as u64));
        indices.map(|index| HeaderName::from_bytes(index?.name()).ok()).collect()
    });
    let known = line.static_name.and_then(|index| KNOWN.get(index.as_usize()).cloned().flatten());
    match known {
        Some(name) => Ok(name),
        None => HeaderName::from_bytes(line.name).map_err(|_| InvalidHead("field name")),
    }
}
