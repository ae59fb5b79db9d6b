//! Which files a handler serves, and how.

use crate::budget::Budget;
use crate::compress::Compression;
use crate::date;
use crate::files::cache::CacheLimits;
use crate::files::path::DotFiles;
use crate::files::root::{Root, RootError};
use crate::listing::Listing;
use crate::readers::Readers;
use crate::warnings::Warnings;
use std::path::Path;

/// Whether generated bodies are served where there is no file: `/bytes/2GB`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generated {
    /// They are.
    #[default]
    Serve,
    /// The answer is 404.
    Hide,
}

/// Which files are served, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileOptions {
    /// The folder whose files are served; none: only generated bodies. Default none.
    pub root: Option<Root>,
    /// Whether names that begin with a dot are served. Default: hidden.
    pub dot_files: DotFiles,
    /// Whether folders without index.html are listed. Default: they are.
    pub listing: Listing,
    /// The file that answers for its folder; empty: none does. Default `index.html`.
    pub index: String,
    /// Whether generated bodies are served. Default: they are.
    pub generated: Generated,
    /// Compression, if files are compressed. Default: they are not.
    pub compression: Option<Compression>,
    /// Bounds of what is remembered of files.
    pub cache: CacheLimits,
    /// Seconds since 1970. Default: the operating system's clock.
    #[doc(hidden)]
    pub clock: fn() -> u64,
    /// Where responses with status 503 are noted. Default: nothing is printed.
    #[doc(hidden)]
    pub warnings: Warnings,
    /// Threads that wait for the disk. Default: threads of their own for each set of options, shared by its clones.
    #[doc(hidden)]
    pub readers: Readers,
    /// The memory that all connections may hold together. Default: without a limit.
    #[doc(hidden)]
    pub budget: Budget,
}

impl Default for FileOptions {
    fn default() -> FileOptions {
        FileOptions {
            root: None,
            dot_files: DotFiles::default(),
            listing: Listing::default(),
            index: "index.html".to_owned(),
            generated: Generated::default(),
            compression: None,
            cache: CacheLimits::default(),
            clock: date::unix_now,
            warnings: Warnings::default(),
            readers: Readers::default(),
            budget: Budget::default(),
        }
    }
}

impl FileOptions {
    /// The files of the folder at `path`. Symbolic links on the way to it are followed.
    ///
    /// # Errors
    /// The folder cannot be opened; the text names it.
    pub fn folder(path: impl AsRef<Path>) -> Result<FileOptions, RootError> {
        Ok(FileOptions { root: Some(Root::open(path.as_ref())?), ..FileOptions::default() })
    }

    /// Whether requests are answered as by `other`.
    pub(crate) fn serves_as(&self, other: &FileOptions) -> bool {
        let of = |options: &FileOptions| (options.dot_files, options.listing, options.generated);
        let is_same_root = match (&self.root, &other.root) {
            (Some(root), Some(other)) => root.is_same(other),
            (root, other) => root.is_none() && other.is_none(),
        };
        let is_same_compression = match (&self.compression, &other.compression) {
            (Some(compression), Some(other)) => compression.is_same(other),
            (compression, other) => compression.is_none() && other.is_none(),
        };
        is_same_root && is_same_compression && of(self) == of(other) && self.index == other.index
    }
}
