//! A request without a response, and what of it can be sent again.

use super::error::Error;
use ::body::Body;

/// A request that has no response. The content is there if nothing of it was sent.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) error: Error,
    pub(crate) content: Option<Box<Body>>,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused { error, content: None }
    }
}
