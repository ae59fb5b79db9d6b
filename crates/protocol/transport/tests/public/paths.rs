//! Several paths at once (draft-ietf-quic-multipath): each path has a rate of its own, and may fail.

use crate::setup::Setup;
use crate::world::{Datagram, Fate, Judge, World, at, home};
use base::time::{Duration, Instant};
use core::net::SocketAddr;
use transport::{
    CloseReason, Dir, Endpoint, EndpointConfig, Event, LaneId, MigrateError, OpenPathError, PathPreference,
    Scheduler, StreamId, TransportConfig,
};
use wire::Side;
use wire::error::Code;

const SECOND: LaneId = LaneId(1);

/// The client's address on the second network.
fn other_home() -> SocketAddr {
    at(5, 41_000)
}

fn multipath(scheduler: Scheduler) -> TransportConfig {
    TransportConfig { multipath: Some(scheduler), ..TransportConfig::default() }
}

/// Whether a datagram goes over the second network.
fn is_on_second(datagram: &Datagram) -> bool {
    datagram.source == other_home() || datagram.destination == other_home()
}

/// Two networks, each of which carries a datagram in this much time, after a delay of its own beside that of all, and has a queue of
/// 50 ms. The second loses everything from `fails_at` on.
fn networks(each: [Duration; 2], delays: [Duration; 2], fails_at: Option<Instant>) -> Judge {
    let mut free_at = [[Instant::ZERO; 2]; 2];
    Box::new(move |datagram| {
        let (second, way) = (usize::from(is_on_second(datagram)), usize::from(datagram.from.is_client()));
        if second == 1 && fails_at.is_some_and(|at| datagram.sent_at >= at) {
            return Fate::Lost;
        }
        let free_at = &mut free_at[second][way];
        let leaves = datagram.sent_at.max(*free_at) + each[second] * datagram.bytes.len() as u64 / 1_200;
        let waits = leaves.saturating_since(datagram.sent_at);
        if waits > Duration::from_millis(50) {
            return Fate::Lost;
        }
        *free_at = leaves;
        Fate::Late(waits + delays[second])
    })
}

/// The time that 1,200 bytes take at 50 Mbit/s.
const AT_50_MBITS: Duration = Duration::from_micros(192);

/// Two ends that use two paths.
fn on_two_paths(config: TransportConfig, judge: Judge) -> World {
    let mut world = Setup::both(&config).connected();
    world.judge = judge;
    world.others = vec![other_home()];
    world.run_for(Duration::from_millis(100));
    open(&mut world);
    world
}

fn open(world: &mut World) {
    let now = world.now;
    assert_eq!(world.connection(Side::Client).open_path(now, other_home()), Ok(SECOND));
    world.run_until("the second path", |world| {
        [&world.client, &world.server]
            .into_iter()
            .all(|end| end.events.iter().any(|event| matches!(event, Event::PathOpened { id: SECOND, .. })))
    });
}

fn closed(world: &mut World, side: Side) -> Vec<(LaneId, Code)> {
    let end = world.end(side);
    let closed = |event: &Event| match event {
        Event::PathClosed { id, code, .. } => Some((*id, *code)),
        _ => None,
    };
    end.events.iter().filter_map(closed).collect()
}

/// Begins a download of this many bytes.
fn begin(world: &mut World, len: usize) -> StreamId {
    let id = world.connection(Side::Server).open(Dir::Uni).expect("a stream");
    world.server.peer().send(id, len);
    id
}

fn has_ended(world: &mut World, id: StreamId) -> bool {
    world.client.peer().received(id).has_ended
}

/// Bytes that one end has sent over each network since the log was so long.
fn sent_since(world: &World, from: Side, since: usize) -> [usize; 2] {
    let mut bytes = [0; 2];
    for datagram in world.log[since..].iter().filter(|datagram| datagram.from == from) {
        bytes[usize::from(is_on_second(datagram))] += datagram.bytes.len();
    }
    bytes
}

/// Megabits a second at which this many bytes of content reached the client.
fn rate(world: &mut World, len: usize) -> f64 {
    let began = world.now;
    let id = begin(world, len);
    world.run_until("the download", |world| has_ended(world, id));
    len as f64 * 8.0 / world.now.saturating_since(began).as_secs_f64() / 1e6
}

/// Deleted, two links of 50 Mbit/s could carry no more than one.
#[test]
fn the_rates_of_two_paths_add_up() {
    for scheduler in [Scheduler::LowestRtt, Scheduler::RoundRobin] {
        let delays = [Duration::ZERO, Duration::from_millis(10)];
        let mut world = on_two_paths(multipath(scheduler), networks([AT_50_MBITS; 2], delays, None));
        world.transfer(Side::Server, 2_000_000);
        let rate = rate(&mut world, 6_000_000);
        assert!(rate > 85.0, "{scheduler:?}: {rate:.1} Mbit/s");
    }
}

/// Deleted, an end that was not asked could use several paths, or a nonce twice.
#[test]
fn without_the_agreement_of_both_ends_there_is_one_path() {
    let (with, without) = (multipath(Scheduler::LowestRtt), TransportConfig::default());
    for (client, server) in [(with.clone(), without.clone()), (without, with)] {
        let mut world = Setup { client, server, ..Setup::default() }.connected();
        world.others = vec![other_home()];
        world.run_for(Duration::from_millis(100));
        let now = world.now;
        let refused = world.connection(Side::Client).open_path(now, other_home());
        assert_eq!(refused, Err(OpenPathError::Unsupported));
        world.transfer(Side::Server, 50_000);
        assert_eq!(world.connection(Side::Server).paths().len(), 1);
    }
}

/// Draft §3.1: the server sends no data before the client has proved to be there, nor the client before the server has answered.
#[test]
fn a_path_carries_data_only_when_it_is_validated() {
    let mut world = Setup::both(&multipath(Scheduler::RoundRobin)).connected();
    world.others = vec![other_home()];
    world.run_for(Duration::from_millis(100));
    let now = world.now;
    assert_eq!(world.connection(Side::Server).open_path(now, other_home()), Err(OpenPathError::Server));
    assert_eq!(world.connection(Side::Client).open_path(now, home()), Err(OpenPathError::SamePath));
    let id = begin(&mut world, 3_000_000);
    let since = world.log.len();
    open(&mut world);
    let is_early = |sent: &&Datagram| is_on_second(sent) && sent.sent_at < now + Duration::from_millis(20);
    let early: Vec<usize> = world.log[since..].iter().filter(is_early).map(|sent| sent.bytes.len()).collect();
    assert_eq!(early, [1_200, 1_200], "a challenge each");
    world.run_until("the download", |world| has_ended(world, id));
    let [first, second] = sent_since(&world, Side::Server, since);
    assert!(first > 500_000 && second > 500_000, "{first} and {second} bytes");
    // No connection ID is used on both, so that the two cannot be linked.
    let cids = |on_second: bool| {
        let sent = world.log.iter().filter(move |sent| is_on_second(sent) == on_second);
        sent.filter(|sent| sent.bytes[0] & 0x80 == 0).map(|sent| sent.bytes[1..9].to_vec())
    };
    let used: std::collections::BTreeSet<_> = cids(false).collect();
    assert!(cids(true).all(|cid| !used.contains(&cid)), "linkable");
}

/// Deleted, a report could count bytes of one path for another, or forget a path that is over.
#[test]
fn each_path_is_counted_by_itself_and_known_when_it_is_over() {
    let mut world = on_two_paths(multipath(Scheduler::RoundRobin), Box::new(|_| Fate::Arrives));
    world.transfer(Side::Server, 3_000_000);
    world.run_for(Duration::from_secs(1));
    let counts = |world: &mut World, side| {
        let paths = world.connection(side).paths();
        let mut counters = paths.into_iter().map(|path| path.counters);
        [counters.next().expect("the first"), counters.next().expect("the second")]
    };
    let (client, server) = (counts(&mut world, Side::Client), counts(&mut world, Side::Server));
    let all = *world.connection(Side::Client).counters();
    let handshake: usize =
        world.log.iter().filter(|sent| sent.bytes[0] & 0x80 != 0).map(|sent| sent.bytes.len()).sum();
    for (side, counts, peer) in [(Side::Client, client, server), (Side::Server, server, client)] {
        let sent = sent_since(&world, side, 0);
        assert_eq!(counts.map(|path| path.sent_bytes), sent.map(|bytes| bytes as u64), "{side:?}");
        assert_eq!(counts[1].received_bytes, peer[1].sent_bytes, "{side:?}");
        assert!(counts[0].received_bytes + handshake as u64 >= peer[0].sent_bytes, "{side:?}");
        assert_eq!(counts[1].received_packets, peer[1].sent_packets, "{side:?}");
    }
    assert_eq!(client[0].received_packets + client[1].received_packets, all.received_packets);
    assert_eq!(client[0].lost_packets + client[1].lost_packets, all.lost_packets);
    assert!(client[0].received_bytes > 500_000 && client[1].received_bytes > 500_000, "{client:?}");
    assert!(world.connection(Side::Client).past_paths().is_empty());
    let now = world.now;
    assert!(world.connection(Side::Client).abandon_path(now, LaneId::FIRST));
    world.run_for(Duration::from_secs(3));
    let past = world.connection(Side::Client).past_paths().to_vec();
    let ended = Some(Code::APPLICATION_ABANDON_PATH);
    assert_eq!((past.len(), past[0].id, past[0].ended), (1, LaneId::FIRST, ended));
    assert_eq!(
        (past[0].addresses.local, past[0].counters.received_bytes),
        (home(), client[0].received_bytes)
    );
}

/// Deleted, what is in flight on a path that dies could wait for a second timeout, or for ever.
#[test]
fn a_path_that_dies_stalls_the_download_for_less_than_two_timeouts() {
    for dies in [10, 85, 160, 235] {
        let judge = networks([AT_50_MBITS; 2], [Duration::ZERO, Duration::from_millis(5)], None);
        let mut world = on_two_paths(multipath(Scheduler::LowestRtt), judge);
        world.transfer(Side::Server, 1_000_000);
        let fails_at = world.now + Duration::from_millis(dies);
        world.judge = networks([AT_50_MBITS; 2], [Duration::ZERO, Duration::from_millis(5)], Some(fails_at));
        let id = begin(&mut world, 6_000_000);
        let (mut had, mut since, mut longest) = (0, world.now, Duration::ZERO);
        let mut pto = Duration::ZERO;
        while !has_ended(&mut world, id) {
            world.run_for(Duration::from_millis(1));
            let has = world.client.peer().received(id).bytes.len();
            if has > had {
                (had, since) = (has, world.now);
            }
            longest = longest.max(world.now.saturating_since(since));
            if world.now < fails_at {
                let paths = world.connection(Side::Server).paths();
                pto = paths.iter().map(|path| path.probe_timeout).max().unwrap();
            }
            assert!(longest < Duration::from_secs(5));
        }
        assert!(longest < pto * 2, "{longest:?} where a PTO is {pto:?}");
        world.run_until("the end of the path", |world| !closed(world, Side::Client).is_empty());
        assert_eq!(closed(&mut world, Side::Server), [(SECOND, Code::PATH_UNSTABLE_OR_POOR)]);
        world.transfer(Side::Client, 50_000);
    }
}

/// Draft §3.4: deleted, the end of the first path could be the end of the connection, or a path ID be used twice.
#[test]
fn any_path_may_end_and_another_may_follow() {
    let mut world = on_two_paths(multipath(Scheduler::LowestRtt), Box::new(|_| Fate::Arrives));
    for (round, ended) in [(2, LaneId::FIRST), (3, SECOND), (4, LaneId(2)), (5, LaneId(3))] {
        let id = begin(&mut world, 400_000);
        world.run_for(Duration::from_millis(25));
        let now = world.now;
        let side = if round % 2 == 0 { Side::Client } else { Side::Server };
        assert!(world.connection(side).abandon_path(now, ended));
        assert!(!world.connection(side).abandon_path(now, ended));
        world.run_until("the download", |world| has_ended(world, id));
        world.run_for(Duration::from_secs(3));
        for side in [Side::Client, Side::Server] {
            assert_eq!(closed(&mut world, side).last(), Some(&(ended, Code::APPLICATION_ABANDON_PATH)));
            assert_eq!(world.connection(side).paths().len(), 1);
        }
        let now = world.now;
        let local = if round % 2 == 0 { home() } else { other_home() };
        assert_eq!(world.connection(Side::Client).open_path(now, local), Ok(LaneId(round)), "{round}");
        world.run_for(Duration::from_millis(500));
        assert_eq!(world.connection(Side::Server).paths().len(), 2);
        world.transfer(Side::Client, 50_000);
    }
    for side in [Side::Client, Side::Server] {
        let past: Vec<LaneId> = world.connection(side).past_paths().iter().map(|path| path.id).collect();
        assert_eq!(past, [LaneId::FIRST, SECOND, LaneId(2), LaneId(3)], "{side:?}");
    }
    let now = world.now;
    let last = world.connection(Side::Client).paths();
    assert!(world.connection(Side::Client).abandon_path(now, last[0].id));
    world.run_for(Duration::from_secs(1));
    let now = world.now;
    assert!(!world.connection(Side::Client).abandon_path(now, last[1].id), "the only one");
    let past = world.connection(Side::Client).past_paths();
    assert_eq!((past.len(), past[0].id, past[3].id), (4, SECOND, last[0].id), "the last four");
}

/// Draft §3.4: deleted, two PATH_ABANDON frames that cross could end a path twice, or each end could wait for the other's for ever.
#[test]
fn both_ends_may_abandon_one_path_at_the_same_time() {
    for first in [false, true] {
        for loses in [0, 3, 4] {
            let mut world = on_two_paths(multipath(Scheduler::RoundRobin), Box::new(|_| Fate::Arrives));
            // The frames go again where their packets are lost.
            world.judge = Box::new(move |datagram| {
                let is_lost = loses > 0 && datagram.number % loses == 0;
                if is_lost { Fate::Lost } else { Fate::Arrives }
            });
            let ended = if first { LaneId::FIRST } else { SECOND };
            let id = begin(&mut world, 400_000);
            world.run_for(Duration::from_millis(25));
            let now = world.now;
            for side in [Side::Client, Side::Server] {
                assert!(world.connection(side).abandon_path(now, ended), "{side:?}");
            }
            world.run_until("the download", |world| has_ended(world, id));
            world.judge = Box::new(|_| Fate::Arrives);
            world.run_for(Duration::from_secs(3));
            for side in [Side::Client, Side::Server] {
                let told = closed(&mut world, side);
                assert_eq!(told, [(ended, Code::APPLICATION_ABANDON_PATH)], "{side:?} {first} {loses}");
                assert_eq!(world.connection(side).paths().len(), 1);
                let past: Vec<LaneId> =
                    world.connection(side).past_paths().iter().map(|path| path.id).collect();
                assert_eq!(past, [ended], "{side:?}");
            }
            let (now, local) = (world.now, if first { home() } else { other_home() });
            assert_eq!(world.connection(Side::Client).open_path(now, local), Ok(LaneId(2)));
            world.run_for(Duration::from_millis(500));
            assert_eq!(world.connection(Side::Server).paths().len(), 2);
            world.transfer(Side::Client, 50_000);
        }
    }
}

/// Deleted, a connection whose ends have each given up the path that the other one keeps could stay for ever: neither reads what comes on
/// the path that it has abandoned, so neither hears of it.
#[test]
fn ends_that_abandon_each_others_last_path_at_the_same_time_end_by_their_idle_timeout() {
    let mut world = on_two_paths(multipath(Scheduler::LowestRtt), Box::new(|_| Fate::Arrives));
    let now = world.now;
    assert!(world.connection(Side::Client).abandon_path(now, LaneId::FIRST));
    assert!(world.connection(Side::Server).abandon_path(now, SECOND));
    world.run_for(Duration::from_secs(60));
    assert_eq!(world.client.ends(), [CloseReason::IdleTimeout]);
    assert_eq!(world.server.ends(), [CloseReason::IdleTimeout]);
}

/// Draft §3.3: deleted, a path that is meant as a backup could carry data.
#[test]
fn a_backup_carries_data_only_when_no_other_path_does() {
    let mut world = on_two_paths(multipath(Scheduler::RoundRobin), Box::new(|_| Fate::Arrives));
    assert!(world.connection(Side::Client).prefer_path(SECOND, PathPreference::Backup));
    world.run_for(Duration::from_millis(100));
    let since = world.log.len();
    world.transfer(Side::Server, 500_000);
    let [first, second] = sent_since(&world, Side::Server, since);
    assert!(first > 500_000 && second < 5_000, "{first} and {second} bytes");
    world.judge = Box::new(|datagram| if is_on_second(datagram) { Fate::Arrives } else { Fate::Lost });
    world.transfer(Side::Server, 500_000);
    world.judge = Box::new(|_| Fate::Arrives);
    assert!(world.connection(Side::Client).prefer_path(SECOND, PathPreference::Available));
}

/// Deleted, a small answer could wait for a lost packet though a second path was there to carry it too.
#[test]
fn little_data_goes_on_both_paths_when_it_is_to_be_repeated() {
    let mut world = on_two_paths(multipath(Scheduler::Redundant), Box::new(|_| Fate::Arrives));
    world.run_for(Duration::from_millis(500));
    for on_second in [false, true] {
        world.judge = Box::new(move |datagram| {
            let is_lost = datagram.from.is_server() && is_on_second(datagram) == on_second;
            if is_lost { Fate::Lost } else { Fate::Arrives }
        });
        let began = world.now;
        world.transfer(Side::Server, 8_000);
        let took = world.now.saturating_since(began);
        assert!(took < Duration::from_millis(15), "{took:?}");
        world.judge = Box::new(|_| Fate::Arrives);
        world.run_for(Duration::from_secs(2));
    }
    let since = world.log.len();
    world.transfer(Side::Server, 2_000_000);
    let sent: usize = sent_since(&world, Side::Server, since).into_iter().sum();
    assert!(sent < 2_300_000, "{sent} bytes for two million");
    // On a single path nothing is repeated.
    let now = world.now;
    assert!(world.connection(Side::Client).abandon_path(now, SECOND));
    world.run_for(Duration::from_secs(1));
    let since = world.log.len();
    world.transfer(Side::Server, 8_000);
    let [first, second] = sent_since(&world, Side::Server, since);
    assert!(first < 9_000 && second == 0, "{first} and {second} bytes for 8,000");
}

/// Draft §2.4, §2.5: keys change for all paths at once, and no packet is lost over it.
#[test]
fn keys_change_while_data_flows_on_two_paths() {
    let judge = networks([AT_50_MBITS; 2], [Duration::ZERO, Duration::from_millis(30)], None);
    let mut world = on_two_paths(multipath(Scheduler::RoundRobin), judge);
    for round in 1..4 {
        let id = begin(&mut world, 1_000_000);
        world.run_for(Duration::from_millis(40));
        let now = world.now;
        assert!(world.connection(Side::Server).update_keys(now), "round {round}");
        world.run_until("the download", |world| has_ended(world, id));
        world.transfer(Side::Client, 20_000);
        world.run_for(Duration::from_secs(2));
        for side in [Side::Client, Side::Server] {
            let counters = *world.connection(side).counters();
            assert_eq!((counters.key_updates, counters.dropped_forged), (round, 0), "{side:?}");
        }
    }
}

/// Deleted, a path on which nothing answers could end the connection, or be tried for ever.
#[test]
fn a_path_on_which_nothing_answers_is_given_up() {
    let mut world = Setup::both(&multipath(Scheduler::LowestRtt)).connected();
    world.others = vec![other_home()];
    world.run_for(Duration::from_millis(100));
    world.judge = Box::new(|datagram| if is_on_second(datagram) { Fate::Lost } else { Fate::Arrives });
    let now = world.now;
    assert_eq!(world.connection(Side::Client).open_path(now, other_home()), Ok(SECOND));
    world.run_until("the end", |world| !closed(world, Side::Client).is_empty());
    world.run_for(Duration::from_secs(5));
    world.judge = Box::new(|_| Fate::Arrives);
    let now = world.now;
    assert_eq!(world.connection(Side::Client).open_path(now, other_home()), Ok(LaneId(2)));
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.connection(Side::Server).paths().len(), 2);
    world.transfer(Side::Server, 50_000);
}

/// RFC 9000 §10.3.1. Deleted, a server that has forgotten a connection could end it on its first path only.
#[test]
fn a_stateless_reset_is_recognised_on_every_path() {
    let endpoint = EndpointConfig { reset_key: Some([7; 32]), ..EndpointConfig::default() };
    for other_first in [false, true] {
        let mut world =
            Setup { endpoint: endpoint.clone(), ..Setup::both(&multipath(Scheduler::LowestRtt)) }.connected();
        world.others = vec![other_home()];
        world.run_for(Duration::from_millis(100));
        open(&mut world);
        if other_first {
            // Another path takes the place of the first one, and its tokens with it.
            let now = world.now;
            assert!(world.connection(Side::Client).abandon_path(now, LaneId::FIRST));
            world.run_for(Duration::from_secs(3));
            assert_eq!(closed(&mut world, Side::Client).len(), 1);
        }
        world.server.endpoint = Endpoint::new(endpoint.clone(), [3; 32]);
        world.server.peers = Default::default();
        world.judge = Box::new(|datagram| if is_on_second(datagram) { Fate::Arrives } else { Fate::Lost });
        let id = world.connection(Side::Client).open(Dir::Uni).expect("a stream");
        world.client.peer().send(id, 100);
        world.run_for(Duration::from_secs(2));
        assert_eq!(world.client.ends(), [CloseReason::StatelessReset], "{other_first}");
    }
}

/// Deleted, a connection could move onto a path that it uses already, or wait for a packet to be lost where its address is gone.
#[test]
fn the_addresses_of_all_paths_count() {
    let mut world = on_two_paths(multipath(Scheduler::LowestRtt), Box::new(|_| Fate::Arrives));
    let now = world.now;
    let refused = world.connection(Side::Client).migrate(now, other_home());
    assert_eq!(refused, Err(MigrateError::SamePath), "the second path is there");
    assert!(!world.connection(Side::Client).forget_local_address(now, other_home().ip()));
    let left = world.connection(Side::Client).paths();
    assert_eq!((left.len(), left[0].id), (1, LaneId::FIRST), "it ends at once");
    assert!(world.connection(Side::Client).forget_local_address(now, home().ip()), "no other is left");
    world.transfer(Side::Server, 50_000);
    // The first path goes, and with the second the connection goes on.
    let mut world = on_two_paths(multipath(Scheduler::LowestRtt), Box::new(|_| Fate::Arrives));
    let now = world.now;
    assert!(!world.connection(Side::Client).forget_local_address(now, home().ip()));
    assert_eq!(world.connection(Side::Client).addresses().local, other_home());
    world.transfer(Side::Server, 50_000);
}
