//! Ports on a veth pair, against kernel UDP and against each other.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::net::{IpAddr, SocketAddr};

use base::net::Ecn;
use common::{
    SERVER, assert_no_leak, datagram, lab, lab_with, open, path, receive, send, server, udp_client,
};
use datapath::{Port, Rx, Tx};
use netns::{Lab, LabOptions, Switch};
use xdp::{Checksums, Mode, Options, XdpPort};

const ECN: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

/// Everything that a path must carry: single datagrams of each marking, and a train of 64, there and back.
fn exchange(client: &mut impl Port, server: &mut impl Port, server_ip: IpAddr) {
    let to = SocketAddr::new(server_ip, SERVER);
    let from = client.local_address_towards(to);
    for (number, ecn) in ECN.into_iter().enumerate() {
        let question = vec![datagram(number as u64, 1200)];
        send(client, path(from, to, ecn), &question);
        let arrived = receive(server, 1);
        assert_eq!(arrived.len(), 1, "a datagram to {to} marked {ecn:?} was lost: {:?}", server.counters());
        let (bytes, addresses, marking) = &arrived[0];
        assert_eq!((bytes, *marking), (&question[0], ecn));
        assert_eq!(addresses.local, to);
        assert_eq!(addresses.peer.port(), from.port());
        let answer = vec![datagram(number as u64 + 100, 99)];
        send(server, path(addresses.local, addresses.peer, ecn), &answer);
        let arrived = receive(client, 1);
        assert_eq!(arrived.len(), 1, "an answer marked {ecn:?} was lost: {:?}", server.counters());
        assert_eq!((&arrived[0].0, arrived[0].2), (&answer[0], ecn));
        assert_eq!(arrived[0].1.peer, to);
    }
    let train: Vec<_> =
        (0..64).map(|number| datagram(number, if number == 63 { 700 } else { 1452 })).collect();
    send(client, path(from, to, Ecn::Ect0), &train);
    let arrived = receive(server, 64);
    assert!(arrived.iter().map(|(bytes, ..)| bytes).eq(&train), "{} of 64 arrived in order", arrived.len());
    let peer = arrived[0].1.peer;
    send(server, path(to, peer, Ecn::Ect0), &train);
    let arrived = receive(client, 64);
    assert!(arrived.iter().map(|(bytes, ..)| bytes).eq(&train), "{} of 64 came back in order", arrived.len());
}

#[test]
fn an_xdp_server_talks_with_a_kernel_client_in_each_mode_over_both_families() {
    let Some(lab) = lab(1) else { return };
    for mode in [Mode::Generic, Mode::Driver, Mode::Auto] {
        let mut server = server(&lab, "[::]:4433", mode);
        assert_eq!(server.mode(), if mode == Mode::Generic { mode } else { Mode::Driver });
        for (ip, ours) in lab.server().addresses().into_iter().zip(lab.client().addresses()) {
            let mut client = udp_client(&lab, SocketAddr::new(ours, 0));
            exchange(&mut client, &mut server, ip);
        }
        assert_no_leak(&server);
    }
}

/// An XDP client's port in the client's namespace.
fn xdp_client(lab: &Lab, address: &str, mode: Mode) -> XdpPort {
    lab.client().run(|| open(lab.client().interface(), address, mode)).unwrap().remove(0)
}

#[test]
fn an_xdp_client_talks_with_a_kernel_server_and_with_an_xdp_server() {
    let Some(lab) = lab(1) else { return };
    for mode in [Mode::Generic, Mode::Driver] {
        for ip in lab.server().addresses() {
            let any = if ip.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let mut client = xdp_client(&lab, any, mode);
            assert_ne!(client.local_address().port(), 0, "a free port was reserved");
            let bind = udp::BindOptions::new(SocketAddr::new(ip, SERVER), udp::Variant::Mmsg);
            let mut kernel = lab.server().run(|| udp::UdpPort::bind(&bind)).unwrap();
            // In the client's namespace, because its port looks the way up.
            lab.client().run(|| exchange(&mut client, &mut kernel, ip));
            drop(kernel);
            let mut server = server(&lab, &format!("{}", SocketAddr::new(ip, SERVER)), mode);
            lab.client().run(|| exchange(&mut client, &mut server, ip));
            assert_no_leak(&server);
            assert_no_leak(&client);
        }
    }
}

#[test]
fn checksums_of_ours_pass_the_kernels_verification() {
    let Some(lab) = lab(1) else { return };
    // Off, a half-made checksum would be completed on the way instead of being passed on as it is.
    lab.server().set_offload("tx-checksum-ip-generic", Switch::Off).unwrap();
    for checksums in [Checksums::Ours, Checksums::Offloaded] {
        let mut options = Options::new(lab.server().interface(), "[::]:4433".parse().unwrap());
        options.checksums = checksums;
        let mut server = lab.server().run(|| xdp::open(&options)).unwrap().remove(0);
        assert_eq!(
            server.offloads_checksums(),
            checksums == Checksums::Offloaded,
            "Linux 6.8 completes checksums"
        );
        for (ip, ours) in lab.server().addresses().into_iter().zip(lab.client().addresses()) {
            let mut client = udp_client(&lab, SocketAddr::new(ours, 0));
            exchange(&mut client, &mut server, ip);
        }
    }
}

#[test]
fn a_client_makes_the_kernel_find_a_neighbour_that_it_does_not_know() {
    let options =
        LabOptions { known_neighbours: false, udp_segmentation: Switch::Off, ..LabOptions::default() };
    let Some(lab) = lab_with(&options) else { return };
    for ip in lab.server().addresses() {
        let any = if ip.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let mut client = xdp_client(&lab, any, Mode::Driver);
        let bind = udp::BindOptions::new(SocketAddr::new(ip, SERVER), udp::Variant::Mmsg);
        let mut kernel = lab.server().run(|| udp::UdpPort::bind(&bind)).unwrap();
        lab.client().run(|| {
            let to = SocketAddr::new(ip, SERVER);
            let from = client.local_address_towards(to);
            let flight: Vec<_> = (0..10).map(|number| datagram(number, 1200)).collect();
            send(&mut client, path(from, to, Ecn::Ect0), &flight);
            // The answer to the kernel's question sends them on, at the next flush after a wait.
            let mut arrived = Vec::new();
            for _ in 0..200 {
                let deadline = client.now() + base::time::Duration::from_millis(10);
                client.wait(Some(deadline)).unwrap();
                client.flush().unwrap();
                let trains = kernel.poll().unwrap();
                arrived.extend((0..trains).map(|index| kernel.train(index).bytes.to_vec()));
                if arrived.len() == flight.len() {
                    break;
                }
            }
            assert_eq!(arrived, flight, "{:?}", client.counters());
        });
        assert_no_leak(&client);
    }
}

#[test]
fn two_queues_have_a_port_each_and_lose_nothing() {
    let Some(lab) = lab(2) else { return };
    let mut ports = lab.server().run(|| open(lab.server().interface(), "[::]:4433", Mode::Driver)).unwrap();
    assert_eq!(ports.iter().map(XdpPort::queue).collect::<Vec<_>>(), [0, 1]);
    let to = SocketAddr::new(lab.server().ipv4().into(), SERVER);
    let mut clients: Vec<_> =
        (0..32).map(|_| udp_client(&lab, SocketAddr::new(lab.client().ipv4().into(), 0))).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let from = client.local_address();
        send(client, path(from, to, Ecn::Ect0), &[datagram(number as u64, 200)]);
    }
    let mut arrived = 0;
    for (queue, port) in ports.iter_mut().enumerate() {
        let packets = receive(port, 32);
        println!("queue {queue}: {} of 32", packets.len());
        arrived += packets.len();
        for (bytes, addresses, ecn) in packets {
            send(port, path(addresses.local, addresses.peer, ecn), &[bytes]);
        }
    }
    assert_eq!(arrived, 32);
    for (number, client) in clients.iter_mut().enumerate() {
        let answer = receive(client, 1);
        assert_eq!(answer.len(), 1, "the answer to client {number} was lost");
        assert_eq!(answer[0].0, datagram(number as u64, 200));
    }
    ports.iter().for_each(assert_no_leak);
}

#[test]
fn two_hundred_thousand_packets_leave_every_frame_where_it_was() {
    let Some(lab) = lab(1) else { return };
    for mode in [Mode::Generic, Mode::Driver] {
        let mut server = server(&lab, "0.0.0.0:4433", mode);
        let mut client = udp_client(&lab, SocketAddr::new(lab.client().ipv4().into(), 0));
        let to = SocketAddr::new(lab.server().ipv4().into(), SERVER);
        let path = path(client.local_address(), to, Ecn::Ect0);
        let train: Vec<_> = (0..64).map(|number| datagram(number, 1200)).collect();
        let mut back = 0;
        let mut echoed = 0;
        while server.counters().rx.datagrams < 100_000 {
            send(&mut client, path, &train);
            echoed += echo(&mut server);
            back += drain(&mut client);
        }
        back += receive(&mut client, echoed - back).len();
        server.poll().unwrap();
        assert_no_leak(&server);
        assert!(back * 100 >= echoed * 95, "{back} of {echoed} came back: {:?}", server.counters());
        println!("{mode}: {echoed} echoed, {back} came back, {:?}", server.counters());
    }
}

/// Sends all that has arrived back where it came from.
fn echo(port: &mut XdpPort) -> usize {
    let mut echoed = 0;
    let mut bytes = Vec::new();
    loop {
        let trains = port.poll().unwrap();
        if trains == 0 {
            return echoed;
        }
        for index in 0..trains {
            let train = port.train(index);
            let (addresses, ecn) = (train.addresses, train.ecn);
            bytes.clear();
            bytes.extend_from_slice(train.bytes);
            send(port, path(addresses.local, addresses.peer, ecn), std::slice::from_ref(&bytes));
            echoed += 1;
        }
    }
}

fn drain(port: &mut impl Rx) -> usize {
    let mut count = 0;
    loop {
        match port.poll().unwrap() {
            0 => return count,
            more => count += more,
        }
    }
}

#[test]
fn what_is_too_large_is_counted_and_does_no_harm() {
    let Some(lab) = lab(1) else { return };
    let mut server = server(&lab, "0.0.0.0:4433", Mode::Generic);
    let mut client = udp_client(&lab, SocketAddr::new(lab.client().ipv4().into(), 0));
    let (from, to) = (SocketAddr::new(lab.server().ipv4().into(), SERVER), client.local_address());
    lab.server().run(|| {
        // The largest that fits the MTU of 1,500; a byte more; more than a frame; more than any packet.
        for size in [1472, 1473, 9000, 65_507] {
            send(&mut server, path(from, to, Ecn::NotEct), &[datagram(1, size)]);
        }
    });
    assert_eq!(receive(&mut client, 1)[0].0.len(), 1472);
    assert_eq!(server.counters().tx.too_large, 3);
    assert_no_leak(&server);
}
