//! Why content is not complete.

use std::error::Error;
use std::fmt;

/// Any error.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why content is not complete.
#[derive(Debug)]
#[non_exhaustive]
pub enum BodyError {
    /// The peer gave its message up, or the connection was lost before all had arrived.
    Aborted,
    /// There are more bytes than the caller takes: [`crate::Body::collect`].
    TooLarge,
    /// What provides the content has failed.
    Source(BoxError),
}

impl fmt::Display for BodyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodyError::Aborted => out.write_str("the message ended before all of its content had arrived"),
            BodyError::TooLarge => out.write_str("the content is larger than permitted"),
            BodyError::Source(source) => write!(out, "the content failed: {source}"),
        }
    }
}

impl Error for BodyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            BodyError::Source(source) => Some(&**source),
            BodyError::Aborted | BodyError::TooLarge => None,
        }
    }
}

/// The reader of the content has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the reader of the content has gone")
    }
}

impl Error for Closed {}
