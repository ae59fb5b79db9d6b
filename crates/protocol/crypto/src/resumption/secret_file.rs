//! Files of secrets: text whose first line says what it is, and whose last line is a digest of all before it.
//!
//! A file is replaced as a whole, by renaming a new one over it, with permissions for its owner alone. So a reader finds the old
//! file or the new one; a file that was cut or changed by a person is told by its digest. Invariant: a file that is not whole, or is of
//! something else, is never written to.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use zeroize::Zeroizing;

/// The bits that let all users read, write or run.
const OTHERS: u32 = 0o007;

/// Why a file cannot be used.
#[derive(Debug)]
pub(super) enum Fault {
    /// The system refuses to read or write it.
    System(io::Error),
    /// It holds something else.
    Foreign,
    /// It is of this kind, in another version of the format.
    OtherVersion,
    /// It is cut or was changed.
    Torn,
    /// All users of the machine may read or write it.
    Exposed,
}

/// What a file holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    /// The beginning of the first line.
    pub(super) name: &'static str,
    /// The rest of it.
    pub(super) version: &'static str,
    /// The longest file that is read, in bytes.
    pub(super) max_len: u64,
    /// Whether it must outlive a failure of the machine, for which each change waits for the disk.
    pub(super) is_durable: bool,
}

/// A file of this kind.
#[derive(Clone, Debug)]
pub(super) struct SecretFile {
    pub(super) path: PathBuf,
    format: Format,
}

impl SecretFile {
    pub(super) fn new(path: &Path, format: Format) -> SecretFile {
        SecretFile { path: path.to_owned(), format }
    }

    /// The lines between the first and the last.
    pub(super) fn read(&self) -> Result<Zeroizing<String>, Fault> {
        let file = File::open(&self.path).map_err(Fault::System)?;
        let about = file.metadata().map_err(Fault::System)?;
        if !about.is_file() {
            return Err(Fault::Foreign);
        }
        if about.mode() & OTHERS != 0 {
            return Err(Fault::Exposed);
        }
        let mut bytes = Zeroizing::new(Vec::new());
        file.take(self.format.max_len).read_to_end(&mut bytes).map_err(Fault::System)?;
        let text = core::str::from_utf8(&bytes).ok().filter(|text| text.starts_with(self.format.name));
        self.body(text.ok_or(Fault::Foreign)?).map(|body| Zeroizing::new(body.to_owned()))
    }

    fn body<'a>(&self, text: &'a str) -> Result<&'a str, Fault> {
        let Some((first, _)) = text.split_once('\n') else { return Err(Fault::Torn) };
        let version = first.get(self.format.name.len()..).unwrap_or_default();
        if version.trim_start() != self.format.version {
            return Err(Fault::OtherVersion);
        }
        let (body, end) = text.rsplit_once("end ").ok_or(Fault::Torn)?;
        let is_whole = end.strip_suffix('\n') == Some(&digest(body));
        body.get(first.len() + 1..).filter(|_| is_whole).ok_or(Fault::Torn)
    }

    /// Makes the file. If another process has made it meanwhile, that one stays, and this is an error of the kind `AlreadyExists`.
    pub(super) fn create(&self, body: &str) -> Result<(), Fault> {
        let made = self.write_beside(body)?;
        let linked = std::fs::hard_link(&made, &self.path);
        let removed = std::fs::remove_file(&made);
        linked.and(removed).map_err(Fault::System)
    }

    /// Puts these lines in the place of those in the file.
    pub(super) fn replace(&self, body: &str) -> Result<(), Fault> {
        let made = self.write_beside(body)?;
        std::fs::rename(&made, &self.path).map_err(|error| {
            // The error that matters is the first.
            let _ = std::fs::remove_file(&made);
            Fault::System(error)
        })
    }

    /// Writes a file beside the real one, to be renamed.
    fn write_beside(&self, body: &str) -> Result<PathBuf, Fault> {
        static FILES: AtomicU32 = AtomicU32::new(0);
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}-{number}.new", std::process::id()));
        let path = self.path.with_file_name(name);
        let mut options = OpenOptions::new();
        // One that an earlier process of the same number has left is overwritten.
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
        let text = Zeroizing::new(format!("{} {}\n{body}", self.format.name, self.format.version));
        let written = file.and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.write_all(format!("end {}\n", digest(&text)).as_bytes())?;
            if self.format.is_durable { file.sync_all() } else { Ok(()) }
        });
        written.map(|()| path.clone()).map_err(|error| {
            let _ = std::fs::remove_file(&path);
            Fault::System(error)
        })
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use core::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let byte = |pair| u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(byte).collect()
}

fn digest(text: &str) -> String {
    hex(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes()).as_ref())
}
