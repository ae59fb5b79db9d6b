//! Paths as the hub drives them: a small server that receives, follows, probes and waits.

use super::amplification::AddressState;
use super::path::{Path, PathId};
use super::probe::{Blocked, MtuProbe};
use super::set::{Expiry, MAX_FAILURES, MAX_OTHERS, Paths};
use crate::builder::PacketBuilder;
use crate::cid::PeerCids;
use crate::config::TransportConfig;
use base::net::Addresses;
use base::rng::SparseRng;
use base::time::{Duration, Instant};
use proptest::prelude::*;
use recovery::congestion::{AckedBytes, Algorithm, CongestionCause, CongestionEvent, Controller};
use wire::Side;
use wire::cid::ConnectionId;
use wire::frame::Frame;
use wire::reader::Reader;
use wire::transport_parameters::TransportParameters;
use wire::writer::Writer;

fn from(peer: &str) -> Addresses {
    Addresses { local: "192.0.2.1:443".parse().unwrap(), peer: peer.parse().unwrap() }
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(0) + Duration::from_millis(1_000 + ms)
}

const HOME: &str = "198.51.100.1:1000";
const REBOUND: &str = "198.51.100.1:2000";
const AWAY: &str = "203.0.113.9:1000";
const AGAIN: &str = "203.0.113.10:1000";

struct Server {
    paths: Paths,
    rng: SparseRng,
}

/// What a probe held.
#[derive(Default, Debug)]
struct Probe {
    path: Option<PathId>,
    size: u64,
    challenge: Option<[u8; 8]>,
    responses: Vec<[u8; 8]>,
    pings: usize,
}

impl Server {
    /// A server before any datagram.
    fn fresh(state: AddressState) -> Server {
        let config = TransportConfig { max_packet_size: 1_400, ..TransportConfig::default() };
        let paths = Paths::new(at(0), Side::Server, &config.clone().into(), from(HOME), state);
        Server { paths, rng: SparseRng::from_u64(1) }
    }

    /// A server with a confirmed handshake.
    fn connected() -> Server {
        let mut server = Server::fresh(AddressState::Validated);
        server.paths.on_peer_parameters(&TransportParameters::default());
        server.paths.on_handshake_confirmed(at(0));
        server.paths.active_mut().rtt.on_sample(at(0), Duration::from_millis(40), Duration::ZERO);
        server
    }

    /// A non-probing packet with the highest number so far.
    fn packet(&mut self, now: Instant, peer: &str, bytes: usize) -> bool {
        let Some(path) = self.paths.on_datagram(now, from(peer), bytes) else { return false };
        path != self.paths.active_id() && self.paths.on_peer_moved(now, path)
    }

    /// Sends a probe as the hub does, if one is wanted.
    fn probe(&mut self, now: Instant) -> Option<Probe> {
        let id = self.paths.wants_probe(now, &PeerCids::new(ConnectionId::EMPTY))?;
        let size = self.paths.path(id).unwrap().amplification().min(1_200);
        let (mut buffer, mut frames) = ([0; 100], Vec::new());
        let mut packet = PacketBuilder::new(Writer::new(&mut buffer), &mut frames);
        self.paths.write_probe(now, id, &mut self.rng, &mut packet);
        let len = packet.writer.position();
        self.paths.path_mut(id).unwrap().on_sent(size);
        let mut probe = Probe { path: Some(id), size, ..Probe::default() };
        let mut reader = Reader::new(&buffer[..len]);
        while !reader.is_empty() {
            match Frame::parse_next(&mut reader).unwrap() {
                Frame::PathChallenge(frame) => {
                    assert!(probe.challenge.replace(frame.0).is_none(), "one a packet")
                }
                Frame::PathResponse(frame) => probe.responses.push(frame.0),
                Frame::Ping => probe.pings += 1,
                other => panic!("{other:?}"),
            }
        }
        Some(probe)
    }

    fn probes(&mut self, now: Instant) -> Vec<Probe> {
        let probes: Vec<Probe> = core::iter::from_fn(|| self.probe(now)).take(20).collect();
        assert!(probes.len() < 20, "probing comes to an end");
        probes
    }

    fn peer(&self) -> String {
        self.paths.active().addresses.peer.to_string()
    }
}

#[test]
fn an_unvalidated_address_gets_three_times_what_it_sent() {
    let mut server = Server::fresh(AddressState::Unvalidated);
    assert_eq!(server.paths.active().amplification(), 0);
    let id = server.paths.on_datagram(at(0), from(HOME), 1_200).unwrap();
    assert_eq!(server.paths.active().amplification(), 3_600);
    server.paths.path_mut(id).unwrap().on_sent(2_401);
    assert_eq!(server.paths.active().amplification(), 1_199);
    assert!(server.paths.active().is_amplification_limited());
    server.paths.on_datagram(at(0), from(HOME), 1);
    assert!(!server.paths.active().is_amplification_limited());
    server.paths.path_mut(id).unwrap().on_sent(u64::MAX);
    assert_eq!(server.paths.active().amplification(), 0);
    server.paths.on_handshake_packet(id);
    assert_eq!(server.paths.active().amplification(), u64::MAX);
}

/// An address translator may change the peer's address during the handshake. Dropped, the peer waits until it gives up; believed,
/// a peer with the keys directs a flight of any length at any address.
#[test]
fn an_address_that_changes_in_the_handshake_is_followed_under_the_threefold_limit() {
    for home in [AddressState::Validated, AddressState::Unvalidated] {
        let mut server = Server::fresh(home);
        server.paths.on_datagram(at(0), from(HOME), 1_200);
        let rebound = server.paths.on_datagram(at(1), from(REBOUND), 1_200).expect("is not dropped");
        assert_eq!(server.peer(), HOME, "not before a packet is authentic");
        assert!(server.paths.on_peer_rebound(rebound));
        assert_eq!((server.peer().as_str(), server.paths.active().amplification()), (REBOUND, 3_600));
        // Whatever the port, all that was sent went to this IP address. Another one proves nothing, now or later.
        let mut moved = Server::fresh(home);
        moved.paths.on_datagram(at(0), from(HOME), 1_200);
        server.paths.on_handshake_packet(rebound);
        assert!(server.paths.active().is_validated());
        let mut server = moved;
        for peer in [AWAY, AGAIN] {
            let id = server.paths.on_datagram(at(1), from(peer), 1_200).expect("is not dropped");
            assert_ne!(server.peer(), peer, "not before a packet is authentic");
            assert!(server.paths.on_peer_rebound(id));
            assert_eq!((server.peer().as_str(), server.paths.active().amplification()), (peer, 3_600));
            server.paths.on_handshake_packet(id);
            assert_eq!(
                server.paths.active().amplification(),
                3_600,
                "the keys may have come by another path"
            );
        }
        let back = server.paths.on_datagram(at(2), from(HOME), 1_200).expect("is known");
        server.paths.on_handshake_packet(back);
        let credit = server.paths.path(back).expect("is known").amplification();
        assert_eq!(
            credit == u64::MAX,
            home == AddressState::Validated,
            "a token has proved it, or nothing has"
        );
        // As soon as there are keys for it, a challenge settles the matter.
        server.paths.on_handshake_confirmed(at(3));
        let challenge = server.probes(at(3)).into_iter().find_map(|probe| probe.challenge).expect("is sent");
        server.paths.on_path_response(at(4), challenge);
        assert_eq!((server.peer().as_str(), server.paths.active().is_validated()), (AGAIN, true));
    }
}

#[test]
fn an_address_that_changes_all_the_time_in_the_handshake_is_not_followed_for_ever() {
    let mut server = Server::fresh(AddressState::Unvalidated);
    let followed = (0..10 * MAX_FAILURES).filter(|round| {
        let peer = format!("203.0.113.{}:{}", round % 200, 1_000 + round);
        let id = server.paths.on_datagram(at(0), from(&peer), 1_200);
        id.is_some_and(|id| server.paths.on_peer_rebound(id))
    });
    assert!(followed.count() <= MAX_FAILURES as usize);
    assert!(server.paths.held().0 <= 1 + MAX_OTHERS);
}

/// RFC 9000 §9: servers never move.
#[test]
fn clients_drop_datagrams_from_unknown_addresses() {
    let config = TransportConfig::default();
    let mut client =
        Paths::new(at(0), Side::Client, &config.clone().into(), from(HOME), AddressState::Validated);
    client.on_handshake_confirmed(at(0));
    assert_eq!(client.on_datagram(at(0), from(AWAY), 1_200), None);
    let elsewhere = Addresses { local: "192.0.2.99:443".parse().unwrap(), ..from(HOME) };
    assert_eq!(
        client.on_datagram(at(0), elsewhere, 1_200),
        Some(client.active_id()),
        "our own address changed"
    );
    let unknown_local = Addresses { local: "0.0.0.0:443".parse().unwrap(), ..from(HOME) };
    let mut client =
        Paths::new(at(0), Side::Client, &config.clone().into(), unknown_local, AddressState::Validated);
    assert_eq!(client.on_datagram(at(0), from(HOME), 1_200), Some(client.active_id()));
}

#[test]
fn a_client_that_moves_is_followed_and_validated() {
    let mut server = Server::connected();
    let home = server.paths.active_id();
    assert!(server.packet(at(0), AWAY, 500));
    assert_eq!(server.peer(), AWAY);
    assert_eq!(server.paths.validated_addresses().peer.to_string(), HOME, "CVE-2026-40460");
    assert_eq!(server.paths.active().amplification(), 1_500);
    let probes = server.probes(at(0));
    let [first, second] = &probes[..] else { panic!("{probes:?}") };
    assert_eq!(first.path, Some(server.paths.active_id()), "the new path is challenged first");
    assert_eq!((first.size, second.size), (1_200, 1_200));
    assert_eq!(second.path, Some(home), "RFC 9000 §9.3.3: so is the previous one");
    assert!(server.paths.on_path_response(at(50), [0; 8]).is_none(), "not what was sent");
    assert_eq!(server.paths.active().amplification(), 300);
    let proved = server.paths.on_path_response(at(50), first.challenge.unwrap());
    assert_eq!(proved, Some(server.paths.active().addresses));
    assert_eq!(server.paths.active().amplification(), u64::MAX);
    assert_eq!(server.paths.validated_addresses().peer.to_string(), AWAY);
    assert!(
        server.paths.on_path_response(at(51), second.challenge.unwrap()).is_none(),
        "its address was known to be good"
    );
    assert_eq!(server.paths.next_timeout(&PeerCids::new(ConnectionId::EMPTY)), None);
    assert_eq!(server.paths.on_timeout(at(60_000)), Expiry::Nothing);
    assert_eq!(server.peer(), AWAY);
}

#[test]
fn a_port_change_keeps_what_was_learned_and_an_address_change_does_not() {
    for (peer, kept) in [(REBOUND, true), (AWAY, false)] {
        let mut server = Server::connected();
        find_size(server.paths.active_mut());
        assert_eq!(server.paths.active().max_packet_size, 1_400);
        server.paths.active_mut().congestion.on_persistent_congestion();
        let window = server.paths.active().congestion.window();
        assert!(server.packet(at(0), peer, 1_200));
        let path = server.paths.active();
        assert_eq!(path.rtt.has_sample(), kept);
        assert_eq!(path.congestion.window() == window, kept);
        assert_eq!(path.max_packet_size == 1_400, kept);
        assert!(!path.is_validated());
    }
}

/// Packets of the next train after an acknowledgement, if much waits.
fn next_train(path: &mut Path, now: Instant) -> u64 {
    path.on_acknowledged(now);
    let burst = path.pacer.allowance(now);
    path.pacer.on_sent(now, burst);
    path.pacer.expect(u64::MAX, u64::MAX);
    assert_eq!(path.pacer.allowance(now), 0);
    let next = path.pacer.next_release().unwrap();
    path.pacer.allowance(next) / u64::from(path.max_packet_size)
}

/// Deleted, trains could be long where packets are lost, or in slow start; or each packet of a slow flow could leave by itself.
#[test]
fn trains_are_long_where_nothing_was_lost_of_late() {
    let mut server = Server::connected();
    let path = server.paths.active_mut();
    let rtt = path.rtt.min();
    assert_eq!((rtt, path.rtt.smoothed()), (Duration::from_millis(40), Duration::from_millis(40)));
    path.congestion = Controller::new(Algorithm::NewReno, path.max_packet_size);
    let bytes = 50 * u64::from(path.max_packet_size);
    path.congestion.on_sent(at(0), bytes, bytes);
    let acked = AckedBytes {
        bytes,
        packets: 50,
        largest_sent_at: at(0),
        app_limited: false,
        rtt,
        latest_rtt: Some(rtt),
        ack_delay: Duration::ZERO,
        in_flight: 0,
        ce: 0,
        spurious: 0,
        spurious_from: None,
    };
    path.congestion.on_ack(at(80), &acked);
    assert!(path.congestion.is_in_slow_start());
    assert_eq!(next_train(path, at(80)), 3, "a millisecond of two windows in a round trip");
    let (cause, sent_at) = (CongestionCause::Loss, at(80));
    let losses =
        CongestionEvent { cause, sent_at, earliest_sent_at: sent_at, packets: 1, bytes: 1_200, ranges: 1 };
    path.congestion.on_congestion(at(120), &losses);
    path.on_losses(at(120));
    assert_eq!(next_train(path, at(120)), 1, "a loss");
    assert_eq!(next_train(path, at(279)), 1, "four round trips");
    assert_eq!(path.congestion.window() / u64::from(path.max_packet_size), 30);
    assert_eq!(next_train(path, at(280)), 3, "an eighth of the window");
}

/// Spurious migration: a third party copies one packet from another address.
#[test]
fn a_path_that_does_not_answer_is_given_up() {
    let mut server = Server::connected();
    assert!(server.packet(at(0), AWAY, 1_200));
    let mut challenges = Vec::new();
    for ms in 0..10_000 {
        let probes = server.probes(at(ms));
        challenges
            .extend(probes.iter().filter_map(|probe| probe.challenge.filter(|_| server.peer() == AWAY)));
        match server.paths.on_timeout(at(ms)) {
            Expiry::Nothing => {}
            Expiry::Reverted => {
                // Three times the probe timeout of a path without a sample.
                assert!((3_000..3_200).contains(&ms), "after {ms} ms");
                assert_eq!(server.peer(), HOME);
                assert_eq!(server.paths.active().amplification(), u64::MAX);
                assert!(server.paths.active().rtt.has_sample());
                let distinct: std::collections::HashSet<_> = challenges.iter().collect();
                assert_eq!(distinct.len(), challenges.len(), "every challenge has fresh bytes");
                assert!((2..=12).contains(&challenges.len()), "{} challenges", challenges.len());
                return;
            }
            Expiry::NoPath | Expiry::MoveFailed(_) => panic!("home was there"),
        }
    }
    panic!("never given up");
}

#[test]
fn a_packet_from_the_old_address_brings_the_connection_back_at_once() {
    let mut server = Server::connected();
    assert!(server.packet(at(0), AWAY, 1_200));
    assert!(server.packet(at(1), HOME, 1_200));
    assert_eq!(server.peer(), HOME);
    assert_eq!(server.paths.active().amplification(), u64::MAX);
    assert_eq!(server.paths.held().0, 1, "the spurious path is forgotten");
    for ms in 0..10_000 {
        server.probes(at(ms));
        assert_eq!(server.paths.on_timeout(at(ms)), Expiry::Nothing);
    }
    assert_eq!(server.peer(), HOME);
}

#[test]
fn going_on_from_an_unvalidated_address_still_knows_the_way_back() {
    let mut server = Server::connected();
    assert!(server.packet(at(0), AWAY, 1_200));
    assert!(server.packet(at(100), "203.0.113.10:5", 1_200));
    assert_eq!(server.paths.validated_addresses().peer.to_string(), HOME);
    assert_eq!(server.paths.on_timeout(at(100_000)), Expiry::Reverted);
    assert_eq!(server.peer(), HOME);
}

/// A third party can copy our connection ID; what it sends makes no path and drives none out.
#[test]
fn datagrams_without_an_authentic_packet_leave_no_trace() {
    let mut server = Server::connected();
    let mut ids = Vec::new();
    for n in 0..10_000_u16 {
        let address = format!("203.0.113.{}:{}", n % 250, n + 1);
        ids.extend(server.paths.on_datagram(at(0), from(&address), 1_200));
    }
    assert_eq!(ids.len(), 10_000);
    assert_eq!(server.paths.held(), (1, 0));
    assert!(!server.paths.on_peer_moved(at(0), ids[0]), "an old name finds nothing");
    server.paths.on_path_challenge(at(0), ids[7], [1; 8]);
    assert!(server.probes(at(0)).is_empty());
}

/// quicly bc446eb: endless validations.
#[test]
fn after_many_failures_new_addresses_are_ignored() {
    let mut server = Server::connected();
    let mut now = 0;
    let mut followed = 0;
    for n in 0..300_u16 {
        followed += u32::from(server.packet(at(now), &format!("203.0.113.{}:{}", n % 250, n + 1), 1_200));
        server.probes(at(now));
        now += 4_000;
        server.paths.on_timeout(at(now));
        assert!(server.paths.held().0 <= 1 + MAX_OTHERS);
    }
    assert_eq!(followed, MAX_FAILURES);
    assert_eq!(server.peer(), HOME);
    assert!(!server.packet(at(now), HOME, 100));
    assert_eq!(server.paths.on_datagram(at(now), from(HOME), 100), Some(server.paths.active_id()));
    // Hopping without waiting counts too.
    let mut server = Server::connected();
    let hops = (0..300_u16).filter(|n| server.packet(at(0), &format!("203.0.113.1:{}", n + 1), 100)).count();
    assert!(hops <= MAX_FAILURES as usize + 1, "{hops}");
    assert!(server.paths.held().0 <= 1 + MAX_OTHERS);
}

/// Moves of one client: `spurious` addresses where it does not stay, then one that it proves. How many were followed.
fn moves(count: u16, spurious: u16) -> usize {
    let mut server = Server::connected();
    let mut now = 0;
    let mut is_followed = |n: u16| {
        now += 4_000;
        server.paths.on_timeout(at(now));
        for hop in 0..spurious {
            server.packet(at(now), &format!("203.0.113.{}:{}", hop + 1, n + 1), 1_200);
        }
        let home = format!("198.51.100.7:{}", n + 1);
        server.packet(at(now + 1), &home, 1_200);
        for probe in server.probes(at(now + 1)) {
            if probe.path == Some(server.paths.active_id()) {
                server.paths.on_path_response(at(now + 9), probe.challenge.unwrap());
            }
        }
        server.paths.validated_addresses().peer.to_string() == home
    };
    (0..count).filter(|&n| is_followed(n)).count()
}

/// A budget for the life of a connection must not be used up by what a client does in good faith: an address translator with
/// two ports in turn at each move stranded it after a hundred.
#[test]
fn moves_that_are_proved_explain_failures() {
    assert_eq!(moves(500, 1), 500);
    assert_eq!(moves(500, 2), 500);
    let followed = moves(500, 3);
    assert!((80..=MAX_FAILURES as usize).contains(&followed), "no more than is explained: {followed}");
}

#[test]
fn a_probed_path_is_answered_there_and_not_followed() {
    let mut server = Server::connected();
    let id = server.paths.on_datagram(at(0), from(AWAY), 1_200).unwrap();
    server.paths.on_path_challenge(at(0), id, [7; 8]);
    assert_eq!(server.peer(), HOME);
    let probes = server.probes(at(0));
    let [probe] = &probes[..] else { panic!("{probes:?}") };
    assert_eq!((probe.path, probe.size, &probe.responses[..]), (Some(id), 1_200, &[[7; 8]][..]));
    assert_eq!(probe.pings, 0);
    assert!(server.paths.on_path_response(at(9), probe.challenge.unwrap()).is_some());
    // When the client moves there for good, its address is known to be good.
    assert!(server.packet(at(20), AWAY, 50));
    assert_eq!(server.paths.active().amplification(), u64::MAX);
    assert_eq!(server.paths.validated_addresses().peer.to_string(), AWAY);
    let probes = server.probes(at(20));
    assert_eq!(probes.len(), 1, "only the previous path is challenged: {probes:?}");
}

#[test]
fn a_challenge_on_the_active_path_is_answered_by_a_non_probing_packet() {
    let mut server = Server::connected();
    let id = server.paths.active_id();
    server.paths.on_path_challenge(at(0), id, [3; 8]);
    let probe = server.probe(at(0)).unwrap();
    assert_eq!((probe.responses, probe.pings), (vec![[3; 8]], 1));
    assert!(server.probe(at(0)).is_none(), "one response for one challenge");
}

/// CVE-2023-49295 and its kin: challenges faster than responses may leave.
#[test]
fn a_flood_of_challenges_owes_a_few_responses() {
    let mut server = Server::connected();
    let id = server.paths.active_id();
    for n in 0..10_000_u64 {
        server.paths.on_path_challenge(at(0), id, n.to_be_bytes());
    }
    let owed: Vec<_> = server.probes(at(0)).into_iter().flat_map(|probe| probe.responses).collect();
    assert_eq!(owed, [9_997_u64, 9_998, 9_999].map(u64::to_be_bytes), "the latest ones");
    server.paths.on_path_challenge(at(0), id, [1; 8]);
    assert_eq!(server.probes(at(0))[0].responses, [[1; 8]]);
}

/// RFC 9000 §8.2.1: a small challenge proves the address, a full one must prove the size.
#[test]
fn a_small_challenge_is_followed_by_a_full_one() {
    let mut server = Server::connected();
    assert!(server.packet(at(0), AWAY, 100));
    let probes = server.probes(at(0));
    assert_eq!(probes[0].size, 300);
    assert_eq!(
        server.paths.next_timeout(&PeerCids::new(ConnectionId::EMPTY)).map(|next| next > at(1_000)),
        Some(true),
        "no credit, no timer but the last"
    );
    assert!(server.paths.on_path_response(at(30), probes[0].challenge.unwrap()).is_some());
    assert!(server.paths.active().is_validated());
    let probes = server.probes(at(30));
    assert_eq!((probes.len(), probes[0].size), (1, 1_200));
    // A path that cannot carry it is no path.
    assert_eq!(server.paths.on_timeout(at(30_000)), Expiry::Reverted);
    assert_eq!(server.peer(), HOME);
}

#[test]
fn an_earlier_challenge_may_be_answered_late() {
    let mut server = Server::connected();
    assert!(server.packet(at(0), AWAY, 100_000));
    let first = server.probe(at(0)).unwrap().challenge.unwrap();
    let active = server.paths.active_id();
    let mut challenged = |ms: &u64| server.probes(at(*ms)).iter().any(|probe| probe.path == Some(active));
    let times: Vec<u64> = (1..3_000).filter(&mut challenged).collect();
    assert!(!times.is_empty(), "challenges come again");
    assert!(times[0] >= 1_000, "{times:?}");
    assert!(
        times.windows(2).all(|pair| pair[1] - pair[0] >= 1_000),
        "not more often than a probe timeout: {times:?}"
    );
    assert!(server.paths.on_path_response(at(2_999), first).is_some());
}

/// A clock at its end must not make anyone send for ever.
#[test]
fn at_the_end_of_time_a_challenge_leaves_once() {
    let mut server = Server::connected();
    assert!(server.packet(Instant::FAR_FUTURE, AWAY, 100_000));
    assert_eq!(server.probes(Instant::FAR_FUTURE).len(), 2);
}

/// The probe that may leave with an empty window.
fn due_probe(path: &Path, now: Instant) -> Option<u16> {
    match path.next_mtu_probe(now, 0) {
        MtuProbe::Go(size) => Some(size),
        MtuProbe::None => None,
        MtuProbe::Wait => panic!("nothing is in flight that could be waited for"),
    }
}

/// One probe is sent, and arrives.
fn find_size(path: &mut Path) {
    let size = due_probe(path, at(0)).unwrap();
    path.on_mtu_probe_sent(at(0), size);
    path.on_mtu_probe_acked(at(0), size);
}

/// The search itself is tested where it lives; here, that what it finds reaches the rest of the path.
#[test]
fn larger_packets_are_used_and_given_up() {
    let mut server = Server::connected();
    let path = server.paths.active_mut();
    find_size(path);
    assert_eq!((path.max_packet_size, path.mtu_report().size), (1_400, 1_400));
    assert_eq!(due_probe(path, at(10_000_000)), None, "nothing larger to find");
    path.on_black_hole(at(0));
    assert_eq!(path.max_packet_size, 1_200);
    assert_eq!(due_probe(path, at(124)), None);
    assert_eq!(due_probe(path, at(125)), Some(1_400));
    path.congestion.on_persistent_congestion();
    assert_eq!(path.congestion.window(), 2_400);
    assert_eq!(due_probe(path, at(125)), Some(1_400), "no more than the window");
}

/// The path of a server that may send whatever IP permits, with a measured round trip of 100 ms and in slow start.
fn wide_path() -> Paths {
    let config = TransportConfig { max_packet_size: 65_507, ..TransportConfig::default() };
    let mut paths =
        Paths::new(at(0), Side::Client, &config.clone().into(), from(HOME), AddressState::Validated);
    paths.active_mut().rtt.on_sample(at(0), Duration::from_millis(100), Duration::ZERO);
    paths.on_handshake_confirmed(at(0));
    paths
}

/// RFC 9000 §8.1: the early probe is paid for by what came, too.
#[test]
fn an_early_probe_leaves_where_credit_is_left() {
    for (flight, expected) in [(2_128, Some(1_472)), (2_129, None)] {
        let config = TransportConfig { max_packet_size: 1_472, ..TransportConfig::default() };
        let mut paths =
            Paths::new(at(0), Side::Server, &config.into(), from(HOME), AddressState::Unvalidated);
        let path = paths.active_mut();
        path.on_received(1_200);
        path.on_sent(flight);
        assert_eq!(path.early_mtu_probe(0), expected, "after {flight} bytes");
        assert_eq!(path.early_mtu_probe(path.congestion.window() - 1_000), None, "the window is full");
    }
}

/// RFC 9000 §14.4, RFC 9002 §7: probes take from the window, and never more than it has.
#[test]
fn probes_never_exceed_the_window() {
    for steps in [[0, 0, 0], [500, 0, 0], [11_000, 3_000, 100], [12_000, 12_000, 12_000]] {
        let mut paths = wide_path();
        let path = paths.active_mut();
        for (data, ms) in steps.into_iter().zip([0, 100, 200]) {
            let (mut in_flight, mut sent) = (data, Vec::new());
            while let MtuProbe::Go(size) = path.next_mtu_probe(at(ms), in_flight) {
                path.on_mtu_probe_sent(at(ms), size);
                in_flight += u64::from(size);
                sent.push(size);
                assert!(in_flight <= path.congestion.window(), "{steps:?}: {sent:?} beside {data}");
            }
            sent.into_iter().for_each(|size| path.on_mtu_probe_acked(at(ms + 100), size));
        }
    }
}

/// Data leaves a probe room, for half a round trip at most; then the largest that fits goes, and data no longer waits before the
/// window has doubled.
#[test]
fn data_waits_for_a_probe_for_half_a_round_trip_at_most() {
    let mut paths = wide_path();
    let path = paths.active_mut();
    let nearly = path.congestion.window() - 1_500;
    assert_eq!(path.next_mtu_probe(at(0), nearly), MtuProbe::Wait);
    assert_eq!(path.note_mtu_probe(at(0), nearly), Blocked::ByWindow);
    assert_eq!(path.probe_wait_ends(), Some(at(50)));
    path.note_mtu_probe(at(49), nearly);
    assert_eq!(path.next_mtu_probe(at(49), nearly), MtuProbe::Wait);
    path.on_probe_wait_timeout(at(50));
    assert_eq!((path.next_mtu_probe(at(50), nearly), path.probe_wait_ends()), (MtuProbe::Go(1_472), None));
    path.on_mtu_probe_sent(at(50), 1_472);
    path.note_mtu_probe(at(50), nearly + 1_472);
    assert_eq!(path.next_mtu_probe(at(50), nearly + 1_472), MtuProbe::None, "nothing fits, no packet waits");
    path.on_mtu_probe_acked(at(150), 1_472);
    path.congestion.on_mtu_change(13_000);
    let nearly = path.congestion.window() - 1_500;
    assert_eq!(path.next_mtu_probe(at(150), nearly), MtuProbe::Wait, "another window");
}

/// A new port may mean another link: what became of the probes under way will not be told, so they leave again.
#[test]
fn a_search_goes_on_after_a_port_change() {
    let mut server = Server::connected();
    server.paths.active_mut().on_mtu_probe_sent(at(0), 1_400);
    server.paths.active_mut().on_mtu_probe_sent(at(0), 1_280);
    assert_eq!(due_probe(server.paths.active(), at(0)), None, "all are under way");
    assert!(server.packet(at(0), REBOUND, 1_200));
    let challenge = server.probe(at(0)).unwrap().challenge.unwrap();
    assert_eq!(due_probe(server.paths.active(), at(0)), None, "the address is not validated");
    server.paths.on_path_response(at(1), challenge);
    assert_eq!(due_probe(server.paths.active(), at(1)), Some(1_400));
}

/// A path that only carries small packets any more, while probe timeouts are answered because they are small.
#[test]
fn a_path_that_shrinks_is_noticed_and_congestion_is_not_taken_for_it() {
    let mut server = Server::connected();
    let path = server.paths.active_mut();
    find_size(path);
    for pn in (10..100).step_by(10) {
        path.on_large_acked(pn + 5, 1_400);
        path.on_full_lost(at(0), pn, pn + 9, Duration::ZERO);
    }
    assert_eq!(path.max_packet_size, 1_400, "later ones arrived");
    for pn in [200, 201, 202] {
        path.on_full_lost(at(0), pn, pn, Duration::ZERO);
    }
    assert_eq!(path.max_packet_size, 1_200);
}

/// Losses that turn out to be the size's are undone; congestion that has shown itself otherwise meanwhile is not.
#[test]
fn a_black_hole_undoes_no_congestion() {
    type Event = fn(&mut Path);
    let events: [(Event, u64, bool); 4] = [
        (|_| {}, 300, true),
        (Path::on_true_congestion, 300, false),
        (|_| {}, 60_000, false),
        (|path| path.on_black_hole(at(2)), 300, false),
    ];
    for (number, (event, ms, is_undone)) in events.into_iter().enumerate() {
        let mut server = Server::connected();
        let path = server.paths.active_mut();
        find_size(path);
        path.on_full_lost(at(1), 100, 100, Duration::ZERO);
        path.congestion.on_persistent_congestion();
        event(path);
        path.on_full_lost(at(2), 101, 101, Duration::ZERO);
        path.on_full_lost(at(ms), 102, 102, Duration::ZERO);
        assert_eq!(path.max_packet_size, 1_200);
        // Two packets after persistent congestion, ten before.
        let window = path.congestion.window();
        assert_eq!(window > 5 * 1_200, is_undone, "{number}: {window}");
    }
}

#[test]
fn the_peer_limits_the_packet_size() {
    let config =
        TransportConfig { initial_packet_size: 9_000, max_packet_size: 60_000, ..TransportConfig::default() };
    let mut paths =
        Paths::new(at(0), Side::Client, &config.clone().into(), from(HOME), AddressState::Validated);
    assert_eq!(paths.active().max_packet_size, 9_000);
    paths.on_peer_parameters(&TransportParameters {
        max_udp_payload_size: 1_452,
        ..TransportParameters::default()
    });
    assert_eq!(paths.active().max_packet_size, 1_452);
    paths.on_handshake_confirmed(at(0));
    assert_eq!(due_probe(paths.active(), at(0)), None);
}

proptest! {
    /// Whatever happens, in whatever order and at whatever time: an address that is not validated never gets more than three
    /// times what came from it, the number of paths is bounded, there is a validated one, and nothing panics.
    #[test]
    fn no_address_gets_more_than_three_times_what_it_sent(
        actions in prop::collection::vec((0..9_u8, 0..6_usize, 0..5_000_u64), 1..300),
    ) {
        let addresses = [HOME, REBOUND, AWAY, "203.0.113.9:7", "[2001:db8::1]:9", "[2001:db8::2]:9"];
        let mut server = Server::connected();
        let mut received = [0_u64; 6];
        let mut sent = [0_u64; 6];
        let mut proved = [true, false, false, false, false, false];
        let mut challenges: Vec<(usize, [u8; 8])> = Vec::new();
        let mut now = at(0);
        let index_of = |server: &Server, id| {
            let peer = server.paths.path(id).unwrap().addresses.peer.to_string();
            addresses.iter().position(|address| *address == peer).unwrap()
        };
        for (action, which, amount) in actions {
            match action {
                0..4 => if let Some(id) = server.paths.on_datagram(now, from(addresses[which]), amount as usize) {
                    received[which] += amount;
                    match action {
                        0 | 1 => { server.paths.on_peer_moved(now, id); },
                        2 => server.paths.on_path_challenge(now, id, [which as u8; 8]),
                        _ => {}
                    }
                },
                4 | 5 => for probe in server.probes(now) {
                    let index = index_of(&server, probe.path.unwrap());
                    sent[index] += probe.size;
                    challenges.extend(probe.challenge.map(|data| (index, data)));
                },
                6 => {
                    // Data on the active path, as much as the credit allows.
                    let id = server.paths.active_id();
                    let bytes = amount.min(server.paths.active().amplification());
                    sent[index_of(&server, id)] += bytes;
                    server.paths.path_mut(id).unwrap().on_sent(bytes);
                }
                7 => {
                    now = if amount == 4_999 { Instant::FAR_FUTURE } else { now + Duration::from_millis(amount) };
                    prop_assert_ne!(server.paths.on_timeout(now), Expiry::NoPath);
                }
                _ => if let Some((index, data)) = challenges.pop() {
                    // An answer counts only while the challenge is remembered, but an honest answer is a proof anyway.
                    if server.paths.on_path_response(now, data).is_some() {
                        proved[index] = true;
                    }
                }
            }
            for index in 0..6 {
                prop_assert!(proved[index] || sent[index] <= 3 * received[index], "address {index}");
            }
            prop_assert!(server.paths.held().0 <= 1 + MAX_OTHERS);
            let safe = server.paths.validated_addresses().peer.to_string();
            prop_assert!(proved[addresses.iter().position(|address| *address == safe).unwrap()]);
        }
    }
}
