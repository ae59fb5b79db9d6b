//! What errors of the system, of TLS, hyper and h2 are called in the books, and what is said of them.

use crate::failure::Failure;
use std::error::Error;
use std::io::{self, ErrorKind};

/// `EMFILE` and `ENFILE`: no file descriptor left. Source: errno(3).
const NO_DESCRIPTORS: [i32; 2] = [24, 23];

/// Something went wrong with a connection or a request.
#[derive(Debug)]
pub(super) struct RequestFailure {
    pub(super) failure: Failure,
    pub(super) words: String,
    /// The server says that it has not looked at the request: another connection may carry it.
    pub(super) is_untouched: bool,
}

impl RequestFailure {
    pub(super) fn new(failure: Failure, words: impl Into<String>) -> RequestFailure {
        RequestFailure { failure, words: words.into(), is_untouched: false }
    }

    /// The connection was over before the request was sent.
    pub(super) fn untouched(words: impl Into<String>) -> RequestFailure {
        RequestFailure { is_untouched: true, ..RequestFailure::new(Failure::Closed, words) }
    }

    /// While a connection was made.
    pub(super) fn of_connecting(error: &io::Error) -> RequestFailure {
        let words = match error.kind() {
            ErrorKind::ConnectionRefused => "nothing listens there: check the port".to_owned(),
            _ if is_local(error) => format!("{error}: fewer connections, or a higher limit (ulimit -n)"),
            _ => error.to_string(),
        };
        RequestFailure::new(of_io(error), words)
    }

    /// Of HTTP/1.1. `in_content` says that the head of the answer was there already.
    pub(super) fn of_hyper(error: &hyper::Error, in_content: bool) -> RequestFailure {
        if error.is_canceled() {
            return RequestFailure::untouched("the connection ended before the request was sent");
        }
        let io = source_io(error);
        let has_ended =
            error.is_incomplete_message() || io.is_some_and(|error| error.kind() == ErrorKind::UnexpectedEof);
        let failure = match io {
            _ if has_ended && in_content => Failure::ShortBody,
            _ if has_ended || error.is_closed() => Failure::Closed,
            Some(error) => of_io(error),
            None => Failure::Protocol,
        };
        RequestFailure::new(failure, chain(error))
    }

    /// Of HTTP/2. `is_short` says that less content came than was announced.
    pub(super) fn of_h2(error: &h2::Error, is_short: bool) -> RequestFailure {
        let reason = error.reason();
        let is_refused = reason == Some(h2::Reason::REFUSED_STREAM) && error.is_remote();
        let has_left = error.is_go_away() && error.is_remote() && reason == Some(h2::Reason::NO_ERROR);
        if is_refused || has_left {
            return RequestFailure {
                is_untouched: true,
                ..RequestFailure::new(Failure::Reset, chain(error))
            };
        }
        let failure = match error.get_io() {
            Some(io) => of_io(io),
            None if error.is_remote() && error.is_reset() => Failure::Reset,
            None if error.is_remote() => Failure::Closed,
            None if is_short => Failure::ShortBody,
            None => Failure::Protocol,
        };
        RequestFailure::new(failure, chain(error))
    }
}

fn is_local(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::AddrNotAvailable | ErrorKind::AddrInUse)
        || error.raw_os_error().is_some_and(|code| NO_DESCRIPTORS.contains(&code))
}

/// What the system says.
fn of_io(error: &io::Error) -> Failure {
    if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return match tls {
            rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => {
                Failure::Certificate
            }
            _ => Failure::Tls,
        };
    }
    match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            Failure::Refused
        }
        ErrorKind::ConnectionReset => Failure::Reset,
        ErrorKind::TimedOut => Failure::Timeout,
        _ if is_local(error) => Failure::Local,
        _ => Failure::Closed,
    }
}

/// The system's error that is behind this one.
fn source_io<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    core::iter::successors(Some(error), |error| (*error).source()).find_map(|error| error.downcast_ref())
}

/// An error and what is behind it, in one line.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut texts: Vec<String> = Vec::new();
    for error in core::iter::successors(Some(error), |error| (*error).source()) {
        let text = error.to_string();
        // Some repeat what is behind them.
        if !texts.iter().any(|known| known.contains(&text)) {
            texts.push(text);
        }
    }
    texts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a certificate that is not trusted could be counted as a TLS failure, or a lack of ports as the server's fault.
    #[test]
    fn the_system_s_errors_have_names() {
        let tls = |error: rustls::Error| io::Error::new(ErrorKind::InvalidData, error);
        let untrusted = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let table = [
            (ErrorKind::ConnectionRefused.into(), Failure::Refused),
            (ErrorKind::ConnectionReset.into(), Failure::Reset),
            (ErrorKind::UnexpectedEof.into(), Failure::Closed),
            (ErrorKind::BrokenPipe.into(), Failure::Closed),
            (ErrorKind::AddrNotAvailable.into(), Failure::Local),
            (io::Error::from_raw_os_error(24), Failure::Local),
            (tls(untrusted), Failure::Certificate),
            (tls(rustls::Error::AlertReceived(rustls::AlertDescription::HandshakeFailure)), Failure::Tls),
        ];
        for (error, failure) in table {
            let request_failure = RequestFailure::of_connecting(&error);
            assert!(
                request_failure.failure == failure && !request_failure.words.contains('\n'),
                "{request_failure:?}"
            );
        }
    }
}
