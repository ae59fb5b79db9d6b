//! Why an HTTP/3 connection or exchange has ended, as errors of requests.

use crate::app::{End, Failure};
use crate::fault::{CERTIFICATE_ALERTS, Fault, refusal};
use crate::library::error::{Error, Kind, Phase};
use http3::{Abort, Code};
use transport::CloseReason;

/// The error of a request.
pub(super) fn of(failure: Failure<'_>) -> Error {
    match failure {
        Failure::Aborted(abort) => of_abort(abort),
        Failure::Unsendable(error) => {
            Error::caused(Kind::Body, "the content of the request cannot be sent", error)
        }
        Failure::Closed(end) => of_close(end),
    }
}

/// The error of all requests of a connection that has ended.
pub(super) fn of_close(end: &End) -> Error {
    in_words(end).because(Fault::Closed(end.reason.clone(), end.failure))
}

fn in_words(end: &End) -> Error {
    match &end.reason {
        CloseReason::Local { .. } => match end.failure {
            Some(failure) => Error::caused(Kind::Protocol, "the server broke the rules of HTTP/3", failure),
            None => Error::new(Kind::Lost, "the connection was closed"),
        },
        CloseReason::Tls { alert, reason } => {
            // A signature that is not that of the authority has the alert of any other wrong signature.
            let is_certificate =
                CERTIFICATE_ALERTS.contains(alert) || reason.contains("server's certificate");
            let kind = if is_certificate { Kind::Certificate } else { Kind::Tls };
            Error::new(kind, reason.clone())
        }
        CloseReason::PeerTransport { code, reason } => match code.alert() {
            Some(alert) => Error::new(Kind::Tls, refusal(alert)),
            None => {
                Error::new(Kind::Lost, said(format!("the server closed the connection with {code}"), reason))
            }
        },
        CloseReason::PeerApplication { code, reason } => Error::new(
            Kind::Lost,
            said(format!("the server closed the connection with {}", Code(*code)), reason),
        ),
        CloseReason::Violation(error) => {
            Error::new(Kind::Protocol, format!("the server broke the rules of QUIC: {error}"))
        }
        CloseReason::IdleTimeout => Error::new(
            Kind::Timeout(Phase::Silence),
            "nothing arrived for the idle timeout of the connection",
        ),
        CloseReason::HandshakeTimeout => {
            Error::new(Kind::Timeout(Phase::Connect), "the server does not answer over UDP")
        }
        CloseReason::PathLost => Error::new(Kind::Lost, "the server does not answer at its new address"),
        CloseReason::StatelessReset => Error::new(Kind::Lost, "the server has no state of the connection"),
        CloseReason::VersionNegotiation => {
            Error::new(Kind::Protocol, "the server speaks neither version 1 nor version 2 of QUIC")
        }
    }
}

fn said(text: String, reason: &str) -> String {
    if reason.is_empty() { text } else { format!("{text} ({reason})") }
}

/// The error of one request whose exchange was given up.
fn of_abort(abort: Abort) -> Error {
    let error = match abort {
        // RFC 9114 §4.1.1: the server has not processed it, or wants it over HTTP/1.1.
        Abort::Peer(code @ (Code::REQUEST_REJECTED | Code::VERSION_FALLBACK)) => {
            Error::new(Kind::Lost, format!("the server did not process the request ({code})")).retryable()
        }
        Abort::Peer(code) => Error::new(Kind::Lost, format!("the server gave up the response with {code}")),
        Abort::Local { reason, .. } => {
            Error::new(Kind::Protocol, format!("the response breaks the rules of HTTP: {reason}"))
        }
    };
    error.because(Fault::Aborted(abort))
}
