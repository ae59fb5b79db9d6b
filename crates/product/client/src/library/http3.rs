//! Connections of HTTP/3 without pool, redirects, retries and limits of time: for a program that keeps them and decides itself what is
//! sent where, as the reverse proxy does.

use super::connection::add_length;
use super::connector::probed;
use super::content::Content;
use super::error::{Error, Kind};
use super::quic::{self, Delivered, QuicConnection, QuicEndpoint, Setup, ToSink};
use super::race::{HEAD_START, race};
use super::sink::Lent;
use base::time::Duration;
use body::Body;
use http::{Response, request};
use ports::DataPath;
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use tokio::net::lookup_host;
use transport::ClientConfig;

/// A connection that is held is not closed for want of requests. The idle timeout of QUIC ends one whose server is gone.
const IDLE: Duration = Duration::from_secs(86_400);

/// A thread for connections of HTTP/3. Clones are the same; when the last one is dropped, it ends after the last exchange.
#[derive(Clone)]
pub struct Http3Endpoint(Arc<QuicEndpoint>);

impl fmt::Debug for Http3Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Http3Endpoint").finish_non_exhaustive()
    }
}

impl Http3Endpoint {
    /// Opens a UDP port and starts the thread.
    ///
    /// # Errors
    /// The port cannot be opened, or the system has no thread left.
    pub fn start() -> io::Result<Http3Endpoint> {
        let path = DataPath::default();
        let setup = Setup { writes_tickets: false, idle: IDLE, spin: path.spin_span(), paths: Vec::new() };
        Ok(Http3Endpoint(Arc::new(quic::start(&path, setup)?)))
    }

    /// Whether connections can be made: the thread has not ended.
    pub fn is_open(&self) -> bool {
        self.0.is_open()
    }

    /// Connects to a host, whose certificate must be for `server_name`. All its addresses are tried (RFC 8305). Dropping the future gives
    /// the attempt up. Called in a runtime of tokio's with timers.
    ///
    /// # Errors
    /// The name has no address, or the handshake has failed.
    pub async fn connect(
        &self,
        (host, port): (&str, u16),
        server_name: &str,
        config: &ClientConfig,
    ) -> Result<Http3Connection, Error> {
        let unknown = |error| Error::caused(Kind::Resolve, &format!("cannot resolve {host}"), error);
        let addresses = lookup_host((host, port)).await.map_err(unknown)?;
        let attempts = addresses.map(|peer| {
            let (endpoint, name, config) = (Arc::clone(&self.0), server_name.to_owned(), config.clone());
            async move { probed(&endpoint, (peer, &name), &config).await.map(Held) }
        });
        race(attempts.collect(), HEAD_START).await.map(|held| Http3Connection(Arc::new(held)))
    }
}

/// A connection of HTTP/3. Clones share it; it is closed when the last one and the last exchange are over.
#[derive(Clone)]
pub struct Http3Connection(Arc<Held>);

impl fmt::Debug for Http3Connection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Http3Connection").finish_non_exhaustive()
    }
}

struct Held(Arc<QuicConnection>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// A request without a response.
#[derive(Debug)]
pub struct Unanswered {
    /// Why.
    pub error: Error,
    /// The request's content, if nothing of it was sent.
    pub content: Option<Body>,
}

impl Http3Connection {
    /// Whether it takes requests.
    pub fn is_open(&self) -> bool {
        self.0.0.is_open()
    }

    /// How many clones there are.
    pub fn clones(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// Whether the server takes extended CONNECT, once it has said so. `false` if the connection ends before.
    /// Source: RFC 9220 §3.
    pub fn takes_extended_connect(&self) -> impl Future<Output = bool> + use<> {
        let held = Arc::clone(&self.0);
        async move { held.0.takes_extended_connect().await }
    }

    /// Sends a request; the future is that of the response's head. What the server sends beyond 256 KiB that are not read stays in its
    /// window. A request for which the server permits no stream waits. Dropping the future, or the content of the response, cancels the
    /// exchange (RESET_STREAM and STOP_SENDING).
    /// With a [`Protocol`](crate::Protocol) in its extensions CONNECT is an extended one, whose content and response are what the two ends
    /// say to each other, each with its own end.
    ///
    /// # Errors
    /// There is no response.
    pub fn send(
        &self,
        mut head: request::Parts,
        content: Body,
    ) -> impl Future<Output = Result<Response<Body>, Unanswered>> + use<> {
        // No response is one for this sink.
        let unused = |bytes: &[u8]| bytes.len();
        let (receiver, told) = ToSink::new(Lent::new(unused, Arc::default()), |_| false);
        add_length(&mut head, &content);
        self.0.0.send(head, content, Box::new(receiver));
        async move {
            match told.await {
                Ok(Delivered::Undecided(response, _)) => Ok(response.map(Content::untimed)),
                Ok(Delivered::Failed(refused, _)) => {
                    Err(Unanswered { error: refused.error, content: refused.content.map(|content| *content) })
                }
                // The sink is never lent a response.
                Ok(Delivered::Complete(received)) => Ok(received.response.map(|()| Body::empty())),
                Err(_) => {
                    let error = Error::new(Kind::Lost, "the connection has ended");
                    Err(Unanswered { error, content: None })
                }
            }
        }
    }
}
