use super::*;
use crate::test_port::{TestPort, receive, send};

const ALWAYS: u32 = 1_000_000;

fn numbered(count: u16) -> Vec<Vec<u8>> {
    (0..count).map(|n| n.to_be_bytes().repeat(20)).collect()
}

fn around(test_port: TestPort, tx: Faults) -> FaultInjector<TestPort> {
    FaultInjector::new(test_port, Faults::default(), tx, 1)
}

#[test]
fn without_faults_nothing_changes() {
    let mut port = around(TestPort::default(), Faults::default());
    let packets = numbered(50);
    send(&mut port, &packets);
    port.flush().unwrap();
    assert_eq!(receive(&mut port), packets);
}

#[test]
fn a_small_or_full_port_below_loses_nothing() {
    // Deleted, trains longer than the port below takes could be cut off, or lost while it has no memory.
    let mut port = around(TestPort::limited(3, 1), Faults::default());
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
    let run = |tx: Faults| {
        let mut port = around(TestPort::default(), tx);
        send(&mut port, &packets);
        port.flush().unwrap();
        receive(&mut port)
    };
    assert!(run(Faults { drop_ppm: ALWAYS, ..Faults::default() }).is_empty());
    let twice = run(Faults { duplicate_ppm: ALWAYS, ..Faults::default() });
    assert_eq!(twice.chunks(2).map(|pair| pair[0].clone()).collect::<Vec<_>>(), packets);
    assert!(twice.chunks(2).all(|pair| pair[0] == pair[1]));
    let corrupt = run(Faults { corrupt_ppm: ALWAYS, ..Faults::default() });
    for (sent, got) in packets.iter().zip(&corrupt) {
        assert_eq!(sent.iter().zip(got).filter(|(a, b)| a != b).count(), 1);
    }
}

#[test]
fn a_held_datagram_leaves_when_its_time_has_come_and_the_wait_ends_for_it() {
    let faults =
        Faults { reorder_ppm: 300_000, reorder_delay: Duration::from_millis(5), ..Faults::default() };
    let mut port = FaultInjector::new(TestPort::default(), faults, Faults::default(), 7);
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
    assert!(port.fault_counters().0.reordered > 5);
}

#[test]
fn the_same_seed_gives_the_same_faults() {
    let faults =
        Faults { drop_ppm: 200_000, duplicate_ppm: 100_000, corrupt_ppm: 100_000, ..Faults::default() };
    let run = |seed| {
        let mut port = FaultInjector::new(TestPort::default(), faults, faults, seed);
        send(&mut port, &numbered(60));
        port.flush().unwrap();
        receive(&mut port)
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}
