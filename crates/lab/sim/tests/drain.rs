//! A server that is told to stop: what was asked comes whole, whatever the network loses, and what was not looked at is said so.
//! RFC 9114 §5.2. The real server of files and generated bodies, over virtual links.

#![expect(clippy::unwrap_used, reason = "a helper of a test may panic as the test itself may")]

use base::slab::Handle;
use base::time::{Duration, Instant};
use http3::{Abort, BodyLength, Code, Config, MessageSink, ResponseHead, Session};
use server::access_log::{AccessLog, Target};
use server::handler::{FileOptions, Files};
use server::http3::Server;
use sim::{Burst, EventRate, Node, Scenario, Simulation, StopReason};
use std::collections::BTreeMap;
use std::sync::Arc;
use transport::{CloseReason, Connection, Event, StreamId};
use wire::Side;
use worker::{App, Next};

/// A client's downloads of generated bodies on one connection.
#[derive(Debug, Default)]
struct Downloads {
    /// Sizes of bodies that are still to be asked for.
    waiting: Vec<u64>,
    /// Bytes that are missing, once the head has come.
    open: BTreeMap<StreamId, Option<u64>>,
    heads: usize,
    whole: usize,
    rejected: usize,
    failures: Vec<String>,
    was_told: bool,
    /// Takes no content at all.
    is_stalled: bool,
    /// Closes the connection at its next turn.
    leaves: bool,
    ended: Option<CloseReason>,
}

impl MessageSink for Downloads {
    fn on_response(&mut self, id: StreamId, head: &ResponseHead<'_>) {
        self.heads += 1;
        self.open.insert(id, head.content_length());
    }

    fn on_body(&mut self, id: StreamId, bytes: &[u8]) -> usize {
        if self.is_stalled {
            return 0;
        }
        if let Some(Some(left)) = self.open.get_mut(&id) {
            *left -= bytes.len() as u64;
        }
        bytes.len()
    }

    fn on_end(&mut self, id: StreamId) {
        match self.open.remove(&id) {
            Some(Some(0)) => self.whole += 1,
            other => self.failures.push(format!("{id:?} ended with {other:?} missing")),
        }
    }

    fn on_abort(&mut self, id: StreamId, abort: Abort) {
        self.open.remove(&id);
        match abort {
            Abort::Peer(Code::REQUEST_REJECTED) => self.rejected += 1,
            other => self.failures.push(format!("{id:?}: {other:?}")),
        }
    }

    fn on_goaway(&mut self) {
        self.was_told = true;
    }

    fn on_event(&mut self, event: &Event) {
        if let Event::Closed(reason) = event {
            self.ended = Some(reason.clone());
            for (id, left) in core::mem::take(&mut self.open) {
                self.failures.push(format!("{id:?}: closed with {left:?} missing"));
            }
        }
    }
}

/// Keeps what became of its connection.
#[derive(Default)]
struct Client(Option<Downloads>);

impl App for Client {
    type State = Session<Downloads>;

    fn on_accept(&mut self, now: Instant, _: &mut Connection) -> Session<Downloads> {
        session(Downloads::default(), now)
    }

    fn on_turn(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        session: &mut Session<Downloads>,
    ) -> Next {
        session.on_turn(connection, now);
        if !session.messages.is_stalled {
            let paused: Vec<StreamId> = session.messages.open.keys().copied().collect();
            paused.into_iter().for_each(|id| session.deliver(connection, now, id));
        }
        if core::mem::take(&mut session.messages.leaves) {
            session.connection.close(connection, now);
        }
        while connection.is_connected()
            && let Some(size) = session.messages.waiting.pop()
        {
            let uri = format!("https://server.example/bytes/{size}");
            let head = http::Request::get(uri).body(()).unwrap().into_parts().0;
            match session.connection.request(connection, &head, BodyLength::Empty) {
                Ok(id) => drop(session.messages.open.insert(id, None)),
                Err(error) => session.messages.failures.push(error.to_string()),
            }
        }
        session.connection.next_timeout().map_or(Next::Wait, Next::At)
    }

    fn on_gone(&mut self, _: Instant, _: &Connection, session: Session<Downloads>) {
        self.0 = Some(session.messages);
    }
}

fn session(downloads: Downloads, now: Instant) -> Session<Downloads> {
    let connection = http3::Connection::new(Side::Client, Arc::new(Config::client()), now);
    Session { connection, messages: downloads }
}

struct Run {
    lab: Simulation<Server, Client>,
    handle: Handle,
}

impl Run {
    /// Begins to download bodies of these sizes at once.
    fn start(scenario: &Scenario, downloads: Downloads) -> Run {
        let log = AccessLog::start(Target::Off).unwrap();
        let server = Server::new(Files::new(FileOptions::default()), log.recorder());
        let mut lab = scenario.build(server, Client::default()).unwrap();
        let now = lab.network().borrow().now();
        let handle = lab.connect(session(downloads, now)).unwrap();
        Run { lab, handle }
    }

    fn client(&mut self) -> &mut Downloads {
        if self.lab.client().connections() == 0 {
            return self.lab.client().app_mut().0.as_mut().unwrap();
        }
        &mut self.lab.client().connection(self.handle).unwrap().1.messages
    }

    fn run_for(&mut self, time: Duration) {
        self.lab.run(time, |_| false);
    }

    fn run_until_heads(&mut self, count: usize) {
        for _ in 0..10_000 {
            if self.client().heads >= count {
                return;
            }
            self.run_for(Duration::from_millis(1));
        }
        unreachable!("{:?}", self.client());
    }

    /// SIGTERM.
    fn stop(&mut self) {
        let server = self.lab.server();
        server.app_mut().stop();
        server.refuse_incoming();
        server.activate_all();
    }

    /// Runs until the server's process would end, and all has arrived. Returns how long it took.
    fn run_to_end(&mut self) -> Duration {
        let began = self.lab.age();
        let halt =
            self.lab.run(Duration::from_secs(100), |lab| lab.server().app_mut().open_connections() == 0);
        assert_eq!(halt, StopReason::Done, "{:?}", self.client());
        let took = self.lab.age().saturating_sub(began);
        // What has left is still on its way. A closed connection sends nothing again.
        self.run_for(Duration::from_secs(1));
        took
    }

    /// Everything that was asked for is there, and the client knows that the server has left.
    fn assert_whole(&mut self, count: usize, what: &str) {
        let client = self.client();
        assert!(client.failures.is_empty() && client.open.is_empty(), "{what}: {client:?}");
        assert_eq!(client.whole, count, "{what}");
    }
}

/// A direction of [`Scenario::interop`] on which nothing passes for some time.
fn silence(from: Duration, to: Duration) -> Vec<Node> {
    vec![Node::Blackhole { from, to }, Node::Delay(Duration::from_millis(15))]
}

fn downloads(sizes: impl IntoIterator<Item = u64>) -> Downloads {
    Downloads { waiting: sizes.into_iter().collect(), ..Downloads::default() }
}

/// Fails without it: an exchange counted as over when the transport had its bytes, and closing the connection threw away what
/// was not acknowledged: all of 500 KB and 5 MB.
#[test]
fn downloads_come_whole_when_the_server_is_told_to_stop_after_their_heads() {
    for size in [0, 1, 100_000, 500_000, 5_000_000] {
        let mut run = Run::start(&Scenario::interop(1), downloads([size]));
        run.run_until_heads(1);
        run.stop();
        run.run_to_end();
        run.assert_whole(1, &format!("{size} bytes"));
        let reason = run.client().ended.clone();
        let code = Code::NO_ERROR.0;
        assert!(
            matches!(reason, Some(CloseReason::PeerApplication { code: is, .. }) if is == code),
            "{reason:?}"
        );
    }
}

/// Fails without it: 24 of 200 were lost.
#[test]
fn two_hundred_small_responses_over_50_ms_all_come_whole() {
    let mut scenario = Scenario::interop(2);
    let delay = || vec![Node::Delay(Duration::from_millis(25))];
    (scenario.to_server, scenario.to_client) = (delay(), delay());
    scenario.server.streams.max_bidi_streams = 300;
    for heads in [1, 100, 200] {
        let mut run = Run::start(&scenario, downloads([20_000; 200]));
        run.run_until_heads(heads);
        run.stop();
        run.run_to_end();
        run.assert_whole(200, &format!("after {heads} heads"));
    }
}

/// Fails without it: what is lost near the end is never sent again, because the connection is closed.
#[test]
fn each_packet_may_be_lost_while_the_server_leaves() {
    for lost in 1..40 {
        let mut scenario = Scenario::interop(3);
        scenario.to_client.insert(0, Node::Drop(vec![lost, lost + 1]));
        let mut run = Run::start(&scenario, downloads([20_000; 2]));
        run.run_until_heads(1);
        run.stop();
        run.run_to_end();
        run.assert_whole(2, &format!("without packets {lost} and {}", lost + 1));
    }
    for seed in 0..20 {
        let loss = Node::Loss(EventRate::percent(15).with_burst(Burst::AtMost(3)));
        let mut run =
            Run::start(&Scenario { seed, ..Scenario::interop(4) }.both_ways(&loss), downloads([50_000; 5]));
        run.run_until_heads(1);
        run.stop();
        run.run_to_end();
        run.assert_whole(5, &format!("seed {seed}"));
    }
}

/// RFC 9114 §5.2: a request that is on its way when the server says that it leaves is answered; one after the final word is
/// rejected, so that the client may ask elsewhere.
#[test]
fn requests_between_the_two_goaways_are_answered_and_later_ones_rejected() {
    let mut run = Run::start(&Scenario::interop(5), downloads([300_000]));
    run.run_until_heads(1);
    run.stop();
    run.run_for(Duration::from_millis(10));
    assert!(!run.client().was_told);
    run.client().waiting.push(1_000);
    run.run_to_end();
    run.assert_whole(2, "one more on its way");

    let mut run = Run::start(&Scenario::interop(6), downloads([300_000]));
    run.run_until_heads(1);
    let (server, client) = run.lab.hosts();
    // Nothing reaches the client until the final word has been said.
    let age = run.lab.age();
    let nodes = silence(age, age + Duration::from_millis(1_500));
    run.lab.network().borrow_mut().change_link(server, client, nodes);
    run.stop();
    run.run_for(Duration::from_millis(1_300));
    run.client().waiting.push(1_000);
    run.run_to_end();
    let client = run.client();
    assert_eq!(client.rejected, 1, "{client:?}");
    run.assert_whole(1, "one too late");
}

/// Fails without it: GOAWAY waited behind bulk data for which the client gives no credit, so that the client went on asking.
#[test]
fn a_client_that_reads_nothing_hears_that_the_server_leaves() {
    let mut scenario = Scenario::interop(7);
    scenario.client.streams.initial_connection_window = 64 * 1024;
    scenario.client.streams.max_connection_window = 64 * 1024;
    let mut run = Run::start(&scenario, Downloads { is_stalled: true, ..downloads([5_000_000, 5_000_000]) });
    run.run_until_heads(1);
    run.run_for(Duration::from_secs(1));
    run.stop();
    run.run_for(Duration::from_millis(100));
    assert!(run.client().was_told, "{:?}", run.client());
    assert_eq!(run.lab.server().app_mut().open_connections(), 1, "what was asked for is still owed");
}

/// Fails without it: a client that has acknowledged a response lost what it had not read yet. Chromium failed the request.
#[test]
fn a_client_has_time_to_read_what_it_has_acknowledged() {
    const SIZE: u64 = 8_000_000;
    let mut scenario = Scenario::interop(10);
    scenario.to_client = vec![Node::Delay(Duration::from_millis(15))];
    scenario.client.streams.initial_stream_window = 2 * SIZE;
    scenario.client.streams.max_stream_window = 2 * SIZE;
    scenario.client.streams.initial_connection_window = 2 * SIZE;
    scenario.client.streams.max_connection_window = 2 * SIZE;
    // Told to stop in the middle, and when all has been acknowledged.
    for before in [50, 2_500] {
        let mut run = Run::start(&scenario, Downloads { is_stalled: true, ..downloads([SIZE]) });
        run.run_until_heads(1);
        run.run_for(Duration::from_millis(before));
        run.stop();
        run.run_for(Duration::from_millis(3_500 - before));
        assert_eq!(run.lab.server().app_mut().open_connections(), 1, "{:?}", run.client());
        assert!(run.client().ended.is_none() && run.client().was_told);
        run.client().is_stalled = false;
        let client = run.handle;
        run.lab.client().activate_all();
        run.run_for(Duration::from_millis(100));
        run.assert_whole(1, &format!("stopped after {before} ms"));
        // A client that has read all ends the wait.
        assert!(run.lab.client().connection(client).is_some());
        run.client().leaves = true;
        run.lab.client().activate_all();
        assert!(run.run_to_end() < Duration::from_millis(100));
    }
    // One that says nothing is waited for so long and no longer.
    let mut run = Run::start(&scenario, Downloads { is_stalled: true, ..downloads([SIZE]) });
    run.run_until_heads(1);
    run.stop();
    let took = run.run_to_end();
    assert!(took > Duration::from_secs(4) && took < Duration::from_secs(6), "{took:?}");
    // Nor is one that has had its time before.
    let mut run = Run::start(&scenario, downloads([SIZE]));
    run.run_for(Duration::from_secs(8));
    run.stop();
    assert!(run.run_to_end() < Duration::from_millis(150));
    run.assert_whole(1, "read long ago");
}

/// The end of a connection without requests takes two round trips, or little more than a second if the client has gone.
#[test]
fn a_server_does_not_wait_for_clients_that_want_nothing() {
    let mut run = Run::start(&Scenario::interop(8), downloads([1_000]));
    run.run_for(Duration::from_secs(1));
    run.stop();
    assert!(run.run_to_end() < Duration::from_millis(150));
    run.assert_whole(1, "idle");

    let mut run = Run::start(&Scenario::interop(9), downloads([1_000]));
    run.run_for(Duration::from_secs(1));
    let (server, client) = run.lab.hosts();
    let nodes = silence(Duration::ZERO, Duration::from_secs(1_000));
    run.lab.network().borrow_mut().change_link(client, server, nodes);
    run.stop();
    assert!(run.run_to_end() < Duration::from_millis(1_400));
}
