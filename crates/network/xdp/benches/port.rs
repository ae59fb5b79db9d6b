//! `cargo bench -p tercel-xdp`: what 1,472 bytes cost through a port, against a loop over bare rings, on veth.
//!
//! Trials alternate; the figure is the thread's CPU time per packet, the median of all trials, in flushes of 64.
//!
//! *Sending* includes the kernel. On the other side a socket that nothing reads drops the packets, at the same cost for
//! both. The loop sends finished packets without UDP checksums; what the port adds is frames, path, headers and checksums,
//! be they ours or the kernel's. *Receiving* is what happens in user space once packets are in the ring: the loop gives
//! the frames back unseen, the port reads the headers and lends the payload. The kernel's part is in the sender's time.
//!
//! *Long packets*: two ports where the MTU is 9,000, with packets as above and with packets in several frames, by the byte.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on fails")]

use std::net::{SocketAddr, UdpSocket};

use base::net::{Addresses, Ecn};
use base::sink::{PacketSink, TrainPath};
use datapath::{Port, Rx, Tx};
use netns::{Lab, LabOptions, Switch};
use rustix::time::{ClockId, clock_gettime};
use xdp::raw::{RawReceiver, RawSender};
use xdp::{Checksums, Mode, Options, XdpPort};

const PACKETS: usize = 64 * 800;
const TRIALS: usize = 9;
const SIZE: usize = 1472;
/// What an MTU of 9,000 carries over IPv6.
const LONG: usize = 8952;
const PORT: u16 = 4433;

fn cpu_nanos() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// CPU time per packet of `turn`, which sends some and says how many.
fn measure(mut turn: impl FnMut() -> usize) -> f64 {
    let mut sent = 0;
    for _ in 0..50 {
        turn();
    }
    let start = cpu_nanos();
    while sent < PACKETS {
        sent += turn();
    }
    (cpu_nanos() - start) as f64 / sent as f64
}

/// The loop, as soon as the queue is free: the port before may still be on its way out.
fn bare_rings(interface: &str, path: &TrainPath) -> RawSender {
    for _ in 0..100 {
        if let Ok(rings) = RawSender::open(interface, path, SIZE) {
            return rings;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    RawSender::open(interface, path, SIZE).unwrap()
}

fn through_the_port(port: &mut XdpPort, path: TrainPath) -> usize {
    train_of(port, path, SIZE)
}

/// Sends a train of packets of `size` bytes; returns how many.
fn train_of(port: &mut XdpPort, path: TrainPath, size: usize) -> usize {
    let room = port.begin(path, size).unwrap_or(0);
    for _ in 0..room {
        // Where a packet would be written and encrypted.
        std::hint::black_box(port.room())[0] = 0x40;
        port.push(size);
    }
    if room > 0 {
        port.end();
    }
    port.flush().unwrap();
    room
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn compare(lab: &Lab, mode: Mode, checksums: Checksums) {
    let sink = lab.client().run(|| UdpSocket::bind((lab.client().ipv4(), 0)).unwrap());
    let peer = sink.local_addr().unwrap();
    let local = SocketAddr::new(lab.server().ipv4().into(), PORT);
    let path = TrainPath::new(Addresses { local, peer }, Ecn::Ect0);
    let interface = lab.server().interface();
    let mut options = Options::new(interface, local);
    (options.mode, options.checksums) = (mode, checksums);
    let (mut floor, mut port, mut only_rings) = (Vec::new(), Vec::new(), 0.0);
    for _ in 0..TRIALS {
        lab.server().run(|| {
            let mut rings = bare_rings(interface, &path);
            floor.push(measure(|| rings.send(64).unwrap()));
            drop(rings);
            let mut ports = xdp::open(&options).unwrap();
            port.push(measure(|| through_the_port(&mut ports[0], path)));
            // Building without the kernel: what the port itself costs, once more, by itself.
            only_rings += user_cost(&mut ports[0], path);
        });
    }
    let (floor, port) = (median(floor), median(port));
    println!(
        "{mode:8} sending, checksums {checksums:?}: rings {floor:6.0} ns, port {port:6.0} ns per packet ({:+.1} %), of which building {:.0} ns",
        (port / floor - 1.0) * 100.0,
        only_rings / TRIALS as f64
    );
}

/// CPU time per packet of building trains, flushes left out.
fn user_cost(port: &mut XdpPort, path: TrainPath) -> f64 {
    let (mut spent, mut packets) = (0, 0);
    for _ in 0..200 {
        let start = cpu_nanos();
        let room = port.begin(path, SIZE).unwrap_or(0);
        for _ in 0..room {
            std::hint::black_box(port.room());
            port.push(SIZE);
        }
        port.end();
        spent += cpu_nanos() - start;
        packets += room;
        port.flush().unwrap();
    }
    spent as f64 / packets.max(1) as f64
}

/// Time per packet of taking in what a loop on the other side has just sent.
fn receive(lab: &Lab, mode: Mode) {
    let peer = SocketAddr::new(lab.client().ipv4().into(), 9);
    let local = SocketAddr::new(lab.server().ipv4().into(), PORT);
    let path = TrainPath::new(Addresses { local: peer, peer: local }, Ecn::Ect0);
    let interface = lab.server().interface();
    let mut options = Options::new(interface, local);
    options.mode = mode;
    let mut rings = lab.client().run(|| bare_rings(lab.client().interface(), &path));
    let (mut bare, mut through) = (Vec::new(), Vec::new());
    for _ in 0..TRIALS {
        let mut receiver = lab.server().run(|| bare_receiver(interface, local, mode));
        bare.push(take(&mut rings, || receiver.take()));
        drop(receiver);
        let mut port = lab.server().run(|| xdp::open(&options)).unwrap().remove(0);
        through.push(take(&mut rings, || {
            let trains = port.poll().unwrap();
            for index in 0..trains {
                std::hint::black_box(port.train(index).bytes[0]);
            }
            trains
        }));
    }
    println!("{mode:8} receiving: rings {:.0} ns, port {:.0} ns per packet", median(bare), median(through));
}

/// CPU time per packet of `turn`, which takes in packets and says how many, between sending batches.
fn take(rings: &mut RawSender, mut turn: impl FnMut() -> usize) -> f64 {
    let (mut spent, mut packets) = (0, 0);
    for _ in 0..PACKETS / 64 {
        rings.send(64).unwrap();
        let start = cpu_nanos();
        loop {
            match turn() {
                0 => break,
                more => packets += more,
            }
        }
        spent += cpu_nanos() - start;
    }
    assert!(packets > PACKETS / 2, "{packets} of {PACKETS} packets arrived");
    spent as f64 / packets as f64
}

/// Prints what a kilobyte costs to send, kernel included, and to receive, where the MTU is 9,000.
fn long_packets(lab: &Lab, mode: Mode) {
    let local = SocketAddr::new(lab.server().ipv4().into(), PORT);
    let peer = SocketAddr::new(lab.client().ipv4().into(), PORT);
    let path = TrainPath::new(Addresses { local, peer }, Ecn::Ect0);
    let open = |interface: &str, address| {
        let mut options = Options::new(interface, address);
        options.mode = mode;
        xdp::open(&options).unwrap().remove(0)
    };
    let mut sender = lab.server().run(|| open(lab.server().interface(), local));
    let mut receiver = lab.client().run(|| open(lab.client().interface(), peer));
    let mut costs = [const { (Vec::new(), Vec::new()) }; 2];
    lab.server().run(|| {
        for _ in 0..TRIALS {
            for ((sending, receiving), size) in costs.iter_mut().zip([SIZE, LONG]) {
                let (sent, taken) = there(&mut sender, &mut receiver, path, size);
                sending.push(sent);
                receiving.push(taken);
            }
        }
    });
    let [(short, short_in), (long, long_in)] =
        costs.map(|(sending, receiving)| (median(sending), median(receiving)));
    println!(
        "{mode:8} per kilobyte: sending {SIZE} bytes {short:.0} ns, {LONG} bytes {long:.0} ns; receiving {short_in:.1} and {long_in:.1} ns"
    );
}

/// CPU time per kilobyte of sending, and of receiving what was sent.
fn there(sender: &mut XdpPort, receiver: &mut XdpPort, path: TrainPath, size: usize) -> (f64, f64) {
    let (mut packets, mut sent, mut taken) = (0, 0, 0);
    while packets * size < PACKETS * SIZE {
        let start = cpu_nanos();
        packets += train_of(sender, path, size);
        let between = cpu_nanos();
        while let 1.. = receiver.poll().unwrap() {}
        (sent, taken) = (sent + between - start, taken + cpu_nanos() - between);
    }
    let arrived = receiver.counters().rx;
    assert!(arrived.overflowed == 0 && arrived.datagrams >= packets as u64, "{arrived:?}");
    let kilobytes = (packets * size) as f64 / 1e3;
    (sent as f64 / kilobytes, taken as f64 / kilobytes)
}

fn bare_receiver(interface: &str, address: SocketAddr, mode: Mode) -> RawReceiver {
    for _ in 0..100 {
        if let Ok(receiver) = RawReceiver::open(interface, address, mode) {
            return receiver;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    RawReceiver::open(interface, address, mode).unwrap()
}

fn main() {
    if !requirements::root("AF_XDP in network namespaces") {
        return;
    }
    let options = LabOptions { udp_segmentation: Switch::Off, ..LabOptions::default() };
    let lab = Lab::new(&options).unwrap();
    println!("{SIZE} bytes, CPU time of the thread, median of {TRIALS} trials of {PACKETS} packets");
    for mode in [Mode::Generic, Mode::Driver] {
        for checksums in [Checksums::Offloaded, Checksums::Ours] {
            compare(&lab, mode, checksums);
        }
        receive(&lab, mode);
    }
    let lab = Lab::new(&LabOptions { mtu: 9000, ..options }).unwrap();
    for mode in [Mode::Generic, Mode::Driver] {
        long_packets(&lab, mode);
    }
}
