//! The ready file: one JSON object that says where a server listens, there while the server runs.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

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

/// Replaces the file `path` whole, also while other processes replace it: those of an upgrade can end at the same time.
///
/// # Errors
/// One line: the file cannot be written.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), String> {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{number}.partial", std::process::id()));
    let partial = path.with_file_name(name);
    std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, path)).map_err(|error| {
        // The error that matters is the first.
        let _ = std::fs::remove_file(&partial);
        format!("cannot write {}: {error}", path.display())
    })
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

    /// Fails without a name of its own for what each writes: a long text and a short one end up in one file.
    #[test]
    fn a_file_that_two_replace_at_the_same_time_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary");
        let texts = ["short".to_owned(), "long".repeat(10_000)];
        std::thread::scope(|scope| {
            for text in &texts {
                scope.spawn(|| (0..300).for_each(|_| replace(&path, text).unwrap()));
            }
            let seen = || std::fs::read_to_string(&path).unwrap_or_default();
            for _ in 0..300 {
                let seen = seen();
                assert!(seen.is_empty() || texts.contains(&seen), "{} bytes", seen.len());
            }
        });
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing stays beside it");
    }

    /// Fails without it: a folder collects a file at each try.
    #[test]
    fn what_cannot_be_put_in_its_place_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("taken");
        std::fs::create_dir(&path).unwrap();
        assert!(replace(&path, "text").unwrap_err().contains("cannot write"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
