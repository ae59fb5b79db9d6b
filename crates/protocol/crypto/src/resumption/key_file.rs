//! The file of ticket keys that several servers share.
//!
//! Text, one key a line: name and time from which it seals, then its secret; the last line is a digest of all before it. A
//! file is replaced as a whole, by renaming a new one over it, with permissions for its owner alone. So a reader finds the old
//! file or the new one; a file that was cut or changed by a person is told by its digest, and is never overwritten.

use super::key_set::{KeySet, NAME_LEN, SECRET_LEN, TicketKey};
use core::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use zeroize::Zeroizing;

const HEAD: &str = "tercel ticket keys 1";
/// The longest file that is read, in bytes.
const MAX_LEN: u64 = 4_096;
/// The bits that let all users read, write or run.
const OTHERS: u32 = 0o007;

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
pub(super) struct KeyFile {
    path: PathBuf,
}

impl KeyFile {
    pub(super) fn new(path: &Path) -> KeyFile {
        KeyFile { path: path.to_owned() }
    }

    fn system(&self, error: io::Error) -> TicketFileError {
        TicketFileError::System { path: self.path.clone(), error }
    }

    pub(super) fn read(&self) -> Result<KeySet, TicketFileError> {
        let file = File::open(&self.path).map_err(|error| self.system(error))?;
        let about = file.metadata().map_err(|error| self.system(error))?;
        if !about.is_file() {
            return Err(TicketFileError::Foreign { path: self.path.clone() });
        }
        if about.mode() & OTHERS != 0 {
            return Err(TicketFileError::Exposed { path: self.path.clone() });
        }
        let mut bytes = Zeroizing::new(Vec::new());
        file.take(MAX_LEN).read_to_end(&mut bytes).map_err(|error| self.system(error))?;
        let Some(text) = core::str::from_utf8(&bytes).ok().filter(|text| text.starts_with(HEAD)) else {
            return Err(TicketFileError::Foreign { path: self.path.clone() });
        };
        parse(text).ok_or_else(|| TicketFileError::Torn { path: self.path.clone() })
    }

    /// Makes the file. If another server has made it meanwhile, its keys count.
    pub(super) fn create(&self, keys: &KeySet) -> Result<KeySet, TicketFileError> {
        let made = self.write_beside(keys)?;
        let linked = std::fs::hard_link(&made, &self.path);
        let removed = std::fs::remove_file(&made);
        match linked {
            Ok(()) => removed.map(|()| keys.clone()).map_err(|error| self.system(error)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.read(),
            Err(error) => Err(self.system(error)),
        }
    }

    /// Puts these keys in the place of those in the file.
    pub(super) fn replace(&self, keys: &KeySet) -> Result<(), TicketFileError> {
        let made = self.write_beside(keys)?;
        std::fs::rename(&made, &self.path).map_err(|error| {
            // The error that matters is the first.
            let _ = std::fs::remove_file(&made);
            self.system(error)
        })
    }

    /// Writes a file beside the real one, to be renamed.
    fn write_beside(&self, keys: &KeySet) -> Result<PathBuf, TicketFileError> {
        static FILES: AtomicU32 = AtomicU32::new(0);
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}-{number}.new", std::process::id()));
        let path = self.path.with_file_name(name);
        let mut options = OpenOptions::new();
        // One that an earlier process of the same number has left is overwritten.
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
        let text = Zeroizing::new(print(keys));
        let written = file.and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.map(|()| path.clone()).map_err(|error| {
            let _ = std::fs::remove_file(&path);
            self.system(error)
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    use core::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

fn digest(text: &str) -> String {
    hex(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes()).as_ref())
}

fn print(KeySet(keys): &KeySet) -> String {
    let mut text = format!("{HEAD}\n");
    for key in keys {
        text.push_str(&format!("{} {} {}\n", hex(&key.name), key.from_s, hex(&*key.secret)));
    }
    let end = digest(&text);
    text + "end " + &end + "\n"
}

fn parse(text: &str) -> Option<KeySet> {
    let (body, end) = text.rsplit_once("end ")?;
    if end.strip_suffix('\n')? != digest(body) {
        return None;
    }
    let mut lines = body.lines();
    if lines.next()? != HEAD {
        return None;
    }
    let keys = lines.map(|line| {
        let mut words = line.split(' ');
        let name = unhex::<NAME_LEN>(words.next()?)?;
        let from_s = words.next()?.parse().ok()?;
        let secret = unhex::<SECRET_LEN>(words.next()?)?;
        words.next().is_none().then(|| Arc::new(TicketKey::new(name, from_s, secret)))
    });
    let mut keys: Vec<_> = keys.collect::<Option<_>>()?;
    keys.sort_by_key(|key| key.from_s);
    Some(KeySet(keys))
}
