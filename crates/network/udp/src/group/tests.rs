//! Datagrams from many source ports, and the sockets at which they arrive.

use std::net::{SocketAddr, UdpSocket};
use std::thread;

use base::net::{Addresses, Ecn};
use base::rng::Rng;
use base::sink::{PacketSink as _, TrainPath};
use datapath::{Rx as _, Tx as _};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::*;
use crate::options::Variant;

fn bind(address: &str, workers: u8, choice: SteeringChoice) -> Group {
    bind_group(&BindOptions::new(address.parse().unwrap(), Variant::Gso), workers, choice).unwrap()
}

/// The steerings that this process may use.
fn steerings() -> &'static [(SteeringChoice, Steering)] {
    let all = &[(SteeringChoice::Ebpf, Steering::Ebpf), (SteeringChoice::Classic, Steering::Classic)];
    if requirements::root("steering by eBPF") { all } else { &all[1..] }
}

/// What has arrived at each port: the datagrams of each train.
fn arrived(group: &mut Group) -> Vec<Vec<Vec<Vec<u8>>>> {
    let mut all = Vec::new();
    for port in &mut group.ports {
        let mut trains = Vec::new();
        loop {
            let count = port.poll().unwrap();
            if count == 0 {
                break;
            }
            for index in 0..count {
                let train = port.train(index);
                trains.push(train.bytes.chunks(train.segment_size).map(<[u8]>::to_vec).collect());
            }
        }
        all.push(trains);
    }
    all
}

/// A packet with a short or long header and the connection ID `cid`.
fn packet(header: u8, cid: &[u8], rest: usize) -> Vec<u8> {
    let mut packet = vec![header];
    if header & 0x80 != 0 {
        packet.extend([0, 0, 0, 1, cid.len() as u8]);
    }
    packet.extend(cid);
    packet.extend(vec![0xff; rest]);
    packet
}

/// Connection IDs that the steerings must agree on, with byte 3, or `None` where worker 0 is meant.
fn packets(rng: &mut Rng) -> Vec<(Vec<u8>, Option<u8>)> {
    let mut packets = Vec::new();
    for worker in (0..=255).step_by(5) {
        let mut cid = [0; 20];
        rng.fill(&mut cid);
        cid[3] = worker;
        for (header, len) in [(0x40, 8), (0x7f, 8), (0xc0, 8), (0xff, 20), (0x80, 4), (0xd3, 5)] {
            packets.push((packet(header, &cid[..len], 30), Some(worker)));
        }
    }
    // Just long enough, one byte too short, and IDs without a byte 3.
    packets.push((packet(0x40, &[9, 9, 9, 7], 0), Some(7)));
    packets.push((packet(0xc0, &[9, 9, 9, 7], 0), Some(7)));
    for short in
        [packet(0x40, &[9, 9, 9], 0), packet(0xc0, &[9, 9, 9, 7], 0)[..9].to_vec(), vec![0x40], vec![0xc1]]
    {
        packets.push((short, None));
    }
    for len in 0..4 {
        packets.push((packet(0xc0, &[9; 20][..len], 30), None));
    }
    packets
}

/// Sends every packet from a socket of its own to `to`, and checks who gets it.
fn check(group: &mut Group, to: SocketAddr, context: &str) {
    let from = if to.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
    let sources: Vec<UdpSocket> = (0..24).map(|_| UdpSocket::bind(from).unwrap()).collect();
    let workers = group.ports.len();
    for (index, (packet, worker)) in packets(&mut Rng::from_u64(7)).into_iter().enumerate() {
        sources[index % sources.len()].send_to(&packet, to).unwrap();
        let mut expected = vec![Vec::new(); workers];
        let shown = format!("{context}, worker {worker:?}, {packet:x?}");
        expected[usize::from(worker.unwrap_or(0)) % workers].push(vec![packet]);
        assert_eq!(arrived(group), expected, "{shown}");
    }
}

#[test]
fn a_datagram_lands_at_the_worker_that_its_connection_id_names() {
    // Deleted, a client that changes its port could change its worker, and only the speed would show it.
    for &(choice, steering) in steerings() {
        for workers in [2, 3, 255] {
            for (address, targets) in [
                ("127.0.0.1:0", &["127.0.0.1"][..]),
                ("[::1]:0", &["::1"]),
                ("0.0.0.0:0", &["127.0.0.1"]),
                ("[::]:0", &["::1", "127.0.0.1"]),
            ] {
                let mut options = BindOptions::new(address.parse().unwrap(), Variant::Gso);
                options.receive_batch = 1;
                let mut group = bind_group(&options, workers, choice).unwrap();
                assert_eq!((group.steering, group.declined.len()), (steering, 0));
                for target in targets {
                    let port = group.ports[0].local_address().port();
                    let to = SocketAddr::new(target.parse().unwrap(), port);
                    if workers < 255 || address == "127.0.0.1:0" {
                        check(&mut group, to, &format!("{choice}, {workers} at {address}"));
                    }
                }
            }
        }
    }
}

#[test]
fn a_train_lands_whole_at_the_worker_that_its_connection_id_names() {
    for &(choice, _) in steerings() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let mut group = bind(address, 4, choice);
            for worker in 0..4 {
                let mut client =
                    UdpPort::bind(&BindOptions::new(address.parse().unwrap(), Variant::Gso)).unwrap();
                let to = Addresses { local: client.local_address(), peer: group.ports[0].local_address() };
                client.begin(TrainPath::new(to, Ecn::Ect0), 1200).unwrap();
                for _ in 0..40 {
                    client.room()[..9].copy_from_slice(&[0x40, 1, 2, 3, worker + 4, 5, 6, 7, 8]);
                    client.push(1200);
                }
                client.end();
                client.flush().unwrap();
                let arrived = arrived(&mut group);
                let shape: Vec<Vec<usize>> =
                    arrived.iter().map(|trains| trains.iter().map(Vec::len).collect()).collect();
                let mut expected = vec![vec![]; 4];
                expected[usize::from(worker)].push(40);
                assert_eq!(shape, expected, "{choice}");
            }
        }
    }
}

#[test]
fn without_a_program_each_datagram_arrives_once_and_a_flow_stays_where_it_is() {
    let mut group = bind("127.0.0.1:0", 3, SteeringChoice::HandOff);
    assert_eq!((group.steering, group.declined.len()), (Steering::HandOff, 0));
    let to = group.ports[0].local_address();
    let mut used = [0; 3];
    for _ in 0..40 {
        let source = UdpSocket::bind("127.0.0.1:0").unwrap();
        for worker in 0..5 {
            source.send_to(&packet(0x40, &[worker; 8], 20), to).unwrap();
        }
        let counts: Vec<usize> = arrived(&mut group).iter().map(Vec::len).collect();
        let taken = counts.iter().position(|&count| count == 5).expect("one socket has them all");
        assert_eq!(counts.iter().sum::<usize>(), 5);
        used[taken] += 1;
    }
    assert!(used.iter().all(|&flows| flows > 0), "{used:?}");
}

#[test]
fn a_group_does_not_join_another_programs_unless_told_to() {
    let group = bind("127.0.0.1:0", 2, SteeringChoice::Auto);
    let mut options = BindOptions::new(group.ports[0].local_address(), Variant::Gso);
    for workers in [1, 2] {
        let error = bind_group(&options, workers, SteeringChoice::Auto).unwrap_err();
        assert_eq!(error.source.kind(), io::ErrorKind::AddrInUse);
    }
    options.reuse_port = true;
    bind_group(&options, 2, SteeringChoice::Auto).unwrap();
    let error = bind_group(&options, 2, SteeringChoice::Classic).unwrap_err().to_string();
    assert!(error.starts_with("cannot steer by classic BPF the sockets of UDP 127.0.0.1:"), "{error}");
}

#[test]
fn one_worker_needs_no_steering() {
    for workers in [0, 1] {
        let group = bind("127.0.0.1:0", workers, SteeringChoice::Ebpf);
        assert_eq!((group.ports.len(), group.steering), (1, Steering::Single));
        let same = BindOptions {
            reuse_port: true,
            ..BindOptions::new(group.ports[0].local_address(), Variant::Gso)
        };
        assert!(UdpPort::bind(&same).is_err(), "the address is not shared");
    }
}

#[test]
fn without_capabilities_auto_falls_back_and_says_why() {
    let thread = thread::spawn(|| {
        let held = capabilities(None).unwrap();
        let less = rustix::thread::CapabilitySets { effective: CapabilitySet::empty(), ..held };
        set_capabilities(None, less).unwrap();
        let group = bind("127.0.0.1:0", 2, SteeringChoice::Auto);
        if group.steering == Steering::Ebpf {
            return requirements::missing("this system lets everyone load eBPF programs");
        }
        assert_eq!((group.steering, group.declined.len()), (Steering::Classic, 1));
        assert!(group.declined[0].starts_with("no steering by ebpf: cannot load"), "{}", group.declined[0]);
        assert!(group.declined[0].contains("CAP_BPF"));
        let options = BindOptions::new("127.0.0.1:0".parse().unwrap(), Variant::Gso);
        let error = bind_group(&options, 2, SteeringChoice::Ebpf).unwrap_err().to_string();
        assert!(error.contains("CAP_BPF"), "{error}");
        let shared = BindOptions { reuse_port: true, ..options };
        let group = bind_group(&shared, 2, SteeringChoice::Auto).unwrap();
        assert_eq!((group.steering, group.declined.len()), (Steering::HandOff, 2));
        if held.effective.contains(CapabilitySet::BPF) {
            // That one is all it takes.
            let enough = rustix::thread::CapabilitySets { effective: CapabilitySet::BPF, ..held };
            set_capabilities(None, enough).unwrap();
            assert_eq!(bind("127.0.0.1:0", 2, SteeringChoice::Auto).steering, Steering::Ebpf);
        }
    });
    thread.join().unwrap();
}

#[test]
fn a_steerings_name_is_read_as_it_is_written() {
    for choice in SteeringChoice::ALL {
        assert_eq!(choice.name().parse(), Ok(choice));
    }
    assert!("bpf".parse::<SteeringChoice>().unwrap_err().contains("hand-off"));
}

/// Deleted, an upgrade could steer datagrams to other workers than before, or a service manager's sockets not at all.
#[test]
fn a_group_that_is_passed_on_steers_as_before() {
    for &(choice, steering) in steerings() {
        let first = bind("127.0.0.1:0", 3, choice);
        let options = BindOptions::new("127.0.0.1:0".parse().unwrap(), Variant::Gso);
        let copies = |group: &Group| -> Vec<OwnedFd> {
            group.ports.iter().map(|port| port.socket().try_clone_to_owned().unwrap()).collect()
        };
        let mut second = adopt_group(&options, copies(&first), Steered::By(first.steering)).unwrap();
        assert_eq!((second.steering, second.ports.len()), (steering, 3));
        let address = first.ports[0].local_address();
        drop(first);
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        for worker in 0..3 {
            client.send_to(&packet(0x40, &[7, 7, 7, worker, 7, 7, 7, 7], 30), address).unwrap();
        }
        let heard: Vec<usize> = arrived(&mut second).iter().map(Vec::len).collect();
        assert_eq!(heard, [1, 1, 1], "{choice}");
        // Without a program that steers them already.
        let unsteered = bind("127.0.0.1:0", 3, SteeringChoice::HandOff);
        let third = adopt_group(&options, copies(&unsteered), Steered::AsChosen(choice)).unwrap();
        assert_eq!(third.steering, steering);
        let one = copies(&second).into_iter().take(1).collect();
        let single = adopt_group(&options, one, Steered::AsChosen(choice)).unwrap();
        assert_eq!(single.steering, Steering::Single);
    }
}
