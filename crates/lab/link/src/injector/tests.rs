use super::*;
use crate::node::{Burst, EventRate};
use crate::test_port::{TestPort, receive, send};
use base::time::Duration;

const ALWAYS: u32 = 1_000_000;

fn single(ppm: u32) -> EventRate {
    EventRate { ppm, burst: Burst::None }
}

fn numbered(count: u16) -> Vec<Vec<u8>> {
    (0..count).map(|n| n.to_be_bytes().repeat(20)).collect()
}

fn around(port: TestPort, tx: Vec<Node>) -> FaultInjector<TestPort> {
    FaultInjector::new(port, Vec::new(), tx, 1)
}

#[test]
fn without_faults_nothing_changes() {
    let mut port = around(TestPort::default(), Vec::new());
    let packets = numbered(50);
    send(&mut port, &packets);
    port.flush().unwrap();
    assert_eq!(receive(&mut port), packets);
}

#[test]
fn a_small_or_full_port_below_loses_nothing() {
    // Deleted, trains longer than the port below takes could be cut off, or lost while it has no memory.
    let mut small = TestPort::default();
    (small.capacity, small.refuse) = (3, 1);
    let mut port = around(small, Vec::new());
    let packets = numbered(20);
    send(&mut port, &packets);
    port.flush().unwrap();
    assert_eq!(receive(&mut port), packets);
    port.inner_mut().refuse = 3;
    send(&mut port, &packets);
    port.flush().unwrap();
    assert_eq!(receive(&mut port), Vec::<Vec<u8>>::new());
    port.flush().unwrap();
    assert_eq!(receive(&mut port), packets);
}

#[test]
fn each_fault_does_what_it_says() {
    let packets = numbered(10);
    let run = |tx: Vec<Node>| {
        let mut port = around(TestPort::default(), tx);
        send(&mut port, &packets);
        port.flush().unwrap();
        receive(&mut port)
    };
    assert!(run(vec![Node::Loss(single(ALWAYS))]).is_empty());
    let twice = run(vec![Node::Duplicate { ppm: ALWAYS, after: Duration::ZERO }]);
    assert_eq!(twice, [packets.clone(), packets.clone()].concat());
    let corrupt = run(vec![Node::Corrupt(single(ALWAYS))]);
    for (sent, got) in packets.iter().zip(&corrupt) {
        assert_eq!(sent.iter().zip(got).filter(|(a, b)| a != b).count(), 1);
    }
}

#[test]
fn a_held_datagram_leaves_when_its_time_has_come_and_the_wait_ends_for_it() {
    let faults = vec![Node::Reorder { ppm: 300_000, by: Duration::from_millis(5) }];
    let mut port = FaultInjector::new(TestPort::default(), faults, Vec::new(), 7);
    let packets = numbered(60);
    send(&mut port, &packets);
    port.flush().unwrap();
    let mut all = receive(&mut port);
    assert!(all.len() < packets.len());
    while all.len() < packets.len() {
        port.wait(None).unwrap();
        assert!(port.inner().waited_for.is_some(), "a wait must not outlast a held datagram");
        port.now();
        all.extend(receive(&mut port));
    }
    assert_ne!(all, packets);
    all.sort();
    assert_eq!(all, packets);
    assert!(port.link_counters().0.reordered > 5);
}

#[test]
fn the_same_seed_gives_the_same_faults() {
    let faults = || {
        let duplicate = Node::Duplicate { ppm: 100_000, after: Duration::ZERO };
        vec![Node::Loss(single(200_000)), duplicate, Node::Corrupt(single(100_000))]
    };
    let run = |seed| {
        let mut port = FaultInjector::new(TestPort::default(), faults(), faults(), seed);
        send(&mut port, &numbered(60));
        port.flush().unwrap();
        receive(&mut port)
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

/// Deleted, a flood into a link with a delay could take any amount of memory.
#[test]
fn what_a_direction_holds_back_is_bounded_and_the_rest_counted() {
    let mut port = around(TestPort::default(), vec![Node::Delay(Duration::from_millis(1))]);
    for _ in 0..MAX_HELD / 50 + 1 {
        send(&mut port, &numbered(50));
    }
    let beyond = (MAX_HELD / 50 + 1) * 50 - MAX_HELD;
    assert_eq!(port.link_counters().1.overflowed, beyond as u64);
}
