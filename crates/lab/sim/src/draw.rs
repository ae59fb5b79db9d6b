//! Scenarios at random: a seed stands for a network, two set-ups and a plan, as bad as a network may be that still heals.
//!
//! Everything is drawn in a fixed order, and draws that are not used are made all the same, so that a change to one range
//! does not reshuffle the rest of a seed.

use crate::host::HostOptions;
use crate::port::PortOptions;
use crate::scenario::{Family, Moves, Scenario};
use crate::tls::{Returning, TlsChoice};
use base::rng::Rng;
use base::time::Duration;
use crypto::{KeyExchange, Suite, SuiteChoice};
use link::{Burst, EventRate, Node, Renewal};
use qlog::{Keep, Triggers};
use recovery::congestion::Algorithm;
use transport::{PreferredAddresses, RetryPolicy, Scheduler, Switch, TransportConfig};
use wire::Version;

/// Megabits a second.
const RATES: [u64; 10] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000];

/// Longest one-way delay in ms.
const MAX_DELAY_MS: u64 = 150;

/// A generator with the questions that drawing asks.
#[derive(Debug)]
pub struct Draw(Rng);

impl Draw {
    /// The draws of a seed.
    pub fn new(seed: u64) -> Draw {
        Draw(Rng::from_u64(seed))
    }

    /// Whether an event of one in `n` happens.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.0.below(n) == 0
    }

    /// A number between two others, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high.saturating_sub(low) + 1)
    }

    /// One of a few.
    pub fn pick<T: Copy>(&mut self, choices: &[T], otherwise: T) -> T {
        let index = self.0.below(choices.len() as u64) as usize;
        choices.get(index).copied().unwrap_or(otherwise)
    }

    /// A number up to `2^bits` of which every magnitude is as likely as any other.
    pub fn magnitude(&mut self, bits: u64) -> u64 {
        let bits = self.0.below(bits + 1);
        (1 << bits) + self.0.below(1 << bits)
    }

    fn ppm(&mut self, percent: u64) -> u32 {
        self.0.below(percent * 10_000) as u32 + 1
    }

    fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }
}

/// A scenario, and how many bytes its network carries in ten seconds when nothing goes wrong.
#[derive(Clone, Debug)]
pub struct RandomScenario {
    /// The scenario.
    pub scenario: Scenario,
    /// Bytes in ten seconds.
    pub capacity: u64,
    /// Whether the client's address changes.
    pub rebinds: bool,
}

/// The scenario of `seed`.
pub fn scenario(seed: u64) -> RandomScenario {
    let mut draw = Draw::new(seed);
    let megabits = draw.pick(&RATES, 10);
    let delays = [delay(&mut draw), delay(&mut draw)];
    let mut scenario = Scenario::interop(seed);
    let kept = [
        road(&mut draw, megabits, delays, &mut scenario.to_server),
        road(&mut draw, megabits, delays, &mut scenario.to_client),
    ];
    blackhole(&mut draw, &mut scenario);
    let rebinds = rebinding(&mut draw, &mut scenario);
    ends(&mut draw, &mut scenario, rebinds);
    moves(&mut draw, &mut scenario);
    traces(&mut draw, &mut scenario);
    // RFC 5681's square-root law: what a lossy road carries whatever its rate.
    let kept = kept.into_iter().min().unwrap_or(1_000_000);
    let lost_ppm = 1_000_000 - kept.min(999_999);
    let rtt_ms = (delays[0] + delays[1]).as_millis().max(1);
    let windows = 10_000 / (rtt_ms + 20);
    let window = 1_200 * (1_000_000 / lost_ppm).isqrt().max(1);
    let capacity = (megabits * 1_250_000).min(window * windows).max(2_000);
    RandomScenario { scenario, capacity, rebinds }
}

fn delay(draw: &mut Draw) -> Duration {
    let (is_near, near, far) = (draw.one_in(3), draw.between(0, 2_000), draw.millis(1, MAX_DELAY_MS));
    if is_near { Duration::from_micros(near) } else { far }
}

/// One direction; returns how many datagrams of a million get through it in good order.
fn road(draw: &mut Draw, megabits: u64, delays: [Duration; 2], nodes: &mut Vec<Node>) -> u64 {
    nodes.clear();
    let in_flight = megabits * (delays[0] + delays[1]).as_micros() / 8;
    let quarters = draw.pick(&[1, 2, 4, 8, 16], 4);
    let queue_bytes = (in_flight * quarters / 4).max(30_000);
    nodes.push(Node::Rate { bits_per_second: megabits * 1_000_000, queue_bytes });
    nodes.push(Node::Delay(delays[draw.between(0, 1) as usize]));
    let mut spoiled = 0;
    let (use_loss, mean, ppm) = (draw.one_in(3), draw.between(1, 6) as u32, draw.ppm(10));
    if use_loss {
        nodes.push(Node::Loss(EventRate { ppm, burst: Burst::Mean(mean) }));
        spoiled += ppm;
    }
    let (use_corruption, ppm) = (draw.one_in(4), draw.ppm(5));
    if use_corruption {
        nodes.push(Node::Corrupt(EventRate { ppm, burst: Burst::None }));
        spoiled += ppm;
    }
    let (use_reordering, ppm, by) = (draw.one_in(3), draw.ppm(20), draw.millis(1, 50));
    if use_reordering {
        nodes.push(Node::Reorder { ppm, by });
        spoiled += ppm / 4;
    }
    let (use_duplication, ppm, after) = (draw.one_in(4), draw.ppm(10), draw.millis(0, 60));
    if use_duplication {
        nodes.push(Node::Duplicate { ppm, after });
    }
    let (use_mtu, mtu) = (draw.one_in(4), draw.between(1_200, 1_500));
    if use_mtu {
        nodes.push(Node::Mtu(mtu as usize));
    }
    let (use_marks, ppm, use_bleach) = (draw.one_in(5), draw.ppm(10), draw.one_in(8));
    if use_marks {
        nodes.push(Node::EcnMark { ppm });
    }
    if use_bleach {
        nodes.push(Node::EcnBleach);
    }
    1_000_000 - u64::from(spoiled)
}

fn blackhole(draw: &mut Draw, scenario: &mut Scenario) {
    let (is_used, which) = (draw.one_in(4), draw.between(0, 2));
    let (from, length) = (draw.millis(0, 4_000), draw.millis(20, 6_000));
    if is_used {
        let hole = Node::Blackhole { from, to: from + length };
        if which != 0 {
            scenario.to_client.insert(0, hole.clone());
        }
        if which != 1 {
            scenario.to_server.insert(0, hole);
        }
    }
}

/// Whether the client's address changes during the run.
fn rebinding(draw: &mut Draw, scenario: &mut Scenario) -> bool {
    let (is_used, at, times, every) =
        (draw.one_in(4), draw.millis(0, 2_000), draw.between(1, 5) as u32, draw.millis(1_000, 6_000));
    let what = draw.pick(&[Renewal::Port, Renewal::Address], Renewal::Port);
    if is_used {
        scenario.to_server.insert(0, Node::Rebind { at, every, times, what });
    }
    is_used
}

/// The client moves, or its server prefers another address.
fn moves(draw: &mut Draw, scenario: &mut Scenario) {
    let (is_used, times, every) = (draw.one_in(3), draw.between(1, 6) as u32, draw.millis(50, 3_000));
    if is_used {
        scenario.moves = Moves { times, every };
    }
    if draw.one_in(6) {
        scenario.server.preferred_address = PreferredAddresses::default().with(scenario.preferred_address());
    }
    // A client that can use several paths opens and ends them instead of moving.
    let schedulers = [Scheduler::LowestRtt, Scheduler::RoundRobin, Scheduler::Redundant];
    let (is_used, scheduler) = (draw.one_in(3), draw.pick(&schedulers, Scheduler::LowestRtt));
    if is_used {
        (scenario.client.multipath, scenario.server.multipath) = (Some(scheduler), Some(scheduler));
    }
}

/// Some scenarios have traces: whole ones, ones that are full early, or the last events of connections that end badly.
fn traces(draw: &mut Draw, scenario: &mut Scenario) {
    let (is_used, what) = (draw.one_in(8), draw.between(0, 2));
    let (max_bytes, ring_bytes) = (draw.magnitude(20), draw.magnitude(18) as usize);
    let when = Triggers { error: true, stall: true, loss_per_mille: Some(1) };
    let keep = match what {
        0 => Keep::default(),
        1 => Keep { max_bytes, ..Keep::default() },
        _ => Keep { when: Some(when), ring_bytes, ..Keep::default() },
    };
    scenario.traced = is_used.then_some(keep);
}

/// How the two ends are set up.
fn ends(draw: &mut Draw, scenario: &mut Scenario, rebinds: bool) {
    scenario.family = draw.pick(&[Family::V4, Family::V6], Family::V4);
    let one_of_all = SuiteChoice::Only(draw.pick(&Suite::ALL, Suite::Aes128Gcm));
    scenario.tls = TlsChoice {
        suites: one_of_all,
        key_exchange: if draw.one_in(4) { KeyExchange::PostQuantum } else { KeyExchange::X25519 },
        chain: draw.between(1, 4) as usize,
        ..TlsChoice::default()
    };
    scenario.retry = if draw.one_in(4) { RetryPolicy::Always } else { RetryPolicy::Never };
    scenario.port = PortOptions {
        train_segments: draw.pick(&[1, 2, 7, 64, 64], 64) as usize,
        refuse_ppm: draw.pick(&[0, 0, 20_000], 0),
        apart_ppm: draw.pick(&[0, 100_000, 1_000_000], 0),
        ..PortOptions::default()
    };
    scenario.host = HostOptions { coalesce: Duration::from_micros(draw.pick(&[1, 20, 100, 1_000], 20)) };
    let version = if draw.one_in(4) { Version::V2 } else { Version::V1 };
    for transport in [&mut scenario.client, &mut scenario.server] {
        end(draw, transport);
    }
    scenario.client.version = version;
    let preferred = draw.pick(&[None, None, Some(Version::V1), Some(Version::V2)], None);
    scenario.server.preferred_version = preferred;
    if rebinds {
        // A translator drops what is sent to the old binding: a client that only listens must make itself heard.
        scenario.client.keep_alive = Some(Duration::from_millis(700));
    }
    scenario.limit = Duration::from_secs(600);
    scenario.port.departure_times = draw.one_in(3);
    let all = [Returning::Nothing, Returning::Ticket, Returning::EarlyData, Returning::RefusedEarlyData];
    let index = draw.between(0, 3) as usize;
    scenario.tls.returning = all.get(index).copied().unwrap_or_default();
}

fn end(draw: &mut Draw, transport: &mut TransportConfig) {
    // So long that a connection which could still finish is not given up.
    transport.idle_timeout = Duration::from_secs(120);
    transport.handshake_timeout = Duration::from_secs(120);
    let controllers = [Algorithm::Cubic, Algorithm::NewReno, Algorithm::Bbr, Algorithm::Prague];
    transport.congestion = draw.pick(&controllers, Algorithm::Cubic);
    transport.ack_every = draw.pick(&[1, 2, 10, 10, 40], 10);
    transport.max_ack_delay = Duration::from_millis(draw.pick(&[0, 5, 25, 25, 80], 25));
    transport.max_packet_size = draw.pick(&[1_200, 1_350, 1_452, 1_452, 9_000], 1_452);
    transport.ecn = if draw.one_in(4) { Switch::Off } else { Switch::On };
    transport.key_update_after = draw.pick(&[10, 100, 1 << 22, 1 << 22], 1 << 22);
    transport.max_datagram_frame_size = draw.pick(&[0, 100, 1_200, 65_000], 0);
    let streams = &mut transport.streams;
    streams.initial_stream_window = draw.pick(&[2_000, 50_000, 1 << 20], 1 << 20);
    streams.initial_connection_window = draw.pick(&[3_000, 100_000, 3 << 19], 3 << 19);
    streams.max_bidi_streams = draw.pick(&[1, 3, 100], 100);
    streams.max_uni_streams = draw.pick(&[3, 4, 100], 100);
    streams.send_buffer = draw.pick(&[4_000, 1 << 20, 1 << 24], 1 << 24);
    transport.timestamps = if draw.one_in(3) { Switch::On } else { Switch::Off };
}
