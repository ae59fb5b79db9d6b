//! The cases of the QUIC interop runner, as far as they are about the transport, in its network: 15 ms each way, 10 Mbit/s,
//! room for 25 packets. Lengths are the runner's unless a comment says why not.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a helper of a test may panic as the test itself may")]

use base::net::Ecn;
use base::time::Duration;
use sim::network::CapturedDatagram;
use sim::transfer::{self, Report, Workload, run};
use sim::{Burst, EventRate, Family, Node, Renewal, Scenario, requests};
use transport::RetryPolicy;

const KB: u64 = 1_024;
const MB: u64 = 1_024 * KB;

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn passes(scenario: &Scenario, plan: &Workload) -> Report {
    let report = run(scenario, plan).unwrap_or_else(|error| panic!("seed {}: {error}", scenario.seed));
    println!("{report:?}");
    report
}

/// Runs it and returns every datagram that was sent until both ends had forgotten each other.
fn watched(scenario: &Scenario, plan: &Workload) -> Vec<CapturedDatagram> {
    let mut lab = transfer::build(scenario, plan).unwrap();
    lab.network().borrow_mut().start_tap();
    let outcome = transfer::drive(&mut lab, scenario, plan);
    outcome.unwrap_or_else(|error| panic!("seed {}: {error}", scenario.seed));
    lab.network().borrow_mut().take_sightings()
}

const SERVER_PORT: u16 = 443;

#[test]
fn handshake() {
    let report = passes(&Scenario::interop(1), &Workload::downloads([KB]));
    assert_eq!(report.accepted, 1);
    assert!(report.time < millis(100), "two round trips of 30 ms: {:?}", report.time);
}

#[test]
fn transfer() {
    let report = passes(&Scenario::interop(2), &Workload::downloads([2 * MB, 3 * MB, 5 * MB]));
    assert!(report.time < millis(10_000), "10 MB at 10 Mbit/s take 8.4 s: {:?}", report.time);
}

#[test]
fn longrtt() {
    let mut scenario = Scenario::interop(3);
    for nodes in [&mut scenario.to_server, &mut scenario.to_client] {
        nodes.push(Node::Delay(millis(735)));
    }
    let report = passes(&scenario, &Workload::downloads([KB]));
    assert_eq!(report.accepted, 1, "repeated Initial packets belong to one connection");
}

#[test]
fn chacha20() {
    let mut scenario = Scenario::interop(4);
    scenario.tls.suites = crypto::SuiteChoice::Only(crypto::Suite::ChaCha20Poly1305);
    passes(&scenario, &Workload::downloads([3 * MB]));
}

#[test]
fn multiplexing() {
    let mut scenario = Scenario::interop(5);
    scenario.server.streams.max_bidi_streams = 1_000;
    passes(&scenario, &Workload { parallel: 2_000, ..Workload::downloads([32; 1_999]) });
    // And through a limit that has to be renewed again and again.
    scenario.server.streams.max_bidi_streams = 7;
    scenario.limit = millis(100_000);
    passes(&scenario, &Workload { parallel: 2_000, ..Workload::downloads([32; 1_999]) });
}

#[test]
fn retry() {
    let mut scenario = Scenario::interop(6);
    scenario.retry = RetryPolicy::Always;
    let report = passes(&scenario, &Workload::downloads([10 * KB]));
    assert!(report.time > millis(90), "the Retry costs a third round trip: {:?}", report.time);
}

#[test]
fn http3() {
    let plan = requests::Workload::downloads([5 * KB, 10 * KB, 500 * KB]);
    let report = requests::run(&Scenario::interop(9), &plan).unwrap();
    assert!(report.time < millis(1_000), "515 KB at 10 Mbit/s take 422 ms: {:?}", report.time);
}

#[test]
fn blackhole() {
    let hole = Node::Blinking { on: millis(5_000), off: millis(2_000) };
    passes(&Scenario::interop(10).both_ways(&hole), &Workload::downloads([10 * MB]));
}

#[test]
fn keyupdate() {
    let plan = Workload { key_updates: 3, ..Workload::downloads([3 * MB]) };
    let report = passes(&Scenario::interop(11), &plan);
    assert!(report.client.key_updates >= 3);
}

/// Every datagram is marked, in both directions: the marks stop as soon as one end does not report what it received.
#[test]
fn ecn() {
    let sightings = watched(&Scenario::interop(12), &Workload::downloads([100 * KB]));
    let bare: Vec<_> = sightings.iter().filter(|sighting| sighting.ecn != Ecn::Ect0).collect();
    assert!(bare.is_empty() && sightings.len() > 80, "{bare:#?}");
}

/// A path that clears the marks, and one that turns all of them into CE, are no obstacle.
#[test]
fn ecn_on_bad_paths() {
    for node in [Node::EcnBleach, Node::EcnMark { ppm: 1_000_000 }] {
        passes(&Scenario::interop(12).both_ways(&node), &Workload::downloads([MB]));
    }
}

/// The server's first flight is 9 KB long, and the client's datagrams 2 to 7 are lost: the server has to wait.
#[test]
fn amplificationlimit() {
    let mut scenario = Scenario::interop(13);
    scenario.tls.chain = 9;
    scenario.to_server.insert(0, Node::Drop((2..=7).collect()));
    let sightings = watched(&scenario, &Workload::downloads([5 * KB]));
    let (mut received, mut sent, mut seen) = (0, 0, 0);
    for sighting in &sightings {
        if sighting.source.port() == SERVER_PORT {
            sent += sighting.bytes.len();
        } else {
            seen += 1;
            // The eighth proves the client's address.
            if seen == 8 {
                break;
            }
            received += if seen == 1 { sighting.bytes.len() } else { 0 };
        }
        assert!(sent <= 3 * received, "{sent} bytes sent for {received} received");
    }
    assert_eq!(seen, 8);
    assert!(sent > 2 * received, "the credit was used");
}

#[test]
fn handshakeloss() {
    let loss = Node::Loss(EventRate::percent(30).with_burst(Burst::AtMost(3)));
    let mut scenario = Scenario::interop(14).both_ways(&loss);
    scenario.limit = millis(300_000);
    let report = passes(&scenario, &Workload { connections: 50, ..Workload::downloads([KB]) });
    assert_eq!(report.accepted, 50);
}

#[test]
fn transferloss() {
    let loss = Node::Loss(EventRate::percent(2).with_burst(Burst::AtMost(3)));
    passes(&Scenario::interop(15).both_ways(&loss), &Workload::downloads([2 * MB]));
}

#[test]
fn handshakecorruption() {
    let corruption = Node::Corrupt(EventRate::percent(30).with_burst(Burst::AtMost(3)));
    let mut scenario = Scenario::interop(16).both_ways(&corruption);
    scenario.limit = millis(300_000);
    passes(&scenario, &Workload { connections: 50, ..Workload::downloads([KB]) });
}

#[test]
fn transfercorruption() {
    let corruption = Node::Corrupt(EventRate::percent(2).with_burst(Burst::AtMost(3)));
    passes(&Scenario::interop(17).both_ways(&corruption), &Workload::downloads([2 * MB]));
}

#[test]
fn ipv6() {
    let mut scenario = Scenario::interop(18);
    scenario.family = Family::V6;
    passes(&scenario, &Workload::downloads([5 * KB, 10 * KB]));
}

#[test]
fn v2() {
    let mut scenario = Scenario::interop(19);
    scenario.client.version = wire::Version::V2;
    passes(&scenario, &Workload::downloads([KB]));
}

fn rebinding(what: Renewal) -> Scenario {
    let mut scenario = Scenario::interop(20);
    // The translator drops what is sent to the old binding, so a client that only listens must make itself heard.
    scenario.client.keep_alive = Some(millis(500));
    let rebind = Node::Rebind { at: millis(1_000), every: millis(5_000), times: 99, what };
    scenario.to_server.insert(0, rebind);
    scenario
}

#[test]
fn rebind_port() {
    passes(&rebinding(Renewal::Port), &Workload::downloads([10 * MB]));
}

#[test]
fn rebind_addr() {
    passes(&rebinding(Renewal::Address), &Workload::downloads([10 * MB]));
}
