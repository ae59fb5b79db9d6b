//! Why a TLS configuration cannot be used: one line each, which says what to do.

use core::fmt;
use std::io;
use std::path::PathBuf;

/// A TLS configuration that cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file cannot be read.
    Unreadable {
        /// What should be in it.
        what: &'static str,
        /// Where it should be.
        path: PathBuf,
        /// What the operating system says.
        error: io::Error,
    },
    /// There is no certificate in the PEM text.
    NoCertificate,
    /// There is no private key in the PEM text.
    NoKey,
    /// The PEM text is damaged.
    BadPem {
        /// What should be in it.
        what: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The certificate is not one that TLS can use.
    BadCertificate(String),
    /// The private key is not one that TLS can use.
    BadKey(String),
    /// The private key belongs to another certificate.
    KeyMismatch,
    /// No trusted authority is known.
    NoRoots(String),
    /// The configurations of Encrypted Client Hello are no use.
    Ech(String),
    /// The key log cannot be written.
    KeyLog {
        /// Where.
        path: PathBuf,
        /// What the operating system says.
        error: io::Error,
    },
    /// A name for a certificate is no DNS name.
    BadName(String),
    /// rustls refuses the configuration.
    Refused(String),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Unreadable { what, path, error } if error.kind() == io::ErrorKind::NotFound => {
                write!(f, "{what} file {} does not exist: check the path", path.display())
            }
            ConfigError::Unreadable { what, path, error } => {
                write!(f, "cannot read {what} file {}: {error}", path.display())
            }
            ConfigError::NoCertificate => {
                f.write_str("no certificate found: the file must contain a BEGIN CERTIFICATE block in PEM format")
            }
            ConfigError::NoKey => {
                f.write_str("no private key found: the file must contain a BEGIN PRIVATE KEY block in PEM format")
            }
            ConfigError::BadPem { what, reason } => {
                write!(f, "the {what} is not valid PEM ({reason}): export it again in PEM format")
            }
            ConfigError::BadCertificate(reason) => {
                write!(f, "the certificate cannot be used ({reason}): give an X.509 version 3 certificate")
            }
            ConfigError::BadKey(reason) => {
                write!(f, "the private key cannot be used ({reason}): give an unencrypted ECDSA, Ed25519 or RSA key")
            }
            ConfigError::KeyMismatch => f.write_str(
                "the private key does not belong to the certificate: give the key that the certificate was issued for, \
                 and the chain with the server's own certificate first",
            ),
            ConfigError::NoRoots(reason) => {
                write!(f, "no trusted certificate authority found ({reason}): install ca-certificates or give a CA file")
            }
            ConfigError::Ech(reason) => {
                write!(f, "the ECHConfigList cannot be used ({reason}): take the value of ech= in the name's HTTPS record")
            }
            ConfigError::KeyLog { path, error } => {
                write!(f, "cannot write key log {}: {error}: set SSLKEYLOGFILE to a writable file or unset it", path.display())
            }
            ConfigError::BadName(name) => {
                write!(f, "{name:?} is no DNS name: give one such as example.org or *.example.org")
            }
            ConfigError::Refused(reason) => write!(f, "the TLS settings cannot work together: {reason}"),
        }
    }
}

impl core::error::Error for ConfigError {}
