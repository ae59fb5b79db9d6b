//! A request to an admin address, for `tercel status`.

use crate::address::Address;
use bytes::{Buf as _, Bytes};
use http::header::HOST;
use http::{Request, StatusCode};
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

/// How long a server may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// More is no answer of a server's, in bytes.
const MOST: usize = 16 << 20;

/// The content at `path`.
///
/// # Errors
/// The server cannot be reached, does not answer within ten seconds, or has no such content.
pub fn fetch(address: &Address, path: &str) -> io::Result<Vec<u8>> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let fetched = runtime.block_on(async {
        timeout(PATIENCE, async {
            match address {
                Address::Tcp(at) => ask(TcpStream::connect(at).await?, path).await,
                Address::Unix(at) => ask(UnixStream::connect(at).await?, path).await,
            }
        })
        .await
    });
    fetched.unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer")))
}

async fn ask(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    path: &str,
) -> io::Result<Vec<u8>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // It ends with the runtime.
    drop(tokio::spawn(connection));
    let request = Request::get(path).header(HOST, "tercel").body(Nothing).map_err(io::Error::other)?;
    let response = sender.send_request(request).await.map_err(io::Error::other)?;
    if response.status() != StatusCode::OK {
        let what =
            format!("the answer is {}: is this the admin address of a tercel server?", response.status());
        return Err(io::Error::other(what));
    }
    let (mut content, mut body) = (Vec::new(), response.into_body());
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        if let Ok(mut data) = frame.map_err(io::Error::other)?.into_data() {
            if content.len() + data.remaining() > MOST {
                return Err(io::Error::other("the answer is too long"));
            }
            content.extend_from_slice(&data.copy_to_bytes(data.remaining()));
        }
    }
    Ok(content)
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
