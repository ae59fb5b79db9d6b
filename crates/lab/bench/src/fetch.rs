//! The smallest HTTP/3 client: one connection, one request, content that is counted and forgotten.
//!
//! `tercel get` is what users run and what comparisons measure. This is for measurements inside one process, where nothing
//! but the protocol must be in the picture: whether it allocates, and what each layer costs.

use base::time::Instant;
use client::app::{Active, ClientApp, ClientConnection, End, Failure, Requests, Responses};
use http3::{BodyLength, ResponseHead};
use std::net::SocketAddr;
use std::sync::Arc;
use transport::Connection;

/// The application of a client's worker.
pub type Fetch = ClientApp<Progress>;

/// How far the fetch is.
#[derive(Debug, Default)]
pub struct Progress {
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
#[derive(Debug, Default)]
pub struct State {
    request: Option<http::request::Parts>,
    progress: Progress,
}

/// A connection that will ask `authority` for `path`.
///
/// # Errors
/// When the two make no URL.
pub fn connection(
    authority: SocketAddr,
    path: &str,
    now: Instant,
) -> Result<ClientConnection<State>, http::Error> {
    let request = http::Request::get(format!("https://{authority}{path}")).body(())?.into_parts().0;
    let state = State { request: Some(request), progress: Progress::default() };
    Ok(ClientConnection::new(Arc::new(http3::Config::client()), state, 1, now))
}

impl State {
    fn fail(&mut self, why: String) {
        self.progress.outcome.get_or_insert(Outcome::Failed(why));
    }
}

impl Responses for State {
    type Request = ();

    fn on_head(&mut self, (): &mut (), head: &ResponseHead<'_>) {
        if head.status() != 200 {
            self.fail(format!("status {}", head.status()));
        }
    }

    #[inline]
    fn on_body(&mut self, (): &mut (), bytes: &[u8]) -> usize {
        self.progress.received += bytes.len() as u64;
        bytes.len()
    }

    fn on_end(&mut self, (): ()) -> Option<()> {
        self.progress.outcome.get_or_insert(Outcome::Complete);
        None
    }

    fn on_failure(&mut self, (): (), failure: Failure<'_>) {
        self.fail(format!("{failure:?}"));
    }
}

impl Requests for Progress {
    type Connection = State;

    fn on_accept(&mut self, _: Instant) -> State {
        State::default()
    }

    fn on_connected(&mut self, active: &mut Active<'_, State>) {
        let Some(head) = active.state().request.take() else { return };
        match active.request(&head, BodyLength::Empty) {
            Ok(id) => active.keep(id, ()),
            Err(error) => active.state().fail(format!("{error:?}")),
        }
    }

    fn on_turn(&mut self, active: &mut Active<'_, State>) -> Option<Instant> {
        self.received = active.state().progress.received;
        if self.outcome.is_none() && active.state().progress.outcome.is_some() {
            self.outcome = active.state().progress.outcome.take();
            active.close();
        }
        None
    }

    fn on_closed(&mut self, _: Instant, _: &Connection, state: &mut State, end: &End) {
        state.fail(format!("{:?}", end.reason));
        self.outcome = self.outcome.take().or(state.progress.outcome.take());
    }
}
