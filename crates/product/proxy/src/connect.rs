//! New connections to upstreams.

use crate::address::Address;
use crate::content::Sent;
use crate::failure::Failure;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::AbortHandle;
use tokio::time::{Duration, timeout};

/// What hyper holds of a response that was not read, and the longest head, in bytes.
const BUFFER: usize = 128 << 10;

/// A connection of HTTP/1.1, and the task that moves its bytes. Dropped, it is closed at once: hyper alone would first send what the
/// upstream does not read.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) sender: http1::SendRequest<Sent>,
    task: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Connects to an upstream.
pub(crate) async fn connect(address: &Address, patience: Duration) -> Result<Connection, Failure> {
    let connected = timeout(patience, async {
        match address {
            Address::Http { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                begin(stream).await
            }
            Address::Unix(path) => begin(UnixStream::connect(path).await?).await,
        }
    });
    match connected.await {
        Ok(connected) => connected.map_err(Failure::Connect),
        Err(_) => Err(Failure::ConnectTimeout),
    }
}

async fn begin<S>(stream: S) -> io::Result<Connection>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    let handshake = builder.max_buf_size(BUFFER).handshake(TokioIo::new(stream));
    let (sender, connection) = handshake.await.map_err(io::Error::other)?;
    let task = tokio::spawn(async move {
        // Its errors are those of its requests.
        let _ = connection.await;
    });
    Ok(Connection { sender, task: task.abort_handle() })
}
