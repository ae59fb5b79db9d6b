//! The one function that answers requests, whichever HTTP version they came by: a head in, a response out.
//!
//! In order: limits and method, then the path, then a file below the root, then a generated body (a file that exists wins
//! over a made-up one of the same name), then preconditions, then ranges. It waits for nothing: where the disk must be asked,
//! another thread does it ([`Readers`](crate::readers::Readers)) and the request is tried again. Every worker has a handler of
//! its own, so that the caches need no lock.

use crate::body::{Body, Multipart, PartHeader, Source};
use crate::budget::{Budget, Level};
use crate::conditional::{self, Verdict};
use crate::content_type;
use crate::date::Clock;
pub use crate::file_options::{FileOptions, Generated};
use crate::files::cache::{Cache, Entry, Identity, Moment};
use crate::files::path::{self, DotFiles, PathError, Shape};
use crate::files::root::{Found, OpenError, Root};
use crate::generated;
pub use crate::listing::Listing;
use crate::listing::{Listings, View};
use crate::lookups::{Content, Lookups, Opened, read_whole};
use crate::pool::{Pool, Wait};
use crate::range::{self, Selection};
use crate::readers::{self, ResultWaker};
use crate::recent::OpenFile;
use crate::request::{Head, Method, Name};
use crate::response::{Fields, Response, Value, reason};
use crate::warnings::{Warning, Warnings};
use base::time::Instant;
use bytes::Bytes;
use coded::Coder;
pub(crate) use coded::Search;
use core::ops::Range;
use representation::Representation;
use rustix::fs::Advice;
use std::io;
use std::sync::Arc;
use std::task::Poll;

mod coded;
mod representation;
#[cfg(test)]
mod tests;

const ALLOWED: &str = "GET, HEAD, OPTIONS";
/// For generated bodies, which answer a POST when its content has arrived.
const ALLOWED_GENERATED: &str = "GET, HEAD, OPTIONS, POST";

/// Answers requests for files, listings and generated bodies.
#[derive(Debug)]
pub struct Files {
    root: Option<Root>,
    dot_files: DotFiles,
    /// Those of folders without an index, if they are listed.
    listings: Option<Listings>,
    cache: Cache,
    lookups: Lookups,
    index: Box<[u8]>,
    generated: Generated,
    pool: Arc<Pool>,
    /// If files are compressed.
    coder: Option<Box<Coder>>,
    budget: Budget,
    clock: Clock,
    warnings: Warnings,
    /// Separates the parts of multipart bodies. Random, so that no file can contain it on purpose.
    boundary: String,
    /// The path at hand; kept for its memory.
    path: Vec<u8>,
}

enum Lookup {
    Representation(Representation),
    Folder,
}

impl Files {
    /// A handler with empty caches.
    pub fn new(options: FileOptions) -> Files {
        let mut random = [0; 16];
        // Without randomness a boundary could be guessed, which confuses a client that asked for parts of a hostile file.
        let _ = getrandom::fill(&mut random);
        Files {
            root: options.root,
            dot_files: options.dot_files,
            listings: (options.listing == Listing::On).then(|| Listings::new(options.readers.clone())),
            index: options.index.into_bytes().into(),
            generated: options.generated,
            cache: Cache::new(options.cache),
            lookups: Lookups::new(options.readers.clone()),
            pool: Arc::new(Pool::new(options.readers)),
            coder: options.compression.map(Coder::new),
            budget: options.budget,
            clock: Clock::new(options.clock),
            warnings: options.warnings,
            boundary: format!("{:032x}", u128::from_le_bytes(random)),
            path: Vec::new(),
        }
    }

    /// Answers a request, and waits for the disk if it must be asked. `now` is the worker's clock.
    pub fn handle(&mut self, head: &Head, now: Instant) -> Response {
        readers::wait(|wake_target| self.poll_handle(head, now, wake_target))
    }

    /// Answers a request, unless the disk must be asked first: then `whom` is woken, and should ask again.
    pub fn poll_handle(&mut self, head: &Head, now: Instant, wake_target: ResultWaker<'_>) -> Poll<Response> {
        self.poll_search(head, &mut Search::default(), now, wake_target)
    }

    /// The same for a caller that keeps how far the search has come, and begins with it when it asks again.
    pub(crate) fn poll_search(
        &mut self,
        head: &Head,
        search: &mut Search,
        now: Instant,
        wake_target: ResultWaker<'_>,
    ) -> Poll<Response> {
        self.clock.advance(now);
        if self.budget.level() == Level::Short {
            return Poll::Ready(self.open_error(OpenError::Exhausted));
        }
        let mut path = std::mem::take(&mut self.path);
        let mut response = self.answer(head, &mut path, search, now);
        self.path = path;
        if let Some(path) = self.lookups.take_wanted()
            && let Some(root) = &self.root
        {
            return match self.lookups.ask(root, path, self.cache.largest(), wake_target) {
                Ok(()) => Poll::Pending,
                Err(_) => Poll::Ready(self.open_error(OpenError::Exhausted)),
            };
        }
        if self.coder.as_mut().is_some_and(|coder| coder.ask(wake_target)) {
            return Poll::Pending;
        }
        if let (Some(root), Some(listings)) = (&self.root, &mut self.listings)
            && let Some(wanted) = listings.take_wanted()
        {
            listings.ask((root, self.dot_files), wanted, now, wake_target);
            return Poll::Pending;
        }
        if head.method() == Method::Head {
            response.body = Body::Empty;
        }
        Poll::Ready(response)
    }

    /// Answers a request that goes no further, such as one with too much content. `what` must come from us, not from the
    /// request.
    pub fn refuse(&mut self, status: u16, what: &str, now: Instant) -> Response {
        self.clock.advance(now);
        self.error(status, what)
    }

    /// Answers by content in memory, unless the status has none: RFC 9110 §8.6.
    pub(crate) fn fixed(
        &mut self,
        status: u16,
        content_type: &str,
        content: &Bytes,
        now: Instant,
    ) -> Response {
        self.clock.advance(now);
        if matches!(status, 204 | 304) {
            return Response { status, fields: self.fields(), body: Body::Empty };
        }
        let fields = self.content_fields(content.len() as u64, Value::copied(content_type.as_bytes()));
        Response { status, fields, body: Body::Static(content.clone()) }
    }

    /// Answers a request of a client whose address has had its share of the memory.
    pub fn put_off(&mut self, now: Instant) -> Response {
        self.clock.advance(now);
        self.open_error(OpenError::Exhausted)
    }

    /// The memory that all connections may hold together.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// What tells the wall clock.
    pub(crate) fn wall_clock(&self) -> fn() -> u64 {
        self.clock.reader()
    }

    /// Where the server that this handler belongs to notes warnings.
    pub fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    fn answer(&mut self, head: &Head, path: &mut Vec<u8>, search: &mut Search, now: Instant) -> Response {
        if let Some((status, what)) = head.refusal() {
            return self.error(status, what);
        }
        if head.is_too_large() {
            return self.error(431, "");
        }
        match head.method() {
            Method::Get | Method::Head => {}
            Method::Options | Method::Post | Method::Other => return self.answer_unlike_get(head, path, now),
        }
        match path::resolve(head.target(), self.dot_files, path) {
            Ok(Shape::Folder) => {
                // First, because that a folder has no index may be known only for as long as it takes to list it.
                if let Some(response) = self.find_listing(head, path, now) {
                    return response;
                }
                if self.index.is_empty() {
                    return self.list(head, path);
                }
                let folder = path.len();
                if !path.is_empty() {
                    path.push(b'/');
                }
                path.extend_from_slice(&self.index);
                match self.find_coded(head, path, search, now) {
                    Ok(Lookup::Representation(representation)) => self.respond(head, representation),
                    Ok(Lookup::Folder) | Err(OpenError::Absent) => {
                        self.list(head, path.get(..folder).unwrap_or_default())
                    }
                    Err(error) => self.open_error(error),
                }
            }
            Ok(Shape::File) => match self.find_coded(head, path, search, now) {
                Ok(Lookup::Representation(representation)) => self.respond(head, representation),
                Ok(Lookup::Folder) => self.redirect(path::folder_target(path, head.target())),
                Err(OpenError::Absent) => match self.made_up(path) {
                    Some(made_up) => self.respond(head, made_up),
                    None => self.error(404, ""),
                },
                Err(error) => self.open_error(error),
            },
            Err(PathError::Malformed(what)) => self.error(400, what),
            Err(PathError::Hidden | PathError::TooLongForAFile) => self.error(404, ""),
            Err(PathError::TooLong) => self.error(414, ""),
        }
    }

    /// Answers a request for a folder by its listing, if that was made just now.
    fn find_listing(&mut self, head: &Head, path: &[u8], now: Instant) -> Option<Response> {
        match self.listings.as_mut()?.find(path, || View::of(head), now)? {
            Ok(listed) => Some(self.respond(head, Representation::listing(listed, View::of(head)))),
            Err(error) => Some(self.open_error(error)),
        }
    }

    /// What no file has to be there for.
    fn made_up(&self, path: &[u8]) -> Option<Representation> {
        (self.generated == Generated::Serve).then(|| Representation::made_up(path))?
    }

    /// Has a folder listed, which has no index.
    fn list(&mut self, head: &Head, path: &[u8]) -> Response {
        let (Some(root), Some(listings)) = (&self.root, &mut self.listings) else {
            return self.error(404, "");
        };
        match root.find_in_memory(path) {
            Some(Ok(Found::File(..))) => self.open_error(OpenError::Absent),
            Some(Err(error)) => self.open_error(error),
            Some(Ok(Found::Folder)) | None => {
                listings.want(path, View::of(head));
                self.open_error(OpenError::Waiting)
            }
        }
    }

    /// Methods that ask for no representation.
    fn answer_unlike_get(&mut self, head: &Head, path: &mut Vec<u8>, now: Instant) -> Response {
        let is_file = matches!(path::resolve(head.target(), self.dot_files, path), Ok(Shape::File));
        let size = generated::size_of(path).filter(|_| is_file && self.generated == Generated::Serve);
        // A file of that name wins, as for GET.
        let size = size.filter(|_| matches!(self.find(path, now), Err(OpenError::Absent)));
        let allowed = if size.is_some() { ALLOWED_GENERATED } else { ALLOWED };
        match (head.method(), size) {
            (Method::Options, _) => {
                let mut fields = self.fields();
                fields.push("allow", Value::Static(allowed));
                Response { status: 204, fields, body: Body::Empty }
            }
            (Method::Post, Some(size)) => {
                let fields = self.content_fields(size, Value::Static(content_type::UNKNOWN));
                Response { status: 200, fields, body: Source::Generated.body(0..size) }
            }
            _ => {
                let mut response = self.error(405, "");
                response.fields.push("allow", Value::Static(allowed));
                response
            }
        }
    }

    fn find(&mut self, path: &[u8], now: Instant) -> Result<Lookup, OpenError> {
        let Some(root) = &mut self.root else { return Err(OpenError::Absent) };
        let moment = Moment::of(now);
        if let Some(found) = self
            .cache
            .fresh(path, now)
            .and_then(|entry| Representation::known(entry, &self.pool, &self.clock))
        {
            return Ok(Lookup::Representation(found));
        }
        self.lookups.refresh(root, now);
        let Some(found) = self.lookups.look(root, path) else { return Err(OpenError::Waiting) };
        let (file, identity, content) = match found {
            Ok(Opened::File(file, identity, content)) => (file, identity, content),
            Ok(Opened::Folder) => {
                self.cache.remove(path);
                return Ok(Lookup::Folder);
            }
            Err(error) => {
                self.cache.remove(path);
                return Err(error);
            }
        };
        if let Some(entry) = self.cache.confirmed(path, identity, moment)
            && let Some(found) = Representation::known(entry, &self.pool, &self.clock)
        {
            return Ok(Lookup::Representation(found));
        }
        let content = match content {
            Content::Read(content) => content,
            Content::Unread if self.cache.wants(identity.size()) => {
                match read_whole(&file, identity, Wait::Never) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        self.lookups.want(path);
                        return Err(OpenError::Waiting);
                    }
                    content => content.ok(),
                }
            }
            Content::Unread => None,
        };
        let mut entry = match content {
            Some(content) => Entry::in_memory(identity, content_type::of(path), content, moment),
            None => return self.keep_open(path, file, identity, moment).map(Lookup::Representation),
        };
        let found = Representation::known(&mut entry, &self.pool, &self.clock).ok_or(OpenError::Broken);
        self.cache.insert(path.into(), entry);
        found.map(Lookup::Representation)
    }

    /// Makes and remembers the entry of a file that is read as it is sent.
    fn keep_open(
        &mut self,
        path: &[u8],
        file: OpenFile,
        identity: Identity,
        moment: Moment,
    ) -> Result<Representation, OpenError> {
        // Files are mostly read from front to back: let the kernel read further ahead. Only advice, so errors do not matter.
        let _ = rustix::fs::fadvise(file.descriptor(), 0, None, Advice::Sequential);
        let file = Arc::new(file);
        let mut entry = Entry::open(identity, content_type::of(path), &file, moment);
        let found = Representation::known(&mut entry, &self.pool, &self.clock).ok_or(OpenError::Broken);
        self.cache.insert(path.into(), entry);
        found
    }

    fn respond(&self, head: &Head, found: Representation) -> Response {
        match conditional::evaluate(head, &found.validators) {
            Verdict::Proceed => {}
            Verdict::NotModified => {
                let mut fields = self.fields();
                fields.push("etag", found.validators.etag.clone());
                push_all(&mut fields, found.fields);
                return Response { status: 304, fields, body: Body::Empty };
            }
            Verdict::Failed => return self.error(412, ""),
        }
        // RFC 9110 §14.2: a range means something for GET only.
        let asked = head.value(Name::Range).filter(|_| head.method() == Method::Get);
        let selection = match asked {
            Some(value) if conditional::range_applies(head, &found.validators, self.clock.unix_s()) => {
                range::select(value, found.size)
            }
            _ => Selection::Whole,
        };
        match selection {
            // A coding is that of the whole; parts with heads of their own would be none.
            Selection::Parts(parts) if parts.len() == 1 || found.coding.is_none() => {
                self.partial(&parts, found)
            }
            Selection::Whole | Selection::Parts(_) => {
                let fields = found.whole_fields(&self.clock);
                Response { status: 200, fields, body: found.source.into_body(found.size) }
            }
            Selection::Unsatisfiable => {
                let mut response = self.error(416, "");
                response.fields.push("content-range", Value::from(format!("bytes */{}", found.size)));
                response
            }
        }
    }

    fn partial(&self, parts: &[Range<u64>], found: Representation) -> Response {
        let (mut fields, body) = match parts {
            [part] => {
                let mut fields =
                    self.content_fields(part.end - part.start, Value::Static(found.content_type));
                let text = format!("bytes {}-{}/{}", part.start, part.end.saturating_sub(1), found.size);
                fields.push("content-range", Value::from(text));
                (fields, found.source.body(part.clone()))
            }
            parts => {
                let (boundary, content_type, size) = (self.boundary.as_str(), found.content_type, found.size);
                let of = PartHeader { boundary, content_type, size };
                let body = Body::Multipart(Box::new(Multipart::new(found.source.clone(), parts, of)));
                let content_type = Value::from(format!("multipart/byteranges; boundary={boundary}"));
                (self.content_fields(body.remaining(), content_type), body)
            }
        };
        found.push_validators(&self.clock, &mut fields);
        Response { status: 206, fields, body }
    }

    fn redirect(&self, location: String) -> Response {
        let mut response = self.error(301, "");
        response.fields.push("location", Value::from(location));
        response
    }

    fn open_error(&self, error: OpenError) -> Response {
        match error {
            OpenError::Absent => self.error(404, ""),
            OpenError::Forbidden => self.error(403, ""),
            // The response is discarded while the request waits for the disk.
            OpenError::Broken | OpenError::Waiting => self.error(500, ""),
            OpenError::Exhausted => {
                self.warnings.note(Warning::Unavailable, 1);
                let mut response = self.error(503, "");
                response.fields.push("retry-after", Value::Static("1"));
                response
            }
        }
    }

    /// A response whose body says in one line what is the matter. `what` must come from us, not from the request.
    fn error(&self, status: u16, what: &str) -> Response {
        let colon = if what.is_empty() { "" } else { ": " };
        let text = format!("{status} {}{colon}{what}\n", reason(status));
        let fields = self.content_fields(text.len() as u64, Value::Static("text/plain; charset=utf-8"));
        Response { status, fields, body: Body::Static(Bytes::from(text)) }
    }

    fn fields(&self) -> Fields {
        dated(&self.clock)
    }

    fn content_fields(&self, length: u64, content_type: Value) -> Fields {
        of_content(&self.clock, length, content_type)
    }
}

/// RFC 9110 §6.6.1: an origin server with a clock sends Date.
fn dated(clock: &Clock) -> Fields {
    let mut fields = Fields::default();
    fields.push("date", Value::copied(clock.text()));
    fields
}

fn of_content(clock: &Clock, length: u64, content_type: Value) -> Fields {
    let mut fields = dated(clock);
    fields.push("content-type", content_type);
    fields.push("content-length", Value::decimal(length));
    fields
}

fn push_all(fields: &mut Fields, more: &[(&'static str, &'static str)]) {
    more.iter().for_each(|(name, value)| fields.push(name, Value::Static(value)));
}
