//! How many round trips the fast search takes where everything passes: while one side sends as much as it may, and while nobody
//! has anything to say. Each size is asserted, for both sides.

use base::time::{Duration, Instant};
use sim::transfer::{Errand, Plan, Transfer, build};
use sim::{Mood, Node, Scenario};
use transport::{Connection, Fin, MtuReport, StreamId, StreamSink};
use worker::{App, Next};

const RTT: Duration = Duration::from_millis(20);
/// What may be sent, and in how many round trips the search is done on a path that carries all.
const SIZES: [(u16, u32); 6] = [(1_452, 1), (1_472, 1), (4_096, 1), (8_952, 2), (16_336, 2), (65_507, 3)];

/// A fast line, so that it is round trips that count and not bytes: 20 ms, with a queue that no slow start fills.
fn line(cap: u16) -> Scenario {
    let mut scenario = Scenario::interop(7);
    let nodes = || {
        vec![Node::Rate { bits_per_second: 10_000_000_000, queue_bytes: 50_000_000 }, Node::Delay(RTT / 2)]
    };
    (scenario.to_server, scenario.to_client) = (nodes(), nodes());
    for transport in [&mut scenario.server, &mut scenario.client] {
        transport.max_packet_size = cap;
    }
    scenario
}

fn check(what: &str, report: MtuReport, (cap, rounds): (u16, u32)) {
    let took = report.took.unwrap_or(Duration::MAX);
    let rtts = took.as_secs_f64() / RTT.as_secs_f64();
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

#[test]
fn an_idle_connection_searches_within_three_round_trips() {
    for size in SIZES {
        let mut lab = line(size.0).build(Quiet::default(), Quiet::default()).unwrap();
        lab.connect(Nothing).unwrap();
        lab.run(Duration::from_millis(500), |_| false);
        check("server, idle", lab.server().app_mut().mtu, size);
        check("client, idle", lab.client().app_mut().mtu, size);
    }
}

#[test]
fn a_saturated_connection_searches_within_three_round_trips() {
    for size in SIZES {
        for is_upload in [false, true] {
            let scenario = line(size.0);
            let plan = Plan::downloads([]);
            let mut lab = build(&scenario, &plan).unwrap();
            let mood = Mood::new(scenario.app_rng(), 0);
            let mut transfer = Transfer::download(20_000_000);
            if is_upload {
                (transfer.header.up, transfer.header.down) = (20_000_000, 1);
            }
            lab.connect(Errand::new(mood, [transfer], 1)).unwrap();
            lab.run(Duration::from_secs(60), |lab| lab.server().connections() == 0 && lab.age() > RTT * 2);
            let (what, report) = match is_upload {
                false => ("server, download", lab.server().app_mut().mtu),
                true => ("client, upload", lab.client().app_mut().mtu),
            };
            check(what, report, size);
        }
    }
}
