//! Traces of connections (qlog) as files in a folder, one a connection, written by a thread of their own.
//!
//! A worker hands over chunks of 16 KiB without waiting, to a queue that is bounded in bytes (queue.rs); a thread writes them
//! (writer.rs). What the queue has no room for is dropped, counted, and the file says so. A file is `<original destination
//! connection ID>_<client or server>.sqlog`, as draft-ietf-quic-qlog-main-schema §12.1 recommends, and is readable by its owner alone.
#![forbid(unsafe_code)]

mod files;
mod queue;
mod writer;

pub use qlog::{Keep, Share, Triggers};

use qlog::{Beginning, Output, Refused, Trace, Tracer};
use queue::{Queue, Tally};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

/// What is traced, and where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The folder of the files. It is made with mode 0700 if there is none.
    pub folder: PathBuf,
    /// The share of connections that are traced, chosen by their original destination connection ID. Default: all.
    pub share: Share,
    /// What of a connection's events is kept. Default: all, up to 64 MiB a file.
    pub keep: Keep,
    /// Bytes that may wait to be written. Default: 16 MiB.
    pub queue_bytes: usize,
    /// Files that are made at most. Later connections are not traced. Default: 10,000.
    pub max_files: u64,
}

impl Settings {
    /// All connections, in this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Settings {
        Settings {
            folder: folder.into(),
            share: Share::ALL,
            keep: Keep::default(),
            queue_bytes: 16 << 20,
            max_files: 10_000,
        }
    }
}

/// A folder cannot be used for traces.
#[derive(Debug)]
pub struct FolderError {
    folder: PathBuf,
    cause: io::Error,
}

impl fmt::Display for FolderError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.folder.display();
        write!(out, "cannot write traces to {folder}: {}; name a folder that you may write to", self.cause)
    }
}

impl std::error::Error for FolderError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// What was written so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Files.
    pub files: u64,
    /// Bytes.
    pub bytes: u64,
    /// Connections that were not traced because there were too many files.
    pub left_out: u64,
    /// Chunks of events that the queue had no room for. Their files say how many events are missing.
    pub refused: u64,
    /// Files that could not be written, or not to their end.
    pub failed: u64,
    /// Why the first of these failed.
    pub failure: Option<String>,
}

/// Traces in a folder. A clone stands for the same folder. Files are complete when the connections, the endpoints and all clones are
/// gone; the last one of them waits for the thread that writes.
#[derive(Clone, Debug)]
pub struct Qlog(Arc<Folder>);

struct Folder {
    settings: Settings,
    queue: Arc<Queue>,
    begun: AtomicU64,
    left_out: AtomicU64,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Folder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Folder").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Qlog {
    /// Makes the folder, if there is none, and starts the thread that writes.
    ///
    /// # Errors
    /// The folder cannot be made or written to, or the system has no thread left.
    pub fn open(settings: Settings) -> Result<Qlog, FolderError> {
        let fails = |cause| FolderError { folder: settings.folder.clone(), cause };
        files::prepare(&settings.folder).map_err(fails)?;
        let queue = Arc::new(Queue::new(settings.queue_bytes));
        let (folder, source) = (settings.folder.clone(), Arc::clone(&queue));
        let max_files = settings.max_files;
        let thread = std::thread::Builder::new()
            .name("qlog".to_owned())
            .spawn(move || writer::run(&source, &folder, max_files))
            .map_err(fails)?;
        Ok(Qlog(Arc::new(Folder {
            settings,
            queue,
            begun: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
            thread: Mutex::new(Some(thread)),
        })))
    }

    /// The folder of the files.
    pub fn folder(&self) -> &Path {
        &self.0.settings.folder
    }

    /// For the setting `qlog` of the transport. Outside semver.
    #[doc(hidden)]
    pub fn tracer(&self) -> Arc<dyn Tracer> {
        Arc::new(self.clone())
    }

    /// What was written so far. Does not wait. Outside semver.
    #[doc(hidden)]
    pub fn progress(&self) -> Report {
        self.report(self.0.queue.tally())
    }

    /// Waits until all that was queued is written.
    pub fn flush(&self) -> Report {
        self.report(self.0.queue.drained())
    }

    fn report(&self, tally: Tally) -> Report {
        let Tally { files, left_out, bytes, failed, failure, refused } = tally;
        let left_out = left_out + self.0.left_out.load(Ordering::Relaxed);
        Report { files, bytes, left_out, refused, failed, failure }
    }
}

impl Tracer for Qlog {
    fn begin(&self, beginning: &Beginning<'_>) -> Option<Trace> {
        let Folder { settings, begun, left_out, .. } = &*self.0;
        if !qlog::is_sampled(beginning.original_dcid, settings.share) {
            return None;
        }
        // Traces without a trigger make a file each. Of the others the writer counts those that become files.
        let number = begun.fetch_add(1, Ordering::Relaxed);
        if number >= settings.max_files && settings.keep.when.is_none() {
            left_out.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let wall_clock_ms = Some(unix_ms());
        let beginning = Beginning { wall_clock_ms, ..*beginning };
        let output = ToFolder { folder: self.clone(), number, name: files::name(&beginning) };
        Some(Trace::new(&beginning, settings.keep, Box::new(output)))
    }
}

/// The output of one trace.
struct ToFolder {
    folder: Qlog,
    number: u64,
    name: String,
}

impl Output for ToFolder {
    fn write(&mut self, chunk: Vec<u8>) -> Result<(), Refused> {
        self.folder.0.queue.push(self.number, &self.name, chunk)
    }

    fn finish(&mut self, last: Vec<u8>) {
        self.folder.0.queue.finish(self.number, &self.name, last);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the date of a file, for people; no event is dated by it")]
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
