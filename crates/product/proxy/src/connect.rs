//! New connections to upstreams.

use crate::address::{Address, Scheme};
use crate::content::{Progress, Sent};
use crate::failure::{Failure, Refused};
use crate::http2::{self, Http2};
use crate::http3::Http3;
use crate::silence::Silence;
use crate::tls::Tls;
use body::{Body, BoxError};
use bytes::Bytes;
use client::tasks::spawn;
use http::header::{CONNECTION, HOST, HeaderValue, TE, UPGRADE};
use http::uri::{Authority, Parts, Uri};
use http::{Request, Response, Version};
use http_body::{Frame, SizeHint};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use server::proxy_protocol::{Sender, header};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::AbortHandle;
use tokio::time::{Duration, timeout};
use tokio_rustls::TlsConnector;

/// What hyper holds of a response over HTTP/1.1 that was not read, and the longest head, in bytes.
const BUFFER: usize = 128 << 10;
/// A socket, or TLS over one. hyper is compiled for this one type: a call by pointer is little beside a read of a socket.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// For which requests a connection is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// For one after the other.
    Requests,
    /// For one that offers another protocol, by HTTP/1.1.
    Upgrade,
}

/// How a connection is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner<'a> {
    pub(crate) tls: Option<&'a Tls>,
    pub(crate) purpose: Purpose,
    /// Whose connection it is said to be, if that is said. Never over HTTP/3, which has no way to say it.
    pub(crate) sender: Option<Sender>,
}

/// A connection, on which requests are sent.
#[derive(Debug)]
pub(crate) enum Connection {
    /// One request at a time.
    Http1(Http1),
    /// Clones share it.
    Http2(Http2),
    /// Clones share it.
    Http3(Http3),
}

/// The content of a response.
pub(crate) enum Incoming {
    /// Over HTTP/1.1.
    Http1(hyper::body::Incoming),
    /// Over HTTP/2.
    Http2(http2::Content),
    /// Over HTTP/3.
    Http3(Body),
}

impl http_body::Body for Incoming {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut *self {
            Incoming::Http1(content) => Pin::new(content).poll_frame(cx).map_err(BoxError::from),
            Incoming::Http2(content) => Pin::new(content).poll_frame(cx),
            Incoming::Http3(content) => Pin::new(content).poll_frame(cx).map_err(BoxError::from),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Incoming::Http1(content) => content.is_end_stream(),
            Incoming::Http2(content) => content.is_end_stream(),
            Incoming::Http3(content) => content.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Incoming::Http1(content) => content.size_hint(),
            Incoming::Http2(content) => content.size_hint(),
            Incoming::Http3(content) => content.size_hint(),
        }
    }
}

/// A connection of HTTP/1.1, and the task that moves its bytes. Dropped, it is closed at once: hyper alone would first send what the
/// upstream does not read.
#[derive(Debug)]
pub(crate) struct Http1 {
    sender: http1::SendRequest<Sent>,
    task: AbortHandle,
    /// Of its requests, of which there is one at a time.
    silence: Silence,
}

impl Drop for Http1 {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// Whether it can be used at once.
    pub(crate) fn is_ready(&self) -> bool {
        match self {
            Connection::Http1(connection) => connection.sender.is_ready(),
            Connection::Http2(connection) => connection.is_ready(),
            Connection::Http3(connection) => connection.is_ready(),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Connection::Http1(connection) => connection.sender.is_closed(),
            Connection::Http2(connection) => connection.is_closed(),
            Connection::Http3(connection) => connection.is_closed(),
        }
    }

    /// The same connection for another request, if it takes several.
    pub(crate) fn share(&self) -> Option<Connection> {
        match self {
            Connection::Http1(_) => None,
            Connection::Http2(connection) => Some(Connection::Http2(connection.clone())),
            Connection::Http3(connection) => Some(Connection::Http3(connection.clone())),
        }
    }

    /// Whether the upstream takes extended CONNECT on it, once it has said so.
    pub(crate) async fn takes_extended_connect(&self) -> bool {
        match self {
            Connection::Http1(_) => false,
            Connection::Http2(connection) => connection.takes_extended_connect().await,
            Connection::Http3(connection) => connection.takes_extended_connect().await,
        }
    }

    /// Sends a request, and waits for the head of the response. `None`: the upstream is silent for too long, or there is no request.
    pub(crate) async fn send(
        &mut self,
        request: &mut Option<Request<Sent>>,
        patience: (&Progress, Duration),
    ) -> Option<Result<Response<Incoming>, Refused>> {
        match self {
            Connection::Http1(Http1 { sender, silence, .. }) => {
                to_http1(request.as_mut()?);
                let sent = pin!(sender.try_send_request(request.take()?));
                let answered = in_time(sent, silence, patience).await?;
                Some(answered.map(|response| response.map(Incoming::Http1)))
            }
            // Boxed, because it is large, and the state of other requests would be.
            Connection::Http2(connection) => {
                to_http2(request.as_mut()?, connection.scheme());
                let mut sent = Box::pin(connection.send(request.take()?));
                let answered = in_time(sent.as_mut(), &mut Silence::default(), patience).await?;
                Some(answered.map(|response| response.map(Incoming::Http2)))
            }
            Connection::Http3(connection) => {
                to_http3(request.as_mut()?);
                let mut sent = Box::pin(connection.send(request.take()?));
                let answered = in_time(sent.as_mut(), &mut Silence::default(), patience).await?;
                Some(answered.map(|response| response.map(Incoming::Http3)))
            }
        }
    }
}

/// The head of a response; `None` if the upstream is silent for too long.
async fn in_time<T, E>(
    mut sent: Pin<&mut impl Future<Output = Result<T, E>>>,
    silence: &mut Silence,
    (progress, patience): (&Progress, Duration),
) -> Option<Result<T, Refused>>
where
    Refused: From<E>,
{
    let answered = poll_fn(|cx| match sent.as_mut().poll(cx) {
        Poll::Ready(answered) => Poll::Ready(Some(answered)),
        Poll::Pending => silence.poll(progress, patience, cx).map(|()| None),
    });
    answered.await.map(|answered| answered.map_err(Refused::from))
}

/// The host is a field. RFC 9112 §3.2.1.
fn to_http1<B>(request: &mut Request<B>) {
    *request.version_mut() = Version::HTTP_11;
    if let Some(authority) = request.uri().authority() {
        let host = HeaderValue::from_str(authority.as_str());
        host.into_iter().for_each(|host| _ = request.headers_mut().insert(HOST, host));
        let path = request.uri().path_and_query().cloned();
        path.into_iter().for_each(|path| *request.uri_mut() = Uri::from(path));
    }
    request.headers_mut().remove(TE);
}

/// The host is a part of the target. RFC 9113 §8.3.1, RFC 9114 §4.3.1.
fn to_http2<B>(request: &mut Request<B>, scheme: Scheme) {
    // HTTP/2 has no such offer: the upstream answers a plain request.
    [CONNECTION, UPGRADE].iter().for_each(|name| _ = request.headers_mut().remove(name));
    *request.version_mut() = Version::HTTP_2;
    let host = request.headers_mut().remove(HOST);
    if let Some(authority) = host.and_then(|host| Authority::try_from(host.as_bytes()).ok()) {
        let mut parts = Parts::default();
        parts.scheme =
            Some(if scheme.is_secure() { http::uri::Scheme::HTTPS } else { http::uri::Scheme::HTTP });
        parts.authority = Some(authority);
        parts.path_and_query = request.uri().path_and_query().cloned();
        Uri::from_parts(parts).into_iter().for_each(|uri| *request.uri_mut() = uri);
    }
    // Some servers of gRPC want to hear that trailers go on.
    request.headers_mut().insert(TE, HeaderValue::from_static("trailers"));
}

fn to_http3<B>(request: &mut Request<B>) {
    to_http2(request, Scheme::H3);
    *request.version_mut() = Version::HTTP_3;
}

/// Connects to an upstream.
pub(crate) async fn connect(
    address: &Address,
    manner: Manner<'_>,
    patience: Duration,
) -> Result<Connection, Failure> {
    let Manner { tls, purpose, sender } = manner;
    let connected = timeout(patience, async {
        match address {
            Address::Host { scheme: Scheme::H3, host, port } => {
                crate::http3::connect((host, *port), tls).await.map(Connection::Http3)
            }
            Address::Host { scheme, host, port } => {
                let mut stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                introduce(&mut stream, sender).await?;
                match (scheme, tls) {
                    (Scheme::Http, _) => begin_http1(Box::new(stream), purpose).await,
                    (Scheme::H2c, _) => begin_http2(Box::new(stream), Scheme::H2c).await,
                    (Scheme::Https, Some(tls)) => begin_tls(stream, host, (tls, purpose)).await,
                    (Scheme::Https | Scheme::H3, _) => Err(io::Error::other("there are no roots to trust")),
                }
            }
            Address::Unix(path) => {
                let mut stream = UnixStream::connect(path).await?;
                introduce(&mut stream, sender).await?;
                begin_http1(Box::new(stream), purpose).await
            }
        }
    });
    match connected.await {
        Ok(connected) => connected.map_err(Failure::Connect),
        Err(_) => Err(Failure::ConnectTimeout),
    }
}

/// Says whose connection it is.
async fn introduce(stream: &mut (impl AsyncWrite + Unpin), sender: Option<Sender>) -> io::Result<()> {
    match sender {
        Some(sender) => stream.write_all(&header(sender)).await,
        None => Ok(()),
    }
}

async fn begin_tls(stream: TcpStream, host: &str, (tls, purpose): (&Tls, Purpose)) -> io::Result<Connection> {
    let name = tls.name_of(host).map_err(io::Error::other)?;
    let Some(config) = &tls.over_tcp else { return Err(io::Error::other("there are no roots to trust")) };
    let mut config = Arc::clone(config);
    if purpose == Purpose::Upgrade {
        Arc::make_mut(&mut config).alpn_protocols = vec![b"http/1.1".to_vec()];
    }
    let stream = TlsConnector::from(config).connect(name, stream).await?;
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        begin_http2(Box::new(stream), Scheme::Https).await
    } else {
        begin_http1(Box::new(stream), purpose).await
    }
}

/// Whether a connection was refused because the upstream speaks HTTP/2 alone. RFC 7301 §3.2.
pub(crate) fn is_for_want_of_http1(error: &io::Error) -> bool {
    use rustls::{AlertDescription, Error};
    let alert = Error::AlertReceived(AlertDescription::NoApplicationProtocol);
    error.get_ref().and_then(|error| error.downcast_ref::<Error>()) == Some(&alert)
}

async fn begin_http1(stream: Box<dyn Stream>, purpose: Purpose) -> io::Result<Connection> {
    let mut builder = http1::Builder::new();
    let handshake = builder.max_buf_size(BUFFER).handshake(TokioIo::new(stream));
    let (sender, connection) = handshake.await.map_err(io::Error::other)?;
    let task = spawn(Box::pin(async move {
        // Its errors are those of its requests.
        let _ = match purpose {
            Purpose::Requests => connection.await,
            Purpose::Upgrade => connection.with_upgrades().await,
        };
    }));
    Ok(Connection::Http1(Http1 { sender, task: task.abort_handle(), silence: Silence::default() }))
}

async fn begin_http2(stream: Box<dyn Stream>, scheme: Scheme) -> io::Result<Connection> {
    Ok(Connection::Http2(http2::begin(stream, scheme).await?))
}
