//! What hyper's errors mean to a request.

use super::error::{Error, Kind};
use std::error::Error as _;

/// An error of hyper.
pub(crate) fn of_hyper(error: &hyper::Error) -> Error {
    let cause = error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
    if error.is_user() {
        return Error::new(Kind::Body, format!("the request cannot be sent: {cause}"));
    }
    if error.is_parse() {
        return Error::new(Kind::Protocol, format!("the response is not valid HTTP: {cause}"));
    }
    let h2 = error.source().and_then(|source| source.downcast_ref::<h2::Error>());
    if let Some(h2) = h2
        && h2.is_remote()
        && h2.reason() == Some(h2::Reason::REFUSED_STREAM)
    {
        // RFC 9113 §8.7: the server has not processed it.
        return Error::new(Kind::Lost, "the server did not process the request (REFUSED_STREAM)").retryable();
    }
    Error::new(Kind::Lost, format!("the connection was lost: {cause}"))
}
