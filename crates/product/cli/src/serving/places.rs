//! What flags name on disk, where that can be known to be of the wrong kind before anything is opened.

use std::path::Path;

/// A file, which may be made yet.
///
/// # Errors
/// One line: it is a folder.
pub(crate) fn file(flag: &str, path: &Path) -> Result<(), String> {
    if !path.is_dir() {
        return Ok(());
    }
    Err(format!("{flag} {} is a folder: name a file in it", path.display()))
}

/// A folder, which may be made yet.
///
/// # Errors
/// One line: it is a file.
pub(crate) fn folder(flag: &str, path: &Path) -> Result<(), String> {
    if path.is_dir() || !path.exists() {
        return Ok(());
    }
    Err(format!("{flag} {} is no folder: name one", path.display()))
}
