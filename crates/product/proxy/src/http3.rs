//! Connections of HTTP/3 to upstreams, by our own client. One thread drives all of them.

use crate::content::Sent;
use crate::failure::Refused;
use crate::quic::MOST_REQUESTS;
use crate::tls::Tls;
use body::Body;
use client::{Http3Connection, Http3Endpoint};
use http::{Request, Response};
use http_body::Body as _;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// The thread of all connections: started with the first one, and again should its socket have broken.
static ENDPOINT: Mutex<Option<Http3Endpoint>> = Mutex::new(None);

fn endpoint() -> io::Result<Http3Endpoint> {
    let mut endpoint = ENDPOINT.lock().unwrap_or_else(PoisonError::into_inner);
    match &*endpoint {
        Some(running) if running.is_open() => Ok(running.clone()),
        _ => Ok(endpoint.insert(Http3Endpoint::start()?).clone()),
    }
}

/// A connection of HTTP/3. It is closed when the last clone and the last exchange are over.
#[derive(Clone, Debug)]
pub(crate) struct Http3(Http3Connection);

/// Connects to an upstream.
///
/// # Errors
/// It does not answer, or has not the certificate that it should have.
pub(crate) async fn connect((host, port): (&str, u16), tls: Option<&Tls>) -> io::Result<Http3> {
    let known = tls.and_then(|tls| Some((tls.over_quic.as_ref()?, tls.name_of(host))));
    let Some((config, name)) = known else { return Err(io::Error::other("there are no roots to trust")) };
    let name = name.map_err(io::Error::other)?;
    let connected = endpoint()?.connect((host, port), &name.to_str(), config).await;
    connected.map(Http3).map_err(io::Error::other)
}

impl Http3 {
    /// Whether it takes another request at once. The pool has a clone, and each request.
    pub(crate) fn is_ready(&self) -> bool {
        !self.is_closed() && self.0.clones() <= MOST_REQUESTS
    }

    pub(crate) fn is_closed(&self) -> bool {
        !self.0.is_open()
    }

    /// Whether the upstream takes extended CONNECT, once it has said so.
    pub(crate) async fn takes_extended_connect(&self) -> bool {
        self.0.takes_extended_connect().await
    }

    /// Sends a request; the head of the response is to come.
    pub(crate) fn send(
        &self,
        request: Request<Sent>,
    ) -> impl Future<Output = Result<Response<Body>, Refused>> + use<> {
        let (head, content) = request.into_parts();
        let again = head.clone();
        let (progress, is_empty) = (Arc::clone(content.progress()), content.is_end_stream());
        let sent = self.0.send(head, Body::new(content));
        async move {
            let unanswered = match sent.await {
                Ok(response) => return Ok(response),
                Err(unanswered) => unanswered,
            };
            // The text has what is behind it.
            let error = unanswered.error.to_string().into();
            let content = unanswered.content.or_else(|| is_empty.then(Body::empty));
            let content = content.filter(|_| unanswered.error.is_retryable());
            let request =
                content.map(|content| Request::from_parts(again, Sent::returned(content, progress)));
            Err(Refused { request: request.map(Box::new), error })
        }
    }
}
