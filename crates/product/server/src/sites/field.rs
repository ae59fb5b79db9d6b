//! Names and values of fields that an operator writes.

use http::header::{HeaderName, HeaderValue};
use std::fmt;

/// Why a field cannot be changed. The text says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError(String);

impl FieldError {
    /// With this text.
    pub fn new(what: impl Into<String>) -> FieldError {
        FieldError(what.into())
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for FieldError {}

/// The name of a field that is none of `own`, which are those of `owner`: "the server".
///
/// # Errors
/// It is none, or one of these.
pub fn field_name(name: &str, own: &[&str], owner: &str) -> Result<HeaderName, FieldError> {
    let Ok(parsed) = HeaderName::try_from(name) else {
        return Err(FieldError(format!(
            "\"{name}\" is no name of a header field: letters, digits and - make one"
        )));
    };
    if own.contains(&parsed.as_str()) {
        return Err(FieldError(format!("\"{name}\" is {owner}'s own: leave it out")));
    }
    Ok(parsed)
}

/// The value of a field. RFC 9110 §5.5: no blanks around it, no control characters; and others than ASCII have no agreed meaning.
///
/// # Errors
/// It is none.
pub fn field_value(value: &str) -> Result<HeaderValue, FieldError> {
    let parsed = HeaderValue::from_str(value).ok().filter(|_| value.trim() == value && value.is_ascii());
    let what = "a value of a header field has printable ASCII characters, and no blanks around it";
    parsed.ok_or_else(|| FieldError(what.to_owned()))
}
