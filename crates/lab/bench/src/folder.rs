//! A folder for the files by which processes tell of themselves; it goes when its owner does.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of its own below the system's one for temporary files.
#[derive(Debug)]
pub struct Folder(PathBuf);

/// Two folders of one process differ.
static NUMBER: AtomicU32 = AtomicU32::new(0);

impl Folder {
    /// An empty folder.
    ///
    /// # Errors
    /// The system's folder for temporary files cannot be written.
    pub fn make() -> io::Result<Folder> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tercel-bench-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a file that does not exist.
    pub fn fresh(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        let _ = std::fs::remove_file(&path);
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
