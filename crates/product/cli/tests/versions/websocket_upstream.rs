//! An upstream's end of a WebSocket, as a blocking stream: a connection of HTTP/1.1 after a 101, or a stream of HTTP/2 or 3 after an extended
//! CONNECT. HTTP/2 is h2's, HTTP/1.1 and 3 are written out by hand.

use crate::http3_upstream::{Certificate, section};
use crate::tunnel::{Ends, Fields, From, GivenUp, PATIENCE, To, Version, decoded, frame, number, pump};
use crate::websocket::{head, listen};
use bytes::Bytes;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use tercel::quic::{Connection, Endpoint, RecvStream, SendStream, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tungstenite::handshake::derive_accept_key;

/// An upstream, as the keys of a proxy say where it is. It ends with the test's process.
pub(crate) struct Upstream {
    pub(crate) keys: String,
    /// Its file.
    _certificate: Certificate,
}

/// Agrees to each WebSocket, and has `serve` speak.
pub(crate) fn agreeing(version: Version, serve: impl Fn(End) + Clone + Send + 'static) -> Upstream {
    agreeing_when(version, || {}, serve)
}

/// The same, once `may_agree` is over.
pub(crate) fn agreeing_when(
    version: Version,
    may_agree: impl Fn() + Clone + Send + 'static,
    serve: impl Fn(End) + Clone + Send + 'static,
) -> Upstream {
    let certificate = Certificate::new();
    let keys = match version {
        Version::One => {
            let url = listen(move |mut stream| {
                let head = head(&mut stream);
                may_agree();
                stream.write_all(&agreement(&head)).expect("sent");
                serve(End { socket: Socket::Tcp(stream), head: fields(&head), stream: None });
            });
            format!("to = '{url}'")
        }
        Version::Two => format!("to = 'h2c://127.0.0.1:{}'", by_http2(None, may_agree, serve)),
        Version::Three => certificate.keys(by_http3(&certificate, may_agree, serve)),
    };
    Upstream { keys, _certificate: certificate }
}

/// One that speaks HTTP/2 over TLS and nothing else.
pub(crate) fn agreeing_by_tls(serve: impl Fn(End) + Clone + Send + 'static) -> Upstream {
    let certificate = Certificate::new();
    let port = by_http2(Some(certificate.tls(b"h2")), || {}, serve);
    let keys = certificate.keys(port).replacen("h3://", "https://", 1);
    Upstream { keys, _certificate: certificate }
}

/// The response 101 to a request by `head`, which is as RFC 6455 §4.1 has it.
pub(crate) fn agreement(head: &str) -> Vec<u8> {
    assert!(head.starts_with("GET /"), "{head}");
    let is_offered = |line: &str| line.eq_ignore_ascii_case("upgrade: websocket");
    assert!(head.lines().any(is_offered) && head.contains("connection: upgrade\r\n"), "{head}");
    assert!(head.contains("sec-websocket-version: 13\r\n"), "{head}");
    let mut keys = head.lines().filter_map(|line| line.strip_prefix("sec-websocket-key: "));
    let (Some(key), None) = (keys.next(), keys.next()) else { panic!("one key: {head}") };
    let accept = derive_accept_key(key.as_bytes());
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {accept}\r\n\r\n"
    )
    .into_bytes()
}

fn fields(head: &str) -> Fields {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Judges an extended CONNECT. RFC 8441 §4, §5.
fn check(fields: &Fields) {
    let field = |name: &str| fields.get(name).map_or("", String::as_str);
    assert_eq!((field(":method"), field(":protocol")), ("CONNECT", "websocket"), "{fields:?}");
    assert!(!field(":path").is_empty() && !field(":authority").is_empty(), "{fields:?}");
    assert!(["http", "https"].contains(&field(":scheme")), "{fields:?}");
    assert_eq!(field("sec-websocket-version"), "13", "{fields:?}");
    for absent in ["sec-websocket-key", "connection", "upgrade", "content-length", "host"] {
        assert!(!fields.contains_key(absent), "{absent}: {fields:?}");
    }
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// An upstream's end of a WebSocket. Dropped, it ends.
pub(crate) struct End {
    socket: Socket,
    /// The head of the request.
    pub(crate) head: Fields,
    stream: Option<(mpsc::UnboundedSender<GivenUp>, Receiver<u64>)>,
}

impl End {
    /// Says that nothing more is sent.
    pub(crate) fn finish(&self) {
        match &self.socket {
            Socket::Tcp(socket) => socket.shutdown(Shutdown::Write),
            Socket::Unix(socket) => socket.shutdown(Shutdown::Write),
        }
        .expect("the end");
    }

    /// Does not wait from now on.
    pub(crate) fn set_nonblocking(&self) {
        match &self.socket {
            Socket::Tcp(socket) => socket.set_nonblocking(true),
            Socket::Unix(socket) => socket.set_nonblocking(true),
        }
        .expect("set");
    }

    /// Breaks off. Over HTTP/1.1 bytes that are not read make a reset of the end, so there must be some.
    pub(crate) fn break_off(self) {
        if let Some((reset, _)) = &self.stream {
            reset.send(GivenUp::Stream).expect("it is open");
            // The reset may not be overtaken by the end.
            thread::sleep(std::time::Duration::from_millis(500));
        }
    }

    /// The code with which the proxy has given the stream up, if it has one.
    pub(crate) fn broken(&self) -> Option<u64> {
        let (_, breaks) = self.stream.as_ref()?;
        Some(breaks.recv_timeout(PATIENCE).expect("the proxy breaks off"))
    }
}

impl Read for End {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.socket {
            Socket::Tcp(socket) => socket.read(into),
            Socket::Unix(socket) => socket.read(into),
        }
    }
}

impl Write for End {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.socket {
            Socket::Tcp(socket) => socket.write(bytes),
            Socket::Unix(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Has `serve` speak on a stream, on a thread of its own.
async fn bridge(stream: (To, From), head: Fields, serve: impl Fn(End) + Send + 'static) {
    let (near, far) = UnixStream::pair().expect("a pair");
    near.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    near.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    far.set_nonblocking(true).expect("set");
    let far = tokio::net::UnixStream::from_std(far).expect("a socket");
    let ((reset, resets), (broken, breaks)) = (mpsc::unbounded_channel(), channel());
    let end = End { socket: Socket::Unix(near), head, stream: Some((reset, breaks)) };
    thread::spawn(move || serve(end));
    pump(stream, Ends { far, resets, broken }).await;
}

/// Runs a server on a thread of its own.
fn run(server: impl Future<Output = ()> + Send + 'static) {
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(server);
    });
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Returns the port.
fn by_http2(
    tls: Option<rustls::ServerConfig>,
    may_agree: impl Fn() + Clone + Send + 'static,
    serve: impl Fn(End) + Clone + Send + 'static,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("set");
    let port = listener.local_addr().expect("an address").port();
    let tls = tls.map(|tls| TlsAcceptor::from(Arc::new(tls)));
    run(async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
        while let Ok((socket, _)) = listener.accept().await {
            let (tls, may_agree, serve) = (tls.clone(), may_agree.clone(), serve.clone());
            tokio::spawn(async move {
                let stream: Box<dyn Stream> = match tls {
                    // A client that offers HTTP/1.1 alone hears that it is not spoken.
                    Some(tls) => match tls.accept(socket).await {
                        Ok(stream) => Box::new(stream),
                        Err(_) => return,
                    },
                    None => Box::new(socket),
                };
                let mut builder = h2::server::Builder::new();
                let handshake = builder.enable_connect_protocol().handshake::<_, Bytes>(stream);
                let mut connection = handshake.await.expect("a preface");
                while let Some(Ok((request, answer))) = connection.accept().await {
                    tokio::spawn(stream_of_http2(request, answer, (may_agree.clone(), serve.clone())));
                }
            });
        }
    });
    port
}

async fn stream_of_http2(
    request: http::Request<h2::RecvStream>,
    mut answer: h2::server::SendResponse<Bytes>,
    (may_agree, serve): (impl Fn() + Send + 'static, impl Fn(End) + Send + 'static),
) {
    let (head, received) = request.into_parts();
    let text = |value: &http::HeaderValue| value.to_str().expect("text").to_owned();
    let fields = head.headers.iter().map(|(name, value)| (name.to_string(), text(value)));
    let protocol = head.extensions.get::<h2::ext::Protocol>().map_or("", h2::ext::Protocol::as_str);
    let pseudo = [
        (":method", head.method.as_str()),
        (":protocol", protocol),
        (":scheme", head.uri.scheme_str().unwrap_or_default()),
        (":authority", head.uri.authority().map_or("", http::uri::Authority::as_str)),
        (":path", head.uri.path()),
    ];
    let pseudo = pseudo.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let fields: Fields = fields.chain(pseudo).collect();
    check(&fields);
    tokio::task::spawn_blocking(may_agree).await.expect("no panic");
    let sender = answer.send_response(http::Response::new(()), false).expect("it is open");
    bridge((To::Http2(sender), From::Http2(received)), fields, serve).await;
}

/// Returns the port.
fn by_http3(
    certificate: &Certificate,
    may_agree: impl Fn() + Clone + Send + 'static,
    serve: impl Fn(End) + Clone + Send + 'static,
) -> u16 {
    let (tell, told) = channel();
    let identity = certificate.identity();
    run(async move {
        let config = ServerConfig::with_identity(identity).and_then(|config| config.alpn_protocols(&[b"h3"]));
        let server = Endpoint::server(config.expect("a configuration"), ([127, 0, 0, 1], 0).into());
        let server = server.expect("an endpoint");
        tell.send(server.local_addr().expect("an address").port()).expect("a listener");
        while let Some(incoming) = server.accept().await {
            let both = (may_agree.clone(), serve.clone());
            tokio::spawn(async move {
                if let Ok(connection) = incoming.await {
                    streams_of_http3(connection, both).await;
                }
            });
        }
    });
    told.recv().expect("a port")
}

async fn streams_of_http3(
    connection: Connection,
    (may_agree, serve): (impl Fn() + Clone + Send + 'static, impl Fn(End) + Clone + Send + 'static),
) {
    let mut control = connection.open_uni().await.expect("a stream");
    // SETTINGS_ENABLE_CONNECT_PROTOCOL is 1. RFC 9220 §3.
    control.write_all(&[0, 4, 2, 8, 1]).await.expect("sent");
    let streams = connection.clone();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok(stream) = streams.accept_uni().await {
            kept.push(stream);
        }
    });
    while let Ok((send, recv)) = connection.accept_bi().await {
        tokio::spawn(stream_of_http3((send, recv), (may_agree.clone(), serve.clone())));
    }
}

async fn stream_of_http3(
    (mut send, mut recv): (SendStream, RecvStream),
    (may_agree, serve): (impl Fn() + Send + 'static, impl Fn(End) + Send + 'static),
) {
    assert_eq!(number(&mut recv).await, Ok(1), "HEADERS");
    let length = number(&mut recv).await.expect("a length");
    let mut head = vec![0; usize::try_from(length).expect("short")];
    recv.read_exact(&mut head).await.expect("a head");
    let fields = decoded(&head);
    check(&fields);
    tokio::task::spawn_blocking(may_agree).await.expect("no panic");
    send.write_all(&frame(1, &section(&[(":status", "200")]))).await.expect("sent");
    bridge((To::Http3(send), From::Http3(recv, 0)), fields, serve).await;
}
