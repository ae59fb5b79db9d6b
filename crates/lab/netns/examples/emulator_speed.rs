//! How much the link emulator carries, and what that costs: a UDP sender with GSO, a receiver with GRO, a window between them.
//!
//! `cargo run --release -p tercel-netns --example emulator_speed -- [seconds] [one-way delay in µs] [loss] [bytes per send] [spin in µs]`
//! (as root). With 1452 bytes per send nothing is a super-packet, as from an XDP sender.
#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a measurement that cannot be made ends")]

#[path = "../tests/wire/mod.rs"]
mod wire;

use std::io::IoSlice;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use netns::emulator::{Direction, EmulatorOptions, LinkOptions};
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrIn, sendmsg, setsockopt, sockopt};

const SEGMENT: u16 = 1452;
const WINDOW: u64 = 4 << 20;

fn main() {
    if !wire::is_root() {
        return;
    }
    let argument = |n: usize, otherwise: f64| {
        std::env::args().nth(n).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let seconds = Duration::from_secs_f64(argument(1, 3.0).min(60.0));
    let link = LinkOptions {
        delay: Duration::from_micros(argument(2, 1_000.0) as u64),
        loss: argument(3, 0.0),
        ..LinkOptions::default()
    };
    let per_send = argument(4, 44.0 * f64::from(SEGMENT)) as usize;
    let spin = Duration::from_micros(argument(5, 0.0) as u64);
    let wire = wire::Wire::new(1500);
    let calm = LinkOptions { loss: 0.0, ..link.clone() };
    let emulator = wire.emulate(EmulatorOptions {
        to_right: calm.clone(),
        to_left: calm,
        spin,
        ..EmulatorOptions::default()
    });
    let receiver = wire.right.run(|| UdpSocket::bind("10.9.0.2:7000").unwrap());
    let sender = wire.left.run(|| UdpSocket::bind("10.9.0.1:7001").unwrap());
    sender.connect("10.9.0.2:7000").unwrap();
    receiver.connect("10.9.0.1:7001").unwrap();
    println!("a datagram there and back, idle: {}", round_trips(&sender, &receiver));
    emulator.set(Direction::ToRight, &link).unwrap();
    let cpu_before = cpu_seconds("link");
    let ends = Instant::now() + seconds;
    let receiving = std::thread::spawn(move || receive(&receiver, ends));
    send(&sender, per_send, ends);
    let (received, reads) = receiving.join().unwrap();
    let cpu = cpu_seconds("link") - cpu_before;
    let gigabytes = received as f64 / 1e9;
    println!(
        "{:.2} Gbit/s, emulator {:.3} CPU s per GB ({:.0} % of a core), {:.0} bytes per read",
        gigabytes * 8.0 / seconds.as_secs_f64(),
        cpu / gigabytes,
        100.0 * cpu / seconds.as_secs_f64(),
        received as f64 / reads as f64
    );
    println!("{:?}", emulator.counters(Direction::ToRight));
    println!("{:?}", emulator.counters(Direction::ToLeft));
}

/// The spread of 500 round-trip times, 2 ms apart.
fn round_trips(client: &UdpSocket, server: &UdpSocket) -> String {
    let mut bytes = [0; 64];
    let mut times: Vec<Duration> = (0..500)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(2));
            let begins = Instant::now();
            client.send(b"ping").unwrap();
            server.recv(&mut bytes).unwrap();
            server.send(b"pong").unwrap();
            client.recv(&mut bytes).unwrap();
            begins.elapsed()
        })
        .collect();
    times.sort();
    format!("least {:?}, median {:?}, 99 of 100 within {:?}", times[0], times[250], times[495])
}

/// Sends while less than a window is not confirmed; each datagram begins with the count of bytes before it.
fn send(socket: &UdpSocket, per_send: usize, ends: Instant) {
    let mut bytes = vec![0; per_send];
    let (mut sent, mut confirmed) = (0_u64, 0_u64);
    let mut confirmation = [0; 8];
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    while Instant::now() < ends {
        if sent - confirmed < WINDOW {
            for (n, datagram) in bytes.chunks_mut(usize::from(SEGMENT)).enumerate() {
                datagram[..8].copy_from_slice(&(sent + n as u64 * u64::from(SEGMENT)).to_be_bytes());
            }
            let control = [ControlMessage::UdpGsoSegments(&SEGMENT)];
            let control = if per_send > usize::from(SEGMENT) { &control[..] } else { &[] };
            let sending = sendmsg::<SockaddrIn>(
                socket.as_raw_fd(),
                &[IoSlice::new(&bytes)],
                control,
                MsgFlags::empty(),
                None,
            );
            sending.expect("the kernel sends");
            sent += per_send as u64;
        } else if socket.recv(&mut confirmation).is_ok() {
            confirmed = confirmed.max(u64::from_be_bytes(confirmation));
        } else {
            confirmed = sent;
        }
    }
}

/// Counts bytes and reads; confirms every 256 KB.
fn receive(socket: &UdpSocket, ends: Instant) -> (u64, u64) {
    setsockopt(socket, sockopt::UdpGroSegment, &true).unwrap();
    setsockopt(socket, sockopt::RcvBufForce, &(32 << 20)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut bytes = vec![0; 65_536];
    let (mut received, mut reads, mut confirmed) = (0, 0, 0);
    while Instant::now() < ends {
        let Ok(length) = socket.recv(&mut bytes) else { continue };
        received += length as u64;
        reads += 1;
        let seen = u64::from_be_bytes(bytes[..8].try_into().unwrap()) + length as u64;
        if seen > confirmed + 262_144 {
            confirmed = seen;
            let _ = socket.send(&seen.to_be_bytes());
        }
    }
    (received, reads)
}

/// CPU time of this process's thread of that name.
fn cpu_seconds(name: &str) -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let times = tasks
        .filter(|task| {
            std::fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name)
        })
        .map(|task| {
            let statistics = std::fs::read_to_string(task.path().join("schedstat")).unwrap();
            statistics.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
        });
    times.sum()
}
