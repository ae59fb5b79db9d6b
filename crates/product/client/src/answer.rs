//! Whether an answer is what was asked for: status, range, version and length.
//!
//! A download that continues or runs in parallel is glued together from several answers, so each must prove that it is the
//! range that was asked for, of the same version as the others. RFC 9110 §13.1.5, §14.4, §15.3.7.

use crate::error::GetError;
use core::ops::Range;
use serde::{Deserialize, Serialize};

/// What tells one version of a file from another, as far as the server says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// The entity tag, quotes and all.
    pub etag: Option<String>,
    /// The Last-Modified field as it was sent.
    pub last_modified: Option<String>,
    /// The length in bytes.
    pub size: Option<u64>,
}

impl Version {
    /// What to put into If-Range: a strong entity tag, else the date. `None`: parts of it cannot be fetched safely.
    pub fn validator(&self) -> Option<&str> {
        let strong = self.etag.as_deref().filter(|etag| etag.starts_with('"'));
        // A weak tag says that the bytes may differ; then the date says too little as well.
        strong.or(if self.etag.is_none() { self.last_modified.as_deref() } else { None })
    }

    /// Whether `other` does not contradict: what both know is the same.
    pub fn agrees_with(&self, other: &Version) -> bool {
        fn same<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> bool {
            a.zip(b).is_none_or(|(a, b)| a == b)
        }
        same(self.etag.as_ref(), other.etag.as_ref())
            && same(self.last_modified.as_ref(), other.last_modified.as_ref())
            && same(self.size.as_ref(), other.size.as_ref())
    }
}

/// The fields of a response that a download reads.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The status code; 0 until it was seen.
    pub status: u16,
    content_length: Option<u64>,
    content_range: Option<String>,
    etag: Option<String>,
    last_modified: Option<String>,
    location: Option<String>,
}

/// What an answer means for a download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerUse {
    /// The whole file follows, from its first byte.
    Whole(Version),
    /// These bytes of the file follow; they lie within what was asked for and begin where it begins.
    Part(Range<u64>, Version),
    /// There is nothing where we asked (416), and the file is so long.
    Beyond(Option<u64>),
    /// Ask there instead.
    Redirect(String),
}

impl Answer {
    /// Takes in a field, `:status` included; `name` in lower case.
    pub fn on_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), GetError> {
        let text = || String::from_utf8(value.to_vec()).ok();
        match name {
            b":status" => {
                let status =
                    text().and_then(|text| text.parse().ok()).filter(|status| (100..=999).contains(status));
                self.status =
                    status.ok_or_else(|| GetError::Http("the status is no number from 100 to 999".into()))?;
            }
            b"content-length" => {
                let length = text().and_then(|text| number(&text));
                let length = length.ok_or_else(|| GetError::Http("content-length is no number".into()))?;
                if self.content_length.replace(length).is_some_and(|other| other != length) {
                    return Err(GetError::Http("there are two different content-lengths".into()));
                }
            }
            b"content-range" => self.content_range = text(),
            b"etag" => self.etag = text(),
            b"last-modified" => self.last_modified = text(),
            b"location" => self.location = text(),
            _ => {}
        }
        Ok(())
    }

    /// The announced length of the body.
    pub fn content_length(&self) -> Option<u64> {
        self.content_length
    }

    /// What the answer means, given the range that was `asked` for (`u64::MAX` as its end: up to the end of the file).
    pub fn judge(&self, asked: Option<&Range<u64>>) -> Result<AnswerUse, GetError> {
        match (self.status, asked) {
            (206, Some(asked)) => self.judge_part(asked),
            (206, None) => Err(GetError::Range("a part of the whole".into())),
            (200..=299, _) => Ok(AnswerUse::Whole(self.version(self.content_length))),
            (416, Some(_)) => Ok(AnswerUse::Beyond(self.content_range.as_deref().and_then(size_when_beyond))),
            (301 | 302 | 303 | 307 | 308, _) => match &self.location {
                Some(location) => Ok(AnswerUse::Redirect(location.clone())),
                None => Err(GetError::Http("a redirect without a location".into())),
            },
            (400.., _) => Err(GetError::Status(self.status)),
            (status, _) => Err(GetError::Http(format!("status {status} answers nothing that was asked"))),
        }
    }

    fn judge_part(&self, asked: &Range<u64>) -> Result<AnswerUse, GetError> {
        let text = self.content_range.as_deref().unwrap_or("no content-range");
        let (range, size) = parse_content_range(text).ok_or_else(|| GetError::Range(text.to_string()))?;
        let right_length = self.content_length.is_none_or(|length| length == range.end - range.start);
        if range.start != asked.start || range.end > asked.end || !right_length {
            return Err(GetError::Range(text.to_string()));
        }
        Ok(AnswerUse::Part(range, self.version(size)))
    }

    fn version(&self, size: Option<u64>) -> Version {
        Version { etag: self.etag.clone(), last_modified: self.last_modified.clone(), size }
    }
}

/// `bytes 0-9/100` or `bytes 0-9/*`. RFC 9110 §14.4.
fn parse_content_range(text: &str) -> Option<(Range<u64>, Option<u64>)> {
    let (range, size) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let range = number(first)?..number(last)?.checked_add(1)?;
    let size = if size == "*" { None } else { Some(number(size)?) };
    (!range.is_empty() && size.is_none_or(|size| range.end <= size)).then_some((range, size))
}

/// `bytes */100`
fn size_when_beyond(text: &str) -> Option<u64> {
    text.strip_prefix("bytes */").and_then(number)
}

fn number(text: &str) -> Option<u64> {
    // `parse` alone would take a plus sign.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Counts a body against its announced length.
#[derive(Clone, Copy, Debug)]
pub struct BodyCheck {
    expected: Option<u64>,
    received: u64,
}

impl BodyCheck {
    /// A body of `expected` bytes, if the length is known.
    pub fn new(expected: Option<u64>) -> BodyCheck {
        BodyCheck { expected, received: 0 }
    }

    /// Takes in `count` more bytes.
    #[inline]
    pub fn on_bytes(&mut self, count: usize) -> Result<(), GetError> {
        self.received = self.received.saturating_add(count as u64);
        match self.expected {
            Some(expected) if self.received > expected => Err(GetError::Long(expected)),
            _ => Ok(()),
        }
    }

    /// Bytes announced and received, when more were announced.
    pub fn owed(&self) -> Option<(u64, u64)> {
        self.expected.filter(|expected| *expected > self.received).map(|expected| (expected, self.received))
    }

    /// The body is over: returns its length.
    pub fn on_end(&self) -> Result<u64, GetError> {
        match self.expected {
            Some(expected) if self.received < expected => Err(GetError::Short(expected, self.received)),
            _ => Ok(self.received),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: &str, fields: &[(&str, &str)]) -> Answer {
        let mut answer = Answer::default();
        answer.on_field(b":status", status.as_bytes()).unwrap();
        fields.iter().for_each(|(name, value)| answer.on_field(name.as_bytes(), value.as_bytes()).unwrap());
        answer
    }

    #[test]
    fn parts_must_be_the_ones_that_were_asked_for() {
        let judge = |content_range: &str, asked: Range<u64>| {
            answer("206", &[("content-range", content_range)]).judge(Some(&asked))
        };
        let known = Version { size: Some(100), ..Version::default() };
        assert_eq!(judge("bytes 10-19/100", 10..20).unwrap(), AnswerUse::Part(10..20, known.clone()));
        assert_eq!(judge("bytes 10-99/100", 10..u64::MAX).unwrap(), AnswerUse::Part(10..100, known));
        assert!(matches!(judge("bytes 10-14/*", 10..20), Ok(AnswerUse::Part(range, _)) if range == (10..15)));
        let wrong = [
            "bytes 0-19/100",
            "bytes 11-19/100",
            "bytes 10-20/100",
            "bytes 10-19/15",
            "bytes 19-10/100",
            "items 10-19/100",
            "bytes 10-/100",
            "bytes +10-19/100",
            "bytes 10-18446744073709551615/*",
            "bytes */100",
            "",
            "bytes 10-19",
        ];
        for text in wrong {
            assert_eq!(judge(text, 10..20).unwrap_err().exit_code(), 33, "{text}");
        }
        assert!(answer("206", &[]).judge(Some(&(0..1))).is_err(), "multipart or no content-range");
        assert!(answer("206", &[("content-range", "bytes 0-9/10")]).judge(None).is_err());
        let short = answer("206", &[("content-range", "bytes 10-19/100"), ("content-length", "9")]);
        assert!(short.judge(Some(&(10..20))).is_err());
    }

    #[test]
    fn other_statuses() {
        let version = Version { etag: Some("\"a\"".into()), last_modified: None, size: Some(7) };
        let whole = answer("200", &[("etag", "\"a\""), ("content-length", "7")]);
        assert_eq!(
            whole.judge(Some(&(3..u64::MAX))).unwrap(),
            AnswerUse::Whole(version),
            "the server knows no ranges"
        );
        assert_eq!(
            answer("416", &[("content-range", "bytes */7")]).judge(Some(&(7..9))).unwrap(),
            AnswerUse::Beyond(Some(7))
        );
        assert_eq!(answer("416", &[]).judge(None).unwrap_err().exit_code(), 22);
        assert_eq!(
            answer("308", &[("location", "/x")]).judge(None).unwrap(),
            AnswerUse::Redirect("/x".into())
        );
        // RFC 9110 §15: a status above 599 is taken for a 5xx.
        let table = [
            ("404", 22),
            ("503", 22),
            ("599", 22),
            ("600", 22),
            ("999", 22),
            ("304", 95),
            ("302", 95),
            ("100", 95),
        ];
        for (status, code) in table {
            assert_eq!(answer(status, &[]).judge(None).unwrap_err().exit_code(), code, "{status}");
        }
        for bad in ["", "99", "1000", "2xx", "99999999"] {
            assert!(Answer::default().on_field(b":status", bad.as_bytes()).is_err());
        }
        let mut twice = answer("200", &[("content-length", "7")]);
        assert!(twice.on_field(b"content-length", b"7").is_ok());
        assert!(twice.on_field(b"content-length", b"8").is_err());
        assert!(twice.on_field(b"content-length", b"-8").is_err());
    }

    #[test]
    fn versions() {
        let version = |etag: Option<&str>, date: Option<&str>, size| Version {
            etag: etag.map(Into::into),
            last_modified: date.map(Into::into),
            size,
        };
        assert_eq!(version(Some("\"a\""), Some("d"), None).validator(), Some("\"a\""));
        assert_eq!(version(None, Some("d"), None).validator(), Some("d"));
        assert_eq!(version(Some("W/\"a\""), Some("d"), None).validator(), None);
        assert_eq!(version(None, None, Some(5)).validator(), None);
        assert!(version(Some("\"a\""), None, Some(5)).agrees_with(&version(Some("\"a\""), Some("d"), None)));
        assert!(!version(Some("\"a\""), None, Some(5)).agrees_with(&version(Some("\"a\""), None, Some(6))));
        assert!(!version(Some("\"a\""), None, None).agrees_with(&version(Some("\"b\""), None, None)));
    }

    #[test]
    fn bodies_that_are_too_short_or_too_long() {
        let mut check = BodyCheck::new(Some(10));
        check.on_bytes(9).unwrap();
        assert_eq!(check.on_end().unwrap_err().exit_code(), 18);
        check.on_bytes(1).unwrap();
        assert_eq!(check.on_end().unwrap(), 10);
        assert_eq!(check.on_bytes(1).unwrap_err().exit_code(), 95);
        let mut unknown = BodyCheck::new(None);
        unknown.on_bytes(5).unwrap();
        assert_eq!(unknown.on_end().unwrap(), 5);
    }
}
