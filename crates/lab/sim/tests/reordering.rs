//! A path that delivers everything, but a part of it late.

use base::time::Duration;
use recovery::congestion::Algorithm;
use sim::transfer::{Workload, build, drive, verify};
use sim::{Node, Scenario};
use transport::Counters;

/// A download of 10 MB over 20 ms, on the way of which this happens and nothing overflows: its time, and what server and client counted.
fn download(lateness: Node) -> Result<(f64, Counters, Counters), String> {
    download_by(Algorithm::default(), 11, lateness)
}

/// The same with that controller, and chance from that seed.
fn download_by(
    congestion: Algorithm,
    seed: u64,
    lateness: Node,
) -> Result<(f64, Counters, Counters), String> {
    let mut scenario = Scenario::interop(seed);
    scenario.server.congestion = congestion;
    scenario.to_client = vec![
        Node::Rate { bits_per_second: 100_000_000, queue_bytes: 4_000_000 },
        Node::Delay(Duration::from_millis(10)),
        lateness,
    ];
    scenario.to_server = vec![Node::Delay(Duration::from_millis(10))];
    let plan = Workload::downloads([10_000_000]);
    let mut lab = build(&scenario, &plan)?;
    let time = drive(&mut lab, &scenario, &plan)?;
    verify(&mut lab, &plan)?;
    let (server, client) = (lab.server().app_mut().counters, lab.client().app_mut().counters);
    Ok((time.as_secs_f64(), server, client))
}

/// With thresholds that never grow, packets that are only late are declared lost all the time, and sent again; with such as grow in
/// steps, for a whole slow start.
#[test]
fn packets_that_are_late_are_soon_no_longer_taken_for_lost() {
    let (orderly, ..) = download(Node::Delay(Duration::ZERO)).expect("a download");
    let late = Node::Reorder { ppm: 300_000, by: Duration::from_millis(8) };
    let (seconds, server, _) = download(late).expect("a download");
    println!("{seconds} s instead of {orderly}, {server:?}");
    assert!(server.lost_packets < 70, "a hundredth of 7,000: {server:?}");
    assert!(seconds < orderly * 1.5, "{seconds} s instead of {orderly}");
}

/// Deleted, packet numbers could be cut so short that a packet which hundreds have overtaken is read as another, and dropped.
#[test]
fn packets_that_many_have_overtaken_are_read() {
    let late = Node::Late { ppm: 100_000, by: Duration::from_millis(20) };
    let (seconds, server, client) = download(late).expect("a download");
    println!("{seconds} s, {server:?} {client:?}");
    assert_eq!(client.dropped_forged, 0);
    assert!(server.lost_packets < 35, "half a hundredth of 7,000: {server:?}");
}

/// Late packets look like a radio link's losses. Deleted, a flow that chooses would be BBR's as soon as two of them are declared lost, and these downloads would take
/// longer.
#[test]
fn a_flow_that_chooses_stays_cubic_s_where_packets_are_only_late() {
    let late = || Node::Reorder { ppm: 100_000, by: Duration::from_millis(8) };
    for seed in 1..=4 {
        let [cubic, auto] = [Algorithm::Cubic, Algorithm::Auto]
            .map(|by| download_by(by, seed, late()).expect("a download").0);
        println!("seed {seed}: {cubic} s and {auto}");
        assert!(auto < cubic * 1.005, "seed {seed}: {cubic} s and {auto}");
    }
}
