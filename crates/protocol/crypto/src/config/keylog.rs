//! Secrets of connections written to a file, so that a dissector can read a capture. The NSS key log format.
//!
//! Each line is one write to a file opened for appending: several processes and both ends of a connection may share it. A
//! file that is made here is for its owner alone, since it opens every connection; one that exists keeps its mode.

use super::error::ConfigError;
use core::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// An open key log.
#[derive(Debug)]
pub(super) struct KeyLogFile(File);

impl KeyLogFile {
    pub(super) fn open(path: &Path) -> Result<KeyLogFile, ConfigError> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
        file.map(KeyLogFile).map_err(|error| ConfigError::KeyLog { path: path.to_owned(), error })
    }
}

impl rustls::KeyLog for KeyLogFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        // A log that cannot be written must not break the connection it describes.
        let _ = (&self.0).write_all(line(label, client_random, secret).as_bytes());
    }
}

/// A line of the log.
pub(super) fn line(label: &str, client_random: &[u8], secret: &[u8]) -> String {
    let mut line = String::with_capacity(label.len() + 2 * (client_random.len() + secret.len()) + 3);
    line.push_str(label);
    for bytes in [client_random, secret] {
        line.push(' ');
        for byte in bytes {
            let _ = write!(line, "{byte:02x}");
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::KeyLog as _;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    /// Fails without it: with the usual umask every user of the machine reads the secrets of all connections.
    #[test]
    fn a_new_key_log_is_for_its_owner_and_an_existing_one_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let new = folder.path().join("new");
        KeyLogFile::open(&new).unwrap().log("LABEL", &[1, 2], &[0xab]);
        assert_eq!(mode(&new), 0o600);
        let old = folder.path().join("old");
        std::fs::write(&old, "before\n").unwrap();
        std::fs::set_permissions(&old, Permissions::from_mode(0o640)).unwrap();
        KeyLogFile::open(&old).unwrap().log("LABEL", &[1, 2], &[0xab]);
        assert_eq!(mode(&old), 0o640);
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "before\nLABEL 0102 ab\n");
    }
}
