//! Why a connection ended, in words for the user of the client.

use std::net::SocketAddr;
use transport::CloseReason;

/// TLS's alert no_application_protocol. Source: RFC 7301 §3.2.
const NO_PROTOCOL: u8 = 120;

/// One line.
pub(super) fn words(address: SocketAddr, reason: &CloseReason) -> String {
    let said = |reason: &str| if reason.is_empty() { String::new() } else { format!(" ({reason})") };
    match reason {
        CloseReason::Local { .. } => format!("the connection to {address} was closed here"),
        CloseReason::PeerApplication { code, reason } => {
            format!("{address} closed the connection with code {code}{}", said(reason))
        }
        CloseReason::PeerTransport { code, .. } if code.alert() == Some(NO_PROTOCOL) => {
            format!("{address} does not speak the perf protocol: is it tercel perf serve?")
        }
        CloseReason::PeerTransport { code, reason } => {
            format!("{address} closed the connection with {code}{}", said(reason))
        }
        CloseReason::Tls { reason, .. } => format!("TLS with {address} failed: {reason}"),
        CloseReason::Violation(error) => format!("{address} broke the rules of QUIC: {error}"),
        CloseReason::IdleTimeout => format!("nothing was heard of {address} any more"),
        CloseReason::PathLost => format!("{address} does not answer at its new address"),
        CloseReason::HandshakeTimeout => format!("{address} does not answer"),
        CloseReason::StatelessReset => format!("{address} knows the connection no more, as after a restart"),
        CloseReason::VersionNegotiation => {
            format!("{address} speaks neither version 1 nor version 2 of QUIC")
        }
    }
}
