//! What follows a response's head: a source that is pulled, the same for HTTP/1.1, 2 and 3.
//!
//! The puller says how much it can take, gets chunks that it may keep as long as it likes (until they are acknowledged),
//! and nothing is read before it is asked for. A file is read with `pread` through one shared descriptor, so that many
//! parts and many responses read one open file. Errors end the body: a file that became shorter cannot be mended once
//! its length was announced, the stream must be reset.

use crate::pool::{CHUNK, Pool, SMALL, Wait};
use crate::readers::{ResultWaker, Ticket};
use crate::recent::OpenFile;
use base::pattern;
use bytes::Bytes;
use core::ops::Range;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::{Poll, ready};

/// Reads are at least this long, in bytes, where the file is: a peer that permits single bytes makes us hold no more.
const READ_AHEAD: usize = 4 * 1024;

/// The whole content of a representation: any part of it can become a body.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// In memory.
    Memory(Bytes),
    /// Made up, see [`crate::generated`].
    Generated,
    /// On disk.
    File {
        /// The open file.
        file: Arc<OpenFile>,
        /// Where its chunks are read to.
        pool: Arc<Pool>,
    },
}

impl Source {
    /// All of it, `size` bytes, as a body.
    pub(crate) fn into_body(self, size: u64) -> Body {
        match self {
            Source::Memory(bytes) if !bytes.is_empty() => Body::Static(bytes),
            source => source.body(0..size),
        }
    }

    /// The bytes `range` as a body. The range must lie within the representation.
    pub(crate) fn body(&self, range: Range<u64>) -> Body {
        if range.is_empty() {
            return Body::Empty;
        }
        match self {
            Source::Memory(bytes) => {
                let clamp = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(bytes.len());
                Body::Static(bytes.slice(clamp(range.start)..clamp(range.end)))
            }
            Source::Generated => Body::Generated(GeneratedBody { offset: range.start, end: range.end }),
            Source::File { file, pool } => Body::File(FileBody {
                file: Arc::clone(file),
                pool: Arc::clone(pool),
                offset: range.start,
                end: range.end,
                current: Bytes::new(),
                reading: None,
            }),
        }
    }
}

/// Content that is pulled chunk by chunk.
#[derive(Debug, Default)]
pub enum Body {
    /// Nothing (more).
    #[default]
    Empty,
    /// Bytes in memory.
    Static(Bytes),
    /// Bytes that are made up.
    Generated(GeneratedBody),
    /// A part of a file.
    File(FileBody),
    /// Parts with a header each. RFC 9110 §14.6.
    Multipart(Box<Multipart>),
}

/// A part of the pattern.
#[derive(Debug)]
pub struct GeneratedBody {
    offset: u64,
    end: u64,
}

/// A part of a file.
#[derive(Debug)]
pub struct FileBody {
    file: Arc<OpenFile>,
    pool: Arc<Pool>,
    /// The first byte that was not read yet.
    offset: u64,
    end: u64,
    /// Read and not yet lent.
    current: Bytes,
    /// What a thread that may wait reads.
    reading: Option<Ticket<io::Result<Bytes>>>,
}

/// `multipart/byteranges`: pieces one after the other, each text or a part of the source.
#[derive(Debug)]
pub struct Multipart {
    source: Source,
    pieces: VecDeque<Piece>,
    current: Body,
    /// Everything that was not lent yet.
    remaining: u64,
}

#[derive(Debug)]
enum Piece {
    Text(Bytes),
    Part(Range<u64>),
}

impl Body {
    /// The next at most `max` bytes (`max` ≥ 1), never an empty chunk; `None` at the end. An error means that the
    /// announced length cannot be kept. While the disk is waited for there is nothing; `whom` is then woken.
    pub fn poll_chunk(
        &mut self,
        max: usize,
        wake_target: ResultWaker<'_>,
    ) -> Poll<io::Result<Option<Bytes>>> {
        let max = max.max(1);
        match self {
            Body::Empty => Poll::Ready(Ok(None)),
            Body::Static(bytes) if bytes.is_empty() => Poll::Ready(Ok(None)),
            Body::Static(bytes) => Poll::Ready(Ok(Some(bytes.split_to(max.min(bytes.len()))))),
            Body::Generated(body) => Poll::Ready(Ok(body.next_chunk(max))),
            Body::File(body) => body.poll_chunk(max, wake_target),
            Body::Multipart(body) => body.poll_chunk(max, wake_target),
        }
    }

    /// As [`Body::poll_chunk`], but waits for the disk.
    ///
    /// # Errors
    /// The announced length cannot be kept.
    pub fn next_chunk(&mut self, max: usize) -> io::Result<Option<Bytes>> {
        crate::readers::wait(|wake_target| self.poll_chunk(max, wake_target))
    }

    /// All that is still to come, if it is in memory in one piece.
    pub(crate) fn take_whole(&mut self) -> Option<Bytes> {
        match self {
            Body::Static(bytes) => Some(core::mem::take(bytes)),
            Body::Generated(body) => body.take_whole(),
            Body::Empty | Body::File(_) | Body::Multipart(_) => None,
        }
    }

    /// How many bytes are still to come.
    pub fn remaining(&self) -> u64 {
        match self {
            Body::Empty => 0,
            Body::Static(bytes) => bytes.len() as u64,
            Body::Generated(body) => body.end - body.offset,
            Body::File(body) => body.end - body.offset + body.current.len() as u64,
            Body::Multipart(body) => body.remaining,
        }
    }

    /// Whether everything was lent.
    pub fn is_finished(&self) -> bool {
        self.remaining() == 0
    }
}

impl GeneratedBody {
    fn take_whole(&mut self) -> Option<Bytes> {
        let left = usize::try_from(self.end - self.offset).ok()?;
        let whole = pattern::at(self.offset).get(..left)?;
        self.offset = self.end;
        Some(Bytes::from_static(whole))
    }

    fn next_chunk(&mut self, max: usize) -> Option<Bytes> {
        let lent = pattern::at(self.offset);
        let left = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
        let chunk = lent.get(..max.min(left)).unwrap_or(lent);
        self.offset += chunk.len() as u64;
        (!chunk.is_empty()).then(|| Bytes::from_static(chunk))
    }
}

/// A read of a part of a file: up to `want` bytes from `offset` on, which is before `end`.
#[derive(Clone, Copy, Debug)]
struct Part {
    offset: u64,
    end: u64,
    want: u64,
    /// Others read the file, too: what is read is what is left of a chunk, for all of them.
    is_shared: bool,
}

impl Part {
    fn read(self, pool: &Arc<Pool>, file: &OpenFile, wait: Wait) -> io::Result<Bytes> {
        if !self.is_shared {
            return pool.read(file, self.offset, self.want, wait);
        }
        let chunk = pool.chunk(file, self.offset / CHUNK as u64, wait)?;
        let start = (self.offset % CHUNK as u64) as usize;
        let left = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(left).min(chunk.len());
        Ok(if start < end { chunk.slice(start..end) } else { Bytes::new() })
    }
}

impl FileBody {
    /// Up to `want` bytes, at once if they are in memory.
    fn poll_read(&mut self, want: u64, wake_target: ResultWaker<'_>) -> Poll<io::Result<Bytes>> {
        if let Some(ticket) = &self.reading {
            let result = ready!(ticket.poll(wake_target));
            self.reading = None;
            return Poll::Ready(result.unwrap_or_else(|| Err(io::ErrorKind::Other.into())));
        }
        let is_shared = want > SMALL && Arc::strong_count(&self.file) > 1;
        let part = Part { offset: self.offset, end: self.end, want, is_shared };
        match part.read(&self.pool, &self.file, Wait::Never) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return Poll::Ready(result),
        }
        if let Some(waker) = wake_target() {
            let (pool, file) = (Arc::clone(&self.pool), Arc::clone(&self.file));
            let work = move || part.read(&pool, &file, Wait::Disk);
            self.reading = Some(self.pool.readers().submit(waker, work));
        }
        Poll::Pending
    }

    fn poll_chunk(&mut self, max: usize, wake_target: ResultWaker<'_>) -> Poll<io::Result<Option<Bytes>>> {
        if self.current.is_empty() {
            if self.offset == self.end {
                return Poll::Ready(Ok(None));
            }
            // No further ahead than the puller can take: what is read and not lent is memory that a peer who stopped
            // reading makes us hold. Tiny pulls share a read.
            let want = (self.end - self.offset).min(max.clamp(READ_AHEAD, CHUNK) as u64);
            self.current = ready!(self.poll_read(want, wake_target))?;
            self.offset += self.current.len() as u64;
            if self.current.is_empty() {
                let what = "the file became shorter while it was sent";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, what)));
            }
        }
        let len = max.min(self.current.len());
        // The last piece takes the buffer with it, so that the pool gets it back as soon as that is acknowledged.
        let whole = len == self.current.len();
        let chunk = if whole { std::mem::take(&mut self.current) } else { self.current.split_to(len) };
        Poll::Ready(Ok(Some(chunk)))
    }
}

impl Multipart {
    /// The `parts` of `source` (`size` bytes in all, of type `content_type`), separated by `boundary`.
    pub(crate) fn new(source: Source, parts: &[Range<u64>], of: PartHeader<'_>) -> Multipart {
        let mut pieces = VecDeque::with_capacity(parts.len() * 2 + 1);
        let mut line_end = "";
        for part in parts {
            pieces.push_back(Piece::Text(Bytes::from(format!(
                "{line_end}--{}\r\ncontent-type: {}\r\ncontent-range: bytes {}-{}/{}\r\n\r\n",
                of.boundary,
                of.content_type,
                part.start,
                part.end.saturating_sub(1),
                of.size,
            ))));
            pieces.push_back(Piece::Part(part.clone()));
            line_end = "\r\n";
        }
        pieces.push_back(Piece::Text(Bytes::from(format!("{line_end}--{}--\r\n", of.boundary))));
        let remaining = pieces.iter().map(Piece::len).fold(0, u64::saturating_add);
        Multipart { source, pieces, current: Body::Empty, remaining }
    }

    fn poll_chunk(&mut self, max: usize, wake_target: ResultWaker<'_>) -> Poll<io::Result<Option<Bytes>>> {
        loop {
            if let Some(chunk) = ready!(self.current.poll_chunk(max, wake_target))? {
                self.remaining = self.remaining.saturating_sub(chunk.len() as u64);
                return Poll::Ready(Ok(Some(chunk)));
            }
            self.current = match self.pieces.pop_front() {
                Some(Piece::Text(text)) => Body::Static(text),
                Some(Piece::Part(range)) => self.source.body(range),
                None => return Poll::Ready(Ok(None)),
            };
        }
    }
}

/// What all parts of a multipart body say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartHeader<'a> {
    /// Must not occur in the content.
    pub(crate) boundary: &'a str,
    /// The type of the representation.
    pub(crate) content_type: &'a str,
    /// The length of the representation.
    pub(crate) size: u64,
}

impl Piece {
    fn len(&self) -> u64 {
        match self {
            Piece::Text(text) => text.len() as u64,
            Piece::Part(range) => range.end - range.start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn drain(mut body: Body, max: usize) -> Vec<u8> {
        let mut all = Vec::new();
        let length = body.remaining();
        while let Some(chunk) = body.next_chunk(max).unwrap() {
            assert!(!chunk.is_empty() && chunk.len() <= max);
            all.extend_from_slice(&chunk);
            assert_eq!(body.remaining(), length - all.len() as u64);
        }
        assert_eq!(all.len() as u64, length);
        assert!(body.is_finished());
        all
    }

    fn file_of(content: &[u8]) -> (std::fs::File, Source) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        let source = Source::File {
            file: Arc::new(OpenFile::new(file.try_clone().unwrap().into())),
            pool: Arc::new(Pool::default()),
        };
        (file, source)
    }

    /// Or else a hundred responses of one file are a hundred copies of it. One alone keeps no chunks.
    #[test]
    fn responses_of_one_file_share_its_chunks() {
        let content: Vec<u8> = (0..4 * CHUNK as u64).map(|at| (at % 251) as u8).collect();
        let (_file, source) = file_of(&content);
        let end = content.len() as u64;
        let (mut first, mut second) = (source.body(0..end), source.body(5..end));
        let [one, two] = [&mut first, &mut second].map(|body| body.next_chunk(CHUNK).unwrap().unwrap());
        assert_eq!((one.len(), two.len()), (CHUNK, CHUNK - 5), "whole chunks, whatever comes before");
        assert_eq!(one[5..].as_ptr(), two.as_ptr());
        assert_eq!([drain(first, 100_000), drain(second, 70_001)].map(|rest| rest.len()), [3 * CHUNK; 2]);

        let mut alone = source.body(0..end);
        drop(source);
        let again = alone.next_chunk(CHUNK).unwrap().unwrap();
        assert_ne!(again.as_ptr(), one.as_ptr());
        assert!(drain(alone, usize::MAX) == content[CHUNK..]);
    }

    #[test]
    fn every_source_lends_the_same_bytes() {
        let content: Vec<u8> = (0..6).flat_map(|_| pattern::at(0)).copied().collect();
        let (_file, on_disk) = file_of(&content);
        let sources = [Source::Memory(Bytes::from(content.clone())), Source::Generated, on_disk];
        let end = content.len() as u64;
        for source in &sources {
            for range in [0..end, 0..0, 1..2, 65_520..65_523, 131_000..end - 1] {
                for max in [1_200, 65_536, usize::MAX] {
                    let right = &content[range.start as usize..range.end as usize];
                    assert!(drain(source.body(range.clone()), max) == right, "{source:?} {range:?} {max}");
                }
            }
        }
    }

    #[test]
    fn a_file_that_shrinks_ends_in_an_error() {
        let (file, source) = file_of(&[1; 300_000]);
        let mut body = source.body(0..300_000);
        assert!(body.next_chunk(1_000).unwrap().is_some());
        file.set_len(1_000).unwrap();
        let error = loop {
            match body.next_chunk(100_000) {
                Ok(chunk) => assert!(chunk.is_some(), "must not end as if all were well"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn parts_have_headers_and_an_end() {
        let of = PartHeader { boundary: "XX", content_type: "text/plain", size: 10 };
        let source = Source::Memory(Bytes::from_static(b"0123456789"));
        let body = Body::Multipart(Box::new(Multipart::new(source, &[0..2, 9..10], of)));
        let text = "--XX\r\ncontent-type: text/plain\r\ncontent-range: bytes 0-1/10\r\n\r\n01\r\n\
                    --XX\r\ncontent-type: text/plain\r\ncontent-range: bytes 9-9/10\r\n\r\n9\r\n--XX--\r\n";
        assert_eq!(String::from_utf8(drain(body, 7)).unwrap(), text);
    }
}
