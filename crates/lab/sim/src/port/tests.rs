//! The port keeps the contract of a data path, and its moods do what they say.

use super::*;
use crate::host::HostOptions;
use base::net::Ecn;
use base::time::Duration;
use link::Node;

fn ports(options: PortOptions) -> (VirtualPort, VirtualPort) {
    let mut network = Network::new(3);
    let host = HostOptions { coalesce: Duration::from_micros(10) };
    let one = network.add_host("192.0.2.1:1000".parse().unwrap(), host);
    let other = network.add_host("198.51.100.1:443".parse().unwrap(), host);
    network.add_link(one, other, vec![Node::Delay(Duration::from_millis(5))]);
    let network = Rc::new(RefCell::new(network));
    (VirtualPort::new(&network, one, options), VirtualPort::new(&network, other, options))
}

fn send(port: &mut VirtualPort, peer: SocketAddr, lens: &[usize]) {
    let addresses = Addresses { local: port.local_address(), peer };
    port.begin(TrainPath::new(addresses, Ecn::Ect0), lens[0]).unwrap();
    for (index, len) in lens.iter().enumerate() {
        port.room()[..*len].fill(index as u8);
        port.push(*len);
    }
    port.end();
    port.flush().unwrap();
}

/// What one poll gives: of each train its marking and the lengths of its datagrams.
fn shapes(port: &mut VirtualPort) -> Vec<(Ecn, Vec<usize>)> {
    let trains = port.poll().unwrap();
    let shape =
        |train: Train<'_>| (train.ecn, train.bytes.chunks(train.segment_size).map(<[u8]>::len).collect());
    (0..trains).map(|index| shape(port.train(index))).collect()
}

#[test]
fn a_train_arrives_as_it_left_after_its_time() {
    let (mut one, mut other) = ports(PortOptions::default());
    send(&mut one, other.local_address(), &[100, 100, 40]);
    assert_eq!(other.poll().unwrap(), 0);
    let start = other.now();
    other.wait(Some(start + Duration::from_millis(2))).unwrap();
    assert_eq!(other.now(), start + Duration::from_millis(2));
    other.wait(None).unwrap();
    assert_eq!(other.now(), start + Duration::from_micros(5_010));
    let mut all = Vec::new();
    while other.network.borrow().has_arrivals(other.host) {
        all.extend(shapes(&mut other).into_iter().flat_map(|(_, lens)| lens));
    }
    assert_eq!(all, [100, 100, 40]);
    assert_eq!(other.counters().rx.datagrams, 3);
    let deadline = other.now() + Duration::from_secs(1);
    other.wait(Some(deadline)).unwrap();
    assert_eq!(other.now(), deadline);
}

#[test]
fn moods() {
    let moody = PortOptions {
        train_segments: 3,
        refuse_ppm: 1_000_000,
        apart_ppm: 1_000_000,
        ..PortOptions::default()
    };
    let (mut one, other) = ports(moody);
    let addresses = Addresses { local: one.local_address(), peer: other.local_address() };
    assert_eq!(one.begin(TrainPath::new(addresses, Ecn::Ect0), 100), None);
    let apart = PortOptions { refuse_ppm: 0, ..moody };
    let (mut one, mut other) = ports(apart);
    send(&mut one, other.local_address(), &[100, 100, 100]);
    other.wait(None).unwrap();
    assert!(shapes(&mut other).into_iter().all(|train| train == (Ecn::Ect0, vec![100])));
}
