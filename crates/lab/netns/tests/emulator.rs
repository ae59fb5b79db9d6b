//! The link emulator between real network namespaces: what the hosts at its ends see.
//!
//! Time is the machine's here, which may have other things to do: nothing comes too early, and how late it may come is bounded
//! loosely. The exact times are those of `netns::emulator::link_state::tests`, by a clock of their own.
#![expect(clippy::disallowed_methods, reason = "the tests measure time")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail like tests")]

mod wire;

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use netns::emulator::{Direction, Emulator, EmulatorError, EmulatorOptions, LinkOptions};
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrIn, sendmsg, setsockopt, sockopt};
use wire::{Wire, is_root};

/// Payload of a datagram that fills 1,500 bytes of IPv4.
const FULL: u16 = 1_472;

fn link(change: impl FnOnce(&mut LinkOptions)) -> LinkOptions {
    let mut link = LinkOptions::default();
    change(&mut link);
    link
}

fn to_right(link: LinkOptions) -> EmulatorOptions {
    EmulatorOptions { to_right: link, ..EmulatorOptions::default() }
}

/// A socket at the left that is connected to one at the right; reads give up after five seconds.
fn sockets(wire: &Wire, is_ipv6: bool) -> (UdpSocket, UdpSocket) {
    let [left, right] = if is_ipv6 { ["[fd09::1]", "[fd09::2]"] } else { ["10.9.0.1", "10.9.0.2"] };
    let server = wire.right.run(move || UdpSocket::bind(format!("{right}:7000")).unwrap());
    let client = wire.left.run(move || UdpSocket::bind(format!("{left}:40000")).unwrap());
    client.connect(server.local_addr().unwrap()).unwrap();
    for socket in [&client, &server] {
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        setsockopt(socket, sockopt::RcvBufForce, &(64 << 20)).unwrap();
    }
    (client, server)
}

/// A read with a time limit is not begun again by itself after the process was stopped and continued.
fn insist<T>(mut read: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// The round-trip time of one datagram.
fn ping(client: &UdpSocket, server: &UdpSocket) -> Duration {
    let mut bytes = [0; 64];
    let begins = Instant::now();
    client.send(b"ping").unwrap();
    let (_, from) = insist(|| server.recv_from(&mut bytes)).expect("the ping arrives");
    server.send_to(b"pong", from).unwrap();
    insist(|| client.recv(&mut bytes)).expect("the pong arrives");
    begins.elapsed()
}

/// Sends `bytes` as one super-packet of datagrams of `segment` bytes.
fn send_train(socket: &UdpSocket, bytes: &[u8], segment: u16) {
    let control = [ControlMessage::UdpGsoSegments(&segment)];
    sendmsg::<SockaddrIn>(socket.as_raw_fd(), &[IoSlice::new(bytes)], &control, MsgFlags::empty(), None)
        .expect("the kernel sends");
}

/// The lengths of what can be read until nothing comes for a while; super-packets stay merged.
fn read_all(socket: &UdpSocket) -> Vec<Vec<u8>> {
    setsockopt(socket, sockopt::UdpGroSegment, &true).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(400))).unwrap();
    let mut bytes = vec![0; 65_536];
    std::iter::from_fn(|| {
        let length = insist(|| socket.recv(&mut bytes)).ok()?;
        Some(bytes[..length].to_vec())
    })
    .collect()
}

/// Waits until `is_so`, at most ten seconds.
fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let begins = Instant::now();
    while !is_so() {
        assert!(begins.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn right_counters(emulator: &Emulator) -> netns::emulator::Counters {
    emulator.counters(Direction::ToRight)
}

/// Would break: a datagram would arrive before its time, which no measurement could forgive; or far too late.
#[test]
fn the_delay_is_kept_and_changes_while_running() {
    if !is_root() {
        return;
    }
    let wire = Wire::new(1500);
    let slow = link(|link| link.delay = Duration::from_millis(40));
    let emulator =
        wire.emulate(EmulatorOptions { to_right: slow.clone(), to_left: slow, ..EmulatorOptions::default() });
    for is_ipv6 in [false, true] {
        let (client, server) = sockets(&wire, is_ipv6);
        let best = (0..5).map(|_| ping(&client, &server)).min().unwrap();
        assert!(best >= Duration::from_millis(80), "{best:?} is less than the delay");
        assert!(best < Duration::from_millis(160), "{best:?} is much more than the delay");
    }
    emulator.set(Direction::ToLeft, &LinkOptions::default()).unwrap();
    let (client, server) = sockets(&wire, false);
    let best = (0..5).map(|_| ping(&client, &server)).min().unwrap();
    assert!(
        (Duration::from_millis(40)..Duration::from_millis(80)).contains(&best),
        "{best:?} after the change"
    );
    assert_eq!(emulator.failure(), None);
}

/// Would break: super-packets would be cut on their way, and 5 Gbit/s be out of reach.
#[test]
fn super_packets_cross_whole() {
    if !is_root() {
        return;
    }
    let wire = Wire::new(1500);
    let emulator = wire.emulate(EmulatorOptions::default());
    for is_ipv6 in [false, true] {
        let (client, server) = sockets(&wire, is_ipv6);
        // The kernel cuts what arrives before this.
        setsockopt(&server, sockopt::UdpGroSegment, &true).unwrap();
        let bytes: Vec<u8> = (0..44 * 1_400 + 300).map(|n| (n % 251) as u8).collect();
        send_train(&client, &bytes, 1_400);
        let read = read_all(&server);
        assert_eq!(read.iter().map(Vec::len).collect::<Vec<_>>(), [bytes.len()]);
        assert_eq!(read[0], bytes);
    }
    eventually("all is counted", || right_counters(&emulator).datagrams >= 90);
    // The kernel may add a few of its own, such as multicast reports.
    let frames = right_counters(&emulator).sent_frames;
    assert!(frames < 20, "{frames} frames for two super-packets");
}

/// Would break: an AF_XDP program at the far end, which cannot take super-packets, would get nothing at all.
#[test]
fn super_packets_are_cut_for_ends_that_cannot_take_them() {
    if !is_root() {
        return;
    }
    let wire = Wire::new(1500);
    let emulator = wire.emulate(EmulatorOptions::default());
    wire.wire.run(|| {
        for feature in ["tx-udp-segmentation", "tx-checksum-ip-generic"] {
            netlink::ethtool::set_feature("wr", feature, netlink::ethtool::Switch::Off).unwrap();
        }
    });
    for is_ipv6 in [false, true] {
        let (client, server) = sockets(&wire, is_ipv6);
        setsockopt(&server, sockopt::UdpGroSegment, &true).unwrap();
        send_train(&client, &[9; 3_100], 1_400);
        assert_eq!(read_all(&server).iter().map(Vec::len).collect::<Vec<_>>(), [1_400, 1_400, 300]);
    }
    assert_eq!(right_counters(&emulator).refused, 0);
}

/// Would break: nothing but UDP could be compared over the link.
#[test]
fn tcp_crosses_too() {
    if !is_root() {
        return;
    }
    let wire = Wire::new(1500);
    let emulator = wire.emulate(to_right(link(|link| link.loss = 0.001)));
    let listener = wire.right.run(|| TcpListener::bind("10.9.0.2:7000").unwrap());
    let sending = wire.left.run(|| TcpStream::connect("10.9.0.2:7000").unwrap());
    let bytes: Vec<u8> = (0..8_000_000_u32).map(|n| (n % 251) as u8).collect();
    let sent = bytes.clone();
    let sender = std::thread::spawn(move || (&sending).write_all(&sent));
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    sender.join().unwrap().unwrap();
    assert!(received == bytes, "{} of {} bytes", received.len(), bytes.len());
    let counters = right_counters(&emulator);
    assert!(counters.bytes / counters.frames > 3_000, "super-packets were cut: {counters:?}");
}

/// Would break: a loss would take a whole super-packet, or spoil the datagrams beside it.
#[test]
fn a_loss_takes_single_datagrams_out_of_super_packets() {
    if !is_root() {
        return;
    }
    let wire = Wire::new(1500);
    let emulator = wire.emulate(to_right(link(|link| (link.loss, link.seed) = (0.01, 4))));
    for is_ipv6 in [false, true] {
        let (client, server) = sockets(&wire, is_ipv6);
        let before = right_counters(&emulator).lost;
        // Every byte of a datagram tells which one it is.
        for train in 0..50_u8 {
            let bytes: Vec<u8> = (0..40_u8).flat_map(|n| [[train, n]; 700]).flatten().collect();
            send_train(&client, &bytes, 1_400);
        }
        let datagrams: Vec<Vec<u8>> =
            read_all(&server).iter().flat_map(|read| read.chunks(1_400).map(<[u8]>::to_vec)).collect();
        eventually("all frames are counted", || right_counters(&emulator).datagrams >= 2_000);
        let lost = right_counters(&emulator).lost - before;
        assert_eq!(datagrams.len() as u64, 2_000 - lost);
        assert!((5..60).contains(&lost), "{lost} of 2000 lost");
        for datagram in &datagrams {
            assert!(
                datagram.len() == 1_400 && datagram.chunks(2).all(|pair| pair == &datagram[..2]),
                "a datagram is mixed up"
            );
        }
        assert!(datagrams.windows(2).all(|pair| pair[0][..2] < pair[1][..2]), "the order changed");
    }
}

/// Would break: a 50 Mbit/s link would be another one, or a full queue would not drop.
#[test]
fn the_rate_is_kept_and_the_queue_is_bounded() {
    if !is_root() {
        return;
    }
    let wire = Wire::new(1500);
    let slow = link(|link| (link.rate_bits, link.queue_bytes) = (Some(50_000_000), 8 << 20));
    let emulator = wire.emulate(to_right(slow.clone()));
    let (client, server) = sockets(&wire, false);
    // 5 MB of Ethernet frames take 0.8 s.
    let datagrams = 5_000_000 / (usize::from(FULL) + 42);
    let train = vec![1; 40 * usize::from(FULL)];
    for _ in 0..datagrams / 40 {
        send_train(&client, &train, FULL);
    }
    let mut bytes = [0; 2_048];
    insist(|| server.recv(&mut bytes)).unwrap();
    let begins = Instant::now();
    let expected = datagrams / 40 * 40;
    (1..expected).for_each(|_| {
        assert_eq!(insist(|| server.recv(&mut bytes)).expect("nothing is lost"), usize::from(FULL))
    });
    let mbits = (expected - 1) as f64 * f64::from(FULL + 42) * 8.0 / 1e6 / begins.elapsed().as_secs_f64();
    assert!((25.0..70.0).contains(&mbits), "{mbits} Mbit/s");
    // All were sent within moments, so the last has waited for nearly all of the time; the other direction has no rate.
    let waits = emulator.waits(Direction::ToRight);
    let longest = Duration::from(waits.percentile(100));
    assert!(waits.total() >= expected as u64 && longest > Duration::from_millis(200), "{longest:?}");
    assert!(longest < Duration::from_millis(801), "{longest:?}");
    assert_eq!(emulator.waits(Direction::ToLeft).total(), 0);
    emulator.set(Direction::ToRight, &LinkOptions { queue_bytes: 10 * 1_514, ..slow }).unwrap();
    send_train(&client, &train, FULL);
    let arrived: usize = read_all(&server).iter().map(|read| read.len() / usize::from(FULL)).sum();
    assert!((10..=12).contains(&arrived), "{arrived} of 40 found room in a queue for ten");
    assert_eq!(right_counters(&emulator).overflowed, 40 - arrived as u64);
}

/// Would break: path-MTU discovery would be tested against a link without a black hole.
#[test]
fn packets_above_a_size_vanish() {
    if !is_root() {
        return;
    }
    let wire = Wire::new(1500);
    let emulator = wire.emulate(EmulatorOptions::default());
    let (client, server) = sockets(&wire, false);
    let lengths = |server: &UdpSocket| read_all(server).iter().map(Vec::len).collect::<Vec<_>>();
    client.send(&[0; 1_300]).unwrap();
    assert_eq!(lengths(&server), [1_300]);
    emulator.set(Direction::ToRight, &link(|link| link.drops_above = Some(1_300))).unwrap();
    // 1,272 bytes and 28 of headers are 1,300.
    client.send(&[0; 1_273]).unwrap();
    client.send(&[0; 1_272]).unwrap();
    assert_eq!(lengths(&server), [1_272]);
    // Of a train whose datagrams are too long only the rest at its end is left.
    send_train(&client, &[0; 3_100], 1_400);
    assert_eq!(lengths(&server), [300]);
    eventually("all is counted", || right_counters(&emulator).black_holed == 3);
}

/// Would break: no test could make a client's port change in the middle of a transfer.
#[test]
fn a_client_changes_its_port_in_the_middle() {
    if !is_root() {
        return;
    }
    let wire = Wire::new(1500);
    let emulator = wire.emulate(EmulatorOptions::default());
    for is_ipv6 in [false, true] {
        let (client, server) = sockets(&wire, is_ipv6);
        let mut bytes = [0; 2_048];
        let port_seen = || {
            client.send(&[0; 1_000]).unwrap();
            let (_, from) = insist(|| server.recv_from(&mut [0; 2_048])).expect("the datagram arrives");
            server.send_to(b"reply", from).unwrap();
            assert_eq!(insist(|| client.recv(&mut [0; 64])).expect("the reply arrives"), 5);
            from.port()
        };
        let first = port_seen();
        emulator.rebind(3_000);
        let ports: Vec<u16> = (0..5).map(|_| port_seen()).collect();
        assert_eq!(ports[..2], [first; 2], "not before 3,000 bytes");
        assert!(ports[2] != first && ports[2..] == [ports[2]; 3], "{ports:?} after {first}");
        // A super-packet goes through the same translation, its checksum not complete yet.
        send_train(&client, &[3; 2_800], 1_400);
        let (_, from) = insist(|| server.recv_from(&mut bytes)).expect("the train arrives");
        assert_eq!(from.port(), ports[2]);
        insist(|| server.recv_from(&mut bytes)).expect("all of it");
        emulator.rebind(0);
        assert_ne!(port_seen(), ports[2]);
        let stale = emulator.counters(Direction::ToLeft).stale;
        server
            .send_to(b"too late", std::net::SocketAddr::new(client.local_addr().unwrap().ip(), ports[2]))
            .unwrap();
        eventually("the old port is forgotten", || emulator.counters(Direction::ToLeft).stale == stale + 1);
    }
}

/// Would break: a long experiment would run out of memory.
#[test]
fn memory_does_not_grow() {
    if !is_root() {
        return;
    }
    let resident = || -> u64 {
        let status = std::fs::read_to_string("/proc/self/statm").unwrap();
        status.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4_096
    };
    let wire = Wire::new(1500);
    let emulator =
        wire.emulate(to_right(link(|link| (link.loss, link.delay) = (0.02, Duration::from_micros(500)))));
    let (client, server) = sockets(&wire, false);
    server.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
    setsockopt(&server, sockopt::UdpGroSegment, &true).unwrap();
    let train = vec![1; 60_000];
    let mut bytes = vec![0; 65_536];
    let mut round = || {
        for _ in 0..400 {
            send_train(&client, &train, 1_400);
            client.send(&[0; 50]).unwrap();
            while insist(|| server.recv(&mut bytes)).is_ok_and(|length| length != 50) {}
        }
    };
    round();
    let warm = resident();
    (0..5).for_each(|_| round());
    let grown = resident().saturating_sub(warm);
    // Other tests run in this process at the same time.
    assert!(grown < 64 << 20, "{grown} bytes more after 120 MB");
    assert!(right_counters(&emulator).bytes > 100_000_000);
    assert_eq!(right_counters(&emulator).missed, 0);
}

/// Would break: a dropped emulator would go on passing frames, or its drop would hang; errors would not tell what to do.
#[test]
fn it_stops_when_dropped_and_says_what_is_wrong() {
    if !is_root() {
        return;
    }
    let wire = Wire::new(1500);
    let emulator = wire.emulate(to_right(link(|link| link.delay = Duration::from_secs(30))));
    let (client, server) = sockets(&wire, false);
    client.send(b"under way").unwrap();
    eventually("it is held", || right_counters(&emulator).frames >= 1);
    let begins = Instant::now();
    drop(emulator);
    assert!(begins.elapsed() < Duration::from_secs(10), "it does not wait for what it holds");
    client.send(b"no link carries this").unwrap();
    assert_eq!(read_all(&server).len(), 0);
    let missing = wire.wire.run(|| {
        Emulator::start(&EmulatorOptions {
            left: "wl".into(),
            right: "none".into(),
            ..EmulatorOptions::default()
        })
    });
    let error = missing.expect_err("no such interface");
    assert!(
        matches!(&error, EmulatorError::Interface(name, _) if name == "none")
            && error.to_string().contains("create it"),
        "{error}"
    );
    let senseless = to_right(link(|link| link.loss = 1.5));
    assert!(matches!(Emulator::start(&senseless), Err(EmulatorError::Options(_))));
}

/// Would break: datagrams above the MTU of the host that gets them would pass as long as they come in a super-packet, and a
/// search for the path's MTU would find what no router carries.
#[test]
fn a_host_gets_no_packet_above_its_mtu_alone_or_in_a_train() {
    if !is_root() {
        return;
    }
    let wire = Wire::new(1500);
    let emulator = wire.emulate(EmulatorOptions::default());
    let (client, server) = sockets(&wire, false);
    wire.right.ip("link set right0 mtu 1400");
    // The emulator looks for new MTUs a few times a second.
    std::thread::sleep(Duration::from_millis(200));
    // Each train ends with a short datagram, the only one that passes of the first.
    send_train(&client, &[1; 3 * 1_400 + 100], 1_400);
    send_train(&client, &[2; 3 * 1_372 + 100], 1_372);
    client.send(&[3; 1_373]).unwrap();
    client.send(&[4; 1_372]).unwrap();
    let mut read: Vec<u8> = read_all(&server).concat();
    read.sort_unstable();
    let lengths = [1, 2, 3, 4].map(|kind| read.iter().filter(|byte| **byte == kind).count());
    assert_eq!(lengths, [100, 3 * 1_372 + 100, 0, 1_372]);
    assert_eq!(right_counters(&emulator).refused, 4);
}
