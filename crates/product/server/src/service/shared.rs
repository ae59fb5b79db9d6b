//! A service whose futures run on a runtime of the program's, and not on the thread of the connection: a handler that blocks
//! holds up no connection. A request costs two crossings of threads.

use super::http_service::HttpService;
use body::Body;
use http::{Request, Response};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tower_service::Service;

/// A service on a runtime.
#[derive(Clone)]
pub(crate) struct OnRuntime<S> {
    service: S,
    runtime: Handle,
}

impl<S> OnRuntime<S> {
    pub(crate) fn new(service: S, runtime: Handle) -> OnRuntime<S> {
        OnRuntime { service, runtime }
    }
}

/// The response, once the task has it. Dropped, the task is cancelled.
pub(crate) struct Answer<T, E>(JoinHandle<Result<T, E>>);

/// Why there is no response.
#[derive(Debug)]
pub(crate) enum Failed<E> {
    Service(E),
    /// The runtime has shut down.
    Cancelled,
}

impl<E: fmt::Display> fmt::Display for Failed<E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Service(error) => error.fmt(out),
            Failed::Cancelled => out.write_str("the runtime has shut down"),
        }
    }
}

impl<T, E> Future for Answer<T, E> {
    type Output = Result<T, Failed<E>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(Pin::new(&mut self.0).poll(cx)) {
            Ok(result) => result.map_err(Failed::Service),
            // It ends this request, as a panic on the thread of the connection does.
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(Failed::Cancelled),
        })
    }
}

impl<T, E> Drop for Answer<T, E> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<S> Service<Request<Body>> for OnRuntime<S>
where
    S: HttpService<Content: Send, Error: Send + 'static, Future: Send> + Send,
{
    type Response = Response<S::Content>;
    type Error = Failed<S::Error>;
    type Future = Answer<Response<S::Content>, S::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        // The task waits.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut service = self.service.clone();
        Answer(self.runtime.spawn(async move {
            poll_fn(|cx| service.poll_ready(cx)).await?;
            service.call(request).await
        }))
    }
}
