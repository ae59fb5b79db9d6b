//! How a request, or a connection that should have carried some, can fail: a short list of names to count under.

use http3::{Abort, ConnectionError};
use serde::Serialize;
use std::collections::BTreeMap;
use transport::CloseReason;

use client::fault::{self, CERTIFICATE_ALERTS};

/// A kind of failure. The names are those of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// No server listens at the address (any more), or there is no way to it.
    Refused,
    /// No answer in time, or none to the handshake.
    Timeout,
    /// The server reset the stream of this request, or over TCP the connection.
    Reset,
    /// The connection ended before the answer was complete.
    Closed,
    /// The answer was complete and its status 400 or more.
    Status,
    /// The content ended before its announced length.
    ShortBody,
    /// The server's certificate is not trusted.
    Certificate,
    /// The TLS handshake failed otherwise.
    Tls,
    /// The server broke the rules of HTTP or QUIC, does not speak the version that was asked for, or takes no head of that
    /// size.
    Protocol,
    /// This machine had no socket left to give: ports, or open files.
    Local,
}

impl Failure {
    /// All of them, in order of declaration.
    pub const ALL: [Failure; 10] = [
        Failure::Refused,
        Failure::Timeout,
        Failure::Reset,
        Failure::Closed,
        Failure::Status,
        Failure::ShortBody,
        Failure::Certificate,
        Failure::Tls,
        Failure::Protocol,
        Failure::Local,
    ];

    /// The name, for people.
    pub const fn name(self) -> &'static str {
        match self {
            Failure::Refused => "refused",
            Failure::Timeout => "timeout",
            Failure::Reset => "reset",
            Failure::Closed => "closed",
            Failure::Status => "bad status",
            Failure::ShortBody => "short body",
            Failure::Certificate => "certificate",
            Failure::Tls => "TLS",
            Failure::Protocol => "protocol",
            Failure::Local => "no socket",
        }
    }

    /// Why an answer will not be completed.
    pub(super) fn of_abort(abort: Abort) -> Failure {
        match abort {
            Abort::Peer(_) => Failure::Reset,
            Abort::Local { reason, .. } if reason == fault::SHORT => Failure::ShortBody,
            Abort::Local { .. } => Failure::Protocol,
        }
    }

    /// What the end of a connection means to what was asked on it. `failure` is why we closed it ourselves, if we did.
    pub(super) fn of_close(reason: &CloseReason, failure: Option<&ConnectionError>) -> Failure {
        match reason {
            CloseReason::Local { .. } => match failure {
                Some(error) if fault::is_cut_short(error) => Failure::ShortBody,
                Some(_) => Failure::Protocol,
                None => Failure::Closed,
            },
            CloseReason::PeerApplication { .. } | CloseReason::StatelessReset => Failure::Closed,
            CloseReason::PeerTransport { code, .. } if code.alert().is_some() => Failure::Tls,
            CloseReason::PeerTransport { .. } => Failure::Closed,
            CloseReason::Tls { alert, .. } if CERTIFICATE_ALERTS.contains(alert) => Failure::Certificate,
            CloseReason::Tls { .. } => Failure::Tls,
            CloseReason::IdleTimeout | CloseReason::PathLost | CloseReason::HandshakeTimeout => {
                Failure::Timeout
            }
            CloseReason::Violation(_) | CloseReason::VersionNegotiation => Failure::Protocol,
        }
    }
}

/// A count for each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerFailure([u64; Failure::ALL.len()]);

impl PerFailure {
    /// One more, or several.
    pub fn add(&mut self, failure: Failure, count: u64) {
        if let Some(place) = self.0.get_mut(failure as usize) {
            *place += count;
        }
    }

    /// How many of a kind.
    pub fn of(&self, failure: Failure) -> u64 {
        self.0.get(failure as usize).copied().unwrap_or(0)
    }

    /// Of all kinds.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Takes in another's counts.
    pub fn merge(&mut self, other: &PerFailure) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Those that occurred.
    pub fn iter(&self) -> impl Iterator<Item = (Failure, u64)> + '_ {
        Failure::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }
}

impl Serialize for PerFailure {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.iter().collect::<BTreeMap<Failure, u64>>().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each kind has a place of its own: deleted, two kinds could be counted as one.
    #[test]
    fn every_kind_is_counted_by_itself() {
        let mut counts = PerFailure::default();
        for (index, kind) in Failure::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
            counts.add(kind, index as u64 + 1);
        }
        assert!(Failure::ALL.into_iter().enumerate().all(|(at, kind)| counts.of(kind) == at as u64 + 1));
        assert_eq!((counts.total(), counts.iter().count()), (55, 10));
        let mut twice = counts;
        twice.merge(&counts);
        assert_eq!(twice.total(), 110);
        assert_eq!(
            serde_json::to_string(&{
                let mut one = PerFailure::default();
                one.add(Failure::ShortBody, 2);
                one
            })
            .unwrap(),
            r#"{"short_body":2}"#
        );
    }
}
