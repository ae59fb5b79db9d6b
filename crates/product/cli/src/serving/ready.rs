//! The ready file: one JSON object that says where a server listens, there while the server runs.

use serde_json::Value;
use std::path::{Path, PathBuf};

/// A ready file that was written.
#[derive(Debug)]
pub(crate) struct ReadyFile {
    path: PathBuf,
    text: String,
}

impl ReadyFile {
    /// Writes the file whole or not at all, so that a program that waits for it never reads half of it.
    ///
    /// # Errors
    /// One line: the file cannot be written.
    pub(crate) fn write(path: &Path, value: &Value) -> Result<ReadyFile, String> {
        let file = ReadyFile { path: path.to_owned(), text: format!("{value}\n") };
        replace(path, &file.text)?;
        Ok(file)
    }

    /// Removes the file at the end, unless another server has replaced it since: it holds the number of the process.
    pub(crate) fn remove(&self) {
        if std::fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            // Nothing is left to be done about a folder that has become read-only.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Replaces the file `path` whole.
///
/// # Errors
/// One line: the file cannot be written.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), String> {
    let partial = path.with_extension("partial");
    std::fs::write(&partial, text)
        .and_then(|()| std::fs::rename(&partial, path))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Fails without it: programs that wait for the file find that of a server that has ended.
    #[test]
    fn a_ready_file_goes_with_its_server_and_not_with_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ready");
        let file = ReadyFile::write(&path, &json!({ "pid": 1 })).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"pid\":1}\n");
        file.remove();
        assert!(!path.exists());
        let first = ReadyFile::write(&path, &json!({ "pid": 1 })).unwrap();
        let second = ReadyFile::write(&path, &json!({ "pid": 2 })).unwrap();
        first.remove();
        assert!(path.exists(), "the second server's");
        second.remove();
        assert!(!path.exists());
    }
}
