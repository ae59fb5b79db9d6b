//! The access log: one line per request, written in the background.
//!
//! ```text
//! 192.0.2.7 - - [21/Nov/2026:04:31:20 +0000] "GET /index.html HTTP/3" 200 1234 "referer" "user agent" 0.000153
//! ```
//!
//! The combined format that log tools know, with the protocol that was spoken and, last, the seconds from the head's
//! arrival to the last byte's acknowledgement over HTTP/3, and to its hand-over over HTTP/1.1 and 2, whose acknowledgements
//! the kernel keeps to itself. Or JSON (line.rs). What a client sent is escaped, so that no request can write a line of its own. Of
//! many requests a share may do (style.rs).
//!
//! Each worker formats into its own batch and offers full batches to one writing thread over a bounded queue. A worker
//! never waits: when the disk is slower than the requests, whole batches are dropped. Lines that are lost, be it so or because
//! the disk is full, are counted; the log says so in a line that begins with `#`, and standard error by a warning. Rejected: a
//! shared buffer behind a lock, whose holder may be off the CPU.

use crate::warnings::{Warning, Warnings};
use base::time::{Duration, Instant};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

mod line;
mod style;
#[cfg(test)]
mod tests;

pub use line::{Field, Format};
pub use style::{Share, Style};

use line::{MAX_TEXT, Timestamp};
use style::Sampler;

/// A batch of this many bytes is handed over at once.
const BATCH: usize = 16 * 1024;
/// An incomplete batch is handed over after this long.
const LINGER: Duration = Duration::from_millis(250);
/// How many batches may wait for the disk.
const QUEUE: usize = 128;
/// How long the end of the program waits for the disk, or for the reader of a pipe.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(500);

/// Where the log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// Nowhere.
    Off,
    /// The standard output.
    Stdout,
    /// The end of a file.
    File(PathBuf),
}

impl Target {
    /// The value of `--access-log`: a path, `-` or `off`.
    pub fn parse(text: &str) -> Target {
        match text {
            "off" => Target::Off,
            "-" => Target::Stdout,
            path => Target::File(PathBuf::from(path)),
        }
    }
}

/// The HTTP version of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0 or 1.1
    Http1,
    /// HTTP/2
    Http2,
    /// HTTP/3
    Http3,
}

/// What is logged of a request's head, as the client sent it.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestLine<'a> {
    /// The method.
    pub method: Option<&'a [u8]>,
    /// The host that was asked for: `:authority`, or `host`.
    pub host: Option<&'a [u8]>,
    /// The request target.
    pub target: Option<&'a [u8]>,
    /// The `referer` field.
    pub referer: Option<&'a [u8]>,
    /// The `user-agent` field.
    pub user_agent: Option<&'a [u8]>,
}

/// A request that is over.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The client's validated address.
    pub peer: IpAddr,
    /// When it was over, in seconds since 1970.
    pub unix_s: u64,
    /// What was asked.
    pub line: RequestLine<'a>,
    /// How.
    pub protocol: Protocol,
    /// What was answered.
    pub status: u16,
    /// How many bytes of the body were handed over.
    pub bytes: u64,
    /// From the head's arrival to now.
    pub duration: Duration,
}

/// Lines for the thread. An empty one only wakes it.
#[derive(Default)]
struct Batch {
    text: Vec<u8>,
    lines: u64,
}

#[derive(Debug, Default)]
struct Shared {
    lost: AtomicU64,
    /// Lines that were handed over and not written.
    waiting: AtomicU64,
    warnings: Warnings,
    style: Style,
    stop: AtomicBool,
    reopen: AtomicBool,
}

impl Shared {
    fn lose(&self, lines: u64) {
        self.lost.fetch_add(lines, Ordering::Relaxed);
        self.warnings.note(Warning::LogLinesLost, lines);
    }
}

/// Opens a log's file anew, from any thread. Clones are the same.
#[derive(Clone, Debug)]
pub struct Reopener {
    shared: Arc<Shared>,
    queue: Option<SyncSender<Batch>>,
}

impl Reopener {
    /// How many lines were lost.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Opens the file anew after a rotation moved it. No line is lost: what was written before is in the file that was moved.
    pub fn reopen(&self) {
        self.shared.reopen.store(true, Ordering::Release);
        if let Some(queue) = &self.queue {
            // If it is full the thread is awake.
            let _ = queue.try_send(Batch::default());
        }
    }
}

/// The log and its thread. Dropping it writes what was handed over, for half a second at most, and warns of the rest.
#[derive(Debug)]
pub struct AccessLog {
    shared: Arc<Shared>,
    queue: Option<SyncSender<Batch>>,
    thread: Option<JoinHandle<()>>,
    done: Option<Receiver<()>>,
}

impl AccessLog {
    /// Opens the log. With [`Target::Off`] there is no thread and recording costs nothing.
    pub fn start(target: Target) -> io::Result<AccessLog> {
        AccessLog::start_with(target, Style::default(), Warnings::default())
    }

    /// The same in another style, with a place where lost lines are noted.
    pub fn start_with(target: Target, style: Style, warnings: Warnings) -> io::Result<AccessLog> {
        let shared = Arc::new(Shared { warnings, style, ..Shared::default() });
        let output: Box<dyn Write + Send> = match &target {
            Target::Off => return Ok(AccessLog { shared, queue: None, thread: None, done: None }),
            // Not `io::stdout()`: its buffer keeps parts of lines that could not be written.
            Target::Stdout => Box::new(File::from(io::stdout().as_fd().try_clone_to_owned()?)),
            Target::File(path) => Box::new(open(path)?),
        };
        AccessLog::start_on(output, target, shared)
    }

    fn start_on(output: Box<dyn Write + Send>, target: Target, shared: Arc<Shared>) -> io::Result<AccessLog> {
        let (queue, batches) = sync_channel(QUEUE);
        let (finished, done) = sync_channel(1);
        let writer = Background { output, target, shared: Arc::clone(&shared), batches, is_torn: false };
        let thread = std::thread::Builder::new().name("access-log".to_string()).spawn(move || {
            writer.run();
            // The receiver may have ended.
            let _ = finished.try_send(());
        })?;
        Ok(AccessLog { shared, queue: Some(queue), thread: Some(thread), done: Some(done) })
    }

    /// A worker's end of the log.
    pub fn recorder(&self) -> Recorder {
        Recorder {
            shared: Arc::clone(&self.shared),
            queue: self.queue.clone(),
            batch: Batch { text: Vec::new(), lines: 0 },
            begun: None,
            sampler: Sampler::default(),
            timestamp: Timestamp::of(0),
        }
    }

    /// What opens the file anew, for another thread.
    pub fn reopener(&self) -> Reopener {
        Reopener { shared: Arc::clone(&self.shared), queue: self.queue.clone() }
    }

    /// How many lines were lost because they could not be written fast enough, or at all.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        let (Some(queue), Some(done), Some(thread)) =
            (self.queue.take(), self.done.take(), self.thread.take())
        else {
            return;
        };
        // If it is full the thread is awake.
        let _ = queue.try_send(Batch::default());
        match done.recv_timeout(PATIENCE) {
            // A panic in there has been reported by its hook already.
            Ok(()) => drop(thread.join()),
            // The disk or the reader of the pipe is blocked.
            Err(_) => self.shared.lose(self.shared.waiting.load(Ordering::Relaxed)),
        }
    }
}

/// A worker's end of the log. Dropping it hands over what is left.
pub struct Recorder {
    shared: Arc<Shared>,
    queue: Option<SyncSender<Batch>>,
    batch: Batch,
    /// When the first line of the batch was written.
    begun: Option<Instant>,
    sampler: Sampler,
    /// The last second that was written.
    timestamp: Timestamp,
}

impl Recorder {
    /// Whether lines are written at all; otherwise no entry is made.
    pub fn is_on(&self) -> bool {
        self.queue.is_some()
    }

    /// Writes a line about a request that is over, if it is among those that are logged.
    pub fn record(&mut self, entry: &Entry<'_>, now: Instant) {
        if !self.is_on() || !self.sampler.takes(self.shared.style.share, entry.status) {
            return;
        }
        if self.timestamp.unix_s != entry.unix_s {
            self.timestamp = Timestamp::of(entry.unix_s);
        }
        line::write(&mut self.batch.text, &self.shared.style.format, entry, &self.timestamp);
        self.batch.lines += 1;
        self.begun.get_or_insert(now);
        if self.batch.text.len() >= BATCH {
            self.flush();
        }
    }

    /// When an incomplete batch is due, if there is one.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.begun.map(|begun| begun + LINGER)
    }

    /// Hands over an incomplete batch that is due.
    pub fn on_timeout(&mut self, now: Instant) {
        if self.next_timeout().is_some_and(|due| due <= now) {
            self.flush();
        }
    }

    /// Hands over the batch. Never waits: if the queue is full, the batch is lost and counted.
    pub fn flush(&mut self) {
        self.begun = None;
        let Some(queue) = &self.queue else { return };
        if self.batch.lines == 0 {
            return;
        }
        let next = Batch { text: Vec::with_capacity(BATCH + MAX_TEXT), lines: 0 };
        self.shared.waiting.fetch_add(self.batch.lines, Ordering::Relaxed);
        match queue.try_send(std::mem::replace(&mut self.batch, next)) {
            Ok(()) => {}
            Err(TrySendError::Full(mut batch) | TrySendError::Disconnected(mut batch)) => {
                self.shared.waiting.fetch_sub(batch.lines, Ordering::Relaxed);
                self.shared.lose(batch.lines);
                batch.text.clear();
                batch.lines = 0;
                self.batch = batch;
            }
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.flush();
    }
}

/// The writing thread.
struct Background {
    output: Box<dyn Write + Send>,
    target: Target,
    shared: Arc<Shared>,
    batches: Receiver<Batch>,
    /// What was written last is a part of a line.
    is_torn: bool,
}

impl Background {
    fn run(mut self) {
        let mut told = 0;
        while let Some(batch) = self.next_batch() {
            self.heed_reopening();
            self.write(&batch);
            self.shared.waiting.fetch_sub(batch.lines, Ordering::Relaxed);
            let lost = self.shared.lost.load(Ordering::Relaxed);
            if lost > told {
                let mut note = Vec::new();
                line::write_lost(&mut note, &self.shared.style.format, lost - told);
                // If even this cannot be written, the next attempt says a larger number.
                if self.write_whole(&note).is_ok() {
                    told = lost;
                }
            }
        }
    }

    /// Waits for the next batch. At the end, what was handed over before is still taken.
    fn next_batch(&self) -> Option<Batch> {
        if self.shared.stop.load(Ordering::Acquire) {
            return self.batches.try_recv().ok();
        }
        self.batches.recv().ok()
    }

    fn heed_reopening(&mut self) {
        if !self.shared.reopen.swap(false, Ordering::AcqRel) {
            return;
        }
        let Target::File(path) = &self.target else { return };
        match open(path) {
            Ok(file) => {
                self.output = Box::new(file);
                self.is_torn = false;
            }
            Err(_) => self.shared.warnings.note(Warning::LogNotReopened, 1),
        }
    }

    fn write(&mut self, batch: &Batch) {
        if let Err(written) = self.write_whole(&batch.text) {
            let rest = batch.text.get(written..).unwrap_or_default();
            self.shared.lose(rest.iter().filter(|&&byte| byte == b'\n').count() as u64);
        }
    }

    /// Writes lines. In case of failure returns how many bytes were written; a part of a line is then closed before the next.
    fn write_whole(&mut self, text: &[u8]) -> Result<(), usize> {
        if self.is_torn && !text.is_empty() {
            self.output.write_all(b"\n").map_err(|_| 0_usize)?;
            self.is_torn = false;
        }
        let mut rest = text;
        while !rest.is_empty() {
            match self.output.write(rest) {
                Ok(count) if count > 0 => rest = rest.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => {
                    let written = text.len() - rest.len();
                    let last = text.get(..written).and_then(<[u8]>::last);
                    self.is_torn = last.is_some_and(|&last| last != b'\n');
                    return Err(written);
                }
            }
        }
        Ok(())
    }
}

fn open(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}
