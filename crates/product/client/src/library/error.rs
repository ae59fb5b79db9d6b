//! Why a request has no response.

use crate::report::PathReport;
use body::BoxError;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// What a request waited for when its time was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// A connection: [`Builder::connect_timeout`](crate::Builder::connect_timeout).
    Connect,
    /// The next byte: [`Builder::silence`](crate::Builder::silence).
    Silence,
    /// The end of the response: [`Builder::timeout`](crate::Builder::timeout).
    Whole,
}

/// What has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The request itself: its URI, or a version of HTTP that cannot carry it.
    Request,
    /// The name of the host has no address.
    Resolve,
    /// Nothing answers at the addresses of the host.
    Connect,
    /// The server's certificate is not trusted.
    Certificate,
    /// TLS, for another reason than the certificate.
    Tls,
    /// The server broke the rules of HTTP or QUIC, or does not speak the version that was demanded.
    Protocol,
    /// The connection ended before the response was complete.
    Lost,
    /// Time is over.
    Timeout(Phase),
    /// There are too many redirects, or one leads to where it must not.
    Redirect,
    /// The content of the request could not be read.
    Body,
    /// The sink of the response's content has panicked.
    Sink,
    /// The request was cancelled by [`Control::cancel`](crate::Control::cancel).
    Cancelled,
}

/// Why a request has no response, or a response no complete content.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: Kind,
    is_retryable: bool,
    text: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
    path: Option<PathReport>,
}

impl Error {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Error {
        Error(Box::new(Inner { kind, is_retryable: false, text: text.into(), source: None, path: None }))
    }

    /// `text`, a colon, and what `source` says.
    pub(crate) fn caused(kind: Kind, text: &str, source: impl Into<BoxError>) -> Error {
        let source: Arc<dyn StdError + Send + Sync> = source.into().into();
        let mut error = Error::new(kind, format!("{text}: {source}"));
        error.0.source = Some(source);
        error
    }

    /// The same text, with a source that programs can look at.
    pub(crate) fn because(mut self, source: impl StdError + Send + Sync + 'static) -> Error {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// The exchange ended on a connection of QUIC.
    pub(crate) fn on_path(mut self, path: &PathReport) -> Error {
        self.0.path = Some(path.clone());
        self
    }

    /// The server has not looked at the request.
    pub(crate) fn retryable(mut self) -> Error {
        self.0.is_retryable = true;
        self
    }

    /// What has failed.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Whether the server has certainly not looked at the request, so that it can be sent again, whatever its method.
    pub fn is_retryable(&self) -> bool {
        self.0.is_retryable
    }

    /// What the connection of QUIC was like on which the exchange ended; `None` for TCP, and where there was no connection.
    pub fn path(&self) -> Option<&PathReport> {
        self.0.path.as_ref()
    }

    /// Whether time was over.
    pub fn is_timeout(&self) -> bool {
        matches!(self.0.kind, Kind::Timeout(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.text)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("is_retryable", &self.0.is_retryable)
            .field("text", &self.0.text)
            .finish_non_exhaustive()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_ref().map(|source| &**source as _)
    }
}
