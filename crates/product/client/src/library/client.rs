//! The client: requests by any version of HTTP on connections that it keeps.

use super::connection::{Channel, Connection};
use super::connector::Connector;
use super::content::{Activity, Content, Timed, Watched, over, silent};
use super::error::{Error, Kind};
use super::origin::Origin;
use super::pool;
use super::pump::pump;
use super::quic::Delivered;
use super::redirect;
use super::refused::Refused;
use super::settings::{HttpChoice, Redirects, Timeout};
use super::sink::{BodySink, Flow, IsFinal, Lent, Received};
use super::stats::Stats;
use super::used::Used;
use crate::migration::LocalPlace;
use crate::tasks::spawn_on;
use ::body::Body;
use http::{Method, Request, Response, Uri, request};
use http_body::Body as _;
use std::fmt;
use std::future::{Future, ready};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, Sleep, timeout_at};

/// What comes of a request.
enum Outcome<K> {
    /// A response whose content the sink has not been lent.
    Response(Box<(Response<Body>, Lent<K>)>),
    /// A response that the sink has taken.
    Received(Box<Received<K>>),
}

/// Which responses are for the sink at once, and when the time for the whole is over.
type Demands = (IsFinal, Option<Instant>);

/// A request that has failed, and its sink if that can be used again.
type Failed<K> = (Refused, Option<Lent<K>>);

/// How often a request is sent again that no server has looked at.
const MAX_RETRIES: u32 = 3;

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
/// content of its response, cancels the exchange; connections of HTTP/2 and 3 stay. Over HTTP/2, a request that has not been sent
/// whole keeps its stream, when only the content of its response is dropped, until it is sent or its own content fails. When the last
/// clone is dropped, exchanges that run are finished and then all connections are closed.
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
        // No response is one for this sink.
        let unused = |bytes: &[u8]| bytes.len();
        match self.begin(request.map(Into::into), unused, |_| false, |outcome| ready(Ok(outcome))).await? {
            Outcome::Response(response) => Ok(response.0),
            Outcome::Received(received) => Ok(received.response.map(|()| Body::empty())),
        }
    }

    /// Sends a request whose content is lent to `sink` as it arrives, and returns when the response is complete: its head, its
    /// trailers and the sink. Over HTTP/3 the sink is called on the thread of the QUIC connections with the memory in which the
    /// packet was decrypted: nothing is copied, no other thread is woken. Over HTTP/1.1 and 2 it is called where the future is
    /// polled. A sink that takes less than it is lent pauses the response, and the server's flow control with it.
    ///
    /// ```no_run
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// use http::Request;
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// let client = client::Client::new()?;
    /// let lines = Arc::new(AtomicUsize::new(0));
    /// let count = Arc::clone(&lines);
    /// let request = Request::get("https://example.org/").body(())?.map(|()| body::Body::empty());
    /// let received = client
    ///     .request_into(request, move |bytes: &[u8]| {
    ///         count.fetch_add(bytes.iter().filter(|byte| **byte == b'\n').count(), Ordering::Relaxed);
    ///         bytes.len()
    ///     })
    ///     .await?;
    /// println!("{}: {} lines", received.response.status(), lines.load(Ordering::Relaxed));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Dropping the future cancels the exchange; the sink is dropped by the thread that calls it, perhaps a moment later. A sink that
    /// panics ends its own request with [`Kind::Sink`]. Once the sink has heard of a head, the request is not sent again.
    ///
    /// # Errors
    /// There is no response, or it is not complete: see [`Kind`]. The sink is dropped. A status of 400 or more is no error.
    pub async fn request_into<B, K>(&self, request: Request<B>, sink: K) -> Result<Received<K>, Error>
    where
        B: Into<Body>,
        K: BodySink,
    {
        let is_final = match self.connector.settings.redirects {
            Redirects::Limit(_) => |head: &Response<()>| !redirect::may_lead_on(head),
            Redirects::None => |_: &Response<()>| true,
        };
        let finish = async |outcome| match outcome {
            Outcome::Response(response) => pump(*response).await,
            Outcome::Received(received) => Ok(*received),
        };
        self.begin(request.map(Into::into), sink, is_final, finish).await
    }

    /// What the data path of HTTP/3 has counted so far.
    pub fn stats(&self) -> Stats {
        self.connector.stats()
    }

    /// Moves all connections of HTTP/3 to another local address, as soon as their servers have answered there; until then, and
    /// where a server does not, they stay where they are. Connections whose address or route is gone move by themselves. For
    /// kernel UDP. Source: RFC 9000 §9.
    ///
    /// # Errors
    /// The place is not one of this machine.
    pub fn migrate(&self, to: &LocalPlace) -> io::Result<()> {
        to.addresses()?.into_iter().for_each(|ip| self.connector.migrate(ip));
        Ok(())
    }

    /// Whether it speaks HTTP/3 and nothing else.
    pub(crate) fn speaks_http3_alone(&self) -> bool {
        self.connector.settings.http == HttpChoice::Http3
    }

    /// Waits on the client's own timers, on any executor.
    pub(crate) fn sleep(&self, span: Duration) -> Sleep {
        let _entered = self.connector.runtime.enter();
        tokio::time::sleep(span)
    }

    /// Sends a request and those that redirects demand, and finishes within the time for the whole.
    async fn begin<K, T, F>(
        &self,
        request: Request<Body>,
        sink: K,
        is_final: IsFinal,
        finish: impl FnOnce(Outcome<K>) -> F,
    ) -> Result<T, Error>
    where
        K: BodySink,
        F: Future<Output = Result<T, Error>>,
    {
        let own = request.extensions().get().map(|Timeout(own)| *own);
        let deadline = own.or(self.connector.settings.timeout).map(|timeout| Instant::now() + timeout);
        let whole = async {
            let lent = Lent::new(sink, Arc::default());
            finish(self.follow(request, lent, (is_final, deadline)).await?).await
        };
        match deadline {
            None => whole.await,
            Some(at) => self.timed(at, whole).await.unwrap_or_else(|| Err(over())),
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
    async fn follow<K: BodySink>(
        &self,
        mut request: Request<Body>,
        mut lent: Lent<K>,
        demands: Demands,
    ) -> Result<Outcome<K>, Error> {
        let mut left = match self.connector.settings.redirects {
            Redirects::Limit(limit) => Some(limit),
            Redirects::None => None,
        };
        loop {
            let (head, content) = request.into_parts();
            let again = content.try_clone();
            let (response, back) = match self.send(&head, content, lent, demands).await? {
                Outcome::Response(response) => *response,
                received @ Outcome::Received(_) => return Ok(received),
            };
            lent = back;
            let Some(hops) = &mut left else { return Ok(Outcome::Response(Box::new((response, lent)))) };
            let Some(next) = redirect::next(&head, again, (response.status(), response.headers()))? else {
                return Ok(Outcome::Response(Box::new((response, lent))));
            };
            *hops = hops.checked_sub(1).ok_or_else(|| {
                Error::new(Kind::Redirect, format!("too many redirects, the last one to {}", next.uri()))
            })?;
            request = next;
        }
    }

    /// Sends one request, again where that is safe.
    async fn send<K: BodySink>(
        &self,
        head: &request::Parts,
        mut content: Body,
        mut lent: Lent<K>,
        demands: Demands,
    ) -> Result<Outcome<K>, Error> {
        if head.method == Method::CONNECT {
            return Err(Error::new(Kind::Request, "CONNECT is not supported"));
        }
        let origin = Origin::of(&head.uri)?;
        let permit = self.connector.quotas.permit(&origin).await;
        let mut retries = 0;
        loop {
            let again = content.try_clone();
            let connection = self.connector.connection(&origin).await?;
            let (is_reused, is_quic) = (connection.is_reused, connection.is_quic());
            let request = (head.clone(), content);
            let (refused, back) = match self.exchange(&origin, connection, request, lent, demands).await {
                Ok(Outcome::Response(response)) => {
                    let (response, lent) = *response;
                    let response = response.map(|content| permit.hold(content));
                    return Ok(Outcome::Response(Box::new((response, lent))));
                }
                Ok(received @ Outcome::Received(_)) => return Ok(received),
                Err(failed) => failed,
            };
            let error = refused.error;
            let is_safe = error.is_retryable()
                || (is_reused && retries == 0 && error.kind() == Kind::Lost && head.method.is_idempotent());
            retries += 1;
            let content_again = refused.content.map(|content| *content).or(again);
            (content, lent) = match (content_again, back) {
                (Some(content), Some(lent)) if is_safe && !lent.has_begun && retries <= MAX_RETRIES => {
                    (content, lent)
                }
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
    async fn exchange<K: BodySink>(
        &self,
        origin: &Origin,
        mut connection: Connection,
        (head, content): (request::Parts, Body),
        mut lent: Lent<K>,
        (is_final, deadline): Demands,
    ) -> Result<Outcome<K>, Failed<K>> {
        let facts = connection.facts;
        let (peer, connect_time, is_reused) = (facts.peer, facts.connect_time, connection.is_reused);
        let used = Used { peer, is_reused, connect_time, uri: head.uri.clone() };
        lent.on_connection(&used);
        let delivered = match self.connector.settings.silence {
            None => connection.send(head, content, lent, is_final).await,
            Some(silence) => {
                let (activity, flow) = (Activity::new(), Arc::clone(lent.flow()));
                let content = Watched::wrap(content, &activity);
                let sending = connection.send(head, content, lent, is_final);
                self.unless_silent(sending, (&activity, &flow), silence).await
            }
        };
        match delivered {
            Delivered::Complete(mut received) => {
                self.connector.on_response(origin, &connection, received.response.headers());
                received.response.extensions_mut().insert(used);
                Ok(Outcome::Received(received))
            }
            Delivered::Undecided(mut response, lent) => {
                self.connector.on_response(origin, &connection, response.headers());
                response.extensions_mut().insert(used);
                if pool::is_exclusive(&connection) {
                    self.keep(origin.clone(), connection);
                }
                let response = response.map(|content| self.limited(content, deadline));
                Ok(Outcome::Response(Box::new((response, lent))))
            }
            Delivered::Failed(refused, lent) => Err((refused, lent)),
        }
    }

    /// The content for the application, with the limits of time.
    fn limited(&self, content: Content, deadline: Option<Instant>) -> Body {
        let silence = self.connector.settings.silence;
        if content.is_end_stream() || (silence.is_none() && deadline.is_none()) {
            return content.untimed();
        }
        let _entered = self.connector.runtime.enter();
        Body::new(Timed::new(content, silence, deadline, self.connector.alive.clone()))
    }

    /// Waits for a response as long as the connection takes content of the request, the sink takes that of the response or holds
    /// it up, and for `silence` beyond that.
    async fn unless_silent<K: BodySink>(
        &self,
        sending: impl Future<Output = Delivered<K>>,
        (activity, flow): (&Activity, &Flow),
        silence: Duration,
    ) -> Delivered<K> {
        let mut sending = pin!(sending);
        let (mut heard, mut seen) = (Instant::now(), flow.progress());
        let step = (silence / 4).max(Duration::from_millis(1));
        loop {
            if let Some(delivered) = self.timed(Instant::now() + step, sending.as_mut()).await {
                return delivered;
            }
            let (now, progress) = (Instant::now(), flow.progress());
            if progress != seen || flow.is_paused() {
                (heard, seen) = (now, progress);
            }
            if now >= heard.max(activity.last()) + silence {
                return Delivered::Failed(silent(silence).into(), None);
            }
        }
    }

    /// Puts a connection of HTTP/1.1 into the pool when its exchange is complete.
    fn keep(&self, origin: Origin, mut connection: Connection) {
        let connector = Arc::downgrade(&self.connector);
        let keeping = async move {
            let Channel::Http1(exclusive) = &mut connection.channel else { return };
            if exclusive.sender.ready().await.is_ok()
                && let Some(connector) = connector.upgrade()
            {
                connector.pool().add_idle(&origin, connection, Instant::now());
            }
        };
        spawn_on(&self.connector.runtime, Box::pin(keeping));
    }
}
