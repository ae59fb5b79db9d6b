//! What all servers of a study share: files, a certificate, settings.

use std::io;
use std::path::{Path, PathBuf};

use bench::folder::Folder;

/// Study E4's file: its name and its size in bytes.
pub const SMALL: (&str, u64) = ("small", 630);
/// Study E5's file.
pub const LARGE: (&str, u64) = ("large", 10_000_000);

/// Names for which the certificate is.
const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

/// A folder for everything that servers read and write; it goes when its owner does.
#[derive(Debug)]
pub struct Ground {
    folder: Folder,
}

/// The same for who only reads: where things are, and what all are told.
#[derive(Clone, Debug)]
pub struct Site {
    /// Configurations, logs.
    pub folder: PathBuf,
    /// The files that are served.
    pub files: PathBuf,
    /// The certificate, PEM.
    pub certificate: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
    /// Bytes of UDP payload in full packets.
    pub payload_size: u16,
}

impl Ground {
    /// Writes files and certificate.
    ///
    /// # Errors
    /// The folder for temporary files cannot be written.
    pub fn prepare() -> io::Result<Ground> {
        let ground = Ground { folder: Folder::make()? };
        let site = ground.site(0);
        std::fs::create_dir_all(&site.files)?;
        for (name, size) in [SMALL, LARGE] {
            std::fs::write(site.files.join(name), content(size))?;
        }
        let broken = |error: rcgen::Error| io::Error::other(format!("cannot make a certificate: {error}"));
        let made = rcgen::generate_simple_self_signed(NAMES.map(str::to_owned)).map_err(broken)?;
        std::fs::write(&site.certificate, made.cert.pem())?;
        std::fs::write(&site.key, made.signing_key.serialize_pem())?;
        Ok(ground)
    }

    /// For servers whose full packets have this UDP payload.
    pub fn site(&self, payload_size: u16) -> Site {
        let at = |name: &str| self.folder.path().join(name);
        Site {
            folder: self.folder.path().to_owned(),
            files: at("files"),
            certificate: at("cert.pem"),
            key: at("key.pem"),
            payload_size,
        }
    }
}

impl Site {
    /// The path of a file that does not exist.
    pub fn fresh(&self, name: &str) -> PathBuf {
        let path = self.folder.join(name);
        let _ = std::fs::remove_file(&path);
        path
    }

    /// A path as configurations write it.
    pub fn shown(path: &Path) -> String {
        path.display().to_string()
    }
}

/// As in generated bodies, so that it does not compress.
fn content(size: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size as usize + base::pattern::PERIOD);
    while (bytes.len() as u64) < size {
        bytes.extend_from_slice(base::pattern::at(bytes.len() as u64));
    }
    bytes.truncate(size as usize);
    bytes
}
