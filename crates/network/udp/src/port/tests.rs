use std::net::UdpSocket;
use std::thread;

use base::net::{Addresses, Ecn};
use base::time::Duration;

use super::*;
use crate::options::Without;

fn port(address: &str, variant: Variant) -> UdpPort {
    UdpPort::bind(&BindOptions::new(address.parse().unwrap(), variant)).unwrap()
}

/// The path from `from` to `to`, whose addresses may be unspecified and are then reached by loopback.
fn path(from: &UdpPort, to: SocketAddr) -> TrainPath {
    TrainPath::new(Addresses { local: from.local_address(), peer: to }, Ecn::Ect0)
}

fn send(port: &mut UdpPort, path: TrainPath, packets: &[Vec<u8>]) {
    let segment = packets[0].len();
    let mut packets = packets.iter().peekable();
    while packets.peek().is_some() {
        let Some(room) = port.begin(path, segment) else {
            port.flush().unwrap();
            continue;
        };
        for packet in packets.by_ref().take(room) {
            port.room()[..packet.len()].copy_from_slice(packet);
            port.push(packet.len());
        }
        port.end();
    }
}

/// Datagrams with their addresses and marking, until there are `count` or nothing has come for two seconds.
fn receive(port: &mut UdpPort, count: usize) -> Vec<(Vec<u8>, Addresses, Ecn)> {
    let mut all = Vec::new();
    while all.len() < count {
        let deadline = port.now() + Duration::from_secs(2);
        port.wait(Some(deadline)).unwrap();
        let trains = port.poll().unwrap();
        if trains == 0 && port.now() >= deadline {
            break;
        }
        for index in 0..trains {
            let train = port.train(index);
            for bytes in train.bytes.chunks(train.segment_size) {
                all.push((bytes.to_vec(), train.addresses, train.ecn));
            }
        }
    }
    all
}

fn bytes_of(received: Vec<(Vec<u8>, Addresses, Ecn)>) -> Vec<Vec<u8>> {
    received.into_iter().map(|(bytes, ..)| bytes).collect()
}

/// `count` different datagrams of `len` bytes.
fn numbered(count: u32, len: usize) -> Vec<Vec<u8>> {
    (0..count).map(|n| n.to_be_bytes().into_iter().cycle().take(len).collect()).collect()
}

#[test]
fn a_train_leaves_in_one_message_and_arrives_as_the_same_datagrams() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (mut a, mut b) = (port(address, Variant::Gso), port(address, Variant::Gso));
        let mut packets = numbered(43, 1472);
        packets.push(vec![9; 100]);
        let to = path(&a, b.local_address());
        send(&mut a, to, &packets);
        a.flush().unwrap();
        assert_eq!(bytes_of(receive(&mut b, 44)), packets);
        let (sent, got) = (a.counters().tx, b.counters().rx);
        assert_eq!((sent.calls, sent.trains, sent.datagrams, sent.bytes), (1, 1, 44, 43 * 1472 + 100));
        assert_eq!((got.trains, got.datagrams, got.bytes), (1, 44, 43 * 1472 + 100));
        assert!(a.capabilities().segments_offloaded && b.capabilities().coalesces);
    }
}

#[test]
fn thousands_of_datagrams_arrive_intact_whatever_the_variants() {
    for (from, to) in Variant::ALL.into_iter().flat_map(|a| Variant::ALL.map(|b| (a, b))) {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (mut a, mut b) = (port(address, from), port(address, to));
            let way = path(&a, b.local_address());
            for (round, len) in [1200, 1472, 40, 1, 9000, 32_000].into_iter().enumerate() {
                let mut packets = numbered(if len > 5_000 { 60 } else { 300 }, len);
                packets.push(vec![round as u8; len.div_ceil(3)]);
                send(&mut a, way, &packets);
                a.flush().unwrap();
                assert_eq!(bytes_of(receive(&mut b, packets.len())), packets, "{from:?} to {to:?}, {len}");
            }
            assert_eq!(a.counters().tx.lost() + b.counters().rx.overflowed, 0);
            assert!(from != Variant::Plain || a.counters().tx.calls >= a.counters().tx.datagrams);
        }
    }
}

#[test]
fn the_largest_datagram_passes() {
    let (mut a, mut b) = (port("127.0.0.1:0", Variant::Gso), port("127.0.0.1:0", Variant::Gso));
    let to = path(&a, b.local_address());
    let packets = numbered(1, MAX_TRAIN_BYTES);
    send(&mut a, to, &packets);
    a.flush().unwrap();
    assert_eq!(bytes_of(receive(&mut b, 1)), packets);
}

#[test]
fn trains_for_different_peers_leave_in_one_call() {
    let mut a = port("127.0.0.1:0", Variant::Gso);
    let mut peers = [0; 3].map(|_| port("127.0.0.1:0", Variant::Gso));
    let packets = numbered(10, 500);
    for peer in &peers {
        let to = path(&a, peer.local_address());
        send(&mut a, to, &packets);
    }
    a.flush().unwrap();
    assert_eq!((a.counters().tx.calls, a.counters().tx.trains), (1, 3));
    for peer in &mut peers {
        assert_eq!(bytes_of(receive(peer, 10)), packets);
    }
}

#[test]
fn the_marking_is_carried_in_every_family_and_variant() {
    let pairs = [("127.0.0.1:0", "127.0.0.1:0"), ("[::1]:0", "[::1]:0"), ("[::]:0", "127.0.0.1:0")];
    for (from, to) in pairs.into_iter().chain([("127.0.0.1:0", "[::]:0")]) {
        for variant in Variant::ALL {
            let (mut a, mut b) = (port(from, variant), port(to, variant));
            let mut peer = b.local_address();
            if peer.ip().is_unspecified() {
                peer.set_ip("127.0.0.1".parse().unwrap());
            }
            for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
                let way = TrainPath { ecn, ..path(&a, peer) };
                send(&mut a, way, &numbered(5, 100));
                a.flush().unwrap();
                let got = receive(&mut b, 5);
                assert_eq!(got.len(), 5);
                assert!(
                    got.iter().all(|(.., marking)| *marking == ecn),
                    "{from} to {to}, {variant:?}, {ecn:?}"
                );
            }
            assert!(b.capabilities().ecn);
        }
    }
}

#[test]
fn a_wildcard_socket_learns_where_a_datagram_came_to_and_answers_from_there() {
    // Deleted, a server with several addresses could answer from the wrong one, and the client would not know it.
    for (wildcard, client, target) in [
        ("0.0.0.0:0", "127.0.0.1:0", "127.0.0.5"),
        ("[::]:0", "127.0.0.1:0", "127.0.0.7"),
        ("[::]:0", "[::1]:0", "::1"),
    ] {
        let (mut server, mut client) = (port(wildcard, Variant::Gso), port(client, Variant::Gso));
        let target = SocketAddr::new(target.parse().unwrap(), server.local_address().port());
        let to = path(&client, target);
        send(&mut client, to, &numbered(3, 80));
        client.flush().unwrap();
        let got = receive(&mut server, 3);
        let addresses = got[2].1;
        assert_eq!(addresses, Addresses { local: target, peer: client.local_address() });
        send(&mut server, TrainPath::new(addresses, Ecn::NotEct), &numbered(3, 90));
        server.flush().unwrap();
        assert_eq!(receive(&mut client, 3)[0].1.peer, target);
    }
}

#[test]
fn a_destination_that_cannot_be_reached_harms_no_other() {
    let (mut a, mut b) = (port("127.0.0.1:0", Variant::Gso), port("127.0.0.1:0", Variant::Gso));
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let packets = numbered(4, 100);
    // Broadcast is not permitted, an IPv6 address has the wrong family, and one port is closed.
    let unreachable = ["255.255.255.255:9".parse().unwrap(), "[::1]:9".parse().unwrap(), closed];
    for _ in 0..3 {
        for peer in unreachable.into_iter().chain([b.local_address()]) {
            let way = path(&a, peer);
            send(&mut a, way, &packets);
        }
        a.flush().unwrap();
        a.poll().unwrap();
    }
    assert_eq!(receive(&mut b, 12).len(), 12);
    let sent = a.counters().tx;
    assert_eq!((sent.unreachable, sent.dropped, sent.datagrams), (12, 12, 24));
    assert!(a.capabilities().segments_offloaded);
}

#[test]
fn worthless_datagrams_cost_a_bounded_turn_and_are_counted() {
    let mut a = port("127.0.0.1:0", Variant::Gso);
    let unknown = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..20 {
        unknown.send_to(&[], a.local_address()).unwrap();
    }
    unknown.send_to(b"x", a.local_address()).unwrap();
    assert_eq!(a.poll().unwrap(), 0);
    assert_eq!(a.counters().rx.calls, 1);
    assert_eq!(receive(&mut a, 1).len(), 1);
    assert_eq!(a.counters().rx.empty, 20);
}

#[test]
fn what_the_kernel_discards_for_want_of_room_is_counted() {
    let mut options = BindOptions::new("127.0.0.1:0".parse().unwrap(), Variant::Mmsg);
    options.receive_buffer = 8 << 10;
    let mut b = UdpPort::bind(&options).unwrap();
    let mut a = port("127.0.0.1:0", Variant::Mmsg);
    let way = path(&a, b.local_address());
    send(&mut a, way, &numbered(200, 1000));
    a.flush().unwrap();
    let mut got = 0;
    loop {
        match b.poll().unwrap() as u64 {
            0 => break,
            trains => got += trains,
        }
    }
    // The kernel reports the loss beside the next datagram that it accepts.
    send(&mut a, way, &numbered(1, 10));
    a.flush().unwrap();
    receive(&mut b, 1);
    assert!(got < 200);
    assert_eq!(b.counters().rx.overflowed + got, 200);
}

#[test]
fn a_wait_ends_at_its_deadline_or_by_the_waker() {
    let mut a = port("127.0.0.1:0", Variant::Gso);
    let start = a.now();
    a.wait(Some(start + Duration::from_millis(20))).unwrap();
    let waited = a.now().saturating_since(start);
    assert!(waited >= Duration::from_millis(20), "{waited:?}");
    a.wait(Some(start)).unwrap();

    let waker = a.waker().unwrap();
    for _ in 0..100 {
        let waker = waker.clone();
        let thread = thread::spawn(move || waker.wake());
        a.wait(None).unwrap();
        thread.join().unwrap();
    }
    // Woken before the wait, any number of times, it returns once and then sleeps again.
    waker.wake();
    waker.wake();
    a.wait(None).unwrap();
    let start = a.now();
    a.wait(Some(start + Duration::from_millis(10))).unwrap();
    assert!(a.now().saturating_since(start) >= Duration::from_millis(10));
}

#[test]
fn binding_twice_says_what_is_wrong_unless_shared() {
    let first = port("127.0.0.1:0", Variant::Gso);
    let mut options = BindOptions::new(first.local_address(), Variant::Gso);
    let error = UdpPort::bind(&options).unwrap_err();
    assert_eq!(error.source.kind(), io::ErrorKind::AddrInUse);
    let text = error.to_string();
    assert!(text.starts_with(&format!("cannot bind UDP {}: ", first.local_address())), "{text}");

    options.address.set_port(0);
    options.reuse_port = true;
    let first = UdpPort::bind(&options).unwrap();
    options.address = first.local_address();
    UdpPort::bind(&options).unwrap();
}

#[test]
fn departure_times_are_off_where_nothing_keeps_them() {
    let mut options = BindOptions::new("127.0.0.1:0".parse().unwrap(), Variant::Gso);
    options.departure_times = true;
    assert!(!UdpPort::bind(&options).unwrap().capabilities().departure_times, "loopback has no queue");
}

#[test]
fn small_buffers_are_advised_upon_with_the_limit_and_the_value() {
    let (asked, enough) = ((8 << 20, 4 << 20), (16 << 20, 8 << 20));
    assert_eq!(advice(asked, enough), None);
    let receive = advice(asked, (2 * 212_992, enough.1)).unwrap();
    assert!(receive.contains("(receive buffer 208 KiB instead of 8192)"), "{receive}");
    assert!(receive.ends_with("sysctl -w net.core.rmem_max=8388608"), "{receive}");
    let both = advice(asked, (0, enough.1 - 1)).unwrap();
    assert!(both.ends_with("net.core.rmem_max=8388608 net.core.wmem_max=4194304"), "{both}");
}

#[test]
fn a_port_that_may_not_exceed_the_systems_limits_says_so() {
    use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
    let thread = thread::spawn(|| {
        let held = capabilities(None).unwrap();
        let less = CapabilitySets { effective: held.effective - CapabilitySet::NET_ADMIN, ..held };
        set_capabilities(None, less).unwrap();
        let limit = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap();
        let limit: usize = limit.trim().parse().unwrap();
        let mut options = BindOptions::new("127.0.0.1:0".parse().unwrap(), Variant::Gso);
        options.send_buffer = 4096;
        for (size, small) in [(limit.min(1 << 20), false), (limit + 4096, true)] {
            options.receive_buffer = size;
            let advice = UdpPort::bind(&options).unwrap().advice();
            assert_eq!(advice.is_some(), small, "{size} bytes of {limit}: {advice:?}");
            assert!(advice.is_none_or(|advice| advice.contains(&format!("rmem_max={size}"))));
        }
    });
    thread.join().unwrap();
}

#[test]
fn buffers_are_granted_and_descriptors_are_readable_with_something_to_do() {
    let (mut a, mut b) = (port("127.0.0.1:0", Variant::Gso), port("127.0.0.1:0", Variant::Gso));
    let (receive_buffer, send_buffer) = a.buffer_sizes().unwrap();
    assert!(receive_buffer >= 200 << 10 && send_buffer >= 200 << 10);
    let way = path(&a, b.local_address());
    send(&mut a, way, &numbered(1, 10));
    a.flush().unwrap();
    b.waker().unwrap().wake();
    let readable = |port: &UdpPort| {
        let descriptors = port.descriptors();
        let mut events: Vec<PollFd<'_>> =
            descriptors.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        poll(&mut events, None).unwrap()
    };
    assert_eq!(readable(&b), 2);
    b.on_woken();
    assert_eq!(readable(&b), 1);
    assert_eq!(receive(&mut b, 1).len(), 1);
}

/// Each technique that is left out is left out: an experiment without effect would call it worthless.
#[test]
fn what_a_port_is_to_do_without_it_does_without() {
    let port = |without| {
        let options = BindOptions::new("127.0.0.1:0".parse().unwrap(), Variant::Gso);
        UdpPort::bind(&BindOptions { without, ..options }).unwrap()
    };
    let all = Without::default();
    for (without, sent, heard, capabilities) in [
        (all, 1, 1, (true, true)),
        (Without { gso: true, ..all }, 1, 1, (false, true)),
        (Without { gro: true, ..all }, 1, 1, (true, false)),
        (Without { sendmmsg: true, ..all }, 4, 1, (true, true)),
        (Without { recvmmsg: true, ..all }, 1, 4, (true, true)),
        (Without { batches: true, ..all }, 1, 4, (true, true)),
        (Without { gro: true, batches: true, ..all }, 1, 40, (true, false)),
        (Without { gso: true, sendmmsg: true, ..all }, 40, 1, (false, true)),
        (Without { gro: true, recvmmsg: true, ..all }, 1, 40, (true, false)),
    ] {
        let (mut a, mut b) = (port(without), port(without));
        if !a.capabilities().segments_offloaded && !without.gso || !a.capabilities().coalesces && !without.gro
        {
            return requirements::missing("this kernel has no offloads");
        }
        // Four trains of ten datagrams in one flush.
        let packets = numbered(40, 1_000);
        let to = path(&a, b.local_address());
        for train in packets.chunks(10) {
            assert!(a.begin(to, 1_000).unwrap() >= 10);
            for packet in train {
                a.room()[..1_000].copy_from_slice(packet);
                a.push(1_000);
            }
            a.end();
        }
        a.flush().unwrap();
        assert_eq!(bytes_of(receive(&mut b, 40)), packets, "{without:?}");
        let (calls, polled) = (a.counters().tx.calls, b.counters().rx.calls);
        assert!(if sent == 1 { calls <= 2 } else { calls >= sent }, "{without:?}: {calls} calls to send");
        assert!(heard == 1 || polled >= heard, "{without:?}: {polled} calls to receive");
        let found = (a.capabilities().segments_offloaded, b.capabilities().coalesces);
        assert_eq!(found, capabilities, "{without:?}");
    }
}

/// Or else the peer hears of a buffer's worth of datagrams at once, and stands still until it does.
#[test]
fn a_poll_takes_a_part_of_what_a_small_buffer_holds() {
    for variant in [Variant::Mmsg, Variant::Plain] {
        let mut from = port("127.0.0.1:0", variant);
        let usual = BindOptions::new("127.0.0.1:0".parse().unwrap(), variant);
        let mut to = UdpPort::bind(&BindOptions { receive_buffer: 106_496, ..usual }).unwrap();
        let path = path(&from, to.local_address());
        send(&mut from, path, &numbered(60, 1_400));
        from.flush().unwrap();
        let deadline = to.now() + Duration::from_secs(2);
        to.wait(Some(deadline)).unwrap();
        let polls: Vec<usize> =
            core::iter::from_fn(|| Some(to.poll().unwrap())).take_while(|taken| *taken > 0).collect();
        assert_eq!(polls.iter().sum::<usize>(), 60, "{variant} {polls:?}");
        assert!(polls.iter().all(|taken| *taken <= 22), "a quarter of 90: {variant} {polls:?}");
    }
}

/// Deleted, a process could read datagrams of the one that has taken its place, spin because of them, or fall silent with them.
#[test]
fn a_port_whose_intake_is_closed_leaves_arrivals_to_another_process_and_still_sends() {
    for variant in Variant::ALL {
        let mut old = port("127.0.0.1:0", variant);
        let options = BindOptions::new("0.0.0.0:0".parse().unwrap(), variant);
        let mut new = UdpPort::adopt(old.socket().try_clone_to_owned().unwrap(), &options).unwrap();
        assert_eq!(new.local_address(), old.local_address());
        assert_eq!((new.variant(), new.granted), (old.variant(), old.granted));
        old.set_intake(Intake::Closed);
        assert_eq!((old.intake(), new.intake()), (Intake::Closed, Intake::Open));
        let mut client = port("127.0.0.1:0", variant);
        let way = path(&client, old.local_address());
        send(&mut client, way, &numbered(5, 700));
        client.flush().unwrap();
        let deadline = old.now() + Duration::from_millis(50);
        old.wait(Some(deadline)).unwrap();
        assert!(old.now() >= deadline && old.poll().unwrap() == 0, "{variant}");
        let way = path(&old, client.local_address());
        send(&mut old, way, &numbered(3, 500));
        old.flush().unwrap();
        assert_eq!(bytes_of(receive(&mut client, 3)), numbered(3, 500), "{variant}");
        assert_eq!(bytes_of(receive(&mut new, 5)), numbered(5, 700), "{variant}");
        old.set_intake(Intake::Open);
        let way = path(&client, old.local_address());
        send(&mut client, way, &numbered(1, 90));
        client.flush().unwrap();
        assert_eq!(bytes_of(receive(&mut old, 1)), numbered(1, 90), "{variant}");
    }
}

/// Deleted, a service manager could pass something else, and the worker fail later, without a word about why.
#[test]
fn what_is_no_bound_socket_of_udp_is_refused() {
    let options = BindOptions::new("127.0.0.1:0".parse().unwrap(), Variant::Gso);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let unbound = Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
    for socket in [listener.into(), unbound.into(), std::fs::File::open("/dev/null").unwrap().into()] {
        let refused = UdpPort::adopt(socket, &options).unwrap_err().to_string();
        assert!(refused.starts_with("cannot "), "{refused}");
    }
}
