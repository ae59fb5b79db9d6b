//! An async function as a service.

use body::Body;
use std::future::Future;
use std::task::{Context, Poll};
use tower_service::Service;

/// An async function as a service, always ready. See [`service_fn`].
#[derive(Clone, Copy, Debug)]
pub struct ServiceFn<F>(F);

/// Makes a service of an async function from a request to a response or an error. An error is answered with 500.
pub fn service_fn<F, R, B, E>(function: F) -> ServiceFn<F>
where
    F: FnMut(http::Request<Body>) -> R,
    R: Future<Output = Result<http::Response<B>, E>>,
{
    ServiceFn(function)
}

impl<F, R, B, E> Service<http::Request<Body>> for ServiceFn<F>
where
    F: FnMut(http::Request<Body>) -> R,
    R: Future<Output = Result<http::Response<B>, E>>,
{
    type Response = http::Response<B>;
    type Error = E;
    type Future = R;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), E>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> R {
        (self.0)(request)
    }
}
