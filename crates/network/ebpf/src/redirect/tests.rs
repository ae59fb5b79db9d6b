//! The program on packets that the kernel is handed for the purpose, and on interfaces of a namespace of our own.

use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use aya::TestRun;
use aya::programs::TestRunOptions;
use nix::sched::{CloneFlags, unshare};
use rustix::net::{AddressFamily, SocketType, socket};

use super::*;

const PASS: u32 = 2;
const REDIRECT: u32 = 4;

/// Whether this test can run; says so if not.
fn is_root() -> bool {
    requirements::root("loading eBPF programs")
}

/// Runs `test` in a network namespace of its own, which vanishes with its thread, with `veth0` and `veth1` joined in it.
/// The names are those of the test, because a machine's `ip` is the only thing there is at this level. One test at a time: a child
/// of another one has our descriptors until it begins its own program, and with them ours stays attached.
fn in_namespace(test: impl FnOnce() + Send + 'static) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let thread = thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        ip(
            "link add veth0 numrxqueues 2 numtxqueues 2 type veth peer name veth1 numrxqueues 2 numtxqueues 2",
        );
        ip("link set dev veth0 up");
        ip("link set dev veth1 up");
        test();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn ip(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn index(name: &str) -> u32 {
    nix::net::if_::if_nametoindex(name).unwrap()
}

fn options(name: &str, mode: AttachMode) -> AttachOptions<'static> {
    AttachOptions { ifindex: index(name), mode, buffers: Buffers::One, ports: &[443, 4433], addresses: &[] }
}

fn xdp_socket() -> rustix::fd::OwnedFd {
    const AF_XDP: u16 = 44;
    socket(AddressFamily::from_raw(AF_XDP), SocketType::RAW, None).unwrap()
}

/// A frame, piece by piece.
#[derive(Clone)]
struct Frame {
    tags: &'static [u16],
    v6: bool,
    /// IPv4 options in bytes.
    options: usize,
    fragment: u16,
    protocol: u8,
    port: u16,
    payload: Vec<u8>,
    destination: IpAddr,
}

fn frame() -> Frame {
    Frame {
        tags: &[],
        v6: false,
        options: 0,
        fragment: 0x4000, // don't fragment
        protocol: 17,
        port: 443,
        payload: vec![0x40; 30],
        destination: "192.0.2.1".parse().unwrap(),
    }
}

fn frame_v6() -> Frame {
    Frame { v6: true, destination: "2001:db8::1".parse().unwrap(), ..frame() }
}

impl Frame {
    fn bytes(&self) -> Vec<u8> {
        let udp_length = 8 + self.payload.len() as u16;
        let mut bytes = vec![2; 12];
        for tag in self.tags {
            bytes.extend(tag.to_be_bytes());
            bytes.extend([0, 5]);
        }
        bytes.extend(if self.v6 { [0x86, 0xdd] } else { [8, 0] });
        match self.destination {
            IpAddr::V6(destination) => {
                bytes.extend([0x60, 0, 0, 0]);
                bytes.extend(udp_length.to_be_bytes());
                bytes.extend([self.protocol, 64]);
                bytes.extend([0x20; 16]);
                bytes.extend(destination.octets());
            }
            IpAddr::V4(destination) => {
                bytes.extend([0x45 + (self.options / 4) as u8, 0]);
                bytes.extend((20 + self.options as u16 + udp_length).to_be_bytes());
                bytes.extend([0, 1]);
                bytes.extend(self.fragment.to_be_bytes());
                bytes.extend([64, self.protocol, 0, 0]);
                bytes.extend([198, 51, 100, 1]);
                bytes.extend(destination.octets());
                bytes.extend(vec![1; self.options]);
            }
        }
        bytes.extend(9000u16.to_be_bytes());
        bytes.extend(self.port.to_be_bytes());
        bytes.extend(udp_length.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(&self.payload);
        bytes
    }
}

fn verdict(program: &mut XdpProgram, frame: &[u8]) -> u32 {
    let step = Step { doing: "test", needs: NEEDED };
    let mut out = [0; 2048];
    let run = TestRunOptions {
        data_in: Some(frame),
        data_out: Some(&mut out),
        repeat: 1,
        ..TestRunOptions::default()
    };
    program.program(step).unwrap().test_run(run).unwrap().return_value
}

/// A loaded program with a socket for the queue that test packets come from.
fn loaded(ports: &[u16], addresses: &[IpAddr]) -> (XdpProgram, rustix::fd::OwnedFd) {
    loaded_for(Buffers::One, ports, addresses)
}

fn loaded_for(buffers: Buffers, ports: &[u16], addresses: &[IpAddr]) -> (XdpProgram, rustix::fd::OwnedFd) {
    let mode = AttachMode::Generic;
    let options = AttachOptions { ifindex: 0, mode, buffers, ports, addresses };
    let mut program = XdpProgram::load(&options).unwrap();
    let socket = xdp_socket();
    program.insert(0, &socket).unwrap();
    (program, socket)
}

#[test]
fn our_quic_datagrams_are_taken_and_nothing_else() {
    if !is_root() {
        return;
    }
    [Buffers::One, Buffers::Several].into_iter().for_each(judges);
}

fn judges(buffers: Buffers) {
    let (mut program, _socket) = loaded_for(buffers, &[443, 4433], &[]);
    let quic = |first: u8| [vec![first], vec![0; 25]].concat();
    let cases = [
        ("a short header", frame(), REDIRECT),
        ("a long header", Frame { payload: quic(0xc3), ..frame() }, REDIRECT),
        ("a long header without the fixed bit", Frame { payload: quic(0x80), ..frame() }, REDIRECT),
        ("our other port", Frame { port: 4433, ..frame() }, REDIRECT),
        ("IPv6", frame_v6(), REDIRECT),
        ("one tag", Frame { tags: &[0x8100], ..frame() }, REDIRECT),
        ("two tags", Frame { tags: &[0x88a8, 0x8100], ..frame() }, REDIRECT),
        ("IPv6 behind two tags", Frame { tags: &[0x8100, 0x8100], ..frame_v6() }, REDIRECT),
        ("one byte", Frame { payload: vec![0x41], ..frame() }, REDIRECT),
        ("IPv4 options", Frame { options: 8, ..frame() }, PASS),
        ("three tags", Frame { tags: &[0x8100; 3], ..frame() }, PASS),
        ("a first fragment", Frame { fragment: 0x2000, ..frame() }, PASS),
        ("a last fragment", Frame { fragment: 185, ..frame() }, PASS),
        ("an IPv6 fragment", Frame { protocol: 44, ..frame_v6() }, PASS),
        ("TCP", Frame { protocol: 6, ..frame() }, PASS),
        ("TCP over IPv6", Frame { protocol: 6, ..frame_v6() }, PASS),
        ("another port", Frame { port: 444, ..frame() }, PASS),
        ("a port whose bit is elsewhere", Frame { port: 443 + 64, ..frame() }, PASS),
        ("a port with its bytes swapped", Frame { port: 443u16.swap_bytes(), ..frame() }, PASS),
        ("no payload", Frame { payload: vec![], ..frame() }, PASS),
        ("STUN", Frame { payload: quic(0x00), ..frame() }, PASS),
        ("DTLS", Frame { payload: quic(0x16), ..frame() }, PASS),
    ];
    for (name, frame, expected) in cases {
        assert_eq!(verdict(&mut program, &frame.bytes()), expected, "{name}");
    }
    // What pads a frame to Ethernet's shortest length is no payload.
    let padded = [Frame { payload: vec![], ..frame() }.bytes(), vec![0xff; 18]].concat();
    assert_eq!(verdict(&mut program, &padded), PASS);
    // A header that says it is shorter than a header.
    let mut short = frame().bytes();
    short[14] = 0x44;
    assert_eq!(verdict(&mut program, &short), PASS);
}

#[test]
fn a_frame_cut_anywhere_is_left_to_the_kernel() {
    if !is_root() {
        return;
    }
    let (mut program, _socket) = loaded(&[443], &[]);
    for frame in [Frame { tags: &[0x8100], ..frame() }, Frame { tags: &[0x8100], ..frame_v6() }] {
        let bytes = Frame { payload: vec![0x40], ..frame }.bytes();
        // The kernel takes no test packet shorter than an Ethernet header.
        for length in 14..bytes.len() {
            assert_eq!(verdict(&mut program, &bytes[..length]), PASS, "{length} bytes");
        }
        assert_eq!(verdict(&mut program, &bytes), REDIRECT);
    }
}

#[test]
fn ports_come_and_go_and_a_queue_without_socket_is_the_kernels() {
    if !is_root() {
        return;
    }
    let (mut program, socket) = loaded(&[], &[]);
    let to = |port| Frame { port, ..frame() }.bytes();
    for port in [0, 63, 64, 443, 65_535] {
        assert_eq!(verdict(&mut program, &to(port)), PASS);
        program.add_port(port).unwrap();
        assert_eq!(verdict(&mut program, &to(port)), REDIRECT, "port {port}");
    }
    program.remove_port(64).unwrap();
    assert_eq!(verdict(&mut program, &to(64)), PASS);
    assert_eq!(verdict(&mut program, &to(63)), REDIRECT);
    drop(socket);
    // A child that another test is starting holds a copy of the socket until it has become its program.
    let mut looks = 0;
    while verdict(&mut program, &to(63)) != PASS {
        looks += 1;
        assert!(looks < 1_000, "still redirected");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(program.insert(1024, xdp_socket()).is_err());
    assert!(program.insert(0, std::net::UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
}

#[test]
fn datagrams_for_other_machines_pass_when_our_addresses_are_named() {
    // Deleted, a router that serves QUIC itself could swallow what it should forward.
    if !is_root() {
        return;
    }
    let ours = ["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
    let (mut program, _socket) = loaded(&[443], &ours);
    assert_eq!(verdict(&mut program, &frame().bytes()), REDIRECT);
    assert_eq!(verdict(&mut program, &frame_v6().bytes()), REDIRECT);
    let elsewhere = Frame { destination: "192.0.2.2".parse().unwrap(), ..frame() };
    assert_eq!(verdict(&mut program, &elsewhere.bytes()), PASS);
    let elsewhere = Frame { destination: "2001:db8:0:0:0:1::1".parse().unwrap(), ..frame_v6() };
    assert_eq!(verdict(&mut program, &elsewhere.bytes()), PASS);
}

#[test]
fn a_program_may_belong_to_any_thread() {
    fn is_send<T: Send>() {}
    is_send::<XdpProgram>();
    is_send::<crate::steer::ReuseportProgram>();
}

#[test]
fn both_modes_attach_and_a_dropped_program_is_gone() {
    if !is_root() {
        return;
    }
    in_namespace(|| {
        for (mode, shown) in [(AttachMode::Driver, "xdp"), (AttachMode::Generic, "xdpgeneric")] {
            let program = XdpProgram::attach(&options("veth0", mode)).unwrap();
            assert_eq!(program.mode(), mode);
            let link = ip("-d link show dev veth0");
            assert!(link.split_whitespace().any(|word| word == shown), "{link}");
            drop(program);
            assert!(!ip("-d link show dev veth0").contains("xdp"));
        }
    });
}

#[test]
fn refusals_say_what_to_do() {
    if !is_root() {
        return;
    }
    in_namespace(|| {
        let attach = |name, mode| XdpProgram::attach(&options(name, mode)).unwrap_err();
        let program = XdpProgram::attach(&options("veth0", AttachMode::Driver)).unwrap();
        for mode in [AttachMode::Driver, AttachMode::Generic] {
            let error = attach("veth0", mode);
            let EbpfError::Occupied { interface, holder: Some(holder) } = &error else { panic!("{error}") };
            assert_eq!((interface.as_str(), holder.pid), ("veth0", std::process::id()));
        }
        drop(program);

        let object = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/pass.o");
        ip(&format!("link set dev veth0 xdpgeneric obj {object} sec xdp"));
        let error = attach("veth0", AttachMode::Driver);
        assert!(matches!(error, EbpfError::Occupied { holder: None, .. }), "{error}");
        assert!(error.to_string().contains("ip link set dev veth0 xdp off"));
        ip("link set dev veth0 xdpgeneric off");
        XdpProgram::attach(&options("veth0", AttachMode::Driver)).unwrap();

        ip("link set dev veth1 mtu 9000");
        let error = attach("veth0", AttachMode::Driver);
        assert!(matches!(error, EbpfError::Unsuitable { .. }), "{error}");
        // Jumbo frames are no obstacle to a program that takes packets of several buffers.
        let several = AttachOptions { buffers: Buffers::Several, ..options("veth0", AttachMode::Driver) };
        XdpProgram::attach(&several).unwrap();

        ip("link set dev veth1 down");
        assert!(
            matches!(attach("veth1", AttachMode::Driver), EbpfError::Down { interface } if interface == "veth1")
        );
        assert!(matches!(attach("lo", AttachMode::Generic), EbpfError::Down { .. }));
        ip("link set dev lo up");
        let error = attach("lo", AttachMode::Driver);
        assert!(matches!(error, EbpfError::NoSupport { .. }), "{error}");
        XdpProgram::attach(&options("lo", AttachMode::Generic)).unwrap();

        let missing = AttachOptions { ifindex: 4242, ..options("lo", AttachMode::Generic) };
        assert!(matches!(XdpProgram::attach(&missing), Err(EbpfError::NoInterface { index: 4242 })));
    });
}

#[test]
fn without_capabilities_the_error_names_them() {
    if !is_root() {
        return;
    }
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    in_namespace(|| {
        ip("link set dev lo up");
        let all = capabilities(None).unwrap();
        let mut less = all;
        less.effective = CapabilitySet::empty();
        set_capabilities(None, less).unwrap();
        let error = XdpProgram::attach(&options("lo", AttachMode::Generic)).unwrap_err();
        let both = "the process lacks CAP_BPF and CAP_NET_ADMIN";
        assert!(error.to_string().contains(both), "{error}");
        let error = crate::steer::ReuseportProgram::load(2).unwrap_err();
        assert!(error.to_string().contains("lacks CAP_BPF;"), "{error}");
        less.effective = CapabilitySet::BPF;
        set_capabilities(None, less).unwrap();
        let error = XdpProgram::attach(&options("lo", AttachMode::Generic)).unwrap_err();
        assert!(error.to_string().contains("lacks CAP_NET_ADMIN;"), "{error}");
        crate::steer::ReuseportProgram::load(2).unwrap();
        less.effective = CapabilitySet::BPF | CapabilitySet::NET_ADMIN;
        set_capabilities(None, less).unwrap();
        // Nothing more is needed, in particular not CAP_PERFMON.
        XdpProgram::attach(&options("lo", AttachMode::Generic)).unwrap();
        XdpProgram::attach(&options("veth0", AttachMode::Driver)).unwrap();
    });
}

/// The name of the variable that makes the test below the process that gets killed.
const VICTIM: &str = "TERCEL_TEST_HOLDS_XDP_ON";

#[test]
fn a_killed_process_leaves_no_program_behind() {
    // Deleted, a server that is killed could keep its ports from its successor.
    if !is_root() {
        return;
    }
    if let Ok(name) = std::env::var(VICTIM) {
        let _program = XdpProgram::attach(&options(&name, AttachMode::Driver)).unwrap();
        println!("attached");
        thread::sleep(std::time::Duration::from_secs(20));
        return;
    }
    in_namespace(|| {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "redirect::tests::a_killed_process_leaves_no_program_behind", "--nocapture"])
            .env(VICTIM, "veth0")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        assert!(lines.any(|line| line.unwrap().contains("attached")), "the child attached a program");
        let error = XdpProgram::attach(&options("veth0", AttachMode::Driver)).unwrap_err();
        assert!(
            matches!(&error, EbpfError::Occupied { holder: Some(holder), .. } if holder.pid == child.id())
        );
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!ip("-d link show dev veth0").contains("xdp"));
        XdpProgram::attach(&options("veth0", AttachMode::Driver)).unwrap();
    });
}
