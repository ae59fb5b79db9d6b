//! Lines of a key log in memory, for a capture that holds the secrets of its connections.

use super::keylog::line;
use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of lines that wait to be taken; more are dropped.
const MAX_BYTES: usize = 1 << 20;

/// Secrets of connections that were not taken yet, in the format of draft-ietf-tls-keylogfile. Clones share them. Who has them reads
/// all that the connections carry.
#[derive(Clone, Default)]
pub struct KeyLines(Arc<Mutex<String>>);

impl KeyLines {
    /// The lines since the last call.
    pub fn take(&self) -> String {
        core::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for KeyLines {
    /// Without the secrets.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("KeyLines")
    }
}

impl rustls::KeyLog for KeyLines {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let line = line(label, client_random, secret);
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() + line.len() <= MAX_BYTES {
            lines.push_str(&line);
        }
    }
}

/// One log after the other.
#[derive(Debug)]
pub(super) struct Both(pub(super) Arc<dyn rustls::KeyLog>, pub(super) Arc<dyn rustls::KeyLog>);

impl rustls::KeyLog for Both {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        self.0.log(label, client_random, secret);
        self.1.log(label, client_random, secret);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::KeyLog as _;

    /// Deleted, a capture could hold a secret twice, or a program that never takes them could grow without end.
    #[test]
    fn lines_are_taken_once_and_bounded() {
        let (lines, folder) = (KeyLines::default(), tempfile::tempdir().unwrap());
        let file = super::super::keylog::KeyLogFile::open(&folder.path().join("keys")).unwrap();
        Both(Arc::new(file), Arc::new(lines.clone())).log("LABEL", &[1, 2], &[0xab]);
        assert_eq!(lines.take(), "LABEL 0102 ab\n");
        assert_eq!(std::fs::read_to_string(folder.path().join("keys")).unwrap(), "LABEL 0102 ab\n");
        assert_eq!(lines.take(), "");
        (0..100).for_each(|_| lines.log("LABEL", &[0; 32], &[7; 10_000]));
        let taken = lines.take();
        assert!(taken.len() <= MAX_BYTES && taken.len() > MAX_BYTES / 2, "{}", taken.len());
        assert_eq!(format!("{lines:?}"), "KeyLines");
    }
}
