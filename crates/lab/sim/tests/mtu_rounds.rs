//! How many round trips the fast search takes where everything passes: while one side sends as much as it may, and while
//! neither side sends. Each size is asserted, for both sides.

#![expect(clippy::unwrap_used, reason = "a helper of a test may panic as the test itself may")]

use base::time::{Duration, Instant};
use sim::transfer::{Transfer, TransferPlan, Workload, build};
use sim::{Family, Node, ReadBehaviour, Renewal, Scenario, StopReason};
use transport::{Algorithm, Connection, Fin, MtuMode, MtuReport, StreamId, StreamSink};
use worker::{App, Next};

const RTT: Duration = Duration::from_millis(20);
/// What may be sent, and in how many round trips the search is done on a path that carries all.
const SIZES: [(u16, u32); 6] = [(1_452, 1), (1_472, 1), (4_096, 1), (8_952, 2), (16_336, 2), (65_507, 3)];

/// A fast line, so that it is round trips that count and not bytes, with a queue that no slow start fills.
fn line(rtt: Duration, cap: u16) -> Scenario {
    let mut scenario = Scenario::interop(7);
    let nodes = || {
        vec![Node::Rate { bits_per_second: 10_000_000_000, queue_bytes: 50_000_000 }, Node::Delay(rtt / 2)]
    };
    (scenario.to_server, scenario.to_client) = (nodes(), nodes());
    for transport in [&mut scenario.server, &mut scenario.client] {
        transport.max_packet_size = cap;
    }
    scenario
}

fn check(what: &str, report: MtuReport, (cap, rounds): (u16, u32), rtt: Duration) {
    let took = report.took.unwrap_or(Duration::MAX);
    let rtts = took.as_secs_f64() / rtt.as_secs_f64();
    println!("{what:28} {cap:5}: {rtts:.2} round trips, {} probes", report.probes_sent);
    assert_eq!((report.size, report.probes_lost), (cap, 0), "{what}: {report:?}");
    assert!(rtts <= f64::from(rounds) + 0.1, "{what} {cap}: {report:?}");
}

/// An end that says nothing.
#[derive(Default)]
struct Quiet {
    mtu: MtuReport,
}

struct Nothing;

impl StreamSink for Nothing {
    fn on_stream_data(&mut self, _: StreamId, bytes: &[u8], _: Fin) -> usize {
        bytes.len()
    }
}

impl App for Quiet {
    type State = Nothing;

    fn on_accept(&mut self, _: Instant, _: &mut Connection) -> Nothing {
        Nothing
    }

    fn on_turn(&mut self, _: Instant, connection: &mut Connection, _: &mut Nothing) -> Next {
        while connection.next_event().is_some() {}
        self.mtu = connection.mtu_report();
        Next::Wait
    }

    fn on_gone(&mut self, _: Instant, _: &Connection, _: Nothing) {}
}

/// What the searches of server and client have found where neither says anything.
fn idle(scenario: &Scenario) -> [MtuReport; 2] {
    let mut lab = scenario.build(Quiet::default(), Quiet::default()).unwrap();
    lab.connect(Nothing).unwrap();
    lab.run(Duration::from_secs(2), |_| false);
    [lab.server().app_mut().mtu, lab.client().app_mut().mtu]
}

/// What the server's search has found by a download of this many bytes, and when the client had them.
fn download(scenario: &Scenario, bytes: u64) -> (MtuReport, Duration) {
    let (reports, age) = transfer(scenario, Transfer::download(bytes));
    (reports[0], age)
}

fn transfer(scenario: &Scenario, transfer: Transfer) -> ([MtuReport; 2], Duration) {
    let mut lab = build(scenario, &Workload::downloads([])).unwrap();
    let read_behaviour = ReadBehaviour::new(scenario.app_rng(), 0);
    lab.connect(TransferPlan::new(read_behaviour, [transfer], 1)).unwrap();
    lab.run(Duration::from_secs(60), |lab| lab.client().app_mut().done == 1);
    let age = lab.age();
    lab.run(Duration::from_secs(60), |lab| lab.server().connections() == 0);
    ([lab.server().app_mut().mtu, lab.client().app_mut().mtu], age)
}

#[test]
fn an_idle_connection_searches_within_three_round_trips() {
    for size in SIZES {
        let [server, client] = idle(&line(RTT, size.0));
        check("server, idle", server, size, RTT);
        check("client, idle", client, size, RTT);
    }
}

#[test]
fn a_saturated_connection_searches_within_three_round_trips() {
    for size in SIZES {
        let mut upload = Transfer::download(1);
        upload.header.up = 20_000_000;
        let scenario = line(RTT, size.0);
        check("server, download", download(&scenario, 20_000_000).0, size, RTT);
        check("client, upload", transfer(&scenario, upload).0[1], size, RTT);
    }
}

/// From a local network to the other side of the world, over IPv6, with any congestion controller.
#[test]
fn neither_distance_nor_controller_makes_it_longer() {
    for rtt in [1, 5, 100, 300].map(Duration::from_millis) {
        // A millisecond is less than what bytes and bundled acknowledgements take beside it.
        let rounds = if rtt < RTT { 4 } else { 3 };
        let scenario = line(rtt, 65_507);
        check("server, another distance", download(&scenario, 20_000_000).0, (65_507, rounds), rtt);
        // A window of ten packets, which nothing but probes enlarges, holds none of a third after one of 4,096.
        let rounds = if rtt.as_millis() == 1 { 5 } else { rounds };
        check("idle, another distance", idle(&scenario)[0], (65_507, rounds), rtt);
    }
    for congestion in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr, Algorithm::Prague] {
        let mut scenario = line(RTT, 65_507);
        (scenario.server.congestion, scenario.client.congestion) = (congestion, congestion);
        let what = format!("server, {congestion:?}");
        // Prague's bursts are a quarter of a millisecond: a window is not there at once.
        let rounds = if congestion == Algorithm::Prague { 4 } else { 3 };
        check(&what, download(&scenario, 20_000_000).0, (65_507, rounds), RTT);
        check(&format!("{what}, idle"), idle(&scenario)[0], (65_507, rounds), RTT);
    }
    let mut scenario = line(RTT, 65_488);
    scenario.family = Family::V6;
    check("server, IPv6", download(&scenario, 20_000_000).0, (65_488, 3), RTT);
}

/// A client that appears at another address may have gone another way: the size is searched for again, once the address is
/// validated, which takes a round trip.
#[test]
fn a_migration_begins_the_search_anew() {
    let mut scenario = line(RTT, 65_507);
    let moves = Node::Rebind { at: RTT * 8, every: RTT * 1_000, times: 1, what: Renewal::Address };
    scenario.to_server.insert(0, moves);
    let mut lab = build(&scenario, &Workload::downloads([])).unwrap();
    let read_behaviour = ReadBehaviour::new(scenario.app_rng(), 0);
    lab.connect(TransferPlan::new(read_behaviour, [Transfer::download(400_000_000)], 1)).unwrap();
    let client = lab.hosts().1;
    lab.network().borrow_mut().arm_rebinding(client);
    let halt = lab.run(Duration::from_secs(60), |lab| lab.client().app_mut().done == 1);
    lab.run(Duration::from_secs(60), |lab| lab.server().connections() == 0);
    let server = lab.server().app_mut();
    assert_eq!((halt, server.counters.migrations), (StopReason::Done, 1));
    assert_eq!(server.mtu.probes_sent, 6, "those of the new path alone: {:?}", server.mtu);
    check("server, after a migration", server.mtu, (65_507, 4), RTT);
}

/// An answer that the initial window holds is complete a round trip after the request, whatever is searched for beside it.
#[test]
fn a_short_answer_does_not_wait_for_probes() {
    for bytes in [500, 3_000, 10_000] {
        let mut without = line(RTT, 1_472);
        without.server.mtu.mode = MtuMode::Off;
        let plain = download(&without, bytes).1;
        for cap in [1_472, 9_000, 65_507] {
            let searching = download(&line(RTT, cap), bytes).1;
            println!("{bytes} bytes, up to {cap}: {searching:?}, without a search {plain:?}");
            assert!(searching <= plain + RTT / 20, "{bytes} {cap}: {searching:?} instead of {plain:?}");
        }
    }
}
