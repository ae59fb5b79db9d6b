//! Which value the field cache-control has (RFC 9111 §5.2), by the name of what was asked for.
//!
//! A name is the last segment of the path by which the response was found: of the file, where a file answers. What a folder answers is
//! called `index.html`, whatever its index is called.

use crate::files::path::split_query;
use percent_encoding::percent_decode;
use std::borrow::Cow;
use std::fmt;

/// Names such as `*.css`: each star stands for any characters, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    first: Box<[u8]>,
    /// What follows the stars, in order; the last one is the end. None: there is no star.
    further: Vec<Box<[u8]>>,
}

/// What is no pattern of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamePatternError(&'static str);

impl fmt::Display for NamePatternError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

impl std::error::Error for NamePatternError {}

impl NamePattern {
    /// The pattern `text`.
    ///
    /// # Errors
    /// No name is like it; the text says what to do.
    pub fn parse(text: &str) -> Result<NamePattern, NamePatternError> {
        if text.is_empty() {
            return Err(NamePatternError("write the name of files, such as *.css"));
        }
        if text.contains('/') {
            return Err(NamePatternError(
                "a pattern is of names, which have no slash: write *.css, and a route for a folder",
            ));
        }
        let mut parts = text.split('*').map(|part| part.as_bytes().into());
        Ok(NamePattern { first: parts.next().unwrap_or_default(), further: parts.collect() })
    }

    fn is_of(&self, name: &[u8]) -> bool {
        let Some(rest) = name.strip_prefix(&*self.first) else { return false };
        let Some((end, middle)) = self.further.split_last() else { return rest.is_empty() };
        let Some(mut rest) = rest.strip_suffix(&**end) else { return false };
        middle.iter().filter(|part| !part.is_empty()).all(|part| {
            let found = rest.windows(part.len()).position(|window| window == &**part);
            rest = found.and_then(|at| rest.get(at + part.len()..)).unwrap_or_default();
            found.is_some()
        })
    }
}

/// A value, and the names that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CacheRule {
    /// None: it is for all.
    pub(super) patterns: Vec<NamePattern>,
    pub(super) value: Box<str>,
}

/// The first rule for what was found by `target`.
pub(super) fn rule_of(rules: &[CacheRule], target: &[u8]) -> Option<usize> {
    if rules.is_empty() {
        return None;
    }
    let (path, _) = split_query(target);
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let name = match name {
        b"" => Cow::Borrowed(&b"index.html"[..]),
        name => Cow::from(percent_decode(name)),
    };
    let is_for = |rule: &CacheRule| {
        rule.patterns.is_empty() || rule.patterns.iter().any(|pattern| pattern.is_of(&name))
    };
    rules.iter().position(is_for)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_characters() {
        for (pattern, name, expected) in [
            ("*.css", "style.css", true),
            ("*.css", ".css", true),
            ("*.css", "style.css.map", false),
            ("*.css", "style.CSS", false),
            ("app.*.js", "app.0123.js", true),
            ("app.*.js", "app.js", false),
            ("a*b*c*d", "a-b-c-d", true),
            ("a*b*c*d", "abcd", true),
            ("a*b*c*d", "acbd", false),
            ("a*bc*c", "abc", false),
            ("a**", "a", true),
            ("*", "anything", true),
            ("robots.txt", "robots.txt", true),
            ("robots.txt", "robots.txt2", false),
            ("*é*", "café.txt", true),
        ] {
            assert_eq!(
                NamePattern::parse(pattern).unwrap().is_of(name.as_bytes()),
                expected,
                "{pattern} {name}"
            );
        }
        assert!(NamePattern::parse("").is_err() && NamePattern::parse("/a/*.css").is_err());
    }

    #[test]
    fn the_first_rule_for_a_name_holds() {
        let rule = |patterns: &[&str]| CacheRule {
            patterns: patterns.iter().map(|text| NamePattern::parse(text).unwrap()).collect(),
            value: "x".into(),
        };
        let rules = [rule(&["*.css", "*.js"]), rule(&["index.html"]), rule(&["a.*"])];
        for (target, expected) in [
            ("/a/b.css?v=1", Some(0)),
            ("/%61.js", Some(0)),
            ("/a%2Ecss", Some(0)),
            ("/", Some(1)),
            ("/folder/?sort=size", Some(1)),
            ("/index.html", Some(1)),
            ("/a.txt", Some(2)),
            ("/a.css/b", None),
            ("*", None),
        ] {
            assert_eq!(rule_of(&rules, target.as_bytes()), expected, "{target}");
        }
        assert_eq!(rule_of(&[rule(&[])], b"/b"), Some(0));
    }
}
