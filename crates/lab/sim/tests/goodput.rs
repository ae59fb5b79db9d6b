//! How much of a link a transfer fills once nothing is wrong with it. Numbers below are shares of the link's rate that the
//! payload takes, headers not counted; a change that loses some of it should be seen here and not by a user.

#![expect(clippy::panic, reason = "a helper of a test may panic as the test itself may")]

use base::time::Duration;
use recovery::congestion::Algorithm;
use sim::transfer::{Report, Workload, run};
use sim::{Node, Scenario};

const MB: u64 = 1 << 20;

/// A link of this many megabits a second, with a round trip of this many ms and a queue of this many round trips' worth.
fn link(megabits: u64, rtt_ms: u64, queue: f64) -> Scenario {
    let mut scenario = Scenario::interop(1);
    let bits_per_second = megabits * 1_000_000;
    let in_flight = bits_per_second / 8 * rtt_ms.max(1) / 1_000;
    let queue_bytes = ((in_flight as f64 * queue) as u64).max(30_000);
    let nodes = || {
        vec![Node::Rate { bits_per_second, queue_bytes }, Node::Delay(Duration::from_micros(rtt_ms * 500))]
    };
    (scenario.to_server, scenario.to_client) = (nodes(), nodes());
    scenario.limit = Duration::from_secs(600);
    scenario
}

/// The share of the link that a transfer took.
fn share(scenario: &Scenario, megabits: u64, plan: &Workload) -> (f64, Report) {
    let report = run(scenario, plan).unwrap_or_else(|error| panic!("{error}"));
    let bytes: u64 = plan.transfers.iter().map(|transfer| transfer.header.up + transfer.header.down).sum();
    let bits = bytes as f64 * 8.0;
    (bits / report.time.as_secs_f64() / (megabits as f64 * 1e6), report)
}

/// Link in Mbit/s, round trip in ms, queue in round trips, bytes, and the share that CUBIC takes at least.
const LINKS: [(u64, u64, f64, u64, f64); 5] = [
    (10, 30, 1.0, 10 * MB, 0.93),
    (100, 10, 1.0, 50 * MB, 0.93),
    (100, 100, 1.0, 100 * MB, 0.83),
    (1_000, 20, 0.5, 200 * MB, 0.80),
    (50, 300, 1.0, 100 * MB, 0.75),
];

#[test]
fn a_download_fills_its_link() {
    for (megabits, rtt_ms, queue, bytes, least) in LINKS {
        let scenario = link(megabits, rtt_ms, queue);
        let (share, report) = share(&scenario, megabits, &Workload::downloads([bytes]));
        println!("{megabits} Mbit/s {rtt_ms} ms: {share:.3} {:?}", report.server);
        assert!(share > least, "{megabits} Mbit/s, {rtt_ms} ms: {share:.3}");
    }
}

/// The windows that a server opens grow as those of a client do.
#[test]
fn an_upload_fills_its_link() {
    for (megabits, rtt_ms, queue, bytes, least) in LINKS {
        let scenario = link(megabits, rtt_ms, queue);
        let mut plan = Workload::downloads([0]);
        for transfer in &mut plan.transfers {
            transfer.header.up = bytes;
        }
        let (share, report) = share(&scenario, megabits, &plan);
        println!("{megabits} Mbit/s {rtt_ms} ms: {share:.3} {:?}", report.client);
        assert!(share > least, "{megabits} Mbit/s, {rtt_ms} ms: {share:.3}");
    }
}

#[test]
fn new_reno_does_not_do_much_worse() {
    for (megabits, rtt_ms, queue, bytes, least) in LINKS {
        let mut scenario = link(megabits, rtt_ms, queue);
        scenario.server.congestion = Algorithm::NewReno;
        let (share, report) = share(&scenario, megabits, &Workload::downloads([bytes]));
        println!("{megabits} Mbit/s {rtt_ms} ms: {share:.3} {:?}", report.server);
        assert!(share > least * 0.7, "{megabits} Mbit/s, {rtt_ms} ms: {share:.3}");
    }
}

/// BBR and Prague in the whole stack: trains, pacing, delayed acknowledgements, and none of their own link models.
#[test]
fn bbr_and_prague_fill_a_link() {
    for algorithm in [Algorithm::Bbr, Algorithm::Prague] {
        for (megabits, rtt_ms, queue, bytes, least) in LINKS {
            let mut scenario = link(megabits, rtt_ms, queue);
            scenario.server.congestion = algorithm;
            let (share, report) = share(&scenario, megabits, &Workload::downloads([bytes]));
            println!("{algorithm:?} {megabits} Mbit/s {rtt_ms} ms: {share:.3} {:?}", report.server);
            assert!(share > least * 0.7, "{algorithm:?} {megabits} Mbit/s, {rtt_ms} ms: {share:.3}");
        }
    }
}

/// ECT(1) leaves, arrives as CE, is reported and answered: with ten marks in a hundred a packet more each round trip and a
/// twentieth less are even at 20 packets, 2,000 a second. If any part of the circle were broken, the link would be full instead.
#[test]
fn prague_follows_its_marks() {
    let mut scenario = link(100, 10, 2.0);
    scenario.server.congestion = Algorithm::Prague;
    scenario.to_client.push(Node::EcnMark { ppm: 100_000 });
    let (share, report) = share(&scenario, 100, &Workload::downloads([10 * MB]));
    println!("{share:.3} {:?}", report.server);
    assert!((0.12..0.4).contains(&share), "{share:.3}");
    assert_eq!(report.server.lost_packets, 0);
}

/// Many streams at once take as much as one.
#[test]
fn many_streams_fill_a_link_together() {
    let (share, report) = share(&link(100, 40, 1.0), 100, &Workload::downloads([MB; 50]));
    println!("{share:.3} {:?}", report.server);
    assert!(share > 0.85, "{share:.3}");
}

/// Three timeouts in a row make a path suspect of carrying small packets only. An outage does that, too, and must not cost a
/// fifth more packets for the rest of the transfer.
#[test]
fn after_an_outage_packets_grow_again() {
    let outage = Node::Blackhole { from: Duration::from_secs(2), to: Duration::from_secs(6) };
    let scenario = link(50, 30, 1.0).both_ways(&outage);
    let (_, report) = share(&scenario, 50, &Workload::downloads([100 * MB]));
    let mean = report.server.sent_bytes / report.server.sent_packets;
    println!("{mean} bytes a packet, {:?}", report.server);
    assert!(report.server.probe_timeouts >= 3, "the outage was long enough");
    assert!(mean > 1_380, "{mean} bytes");
}
