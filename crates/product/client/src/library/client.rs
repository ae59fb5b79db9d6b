//! The client: requests by any version of HTTP on connections that it keeps.

use super::connection::{Channel, Connection};
use super::connector::Connector;
use super::content::{Activity, Timed, Watched, over, silent};
use super::error::{Error, Kind};
use super::origin::Origin;
use super::pool;
use super::quic::Refused;
use super::redirect;
use super::settings::{HttpChoice, Redirects};
use ::body::Body;
use http::{Method, Request, Response, Uri, request};
use http_body::Body as _;
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How often a request is sent again that no server has looked at.
const MAX_RETRIES: u32 = 3;

/// How a response came: in the extensions of each response.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Used {
    /// The address that has answered.
    pub peer: SocketAddr,
    /// Whether the connection has served requests before.
    pub is_reused: bool,
    /// How long it took to make the connection, from the resolution of the name to the end of the handshake.
    pub connect_time: Duration,
    /// The URI of the last request, after redirects.
    pub uri: Uri,
}

/// An HTTP client. Clones share their connections.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = client::Client::new()?;
/// let response = client.get("https://example.org/").await?;
/// println!("{:?} {}", response.version(), response.status());
/// let content = response.into_body().collect(1 << 20).await?;
/// # drop(content);
/// # Ok(())
/// # }
/// ```
///
/// Futures run on any executor: connections and timers have threads of their own. Dropping the future of a request, or the
/// content of its response, cancels the exchange; connections of HTTP/2 and 3 stay. When the last clone is dropped, exchanges that
/// run are finished and then all connections are closed.
#[derive(Clone)]
pub struct Client {
    connector: Arc<Connector>,
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Client").field("http", &self.connector.settings.http).finish_non_exhaustive()
    }
}

impl Client {
    pub(super) fn of(connector: Arc<Connector>) -> Client {
        Client { connector }
    }

    /// Asks with GET.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub async fn get<U>(&self, uri: U) -> Result<Response<Body>, Error>
    where
        U: TryInto<Uri>,
        U::Error: Into<http::Error>,
    {
        let wrong = |error: U::Error| Error::caused(Kind::Request, "this is no URI", error.into());
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = uri.try_into().map_err(wrong)?;
        self.request(request).await
    }

    /// Sends a request and returns the response as soon as its head has arrived; its content follows by the body. The URI must be
    /// absolute. The version of the request is not looked at.
    ///
    /// A request is sent again, three times at most, if the server has certainly not looked at it; and once more if a kept
    /// connection ends without a response and the method is idempotent (RFC 9110 §9.2.2).
    ///
    /// # Errors
    /// There is no response: see [`Kind`]. A status of 400 or more is no error.
    pub async fn request<B: Into<Body>>(&self, request: Request<B>) -> Result<Response<Body>, Error> {
        let deadline = self.connector.settings.timeout.map(|timeout| Instant::now() + timeout);
        let following = self.follow(request.map(Into::into), deadline);
        match deadline {
            None => following.await,
            Some(at) => self.timed(at, following).await.unwrap_or_else(|| Err(over())),
        }
    }

    /// Waits for a future; `None` when it is too late. The timer is one of the client's own runtime.
    async fn timed<F: Future>(&self, at: Instant, future: F) -> Option<F::Output> {
        let waiting = {
            let _entered = self.connector.runtime.enter();
            timeout_at(at, future)
        };
        waiting.await.ok()
    }

    /// Sends a request and those that redirects demand.
    async fn follow(
        &self,
        mut request: Request<Body>,
        deadline: Option<Instant>,
    ) -> Result<Response<Body>, Error> {
        let mut left = match self.connector.settings.redirects {
            Redirects::Limit(limit) => Some(limit),
            Redirects::None => None,
        };
        loop {
            let (head, content) = request.into_parts();
            let again = content.try_clone();
            let response = self.send(&head, content, deadline).await?;
            let Some(hops) = &mut left else { return Ok(response) };
            let Some(next) = redirect::next(&head, again, (response.status(), response.headers()))? else {
                return Ok(response);
            };
            *hops = hops.checked_sub(1).ok_or_else(|| {
                Error::new(Kind::Redirect, format!("too many redirects, the last one to {}", next.uri()))
            })?;
            request = next;
        }
    }

    /// Sends one request, again where that is safe.
    async fn send(
        &self,
        head: &request::Parts,
        mut content: Body,
        deadline: Option<Instant>,
    ) -> Result<Response<Body>, Error> {
        if head.method == Method::CONNECT {
            return Err(Error::new(Kind::Request, "CONNECT is not supported"));
        }
        let origin = Origin::of(&head.uri)?;
        let mut retries = 0;
        loop {
            let again = content.try_clone();
            let connection = self.connector.connection(&origin).await?;
            let (is_reused, is_quic) = (connection.is_reused, connection.is_quic());
            let refused = match self.exchange(&origin, connection, (head.clone(), content), deadline).await {
                Ok(response) => return Ok(response),
                Err(refused) => refused,
            };
            let error = refused.error;
            let is_safe = error.is_retryable()
                || (is_reused && retries == 0 && error.kind() == Kind::Lost && head.method.is_idempotent());
            retries += 1;
            content = match refused.content.map(|content| *content).or(again) {
                Some(content) if is_safe && retries <= MAX_RETRIES => content,
                _ => return Err(error),
            };
            if is_quic
                && error.is_retryable()
                && self.connector.settings.http == HttpChoice::Auto
                && retries > 1
            {
                self.connector.on_fallback(&origin);
            }
        }
    }

    /// One request and its response on one connection.
    async fn exchange(
        &self,
        origin: &Origin,
        mut connection: Connection,
        (head, content): (request::Parts, Body),
        deadline: Option<Instant>,
    ) -> Result<Response<Body>, Refused> {
        let uri = head.uri.clone();
        let sent = match self.connector.settings.silence {
            None => connection.send(head, content).await,
            Some(silence) => {
                let activity = Activity::new();
                let content = Watched::wrap(content, &activity);
                self.unless_silent(connection.send(head, content), &activity, silence).await
            }
        };
        let mut response = sent?;
        self.connector.on_response(origin, &connection, response.headers());
        let facts = connection.facts;
        let (peer, connect_time) = (facts.peer, facts.connect_time);
        let is_reused = connection.is_reused;
        response.extensions_mut().insert(Used { peer, is_reused, connect_time, uri });
        if pool::is_exclusive(&connection) {
            self.keep(origin.clone(), connection);
        }
        Ok(response.map(|content| {
            let silence = self.connector.settings.silence;
            if content.is_end_stream() || (silence.is_none() && deadline.is_none()) {
                return content.untimed();
            }
            let _entered = self.connector.runtime.enter();
            Body::new(Timed::new(content, silence, deadline, self.connector.alive.clone()))
        }))
    }

    /// Waits for a response as long as the connection takes content of the request, and for `silence` beyond that.
    async fn unless_silent<T>(
        &self,
        sending: impl Future<Output = Result<T, Refused>>,
        activity: &Activity,
        silence: Duration,
    ) -> Result<T, Refused> {
        let mut sending = pin!(sending);
        loop {
            let until = activity.last() + silence;
            if let Some(sent) = self.timed(until, sending.as_mut()).await {
                return sent;
            }
            if activity.last() + silence <= until {
                return Err(silent(silence).into());
            }
        }
    }

    /// Puts a connection of HTTP/1.1 into the pool when its exchange is complete.
    fn keep(&self, origin: Origin, mut connection: Connection) {
        let connector = Arc::downgrade(&self.connector);
        self.connector.runtime.spawn(async move {
            let Channel::Http1(exclusive) = &mut connection.channel else { return };
            if exclusive.sender.ready().await.is_ok()
                && let Some(connector) = connector.upgrade()
            {
                connector.pool().add_idle(&origin, connection, Instant::now());
            }
        });
    }
}
