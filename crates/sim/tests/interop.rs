//! The cases of the QUIC interop runner, as far as they are about the transport, in its network: 15 ms each way, 10 Mbit/s,
//! room for 25 packets. Lengths are the runner's unless a comment says why not.

#![expect(clippy::unwrap_used, reason = "a helper of a test may panic as the test itself may")]

use base::time::Duration;
use sim::transfer::{Plan, Report, run};
use sim::{Burst, Family, Node, Odds, Renewal, Scenario};
use transport::RetryPolicy;

const KB: u64 = 1_024;
const MB: u64 = 1_024 * KB;

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn passes(scenario: &Scenario, plan: &Plan) -> Report {
    let report = run(scenario, plan).unwrap_or_else(|error| panic!("seed {}: {error}", scenario.seed));
    println!("{report:?}");
    report
}

#[test]
fn handshake() {
    let report = passes(&Scenario::interop(1), &Plan::downloads([KB]));
    assert_eq!(report.accepted, 1);
    assert!(report.time < millis(100), "two round trips of 30 ms: {:?}", report.time);
}
