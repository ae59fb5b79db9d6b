//! The HTTP/3 connections of a client: requests that handles hand over are sent, and their exchanges served.

use super::call::{Call, Calls};
use super::exchange::{Ended, Exchange};
use super::fault;
use super::link::{Job, QuicConnection};
use super::upload::{self, Upload};
use crate::app::{self, Content, End, Failure, Requests, Responses};
use crate::library::error::{Error, Kind};
use crate::library::paths;
use crate::library::sink::cancelled;
use crate::report::PathReport;
use base::slab::Handle;
use base::time::{Duration, Instant};
use http3::{BodyLength, RequestError, ResponseHead, Trailers};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Waker};
use tokio::sync::oneshot;
use transport::{Connection, StreamId};

/// The first request on a connection is awaited for so long at least.
const FIRST_REQUEST: Duration = Duration::from_secs(1);

/// Hears whether a handshake succeeds.
pub(super) type TellConnected = oneshot::Sender<Result<Arc<QuicConnection>, Error>>;

/// A connection on which the client acts.
type Active<'a> = app::Active<'a, State>;

/// What the client keeps for a connection.
pub(super) struct State {
    handle: Arc<QuicConnection>,
    /// Until the handshake is over.
    connecting: Option<TellConnected>,
    /// Requests that wait for the server to permit more streams.
    waiting: VecDeque<Job>,
    /// It has had a request.
    is_used: bool,
    /// The server's SETTINGS have come.
    has_settings: bool,
    /// Since when there is no request.
    idle_since: Option<Instant>,
    /// Makes the connection act.
    waker: Waker,
    /// Exchanges that have ended in this turn.
    ended: Vec<Ended>,
    /// Local addresses from which paths are to be opened.
    paths: Vec<IpAddr>,
}

impl State {
    /// The worker keeps it here.
    pub(super) fn set_slot(&self, slot: Handle) {
        self.handle.call().set_slot(slot);
    }

    /// Hands out the connection, if that was not done. Early, some requests can be sent and others wait. Whether it is wanted.
    pub(super) fn hand_out(&mut self) -> bool {
        let handle = Arc::clone(&self.handle);
        self.connecting.take().is_none_or(|connecting| connecting.send(Ok(handle)).is_ok())
    }

    /// Takes no more requests; those that were not sent are refused.
    fn refuse_requests(&mut self, error: &Error) {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().chain(self.handle.close(error)).for_each(|job| job.refuse(error.clone()));
    }

    /// The connection has ended: all who wait hear why.
    fn end(&mut self, error: &Error) {
        if let Some(connecting) = self.connecting.take() {
            let _ = connecting.send(Err(error.clone()));
        }
        self.refuse_requests(error);
    }

    /// Whether the one who wanted the connection has given it up.
    fn is_given_up(&mut self) -> bool {
        let mut cx = Context::from_waker(&self.waker);
        self.connecting.as_mut().is_some_and(|connecting| connecting.poll_closed(&mut cx).is_ready())
    }
}

impl Responses for State {
    type Request = Exchange;

    fn on_head(&mut self, exchange: &mut Exchange, head: &ResponseHead<'_>) {
        exchange.on_head(head, &self.waker);
    }

    fn on_interim(&mut self, exchange: &mut Exchange, head: &ResponseHead<'_>) {
        exchange.on_interim(head);
    }

    #[inline]
    fn on_body(&mut self, exchange: &mut Exchange, bytes: &[u8]) -> usize {
        exchange.on_body(bytes)
    }

    fn on_trailers(&mut self, exchange: &mut Exchange, trailers: &Trailers<'_>) {
        exchange.on_trailers(trailers);
    }

    fn on_end(&mut self, mut exchange: Exchange) -> Option<Exchange> {
        if let Some(job) = exchange.take_refused_early() {
            self.waiting.push_back(job);
            return None;
        }
        self.ended.extend(exchange.end(None));
        exchange.is_sending().then_some(exchange)
    }

    fn on_failure(&mut self, mut exchange: Exchange, failure: Failure<'_>) {
        self.ended.extend(exchange.end(Some(fault::of(failure))));
    }

    fn on_stop_sending(&mut self, exchange: &mut Exchange) {
        exchange.end_upload();
    }

    fn next_content(&mut self, exchange: &mut Exchange, room: usize) -> Content {
        exchange.next_content(room, &self.waker).unwrap_or_else(|error| {
            self.ended.extend(exchange.end(Some(error)));
            Content::Broken
        })
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // Has no effect where the connection has ended in order.
        self.end(&Error::new(Kind::Lost, "the thread of HTTP/3 has ended"));
    }
}

/// The next request that may be sent. Before the handshake is complete, one that may be carried out twice.
fn next_job(active: &mut Active<'_>) -> Option<Job> {
    if active.is_open() {
        return active.state().waiting.pop_front();
    }
    if !active.may_send_early() {
        return None;
    }
    let waiting = &mut active.state().waiting;
    let place = waiting.iter().position(Job::may_go_early)?;
    waiting.remove(place)
}

/// Sends requests as long as the server permits more.
fn begin_requests(active: &mut Active<'_>) {
    while let Some(mut job) = next_job(active) {
        let waker = active.state().waker.clone();
        if job.receiver.is_unwanted(&mut Context::from_waker(&waker)) {
            job.receiver.fail(cancelled().into());
            continue;
        }
        let length = upload::length(&job.head, &job.content);
        match active.request(&job.head, length) {
            Ok(id) => {
                let upload = (length != BodyLength::Empty).then(|| Upload::new(job.content));
                let on_informational = job.head.extensions.get().cloned();
                let exchange = Exchange::new(job.receiver, upload, on_informational);
                active.keep(id, if active.is_open() { exchange } else { exchange.early(job.head) });
                serve(active, id);
            }
            // An event tells when there is room again, or that the connection is over.
            Err(RequestError::NoStream) => return active.state().waiting.push_front(job),
            Err(RequestError::HeadTooLarge) => {
                let text = "the server takes no request with so much in its head";
                job.receiver.fail(Error::new(Kind::Request, text).into());
            }
            Err(error @ (RequestError::GoingAway | RequestError::Closed)) => {
                let error = Error::caused(Kind::Lost, "the connection takes no more requests", error);
                job.refuse(error.clone());
                return active.state().refuse_requests(&error);
            }
        }
    }
}

/// Sends content of a request, lets its response go on where that was paused, and gives it up if it has no reader.
fn serve(active: &mut Active<'_>, id: StreamId) {
    active.feed(id);
    let Some((state, exchange)) = active.entry(id) else { return };
    if exchange.is_unwanted(&mut Context::from_waker(&state.waker)) {
        if let Some(mut exchange) = active.cancel(id) {
            active.state().ended.extend(exchange.end(Some(cancelled())));
        }
    } else if exchange.takes_more() {
        active.resume(id);
    }
}

/// All connections together.
pub(super) struct Connections {
    calls: Arc<Calls>,
    pub(super) config: Arc<http3::Config>,
    /// A connection without requests is closed after so long.
    idle: Duration,
    /// No handle of the client is left: connections end when they are idle.
    pub(super) is_abandoned: bool,
}

impl Connections {
    pub(super) fn new(calls: Arc<Calls>, idle: Duration) -> Connections {
        Connections { calls, config: Arc::new(http3::Config::client()), idle, is_abandoned: false }
    }

    /// The state of a connection that `connecting` waits for, and that shall have paths from these addresses beside the first.
    pub(super) fn state(&self, connecting: Option<TellConnected>, paths: Vec<IpAddr>) -> State {
        let call = Call::new(Arc::clone(&self.calls));
        let waker = Waker::from(Arc::clone(&call));
        let handle = Arc::new(QuicConnection::new(call));
        State {
            handle,
            connecting,
            waiting: VecDeque::new(),
            is_used: false,
            has_settings: false,
            idle_since: None,
            waker,
            ended: Vec::new(),
            paths,
        }
    }

    /// Closes the connection when it has had no request for a while. Returns when to look again.
    fn rest(&self, active: &mut Active<'_>) -> Option<Instant> {
        let (now, is_used) = (active.now, active.outstanding() > 0);
        let is_new = !active.quic.is_confirmed();
        let state = active.state();
        // Tickets come with the confirmation, which is later than the answer to early data.
        if is_used || is_new || !state.waiting.is_empty() {
            state.idle_since = None;
            return None;
        }
        let idle = match (self.is_abandoned || state.handle.is_released(), state.is_used) {
            (true, _) => Duration::ZERO,
            (false, true) => self.idle,
            // The request that it was made for is on its way.
            (false, false) => self.idle.max(FIRST_REQUEST),
        };
        let until = *state.idle_since.get_or_insert(now) + idle;
        if now < until {
            return Some(until);
        }
        state.refuse_requests(&Error::new(Kind::Lost, "the connection is closed"));
        active.close();
        None
    }
}

impl Requests for Connections {
    type Connection = State;

    fn on_accept(&mut self, _: Instant) -> State {
        self.state(None, Vec::new())
    }

    fn take_called(&mut self, handles: &mut Vec<Handle>) {
        self.calls.take(handles);
    }

    fn on_connected(&mut self, active: &mut Active<'_>) {
        if !active.state().hand_out() {
            active.close();
        }
    }

    fn on_turn(&mut self, active: &mut Active<'_>) -> Option<Instant> {
        if active.state().is_given_up() {
            active.close();
        }
        if active.is_leaving() {
            let text = "the server takes no more requests on the connection";
            active.state().refuse_requests(&Error::new(Kind::Lost, text));
        }
        if !active.state().has_settings
            && let Some(settings) = active.peer_settings()
        {
            let extended_connect = settings.enable_connect_protocol;
            active.state().has_settings = true;
            active.state().handle.on_settings(extended_connect);
        }
        if active.state().handle.call().take() {
            let state = active.state();
            state.waiting.extend(state.handle.take());
            state.is_used |= !state.waiting.is_empty();
            let ids: Vec<StreamId> = active.requests().map(|(id, _)| id).collect();
            ids.into_iter().for_each(|id| serve(active, id));
        }
        begin_requests(active);
        if !active.state().paths.is_empty() {
            let mut waiting = std::mem::take(&mut active.state().paths);
            paths::open(active.quic, active.now, &mut waiting);
            active.state().paths = waiting;
        }
        if !active.state().ended.is_empty() {
            let path = PathReport::of(active.quic);
            active.state().ended.drain(..).for_each(|ended| ended.tell(Some(&path)));
        }
        self.rest(active)
    }

    fn on_closed(&mut self, _: Instant, quic: &Connection, state: &mut State, end: &End) {
        let path = PathReport::of(quic);
        // Without an address that has answered there is nothing to tell.
        let path = Some(&path).filter(|_| state.connecting.is_none());
        state.ended.drain(..).for_each(|ended| ended.tell(path));
        state.end(&fault::of_close(end));
    }
}
