//! How a connection's end reads to a user who wanted a file.

use crate::error::{GetError, Silence};
use http3::{Abort, Code, ConnectionError};
use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use transport::CloseReason;
use wire::Code as TransportCode;

/// Alerts that are about the peer's certificate. RFC 8446 §6.2.
pub const CERTIFICATE_ALERTS: [u8; 7] = [42, 43, 44, 45, 46, 48, 113];

/// Why there is no connection, or no response on one.
#[derive(Clone, Debug)]
pub enum Fault {
    /// What the system or the network says of the address.
    Network(SocketAddr, io::ErrorKind),
    /// How the connection ended, and what the server did if its HTTP was the reason.
    Closed(CloseReason, Option<ConnectionError>),
    /// How the exchange ended.
    Aborted(Abort),
}

impl Fault {
    /// The error where no connection has to be asked.
    pub fn of_network(address: SocketAddr, kind: io::ErrorKind) -> GetError {
        match kind {
            io::ErrorKind::ConnectionRefused => GetError::Refused(address),
            io::ErrorKind::TimedOut => GetError::Timeout(Silence::Connecting, 0),
            kind => GetError::Unreachable(address, kind.into()),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Network(address, kind) => write!(out, "{address}: {kind}"),
            Fault::Closed(reason, _) => write!(out, "the connection was closed: {reason:?}"),
            Fault::Aborted(abort) => write!(out, "the exchange was given up: {abort:?}"),
        }
    }
}

impl Error for Fault {}

/// What is known of a connection that ended.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionEnd<'a> {
    /// Who was asked.
    pub host: &'a str,
    /// How long a handshake may take, in seconds.
    pub connect_s: u64,
    /// How long silence may last, in seconds.
    pub silence_s: u64,
    /// What the server's HTTP was closed for by us.
    pub failure: Option<ConnectionError>,
}

impl ConnectionEnd<'_> {
    /// The error of every download on the connection.
    pub fn error(&self, reason: &CloseReason) -> GetError {
        match reason {
            CloseReason::Local { .. } => match self.failure {
                Some(failure) => GetError::Http(failure.to_string()),
                None => GetError::Broken("it was closed here".into()),
            },
            CloseReason::Tls { alert, reason } => self.tls(*alert, reason),
            CloseReason::PeerTransport { code, reason } => peer_transport(*code, reason),
            CloseReason::PeerApplication { code, reason } => {
                GetError::Broken(format!("the server closed it with {}", named(Code(*code), reason)))
            }
            CloseReason::Violation(error) => GetError::Quic(error.to_string()),
            CloseReason::IdleTimeout => GetError::Timeout(Silence::Transferring, self.silence_s),
            CloseReason::PathLost => GetError::Broken(
                "the server does not answer at its new address, and none other is known".into(),
            ),
            CloseReason::HandshakeTimeout => GetError::Timeout(Silence::Connecting, self.connect_s),
            CloseReason::StatelessReset => {
                GetError::Broken("the server knows it no more, as after a restart".into())
            }
            CloseReason::VersionNegotiation => {
                GetError::Broken("the server speaks neither version 1 nor version 2 of QUIC".into())
            }
        }
    }

    /// TLS failed on this side.
    fn tls(&self, alert: u8, reason: &str) -> GetError {
        let reason = reason.strip_prefix("TLS handshake failed: ").unwrap_or(reason);
        if !CERTIFICATE_ALERTS.contains(&alert) {
            return GetError::Tls(reason.into());
        }
        let what = reason.strip_prefix("the server's certificate ").unwrap_or(reason);
        let what = match what.split_once(": ") {
            Some(("is not from a trusted authority", _)) => {
                "it is not from a trusted authority; name its issuer with --cacert FILE, or test with --insecure".into()
            }
            Some((what, advice)) => format!("it {what}; {advice}"),
            None => what.into(),
        };
        GetError::Certificate(self.host.into(), what)
    }
}

fn peer_transport(code: TransportCode, reason: &str) -> GetError {
    let said = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
    match (code, code.alert()) {
        (_, Some(alert)) => of_tls(format!("{}{said}", refusal(alert))),
        (TransportCode::NO_ERROR, _) => GetError::Broken(format!("the server closed it{said}")),
        (TransportCode::CONNECTION_REFUSED, _) => {
            GetError::Broken(format!("the server takes no connections at present{said}"))
        }
        (code, _) => GetError::Broken(format!("the server closed it with {code}{said}")),
    }
}

/// The alert of a server to clients that show no certificate: certificate_required. Source: RFC 8446 §6.2.
const REQUIRED: u8 = 116;

const NO_CERTIFICATE: &str = "the server requires a client certificate";

/// An error of TLS as the command tells it.
pub(crate) fn of_tls(text: String) -> GetError {
    GetError::Tls(match text.strip_prefix(NO_CERTIFICATE) {
        Some(rest) => format!("{NO_CERTIFICATE}: show one by --cert FILE and --key FILE{rest}"),
        None => text,
    })
}

/// What a server says of the handshake by an alert. Source: RFC 8446 §6.2.
pub(crate) fn refusal(alert: u8) -> String {
    match alert {
        REQUIRED => NO_CERTIFICATE.into(),
        alert if CERTIFICATE_ALERTS.contains(&alert) => {
            format!("the server does not accept the client's certificate (TLS alert {alert})")
        }
        alert => format!("the server refuses the handshake with TLS alert {alert}"),
    }
}

fn named(code: Code, reason: &str) -> String {
    if reason.is_empty() { code.to_string() } else { format!("{code} ({reason})") }
}

/// Why an answer will not be completed; `owed` are the bytes that it announced and those that came.
pub(crate) fn of_abort(abort: Abort, owed: Option<(u64, u64)>) -> GetError {
    match (abort, owed) {
        (Abort::Local { reason: SHORT, .. }, Some((expected, received))) => {
            GetError::Short(expected, received)
        }
        (Abort::Local { reason, .. }, _) => GetError::Http(reason.into()),
        (Abort::Peer(code), _) => GetError::Broken(format!("the server gave up the answer with {code}")),
    }
}

/// A body whose stream ended within a frame: what a server that stops in the middle looks like when it closes in good order.
pub fn is_cut_short(failure: &ConnectionError) -> bool {
    failure.code == Code::FRAME_ERROR && failure.reason == CUT
}

/// The reason of a body that ended before its `content-length` (RFC 9114 §4.1.2).
pub const SHORT: &str = "content shorter than content-length";
const CUT: &str = "stream ends within a frame";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_in_words() {
        let ended = ConnectionEnd { host: "h", connect_s: 10, silence_s: 30, failure: None };
        let tls = |alert, reason: &str| ended.error(&CloseReason::Tls { alert, reason: reason.into() });
        let unknown = tls(
            48,
            "TLS handshake failed: the server's certificate is not from a trusted authority: trust its CA, or skip",
        );
        assert_eq!(unknown.exit_code(), 60);
        assert!(unknown.to_string().contains("with --cacert FILE"), "{unknown}");
        let name = tls(42, "the server's certificate is for another name: connect by a name that it lists");
        assert!(
            name.to_string().ends_with("it is for another name; connect by a name that it lists"),
            "{name}"
        );
        assert_eq!(tls(40, "TLS handshake failed: no suite").exit_code(), 35);
        let peer = |code| ended.error(&CloseReason::PeerTransport { code, reason: String::new() });
        assert_eq!(peer(TransportCode::crypto(40)).exit_code(), 35);
        assert_eq!(peer(TransportCode::CONNECTION_REFUSED).exit_code(), 56);
        assert_eq!(ended.error(&CloseReason::HandshakeTimeout).exit_code(), 28);
        assert_eq!(ended.error(&CloseReason::Local { code: 1 }).exit_code(), 56);
        let failure = Some(ConnectionError { code: Code::ID_ERROR, reason: "x" });
        assert_eq!(ConnectionEnd { failure, ..ended }.error(&CloseReason::Local { code: 1 }).exit_code(), 95);
        let short = Abort::Local { code: Code::MESSAGE_ERROR, reason: SHORT };
        assert_eq!(of_abort(short, Some((10, 5))).exit_code(), 18);
        assert_eq!(of_abort(short, None).exit_code(), 95);
        assert_eq!(of_abort(Abort::Peer(Code::INTERNAL_ERROR), Some((10, 5))).exit_code(), 56);
    }
}
