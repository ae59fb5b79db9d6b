//! What both ends of a connection may choose.

use super::client_auth::ClientAuth;
use super::ech::Ech;
use super::error::ConfigError;
use super::identity::Identity;
use super::key_lines::{Both, KeyLines};
use super::keylog::KeyLogFile;
use crate::key_capture::{suite_of, tls_suite};
use crate::suite::SuiteChoice;
use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::kx_group;
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// Settings of the TLS handshake, for clients and servers.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// Application protocols, the preferred one first. QUIC does not do without (RFC 9001 §8.1). Default: `h3`.
    pub alpn: Vec<Vec<u8>>,
    /// Cipher suites. Default: all.
    pub suites: SuiteChoice,
    /// Key exchange. Default: post-quantum preferred.
    pub key_exchange: KeyExchange,
    /// Where secrets are logged. Default: nowhere.
    pub key_log: KeyLog,
    /// What keeps the lines of such a log for a capture, too. Default: nothing.
    pub key_lines: Option<KeyLines>,
    /// A client's certificate and key, for servers that ask for one. Default: none. It means nothing to a server.
    pub client_identity: Option<Identity>,
    /// Whether a server asks clients for a certificate. Default: it does not. It means nothing to a client.
    pub client_auth: ClientAuth,
    /// Whether a client hides the name of the server. Default: it does not. It means nothing to a server.
    pub ech: Ech,
}

impl Default for TlsOptions {
    fn default() -> TlsOptions {
        TlsOptions {
            alpn: vec![b"h3".to_vec()],
            suites: SuiteChoice::All,
            key_exchange: KeyExchange::PostQuantum,
            key_log: KeyLog::Off,
            key_lines: None,
            client_identity: None,
            client_auth: ClientAuth::Off,
            ech: Ech::Off,
        }
    }
}

/// How the ends agree on a secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyExchange {
    /// X25519MLKEM768 where the peer knows it, else X25519 and the NIST curves. A client's first flight takes two packets.
    #[default]
    PostQuantum,
    /// X25519 and nothing else: less CPU and a first flight of one packet.
    X25519,
}

/// Where the secrets of connections are written, for dissectors. With them a reader decrypts the connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeyLog {
    /// Nowhere.
    #[default]
    Off,
    /// To the file that the environment variable SSLKEYLOGFILE names, if it is set.
    Environment,
    /// To this file.
    File(PathBuf),
}

impl KeyLog {
    /// Opens the log; `None` if there is none to write.
    fn open(&self) -> Result<Option<Arc<dyn rustls::KeyLog>>, ConfigError> {
        let path = match self {
            KeyLog::Off => None,
            KeyLog::Environment => {
                let set = |path: &OsString| !path.is_empty();
                std::env::var_os("SSLKEYLOGFILE").filter(set).map(PathBuf::from)
            }
            KeyLog::File(path) => Some(path.clone()),
        };
        match path {
            Some(path) => Ok(Some(Arc::new(KeyLogFile::open(&path)?))),
            None => Ok(None),
        }
    }
}

impl TlsOptions {
    /// Opens what secrets are logged to; `None` if they are not.
    pub(super) fn open_key_log(&self) -> Result<Option<Arc<dyn rustls::KeyLog>>, ConfigError> {
        let lines = self.key_lines.clone().map(|lines| Arc::new(lines) as Arc<dyn rustls::KeyLog>);
        Ok(match (self.key_log.open()?, lines) {
            (Some(file), Some(lines)) => Some(Arc::new(Both(file, lines))),
            (file, lines) => file.or(lines),
        })
    }

    /// The algorithms that these options leave to QUIC.
    pub(super) fn provider(&self) -> Arc<CryptoProvider> {
        Arc::new(CryptoProvider {
            cipher_suites: self.suites.suites().into_iter().map(tls_suite).collect(),
            kx_groups: self.groups(),
            ..library()
        })
    }

    /// The algorithms that these options leave to TLS over TCP: the library's suites as they are, and those of TLS 1.2 unless
    /// one of TLS 1.3 was asked for.
    pub(super) fn tcp_provider(&self) -> Arc<CryptoProvider> {
        let library = library();
        let chosen = self.suites.suites();
        let is_chosen = |suite: &SupportedCipherSuite| match suite_of(suite.suite()) {
            Some(suite) => chosen.contains(&suite),
            None => self.suites == SuiteChoice::All,
        };
        let mut cipher_suites: Vec<_> = library.cipher_suites.iter().copied().filter(is_chosen).collect();
        // Those of TLS 1.3 in the order of QUIC, which is that of speed on this machine.
        let rank = |suite: &SupportedCipherSuite| {
            let known = suite_of(suite.suite());
            chosen.iter().position(|suite| Some(*suite) == known).unwrap_or(chosen.len())
        };
        cipher_suites.sort_by_key(rank);
        Arc::new(CryptoProvider { cipher_suites, kx_groups: self.groups(), ..library })
    }

    fn groups(&self) -> Vec<&'static dyn SupportedKxGroup> {
        match self.key_exchange {
            KeyExchange::PostQuantum => {
                vec![kx_group::X25519MLKEM768, kx_group::X25519, kx_group::SECP256R1, kx_group::SECP384R1]
            }
            KeyExchange::X25519 => vec![kx_group::X25519],
        }
    }

    /// Refuses what cannot work.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        //= rfc9001/8.1#1
        if self.alpn.is_empty() || self.alpn.iter().any(|name| name.is_empty() || name.len() > 255) {
            return Err(ConfigError::Refused(
                "name at least one application protocol of 1 to 255 bytes".into(),
            ));
        }
        Ok(())
    }
}

/// The algorithms of the library. Its first random number in a process takes tens of milliseconds, in which the kernel's are
/// mixed with the jitter of this CPU: that is paid here, or the first handshake would be slow, and measured so.
fn library() -> CryptoProvider {
    let library = rustls::crypto::aws_lc_rs::default_provider();
    // Whether there are any is told by the handshake that needs them.
    let _ = library.secure_random.fill(&mut [0; 1]);
    library
}
