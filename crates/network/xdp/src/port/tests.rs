//! Where the frames are, whatever happens: the invariant that no frame is lost and none is in two places.

use std::net::IpAddr;

use base::net::{Addresses, Ecn};
use base::rng::Rng;
use base::time::Duration;
use netns::{Lab, LabOptions, Switch};

use super::*;
use crate::layout::MAX_PAYLOAD;
use crate::options::{Checksums, Options};

const PORT: u16 = 4433;

fn lab(mtu: u32) -> Option<Lab> {
    if !requirements::root("AF_XDP in network namespaces") {
        return None;
    }
    let options = LabOptions { mtu, udp_segmentation: Switch::Off, ..LabOptions::default() };
    Some(Lab::new(&options).unwrap())
}

fn port(lab: &Lab, mode: Mode, checksums: Checksums) -> XdpPort {
    let mut options = Options::new(lab.server().interface(), SocketAddr::from(([0u16; 8], PORT)));
    (options.mode, options.checksums, options.frames_per_queue) = (mode, checksums, 256);
    crate::open(&options).unwrap().remove(0)
}

/// Each frame is in one place.
fn check(port: &XdpPort) {
    let (sending, receiving) = port.whereabouts();
    assert_eq!(sending.iter().sum::<usize>(), port.sender.frames(), "{sending:?}");
    assert_eq!(receiving.iter().sum::<usize>(), port.receiver.frames(), "{receiving:?}");
}

/// Peers of all sorts: one that listens, one that does not exist, one that no way leads to, one of the other family.
fn peers(lab: &Lab) -> [IpAddr; 5] {
    let [v4, v6] = lab.client().addresses();
    ["198.18.0.77", "203.0.113.1", "2001:db8::1"].map(|ip| ip.parse().unwrap()).into_iter().fold(
        [v4, v6, v4, v4, v4],
        |mut peers, ip| {
            peers.rotate_right(1);
            peers[0] = ip;
            peers
        },
    )
}

/// Builds a train as a careless caller might; returns whether there was room.
fn build(port: &mut XdpPort, rng: &mut Rng, peers: &[IpAddr]) -> bool {
    let peer = SocketAddr::new(peers[rng.below(peers.len() as u64) as usize], 9);
    let local = SocketAddr::new(if peer.is_ipv4() { [0; 4].into() } else { [0u16; 8].into() }, PORT);
    let most = port.most_payload();
    let sizes =
        [1, 100, 1452, 1473, 3000, MAX_PAYLOAD, MAX_PAYLOAD + 1, most, (most + 1).min(65_507), 65_000];
    let size = sizes[rng.below(10) as usize];
    let path = TrainPath::new(Addresses { local, peer }, Ecn::from_bits(rng.below(4) as u8));
    let Some(room) = port.begin(path, size) else { return false };
    assert!(room >= 1);
    for _ in 0..rng.below(room as u64 + 1) {
        assert_eq!(port.room().len(), size);
        port.room().fill(7);
        port.push(size);
        assert_eq!(port.packet(0)[0], 7);
    }
    if rng.below(4) == 0 && room > 64 {
        port.room();
    }
    check(port);
    port.end();
    true
}

/// Random calls in random order, while the link goes up and down.
fn abuse(lab: &Lab, port: &mut XdpPort, seed: u64) {
    let rng = &mut Rng::from_u64(seed);
    let link = netlink::link_by_name(lab.server().interface()).unwrap().index;
    let peers = peers(lab);
    let sender = lab.client().run(|| UdpSocket::bind((lab.client().ipv4(), 0)).unwrap());
    let target = (lab.server().ipv4(), PORT);
    let mut refused = 0;
    for _ in 0..3000 {
        match rng.below(16) {
            0..=6 => refused += u64::from(!build(port, rng, &peers)),
            7..=9 => port.flush().unwrap(),
            10..=11 => {
                for index in 0..port.poll().unwrap() {
                    assert!(!port.train(index).bytes.is_empty());
                }
            }
            12..=13 => {
                // More than there are frames for, now and then.
                for _ in 0..rng.below(200) {
                    let size = [50, 3_000, 8_000][rng.below(3) as usize].min(port.most_payload());
                    let _ = sender.send_to(&[0x40; 8_000][..size], target);
                }
            }
            14 => {
                let deadline = port.now() + Duration::from_micros(200);
                port.wait(Some(deadline)).unwrap();
            }
            _ => set_up(link, rng.below(4) > 0),
        }
        check(port);
    }
    assert!(refused > 0, "the frames never ran out, so the test tests too little");
    set_up(link, true);
}

fn set_up(link: u32, up: bool) {
    let argument = if up { "up" } else { "down" };
    let name = netlink::link_by_index(link).unwrap().name;
    let done = std::process::Command::new("ip").args(["link", "set", "dev", &name, argument]).status();
    assert!(done.unwrap().success());
}

#[test]
fn no_frame_is_lost_under_random_use_with_full_rings_and_a_failing_link() {
    exercise(1500);
}

#[test]
fn no_frame_of_several_pages_is_lost_either() {
    exercise(9000);
    exercise(65_535);
}

/// Calls at random, then rest: all frames must be there again.
fn exercise(mtu: u32) {
    let Some(lab) = lab(mtu) else { return };
    for (seed, mode, checksums) in
        [(1, Mode::Generic, Checksums::Offloaded), (2, Mode::Driver, Checksums::Ours)]
    {
        lab.server().run(|| {
            let mut port = port(&lab, mode, checksums);
            assert_eq!(port.free_frames(), port.all_frames());
            assert_eq!(port.most_payload(), (mtu as usize - 28).clamp(MAX_PAYLOAD, 65_507));
            abuse(&lab, &mut port, seed);
            // Packets to a neighbour that never answers are given up after two seconds. Received packets that wait in the ring
            // count as free until a poll lends them.
            let end = port.now() + Duration::from_secs(4);
            while port.now() < end && (port.poll().unwrap() > 0 || port.free_frames() < port.all_frames()) {
                let deadline = port.now() + Duration::from_millis(50);
                port.flush().unwrap();
                port.wait(Some(deadline)).unwrap();
            }
            check(&port);
            assert_eq!(
                port.free_frames(),
                port.all_frames(),
                "{:?} {:?}",
                port.whereabouts(),
                port.counters()
            );
            let counters = port.counters().tx;
            assert!(counters.unreachable > 0 && counters.datagrams > 0);
            assert!(counters.too_large > 0 || mtu == 65_535, "nothing is longer than that");
        });
    }
}
