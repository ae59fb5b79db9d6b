//! A client that changes its address by its own will, and a server that prefers another one, over links that lose packets.

use base::time::Duration;
use sim::scenario::Moves;
use sim::transfer::{Workload, plan, run};
use sim::{Burst, EventRate, Node, Scenario, draw};
use transport::PreferredAddresses;

fn lossy(seed: u64) -> Scenario {
    let loss = Node::Loss(EventRate { ppm: 20_000, burst: Burst::None });
    let mut scenario = Scenario::interop(seed).both_ways(&loss);
    scenario.moves = Moves { times: 6, every: Duration::from_millis(400) };
    scenario
}

/// Deleted, a download could stop where its client moves while packets are lost, or the moves that seeds draw never happen.
#[test]
fn downloads_go_on_while_the_client_moves() {
    for seed in 0..20 {
        let report = run(&lossy(seed), &Workload::downloads([6_000_000])).unwrap();
        // Where all probes of a move are lost, the next one takes its place.
        assert!(report.client.migrations >= 5, "seed {seed}: {:?}", report.client);
        assert!(report.server.migrations >= 5, "seed {seed}: {:?}", report.server);
    }
}

#[test]
fn a_client_moves_to_its_servers_preferred_address_and_then_about() {
    for seed in 0..20 {
        let mut scenario = lossy(seed);
        scenario.server.preferred_address = PreferredAddresses::default().with(scenario.preferred_address());
        let report = run(&scenario, &Workload::downloads([4_000_000])).unwrap();
        assert!(report.client.migrations >= 6, "seed {seed}: {:?}", report.client);
    }
}

/// Deleted, the random scenarios could come to draw moves that are over before they begin.
#[test]
fn random_scenarios_move() {
    let moved = |seed| {
        let drawn = draw::scenario(seed);
        run(&drawn.scenario, &plan(seed, &drawn)).unwrap().client.migrations > 0
    };
    let count = (0..60).filter(|seed| moved(*seed)).count();
    assert!(count >= 12, "{count} of 60");
}
