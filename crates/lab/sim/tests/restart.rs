//! A server that has lost its state says so, and its clients need not wait for a timeout. Source: RFC 9000 §10.3.

#![expect(clippy::unwrap_used, reason = "a helper of a test may panic as the test itself may")]

use base::time::Duration;
use sim::transfer::{Server, Transfer, TransferPlan, TransferSimulation, Workload, build};
use sim::{Burst, EventRate, Node, ReadBehaviour, Scenario, StopReason};
use transport::CloseReason;

fn client_plan(scenario: &Scenario, up: u64, down: u64) -> TransferPlan {
    let mut transfer = Transfer::download(down);
    transfer.header.up = up;
    TransferPlan::new(ReadBehaviour::new(scenario.app_rng(), 0), [transfer], 1)
}

/// Half-way through a transfer the server is replaced; returns how long the client took to learn of it.
fn restart(scenario: &Scenario, up: u64, down: u64) -> Duration {
    let mut lab: TransferSimulation = build(scenario, &Workload::downloads([])).unwrap();
    lab.connect(client_plan(scenario, up, down)).unwrap();
    assert_eq!(lab.run(Duration::from_secs(1), |_| false), StopReason::OutOfTime);
    scenario.restart_server(&mut lab, Server::new(ReadBehaviour::new(scenario.app_rng(), 0))).unwrap();
    let began = lab.age();
    let halt = lab.run(Duration::from_secs(100), |lab| !lab.client().app_mut().reasons.is_empty());
    assert_eq!(halt, StopReason::Done);
    assert_eq!(lab.client().app_mut().reasons, [CloseReason::StatelessReset]);
    let time = lab.age().saturating_sub(began);
    // The new server takes new connections at once.
    lab.client().app_mut().failures.clear();
    lab.connect(client_plan(scenario, 100, 100)).unwrap();
    let halt = lab.run(Duration::from_secs(20), |lab| lab.client().app_mut().done == 1);
    assert_eq!(halt, StopReason::Done, "{:?}", lab.client().app_mut().failures);
    time
}

#[test]
fn a_client_learns_that_its_server_has_forgotten_it() {
    let mut scenario = Scenario::interop(21);
    // It sends: the answer to its next packet is the reset.
    assert!(restart(&scenario, 10_000_000, 0) < Duration::from_millis(100));
    // It listens: what it sends next is a keep-alive.
    scenario.client.keep_alive = Some(Duration::from_secs(2));
    assert!(restart(&scenario, 0, 10_000_000) < Duration::from_millis(2_200));
    // Resets are lost as other datagrams are.
    let loss = Node::Loss(EventRate::percent(30).with_burst(Burst::AtMost(3)));
    assert!(restart(&scenario.both_ways(&loss), 10_000_000, 0) < Duration::from_secs(10));
}
