//! What the random scenarios reach: each feature in many seeds, or a change of the draw could leave it out of all of them.

use sim::Returning;
use sim::draw;
use sim::transfer::{Report, plan, run};

/// How many of the seeds reach a feature.
#[derive(Debug, Default)]
struct Reached {
    resumed: u64,
    early_taken: u64,
    early_refused: u64,
    version_moved: u64,
    migrated: u64,
    several_paths: u64,
    datagrams: u64,
    key_updates: u64,
}

impl Reached {
    fn add(&mut self, returning: Returning, report: &Report) {
        let is = u64::from;
        self.resumed += is(report.resumed > 0);
        self.early_taken += is(report.server.received_early > 0);
        self.early_refused += is(returning == Returning::RefusedEarlyData && report.client.sent_early > 0);
        self.version_moved += is(report.moved > 0);
        self.migrated += is(report.client.migrations > 0);
        self.several_paths += is(report.paths_opened > 0);
        self.datagrams += is(report.datagrams > 0);
        self.key_updates += is(report.client.key_updates > 0);
    }

    fn all(&self) -> [u64; 8] {
        [
            self.resumed,
            self.early_taken,
            self.early_refused,
            self.version_moved,
            self.migrated,
            self.several_paths,
            self.datagrams,
            self.key_updates,
        ]
    }
}

#[test]
fn seeds_reach_every_feature() {
    let mut reached = Reached::default();
    for seed in 0..400 {
        let drawn = draw::scenario(seed);
        let report = run(&drawn.scenario, &plan(seed, &drawn)).expect("every seed finishes");
        reached.add(drawn.scenario.tls.returning, &report);
    }
    assert!(reached.all().iter().all(|seeds| *seeds >= 8), "of 400: {reached:?}");
}
