//! Why there is no certificate.
//!
//! What an authority says is shown in one line, escaped and cut: it cannot look like anything else in a log.

use instant_acme::Error;
use std::error::Error as _;
use std::fmt;

/// Of what an authority says, in bytes.
const LONGEST: usize = 600;

/// Why an attempt has failed, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    text: String,
    /// The type of the authority's problem, without what all types begin with. RFC 8555 §6.7.
    kind: Option<String>,
}

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Failure {
        Failure { text: shown(&text.into()), kind: None }
    }

    /// `step` says what was being done.
    pub(crate) fn of(step: &str, error: &Error) -> Failure {
        let (what, kind) = match error {
            Error::Api(problem) => {
                let kind = problem.r#type.as_deref().unwrap_or_default();
                let kind = kind.strip_prefix("urn:ietf:params:acme:error:").unwrap_or(kind);
                let mut text = problem.detail.clone().unwrap_or_default();
                for part in &problem.subproblems {
                    text = format!("{text}; {}", part.detail.as_deref().unwrap_or_default());
                }
                (format!("{text} ({kind})"), Some(kind.to_owned()))
            }
            Error::Json(error) => {
                (format!("the authority's answer is no JSON as it should be: {error}"), None)
            }
            Error::Timeout(_) => ("the authority was not done in time".to_owned(), None),
            error => (with_causes(error), None),
        };
        Failure { text: shown(&format!("{step}: {what}")), kind }
    }

    /// Whether the authority does not know the account any more. RFC 8555 §6.7.
    pub(crate) fn is_of_account(&self) -> bool {
        self.kind.as_deref() == Some("accountDoesNotExist")
    }
}

/// An error with what caused it, each once.
fn with_causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let what = next.to_string();
        if !text.contains(&what) {
            text = format!("{text}: {what}");
        }
        cause = next.source();
    }
    text
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

/// One line, of bounded length.
fn shown(text: &str) -> String {
    let mut line: String =
        text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if line.len() > LONGEST {
        let cut = (0..=LONGEST).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
        line.truncate(cut);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, an authority could write lines into the log, and fill it.
    #[test]
    fn what_an_authority_says_is_one_line_of_bounded_length() {
        let problem = |detail: &str| -> Error {
            let text = format!(
                r#"{{"type":"urn:ietf:params:acme:error:dns","detail":{},"subproblems":[{{"detail":"x"}}]}}"#,
                serde_json::to_string(detail).unwrap()
            );
            Error::Api(serde_json::from_str(&text).unwrap())
        };
        let failure = Failure::of("the order", &problem("a\nb\u{1b}[c"));
        assert_eq!(failure.to_string(), "the order: a b [c; x (dns)");
        assert!(!failure.is_of_account());
        let long = Failure::of("the order", &problem(&"é".repeat(10_000))).to_string();
        assert!(long.len() <= LONGEST + '…'.len_utf8() && long.ends_with('…'), "{}", long.len());
    }
}
