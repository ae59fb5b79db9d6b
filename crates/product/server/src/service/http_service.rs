//! What a server takes as a service: the bounds in one place.

use body::Body;
use bytes::Bytes;
use http::{Request, Response};
use std::fmt::Display;
use tower_service::Service;

/// A service that answers requests of HTTP: each `tower_service::Service<http::Request<Body>>` whose response is an `http::Response`,
/// such as a `Router` of axum, or an async function by [`service_fn`](super::service_fn).
///
/// A service has it by its type, and nothing else can have it: the implementation for all of them leaves no room for one by name. What
/// it asks of a service:
///
/// | part | bounds | because |
/// |---|---|---|
/// | the service | `Clone + 'static` | threads, and over HTTP/1.1 and 2 requests, have a clone each |
/// | its future | `'static` | it outlives the call; it need not be `Send` |
/// | its error | `Display` | it is answered with 500 |
/// | the content of responses | `http_body::Body<Data = Bytes> + 'static`, its error `Display` | it is sent without a copy; an error resets the stream |
///
/// ```
/// use server::HttpService;
/// async fn hello(_: http::Request<body::Body>) -> Result<http::Response<body::Body>, std::convert::Infallible> {
///     Ok(http::Response::new("hello".into()))
/// }
///
/// // A function of a program's own takes services by this one bound.
/// fn serve(service: impl HttpService + Send) -> Result<server::Running, server::BindError> {
///     server::Server::builder().listen(([127, 0, 0, 1], 0).into()).serve(service)
/// }
/// # fn run() -> Result<(), server::BindError> {
/// let server = serve(server::service::service_fn(hello))?;
/// # drop(server);
/// # Ok(())
/// # }
/// ```
///
/// A function alone is no service:
///
/// ```compile_fail,E0277
/// async fn hello(_: http::Request<body::Body>) -> Result<http::Response<body::Body>, std::convert::Infallible> {
///     Ok(http::Response::new("hello".into()))
/// }
/// let server = server::Server::builder().serve(hello);
/// ```
///
/// Nor does a service go to the threads of a server that may not leave its own:
///
/// ```compile_fail,E0277
/// # async fn hello(_: http::Request<body::Body>) -> Result<http::Response<body::Body>, std::convert::Infallible> {
/// #     Ok(http::Response::new("hello".into()))
/// # }
/// let count = std::rc::Rc::new(0);
/// let service = server::service::service_fn(move |request| (hello(request), count.clone()).0);
/// let server = server::Server::builder().serve(service);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no service that answers HTTP requests",
    label = "not a service of `http::Request<tercel::Body>`",
    note = "an async function from `http::Request<tercel::Body>` to `Result<http::Response<_>, _>` becomes one by `tercel::service_fn`",
    note = "others implement `tower_service::Service<http::Request<tercel::Body>, Response = http::Response<B>>` and are `Clone + 'static`, with \
            an error that is `Display` and a future that is `'static`; `B` is `http_body::Body<Data = bytes::Bytes> + 'static`, with an \
            error that is `Display`"
)]
pub trait HttpService:
    Service<
        Request<Body>,
        Response = Response<<Self as HttpService>::Content>,
        Error: Display,
        Future: 'static,
    > + Clone
    + 'static
{
    /// The content of responses.
    type Content: http_body::Body<Data = Bytes, Error: Display> + 'static;
}

#[diagnostic::do_not_recommend]
impl<S, B> HttpService for S
where
    S: Service<Request<Body>, Response = Response<B>, Error: Display, Future: 'static> + Clone + 'static,
    B: http_body::Body<Data = Bytes, Error: Display> + 'static,
{
    type Content = B;
}
