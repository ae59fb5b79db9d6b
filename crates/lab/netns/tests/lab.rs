//! What a lab promises: two sides that talk, over a link as ordered, and nothing of it left afterwards.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use netns::emulator::{Direction, LinkOptions};
use netns::{Lab, LabError, LabOptions, Switch};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Builds a lab; `None`, with a word about it, where that is not allowed.
fn build(options: &LabOptions) -> Option<Lab> {
    match Lab::new(options) {
        Err(LabError::NotAllowed) => {
            requirements::missing(LabError::NotAllowed);
            None
        }
        built => Some(built.unwrap()),
    }
}

fn socket(address: IpAddr) -> UdpSocket {
    let socket = UdpSocket::bind((address, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
}

/// Waits until `gone` holds; false after five seconds.
fn soon(gone: impl Fn() -> bool) -> bool {
    (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        gone()
    })
}

/// Sends `length` bytes there and back.
fn ping(lab: &Lab, length: usize) {
    for (server, client) in lab.server().addresses().into_iter().zip(lab.client().addresses()) {
        let server = lab.server().run(|| socket(server));
        let client = lab.client().run(|| socket(client));
        let mut buffer = vec![0; length + 1];
        client.send_to(&vec![7; length], server.local_addr().unwrap()).unwrap();
        let (received, from) = server.recv_from(&mut buffer).unwrap();
        assert_eq!((received, from), (length, client.local_addr().unwrap()));
        server.send_to(&buffer[..received], from).unwrap();
        assert_eq!(client.recv(&mut buffer).unwrap(), length);
    }
}

#[test]
fn both_sides_talk_over_ipv4_and_ipv6() {
    for known_neighbours in [true, false] {
        let Some(lab) = build(&LabOptions { known_neighbours, ..LabOptions::default() }) else { return };
        ping(&lab, 1200);
    }
}

#[test]
fn an_emulated_link_delays_and_counts() {
    let delay = Duration::from_millis(20);
    let link = Some(LinkOptions { delay, ..LinkOptions::default() });
    let Some(lab) = build(&LabOptions { link, ..LabOptions::default() }) else { return };
    let start = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    ping(&lab, 1200);
    let elapsed = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic) - start;
    // once over IPv4 and once over IPv6, there and back
    assert!(Duration::try_from(elapsed).unwrap() >= 4 * delay, "{elapsed:?}");
    let emulator = lab.emulator().unwrap();
    for direction in [Direction::ToRight, Direction::ToLeft] {
        let counters = emulator.counters(direction);
        assert!(counters.datagrams >= 2 && counters.lost == 0, "{counters:?}");
    }
    emulator.set(Direction::ToRight, &LinkOptions { loss: 1.0, ..LinkOptions::default() }).unwrap();
    let server = lab.server().run(|| socket(lab.server().ipv4().into()));
    server.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let client = lab.client().run(|| socket(lab.client().ipv4().into()));
    client.send_to(b"lost", server.local_addr().unwrap()).unwrap();
    assert!(server.recv(&mut [0; 8]).is_err());
    assert!(soon(|| emulator.counters(Direction::ToRight).lost == 1));
}

#[test]
fn the_link_is_as_ordered() {
    let options =
        LabOptions { mtu: 65_535, queues: 3, udp_segmentation: Switch::Off, ..LabOptions::default() };
    let Some(lab) = build(&options) else { return };
    for side in [lab.server(), lab.client()] {
        let (link, feature) = side.run(|| {
            let feature = netlink::ethtool::feature(side.interface(), "tx-udp-segmentation").unwrap();
            (netlink::link_by_name(side.interface()).unwrap(), feature)
        });
        assert_eq!((link.mtu, link.rx_queues, link.tx_queues), (65_535, 3, 3));
        assert_eq!((link.mac, link.is_running), (Some(side.mac()), true));
        assert_eq!(feature.switch, Switch::Off);
        side.set_offload("tx-udp-segmentation", Switch::On).unwrap();
    }
    ping(&lab, 65_000);
}

#[test]
fn loopback_works_on_each_side_and_sides_are_apart() {
    let Some(lab) = build(&LabOptions::default()) else { return };
    let address: SocketAddr = "127.0.0.1:4433".parse().unwrap();
    // the same address and port on both sides: two machines
    let _server = lab.server().run(|| UdpSocket::bind(address)).unwrap();
    let client = lab.client().run(|| UdpSocket::bind(address)).unwrap();
    lab.client().run(|| {
        socket("::1".parse().unwrap()).send_to(b"x", "[::1]:9").unwrap();
        socket("127.0.0.1".parse().unwrap()).send_to(b"x", address).unwrap();
    });
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    assert_eq!(client.recv(&mut [0; 8]).unwrap(), 1);
}

#[test]
fn options_out_of_range_are_refused_by_name() {
    for (options, name) in [
        (LabOptions { mtu: 1279, ..LabOptions::default() }, "mtu"),
        (LabOptions { mtu: 65_536, ..LabOptions::default() }, "mtu"),
        (LabOptions { queues: 0, ..LabOptions::default() }, "queues"),
        (LabOptions { queues: 65, ..LabOptions::default() }, "queues"),
    ] {
        assert!(Lab::new(&options).unwrap_err().to_string().starts_with(name));
    }
}

#[test]
fn threads_and_panics_come_through() {
    let Some(lab) = build(&LabOptions::default()) else { return };
    let inside = lab.client().start(|| netlink::link_by_name("client0").unwrap().mtu).unwrap();
    assert_eq!(inside.join().unwrap(), 1500);
    let panic =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| lab.client().run(|| panic!("mine"))));
    assert_eq!(panic.unwrap_err().downcast_ref::<&str>(), Some(&"mine"));
    assert!(netlink::link_by_name("client0").is_err(), "the caller's thread never moved");
}

#[test]
fn processes_live_inside_and_end_with_the_lab() {
    let Some(lab) = build(&LabOptions::default()) else { return };
    let mut child = lab
        .server()
        .spawn(Command::new("/bin/sh").args(["-c", "cat /proc/self/net/dev"]).stdout(Stdio::piped()))
        .unwrap();
    let mut seen = String::new();
    child.stdout.take().unwrap().read_to_string(&mut seen).unwrap();
    assert!(child.wait().unwrap().success() && seen.contains("server0"), "{seen}");
    // one that goes on, with a child of its own
    let script = "trap '' TERM; sleep 600 & echo $!; wait";
    let mut command = Command::new("/bin/sh");
    let mut child = lab.client().spawn(command.args(["-c", script]).stdout(Stdio::piped())).unwrap();
    let mut grandchild = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut grandchild).unwrap();
    let grandchild = format!("/proc/{}", grandchild.trim());
    assert!(Path::new(&grandchild).exists());
    drop(lab);
    assert!(!child.wait().unwrap().success(), "killed");
    assert!(soon(|| !is_running(&grandchild)));
}

/// Whether a process has not ended; one that ended and was not waited for has no namespace any more.
fn is_running(process: &str) -> bool {
    std::fs::read_link(format!("{process}/ns/net")).is_ok()
}

/// Joins a veth to a lab's namespace, so that its vanishing here proves that the namespace there has ended.
fn tie(namespace: &Path, name: &str) {
    let far = format!("far-{name}");
    let options = netlink::VethOptions { names: [name, &far], queues: 1, mtu: 1500, macs: None };
    netlink::create_veth(&options).unwrap();
    let far = netlink::link_by_name(&far).unwrap().index;
    netlink::move_to_namespace(far, File::open(namespace).unwrap()).unwrap();
    assert!(netlink::link_by_name(name).is_ok());
}

#[test]
fn a_dropped_lab_leaves_nothing() {
    let (Some(outer), Some(lab)) = (build(&LabOptions::default()), build(&LabOptions::default())) else {
        return;
    };
    outer.server().run(|| {
        tie(&lab.server().path(), "server");
        tie(&lab.client().path(), "client");
        drop(lab);
        assert!(
            soon(|| netlink::link_by_name("server").is_err() && netlink::link_by_name("client").is_err())
        );
    });
}

/// Not a test: the process that the next one kills. It builds a lab with a process in it, tells where they are, waits.
#[test]
#[ignore = "runs as a child of the next test"]
fn owner_of_a_lab() {
    let link = Some(LinkOptions::default());
    let Some(lab) = build(&LabOptions { link, ..LabOptions::default() }) else { return };
    let mut child = lab.client().spawn(Command::new("sleep").arg("60")).unwrap();
    println!("\n{} {} {}", child.id(), lab.server().path().display(), lab.client().path().display());
    child.wait().unwrap();
}

#[test]
fn a_killed_owner_leaves_nothing() {
    let Some(outer) = build(&LabOptions::default()) else { return };
    outer.server().run(|| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "owner_of_a_lab", "--ignored", "--nocapture", "--test-threads=1"]);
        let mut owner = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(owner.stdout.take().unwrap()).lines().map(Result::unwrap);
        let line = { lines }.find(|line| line.contains("/proc/")).unwrap();
        let [sleeper, server, client] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let sleeper = format!("/proc/{sleeper}");
        tie(Path::new(server), "server");
        tie(Path::new(client), "client");
        assert!(is_running(&sleeper));
        owner.kill().unwrap();
        owner.wait().unwrap();
        assert!(soon(|| netlink::link_by_name("server").is_err()), "the server's namespace has ended");
        assert!(soon(|| netlink::link_by_name("client").is_err()), "the client's namespace has ended");
        assert!(!is_running(&sleeper), "its process was killed");
    });
}
