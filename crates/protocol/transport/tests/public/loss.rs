//! What a wire may do to datagrams: lose, reorder and double them.

use crate::ends::{Received, content, whole};
use crate::setup::Setup;
use crate::world::{Fate, Judge, World};
use base::rng::Rng;
use base::time::Duration;
use std::collections::BTreeMap;
use transport::{CloseReason, Dir, Event, StreamConfig, StreamId, TransportConfig};
use wire::Side;

/// A request of 20 kB and its answer of 30 kB, from the first datagram on. Returns what it took.
pub(crate) fn exchange(world: &mut World) -> Duration {
    let began = world.now;
    let mut asked = None;
    world.run_until("the exchange", |world| {
        let Some(id) = asked else {
            if world.client.events.contains(&Event::Connected) {
                let id = world.connection(Side::Client).open(Dir::Bidi).expect("a stream");
                world.client.peer().send(id, 20_000);
                asked = Some(id);
            }
            return false;
        };
        if !world.server.peers.is_empty() && world.server.peer().received(id).has_ended {
            let is_first = world.server.peer().connection.send_capacity(id) > 0;
            if is_first {
                world.server.peer().send(id, 30_000);
            }
        }
        world.client.peer().received(id).has_ended
    });
    let id = StreamId::new(Side::Client, Dir::Bidi, 0);
    assert!(world.server.peer().received(id) == &whole(id, 20_000));
    assert!(world.client.peer().received(id) == &whole(id, 30_000));
    began_to(world, began)
}

fn began_to(world: &World, began: base::time::Instant) -> Duration {
    world.now.saturating_since(began)
}

/// RFC 9000 §13.3, RFC 9002 §6.2: whichever datagram it is, one timeout or less makes up for it.
#[test]
fn the_loss_of_any_one_of_the_first_dozen_costs_little_time() {
    let without = exchange(&mut Setup::default().begin());
    for side in [Side::Client, Side::Server] {
        for lost in 0..12 {
            let mut world = Setup::default().begin();
            world.judge = Box::new(move |datagram| {
                let is_it = (datagram.from, datagram.number) == (side, lost);
                if is_it { Fate::Lost } else { Fate::Arrives }
            });
            let took = exchange(&mut world);
            // Before the first sample of the round trip a timeout takes three initial ones: RFC 9002 §6.2.2.
            let most = without + Duration::from_millis(1_100);
            assert!(took <= most, "without datagram {lost} of {side:?}: {took:?}, else {without:?}");
            world.run_for(Duration::from_secs(5));
            assert!(
                world.connection(Side::Client).is_confirmed()
                    && world.connection(Side::Server).is_confirmed()
            );
            assert_eq!(world.connection(side).unacknowledged_bytes(), 0, "datagram {lost} of {side:?}");
        }
    }
}

/// RFC 9002 §6.2.4: a ClientHello of two datagrams arrives by any two probes. Would break: where one datagram of each pair is lost, the
/// same half is lost each time, and 30 % of loss ends one handshake of two hundred by the idle timeout.
#[test]
fn any_two_probes_carry_a_hello_that_takes_two_datagrams() {
    for lost in [0, 1] {
        let mut world = Setup::default().begin();
        world.judge = Box::new(move |datagram| {
            let (number, is_client) = (datagram.number, datagram.from.is_client());
            // The server's acknowledgement of the other half is lost, too.
            let is_lost = if is_client { number < 20 && number % 2 == lost } else { number < 1 };
            if is_lost { Fate::Lost } else { Fate::Arrives }
        });
        let began = world.now;
        world.run_until("the handshake", |world| world.server.events.contains(&Event::Connected));
        let took = began_to(&world, began);
        // The first timeout is after one second, the second after two more.
        assert!(took < Duration::from_millis(3_500), "without half {lost}: {took:?}");
    }
}

/// RFC 9000 §12.3: a packet counts once, however often it comes.
#[test]
fn doubled_datagrams_change_nothing() {
    let mut world = Setup::default().begin();
    world.judge = Box::new(|_| Fate::Doubled);
    exchange(&mut world);
    for side in [Side::Client, Side::Server] {
        world.transfer(side, 100_000);
        let counters = *world.connection(side).counters();
        let sent = world.connection(side.other()).counters().sent_packets;
        assert!(counters.dropped_duplicate > 0 && counters.received_packets <= sent, "{counters:?}");
    }
}

/// RFC 9000 §2.2, RFC 9002 §6.1: content is put in order; few of the packets that are only late are sent again.
#[test]
fn content_that_arrives_out_of_order_is_put_in_order() {
    for seed in 0..5 {
        let mut rng = Rng::from_u64(seed);
        let mut world = Setup::default().begin();
        world.judge = Box::new(move |_| Fate::Late(Duration::from_micros(rng.below(20_000))));
        exchange(&mut world);
        for side in [Side::Client, Side::Server] {
            world.transfer(side, 200_000);
        }
        let total: usize = world.log.iter().map(|datagram| datagram.bytes.len()).sum();
        assert!(total < 2_000_000, "seed {seed}: {total} bytes for 450,000");
    }
}

/// What the applications of a run do.
struct Operations {
    rng: Rng,
    /// What was written on streams of either end that were not given up, and whether all was.
    written: BTreeMap<StreamId, (usize, bool)>,
}

impl Operations {
    fn side(&mut self) -> Side {
        if self.rng.below(2) == 0 { Side::Client } else { Side::Server }
    }

    /// One thing that an application may do.
    fn act(&mut self, world: &mut World) {
        let side = self.side();
        if world.end(side).peers.is_empty() || !world.connection(side).is_connected() {
            return;
        }
        let own: Vec<StreamId> = self.written.keys().filter(|id| id.initiator() == side).copied().collect();
        let chosen = own.get(self.rng.below(own.len().max(1) as u64) as usize).copied();
        match (self.rng.below(12), chosen) {
            (0..=2, _) => {
                let dir = Dir::ALL[self.rng.below(2) as usize];
                if let Ok(id) = world.connection(side).open(dir) {
                    self.written.insert(id, (0, false));
                }
            }
            (3..=7, Some(id)) => self.write(world, id),
            (8, Some(id)) => {
                world.connection(side).reset(id, 5);
                self.written.remove(&id);
            }
            (9, Some(id)) => {
                if !world.end(side.other()).peers.is_empty() {
                    world.connection(side.other()).stop_sending(id, 6);
                    self.written.remove(&id);
                }
            }
            (10, _) => {
                let now = world.now;
                world.connection(side).update_keys(now);
            }
            _ => {
                let port = 40_000 + self.rng.below(3) as u16;
                world.seen_at = crate::world::at(1, port);
            }
        }
    }

    /// More of the stream's content, or its end.
    fn write(&mut self, world: &mut World, id: StreamId) {
        let more = self.rng.below(40_000) as usize;
        let Some((len, has_ended)) = self.written.get_mut(&id).filter(|(_, has_ended)| !has_ended) else {
            return;
        };
        let connection = world.connection(id.initiator());
        let bytes = content(id, *len + more).slice(*len..);
        if connection.write(id, bytes).is_ok() {
            *len += more;
        }
        if more < 10_000 {
            *has_ended = connection.finish_stream(id).is_ok();
        }
    }

    /// What has arrived is a beginning of what was written.
    fn check(&self, world: &mut World) {
        for (&id, &(len, _)) in &self.written {
            let Some((_, peer)) = world.end(id.initiator().other()).peers.iter_mut().next() else { continue };
            let Received { bytes, .. } = peer.received(id);
            assert!(bytes.len() <= len, "{id:?} has more than was written");
            assert!(*bytes == content(id, bytes.len()), "{id:?} differs");
        }
    }

    /// All that was written and not given up has arrived, once and in order; streams that did not end hold a beginning.
    fn is_complete(&self, world: &mut World) -> bool {
        self.written.iter().all(|(&id, &(len, has_ended))| {
            let received = world.end(id.initiator().other()).peer().received(id);
            received.bytes.len() == len && received.has_ended == has_ended
        })
    }
}

/// A wire by a seed: what it does to datagrams, and in one seed of eight when it stops carrying any.
fn hostile(seed: u64) -> Judge {
    let mut rng = Rng::from_u64(seed ^ 0x5eed);
    let [lost, doubled, late] = [250, 200, 300].map(|most| rng.below(most));
    let mut carries = if seed % 8 == 7 { rng.below(100) } else { u64::MAX };
    Box::new(move |_| {
        carries = carries.saturating_sub(1);
        let mut falls = |thousandths| rng.below(1_000) < thousandths;
        if carries == 0 || falls(lost) {
            Fate::Lost
        } else if falls(doubled) {
            Fate::Doubled
        } else if falls(late) {
            Fate::Late(Duration::from_micros(rng.below(60_000)))
        } else {
            Fate::Arrives
        }
    })
}

/// Runs of the property test.
const SEEDS: u64 = 20;
/// The code of an application that closes.
const CODE: u64 = 77;

/// A run and what came of it.
struct Run {
    world: World,
    survived: bool,
    /// Bytes that were written on streams that were not given up.
    written: usize,
}

/// Loss, delay, copies, moves, key updates, resets, small windows and, in one seed of four, a close.
fn run(seed: u64) -> Run {
    let streams = StreamConfig {
        initial_stream_window: 20_000,
        max_stream_window: 50_000,
        initial_connection_window: 50_000,
        max_connection_window: 100_000,
        max_bidi_streams: 5,
        max_uni_streams: 5,
        ..StreamConfig::default()
    };
    let transport = TransportConfig { streams, ..TransportConfig::default() };
    let mut world = Setup::both(&transport).begin();
    world.judge = hostile(seed);
    let mut operations = Operations { rng: Rng::from_u64(seed), written: BTreeMap::new() };
    for _ in 0..200 {
        operations.act(&mut world);
        let span = Duration::from_micros(operations.rng.below(30_000));
        world.run_for(span);
    }
    if seed % 4 == 2 && !world.client.peers.is_empty() {
        let now = world.now;
        world.connection(Side::Client).close(now, CODE, b"");
    }
    let mut is_over = false;
    world.run_until("an outcome", |world| {
        is_over = !world.client.ends().is_empty() || !world.server.ends().is_empty();
        let both = !world.client.peers.is_empty() && !world.server.peers.is_empty();
        is_over || (both && operations.is_complete(world))
    });
    operations.check(&mut world);
    if is_over {
        world.run_until("both ends", |world| world.client.peers.is_empty() && world.server.peers.is_empty());
        let told = [world.client.ends(), world.server.ends()].concat();
        assert!(!told.is_empty() && told.iter().all(is_expected), "seed {seed}: {told:?}");
    }
    let written = operations.written.values().map(|(len, _)| len).sum();
    Run { world, survived: !is_over, written }
}

/// Time or an application ends a connection; neither end finds a violation.
fn is_expected(end: &CloseReason) -> bool {
    match end {
        CloseReason::Local { code } | CloseReason::PeerApplication { code, .. } => *code == CODE,
        // From an end that has closed and forgotten the connection before the other end received the close.
        CloseReason::StatelessReset => true,
        CloseReason::HandshakeTimeout | CloseReason::IdleTimeout | CloseReason::PathLost => true,
        _ => false,
    }
}

/// RFC 9000 §2.2, §10.1: every byte arrives exactly once and in order, or the connection ends with a reason.
#[test]
fn every_byte_arrives_once_or_the_connection_ends_with_a_reason() {
    let runs: Vec<Run> = (0..SEEDS).map(run).collect();
    let survivors = runs.iter().filter(|run| run.survived).count();
    let written: usize = runs.iter().filter(|run| run.survived).map(|run| run.written).sum();
    assert!((10..20).contains(&survivors) && written > 1_000_000, "{survivors} of {SEEDS}, {written} bytes");
}

/// The crate documentation: no clock, and no randomness but that of the seed. That of TLS changes neither sizes nor times.
#[test]
fn the_same_seed_gives_the_same_run() {
    let shape = |seed| {
        let log = run(seed).world.log;
        let of_one = |sent: &crate::world::Datagram| (sent.from, sent.sent_at, sent.bytes.len(), sent.ecn);
        log.iter().map(of_one).collect::<Vec<_>>()
    };
    let first = shape(3);
    assert!(first.len() > 100 && first == shape(3) && first != shape(4));
}

/// RFC 9001 §5.5, RFC 9000 §12.2: a packet that is not authentic is dropped and changes nothing.
#[test]
fn damaged_copies_are_dropped_and_harm_nothing() {
    let mut rng = Rng::from_u64(1);
    let mut world = Setup::default().begin();
    for _ in 0..4 {
        world.step_for(40);
        for mut datagram in world.log.clone() {
            let place = rng.below(datagram.bytes.len() as u64) as usize;
            datagram.bytes[place] ^= 1 << rng.below(8);
            world.repeat(datagram);
        }
    }
    exchange(&mut world);
    for side in [Side::Client, Side::Server] {
        world.transfer(side, 50_000);
        assert!(world.end(side).ends().is_empty());
        let counters = *world.connection(side).counters();
        assert!(counters.dropped_forged > 0, "{counters:?}");
    }
}
