//! Redirects: whether a response sends the client elsewhere, and with which request. RFC 9110 §15.4.

use super::error::{Error, Kind};
use super::origin::Origin;
use ::body::Body;
use http::header::{self, HeaderMap, HeaderName};
use http::{Method, Request, Response, StatusCode, Uri, request};
use url::Url;

/// Fields about the content, which go with it.
const CONTENT_FIELDS: [HeaderName; 6] = [
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LOCATION,
    header::TRANSFER_ENCODING,
];
/// Fields that are for one origin alone.
const CREDENTIALS: [HeaderName; 4] =
    [header::AUTHORIZATION, header::COOKIE, header::PROXY_AUTHORIZATION, header::HOST];

/// Whether a response could be a redirect to follow.
pub(crate) fn may_lead_on(head: &Response<()>) -> bool {
    matches!(head.status().as_u16(), 301 | 302 | 303 | 307 | 308)
        && head.headers().contains_key(header::LOCATION)
}

/// The request that follows a response to `head`, if it is a redirect. `content` is that of the first request, if it can be sent
/// again: without it a redirect that keeps the method is not followed.
///
/// # Errors
/// The target is not valid, or would leave TLS.
pub(crate) fn next(
    head: &request::Parts,
    content: Option<Body>,
    (status, fields): (StatusCode, &HeaderMap),
) -> Result<Option<Request<Body>>, Error> {
    let Some(location) = fields.get(header::LOCATION) else { return Ok(None) };
    let drops_content = match status {
        StatusCode::SEE_OTHER => true,
        // RFC 9110 §15.4.2 and §15.4.3: for historical reasons.
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => head.method == Method::POST,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => false,
        _ => return Ok(None),
    };
    let mut next = head.clone();
    let content = if drops_content {
        if next.method != Method::HEAD {
            next.method = Method::GET;
        }
        CONTENT_FIELDS.iter().for_each(|name| drop(next.headers.remove(name)));
        Body::empty()
    } else {
        match content {
            Some(content) => content,
            None => return Ok(None),
        }
    };
    next.uri = resolve(&head.uri, location.as_bytes())?;
    let (from, to) = (Origin::of(&head.uri)?, Origin::of(&next.uri)?);
    if from.is_secure() && !to.is_secure() {
        let text = format!("the redirect to {} would leave TLS", next.uri);
        return Err(Error::new(Kind::Redirect, text));
    }
    if from != to {
        CREDENTIALS.iter().for_each(|name| drop(next.headers.remove(name)));
    }
    Ok(Some(Request::from_parts(next, content)))
}

/// RFC 9110 §10.2.2: a reference relative to the URI of the request. Fragments are not sent.
fn resolve(base: &Uri, location: &[u8]) -> Result<Uri, Error> {
    let shown = String::from_utf8_lossy(location);
    let wrong = |reason: String| {
        Error::new(Kind::Redirect, format!("the redirect to \"{shown}\" cannot be followed: {reason}"))
    };
    let base = Url::parse(&base.to_string()).map_err(|error| wrong(error.to_string()))?;
    let mut target = base.join(&shown).map_err(|error| wrong(error.to_string()))?;
    target.set_fragment(None);
    let uri: Uri =
        target.as_str().parse().map_err(|error: http::uri::InvalidUri| wrong(error.to_string()))?;
    match uri.scheme_str() {
        Some("https" | "http") => Ok(uri),
        _ => Err(wrong("it is neither http nor https".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Body as _;

    fn head(method: Method, uri: &str) -> request::Parts {
        let request = Request::builder().method(method).uri(uri);
        let request = request.header("authorization", "secret").header("content-type", "text/plain");
        request.body(()).unwrap().into_parts().0
    }

    fn follow(
        head: &request::Parts,
        content: Option<Body>,
        status: u16,
        location: &str,
    ) -> Result<Option<Request<Body>>, Error> {
        let fields = HeaderMap::from_iter([(header::LOCATION, location.parse().unwrap())]);
        next(head, content, (StatusCode::from_u16(status).unwrap(), &fields))
    }

    #[test]
    fn methods_and_content_are_kept_or_dropped_as_the_status_says() {
        let table = [
            (301, Method::POST, Method::GET, false),
            (302, Method::POST, Method::GET, false),
            (302, Method::PUT, Method::PUT, true),
            (303, Method::PUT, Method::GET, false),
            (303, Method::HEAD, Method::HEAD, false),
            (307, Method::POST, Method::POST, true),
            (308, Method::GET, Method::GET, true),
        ];
        for (status, before, after, keeps) in table {
            let head = head(before, "https://a.example/x/y?q");
            let next = follow(&head, Some("content".into()), status, "z#part").unwrap().unwrap();
            assert_eq!((next.method(), next.uri()), (&after, &Uri::from_static("https://a.example/x/z")));
            assert_eq!(!next.body().is_end_stream(), keeps, "{status}");
            assert_eq!(next.headers().contains_key("content-type"), keeps, "{status}");
            assert!(next.headers().contains_key("authorization"));
        }
        let post = head(Method::POST, "https://a.example/");
        assert!(follow(&post, None, 307, "/b").unwrap().is_none(), "content that cannot be sent again");
        assert!(follow(&post, None, 303, "/b").unwrap().is_some());
        for status in [200, 300, 304, 404] {
            assert!(follow(&post, Some(Body::empty()), status, "/b").unwrap().is_none());
        }
    }

    /// Deleted, a server could have a client send its credentials anywhere.
    #[test]
    fn credentials_stay_with_their_origin_and_tls_is_not_left() {
        let head = head(Method::GET, "https://a.example/");
        let to = |location: &str| follow(&head, Some(Body::empty()), 302, location);
        for (location, keeps) in [
            ("https://a.example:443/b", true),
            ("//a.example/b", true),
            ("https://a.example:8443/", false),
            ("https://b.example/", false),
        ] {
            let next = to(location).unwrap().unwrap();
            assert_eq!(next.headers().contains_key("authorization"), keeps, "{location}");
        }
        for location in ["http://a.example/", "file:///etc/passwd", "https://user:secret@a.example/"] {
            assert!(to(location).is_err(), "{location}");
        }
    }
}
