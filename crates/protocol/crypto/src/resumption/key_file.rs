//! The file of ticket keys that several servers share.
//!
//! One key a line: name and time from which it seals, then its secret (secret_file.rs).

use super::key_set::{KeySet, NAME_LEN, SECRET_LEN, TicketKey};
use super::secret_file::{Fault, Format, SecretFile, hex, unhex};
use core::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

const FORMAT: Format = Format { name: "tercel ticket keys", version: "1", max_len: 4_096, is_durable: true };

/// Why a file of ticket keys cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum TicketFileError {
    /// The system refuses to read or write it.
    System {
        /// Which file.
        path: PathBuf,
        /// What the operating system says.
        error: io::Error,
    },
    /// It holds something else.
    Foreign {
        /// Which file.
        path: PathBuf,
    },
    /// It is a file of ticket keys that is cut or was changed.
    Torn {
        /// Which file.
        path: PathBuf,
    },
    /// All users of the machine may read or write it.
    Exposed {
        /// Which file.
        path: PathBuf,
    },
}

impl TicketFileError {
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, TicketFileError::System { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}

impl fmt::Display for TicketFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TicketFileError::System { path, error } => {
                write!(f, "cannot use the ticket keys in {}: {error}", path.display())
            }
            TicketFileError::Foreign { path } => write!(
                f,
                "{} is no file of ticket keys of this version: name another file, which will be made",
                path.display()
            ),
            TicketFileError::Torn { path } => write!(
                f,
                "the ticket keys in {} are cut or changed: copy the file again from a server that has it whole, or remove it and \
                 restart the servers that share it",
                path.display()
            ),
            TicketFileError::Exposed { path } => write!(
                f,
                "all users can read or write the ticket keys in {}: remove the file, since its keys may be known, or allow its \
                 owner only (chmod 600)",
                path.display()
            ),
        }
    }
}

impl core::error::Error for TicketFileError {}

/// Where the keys are.
#[derive(Clone, Debug)]
pub(super) struct KeyFile(SecretFile);

impl KeyFile {
    pub(super) fn new(path: &Path) -> KeyFile {
        KeyFile(SecretFile::new(path, FORMAT))
    }

    fn error(&self, fault: Fault) -> TicketFileError {
        let path = self.0.path.clone();
        match fault {
            Fault::System(error) => TicketFileError::System { path, error },
            Fault::Foreign | Fault::OtherVersion => TicketFileError::Foreign { path },
            Fault::Torn => TicketFileError::Torn { path },
            Fault::Exposed => TicketFileError::Exposed { path },
        }
    }

    pub(super) fn read(&self) -> Result<KeySet, TicketFileError> {
        let text = self.0.read().map_err(|fault| self.error(fault))?;
        parse(&text).ok_or_else(|| self.error(Fault::Torn))
    }

    /// Makes the file. If another server has made it meanwhile, its keys count.
    pub(super) fn create(&self, keys: &KeySet) -> Result<KeySet, TicketFileError> {
        match self.0.create(&print(keys)) {
            Ok(()) => Ok(keys.clone()),
            Err(Fault::System(error)) if error.kind() == io::ErrorKind::AlreadyExists => self.read(),
            Err(fault) => Err(self.error(fault)),
        }
    }

    /// Puts these keys in the place of those in the file.
    pub(super) fn replace(&self, keys: &KeySet) -> Result<(), TicketFileError> {
        self.0.replace(&print(keys)).map_err(|fault| self.error(fault))
    }
}

fn print(KeySet(keys): &KeySet) -> Zeroizing<String> {
    let lines = keys.iter().map(|key| format!("{} {} {}\n", hex(&key.name), key.from_s, hex(&*key.secret)));
    Zeroizing::new(lines.collect())
}

fn parse(text: &str) -> Option<KeySet> {
    let keys = text.lines().map(|line| {
        let mut words = line.split(' ');
        let name: [u8; NAME_LEN] = unhex(words.next()?)?.try_into().ok()?;
        let from_s = words.next()?.parse().ok()?;
        let secret: [u8; SECRET_LEN] = unhex(words.next()?)?.try_into().ok()?;
        words.next().is_none().then(|| Arc::new(TicketKey::new(name, from_s, secret)))
    });
    let mut keys: Vec<_> = keys.collect::<Option<_>>()?;
    keys.sort_by_key(|key| key.from_s);
    Some(KeySet(keys))
}
