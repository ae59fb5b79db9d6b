//! Conditional requests: whether the client's copy is still good, or the thing it meant to continue is still there.
//!
//! Validators of a file: an entity tag made of modification time (nanoseconds) and size, used as a strong one, and the
//! modification time in seconds. A condition that does not parse is treated as one that does not match. RFC 9110 §13.

use crate::date;
use crate::request::{Head, Name};
use crate::response::Value;

/// What tells one version of a representation from another.
#[derive(Clone, Debug)]
pub(crate) struct Validators {
    /// The entity tag with its quotes, always strong.
    pub(crate) etag: Value,
    /// When it was last modified, in seconds since 1970, if that is known.
    pub(crate) modified_s: Option<u64>,
    /// The same as the field Last-Modified says it.
    pub(crate) modified_text: Option<Value>,
}

impl Validators {
    /// Of what was modified at `modified_s`, if that is known.
    pub(crate) fn new(etag: Value, modified_s: Option<u64>) -> Validators {
        let modified_text = modified_s.map(|at| Value::copied(&date::http_date(at)));
        Validators { etag, modified_s, modified_text }
    }
}

/// What the preconditions say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Answer as if there were none.
    Proceed,
    /// 304
    NotModified,
    /// 412
    Failed,
}

/// Evaluates the preconditions of a GET or HEAD in the order of RFC 9110 §13.2.2.
pub(crate) fn evaluate(head: &Head, validators: &Validators) -> Verdict {
    let etag = validators.etag.as_bytes();
    if let Some(list) = head.value(Name::IfMatch) {
        if !matches(list, |tag| !tag.weak && tag.opaque == etag) {
            return Verdict::Failed;
        }
    } else if let (Some(since), Some(modified)) =
        (date_of(head, Name::IfUnmodifiedSince), validators.modified_s)
        && modified > since
    {
        return Verdict::Failed;
    }
    if let Some(list) = head.value(Name::IfNoneMatch) {
        if matches(list, |tag| tag.opaque == etag) {
            return Verdict::NotModified;
        }
    } else if let (Some(since), Some(modified)) =
        (date_of(head, Name::IfModifiedSince), validators.modified_s)
        && modified <= since
    {
        return Verdict::NotModified;
    }
    Verdict::Proceed
}

/// Whether a Range field counts: there is no If-Range, or it names exactly this version. A date does so only if the file
/// was not modified in the second that is still running. RFC 9110 §13.1.5, §8.8.2.2.
pub(crate) fn range_applies(head: &Head, validators: &Validators, now_s: u64) -> bool {
    let Some(condition) = head.value(Name::IfRange).map(trim) else { return true };
    match parse_tag(condition) {
        Some((tag, [])) => !tag.weak && tag.opaque == validators.etag.as_bytes(),
        Some(_) => false,
        None => validators
            .modified_s
            .is_some_and(|modified| date::parse(condition) == Some(modified) && modified < now_s),
    }
}

fn date_of(head: &Head, name: Name) -> Option<u64> {
    head.value(name).and_then(date::parse)
}

/// An entity tag of the client's.
struct Tag<'a> {
    weak: bool,
    /// With its quotes.
    opaque: &'a [u8],
}

/// Whether `list` is `*` or has a tag that `same` accepts.
fn matches(list: &[u8], same: impl Fn(&Tag<'_>) -> bool) -> bool {
    let mut rest = trim(list);
    if rest == b"*" {
        return true;
    }
    loop {
        while let [b' ' | b'\t' | b',', after @ ..] = rest {
            rest = after;
        }
        let Some((tag, after)) = parse_tag(rest) else { return false };
        if same(&tag) {
            return true;
        }
        rest = after;
    }
}

/// The entity tag at the start of `text`, and what follows it. RFC 9110 §8.8.3.
fn parse_tag(text: &[u8]) -> Option<(Tag<'_>, &[u8])> {
    let (weak, quoted) = match text {
        [b'W', b'/', quoted @ ..] => (true, quoted),
        quoted => (false, quoted),
    };
    let [b'"', inside @ ..] = quoted else { return None };
    let len = inside.iter().position(|byte| !matches!(byte, 0x21 | 0x23..=0x7e | 0x80..))?;
    let (opaque, rest) = quoted.split_at_checked(len + 2)?;
    opaque.ends_with(b"\"").then_some((Tag { weak, opaque }, rest))
}

fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODIFIED: u64 = 1_795_235_480;
    const SAME: &str = "Sat, 21 Nov 2026 04:31:20 GMT";
    const EARLIER: &str = "Sat, 21 Nov 2026 04:31:19 GMT";
    const LATER: &str = "Sat, 21 Nov 2026 04:31:21 GMT";

    fn validators() -> Validators {
        Validators::new(Value::Static("\"now\""), Some(MODIFIED))
    }

    fn head(fields: &[(&str, &str)]) -> Head {
        let mut head = Head::of("GET", "/");
        fields.iter().for_each(|(name, value)| head.on_field(name.as_bytes(), value.as_bytes()));
        head
    }

    #[test]
    fn preconditions() {
        use Verdict::{Failed, NotModified, Proceed};
        let table: &[(&[(&str, &str)], Verdict)] = &[
            (&[], Proceed),
            (&[("if-match", "\"now\"")], Proceed),
            (&[("if-match", "\"old\", \"now\"")], Proceed),
            (&[("if-match", "*")], Proceed),
            (&[("if-match", "W/\"now\"")], Failed),
            (&[("if-match", "\"old\"")], Failed),
            (&[("if-match", "now")], Failed),
            (&[("if-match", "")], Failed),
            (&[("if-match", "\"a,b\",,\t\"now\"")], Proceed),
            (&[("if-none-match", "\"now\"")], NotModified),
            (&[("if-none-match", "W/\"now\"")], NotModified),
            (&[("if-none-match", "\"old\", W/\"now\"")], NotModified),
            (&[("if-none-match", "*")], NotModified),
            (&[("if-none-match", "\"old\"")], Proceed),
            (&[("if-none-match", "\"no\"w\"")], Proceed),
            (&[("if-none-match", "\"now")], Proceed),
            (&[("if-modified-since", SAME)], NotModified),
            (&[("if-modified-since", LATER)], NotModified),
            (&[("if-modified-since", EARLIER)], Proceed),
            (&[("if-modified-since", "whenever")], Proceed),
            (&[("if-unmodified-since", SAME)], Proceed),
            (&[("if-unmodified-since", EARLIER)], Failed),
            (&[("if-unmodified-since", "whenever")], Proceed),
            // The tag decides, the date beside it is ignored.
            (&[("if-none-match", "\"old\""), ("if-modified-since", LATER)], Proceed),
            (&[("if-match", "\"now\""), ("if-unmodified-since", EARLIER)], Proceed),
            (&[("if-match", "\"old\""), ("if-none-match", "\"now\"")], Failed),
            (&[("if-match", "\"now\""), ("if-none-match", "\"now\"")], NotModified),
        ];
        for (fields, verdict) in table {
            assert_eq!(evaluate(&head(fields), &validators()), *verdict, "{fields:?}");
        }
    }

    #[test]
    fn if_range_wants_the_very_same_version() {
        let table = [
            ("\"now\"", true),
            ("\"old\"", false),
            ("W/\"now\"", false),
            ("\"now\", \"now\"", false),
            ("now", false),
            ("*", false),
            (SAME, true),
            (LATER, false),
            (EARLIER, false),
            ("", false),
        ];
        for (condition, applies) in table {
            let head = head(&[("if-range", condition)]);
            assert_eq!(range_applies(&head, &validators(), MODIFIED + 1), applies, "{condition}");
        }
        assert!(range_applies(&head(&[]), &validators(), 0));
        // Modified in this very second: it may be modified again and keep its date.
        assert!(!range_applies(&head(&[("if-range", SAME)]), &validators(), MODIFIED));
    }
}
