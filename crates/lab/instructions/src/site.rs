//! The folder that is served: one small file, which is written anew in each run so that its time is always the same.

use base::time::Duration;
use server::handler::FileOptions;
use std::error::Error;
use std::path::PathBuf;

/// The clock of the server, in seconds since 1970. The date of its responses is always the same: encoded it takes a byte or two more or
/// less by the time of day, which decides how many packets ten responses need, and so 2 % of a request's instructions.
const NOW: u64 = 1_795_235_480;
/// When the file was modified.
const MODIFIED: std::time::Duration = std::time::Duration::from_secs(NOW - 1_000_000);

/// A folder of this process. It ends with its owner.
pub(crate) struct Site {
    folder: PathBuf,
}

impl Site {
    /// A folder with the file.
    pub(crate) fn new() -> Result<Site, Box<dyn Error>> {
        let folder = std::env::temp_dir().join(format!("tercel-instructions-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let site = Site { folder };
        let path = site.folder.join(crate::generator::PATH.trim_start_matches('/'));
        std::fs::write(&path, [b'x'; crate::generator::SIZE as usize])?;
        let file = std::fs::File::options().append(true).open(&path)?;
        file.set_modified(std::time::UNIX_EPOCH + MODIFIED)?;
        Ok(site)
    }

    /// The file system is asked once, because how often it would be asked in a run depends on how long that takes.
    pub(crate) fn options(&self) -> Result<FileOptions, Box<dyn Error>> {
        let mut options = FileOptions::folder(&self.folder)?;
        options.cache.fresh_for = Duration::from_secs(1 << 20);
        options.clock = || NOW;
        Ok(options)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
