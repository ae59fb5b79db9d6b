//! One request of a download and its answer.
//!
//! Each carries the epoch of the plan that it was asked under; see [`crate::download`].

use crate::answer::BodyCheck;
use crate::part::Run;
use core::ops::Range;

/// A request to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// GET or HEAD.
    pub method: Method,
    /// The range of the file, if not all of it; `u64::MAX` as its end: up to the end.
    pub range: Option<Range<u64>>,
    /// For If-Range.
    pub if_range: Option<String>,
    pub(crate) epoch: u32,
}

/// The methods that a download uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Head and content.
    Get,
    /// Only the head.
    Head,
}

/// A request that was sent, and how far its answer is.
#[derive(Debug)]
pub struct Exchange {
    pub(crate) asked: Option<Range<u64>>,
    pub(crate) epoch: u32,
    pub(crate) content: Content,
}

/// What is done with the content of an answer.
#[derive(Debug)]
pub(crate) enum Content {
    /// The head has not arrived, or nothing of the content is wanted.
    Unwanted,
    /// It goes to the output, whose first byte is byte `shift` of the file; what was asked for reaches to byte `end` of the
    /// file.
    Wanted { run: Run, check: BodyCheck, shift: u64, end: u64 },
}

impl Exchange {
    /// The exchange that sending `ask` begins.
    pub fn new(ask: &Ask) -> Exchange {
        Exchange { asked: ask.range.clone(), epoch: ask.epoch, content: Content::Unwanted }
    }

    /// Content bytes that were announced and have not come; `None` when there are none or their number is not known.
    pub fn owed(&self) -> Option<(u64, u64)> {
        match &self.content {
            Content::Wanted { check, .. } => check.owed(),
            Content::Unwanted => None,
        }
    }
}
