//! Packets that no frame holds: over veth with a large MTU, against kernel UDP and against each other.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::net::SocketAddr;

use base::net::Ecn;
use common::{SERVER, assert_no_leak, datagram, lab_with, open, path, receive, send, server, udp_client};
use datapath::Port;
use netns::{Lab, LabOptions, Switch};
use xdp::{Checksums, Mode, Options, XdpPort};

fn lab(mtu: u32) -> Option<Lab> {
    lab_with(&LabOptions { mtu, udp_segmentation: Switch::Off, ..LabOptions::default() })
}

/// Datagrams of sizes about every border, one by one and as trains, there and back.
fn exchange(client: &mut impl Port, server: &mut XdpPort, to: SocketAddr) {
    let most = server.largest_payload(to.ip());
    let from = client.local_address_towards(to);
    // One piece and one frame; a byte more than a frame to send from, and than one to receive into; all that there is.
    let sizes = [100, 3_770, 3_771, 3_968, 3_969, 4_072, 4_096, 5_000, most - 1, most];
    for (number, size) in sizes.into_iter().enumerate() {
        let question = [datagram(number as u64, size)];
        send(client, path(from, to, Ecn::Ect0), &question);
        let arrived = receive(server, 1);
        assert_eq!(arrived.len(), 1, "{size} bytes to {to} were lost: {:?}", server.counters());
        let (bytes, addresses, ecn) = &arrived[0];
        assert!(*bytes == question[0] && *ecn == Ecn::Ect0, "{size} bytes changed on their way");
        let answer = [datagram(number as u64 + 100, size)];
        send(server, path(addresses.local, addresses.peer, Ecn::Ce), &answer);
        let arrived = receive(client, 1);
        assert_eq!(arrived.len(), 1, "{size} bytes back were lost: {:?}", server.counters());
        assert!(
            arrived[0].0 == answer[0] && arrived[0].2 == Ecn::Ce,
            "{size} bytes changed on their way back"
        );
    }
    // More descriptors than a poll takes, whose end is in the middle of a packet.
    let count = if most > 10_000 { 6 } else { 64 };
    let train: Vec<_> =
        (0..count).map(|number| datagram(number, if number + 1 < count { most } else { 700 })).collect();
    send(client, path(from, to, Ecn::Ect0), &train);
    let arrived = receive(server, train.len());
    assert!(
        arrived.iter().map(|(bytes, ..)| bytes).eq(&train),
        "{} of {count} arrived in order",
        arrived.len()
    );
    send(server, path(to, arrived[0].1.peer, Ecn::Ect0), &train);
    let arrived = receive(client, train.len());
    assert!(
        arrived.iter().map(|(bytes, ..)| bytes).eq(&train),
        "{} of {count} came back in order",
        arrived.len()
    );
}

#[test]
fn an_xdp_server_sends_and_receives_what_the_mtu_carries() {
    // Deleted, a long packet could lose a part, or have one of another packet, or the limit could stay a frame.
    for mtu in [9000, 65_535] {
        let Some(lab) = lab(mtu) else { return };
        for mode in [Mode::Generic, Mode::Driver, Mode::Auto] {
            let mut server = server(&lab, "[::]:4433", mode);
            assert_eq!(server.mode(), if mode == Mode::Generic { mode } else { Mode::Driver });
            assert_eq!(server.most_payload(), mtu as usize - 28);
            for (ip, ours) in lab.server().addresses().into_iter().zip(lab.client().addresses()) {
                let mut client = udp_client(&lab, SocketAddr::new(ours, 0));
                exchange(&mut client, &mut server, SocketAddr::new(ip, SERVER));
            }
            assert_no_leak(&server);
        }
    }
}

#[test]
fn two_xdp_ports_exchange_them_too_with_either_checksums() {
    let Some(lab) = lab(9000) else { return };
    for (mode, checksums) in [(Mode::Generic, Checksums::Offloaded), (Mode::Driver, Checksums::Ours)] {
        for ip in lab.server().addresses() {
            let mut options = Options::new(lab.server().interface(), SocketAddr::new(ip, SERVER));
            (options.mode, options.checksums) = (mode, checksums);
            let mut server = lab.server().run(|| xdp::open(&options)).unwrap().remove(0);
            let any = if ip.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            lab.client().run(|| {
                let mut client = open(lab.client().interface(), any, mode).unwrap().remove(0);
                exchange(&mut client, &mut server, SocketAddr::new(ip, SERVER));
                assert_no_leak(&client);
            });
            assert_no_leak(&server);
        }
    }
}

#[test]
fn checksums_of_ours_and_of_the_kernels_are_right_over_all_pieces() {
    for mtu in [9000, 65_535] {
        let Some(lab) = lab(mtu) else { return };
        // Off, a half-made checksum is completed on the way instead of being passed on as it is.
        lab.server().set_offload("tx-checksum-ip-generic", Switch::Off).unwrap();
        for checksums in [Checksums::Ours, Checksums::Offloaded] {
            let mut options = Options::new(lab.server().interface(), "[::]:4433".parse().unwrap());
            options.checksums = checksums;
            let mut server = lab.server().run(|| xdp::open(&options)).unwrap().remove(0);
            for (ip, ours) in lab.server().addresses().into_iter().zip(lab.client().addresses()) {
                let mut client = udp_client(&lab, SocketAddr::new(ours, 0));
                exchange(&mut client, &mut server, SocketAddr::new(ip, SERVER));
            }
            assert_no_leak(&server);
        }
    }
}

#[test]
fn twenty_thousand_long_packets_leave_every_frame_where_it_was() {
    let Some(lab) = lab(9000) else { return };
    for mode in [Mode::Generic, Mode::Driver] {
        let mut server = server(&lab, "0.0.0.0:4433", mode);
        let mut client = udp_client(&lab, SocketAddr::new(lab.client().ipv4().into(), 0));
        let to = SocketAddr::new(lab.server().ipv4().into(), SERVER);
        let there = path(client.local_address(), to, Ecn::Ect0);
        let train: Vec<_> = (0..16).map(|number| datagram(number, 8_952)).collect();
        let (mut echoed, mut back) = (0, 0);
        while server.counters().rx.datagrams < 20_000 {
            send(&mut client, there, &train);
            let arrived = receive(&mut server, train.len());
            echoed += arrived.len();
            for (bytes, addresses, ecn) in arrived {
                send(&mut server, path(addresses.local, addresses.peer, ecn), &[bytes]);
            }
            back += receive(&mut client, train.len()).len();
        }
        assert_no_leak(&server);
        assert!(back * 100 >= echoed * 95, "{back} of {echoed} came back: {:?}", server.counters());
    }
}

#[test]
fn a_train_of_quic_that_was_not_cut_arrives_packet_by_packet() {
    // Deleted, a small train could pass for one long datagram at a jumbo MTU, whose decryption fails, and a large one be dropped.
    let Some(lab) = lab_with(&LabOptions { mtu: 9000, ..LabOptions::default() }) else { return };
    let mut server = server(&lab, "0.0.0.0:4433", Mode::Generic);
    let bind = udp::BindOptions::new(SocketAddr::new(lab.client().ipv4().into(), 0), udp::Variant::Gso);
    let mut client = lab.client().run(|| udp::UdpPort::bind(&bind)).unwrap();
    let to = SocketAddr::new(lab.server().ipv4().into(), SERVER);
    let there = path(client.local_address(), to, Ecn::Ect0);
    for count in [2, 3, 7, 20] {
        let packet = |number: u64| {
            let mut packet = datagram(number, if number + 1 < count { 1_200 } else { 300 });
            packet[1..9].copy_from_slice(b"same id!");
            packet
        };
        let train: Vec<_> = (0..count).map(packet).collect();
        send(&mut client, there, &train);
        let arrived = receive(&mut server, train.len());
        assert!(arrived.iter().map(|(bytes, ..)| bytes).eq(&train), "{} of {count}", arrived.len());
    }
    assert_eq!((server.counters().rx.truncated, server.counters().rx.datagrams), (0, 32));
    assert_no_leak(&server);
}

#[test]
fn a_train_that_was_not_cut_is_dropped_and_counted() {
    // Deleted, 64 packets of a peer whose kernel leaves cutting to the interface could pass for one.
    let Some(lab) = lab_with(&LabOptions { mtu: 9000, ..LabOptions::default() }) else { return };
    let mut server = server(&lab, "0.0.0.0:4433", Mode::Generic);
    let bind = udp::BindOptions::new(SocketAddr::new(lab.client().ipv4().into(), 0), udp::Variant::Gso);
    let mut client = lab.client().run(|| udp::UdpPort::bind(&bind)).unwrap();
    let to = SocketAddr::new(lab.server().ipv4().into(), SERVER);
    let there = path(client.local_address(), to, Ecn::Ect0);
    let train: Vec<_> = (0..20).map(|number| datagram(number, 1_200)).collect();
    send(&mut client, there, &train);
    assert!(receive(&mut server, 1).is_empty());
    assert_eq!(server.counters().rx.truncated, 1, "{:?}", server.counters());
    send(&mut client, there, &train[..1]);
    assert_eq!(receive(&mut server, 1).len(), 1);
    assert_no_leak(&server);
}
