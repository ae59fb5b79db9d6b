//! A request's head, from what a download asks and what the user added.

use crate::error::GetError;
use crate::exchange::{Ask, Method};
use crate::target::Target;
use http::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue, IF_RANGE, RANGE, USER_AGENT};
use http::request::Parts;
use http::{Request, Uri};

/// What we call ourselves, unless the user says otherwise.
const AGENT: &str = concat!("tercel/", env!("CARGO_PKG_VERSION"));

/// Reads `--header` texts: `Name: value`; a name without a value takes the field away.
///
/// # Errors
/// The first text that is no field.
pub fn parse_headers(texts: &[String]) -> Result<HeaderMap, GetError> {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    for text in texts {
        let wrong = |what: &str| {
            GetError::Usage(format!("--header {text:?}: {what}; write it as in --header 'accept: text/html'"))
        };
        let (name, value) = text.split_once(':').ok_or_else(|| wrong("it has no colon"))?;
        let name = name.trim().parse::<HeaderName>().map_err(|_| wrong("this is no field name"))?;
        if [RANGE, IF_RANGE].contains(&name) {
            return Err(wrong("ranges are for --range"));
        }
        let value =
            HeaderValue::from_str(value.trim()).map_err(|_| wrong("the value has control characters"))?;
        if value.is_empty() {
            headers.remove(&name);
        } else if [USER_AGENT, ACCEPT].contains(&name) {
            headers.insert(name, value);
        } else {
            headers.append(name, value);
        }
    }
    Ok(headers)
}

/// The head of `ask` at `target`.
///
/// # Errors
/// The URL has a form that no request can carry.
pub fn head(target: &Target, ask: &Ask, headers: &HeaderMap) -> Result<Parts, GetError> {
    let uri = Uri::builder().scheme("https").authority(target.authority()).path_and_query(target.path());
    let uri = uri.build().map_err(|error| GetError::Url(target.to_string(), error.to_string()))?;
    let mut request = Request::new(());
    *request.uri_mut() = uri;
    *request.method_mut() = match ask.method {
        Method::Get => http::Method::GET,
        Method::Head => http::Method::HEAD,
    };
    request.headers_mut().clone_from(headers);
    let value = |text: &str| {
        HeaderValue::from_str(text)
            .map_err(|_| GetError::Http("its entity tag has control characters".into()))
    };
    if let Some(range) = &ask.range {
        let text = match range.end {
            u64::MAX => format!("bytes={}-", range.start),
            end => format!("bytes={}-{}", range.start, end.saturating_sub(1)),
        };
        request.headers_mut().insert(RANGE, value(&text)?);
    }
    if let Some(validator) = &ask.if_range {
        request.headers_mut().insert(IF_RANGE, value(validator)?);
    }
    Ok(request.into_parts().0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::download::Download;
    use crate::job::{Job, Wanted};
    use crate::output::Output;
    use crate::part::Resume;
    use crate::tally::Check;

    #[test]
    fn ranges_and_fields_of_the_user() {
        let texts = ["Accept: text/html", "x-a: 1", "X-A: 2", "user-agent:"].map(String::from);
        let headers = parse_headers(&texts).unwrap();
        let target = Target::parse("https://[::1]:4433/a%20b?c").unwrap();
        let wanted = Wanted::Range(5..10, Resume::Never);
        let job = Job { target: target.clone(), output: Output::Nowhere(Check::Nothing), wanted };
        let ask = Download::open(0, &job, 1).unwrap().next_ask().unwrap();
        let head = head(&target, &ask, &headers).unwrap();
        assert_eq!(head.uri.to_string(), "https://[::1]:4433/a%20b?c");
        assert_eq!(head.headers[RANGE], "bytes=5-9");
        assert_eq!(head.headers[ACCEPT], "text/html");
        assert_eq!(head.headers.get_all("x-a").iter().count(), 2);
        assert!(!head.headers.contains_key(USER_AGENT) && !head.headers.contains_key(IF_RANGE));
        for wrong in ["no colon", "a b: c", "range: bytes=0-1", "x: \u{1}"] {
            assert_eq!(parse_headers(&[wrong.into()]).unwrap_err().exit_code(), 2, "{wrong}");
        }
    }
}
