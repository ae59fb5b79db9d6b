//! Where exchanges run: on the thread of the connection if that is one of tokio's, else on a runtime that all others share.

use body::Body;
use http::Response;
use server::sites::{RouteError, RouteFuture};
use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

/// The shared runtime has at most this many threads. They move bytes.
const MOST_THREADS: usize = 4;

/// Which connections a thread uses: those that its own runtime drives. All threads of the shared runtime have 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Realm(usize);

thread_local! {
    static REALM: Cell<Option<Realm>> = const { Cell::new(None) };
}

impl Realm {
    /// That of this thread.
    pub(crate) fn here() -> Realm {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        REALM.get().unwrap_or_else(|| {
            let realm = Realm(NEXT.fetch_add(1, Ordering::Relaxed));
            REALM.set(Some(realm));
            realm
        })
    }
}

/// Made with the first exchange that needs it, and kept.
static SHARED: Mutex<Option<Runtime>> = Mutex::new(None);

/// The runtime that all threads without one share.
pub(crate) fn shared() -> io::Result<Handle> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = &*shared {
        return Ok(runtime.handle().clone());
    }
    // The thread that needs it first may be kept on one core.
    let threads = cpu::unpinned().len().clamp(1, MOST_THREADS);
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("proxy")
        .on_thread_start(|| {
            cpu::unpin();
            REALM.set(Some(Realm(0)));
        })
        .enable_io()
        .enable_time()
        .build()?;
    let handle = runtime.handle().clone();
    *shared = Some(runtime);
    Ok(handle)
}

/// The result of a task. Dropped, the task is cancelled.
struct Task<T>(JoinHandle<T>);

impl<T> Future for Task<T> {
    type Output = io::Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        Poll::Ready(match ready!(Pin::new(&mut self.0).poll(cx)) {
            Ok(result) => Ok(result),
            // It ends this request, as a panic on the thread of the connection does.
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(error) => Err(io::Error::other(error)),
        })
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An exchange. It is boxed where it is made: it is large, and each move copies it.
pub(crate) type Exchange = Pin<Box<dyn Future<Output = Result<Response<Body>, RouteError>> + Send>>;

/// Has `exchange` run here, or on the shared runtime.
pub(crate) fn run(exchange: Exchange) -> RouteFuture {
    if Handle::try_current().is_ok() {
        return exchange;
    }
    let spawned = shared().map(|runtime| Task(runtime.spawn(exchange)));
    Box::pin(async move {
        match spawned {
            Ok(task) => task.await.unwrap_or(Err(UNSERVED)),
            Err(_) => Err(UNSERVED),
        }
    })
}

/// The system has no threads left.
const UNSERVED: RouteError = RouteError { status: 503, what: "" };
