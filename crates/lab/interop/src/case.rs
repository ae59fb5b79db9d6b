//! The names of the cases, and what they ask of an end. Source: the public runner's `TESTCASE_CLIENT` and `TESTCASE_SERVER`.

use crate::{Error, HANDSHAKE_TIMEOUT, PROTOCOL};
use crypto::{KeyLog, Suite, SuiteChoice, TlsOptions};
use quic::{QuicVersion, Scheduler, TransportConfig};
use std::fmt;
use std::str::FromStr;

/// What an end does beside transferring files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Nothing: all files over one connection.
    Transfer,
    /// It offers, or takes, ChaCha20-Poly1305 and nothing else.
    ChaCha20,
    /// The server answers the first packet with Retry.
    Retry,
    /// A second connection resumes the first, which fetches one file.
    Resumption,
    /// The same, and the second one asks with its first packets.
    ZeroRtt,
    /// The client updates its keys early in the transfer.
    KeyUpdate,
    /// A connection for each file.
    MultiConnect,
    /// The client moves to another address in the middle of the transfer.
    ConnectionMigration,
    /// The server moves a client that begins with version 1 of QUIC to version 2.
    Version2,
    /// The client uses a path from another address beside the first one. Not one of the public runner's.
    Multipath,
}

/// A case that tercel does not offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCase(String);

impl fmt::Display for UnknownCase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "case {} is not offered", self.0)
    }
}

impl core::error::Error for UnknownCase {}

impl FromStr for Case {
    type Err = UnknownCase;

    fn from_str(name: &str) -> Result<Case, UnknownCase> {
        Ok(match name {
            "handshake" | "transfer" | "ecn" => Case::Transfer,
            "chacha20" => Case::ChaCha20,
            "retry" => Case::Retry,
            "resumption" => Case::Resumption,
            "zerortt" => Case::ZeroRtt,
            "keyupdate" => Case::KeyUpdate,
            "multiconnect" => Case::MultiConnect,
            "connectionmigration" => Case::ConnectionMigration,
            "v2" => Case::Version2,
            "multipath" => Case::Multipath,
            _ => return Err(UnknownCase(name.to_owned())),
        })
    }
}

impl Case {
    /// The handshake's settings. Secrets go where SSLKEYLOGFILE says.
    pub(crate) fn tls(self) -> TlsOptions {
        let suites = match self {
            Case::ChaCha20 => SuiteChoice::Only(Suite::ChaCha20Poly1305),
            _ => SuiteChoice::All,
        };
        let alpn = vec![PROTOCOL.to_vec()];
        TlsOptions { alpn, suites, key_log: KeyLog::Environment, ..TlsOptions::default() }
    }

    /// What both ends agree on.
    pub(crate) fn transport(self) -> TransportConfig {
        let mut transport = TransportConfig::default();
        transport.handshake_timeout(HANDSHAKE_TIMEOUT);
        // A handshake without an answer ends by this timeout, too.
        transport.max_idle_timeout(Some(HANDSHAKE_TIMEOUT));
        transport.preferred_version((self == Case::Version2).then_some(QuicVersion::V2));
        transport.multipath((self == Case::Multipath).then_some(Scheduler::LowestRtt));
        transport
    }
}

/// The path of a request: what follows `GET `, without its slash and the end of the line.
pub(crate) fn requested(request: &[u8]) -> Result<&str, Error> {
    let line = core::str::from_utf8(request)?.trim_end();
    let path = line.strip_prefix("GET /").ok_or("a request that is not GET /PATH")?;
    let is_plain =
        !path.is_empty() && path.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    if is_plain { Ok(path) } else { Err("a path that leads nowhere".into()) }
}
