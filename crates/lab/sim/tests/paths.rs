//! Several paths at once, at random: opened and ended while packets are lost.

use base::time::Duration;
use sim::scenario::Moves;
use sim::transfer::{Workload, plan, run};
use sim::{Burst, EventRate, Node, Scenario, draw};
use transport::Scheduler;

/// Deleted, a download could stop where paths come and go while packets are lost.
#[test]
fn downloads_go_on_while_paths_come_and_go() {
    for scheduler in [Scheduler::LowestRtt, Scheduler::RoundRobin, Scheduler::Redundant] {
        for seed in 0..10 {
            let loss = Node::Loss(EventRate { ppm: 20_000, burst: Burst::None });
            let mut scenario = Scenario::interop(seed).both_ways(&loss);
            scenario.moves = Moves { times: 9, every: Duration::from_millis(400) };
            (scenario.client.multipath, scenario.server.multipath) = (Some(scheduler), Some(scheduler));
            let report = run(&scenario, &Workload::downloads([8_000_000])).unwrap();
            assert!(report.paths_opened >= 3, "seed {seed}: {} paths", report.paths_opened);
            assert_eq!(report.client.migrations, 0, "seed {seed}: {:?}", report.client);
        }
    }
}

/// Deleted, the random scenarios could come to draw no paths beside the first.
#[test]
fn random_scenarios_open_paths() {
    let opened = |seed| {
        let drawn = draw::scenario(seed);
        run(&drawn.scenario, &plan(seed, &drawn)).unwrap().paths_opened > 0
    };
    let count = (0..120).filter(|seed| opened(*seed)).count();
    assert!(count >= 4, "{count} of 120");
}
