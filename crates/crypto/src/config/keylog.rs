//! Secrets of connections written to a file, so that a dissector can read a capture. The NSS key log format.
//!
//! Each line is one write to a file opened for appending: several processes and both ends of a connection may share it.

use super::error::ConfigError;
use core::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

/// An open key log.
#[derive(Debug)]
pub(super) struct KeyLogFile(File);

impl KeyLogFile {
    pub(super) fn open(path: &Path) -> Result<KeyLogFile, ConfigError> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.map(KeyLogFile).map_err(|error| ConfigError::KeyLog { path: path.to_owned(), error })
    }
}

impl rustls::KeyLog for KeyLogFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut line = String::with_capacity(label.len() + 2 * (client_random.len() + secret.len()) + 3);
        line.push_str(label);
        for bytes in [client_random, secret] {
            line.push(' ');
            for byte in bytes {
                let _ = write!(line, "{byte:02x}");
            }
        }
        line.push('\n');
        // A log that cannot be written must not break the connection it describes.
        let _ = (&self.0).write_all(line.as_bytes());
    }
}
