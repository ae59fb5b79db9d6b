//! Files that clients store by PUT (RFC 9110 §9.3.4): whole or not at all, never outside of the root. The service of routes with the key "upload".
//!
//! ```text
//! content ──▶ UNWRITTEN bytes at most ──▶ a temporary file beside the file ──▶ fsync ──▶ rename, if the conditions still hold
//! ```
//!
//! A file is replaced by a rename, so readers see the old one or the new one. Threads of their own do all work on the disk (store.rs);
//! the thread of the connection holds what arrives meanwhile. Bounds: the bytes of a file, [`MOST`] uploads at a time, and
//! [`UNWRITTEN`] bytes of each in memory.

mod store;
#[cfg(test)]
mod tests;

use crate::connection_info::ConnectionInfo;
use crate::files::path::{DotFiles, PathError, Shape, resolve};
use crate::files::root::Root;
use crate::readers::{Readers, ThreadRule, Ticket};
use crate::request::Head;
use crate::sites::{RouteError, RouteFuture, RouteService};
use ::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;
use store::{Partial, Stored};

/// Uploads of one folder at a time.
const MOST: usize = 64;
/// Bytes of an upload that are gathered before a thread writes them.
const UNWRITTEN: usize = 128 * 1024;
/// Threads that write.
const THREADS: ThreadRule = ThreadRule { name: "uploader", most: 8, stack: 128 * 1024, niceness: 0 };

/// A folder in which clients may store files. Clones are the same.
#[derive(Clone, Debug)]
pub struct Uploads {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: store::Store,
    dot_files: DotFiles,
    max_bytes: u64,
    threads: Readers,
    under_way: AtomicUsize,
}

const TOO_LARGE: RouteError = refused(413, "the file is larger than this server stores");

/// Why a file is not stored: a status from 400 on, and what is wrong in a few words, or none.
const fn refused(status: u16, what: &'static str) -> RouteError {
    RouteError { status, what }
}

impl Uploads {
    /// Files below `root` of at most `max_bytes`.
    pub fn new(root: Root, dot_files: DotFiles, max_bytes: u64) -> Uploads {
        let threads = Readers::by(THREADS);
        let store = store::Store::new(root);
        let under_way = AtomicUsize::new(0);
        Uploads { shared: Arc::new(Shared { store, dot_files, max_bytes, threads, under_way }) }
    }

    /// Stores the content of a PUT: 201 for a new file, 204 for one that was there, with the entity tag that it has now.
    ///
    /// # Errors
    /// Nothing has changed: 400 for a path that is none or a part of a file; 403 where the server may not write; 404 for a hidden name; 409
    /// where the folder is missing or the name is that of a folder; 412 for conditions that do not hold; 413 for too much content; 503 for too
    /// many at once; 507 for a full disk; 500 for a broken one.
    pub async fn put(&self, request: Request<Body>) -> Result<Response<Body>, RouteError> {
        let (parts, mut content) = request.into_parts();
        let path = self.path(parts.uri.path())?;
        if parts.headers.contains_key(header::CONTENT_RANGE) {
            return Err(refused(400, "a part of a file cannot be stored"));
        }
        let announced =
            parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        if announced.is_some_and(|bytes: u64| bytes > self.shared.max_bytes) {
            return Err(TOO_LARGE);
        }
        let _permit = UploadPermit::of(&self.shared).ok_or(refused(503, ""))?;
        let conditions = conditions(&parts.headers);
        let mut upload = Upload { shared: Arc::clone(&self.shared), partial: None };
        upload.run(move |store, _| store.begin(path, conditions).map(Some)).await?;
        let mut bytes = 0_u64;
        let mut unwritten = Vec::new();
        let mut waiting = 0;
        while let Some(chunk) =
            content.chunk().await.map_err(|_| refused(400, "the content is not complete"))?
        {
            bytes = bytes.saturating_add(chunk.len() as u64);
            if bytes > self.shared.max_bytes {
                return Err(TOO_LARGE);
            }
            waiting += chunk.len();
            unwritten.push(chunk);
            if waiting >= UNWRITTEN {
                waiting = 0;
                upload.write(std::mem::take(&mut unwritten)).await?;
            }
        }
        upload.write(unwritten).await?;
        let stored = upload.finish().await?;
        let status = if stored.is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status;
        if let Ok(etag) = HeaderValue::from_bytes(stored.etag.as_bytes()) {
            response.headers_mut().insert(header::ETAG, etag);
        }
        Ok(response)
    }

    /// The path below the root.
    fn path(&self, target: &str) -> Result<Vec<u8>, RouteError> {
        let mut path = Vec::new();
        let shape = resolve(target.as_bytes(), self.shared.dot_files, &mut path);
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        match shape {
            Ok(_) if name.starts_with(store::TEMPORARY) => Err(refused(404, "")),
            Ok(Shape::File) => Ok(path),
            Ok(Shape::Folder) => Err(refused(409, "the name of a file does not end in a slash")),
            Err(PathError::Malformed(what)) => Err(refused(400, what)),
            Err(PathError::Hidden) => Err(refused(404, "")),
            Err(PathError::TooLong | PathError::TooLongForAFile) => Err(refused(414, "")),
        }
    }
}

impl RouteService for Uploads {
    fn call(&self, request: Request<Body>, _: ConnectionInfo) -> RouteFuture {
        let uploads = self.clone();
        Box::pin(async move {
            if request.method() != http::Method::PUT {
                return Err(refused(405, ""));
            }
            uploads.put(request).await
        })
    }
}

/// One of the [`MOST`] uploads at a time.
struct UploadPermit<'a>(&'a AtomicUsize);

impl UploadPermit<'_> {
    fn of(shared: &Shared) -> Option<UploadPermit<'_>> {
        let taken = shared.under_way.fetch_add(1, Ordering::Relaxed);
        let permit = UploadPermit(&shared.under_way);
        (taken < MOST).then_some(permit)
    }
}

impl Drop for UploadPermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The conditions of a request, as those of files are judged.
fn conditions(fields: &http::HeaderMap) -> Head {
    let mut head = Head::of("PUT", "/");
    for name in
        [header::IF_MATCH, header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, header::IF_UNMODIFIED_SINCE]
    {
        for value in fields.get_all(&name) {
            head.on_field(name.as_str().as_bytes(), value.as_bytes());
        }
    }
    head
}

/// A file that is on its way. Dropped before its end, the temporary file goes.
struct Upload {
    shared: Arc<Shared>,
    partial: Option<Partial>,
}

impl Upload {
    async fn write(&mut self, chunks: Vec<Bytes>) -> Result<(), RouteError> {
        if chunks.is_empty() {
            return Ok(());
        }
        self.run(move |_, partial| partial.map(|partial| partial.write(&chunks)).transpose()).await
    }

    async fn finish(&mut self) -> Result<Stored, RouteError> {
        let shared = Arc::clone(&self.shared);
        let partial = self.partial.take().ok_or(store::BROKEN)?;
        on_thread(&self.shared.threads, move || shared.store.finish(partial)).await
    }

    /// Has a thread do `work` with the temporary file.
    async fn run(
        &mut self,
        work: impl FnOnce(&store::Store, Option<Partial>) -> Result<Option<Partial>, RouteError> + Send + 'static,
    ) -> Result<(), RouteError> {
        let shared = Arc::clone(&self.shared);
        let partial = self.partial.take();
        self.partial = on_thread(&self.shared.threads, move || work(&shared.store, partial)).await?;
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(partial) = self.partial.take() {
            // It is removed there: this thread must not wait for the disk.
            self.shared.threads.run(move || drop(partial));
        }
    }
}

/// The result of `work`, which one of `threads` does.
async fn on_thread<T: Send + 'static>(
    threads: &Readers,
    work: impl FnOnce() -> Result<T, RouteError> + Send + 'static,
) -> Result<T, RouteError> {
    let mut ticket: Option<Ticket<Result<T, RouteError>>> = None;
    let mut work = Some(work);
    let done = poll_fn(|cx| {
        let waker: &Waker = cx.waker();
        if let Some(work) = work.take() {
            ticket = Some(threads.submit(waker.clone(), work));
        }
        match &ticket {
            Some(ticket) => ticket.poll(&|| Some(waker.clone())),
            None => std::task::Poll::Ready(None),
        }
    });
    done.await.unwrap_or(Err(store::BROKEN))
}
