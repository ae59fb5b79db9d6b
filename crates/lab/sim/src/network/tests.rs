//! Every node alone, then that a seed decides everything. Without these a scenario could pass because its link did nothing.

use super::*;
use link::{Burst, EventRate, Renewal};

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Two hosts, `nodes` from the first to the second, nothing on the way back.
struct Pair {
    network: Network,
    one: HostId,
    other: HostId,
}

impl Pair {
    fn new(nodes: Vec<Node>) -> Pair {
        Pair::seeded(nodes, 1)
    }

    fn seeded(nodes: Vec<Node>, seed: u64) -> Pair {
        let mut network = Network::new(seed);
        let options = HostOptions { coalesce: Duration::ZERO };
        let one = network.add_host("192.0.2.1:1000".parse().unwrap(), options);
        let other = network.add_host("198.51.100.1:443".parse().unwrap(), options);
        network.add_link(one, other, nodes);
        network.add_link(other, one, vec![]);
        Pair { network, one, other }
    }

    fn send(&mut self, bytes: &[u8]) {
        let destination = self.network.address(self.other);
        self.network.send(self.one, destination, Ecn::Ect0, bytes);
    }

    /// Everything that the second host receives from now on, with the time since the beginning in ms.
    fn drain(&mut self) -> Vec<(u64, Vec<u8>)> {
        let mut all = Vec::new();
        loop {
            while let Some(arrival) = self.network.take_arrival(self.other) {
                all.push((self.network.age().as_millis(), arrival.bytes));
            }
            let Some(at) = self.network.next_event_at() else { return all };
            self.network.advance(at);
        }
    }

    /// Sends `count` numbered datagrams of 8 bytes, one a millisecond, and says which arrived in which order.
    fn numbered(&mut self, count: u64) -> Vec<u64> {
        self.numbered_every(millis(1), count)
    }

    fn numbered_every(&mut self, apart: Duration, count: u64) -> Vec<u64> {
        for number in 0..count {
            self.network.advance(BEGINNING + apart * number);
            self.send(&number.to_be_bytes());
        }
        let number = |bytes: Vec<u8>| u64::from_be_bytes(bytes.try_into().unwrap());
        self.drain().into_iter().map(|(_, bytes)| number(bytes)).collect()
    }
}

#[test]
fn delay_and_rate() {
    // 100 bytes at 8,000 bit/s take 100 ms.
    let rate = Node::Rate { bits_per_second: 8_000, queue_bytes: 250 };
    let mut pair = Pair::new(vec![rate, Node::Delay(millis(10))]);
    for value in 0..5 {
        pair.send(&[value; 100]);
    }
    let arrived: Vec<_> = pair.drain().into_iter().map(|(at, bytes)| (at, bytes[0])).collect();
    assert_eq!(arrived, [(110, 0), (210, 1)], "the third would make 300 bytes wait");
    assert_eq!(pair.network.link_counters(pair.one, pair.other).overflowed, 3);
}

/// Deleted, a test that changes its link could go on over the old one and pass.
#[test]
#[should_panic(expected = "nodes of the link")]
fn a_link_does_not_become_one_of_another_number_of_nodes() {
    let mut pair = Pair::new(vec![Node::Delay(millis(10))]);
    pair.network.change_link(pair.one, pair.other, vec![Node::Delay(millis(20))]);
    pair.send(&[1]);
    assert_eq!(pair.drain(), [(20, vec![1])]);
    pair.network.change_link(pair.one, pair.other, vec![]);
}

#[test]
fn loss_has_its_odds_however_it_clusters() {
    // A run of five begins after 45 on average: a tenth is lost by Gilbert's model, too.
    let gilbert = EventRate { ppm: 22_222, burst: Burst::Gilbert { ends_ppm: 200_000 } };
    let others =
        [Burst::None, Burst::Mean(5), Burst::AtMost(3)].map(|burst| EventRate { ppm: 100_000, burst });
    for odds in others.into_iter().chain([gilbert]) {
        let burst = odds.burst;
        let arrived = Pair::new(vec![Node::Loss(odds)]).numbered(20_000);
        let lost = 20_000 - arrived.len();
        assert!((1_700..2_300).contains(&lost), "{burst:?}: lost {lost}");
        let longest = arrived.windows(2).map(|pair| pair[1] - pair[0] - 1).max().unwrap();
        let expected = match burst {
            Burst::AtMost(most) => 1..=u64::from(most),
            Burst::None => 2..=6,
            Burst::Mean(_) | Burst::Gilbert { .. } => 12..=100,
        };
        assert!(expected.contains(&longest), "{burst:?}: {longest} in a row");
    }
}

#[test]
fn a_bound_on_runs_holds_for_datagrams_that_are_far_apart() {
    let all = EventRate { ppm: 1_000_000, burst: Burst::AtMost(3) };
    // As probes are that back off.
    let arrived = Pair::new(vec![Node::Loss(all)]).numbered_every(millis(10_000), 12);
    assert_eq!(arrived, [3, 7, 11]);
}

#[test]
fn losses_by_list_size_and_time() {
    assert_eq!(Pair::new(vec![Node::Drop(vec![1, 3])]).numbered(5), [1, 3, 4]);
    let hole = Node::Blackhole { from: millis(2), to: millis(4) };
    assert_eq!(Pair::new(vec![hole]).numbered(6), [0, 1, 4, 5]);
    let blinking = Node::Blinking { on: millis(2), off: millis(1) };
    assert_eq!(Pair::new(vec![blinking]).numbered(6), [0, 1, 3, 4]);
    let mut pair = Pair::new(vec![Node::Mtu(50)]);
    pair.send(&[1; 51]);
    pair.send(&[2; 50]);
    assert_eq!(pair.drain(), [(0, vec![2; 50])]);
}

#[test]
fn duplicates_and_reordering_lose_nothing() {
    let nodes = vec![
        Node::Duplicate { ppm: 300_000, after: millis(5) },
        Node::Reorder { ppm: 300_000, by: millis(5) },
    ];
    let mut arrived = Pair::new(nodes).numbered(1_000);
    assert!((1_200..1_400).contains(&arrived.len()), "{} of 1,000", arrived.len());
    assert!(!arrived.is_sorted());
    arrived.sort_unstable();
    arrived.dedup();
    assert_eq!(arrived.len(), 1_000);
}

#[test]
fn corruption_changes_one_byte() {
    let mut pair = Pair::new(vec![Node::Corrupt(EventRate::percent(100))]);
    pair.send(&[7; 100]);
    let arrived = pair.drain();
    assert_eq!(arrived[0].1.iter().filter(|byte| **byte != 7).count(), 1);
}

#[test]
fn marks_are_set_and_bleached() {
    for (node, expected) in [(Node::EcnMark { ppm: 1_000_000 }, Ecn::Ce), (Node::EcnBleach, Ecn::NotEct)] {
        let mut pair = Pair::new(vec![node]);
        pair.send(&[1]);
        let at = pair.network.next_event_at().unwrap();
        pair.network.advance(at);
        assert_eq!(pair.network.take_arrival(pair.other).unwrap().ecn, expected);
    }
}

/// After a rebinding the host appears under another name, and only under that.
#[test]
fn a_rebinding_moves_the_host() {
    for (what, ip) in [(Renewal::Port, "192.0.2.1"), (Renewal::Address, "192.0.2.3")] {
        let mut pair = Pair::new(vec![Node::Rebind { at: millis(5), every: millis(10), times: 9, what }]);
        pair.network.arm_rebinding(pair.one);
        let before = pair.network.external_address(pair.one);
        assert_eq!(before, "192.0.2.1:1000".parse().unwrap());
        pair.network.advance(BEGINNING + millis(15));
        let after = pair.network.external_address(pair.one);
        assert_eq!(after, format!("{ip}:1002").parse().unwrap());
        for destination in [before, after] {
            pair.network.send(pair.other, destination, Ecn::NotEct, b"answer");
        }
        let at = pair.network.next_event_at().unwrap();
        pair.network.advance(at);
        assert!(pair.network.take_arrival(pair.one).is_some());
        assert!(pair.network.take_arrival(pair.one).is_none());
        assert_eq!(pair.network.lost_at_edges(), (1, 0));
    }
}

/// Arrivals are noticed together.
#[test]
fn a_host_notices_late_and_then_all() {
    let mut network = Network::new(1);
    let one =
        network.add_host("[2001:db8::1:1]:9".parse().unwrap(), HostOptions { coalesce: Duration::ZERO });
    let other = network.add_host("[2001:db8::2:1]:9".parse().unwrap(), HostOptions { coalesce: millis(1) });
    network.add_link(one, other, vec![]);
    let destination = network.address(other);
    for at in [0, 400_000, 900_000] {
        network.advance(BEGINNING + Duration::from_nanos(at));
        network.send(one, destination, Ecn::NotEct, b"x");
        assert!(!network.has_arrivals(other));
    }
    network.advance(BEGINNING + millis(1));
    assert_eq!(std::iter::from_fn(|| network.take_arrival(other)).count(), 3);
}

#[test]
fn a_seed_decides_everything() {
    let run = |seed| {
        let nodes = vec![
            Node::Loss(EventRate::percent(10).with_burst(Burst::Mean(2))),
            Node::Reorder { ppm: 200_000, by: millis(9) },
            Node::Corrupt(EventRate::percent(5)),
        ];
        let mut pair = Pair::seeded(nodes, seed);
        (0..200).for_each(|n| pair.send(&[n; 50]));
        (pair.drain(), pair.network.digest())
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).0, run(8).0);
}
