//! The HTTP/3 client application: each request ends once, whatever becomes of its connection. Against the real server of files
//! and generated bodies, over virtual links.

#![expect(clippy::unwrap_used, reason = "a helper of a test may panic as the test itself may")]

use base::slab::Handle;
use base::time::{Duration, Instant};
use bytes::Bytes;
use client::app::{Active, ClientApp, ClientConnection, Content, End, Failure, Requests, Responses};
use http3::{BodyLength, RequestError, ResponseHead};
use server::access_log::{AccessLog, Target};
use server::handler::{FileOptions, Files};
use server::http3::Server;
use sim::{Node, Scenario, Simulation, StopReason};
use std::sync::Arc;
use transport::{CloseReason, Connection, StreamId};

/// A request of the tests.
struct Exchange {
    /// Content that is left to send.
    unsent: usize,
    received: u64,
}

/// What the tests keep for the connection.
#[derive(Default)]
struct State {
    /// Requests that are still to be sent: their method, the size of the response, and that of their content.
    waiting: Vec<(&'static str, u64, usize)>,
    /// Bytes that are taken before responses pause.
    allowance: Option<u64>,
    heads: Vec<u16>,
    /// The lengths of complete responses.
    whole: Vec<u64>,
    failures: Vec<String>,
    ended: Vec<CloseReason>,
}

impl Responses for State {
    type Request = Exchange;

    fn on_head(&mut self, _: &mut Exchange, head: &ResponseHead<'_>) {
        self.heads.push(head.status());
    }

    fn on_body(&mut self, exchange: &mut Exchange, bytes: &[u8]) -> usize {
        let taken = self.allowance.map_or(bytes.len(), |left| bytes.len().min(left as usize));
        self.allowance = self.allowance.map(|left| left - taken as u64);
        exchange.received += taken as u64;
        taken
    }

    fn on_end(&mut self, exchange: Exchange) -> Option<Exchange> {
        self.whole.push(exchange.received);
        (exchange.unsent > 0).then_some(exchange)
    }

    fn on_failure(&mut self, _: Exchange, failure: Failure<'_>) {
        assert!(self.ended.is_empty(), "a failure after the end of the connection");
        self.failures.push(format!("{failure:?}"));
    }

    fn next_content(&mut self, exchange: &mut Exchange, room: usize) -> Content {
        let length = exchange.unsent.min(room);
        if length == 0 {
            return Content::Wait;
        }
        exchange.unsent -= length;
        let bytes = Bytes::from(vec![b'x'; length]);
        if exchange.unsent == 0 { Content::Last(bytes, None) } else { Content::Bytes(bytes) }
    }
}

#[derive(Default)]
struct Asker {
    /// The state of the connection, once it has ended.
    last: Option<State>,
}

impl Requests for Asker {
    type Connection = State;

    fn on_accept(&mut self, _: Instant) -> State {
        State::default()
    }

    fn on_turn(&mut self, active: &mut Active<'_, State>) -> Option<Instant> {
        while active.is_open()
            && let Some((method, size, unsent)) = active.state().waiting.pop()
        {
            let uri = format!("https://server.example/bytes/{size}");
            let head = http::Request::builder().method(method).uri(uri).body(()).unwrap().into_parts().0;
            let length = if unsent > 0 { BodyLength::Known(unsent as u64) } else { BodyLength::Empty };
            match active.request(&head, length) {
                Ok(id) => {
                    active.keep(id, Exchange { unsent, received: 0 });
                    active.feed(id);
                }
                Err(RequestError::NoStream) => {
                    active.state().waiting.push((method, size, unsent));
                    break;
                }
                Err(error) => unreachable!("{error}"),
            }
        }
        None
    }

    fn on_closed(&mut self, _: Instant, _: &Connection, state: &mut State, end: &End) {
        state.ended.push(end.reason.clone());
        self.last = Some(core::mem::take(state));
    }
}

struct Run {
    lab: Simulation<Server, ClientApp<Asker>>,
    handle: Handle,
}

impl Run {
    fn start(scenario: &Scenario, state: State) -> Run {
        let log = AccessLog::start(Target::Off).unwrap();
        let server = Server::new(Files::new(FileOptions::default()), log.recorder());
        let mut lab = scenario.build(server, ClientApp::default()).unwrap();
        let now = lab.network().borrow().now();
        let connection = ClientConnection::new(Arc::new(http3::Config::client()), state, 0, now);
        let handle = lab.connect(connection).unwrap();
        Run { lab, handle }
    }

    /// Acts on the connection, which is open.
    fn act<R>(&mut self, act: impl FnOnce(&mut Active<'_, State>) -> R) -> R {
        let now = self.lab.network().borrow().now();
        let (quic, connection) = self.lab.client().connection(self.handle).unwrap();
        act(&mut connection.active(quic, now))
    }

    fn run_for(&mut self, time: Duration) {
        self.lab.run(time, |_| false);
    }

    /// Runs until the connection has ended.
    fn run_to_end(&mut self) -> State {
        let halt = self.lab.run(Duration::from_secs(100), |lab| lab.client().app_mut().last.is_some());
        assert_eq!(halt, StopReason::Done);
        let state = self.lab.client().app_mut().last.take().unwrap();
        // Nothing follows the end.
        self.run_for(Duration::from_secs(10));
        assert!(self.lab.client().app_mut().last.is_none());
        state
    }
}

fn gets(sizes: &[u64]) -> State {
    State { waiting: sizes.iter().map(|size| ("GET", *size, 0)).collect(), ..State::default() }
}

/// Deleted, a request could be forgotten with its connection, or be told of its end twice.
#[test]
fn requests_fail_once_when_the_server_is_silent_for_ever() {
    let mut scenario = Scenario::interop(1);
    let (from, to) = (Duration::from_millis(200), Duration::from_secs(1_000));
    scenario.to_client.insert(0, Node::Blackhole { from, to });
    let mut run = Run::start(&scenario, gets(&[50_000_000, 50_000_000, 50_000_000, 0]));
    let state = run.run_to_end();
    assert_eq!((state.whole.as_slice(), state.ended.as_slice()), (&[0][..], &[CloseReason::IdleTimeout][..]));
    assert_eq!(state.failures.len(), 3, "{:?}", state.failures);
    assert!(state.failures.iter().all(|failure| failure.contains("IdleTimeout")), "{:?}", state.failures);
}

/// RFC 9114 §5.2. Deleted, a client could wait for ever on a connection that a server wants to leave, or leave with it what was
/// asked.
#[test]
fn a_connection_that_the_server_leaves_takes_no_requests_and_closes_after_the_last_of_them() {
    let mut run = Run::start(&Scenario::interop(2), gets(&[100_000, 1_000_000]));
    run.run_for(Duration::from_millis(100));
    assert_eq!(run.act(|active| (active.is_open(), active.outstanding())), (true, 2));
    run.lab.server().app_mut().stop();
    run.lab.server().activate_all();
    run.run_for(Duration::from_millis(80));
    let head = http::Request::get("https://server.example/bytes/1").body(()).unwrap().into_parts().0;
    let refused = run.act(|active| active.request(&head, BodyLength::Empty).map(drop));
    assert_eq!(refused, Err(RequestError::GoingAway));
    let mut state = run.run_to_end();
    state.whole.sort_unstable();
    assert_eq!((state.whole.as_slice(), state.failures.len()), (&[100_000, 1_000_000][..], 0));
    assert!(matches!(state.ended.as_slice(), [CloseReason::Local { .. }]), "{:?}", state.ended);
}

/// Deleted, content that was not taken could be lost, or lent twice.
#[test]
fn a_response_that_is_not_taken_pauses_until_it_is_resumed() {
    let state = State { allowance: Some(70_000), ..gets(&[500_000]) };
    let mut run = Run::start(&Scenario::interop(3), state);
    for taken in 1..=7 {
        run.run_for(Duration::from_secs(2));
        let received =
            |active: &mut Active<'_, State>| active.requests().map(|(id, one)| (id, one.received)).next();
        let (id, received) = run.act(received).unwrap();
        assert_eq!(received, 70_000 * taken);
        run.act(|active| {
            active.state().allowance = Some(70_000);
            active.resume(id);
        });
    }
    run.run_for(Duration::from_secs(2));
    assert_eq!(run.act(|active| active.state().whole.clone()), [500_000]);
}

/// Deleted, content could stay behind when its stream has room again: 3 MB are more than any first window.
#[test]
fn content_of_requests_leaves_as_its_streams_have_room() {
    let mut run = Run::start(&Scenario::interop(4), State::default());
    run.act(|active| active.state().waiting = vec![("POST", 1_000, 3_000_000), ("POST", 2_000, 1)]);
    run.run_for(Duration::from_secs(30));
    let (mut whole, heads, left) = run.act(|active| {
        let outstanding = active.outstanding();
        let state = active.state();
        (state.whole.clone(), state.heads.clone(), outstanding)
    });
    whole.sort_unstable();
    assert_eq!((whole.as_slice(), heads.as_slice(), left), (&[1_000, 2_000][..], &[200, 200][..], 0));
}

/// Deleted, a cancelled request could still be told of, or keep its place in the table.
#[test]
fn nothing_is_heard_of_a_request_that_is_cancelled() {
    let mut run = Run::start(&Scenario::interop(5), gets(&[5_000_000, 5_000_000]));
    run.run_for(Duration::from_millis(100));
    let ids: Vec<StreamId> = run.act(|active| active.requests().map(|(id, _)| id).collect());
    assert_eq!(ids.len(), 2);
    assert!(run.act(|active| active.cancel(ids[0]).is_some() && active.cancel(ids[0]).is_none()));
    run.run_for(Duration::from_secs(30));
    let ended =
        run.act(|active| (active.outstanding(), active.state().whole.clone(), active.state().failures.len()));
    assert_eq!(ended, (0, vec![5_000_000], 0));
    run.act(|active| active.close());
    assert!(matches!(run.run_to_end().ended.as_slice(), [CloseReason::Local { .. }]));
}
