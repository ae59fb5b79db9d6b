//! Connections of HTTP/1.1 and 2, by hyper.

use super::alert::{self, Noting, ReceivedAlert};
use super::content::Content;
use super::error::{Error, Kind};
use super::hyper_error::of_hyper;
use super::refused::Refused;
use super::upload::EndWithUpload;
use crate::fault::refusal;
use crate::tasks::{Tasks, spawn};
use body::Body;
use http::{Request, Response};
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;

/// HTTP/2's window for each stream, in bytes: what waits for a reader at most, and what a server sends in a round trip at most. A
/// megabyte held downloads at 210 Mbit/s where the round trip is 40 ms.
const STREAM_WINDOW: u32 = 6 << 20;
/// HTTP/2's window for a connection, in bytes.
const CONNECTION_WINDOW: u32 = 8 << 20;

/// A socket, or TLS over one. hyper is compiled for this one type: a call by pointer is little beside a read of a socket.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Which version of HTTP a connection speaks, and how requests are sent on it.
pub(crate) enum TcpConnection {
    /// One request at a time.
    Http1(Http1),
    Http2(Http2),
}

/// A connection of HTTP/1.1, and the task that moves its bytes.
pub(crate) struct Http1 {
    pub(crate) sender: http1::SendRequest<Body>,
    task: AbortHandle,
    received: ReceivedAlert,
}

/// A connection of HTTP/2; clones share it.
#[derive(Clone)]
pub(crate) struct Http2 {
    pub(crate) sender: http2::SendRequest<Body>,
    received: ReceivedAlert,
}

/// Connects to `peer`, with TLS if there is a configuration. `alive` is kept until the connection has ended.
///
/// # Errors
/// Nothing answers, TLS fails, or the server does not agree to a version of HTTP that was offered.
pub(crate) async fn connect<T: Send + 'static>(
    peer: SocketAddr,
    host: &str,
    tls: Option<Arc<rustls::ClientConfig>>,
    alive: T,
) -> Result<TcpConnection, Error> {
    let unreachable = |error| Error::caused(Kind::Connect, &format!("cannot connect to TCP {peer}"), error);
    let stream = TcpStream::connect(peer).await.map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    let Some(config) = tls else { return begin_http1(Box::new(stream), alive).await };
    let offers_http1 = config.alpn_protocols.iter().any(|protocol| protocol == b"http/1.1");
    let name = ServerName::try_from(host.to_owned()).map_err(|error| {
        Error::caused(Kind::Request, "no certificate can have the name of the host", error)
    })?;
    let stream = TlsConnector::from(config).connect(name, stream).await.map_err(|error| of_tls(&error))?;
    match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => begin_http2(Box::new(stream), alive).await,
        _ if offers_http1 => begin_http1(Box::new(stream), alive).await,
        _ => Err(Error::new(Kind::Protocol, "the server does not speak HTTP/2")),
    }
}

async fn begin_http1(stream: Box<dyn Stream>, alive: impl Send + 'static) -> Result<TcpConnection, Error> {
    let stream = Noting::new(stream);
    let received = stream.received();
    let (sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| of_hyper(&error))?;
    let task = drive(connection, alive);
    Ok(TcpConnection::Http1(Http1 { sender, task, received }))
}

async fn begin_http2(stream: Box<dyn Stream>, alive: impl Send + 'static) -> Result<TcpConnection, Error> {
    let stream = Noting::new(stream);
    let received = stream.received();
    let (sender, connection) = http2::Builder::new(Tasks)
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| of_hyper(&error))?;
    drive(connection, alive);
    Ok(TcpConnection::Http2(Http2 { sender, received }))
}

/// Moves a connection's bytes until it ends. Its errors are those of its requests.
fn drive(connection: impl Future + Send + 'static, alive: impl Send + 'static) -> AbortHandle {
    let task = spawn(Box::pin(async move {
        let _ = connection.await;
        drop(alive);
    }));
    task.abort_handle()
}

/// Ends the connection of a request that was cancelled. hyper alone would first send what the server does not read.
struct AbortOnDrop<'a>(Option<&'a AbortHandle>);

impl Drop for AbortOnDrop<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|task| task.abort());
    }
}

/// Sends a request. Dropping the future, or the content of a response that is not complete, ends the connection.
pub(crate) async fn send_http1(
    connection: &mut Http1,
    request: Request<Body>,
) -> Result<Response<Content>, Refused> {
    let mut guard = AbortOnDrop(Some(&connection.task));
    let (head, content) = request.into_parts();
    let (content, end) = EndWithUpload::watch(content, &connection.task);
    let sent = connection.sender.try_send_request(Request::from_parts(head, content)).await;
    let sent = sent.map(|response| response.map(|content| Content::http1(content, end)));
    let sent = sent.map_err(|error| refused(error, &connection.received));
    guard.0 = None;
    sent
}

/// Sends a request. Dropping the future, or the content of the response, resets the stream if the request is complete. hyper keeps
/// the stream of one that is not until it is sent, or its content fails.
pub(crate) async fn send_http2(
    connection: &mut Http2,
    request: Request<Body>,
) -> Result<Response<Content>, Refused> {
    let sent = connection.sender.try_send_request(request).await;
    let sent = sent.map(|response| response.map(Content::Http2));
    sent.map_err(|error| refused(error, &connection.received))
}

fn refused(mut refused: TrySendError<Request<Body>>, received: &ReceivedAlert) -> Refused {
    let content = refused.take_message().map(|request| Box::new(request.into_body()));
    if let Some(error) = received.error() {
        return Refused { error, content };
    }
    let error = of_hyper(refused.error());
    Refused { error: if content.is_some() { error.retryable() } else { error }, content }
}

/// An error of TLS, which tokio-rustls gives as one of the socket.
fn of_tls(error: &io::Error) -> Error {
    if let Some(alert) = alert::of(error) {
        return Error::new(Kind::Tls, refusal(alert));
    }
    let found = error.get_ref().and_then(|source| source.downcast_ref::<rustls::Error>());
    match found {
        Some(rustls::Error::InvalidCertificate(reason)) => Error::caused(
            Kind::Certificate,
            "the server's certificate is not trusted",
            reason.clone().to_string(),
        ),
        Some(found) => Error::caused(Kind::Tls, "the TLS handshake has failed", found.clone()),
        None => Error::caused(Kind::Tls, "the TLS handshake has failed", error.to_string()),
    }
}
