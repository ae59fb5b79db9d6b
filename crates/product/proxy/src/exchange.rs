//! One request: sent to an upstream, and to another one where that is permitted.
//!
//! A request may go on to another upstream when nothing of it was sent, or when its method is safe (RFC 9110 §9.2.1) and it has no
//! content. What an upstream may have acted on otherwise is not asked twice.

use crate::again::Again;
use crate::balance::Tried;
use crate::connect::{Connection, Incoming, Manner, Purpose, connect, is_for_want_of_http1};
use crate::content::{Progress, Sent, State};
use crate::failure::Failure;
use crate::forward;
use crate::health::Change;
use crate::informational::Hints;
use crate::log::{Target, say};
use crate::response::{First, Lease, Received};
use crate::route::Route;
use crate::runtime::{Exchange, Realm};
use crate::tunnel::{Held, join, join_stream};
use crate::upgrade::{self, Connecting, Offered};
use crate::upstream::{Underway, Upstream};
use body::Body;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Body as _;
use server::ConnectionInfo;
use server::proxy_protocol::Sender;
use server::sites::{OfferedBy, RouteError, UpgradeOffer};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::runtime::Handle;
use tokio::time::{Duration, Instant, timeout};

/// Answers a request. Polled in a runtime of tokio's.
///
/// What is known at once is done before the future is made, as each async function has a place of its own for all that it is given: the
/// future would be three times as large.
pub(crate) fn exchange(route: Arc<Route>, request: Request<Body>, info: ConnectionInfo) -> Exchange {
    if info.is_early() {
        return Box::pin(async move {
            // RFC 8470 §4: the upstream does not know that a request in early data may be a copy.
            info.handshake_done().await;
            begin(route, request, &info).await
        });
    }
    begin(route, request, &info)
}

fn begin(route: Arc<Route>, request: Request<Body>, info: &ConnectionInfo) -> Exchange {
    match prepare(&route, request, info) {
        Ok(mut asked) => {
            Box::pin(async move { ask(&route, &mut asked).await.map_err(|failure| failure.answer()) })
        }
        Err(error) => Box::pin(std::future::ready(Err(error))),
    }
}

/// The request to an upstream.
fn prepare(route: &Route, request: Request<Body>, info: &ConnectionInfo) -> Result<Asked, RouteError> {
    let (mut parts, body) = request.into_parts();
    let key = route.key(info, &parts.uri);
    let offer = parts.extensions.remove::<UpgradeOffer>();
    if offer.as_ref().is_some_and(|offer| offer.by() == OfferedBy::Connect && !route.settings.upgrade) {
        return Err(RouteError { status: 501, what: "there are no WebSockets here" });
    }
    let mut offered = offer.filter(|_| route.settings.upgrade).as_ref().and_then(Offered::new).map(Box::new);
    if forward::request(&mut parts, info, &route.settings).is_none() {
        return Err(RouteError { status: 400, what: "" });
    }
    if let Some(offered) = &mut offered {
        offered.say(&mut parts.headers).map_err(|_| RouteError { status: 500, what: "" })?;
    }
    let announced = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if announced.is_some_and(|bytes: u64| bytes > route.settings.max_content) {
        return Err(Failure::TooLarge.answer());
    }
    let target = Target { method: parts.method.clone(), uri: parts.uri.clone(), asked: None };
    let sender = Sender::Client { from: info.peer, to: info.local };
    let client = Client { key, sender, hints: Hints::of(info), target };
    Ok(Asked::new(route, parts, (body, offered), client))
}

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// What is hashed, if anything is.
    pub(crate) key: u64,
    pub(crate) sender: Sender,
    /// Hears informational responses, if it does.
    pub(crate) hints: Option<Hints>,
    /// For the log.
    pub(crate) target: Target,
}

/// A request that is to be sent.
pub(crate) struct Asked {
    /// `None` when it was sent, and cannot be sent again.
    request: Option<Request<Sent>>,
    progress: Arc<Progress>,
    /// The request once more, if it may be repeated.
    again: Option<Again>,
    /// The protocols that the request offers, and what the client sends by one of them. Boxed, because few do.
    upgrade: Option<Box<Offered>>,
    /// It was sent as an extended CONNECT.
    connecting: Option<Connecting>,
    client: Client,
}

impl Asked {
    pub(crate) fn new(
        route: &Route,
        parts: Parts,
        (body, upgrade): (Body, Option<Box<Offered>>),
        client: Client,
    ) -> Asked {
        let (content, progress) = Sent::new(body, route.settings.max_content);
        let request = Some(Request::from_parts(parts, content));
        Asked { request, progress, again: None, upgrade, connecting: None, client }
    }

    /// Looks whether the request may be repeated, and keeps it for that.
    async fn look_ahead(&mut self, route: &Route) -> Result<(), Failure> {
        let Some(request) = self.request.as_mut().filter(|request| request.method().is_safe()) else {
            return Ok(());
        };
        if !request.headers().contains_key(CONTENT_LENGTH) && !request.body().is_end_stream() {
            // Mostly there is no content, and only its end is still to come.
            poll_fn(|cx| request.body_mut().poll_ahead(cx)).await.map_err(|_| Failure::Client)?;
        }
        if route.settings.retries.attempts > 0 && request.body().is_end_stream() {
            self.again = Some(Again::of(request));
        }
        Ok(())
    }

    /// Makes an extended CONNECT of a request that offers a protocol.
    fn connect(&mut self) {
        if let (Some(request), Some(offered)) = (&mut self.request, &self.upgrade) {
            self.connecting = Some(offered.connect(request));
        }
    }

    /// Has the client hear the informational responses of a connection.
    fn pass_hints(&mut self, connection: &Connection) {
        if let (Some(request), Some(hints)) = (&mut self.request, &self.client.hints) {
            hints.pass(connection, request);
        }
    }

    /// Whether it can be an extended CONNECT.
    fn may_connect(&self) -> bool {
        let both = self.upgrade.as_ref().zip(self.request.as_ref());
        both.is_some_and(|(offered, request)| offered.may_connect(request))
    }

    fn repeat(&mut self) -> bool {
        if self.request.is_none()
            && let Some(again) = &self.again
        {
            let (content, progress) = Sent::empty();
            self.request = Some(again.request(content));
            self.progress = progress;
        }
        self.request.is_some()
    }
}

/// Asks upstreams of `route` until one has answered that counts.
pub(crate) async fn ask(route: &Route, asked: &mut Asked) -> Result<Response<Body>, Failure> {
    asked.look_ahead(route).await?;
    let key = asked.client.key;
    let mut tried: Tried = 0;
    let mut left = route.settings.retries.attempts;
    loop {
        let chosen = route.chooser.choose(&route.upstreams, key, tried, Instant::now());
        let Some((number, underway)) =
            chosen.and_then(|number| Some((number, route.upstreams.get(number)?.enter()?)))
        else {
            note_full(route, &asked.client.target);
            return Err(Failure::Full);
        };
        tried |= 1 << number;
        let upstream = underway.upstream().clone();
        let since = Instant::now();
        let failure = match attempt(route, underway, asked).await {
            Ok(response) => {
                if upstream.on_response(response.status().as_u16(), since) == Change::Back {
                    say(&format!("tercel: proxy: {} answers again", upstream.address()));
                }
                return Ok(response);
            }
            Err(failure) => failure,
        };
        let has_others = (tried.count_ones() as usize) < route.upstreams.len();
        let goes_on = failure.is_upstreams() && left > 0 && has_others && asked.repeat();
        note(&upstream, &failure, &asked.client.target, goes_on);
        if !goes_on {
            return Err(failure);
        }
        left -= 1;
    }
}

/// Asks one upstream.
async fn attempt(route: &Route, underway: Underway, asked: &mut Asked) -> Result<Response<Body>, Failure> {
    let upstream = underway.upstream().clone();
    let timeouts = &route.settings.timeouts;
    let purpose = match asked.upgrade {
        Some(_) if !upstream.address().is_shared() => Purpose::Upgrade,
        _ => Purpose::Requests,
    };
    let sender = route.settings.proxy_protocol.then_some(asked.client.sender);
    let manner = Manner { tls: route.settings.tls.as_ref(), purpose, sender };
    let mut found = find(route, &upstream, manner).await?;
    loop {
        let (mut connection, is_new) = found;
        let failure = match send(&mut connection, asked, timeouts.response).await {
            Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                return Box::pin(switch(response, underway, asked, timeouts.tunnel)).await;
            }
            Ok(response) if response.status().is_success() && asked.connecting.is_some() => {
                return open_tunnel((response, connection), underway, asked, timeouts.tunnel);
            }
            Ok(response) => {
                let lease = Lease { connection, underway, realm: Realm::here(), runtime: Handle::current() };
                let progress = Arc::clone(&asked.progress);
                let (mut parts, mut content) = response.into_parts();
                forward::response(&mut parts.headers);
                let first = first_of(&mut content).await;
                let received = (content, first);
                let content = Received::body(received, lease, progress, timeouts.idle, &asked.client.target);
                return Ok(Response::from_parts(parts, content));
            }
            Err(failure) => failure,
        };
        // A connection that has waited may have been closed just then, which says nothing of the upstream.
        let may_be_stale = !is_new && matches!(failure, Failure::Broken(_));
        if !may_be_stale || !asked.repeat() {
            return Err(failure);
        }
        found = (Box::pin(open_for(route, &upstream, manner)).await?, true);
    }
}

/// A connection to an upstream, and whether it is new.
async fn find(route: &Route, upstream: &Upstream, manner: Manner<'_>) -> Result<(Connection, bool), Failure> {
    let pool = upstream.pool();
    let kept = match manner.purpose {
        Purpose::Requests => pool.take(Instant::now()),
        // One of HTTP/1.1 that has waited may be closed just now.
        Purpose::Upgrade => match pool.shared() {
            Some(connection) => {
                let takes = timeout(route.settings.timeouts.connect, connection.takes_extended_connect());
                let takes = Box::pin(takes).await;
                takes.is_ok_and(|takes| takes).then_some(connection)
            }
            None => None,
        },
    };
    match kept {
        Some(connection) => Ok((connection, false)),
        // Boxed, because connections are rare and the state of a request should be small.
        None if upstream.address().is_shared() => Box::pin(pool.share(open(route, upstream, manner))).await,
        None => Ok((Box::pin(open_for(route, upstream, manner)).await?, true)),
    }
}

/// A new connection to an upstream whose version of HTTP is not known: for another protocol it is HTTP/1.1 where the upstream speaks that.
async fn open_for(route: &Route, upstream: &Upstream, manner: Manner<'_>) -> Result<Connection, Failure> {
    match open(route, upstream, manner).await {
        Err(Failure::Connect(error))
            if manner.purpose == Purpose::Upgrade && is_for_want_of_http1(&error) =>
        {
            open(route, upstream, Manner { purpose: Purpose::Requests, ..manner }).await
        }
        opened => opened,
    }
}

/// A new connection to an upstream. The pool has it, too, if it takes several requests.
async fn open(route: &Route, upstream: &Upstream, manner: Manner<'_>) -> Result<Connection, Failure> {
    let connection = connect(upstream.address(), manner, route.settings.timeouts.connect).await?;
    upstream.on_connection();
    if let Some(shared) = connection.share() {
        upstream.pool().put(shared, (Realm::here(), &Handle::current()));
    }
    Ok(connection)
}

/// Sends the request, and waits for the head of the response.
async fn send(
    connection: &mut Connection,
    asked: &mut Asked,
    patience: Duration,
) -> Result<Response<Incoming>, Failure> {
    asked.connecting = None;
    let mut connects = asked.may_connect();
    if connects {
        let takes = Box::pin(timeout(patience, connection.takes_extended_connect())).await;
        connects = takes.map_err(|_| Failure::Silent)?;
    }
    if asked.request.is_none() {
        return Err(Failure::Client);
    }
    if connects {
        asked.connect();
    }
    asked.pass_hints(connection);
    match connection.send(&mut asked.request, (&asked.progress, patience)).await {
        None => Err(Failure::Silent),
        Some(Ok(response)) => Ok(response),
        Some(Err(refused)) => {
            asked.request = refused.request.map(|request| *request);
            Err(match asked.progress.state() {
                State::Aborted => Failure::Client,
                State::TooLarge => Failure::TooLarge,
                _ => Failure::Broken(refused.error),
            })
        }
    }
}

/// Goes on by the protocol that an upstream has agreed to.
async fn switch(
    mut response: Response<Incoming>,
    underway: Underway,
    asked: &mut Asked,
    patience: Duration,
) -> Result<Response<Body>, Failure> {
    let unasked = Failure::Unasked(response.status());
    let offered = asked.upgrade.take();
    let agreed = offered.and_then(|offered| offered.agreed(response.headers_mut()));
    let Some((protocol, sent)) = agreed else { return Err(unasked) };
    let upgraded = hyper::upgrade::on(&mut response).await.map_err(|error| Failure::Broken(error.into()))?;
    let (mut parts, _) = response.into_parts();
    forward::response(&mut parts.headers);
    upgrade::name(&mut parts.headers, protocol);
    let content = join(upgraded, sent, Held { underway, patience, target: &asked.client.target });
    Ok(Response::from_parts(parts, content))
}

/// Goes on by a WebSocket on the stream of an extended CONNECT.
fn open_tunnel(
    (response, connection): (Response<Incoming>, Connection),
    underway: Underway,
    asked: &mut Asked,
    patience: Duration,
) -> Result<Response<Body>, Failure> {
    let (Some(connecting), Some(offered)) = (asked.connecting.take(), asked.upgrade.take()) else {
        return Err(Failure::Unasked(response.status()));
    };
    let (mut parts, received) = response.into_parts();
    forward::response(&mut parts.headers);
    let opener = connecting.agree(&mut parts);
    let held = Held { underway, patience, target: &asked.client.target };
    let content = join_stream((received, connection), (opener, offered.content), held);
    Ok(Response::from_parts(parts, content))
}

/// What is there of the content of a response. Does not wait.
async fn first_of(content: &mut Incoming) -> First {
    if content.is_end_stream() {
        return Poll::Ready(None);
    }
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *content).poll_frame(cx))).await
}

/// Warns of a failure, and counts it.
fn note(upstream: &Upstream, failure: &Failure, target: &Target, goes_on: bool) {
    if !failure.is_upstreams() {
        return;
    }
    let now = Instant::now();
    let change = upstream.on_failure(now);
    upstream.notice().warn(now, || {
        let answer = failure.answer().status;
        let follows = if goes_on { "tried elsewhere".to_owned() } else { format!("answered {answer}") };
        format!("{}: {}: {failure}; {follows}", upstream.address(), target.shown())
    });
    if change == Change::Out {
        say(&format!(
            "tercel: warning: proxy: {} gets no requests for a while, if others do",
            upstream.address()
        ));
    }
}

fn note_full(route: &Route, target: &Target) {
    if let Some(first) = route.upstreams.first() {
        let say = || format!("{}: {}; answered 503", target.shown(), Failure::Full);
        first.notice().warn(Instant::now(), say);
    }
}
