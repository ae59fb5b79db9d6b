//! The HTTP/3 connections of a client as the application of a worker.

use super::call::Calls;
use super::fault;
use super::link::{Job, QuicConnection};
use super::messages::{Exchange, Messages};
use super::upload::{self, Upload};
use crate::library::error::{Error, Kind};
use base::slab::Handle;
use base::time::{Duration, Instant};
use http3::{BodyLength, Code, RequestError, Session};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::sync::oneshot;
use transport::{Connection, Fin, StreamId, StreamSink};
use wire::Side;
use worker::{App, Next};

/// Hears whether a handshake succeeds.
pub(super) type TellConnected = oneshot::Sender<Result<Arc<QuicConnection>, Error>>;

/// What the worker keeps for a connection.
pub(super) struct State {
    session: Session<Messages>,
    handle: Arc<QuicConnection>,
    /// Until the handshake is over.
    connecting: Option<TellConnected>,
    /// Requests that wait for the server to permit more streams.
    waiting: VecDeque<Job>,
    /// Since when there is no request.
    idle_since: Option<Instant>,
}

impl State {
    pub(super) fn new(
        handle: Arc<QuicConnection>,
        connecting: Option<TellConnected>,
        config: Arc<http3::Config>,
        now: Instant,
    ) -> State {
        let waker = Waker::from(Arc::clone(handle.call()));
        let connection = http3::Connection::new(Side::Client, config, now);
        let session = Session { connection, messages: Messages::new(waker) };
        State { session, handle, connecting, waiting: VecDeque::new(), idle_since: None }
    }

    /// The worker keeps it here.
    pub(super) fn set_slot(&self, slot: Handle) {
        self.handle.call().set_slot(slot);
    }

    /// Takes no more requests; those that were not sent are refused.
    fn refuse_requests(&mut self, error: &Error) {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().chain(self.handle.close()).for_each(|job| job.refuse(error.clone()));
    }

    /// The connection has ended: all who wait hear why.
    fn end(&mut self, error: &Error) {
        if let Some(connecting) = self.connecting.take() {
            let _ = connecting.send(Err(error.clone()));
        }
        self.refuse_requests(error);
        self.session.messages.exchanges.drain().for_each(|(_, mut exchange)| exchange.fail(error.clone()));
    }

    /// Looks at everything beside content that arrived.
    fn act(&mut self, now: Instant, connection: &mut Connection) {
        self.session.messages.needs_attention = false;
        if let Some(reason) = &self.session.messages.closed {
            let error = fault::of_close(reason, self.session.connection.failure());
            return self.end(&error);
        }
        let waker = self.session.messages.waker.clone();
        let mut cx = Context::from_waker(&waker);
        if self.session.messages.is_connected
            && let Some(connecting) = self.connecting.take()
        {
            // A connection that came too late has no other handle, and is closed below.
            let _ = connecting.send(Ok(Arc::clone(&self.handle)));
        }
        if let Some(connecting) = &mut self.connecting
            && connecting.poll_closed(&mut cx).is_ready()
        {
            self.session.connection.close(connection, now);
        }
        if self.session.messages.is_going_away {
            self.refuse_requests(&Error::new(
                Kind::Lost,
                "the server takes no more requests on the connection",
            ));
        }
        self.waiting.extend(self.handle.take());
        self.begin_requests(connection, &mut cx);
        self.serve_exchanges(now, connection, &mut cx);
    }

    fn begin_requests(&mut self, connection: &mut Connection, cx: &mut Context<'_>) {
        let Session { connection: http, messages } = &mut self.session;
        while let Some(mut job) = self.waiting.pop_front() {
            if job.tell.poll_closed(cx).is_ready() {
                continue;
            }
            let length = upload::length(&job.head, &job.content);
            match http.request(connection, &job.head, length) {
                Ok(id) => {
                    let upload = (length != BodyLength::Empty).then(|| Upload::new(job.content));
                    messages.exchanges.insert(id, Exchange::new(job.tell, upload));
                }
                // An event tells when there is room again, or that the connection is over.
                Err(RequestError::NoStream) => {
                    self.waiting.push_front(job);
                    break;
                }
                Err(RequestError::HeadTooLarge) => {
                    let text = "the server takes no request with so much in its head";
                    let _ = job.tell.send(Err(Error::new(Kind::Request, text).into()));
                }
                Err(error @ (RequestError::GoingAway | RequestError::Closed)) => {
                    let error = Error::caused(Kind::Lost, "the connection takes no more requests", error);
                    job.refuse(error.clone());
                    return self.refuse_requests(&error);
                }
            }
        }
    }

    /// Sends content, lets paused responses go on, and gives up what has no reader.
    fn serve_exchanges(&mut self, now: Instant, connection: &mut Connection, cx: &mut Context<'_>) {
        let Session { connection: http, messages } = &mut self.session;
        let mut resumed = Vec::new();
        messages.exchanges.retain(|id, exchange| {
            if let Some(upload) = &mut exchange.upload {
                match upload.poll_write(http, connection, *id, cx) {
                    Poll::Pending => {}
                    Poll::Ready(Ok(())) => exchange.upload = None,
                    Poll::Ready(Err(error)) => {
                        exchange.fail(error);
                        http.cancel(connection, *id, Code::REQUEST_CANCELLED);
                        return false;
                    }
                }
            }
            if exchange.is_unwanted(cx) {
                http.cancel(connection, *id, Code::REQUEST_CANCELLED);
                return false;
            }
            if exchange.takes_more() {
                resumed.push(*id);
            }
            !exchange.is_over()
        });
        resumed.into_iter().for_each(|id| self.session.deliver(connection, now, id));
    }

    /// Closes the connection when it has had no request for `idle`. Returns when to look again.
    fn rest(&mut self, now: Instant, connection: &mut Connection, idle: Duration) -> Next {
        if self.is_busy() {
            self.idle_since = None;
            return Next::Wait;
        }
        let until = *self.idle_since.get_or_insert(now) + idle;
        if now < until {
            return Next::At(until);
        }
        self.refuse_requests(&Error::new(Kind::Lost, "the connection is closed"));
        self.session.connection.close(connection, now);
        Next::Wait
    }

    /// Whether requests are under way.
    fn is_busy(&self) -> bool {
        self.connecting.is_some() || !self.waiting.is_empty() || !self.session.messages.exchanges.is_empty()
    }
}

impl StreamSink for State {
    #[inline]
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        self.session.on_stream_data(id, bytes, fin)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // Has no effect where the connection has ended in order.
        self.end(&Error::new(Kind::Lost, "the thread of HTTP/3 has ended"));
    }
}

/// All connections together.
pub(super) struct Connections {
    calls: Arc<Calls>,
    config: Arc<http3::Config>,
    /// A connection without requests is closed after so long.
    idle: Duration,
    /// No handle of the client is left: connections end when they are idle.
    pub(super) is_abandoned: bool,
}

impl Connections {
    pub(super) fn new(calls: Arc<Calls>, idle: Duration) -> Connections {
        Connections { calls, config: Arc::new(http3::Config::client()), idle, is_abandoned: false }
    }

    pub(super) fn calls(&self) -> &Arc<Calls> {
        &self.calls
    }

    pub(super) fn config(&self) -> &Arc<http3::Config> {
        &self.config
    }
}

impl App for Connections {
    type State = State;

    fn on_accept(&mut self, now: Instant, _: &mut Connection) -> State {
        // Never called: the endpoint ignores incoming connections.
        let handle = QuicConnection::new(super::call::Call::new(Arc::clone(&self.calls)));
        State::new(Arc::new(handle), None, Arc::clone(&self.config), now)
    }

    fn take_called(&mut self, _: Instant, handles: &mut Vec<Handle>) {
        self.calls.take(handles);
    }

    fn on_turn(&mut self, now: Instant, connection: &mut Connection, state: &mut State) -> Next {
        state.session.on_turn(connection, now);
        if state.handle.call().take() || state.session.messages.needs_attention || self.is_abandoned {
            state.act(now, connection);
        }
        let messages = &state.session.messages;
        if messages.closed.is_some() {
            return Next::Wait;
        }
        if state.session.connection.failure().is_some() || messages.needs_attention {
            return Next::Again;
        }
        let idle = if self.is_abandoned || messages.is_going_away { Duration::ZERO } else { self.idle };
        state.rest(now, connection, idle)
    }

    fn on_gone(&mut self, _: Instant, _: &Connection, _: State) {}
}
