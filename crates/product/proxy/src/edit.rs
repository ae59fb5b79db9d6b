//! What is changed of the fields of requests on their way to upstreams.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use server::sites::{self, FieldError, field_value};

/// Fields that tell how a message is sent. RFC 9110 §7.6.1, §8.6, §10.1.1.
const OWN: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Changes of the fields of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestEdit {
    /// Fields of the request that do not go on.
    removed: Vec<HeaderName>,
    lines: Vec<(HeaderName, HeaderValue)>,
}

impl RequestEdit {
    /// The field has this value, in place of any other.
    ///
    /// # Errors
    /// The name or the value is none, or the field is the proxy's own.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), FieldError> {
        self.remove(name)?;
        self.add(name, value)
    }

    /// The field has this value, besides those that the request has.
    ///
    /// # Errors
    /// As [`RequestEdit::set`].
    pub fn add(&mut self, name: &str, value: &str) -> Result<(), FieldError> {
        let line = (field_name(name)?, field_value(value)?);
        self.lines.push(line);
        Ok(())
    }

    /// The field does not go on.
    ///
    /// # Errors
    /// The name is none, or the field is the proxy's own.
    pub fn remove(&mut self, name: &str) -> Result<(), FieldError> {
        let name = field_name(name)?;
        self.lines.retain(|(other, _)| *other != name);
        if !self.removed.contains(&name) {
            self.removed.push(name);
        }
        Ok(())
    }

    /// Changes the fields of a request.
    pub(crate) fn apply(&self, fields: &mut HeaderMap) {
        self.removed.iter().for_each(|name| _ = fields.remove(name));
        self.lines.iter().for_each(|(name, value)| _ = fields.append(name.clone(), value.clone()));
    }
}

/// The name of a field that an operator may change.
///
/// # Errors
/// It is none, or the field is the proxy's own.
pub fn field_name(name: &str) -> Result<HeaderName, FieldError> {
    let name = sites::field_name(name, &OWN, "the proxy")?;
    if name == header::HOST {
        return Err(FieldError::new("the key \"host\" of the proxy sets this field"));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_set_added_and_removed() {
        let mut edit = RequestEdit::default();
        edit.add("X-Key", "lost").unwrap();
        edit.set("x-key", "s3cret").unwrap();
        edit.add("accept", "text/plain").unwrap();
        edit.remove("cookie").unwrap();
        let line = |(name, value): (&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let sent =
            [("x-key", "forged"), ("x-key", "again"), ("accept", "*/*"), ("cookie", "a"), ("x-other", "b")];
        let mut fields = HeaderMap::from_iter(sent.map(line));
        fields.append("x-key", HeaderValue::from_static("third"));
        edit.apply(&mut fields);
        let of =
            |name: &str| -> Vec<&[u8]> { fields.get_all(name).iter().map(HeaderValue::as_bytes).collect() };
        assert_eq!(of("x-key"), [b"s3cret"]);
        assert_eq!(of("accept"), [&b"*/*"[..], b"text/plain"]);
        assert_eq!((of("cookie").len(), of("x-other").len()), (0, 1));
    }

    /// Deleted, an operator could make requests that two readers understand differently.
    #[test]
    fn what_is_no_field_or_the_proxys_own_is_refused() {
        let mut edit = RequestEdit::default();
        for name in
            ["", "a b", "a:", "é", "Content-Length", "connection", "Transfer-Encoding", "Host", "upgrade"]
        {
            assert!(edit.set(name, "x").is_err() && edit.remove(name).is_err(), "{name}");
        }
        for value in ["a\r\nb", "é", " a", "a\0"] {
            assert!(edit.add("x", value).is_err(), "{value:?}");
        }
        assert_eq!(edit, RequestEdit::default());
    }
}
