//! Fewer acknowledgements by agreement: over a link of a given rate and delay, against losses, and against a hostile peer.

use super::hostile::frames;
use super::*;
use crate::config::Switch;
use crate::error::TransportError;
use crate::space::SpaceId;
use recovery::ack::{AckPolicy, Chooser};
use recovery::congestion::{Algorithm, SlowStart};
use std::collections::VecDeque;
use wire::Side;
use wire::error::Code;

const MS: Duration = Duration::from_millis(1);

fn with(ack_frequency: Switch) -> TransportConfig {
    TransportConfig { ack_frequency, ..TransportConfig::default() }
}

fn connected(transport: TransportConfig) -> Pair {
    Pair::connected(&TlsOptions::default(), transport, RetryPolicy::Never)
}

/// One direction of a link: this many nanoseconds a byte, a queue in front of that, and a delay.
struct Link {
    delay: Duration,
    nanos_a_byte: u64,
    queue: Duration,
    free_at: Instant,
    /// Of this many datagrams one is lost.
    loses_every: Option<u64>,
    sent: u64,
    under_way: VecDeque<(Instant, Vec<u8>)>,
}

impl Link {
    fn new(delay: Duration, megabits: u64, queue: Duration, loses_every: Option<u64>) -> Link {
        let (free_at, under_way) = (Instant::ZERO, VecDeque::new());
        Link { delay, nanos_a_byte: 8_000 / megabits, queue, free_at, loses_every, sent: 0, under_way }
    }

    fn send(&mut self, now: Instant, datagram: Vec<u8>) {
        self.sent += 1;
        let is_lost = self.loses_every.is_some_and(|every| self.sent.is_multiple_of(every));
        if is_lost || self.free_at > now + self.queue {
            return;
        }
        self.free_at =
            self.free_at.max(now) + Duration::from_nanos(self.nanos_a_byte * datagram.len() as u64);
        self.under_way.push_back((self.free_at + self.delay, datagram));
    }

    fn next(&self) -> Option<Instant> {
        self.under_way.front().map(|(at, _)| *at)
    }

    fn arrived(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.next().filter(|at| *at <= now)?;
        self.under_way.pop_front().map(|(_, datagram)| datagram)
    }
}

/// What an upload over a link was like.
#[derive(Debug)]
struct Upload {
    megabits: f64,
    /// Packets of the receiver.
    answers: u64,
    packets: u64,
    lost: u64,
    probe_timeouts: u64,
    requests: usize,
}

/// The client sends `bytes` over a link and back come the acknowledgements; both ends act on every datagram at once.
fn upload(transport: TransportConfig, bytes: usize, [mut up, mut down]: [Link; 2]) -> Upload {
    let mut pair = Pair::new(&TlsOptions::default(), transport, RetryPolicy::Never);
    let mut began = None;
    let deadline = pair.now + Duration::from_secs(60);
    while pair.server.sink.received.len() < bytes {
        assert!(pair.now < deadline, "{} bytes arrived", pair.server.sink.received.len());
        let now = pair.now;
        if began.is_none() && pair.client.events.contains(&Event::Connected) {
            let id = pair.client().open(Dir::Uni).expect("stream");
            pair.client().write(id, Bytes::from(vec![7; bytes])).expect("writes");
            pair.client().finish_stream(id).expect("finishes");
            let (client, server) = (*pair.client().counters(), pair.server().counters().sent_packets);
            began = Some((now, client, server));
        }
        pair.client.send(now).into_iter().for_each(|datagram| up.send(now, datagram));
        pair.server.send(now).into_iter().for_each(|datagram| down.send(now, datagram));
        let timeouts = [&pair.client, &pair.server].map(|end| end.connection.as_ref()?.next_timeout());
        let next = timeouts.into_iter().chain([up.next(), down.next()]).flatten().min();
        // A timeout that lies in the past waits for something else to happen; it must not stop the clock.
        pair.now = next.expect("something is to happen").max(now + Duration::from_micros(1));
        // One datagram at a time, so that nothing is acknowledged rarely because it came in a batch.
        if let Some(datagram) = up.arrived(pair.now) {
            pair.server.receive(pair.now, datagram, Some(&pair.config));
        }
        if let Some(datagram) = down.arrived(pair.now) {
            pair.client.receive(pair.now, datagram, None);
        }
    }
    let (at, client_before, server_before) = began.expect("began");
    let seconds = pair.now.saturating_since(at).as_secs_f64();
    let client = *pair.client().counters();
    let requests = pair.client().components.ack_frequency.requests();
    Upload {
        megabits: bytes as f64 * 8.0 / seconds / 1e6,
        answers: pair.server().counters().sent_packets - server_before,
        packets: client.sent_packets - client_before.sent_packets,
        lost: client.lost_packets,
        probe_timeouts: client.probe_timeouts,
        requests,
    }
}

/// What the extension is for. Loosely: the figures are printed.
#[test]
fn far_fewer_acknowledgements_and_no_less_goodput() {
    for (rtt, megabits, bytes) in [(MS * 20, 400, 40_000_000), (MS, 1_000, 40_000_000)] {
        let links = || [up(rtt, megabits, None), up(rtt, megabits, None)];
        let every_second = TransportConfig { ack_every: 2, ..with(Switch::Off) };
        let plain = upload(every_second, bytes, links());
        let tenth = upload(with(Switch::Off), bytes, links());
        let asked = upload(with(Switch::On), bytes, links());
        println!(
            "{rtt:?}, {megabits} Mbit/s\n  every second {plain:?}\n  every tenth  {tenth:?}\n  as asked     {asked:?}"
        );
        assert!(
            asked.answers * 2 < tenth.answers && asked.answers * 8 < plain.answers,
            "{asked:?} {tenth:?}"
        );
        assert!(asked.megabits > tenth.megabits * 0.98, "{asked:?} {tenth:?}");
        assert!(asked.megabits > plain.megabits * 0.98, "{asked:?} {plain:?}");
        assert!(asked.packets < plain.packets * 102 / 100, "bursts that are lost: {asked:?} {plain:?}");
        assert_eq!((tenth.requests, asked.probe_timeouts), (0, 0));
        assert!((1..=20).contains(&asked.requests), "{} requests", asked.requests);
    }
}

/// Every controller lives with few acknowledgements.
#[test]
fn every_controller_bears_it() {
    for congestion in [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr, Algorithm::Prague] {
        let links = || [up(MS * 20, 200, None), up(MS * 20, 200, None)];
        let config = |switch| TransportConfig { congestion, ..with(switch) };
        let tenth = upload(config(Switch::Off), 40_000_000, links());
        let asked = upload(config(Switch::On), 40_000_000, links());
        println!("{congestion:?}\n  every tenth {tenth:?}\n  as asked    {asked:?}");
        assert!(asked.answers * 10 < tenth.answers * 6, "{congestion:?}: {asked:?} {tenth:?}");
        assert!(asked.megabits > tenth.megabits * 0.95, "{congestion:?}: {asked:?} {tenth:?}");
    }
}

/// A link with room for one round trip in its queue.
fn up(rtt: Duration, megabits: u64, loses_every: Option<u64>) -> Link {
    Link::new(rtt / 2, megabits, rtt, loses_every)
}

/// Losses are to be found about as fast as with an acknowledgement for every second packet: by the reordering threshold.
/// The window is small here, so that there is nothing to save, and much to lose: it is CUBIC's, since auto would become BBR. After each loss
/// as many are asked for as others send, and none is late.
#[test]
fn losses_are_found_without_waiting_for_the_count_or_the_delay() {
    let links = || [up(MS * 20, 50, Some(211)), up(MS * 20, 50, None)];
    let cubic = |switch| TransportConfig {
        congestion: Algorithm::Cubic,
        slow_start: SlowStart::default(),
        ..with(switch)
    };
    let plain = upload(TransportConfig { ack_every: 2, ..cubic(Switch::Off) }, 10_000_000, links());
    let tenth = upload(cubic(Switch::Off), 10_000_000, links());
    let asked = upload(cubic(Switch::On), 10_000_000, links());
    println!("one in 211 lost\n  every second {plain:?}\n  every tenth  {tenth:?}\n  as asked     {asked:?}");
    assert!(asked.answers * 10 < plain.answers * 12, "{asked:?} {plain:?}");
    assert!(asked.megabits > plain.megabits * 0.99, "{asked:?} {plain:?}");
    assert!(tenth.megabits > plain.megabits * 0.95, "such a path is not steady: {tenth:?} {plain:?}");
    assert!(asked.probe_timeouts == 0 && asked.lost > 20, "{asked:?}");
}

/// Of a receiver that waits long, even with gaps.
const PATIENT: AckPolicy = AckPolicy {
    eliciting_threshold: 100,
    max_ack_delay: Duration::from_millis(500),
    reordering_threshold: 0,
    chooser: Chooser::Sender,
};

/// How long after `from` the server sends something.
fn wait_of_the_server(pair: &mut Pair, from: Instant) -> Duration {
    for _ in 0..2_000 {
        pair.now = pair.now + MS;
        let now = pair.now;
        if !pair.server.send(now).is_empty() {
            break;
        }
    }
    pair.now.saturating_since(from)
}

/// ACK_FREQUENCY: sequence, threshold, delay of 200 ms, reordering.
fn request(sequence: u8, threshold: u8, reordering: u8) -> Vec<u8> {
    vec![0x40, 0xaf, sequence, threshold, 0x80, 0x03, 0x0d, 0x40, reordering]
}

#[test]
fn a_probe_timeout_asks_for_an_acknowledgement_at_once() {
    for (switch, quick) in [(Switch::On, true), (Switch::Off, false)] {
        let mut pair = connected(with(switch));
        pair.run(20);
        pair.server().spaces.application.acks.set_policy(PATIENT);
        let id = pair.client().open(Dir::Uni).expect("stream");
        pair.client().write(id, Bytes::from_static(b"lost")).expect("writes");
        let now = pair.now;
        assert!(!pair.client.send(now).is_empty(), "and it is lost");
        let at = pair.client().next_timeout().expect("a timeout");
        pair.now = at;
        let probes = pair.client.send(at);
        assert!(!probes.is_empty() && pair.client().counters().probe_timeouts == 1);
        pair.server.receive(at, probes[0].clone(), Some(&pair.config.clone()));
        let wait = wait_of_the_server(&mut pair, at);
        assert_eq!(wait <= MS * 2, quick, "{switch:?}: {wait:?}");
    }
}

/// Else a search for the path MTU takes as long as the peer likes to wait.
#[test]
fn a_probe_of_the_mtu_asks_for_an_acknowledgement_at_once() {
    for (switch, is_answered) in [(Switch::On, true), (Switch::Off, false)] {
        let mut pair = Pair::new(&TlsOptions::default(), with(switch), RetryPolicy::Never);
        let config = pair.config.clone();
        let answered = (0..20).find_map(|_| {
            pair.now = pair.now + MS;
            let now = pair.now;
            let (base, mut answered) = (usize::from(pair.client().packet_size()), None);
            for datagram in pair.client.send(now) {
                let is_probe = datagram.len() > base;
                if is_probe {
                    pair.server.send(now);
                    pair.server().spaces.application.acks.set_policy(PATIENT);
                }
                pair.server.receive(now, datagram, Some(&config));
                if is_probe {
                    answered = answered.or(Some(!pair.server.send(now).is_empty()));
                }
            }
            let down = pair.server.send(now);
            down.into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
            answered
        });
        assert_eq!(answered, Some(is_answered), "{switch:?}");
    }
}

#[test]
fn the_peer_s_wish_is_followed() {
    let mut pair = connected(TransportConfig::default());
    pair.run(20);
    frames(&mut pair, Side::Server, SpaceId::Application, &request(0, 4, 0)).expect("valid");
    let (mut gaps, config) = (Vec::new(), pair.config.clone());
    for place in 0..20 {
        let id = pair.client().open(Dir::Uni).expect("stream");
        pair.client().write(id, Bytes::from_static(b"little")).expect("writes");
        let now = pair.now;
        for datagram in pair.client.send(now) {
            pair.server.receive(now, datagram, Some(&config));
        }
        if !pair.server.send(now).is_empty() {
            gaps.push(place);
        }
    }
    assert_eq!(gaps, [4, 9, 14, 19], "every fifth");
}

/// RFC 9000 §21.9 in spirit: a peer that asks all the time costs no memory, and one acknowledgement for what came together.
#[test]
fn floods_of_requests_cost_one_acknowledgement_a_batch() {
    let mut pair = connected(TransportConfig::default());
    pair.run(20);
    for round in 0..1_000_u32 {
        let mut payload = vec![0x1f];
        let sequence = 0x8000_0000_u32 + round;
        payload.extend([0x40, 0xaf]);
        payload.extend(sequence.to_be_bytes());
        payload.extend([0, 0x43, 0xe8, 0, 0x1f]);
        frames(&mut pair, Side::Server, SpaceId::Application, &payload).expect("valid");
    }
    let now = pair.now;
    assert!(pair.server.send(now).is_empty(), "nothing is owed for what was no packet");
    let id = pair.client().open(Dir::Uni).expect("stream");
    pair.client().write(id, Bytes::from(vec![1; 10_000])).expect("writes");
    let config = pair.config.clone();
    let datagrams = pair.client.send(now);
    assert!(datagrams.len() > 5);
    for datagram in datagrams {
        pair.server.receive(now, datagram, Some(&config));
    }
    assert_eq!(pair.server.send(now).len(), 1, "asked for every packet at once, the batch gets one");
}

/// RFC 9000 §12.4: what was not negotiated is unknown.
#[test]
fn neither_frame_is_known_when_switched_off() {
    for payload in [&[0x1f][..], &request(0, 4, 0)] {
        let outcome = frames(&mut connected(with(Switch::Off)), Side::Server, SpaceId::Application, payload);
        assert_eq!(outcome.map_err(|error: TransportError| error.code), Err(Code::FRAME_ENCODING_ERROR));
    }
}

/// Deleted, each loss by chance could cost BBR a part of its rate where few acknowledgements say what is delivered: 4 % here.
#[test]
fn bbr_bears_rare_losses_with_few_acknowledgements() {
    for congestion in [Algorithm::Bbr, Algorithm::Auto] {
        let links = || [up(MS * 20, 50, Some(211)), up(MS * 20, 50, None)];
        let config = |switch| TransportConfig { congestion, ..with(switch) };
        let tenth = upload(config(Switch::Off), 10_000_000, links());
        let asked = upload(config(Switch::On), 10_000_000, links());
        println!("{congestion:?}\n  every tenth {tenth:?}\n  as asked    {asked:?}");
        assert!(asked.megabits > tenth.megabits * 0.98, "{congestion:?}: {asked:?} {tenth:?}");
    }
}
