//! A server that does as the path says, over HTTP/1.1 and HTTP/2, in the clear or through TLS.
//!
//! HTTP/1.1 is written by hand, so that it can be wrong in every way that is asked for; HTTP/2 is that of h2.

use bytes::Bytes;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};
use tokio_rustls::TlsAcceptor;

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaks {
    One,
    Two,
}

/// Orders, and what was seen.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// Go without a word.
    pub(super) dies: AtomicBool,
    /// Answer nothing for as long as this is set.
    pub(super) stalls: AtomicBool,
    /// Connections that were accepted.
    pub(super) connections: AtomicU64,
    /// Bytes of content that came with requests.
    pub(super) content: AtomicU64,
}

/// A server on a thread of its own.
pub(super) struct Serving {
    pub(super) address: SocketAddr,
    /// Its certificate, PEM.
    pub(super) certificate: String,
    pub(super) orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    pub(super) fn start(speaks: Speaks, is_secure: bool) -> Serving {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder =
            rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.unwrap().with_no_client_auth();
        let mut config = builder.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        config.alpn_protocols = vec![match speaks {
            Speaks::One => b"http/1.1".to_vec(),
            Speaks::Two => b"h2".to_vec(),
        }];
        let acceptor = is_secure.then(|| TlsAcceptor::from(Arc::new(config)));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let orders = Arc::new(Orders::default());
        let heard = Arc::clone(&orders);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
            LocalSet::new().block_on(&runtime.unwrap(), accept(listener, acceptor, speaks, heard));
        });
        Serving { address, certificate: made.cert.pem(), orders, thread: Some(thread) }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.orders.dies.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(
    listener: std::net::TcpListener,
    acceptor: Option<TlsAcceptor>,
    speaks: Speaks,
    orders: Arc<Orders>,
) {
    let listener = TcpListener::from_std(listener).unwrap();
    while !orders.dies.load(Ordering::Relaxed) {
        let wait = tokio::time::timeout(Duration::from_millis(5), listener.accept()).await;
        let Ok(Ok((tcp, _))) = wait else { continue };
        orders.connections.fetch_add(1, Ordering::Relaxed);
        tcp.set_nodelay(true).unwrap();
        let (acceptor, orders) = (acceptor.clone(), Arc::clone(&orders));
        spawn_local(async move {
            let _ = match acceptor {
                Some(acceptor) => match acceptor.accept(tcp).await {
                    Ok(stream) => speak(stream, speaks, &orders).await,
                    Err(error) => Err(error),
                },
                None if speaks == Speaks::One => one_in_the_clear(tcp, &orders).await,
                None => speak(tcp, speaks, &orders).await,
            };
        });
    }
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    speaks: Speaks,
    orders: &Arc<Orders>,
) -> io::Result<()> {
    match speaks {
        Speaks::One => one(&mut BufReader::new(stream), orders).await,
        Speaks::Two => two(stream, orders).await.map_err(io::Error::other),
    }
}

/// With the possibility of a reset.
async fn one_in_the_clear(tcp: TcpStream, orders: &Arc<Orders>) -> io::Result<()> {
    let mut stream = BufReader::new(tcp);
    let outcome = one(&mut stream, orders).await;
    if outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset) {
        stream.get_ref().set_zero_linger()?;
    }
    outcome
}

/// Waits as a path says, and while the server stalls.
async fn pause(path: &str, orders: &Orders) {
    if let Some(ms) = path.strip_prefix("/delay/").and_then(|ms| ms.parse().ok()) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    if path == "/never" {
        std::future::pending::<()>().await;
    }
    while orders.stalls.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// How long an answer is.
fn length(path: &str) -> usize {
    path.strip_prefix("/bytes/").and_then(|bytes| bytes.parse().ok()).unwrap_or(10)
}

async fn one(stream: &mut BufReader<impl AsyncRead + AsyncWrite + Unpin>, orders: &Orders) -> io::Result<()> {
    loop {
        let (mut path, mut announced, mut line) = (String::new(), 0_u64, String::new());
        loop {
            line.clear();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            if path.is_empty() {
                line.split(' ').nth(1).unwrap_or("/").clone_into(&mut path);
            } else if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                announced = value.trim().parse().unwrap();
            } else if line.trim().is_empty() {
                break;
            }
        }
        tokio::io::copy(&mut (&mut *stream).take(announced), &mut tokio::io::sink()).await?;
        orders.content.fetch_add(announced, Ordering::Relaxed);
        pause(&path, orders).await;
        let body = vec![b'x'; length(&path)];
        let status = if path == "/missing" { "404 Not Found" } else { "200 OK" };
        let mut answer = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
        match path.as_str() {
            "/eof" => return Ok(()),
            "/reset" => return Err(io::ErrorKind::ConnectionReset.into()),
            "/nonsense" => answer = b"SMTP ready\r\n\r\n".to_vec(),
            "/short" => answer.extend_from_slice(&body[..5]),
            // The end of the connection, without the close of TLS.
            "/cut" => {
                answer.extend_from_slice(&body[..5]);
                stream.write_all(&answer).await?;
                return stream.flush().await;
            }
            "/slow" => {
                answer.extend_from_slice(&body[..5]);
                stream.write_all(&answer).await?;
                stream.flush().await?;
                std::future::pending::<()>().await;
            }
            "/last" => {
                answer =
                    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len())
                        .into_bytes();
                answer.extend_from_slice(&body);
            }
            _ => answer.extend_from_slice(&body),
        }
        stream.write_all(&answer).await?;
        stream.flush().await?;
        if matches!(path.as_str(), "/short" | "/last" | "/nonsense") {
            return stream.shutdown().await;
        }
    }
}

async fn two(stream: impl AsyncRead + AsyncWrite + Unpin, orders: &Arc<Orders>) -> Result<(), h2::Error> {
    // So much room that a request's content goes at once, as most servers let it.
    let mut builder = h2::server::Builder::new();
    builder.initial_window_size(4 << 20).initial_connection_window_size(4 << 20);
    let mut connection = builder.handshake(stream).await?;
    while let Some(accepted) = connection.accept().await {
        let (request, respond) = accepted?;
        let path = request.uri().path().to_owned();
        if path == "/eof" {
            return Ok(());
        }
        if path == "/last" {
            connection.graceful_shutdown();
        }
        let orders = Arc::clone(orders);
        spawn_local(async move {
            let _ = answer_two(request.into_body(), respond, path, orders).await;
        });
    }
    Ok(())
}

async fn answer_two(
    mut content: h2::RecvStream,
    mut respond: h2::server::SendResponse<Bytes>,
    path: String,
    orders: Arc<Orders>,
) -> Result<(), h2::Error> {
    while let Some(piece) = content.data().await {
        let piece = piece?;
        orders.content.fetch_add(piece.len() as u64, Ordering::Relaxed);
        content.flow_control().release_capacity(piece.len())?;
    }
    pause(&path, &orders).await;
    if path == "/reset" {
        respond.send_reset(h2::Reason::INTERNAL_ERROR);
        return Ok(());
    }
    let body = Bytes::from(vec![b'x'; length(&path)]);
    let status = if path == "/missing" { 404 } else { 200 };
    let head = http::Response::builder().status(status).header("content-length", body.len());
    let mut stream = respond.send_response(head.body(()).unwrap(), false)?;
    match path.as_str() {
        "/short" => stream.send_data(body.slice(..5), true),
        "/slow" => {
            stream.send_data(body.slice(..5), false)?;
            std::future::pending::<()>().await;
            Ok(())
        }
        _ => stream.send_data(body, true),
    }
}
