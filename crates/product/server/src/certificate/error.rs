//! What can be wrong with a certificate, each in one line that says what to do.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Which of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `--cert`
    Certificate,
    /// `--key`
    Key,
}

impl Role {
    fn flag(self) -> &'static str {
        match self {
            Role::Certificate => "--cert",
            Role::Key => "--key",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Role::Certificate => "certificate",
            Role::Key => "private key",
        }
    }
}

/// Why there is no usable certificate.
#[derive(Debug)]
pub enum CertificateError {
    /// A file cannot be read.
    Unreadable(Role, PathBuf, io::Error),
    /// A file is no PEM, or damaged.
    NotPem(Role, PathBuf),
    /// A PEM file without what its flag promises, but with what the other flag wants.
    Swapped(Role, PathBuf),
    /// The key is protected by a passphrase.
    Encrypted(PathBuf),
    /// The certificate cannot be parsed.
    Damaged(PathBuf),
    /// The key is not that of the certificate.
    Mismatch {
        /// The certificate file.
        certificate: PathBuf,
        /// The key file.
        key: PathBuf,
    },
    /// There is no place for the development certificate.
    NoFolder,
    /// The development certificate cannot be kept in its place.
    Store(PathBuf, io::Error),
    /// The development certificate cannot be made.
    Generate(rcgen::Error),
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const INSTEAD: &str = "or give a certificate with --cert and --key";
        match self {
            CertificateError::Unreadable(role, path, error) => {
                let (noun, flag, path) = (role.noun(), role.flag(), path.display());
                match error.kind() {
                    io::ErrorKind::NotFound => {
                        write!(f, "the {noun} file {path} does not exist: give {flag} the path of a PEM file")
                    }
                    io::ErrorKind::PermissionDenied => write!(
                        f,
                        "the {noun} file {path} may not be read by this user: change its owner or permissions"
                    ),
                    io::ErrorKind::IsADirectory => {
                        write!(
                            f,
                            "cannot read the {noun} file {path}, which is a folder: give {flag} a file in it"
                        )
                    }
                    _ => write!(f, "cannot read the {noun} file {path}: {}", brief(error)),
                }
            }
            CertificateError::NotPem(role, path) => write!(
                f,
                "{} is not a PEM file with a {}: {} takes text that begins with \"-----BEGIN\"",
                path.display(),
                role.noun(),
                role.flag()
            ),
            CertificateError::Swapped(role, path) => {
                let other = if *role == Role::Key { Role::Certificate } else { Role::Key };
                let (path, noun, other, flag) = (path.display(), role.noun(), other.noun(), role.flag());
                write!(f, "{path} holds a {other} and no {noun}: give {flag} the file with the {noun}")
            }
            CertificateError::Encrypted(path) => write!(
                f,
                "the private key in {} has a passphrase: remove it with \"openssl pkey -in FILE -out NEW\" and use NEW",
                path.display()
            ),
            CertificateError::Damaged(path) => {
                write!(
                    f,
                    "the certificate in {} cannot be parsed: get it again from its issuer",
                    path.display()
                )
            }
            CertificateError::Mismatch { certificate, key } => write!(
                f,
                "the key in {} is not the key of the certificate in {}: give the pair that was issued together",
                key.display(),
                certificate.display()
            ),
            CertificateError::NoFolder => {
                write!(
                    f,
                    "no place for the development certificate: set HOME or XDG_DATA_HOME, name a folder with --state-dir, {INSTEAD}"
                )
            }
            CertificateError::Store(path, error) => {
                let path = path.display();
                write!(
                    f,
                    "cannot keep the development certificate in {path}: {}; make it writable, {INSTEAD}",
                    brief(error)
                )
            }
            CertificateError::Generate(error) => {
                write!(f, "cannot make a development certificate: {error}; {INSTEAD}")
            }
        }
    }
}

impl std::error::Error for CertificateError {}

/// The system's words without "(os error 13)".
pub(crate) fn brief(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_string()
}
