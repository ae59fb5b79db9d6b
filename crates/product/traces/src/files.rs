//! Folder and files: their names, and how they are made.

use qlog::Beginning;
use std::fmt::Write;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Files of the same name that stand beside each other, at most: a peer chooses its connection IDs and may repeat them.
const MAX_SAME: u32 = 100;

/// Makes the folder, if there is none, and tries whether a file can be made in it.
pub(crate) fn prepare(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let probe = folder.join(format!(".tercel-qlog-{}", std::process::id()));
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&probe)?;
    std::fs::remove_file(probe)
}

/// The name of a trace's file, without its ending.
pub(crate) fn name(beginning: &Beginning<'_>) -> String {
    let mut name = String::with_capacity(48);
    for byte in beginning.original_dcid {
        let _ = write!(name, "{byte:02x}");
    }
    name + "_" + beginning.role()
}

/// Makes a new file of this name, or beside those that there are.
pub(crate) fn create(folder: &Path, name: &str) -> io::Result<(PathBuf, File)> {
    let mut number = 1;
    loop {
        let path = match number {
            1 => folder.join(format!("{name}.sqlog")),
            _ => folder.join(format!("{name}_{number}.sqlog")),
        };
        match OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MAX_SAME => number += 1,
            result => return result.map(|file| (path, file)),
        }
    }
}

/// Opens a file of ours again.
pub(crate) fn reopen(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
}
