//! From lent heads to the types of the `http` crate.
//!
//! A head that is valid for HTTP/3 can still be one that these types refuse: their rules for URIs are not quite the same.
//! A header map has room for some 24,000 fields and panics beyond them; the number of lines is capped long before, and
//! only its fallible methods are used.

use super::head::{RequestHead, ResponseHead, Trailers};
use http::header::{COOKIE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use qpack::Line;

/// A head that the `http` crate cannot express; says which part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidHead(pub &'static str);

impl core::fmt::Display for InvalidHead {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(self.0)
    }
}

impl core::error::Error for InvalidHead {}

impl RequestHead<'_> {
    /// The request without its content.
    ///
    /// # Errors
    /// The `http` crate refuses a part, in practice the URI.
    pub fn to_request(&self) -> Result<Request<()>, InvalidHead> {
        let mut request = Request::new(());
        *request.version_mut() = Version::HTTP_3;
        *request.method_mut() = Method::from_bytes(self.method).map_err(|_| InvalidHead("method"))?;
        *request.uri_mut() = self.uri()?;
        fill(request.headers_mut(), self.fields())?;
        Ok(request)
    }

    fn uri(&self) -> Result<Uri, InvalidHead> {
        let mut uri = Uri::builder();
        if let Some(scheme) = self.scheme {
            uri = uri.scheme(scheme);
        }
        if let Some(authority) = self.authority {
            uri = uri.authority(authority);
        }
        if let Some(path) = self.path {
            uri = uri.path_and_query(path);
        }
        uri.build().map_err(|_| InvalidHead("URI"))
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
        fill(response.headers_mut(), self.fields())?;
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
        fill(&mut headers, self.fields())?;
        Ok(headers)
    }
}

fn fill<'a>(
    headers: &mut HeaderMap,
    fields: impl ExactSizeIterator<Item = Line<'a>>,
) -> Result<(), InvalidHead> {
    const TOO_MANY: InvalidHead = InvalidHead("too many fields");
    headers.try_reserve(fields.len()).map_err(|_| TOO_MANY)?;
    let mut cookies: Vec<u8> = Vec::new();
    for line in fields {
        if line.name == b"cookie" {
            // RFC 9114 §4.2.1: a cookie that was split for the compression is put together again.
            //= rfc9114/4.2.1#1
            if !cookies.is_empty() {
                cookies.extend_from_slice(b"; ");
            }
            cookies.extend_from_slice(line.value);
            continue;
        }
        let name = HeaderName::from_bytes(line.name).map_err(|_| InvalidHead("field name"))?;
        let mut value = HeaderValue::from_bytes(line.value).map_err(|_| InvalidHead("field value"))?;
        value.set_sensitive(line.never_indexed);
        headers.try_append(name, value).map_err(|_| TOO_MANY)?;
    }
    if !cookies.is_empty() {
        let value = HeaderValue::from_maybe_shared(bytes::Bytes::from(cookies));
        headers.try_append(COOKIE, value.map_err(|_| InvalidHead("cookie"))?).map_err(|_| TOO_MANY)?;
    }
    Ok(())
}
