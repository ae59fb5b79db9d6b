//! An address translator forgets its binding when it is least expected: in the handshake, or while the client only listens.
//! Lost without these: clients behind such translators that wait until they give up.

#![expect(clippy::unwrap_used, reason = "a helper of a test may panic as the test itself may")]

use base::time::{Duration, Instant};
use bytes::Bytes;
use sim::transfer::{Transfer, TransferPlan, TransferSimulation, Workload, build};
use sim::{Node, ReadBehaviour, Renewal, Scenario, Simulation, StopReason};
use transport::{CloseReason, Connection, Dir, Event, Fin, StreamId, StreamSink};
use worker::{App, Next};

fn rebinding(at: Duration, what: Renewal) -> Scenario {
    let mut scenario = Scenario::interop(3);
    scenario.to_server.insert(0, Node::Rebind { at, every: Duration::from_secs(1_000), times: 1, what });
    scenario
}

/// Uploads 3 KB while the client's address changes `at` after its first packet. Returns how long that took.
fn upload(at: Duration, what: Renewal) -> Duration {
    let scenario = rebinding(at, what);
    let mut lab: TransferSimulation = build(&scenario, &Workload::downloads([])).unwrap();
    let client = lab.hosts().1;
    lab.network().borrow_mut().arm_rebinding(client);
    let mut transfer = Transfer::download(1_000);
    transfer.header.up = 3_000;
    lab.connect(TransferPlan::new(ReadBehaviour::new(scenario.app_rng(), 0), [transfer], 1)).unwrap();
    let halt = lab.run(Duration::from_secs(60), |lab| {
        lab.client().app_mut().done == 1 || !lab.client().app_mut().failures.is_empty()
    });
    let failures = lab.client().app_mut().failures.clone();
    assert_eq!((halt, failures), (StopReason::Done, vec![]), "{what:?} after {at:?}");
    lab.age()
}

#[test]
fn a_rebinding_at_any_moment_of_the_handshake_costs_two_timeouts_at_most() {
    for ms in (0..160).step_by(4) {
        for what in [Renewal::Port, Renewal::Address] {
            let time = upload(Duration::from_millis(ms), what);
            assert!(time < Duration::from_millis(2_500), "{what:?} after {ms} ms: {time:?}");
        }
    }
}

/// A server that thinks for eight seconds before it answers, and the client that waits for it.
#[derive(Default)]
struct Thinker {
    answer_at: Option<Instant>,
    closed: Vec<CloseReason>,
    answered: bool,
    connected: bool,
}

#[derive(Default)]
struct Seen {
    asked: Option<StreamId>,
    received: usize,
}

impl StreamSink for Seen {
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], _: Fin) -> usize {
        self.asked = Some(id);
        self.received += bytes.len();
        bytes.len()
    }
}

impl App for Thinker {
    type State = Seen;

    fn on_accept(&mut self, _: Instant, _: &mut Connection) -> Seen {
        Seen::default()
    }

    fn on_turn(&mut self, now: Instant, connection: &mut Connection, seen: &mut Seen) -> Next {
        while let Some(event) = connection.next_event() {
            match event {
                Event::Closed(reason) => self.closed.push(reason),
                Event::Connected => self.connected = true,
                _ => {}
            }
        }
        self.answered |= seen.received >= 50_000;
        let Some(id) = seen.asked.filter(|_| connection.side().is_server()) else { return Next::Wait };
        let at = *self.answer_at.get_or_insert(now + Duration::from_secs(8));
        if now < at {
            return Next::At(at);
        }
        if !core::mem::replace(&mut self.answered, true) {
            connection.write(id, Bytes::from(vec![1; 50_000])).unwrap();
            connection.finish_stream(id).unwrap();
        }
        Next::Wait
    }

    fn on_gone(&mut self, _: Instant, _: &Connection, _: Seen) {}
}

/// Asks, and loses the binding after `at`. Returns when the answer was there.
fn ask(at: Duration) -> Duration {
    let scenario = rebinding(at, Renewal::Port);
    let mut lab: Simulation<Thinker, Thinker> =
        scenario.build(Thinker::default(), Thinker::default()).unwrap();
    let client = lab.hosts().1;
    lab.network().borrow_mut().arm_rebinding(client);
    let handle = lab.connect(Seen::default()).unwrap();
    assert_eq!(lab.run(Duration::from_secs(5), |lab| lab.client().app_mut().connected), StopReason::Done);
    let (connection, _) = lab.client().connection(handle).unwrap();
    let id = connection.open(Dir::Bidi).unwrap();
    connection.write_slice(id, b"a question").unwrap();
    connection.finish_stream(id).unwrap();
    let halt = lab.run(Duration::from_secs(60), |lab| {
        lab.client().app_mut().answered || !lab.client().app_mut().closed.is_empty()
    });
    let closed = lab.client().app_mut().closed.clone();
    assert_eq!((halt, closed), (StopReason::Done, vec![]), "lost after {at:?}");
    lab.age()
}

/// The client has said all it has to say, and the server's answer goes to an address without a host.
#[test]
fn a_client_that_only_waits_finds_out_that_its_binding_is_lost() {
    for seconds in [1, 4, 6, 7, 8] {
        let time = ask(Duration::from_secs(seconds));
        assert!(time < Duration::from_secs(14), "lost after {seconds} s: {time:?}");
    }
}

/// Asks a server that lives and never answers. Returns whether the connection ended within ten minutes, why, and when.
fn ask_in_vain(keep_alive: Option<Duration>) -> (StopReason, Vec<CloseReason>, Duration) {
    let mut scenario = Scenario::interop(4);
    scenario.limit = Duration::from_secs(1_000);
    scenario.client.keep_alive = keep_alive;
    let mut lab: Simulation<Thinker, Thinker> = scenario
        .build(Thinker { answer_at: Some(Instant::FAR_FUTURE), ..Thinker::default() }, Thinker::default())
        .unwrap();
    let handle = lab.connect(Seen::default()).unwrap();
    assert_eq!(lab.run(Duration::from_secs(5), |lab| lab.client().app_mut().connected), StopReason::Done);
    let (connection, _) = lab.client().connection(handle).unwrap();
    let id = connection.open(Dir::Bidi).unwrap();
    connection.write_slice(id, b"a question").unwrap();
    let halt = lab.run(Duration::from_secs(600), |lab| !lab.client().app_mut().closed.is_empty());
    let closed = lab.client().app_mut().closed.clone();
    (halt, closed, lab.age())
}

/// Its client asks now and then, but not for ever.
#[test]
fn a_client_does_not_wait_for_ever_for_a_server_that_never_answers() {
    let (halt, closed, age) = ask_in_vain(None);
    assert_eq!((halt, &closed[..]), (StopReason::Done, &[CloseReason::IdleTimeout][..]));
    assert!(age > Duration::from_secs(100), "{age:?}");
}

/// Unless it is told to. Deleted, a program that pauses in a response would find it cut off after minutes, or at once where it asks for a
/// PING less often than the server's idle timeout needs one.
#[test]
fn a_client_that_keeps_its_connection_alive_waits_for_ever() {
    for seconds in [5, 25, 1_000] {
        let (halt, closed, _) = ask_in_vain(Some(Duration::from_secs(seconds)));
        assert_eq!((halt, closed), (StopReason::OutOfTime, vec![]), "a PING each {seconds} s");
    }
}
