//! One way to write for all outputs: a file that can be continued and filled in any order, a pipe that cannot, or nothing
//! that keeps the bytes at all.

use crate::answer::Version;
use crate::error::GetError;
use crate::output::Output;
use crate::part::{PartFile, Resume, Run};
use crate::tally::ReceivedBytes;
use core::ops::Range;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd as _;
use std::path::PathBuf;

/// Bytes gathered before a write to a pipe: as much as a pipe holds.
const GATHERED: usize = 64 * 1024;

/// Where a download's bytes go while it runs.
#[derive(Debug)]
pub enum Destination {
    /// A file that is incomplete for now.
    Part(PartFile),
    /// The standard output, a device or a pipe.
    Sequential(Sequential),
    /// Nowhere.
    Counted(ReceivedBytes),
}

/// Bytes in order, each once.
pub struct Sequential {
    out: Box<dyn Write + Send>,
    /// For messages.
    name: PathBuf,
    next: u64,
    /// The last byte so far.
    last: Option<u8>,
    version: Version,
}

impl fmt::Debug for Sequential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sequential({}, next {})", self.name.display(), self.next)
    }
}

impl Destination {
    /// Opens `output` for a download of `url`.
    pub fn open(output: &Output, url: &str, resume: Resume) -> Result<Destination, GetError> {
        let sequential = |file: io::Result<File>, name: PathBuf| match file {
            Ok(file) => Ok(Destination::Sequential(Sequential {
                out: Box::new(BufWriter::with_capacity(GATHERED, file)),
                name,
                next: 0,
                last: None,
                version: Version::default(),
            })),
            Err(error) => Err(GetError::Write(name, error)),
        };
        match output {
            Output::File(path) => Ok(Destination::Part(PartFile::open(path, url, resume)?)),
            // Its descriptor, since the standard library's own buffer looks for line ends.
            Output::Stdout => {
                let file = io::stdout().as_fd().try_clone_to_owned().map(File::from);
                sequential(file, "standard output".into())
            }
            Output::Device(path) => sequential(OpenOptions::new().write(true).open(path), path.clone()),
            Output::Nowhere(check) => Ok(Destination::Counted(ReceivedBytes::new(*check))),
        }
    }

    /// Whether several streams can fill it at once, given that [`validator`](Self::validator) has one.
    pub fn takes_any_order(&self) -> bool {
        matches!(self, Destination::Part(_) | Destination::Counted(_))
    }

    /// See [`PartFile::validator`].
    pub fn validator(&self) -> Option<&str> {
        match self {
            Destination::Part(part) => part.validator(),
            Destination::Sequential(out) => out.version.validator().filter(|_| out.next > 0),
            Destination::Counted(tally) => tally.validator(),
        }
    }

    /// How long it will be, as far as is known.
    pub fn size(&self) -> Option<u64> {
        match self {
            Destination::Part(part) => part.version().size,
            Destination::Sequential(out) => out.version.size,
            Destination::Counted(tally) => tally.size(),
        }
    }

    /// How many bytes are there.
    pub fn received(&self) -> u64 {
        match self {
            Destination::Part(part) => part.received(),
            Destination::Sequential(out) => out.next,
            Destination::Counted(tally) => tally.received(),
        }
    }

    /// Whether bytes went to a terminal, a device or a pipe, and the last of them was no line's end.
    pub fn ends_within_line(&self) -> bool {
        matches!(self, Destination::Sequential(out) if out.last.is_some_and(|byte| byte != b'\n'))
    }

    /// What is not there, in order; see [`PartFile::missing`].
    pub fn missing(&self) -> Vec<Range<u64>> {
        match self {
            Destination::Part(part) => part.missing(),
            Destination::Sequential(out) => {
                let rest = out.next..out.version.size.unwrap_or(u64::MAX);
                if rest.is_empty() { Vec::new() } else { std::iter::once(rest).collect() }
            }
            Destination::Counted(tally) => tally.missing(),
        }
    }

    /// Begins again with another version. A pipe cannot take back what went through it.
    pub fn restart(&mut self, version: Version) -> Result<(), GetError> {
        match self {
            Destination::Part(part) => part.restart(version),
            Destination::Sequential(out) if out.next > 0 => Err(GetError::Changed),
            Destination::Sequential(out) => {
                out.version = version;
                Ok(())
            }
            Destination::Counted(tally) => {
                tally.restart(version);
                Ok(())
            }
        }
    }

    /// An answer says which version it is of; see [`PartFile::on_version`].
    pub fn on_version(&mut self, version: &Version) -> Result<(), GetError> {
        match self {
            Destination::Part(part) => part.on_version(version),
            Destination::Sequential(out) if out.version.agrees_with(version) => {
                if out.next == 0 {
                    out.version = version.clone();
                }
                Ok(())
            }
            Destination::Sequential(_) => Err(GetError::Changed),
            Destination::Counted(tally) => tally.on_version(version),
        }
    }

    /// Adds bytes of a run. A pipe takes only the bytes that are next.
    #[inline]
    pub fn append(&mut self, run: &mut Run, bytes: &[u8]) -> Result<(), GetError> {
        match self {
            Destination::Part(part) => part.append(run, bytes),
            Destination::Sequential(out) if run.offset() == out.next => {
                out.out.write_all(bytes).map_err(|error| GetError::Write(out.name.clone(), error))?;
                out.next = out.next.saturating_add(bytes.len() as u64);
                out.last = bytes.last().copied().or(out.last);
                *run = Run::new(out.next);
                Ok(())
            }
            Destination::Sequential(out) => {
                Err(GetError::Range(format!("byte {} of {}", run.offset(), out.next)))
            }
            Destination::Counted(tally) => tally.append(run, bytes),
        }
    }

    /// Writes what a run holds.
    pub fn flush(&mut self, run: &mut Run) -> Result<(), GetError> {
        match self {
            Destination::Part(part) => part.flush(run),
            Destination::Sequential(out) => {
                out.out.flush().map_err(|error| GetError::Write(out.name.clone(), error))
            }
            Destination::Counted(_) => Ok(()),
        }
    }

    /// See [`PartFile::checkpoint`]; a pipe's reader gets what was gathered for it.
    pub fn checkpoint(&mut self) -> Result<(), GetError> {
        match self {
            Destination::Part(part) => part.checkpoint(),
            Destination::Sequential(out) => {
                out.out.flush().map_err(|error| GetError::Write(out.name.clone(), error))
            }
            Destination::Counted(_) => Ok(()),
        }
    }

    /// Keeps what is there for a later attempt; returns where, if it can be kept.
    pub fn suspend(&mut self) -> Result<Option<PathBuf>, GetError> {
        match self {
            Destination::Part(part) => part.suspend(),
            Destination::Sequential(_) | Destination::Counted(_) => Ok(None),
        }
    }

    /// Everything is there. Returns the file's name, if it is one.
    pub fn finish(self) -> Result<Option<PathBuf>, GetError> {
        match self {
            Destination::Part(part) => part.finish().map(Some),
            Destination::Sequential(mut out) => {
                out.out.flush().map_err(|error| GetError::Write(out.name.clone(), error))?;
                match out.version.size {
                    Some(size) if out.next < size => Err(GetError::Short(size, out.next)),
                    _ => Ok(None),
                }
            }
            Destination::Counted(tally) => tally.finish().map(|()| None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Pipe(Arc<Mutex<Vec<u8>>>);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "a list of one range is what is compared")]
    fn a_pipe_takes_bytes_in_order_and_one_version() {
        let pipe = Pipe::default();
        let version = Version { etag: Some("\"a\"".into()), last_modified: None, size: Some(6) };
        let other = Version { etag: Some("\"b\"".into()), ..version.clone() };
        let mut to = Destination::Sequential(Sequential {
            out: Box::new(pipe.clone()),
            name: "pipe".into(),
            next: 0,
            last: None,
            version: Version::default(),
        });
        assert!(!to.ends_within_line(), "nothing is there");
        to.restart(other.clone()).unwrap();
        to.restart(version.clone()).unwrap();
        let mut run = Run::new(0);
        to.append(&mut run, b"abc").unwrap();
        assert!(to.ends_within_line());
        assert_eq!((to.received(), to.missing(), to.validator()), (3, vec![3..6], Some("\"a\"")));
        assert!(to.append(&mut Run::new(5), b"x").is_err());
        assert_eq!(to.on_version(&other).unwrap_err().exit_code(), 33);
        assert!(to.restart(other).is_err());
        to.on_version(&version).unwrap();
        to.append(&mut Run::new(3), b"de\n").unwrap();
        assert!(!to.ends_within_line());
        assert!(to.finish().unwrap().is_none());
        assert_eq!(*pipe.0.lock().unwrap(), b"abcde\n");
    }

    #[test]
    fn devices_are_written_and_not_renamed() {
        let mut to =
            Destination::open(&Output::Device("/dev/null".into()), "https://h/", Resume::Allowed).unwrap();
        to.append(&mut Run::new(0), b"gone").unwrap();
        assert!(to.finish().unwrap().is_none());
        let full = Destination::open(&Output::Device("/dev/full".into()), "https://h/", Resume::Allowed);
        let (mut full, mut run) = (full.unwrap(), Run::new(0));
        let error = full.append(&mut run, b"x").and_then(|()| full.flush(&mut run)).unwrap_err();
        assert!(error.exit_code() == 23 && error.to_string().contains("the disk is full"), "{error}");
    }
}
