//! Opening ports: again at once, after a kill, where it cannot work, and over the loopback interface.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use base::net::Ecn;
use base::sink::PacketSink;
use base::time::Duration;
use common::{SERVER, assert_no_leak, datagram, lab, open, path, receive, send, server, udp_client};
use datapath::{Port, Rx, Tx};
use netns::Lab;
use rustix::time::{ClockId, clock_gettime};
use udp::{BindOptions, UdpPort, Variant};
use xdp::{BusyPoll, Mode, Options, XdpError};

/// One datagram from a kernel client gets through.
fn assert_works(lab: &Lab, server: &mut xdp::XdpPort) {
    let mut client = udp_client(lab, SocketAddr::new(lab.client().ipv4().into(), 0));
    let to = SocketAddr::new(lab.server().ipv4().into(), SERVER);
    let from = client.local_address();
    send(&mut client, path(from, to, Ecn::Ect0), &[datagram(1, 100)]);
    assert_eq!(receive(server, 1).len(), 1, "{:?}", server.counters());
}

#[test]
fn a_port_that_was_just_closed_can_be_opened_again_at_once() {
    let Some(lab) = lab(1) else { return };
    for round in 0..10 {
        let mode = if round % 2 == 0 { Mode::Driver } else { Mode::Generic };
        let mut port = server(&lab, "0.0.0.0:4433", mode);
        assert_works(&lab, &mut port);
    }
}

#[test]
fn a_measurement_without_a_port_waits_for_its_queue_too() {
    let Some(lab) = lab(1) else { return };
    let mut port = server(&lab, "0.0.0.0:4433", Mode::Driver);
    assert_works(&lab, &mut port);
    let local = SocketAddr::new(lab.server().ipv4().into(), SERVER);
    let peer = SocketAddr::new(lab.client().ipv4().into(), 9);
    let holder = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        drop(port);
    });
    let path = path(local, peer, Ecn::NotEct);
    let opened = lab.server().run(|| xdp::raw::RawSender::open("server0", &path, 1_200).map(|_| ()));
    holder.join().unwrap();
    opened.unwrap();
}

/// Run by the test below, in a process of its own, which is killed.
#[test]
#[ignore = "holds a port until it is killed"]
fn hold_a_port() {
    let ports = open("server0", "0.0.0.0:4433", Mode::Driver).unwrap();
    println!("open {}", ports.len());
    std::thread::sleep(std::time::Duration::from_secs(20));
}

#[test]
fn after_a_kill_the_interface_is_free_again() {
    let Some(lab) = lab(1) else { return };
    let test = std::env::current_exe().unwrap();
    let mut command = Command::new(test);
    command.args(["--ignored", "--exact", "hold_a_port", "--nocapture"]).stdout(Stdio::piped());
    let mut child = lab.server().spawn(&mut command).unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("open 1")), "the child has a port");
    let other = lab.server().run(|| open(lab.server().interface(), "0.0.0.0:4434", Mode::Driver));
    let refusal = other.unwrap_err().to_string();
    assert!(refusal.contains("XDP program"), "while the child lives the interface is taken: {refusal}");
    child.kill().unwrap();
    child.wait().unwrap();
    let mut port = server(&lab, "0.0.0.0:4433", Mode::Driver);
    assert_works(&lab, &mut port);
}

#[test]
fn what_cannot_work_is_refused_with_advice() {
    let Some(lab) = lab(1) else { return };
    let interface = lab.server().interface();
    let refusal = |options: Options| {
        let error = lab.server().run(|| xdp::open(&options)).unwrap_err();
        println!("{error}");
        error
    };
    let any: SocketAddr = "0.0.0.0:4433".parse().unwrap();
    assert!(matches!(refusal(Options::new("eth77", any)), XdpError::NoInterface { .. }));
    let loopback = Options::new("lo", "127.0.0.1:4433".parse().unwrap());
    assert!(matches!(refusal(loopback), XdpError::Loopback { .. }));
    let mut queues = Options::new(interface, any);
    queues.queues = Some(0..3);
    assert!(matches!(refusal(queues), XdpError::NoQueue { queue: 1, there: 1, .. }));
    let mut large = Options::new(interface, any);
    large.largest_payload = 8972;
    assert!(matches!(refusal(large), XdpError::FrameTooSmall { payload: 8972, .. }));
    let mut zero_copy = Options::new(interface, any);
    zero_copy.mode = Mode::ZeroCopy;
    assert!(
        matches!(refusal(zero_copy), XdpError::NoMode { mode: Mode::ZeroCopy, .. }),
        "veth always copies"
    );
    let _taken = lab.server().run(|| std::net::UdpSocket::bind(any)).unwrap();
    assert!(matches!(refusal(Options::new(interface, any)), XdpError::Port { .. }));
    // None of these left anything behind.
    let mut port = server(&lab, "0.0.0.0:4434", Mode::Auto);
    assert_eq!(port.mode(), Mode::Driver);
    assert_eq!(port.poll().unwrap(), 0);
    let second = lab.server().run(|| open(interface, "0.0.0.0:4435", Mode::Auto)).unwrap_err();
    assert!(second.to_string().contains("XDP program"), "{second}");
    drop(port);
    lab.server().run(|| {
        Command::new("ip").args(["link", "set", "dev", interface, "down"]).status().unwrap();
    });
    assert!(matches!(
        refusal(Options::new(interface, "0.0.0.0:4436".parse().unwrap())),
        XdpError::Down { .. }
    ));
}

/// A process without privileges: its refusal is read from its standard output.
#[test]
#[ignore = "run by the test below without privileges"]
fn open_without_privileges() {
    let keep = rustix::thread::capabilities(None).unwrap();
    let none = rustix::thread::CapabilitySet::empty();
    let sets = rustix::thread::CapabilitySets { effective: none, ..keep };
    rustix::thread::set_capabilities(None, sets).unwrap();
    println!("refused: {}", open("server0", "0.0.0.0:4433", Mode::Auto).unwrap_err());
}

#[test]
fn without_privileges_the_refusal_names_the_capabilities() {
    let Some(lab) = lab(1) else { return };
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "open_without_privileges", "--nocapture"]).stdout(Stdio::piped());
    let child = lab.server().spawn(&mut command).unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains("CAP_NET_ADMIN") && said.contains("CAP_BPF"), "{said}");
}

#[test]
fn over_the_loopback_interface_ipv6_works_in_generic_mode() {
    let Some(lab) = lab(1) else { return };
    lab.server().run(|| {
        let mut server = open("lo", "[::1]:4433", Mode::Auto).unwrap().remove(0);
        assert_eq!(server.mode(), Mode::Generic);
        let bind = BindOptions::new("[::1]:0".parse().unwrap(), Variant::Mmsg);
        let mut client = UdpPort::bind(&bind).unwrap();
        let to: SocketAddr = "[::1]:4433".parse().unwrap();
        let from = client.local_address();
        let train: Vec<_> = (0..64).map(|number| datagram(number, 1452)).collect();
        send(&mut client, path(from, to, Ecn::Ect1), &train);
        let arrived = receive(&mut server, 64);
        assert!(arrived.iter().map(|(bytes, ..)| bytes).eq(&train), "{} of 64", arrived.len());
        send(&mut server, path(to, from, Ecn::Ect0), &train);
        let arrived = receive(&mut client, 64);
        assert!(arrived.iter().map(|(bytes, ..)| bytes).eq(&train), "{} of 64 back", arrived.len());
        assert_no_leak(&server);
    });
}

#[test]
fn busy_polling_carries_the_same() {
    let Some(lab) = lab(1) else { return };
    let mut options = Options::new(lab.server().interface(), "0.0.0.0:4433".parse().unwrap());
    options.busy_poll = Some(BusyPoll::default());
    let mut port = lab.server().run(|| xdp::open(&options)).unwrap().remove(0);
    for _ in 0..20 {
        assert_works(&lab, &mut port);
    }
    assert_no_leak(&port);
}

#[test]
fn a_port_whose_interface_is_removed_says_so() {
    let Some(lab) = lab(1) else { return };
    let mut sleeping = server(&lab, "0.0.0.0:4433", Mode::Driver);
    lab.server().run(|| {
        Command::new("ip").args(["link", "del", "dev", "server0"]).status().unwrap();
    });
    let told = (0..5).find_map(|_| sleeping.wait(None).err());
    assert!(told.is_some_and(|error| error.to_string().contains("interface")), "it sleeps on");
    let (from, to) = ("198.18.0.1:4433".parse().unwrap(), "198.18.0.2:9".parse().unwrap());
    if sleeping.begin(path(from, to, Ecn::Ect0), 10).is_some() {
        sleeping.room();
        sleeping.push(10);
        sleeping.end();
    }
    let _ = sleeping.flush();
}

#[test]
fn an_idle_port_sleeps_until_its_deadline_or_a_wake() {
    let Some(lab) = lab(1) else { return };
    let mut port = server(&lab, "0.0.0.0:4433", Mode::Driver);
    let before = port.now();
    let cpu =
        || Duration::from(std::time::Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap());
    let used = cpu();
    let deadline = before + Duration::from_millis(500);
    while port.now() < deadline {
        port.wait(Some(deadline)).unwrap();
    }
    let spent = cpu().saturating_sub(used);
    assert!(spent < Duration::from_millis(10), "2 % of a core is 10 ms: {spent:?}");
    assert!(port.counters().waits < 10, "it woke {} times in half a second", port.counters().waits);
    let waker = port.waker().unwrap();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        waker.wake();
    });
    port.wait(None).unwrap();
    thread.join().unwrap();
}
