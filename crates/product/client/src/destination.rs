//! One way to write for all outputs: a file that can be continued and filled in any order, a pipe that cannot, or nothing
//! that keeps the bytes at all.

use crate::answer::Version;
use crate::error::GetError;
use crate::output::Output;
use crate::part::{PartFile, Resume, Run};
use crate::tally::ReceivedBytes;
use crate::writer::Writer;
use core::ops::Range;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd as _;
use std::path::PathBuf;

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
#[derive(Debug)]
pub struct Sequential {
    out: Writer,
    /// For messages.
    name: PathBuf,
    next: u64,
    /// The last byte so far.
    last: Option<u8>,
    version: Version,
}

impl Sequential {
    fn told(&self, outcome: io::Result<()>) -> Result<(), GetError> {
        outcome.map_err(|error| GetError::Write(self.name.clone(), error))
    }
}

impl Destination {
    /// Opens `output` for a download of `url`.
    pub fn open(output: &Output, url: &str, resume: Resume) -> Result<Destination, GetError> {
        let sequential = |file: io::Result<File>, name: PathBuf| match file.and_then(Writer::new) {
            Ok(out) => Ok(Destination::Sequential(Sequential {
                out,
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

    /// What to call when there is room again in a pipe, when it has everything, or when it is broken: on another thread.
    pub fn on_news(&self, news: impl Fn() + Send + Sync + 'static) {
        if let Destination::Sequential(out) = self {
            out.out.on_news(news);
        }
    }

    /// How many of `wanted` bytes can be appended now. A pipe takes the rest when its reader has read.
    #[inline]
    pub fn room(&self, wanted: usize) -> usize {
        match self {
            Destination::Sequential(out) => out.out.room(wanted),
            Destination::Part(_) | Destination::Counted(_) => wanted,
        }
    }

    /// Whether there was too little room, and there is none.
    pub fn is_full(&self) -> bool {
        matches!(self, Destination::Sequential(out) if out.out.is_full())
    }

    /// Whether there was too little room, and there is some. Says so once.
    pub fn has_room_again(&self) -> bool {
        matches!(self, Destination::Sequential(out) if out.out.has_room_again())
    }

    /// Whether what was appended needs no more time to reach a pipe's reader.
    pub fn is_written(&self) -> bool {
        !matches!(self, Destination::Sequential(out) if !out.out.is_done())
    }

    /// Adds bytes of a run, for which there is room. A pipe takes only the bytes that are next.
    #[inline]
    pub fn append(&mut self, run: &mut Run, bytes: &[u8]) -> Result<(), GetError> {
        match self {
            Destination::Part(part) => part.append(run, bytes),
            Destination::Sequential(out) if run.offset() == out.next => {
                out.told(out.out.append(bytes))?;
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

    /// Writes what a run holds; a pipe's reader gets it as soon as it reads.
    pub fn flush(&mut self, run: &mut Run) -> Result<(), GetError> {
        match self {
            Destination::Part(part) => part.flush(run),
            Destination::Sequential(out) => out.told(out.out.flush()),
            Destination::Counted(_) => Ok(()),
        }
    }

    /// See [`PartFile::checkpoint`]; a pipe's reader gets what was gathered for it.
    pub fn checkpoint(&mut self) -> Result<(), GetError> {
        match self {
            Destination::Part(part) => part.checkpoint(),
            Destination::Sequential(out) => out.told(out.out.flush()),
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

    /// Everything is there, and written ([`Self::is_written`]). Returns the file's name, if it is one.
    pub fn finish(self) -> Result<Option<PathBuf>, GetError> {
        match self {
            Destination::Part(part) => part.finish().map(Some),
            Destination::Sequential(out) => {
                out.told(out.out.check())?;
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
    use std::io::Write;
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

    fn await_written(to: &Destination) {
        for _ in 0..2_000 {
            if to.is_written() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("it is never written");
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "a list of one range is what is compared")]
    fn a_pipe_takes_bytes_in_order_and_one_version() {
        let pipe = Pipe::default();
        let version = Version { etag: Some("\"a\"".into()), last_modified: None, size: Some(6) };
        let other = Version { etag: Some("\"b\"".into()), ..version.clone() };
        let mut to = Destination::Sequential(Sequential {
            out: Writer::new(pipe.clone()).unwrap(),
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
        await_written(&to);
        assert!(to.finish().unwrap().is_none());
        assert_eq!(*pipe.0.lock().unwrap(), b"abcde\n");
    }

    #[test]
    fn devices_are_written_and_not_renamed() {
        let mut to =
            Destination::open(&Output::Device("/dev/null".into()), "https://h/", Resume::Allowed).unwrap();
        to.append(&mut Run::new(0), b"gone").unwrap();
        await_written(&to);
        assert!(to.finish().unwrap().is_none());
        let full = Destination::open(&Output::Device("/dev/full".into()), "https://h/", Resume::Allowed);
        let mut full = full.unwrap();
        full.append(&mut Run::new(0), b"x").unwrap();
        await_written(&full);
        let error = full.finish().unwrap_err();
        assert!(error.exit_code() == 23 && error.to_string().contains("the disk is full"), "{error}");
    }
}
