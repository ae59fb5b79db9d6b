//! Ports on a veth pair, against kernel UDP and against each other.

mod common;

use std::net::{IpAddr, SocketAddr};

use base::net::Ecn;
use common::{SERVER, datagram, lab, path, receive, send, server, udp_client};
use datapath::Port;
use xdp::{Mode, XdpPort};

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

fn assert_no_leak(port: &XdpPort) {
    assert_eq!(port.free_frames(), port.frames(), "{:?}", port.counters());
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
