//! Requests to an admin address, for `tercel status` and `tercel reload`.

use crate::address::Address;
use crate::reload::{self, Reload};
use bytes::{Buf as _, Bytes};
use http::header::HOST;
use http::{Method, Request, StatusCode};
use http_body::{Body, Frame};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Builder;
use tokio::time::timeout;

/// How long a server may take to tell something.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it may take to read its files again: they may be many, and others may have asked before.
const TO_RELOAD: Duration = Duration::from_secs(120);
/// More is no answer of a server's, in bytes.
const MOST: usize = 16 << 20;

/// The content at `path`.
///
/// # Errors
/// The server cannot be reached, does not answer within ten seconds, or has no such content.
pub fn fetch(address: &Address, path: &str) -> io::Result<Vec<u8>> {
    match ask(address, (Method::GET, path), PATIENCE)? {
        (StatusCode::OK, content) => Ok(content),
        (status, _) => Err(not_tercel(status)),
    }
}

/// Has the server read its files again, and waits until it has, for two minutes at most.
///
/// # Errors
/// The server cannot be reached, does not answer in time, or takes no reload here; then the text says why.
pub fn ask_for_reload(address: &Address) -> io::Result<Reload> {
    let (status, content) = ask(address, (Method::POST, reload::PATH), TO_RELOAD)?;
    let outcome = serde_json::from_slice(&content).ok().and_then(|json| Reload::from_json(&json));
    outcome.ok_or_else(|| match status {
        StatusCode::FORBIDDEN => io::Error::other(String::from_utf8_lossy(&content).trim_end().to_owned()),
        _ => not_tercel(status),
    })
}

fn not_tercel(status: StatusCode) -> io::Error {
    io::Error::other(format!("the answer is {status}: is this the admin address of a tercel server?"))
}

fn ask(address: &Address, what: (Method, &str), patience: Duration) -> io::Result<(StatusCode, Vec<u8>)> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let asked = runtime.block_on(async {
        timeout(patience, async {
            match address {
                Address::Tcp(at) => exchange(TcpStream::connect(at).await?, what).await,
                Address::Unix(at) => exchange(UnixStream::connect(at).await?, what).await,
            }
        })
        .await
    });
    asked.unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer")))
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    (method, path): (Method, &str),
) -> io::Result<(StatusCode, Vec<u8>)> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // It ends with the runtime.
    drop(tokio::spawn(connection));
    let request = Request::builder().method(method).uri(path).header(HOST, "localhost");
    let request = request.body(Nothing).map_err(io::Error::other)?;
    let response = sender.send_request(request).await.map_err(io::Error::other)?;
    let (status, mut content) = (response.status(), Vec::new());
    let mut body = response.into_body();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        if let Ok(mut data) = frame.map_err(io::Error::other)?.into_data() {
            if content.len() + data.remaining() > MOST {
                return Err(io::Error::other("the answer is too long"));
            }
            content.extend_from_slice(&data.copy_to_bytes(data.remaining()));
        }
    }
    Ok((status, content))
}

/// No content.
struct Nothing;

impl Body for Nothing {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        std::task::Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }
}
