//! The smallest HTTP/3 client: one connection, one request, content that is counted and forgotten.
//!
//! `tercel get` is what users run and what comparisons measure. This is for measurements inside one process, where nothing
//! but the protocol must be in the picture: whether it allocates, and what each layer costs.

use std::net::SocketAddr;
use std::sync::Arc;

use base::time::Instant;
use http3::{Abort, BodyLength, MessageSink, ResponseHead, Session};
use transport::{Connection, Event, Fin, StreamId, StreamSink};
use wire::Side;
use worker::{App, Next};

/// The application of a client's worker.
#[derive(Debug, Default)]
pub struct Fetch {
    /// Content bytes that have come.
    pub received: u64,
    /// Set once the connection has gone, or the response is over.
    pub outcome: Option<Outcome>,
}

/// How a fetch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The response is complete.
    Complete,
    /// It is not, and why.
    Failed(String),
}

/// What is kept for the connection.
#[derive(Debug)]
pub struct State {
    session: Session<Content>,
    request: Option<http::request::Parts>,
}

#[derive(Debug, Default)]
struct Content {
    received: u64,
    outcome: Option<Outcome>,
}

impl State {
    /// The state of a connection that will ask `authority` for `path`.
    ///
    /// # Errors
    /// When the two make no URL.
    pub fn new(authority: SocketAddr, path: &str, now: Instant) -> Result<State, http::Error> {
        let request = http::Request::get(format!("https://{authority}{path}")).body(())?.into_parts().0;
        let connection = http3::Connection::new(Side::Client, Arc::new(http3::Config::client()), now);
        let session = Session { connection, messages: Content::default() };
        Ok(State { session, request: Some(request) })
    }
}

impl MessageSink for Content {
    fn on_response(&mut self, _: StreamId, head: &ResponseHead<'_>) {
        if head.status() != 200 {
            self.outcome = Some(Outcome::Failed(format!("status {}", head.status())));
        }
    }

    #[inline]
    fn on_body(&mut self, _: StreamId, bytes: &[u8]) -> usize {
        self.received += bytes.len() as u64;
        bytes.len()
    }

    fn on_event(&mut self, event: &Event) {
        if let Event::Closed(reason) = event {
            self.outcome.get_or_insert_with(|| Outcome::Failed(format!("{reason:?}")));
        }
    }

    fn on_end(&mut self, _: StreamId) {
        self.outcome.get_or_insert(Outcome::Complete);
    }

    fn on_abort(&mut self, _: StreamId, abort: Abort) {
        self.outcome.get_or_insert(Outcome::Failed(format!("{abort:?}")));
    }
}

impl StreamSink for State {
    #[inline]
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        self.session.on_stream_data(id, bytes, fin)
    }
}

impl App for Fetch {
    type State = State;

    fn on_accept(&mut self, now: Instant, _: &mut Connection) -> State {
        // Never called: a client's worker has no server configuration.
        let connection = http3::Connection::new(Side::Client, Arc::new(http3::Config::client()), now);
        State { session: Session { connection, messages: Content::default() }, request: None }
    }

    fn on_turn(&mut self, now: Instant, connection: &mut Connection, state: &mut State) -> Next {
        let State { session, request } = state;
        session.on_turn(connection, now);
        if connection.is_connected()
            && let Some(head) = request.take()
            && let Err(error) = session.connection.request(connection, &head, BodyLength::Empty)
        {
            session.messages.outcome = Some(Outcome::Failed(format!("{error:?}")));
        }
        self.received = session.messages.received;
        if self.outcome.is_none()
            && let Some(outcome) = session.messages.outcome.take()
        {
            self.outcome = Some(outcome);
            session.connection.close(connection, now);
        }
        session.connection.next_timeout().map_or(Next::Wait, Next::At)
    }

    fn on_gone(&mut self, _: Instant, _: &Connection, _: State) {
        self.outcome.get_or_insert_with(|| Outcome::Failed("the connection ended".to_owned()));
    }
}
