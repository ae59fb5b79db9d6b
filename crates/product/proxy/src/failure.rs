//! Why there is no response of an upstream.

use crate::content::Sent;
use body::BoxError;
use http::Request;
use hyper::client::conn::TrySendError;
use server::sites::RouteError;
use std::fmt;
use std::io;

/// Why there is no response.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No connection. Nothing was sent.
    Connect(io::Error),
    /// No connection in time.
    ConnectTimeout,
    /// The connection broke before the response, or what came is no HTTP.
    Broken(BoxError),
    /// No response in time.
    Silent,
    /// A response that no request has asked for.
    Unasked(http::StatusCode),
    /// All upstreams have as many requests as they may.
    Full,
    /// The request has more content than is permitted.
    TooLarge,
    /// The client gave its request up.
    Client,
}

impl Failure {
    /// Whether the upstream is to blame.
    pub(crate) fn is_upstreams(&self) -> bool {
        !matches!(self, Failure::Full | Failure::TooLarge | Failure::Client)
    }

    /// The same for another request that has waited for the connection.
    pub(crate) fn of_connection(&self) -> Failure {
        match self {
            Failure::Connect(error) => Failure::Connect(io::Error::new(error.kind(), error.to_string())),
            _ => Failure::ConnectTimeout,
        }
    }

    /// What the client hears. RFC 9110 §15.5.14, §15.6.3 to §15.6.5.
    pub(crate) fn answer(&self) -> RouteError {
        let (status, what) = match self {
            Failure::Connect(_) | Failure::Broken(_) | Failure::Unasked(_) => {
                (502, "the server behind this one did not answer as it should")
            }
            Failure::ConnectTimeout | Failure::Silent => {
                (504, "the server behind this one did not answer in time")
            }
            Failure::Full => (503, "the server behind this one has too much to do"),
            Failure::TooLarge => (413, ""),
            Failure::Client => (400, "the content of the request is not complete"),
        };
        RouteError { status, what }
    }
}

/// A request without a response.
pub(crate) struct Refused {
    /// The request, if nothing of it was sent. Boxed, because it is large and rare.
    pub(crate) request: Option<Box<Request<Sent>>>,
    pub(crate) error: BoxError,
}

impl From<TrySendError<Request<Sent>>> for Refused {
    fn from(mut error: TrySendError<Request<Sent>>) -> Refused {
        Refused { request: error.take_message().map(Box::new), error: error.into_error().into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Connect(error) => write!(out, "no connection: {error}"),
            Failure::ConnectTimeout => out.write_str("no connection in time: see connect-timeout"),
            Failure::Broken(error) => write!(out, "no response: {}", Chain(&**error)),
            Failure::Silent => out.write_str("no response in time: see response-timeout"),
            Failure::Unasked(status) => write!(out, "a response {status} that no request has asked for"),
            Failure::Full => {
                out.write_str("all upstreams have as many requests as they may: see max-connections")
            }
            Failure::TooLarge => out.write_str("a request has more content than it may: see max-content"),
            Failure::Client => out.write_str("the client gave its request up"),
        }
    }
}

/// An error with what is behind it.
struct Chain<'a>(&'a dyn std::error::Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(out, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}
