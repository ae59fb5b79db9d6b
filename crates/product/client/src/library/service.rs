//! The client as a [`tower_service::Service`].

use super::client::Client;
use super::error::Error;
use ::body::{Body, BoxError};
use bytes::Bytes;
use http::{Request, Response};
use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tower_service::Service;

/// A response that will come.
type Responding = Pin<Box<dyn Future<Output = Result<Response<Body>, Error>> + Send>>;

/// The content as a [`Body`]: the same if it is one.
fn content<B>(content: B) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let mut content = Some(content);
    let own = (&mut content as &mut dyn Any).downcast_mut::<Option<Body>>().and_then(Option::take);
    own.or_else(|| content.map(Body::new)).unwrap_or_default()
}

impl<B> Service<Request<B>> for Client
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Error;
    type Future = Responding;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Responding {
        let (client, request) = (self.clone(), request.map(content));
        Box::pin(async move { client.request(request).await })
    }
}

impl<B> Service<Request<B>> for &Client
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Error;
    type Future = Responding;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Responding {
        (*self).clone().call(request)
    }
}
