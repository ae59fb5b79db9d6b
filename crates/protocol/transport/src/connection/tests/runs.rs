//! Packets of a train that are alike, written in one step, against the general way, which writes one after the other.
//!
//! Two pairs of ends do the same, chosen at random: one with the specialised way and one without it. Deleted, a packet of a run could
//! differ from what its components would have written, or the ledger and the streams from what was sent.

use super::*;
use crate::connection::keys::Arrived;
use crate::{Priority, Technique, Without};
use base::rng::Rng;
use wire::packet::KeyPhase;
use wire::packet_number;

/// Rounds of a scenario.
const ROUNDS: usize = 60;

/// What a scenario chooses beside its actions.
fn config(rng: &mut Rng) -> TransportConfig {
    let mut config = TransportConfig {
        max_datagram_frame_size: 1_100,
        key_update_after: if rng.below(3) == 0 { 150 + rng.below(500) } else { u64::MAX },
        ..TransportConfig::default()
    };
    if rng.below(3) == 0 {
        config.streams.initial_stream_window = 20_000 + rng.below(100_000);
        config.streams.initial_connection_window = 30_000 + rng.below(200_000);
    }
    if rng.below(3) == 0 {
        config.pacing = recovery::pacer::Pacing::Off;
    }
    if rng.below(4) == 0 {
        config.ecn = crate::Switch::Off;
    }
    if rng.below(4) == 0 {
        config.multipath = Some(crate::config::Scheduler::LowestRtt);
    }
    config
}

/// Two connected pairs, with and without runs, that are alike. The length of a handshake depends on signatures, which are random.
fn pairs(config: &TransportConfig) -> [Pair; 2] {
    let connected = |without| {
        let transport = TransportConfig { without, ..config.clone() };
        Pair::connected(&TlsOptions::default(), transport, RetryPolicy::Never)
    };
    let counted = |pair: &mut Pair| [state(pair.client()), state(pair.server())];
    let mut pairs = [connected(Without::default()), connected(Without::default().with(Technique::Runs))];
    let mut tries = 0;
    while counted(&mut pairs[0]) != counted(&mut pairs[1]) {
        pairs[tries % 2] = connected(pairs[tries % 2].config.transport.without);
        tries += 1;
        assert!(tries < 1_000, "handshakes are not repeatable");
    }
    pairs
}

/// The packet of a datagram as it was before protection: it is authentic.
fn plaintext(receiver: &mut Connection, datagram: &[u8]) -> Vec<u8> {
    let mut packet = datagram.to_vec();
    let pn_offset = 1 + crate::cid::LOCAL_CID_LEN;
    let next = receiver.spaces.application.next_expected();
    let keys = receiver.keys.one_rtt.as_mut().expect("keys");
    let sample = packet[pn_offset + 4..][..16].try_into().expect("a sample");
    let mask = keys.peer_header.mask(&sample);
    packet[0] ^= mask[0] & 0x1f;
    let pn_len = usize::from(packet[0] & 3) + 1;
    packet[pn_offset..pn_offset + pn_len].iter_mut().zip(&mask[1..]).for_each(|(byte, mask)| *byte ^= mask);
    let truncated = packet_number::read(&packet[pn_offset..], pn_len).expect("a number");
    let pn = packet_number::expand(truncated, pn_len, next);
    let phase = KeyPhase::from_first_byte(packet[0]);
    let arrived = Arrived { at: Instant::from_nanos(1 << 40), keep: || Duration::from_secs(1_000) };
    let len = keys.open(arrived, pn, phase, &mut packet, pn_offset + pn_len).expect("authentic");
    packet.truncate(pn_offset + pn_len + len);
    packet
}

/// All that sending has changed.
fn state(connection: &Connection) -> String {
    let (spaces, streams) = (&connection.spaces, &connection.components.streams);
    let path = connection.paths.active();
    format!(
        "{:?} {:?} {} {:?} {:?} {:?} {:?} {:?} {:?} {} {} {} {} {:?}",
        spaces.application.ledger,
        spaces.application.acks,
        streams.summary(),
        spaces.application.next_packet_numbers(),
        connection.counters,
        connection.timers,
        path.congestion,
        path.pacer,
        path.ecn,
        streams.unsent(),
        streams.retained(),
        streams.wants_data(),
        streams.wants_control(),
        connection.next_timeout(),
    )
}

/// The server's application: now and then it takes a part of what it is lent.
#[derive(Default, PartialEq, Eq)]
struct Picky {
    loans: Vec<(StreamId, usize, Fin)>,
    bytes: Vec<u8>,
}

impl StreamSink for Picky {
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        let taken = if self.loans.len() % 101 == 100 { bytes.len() / 2 } else { bytes.len() };
        self.loans.push((id, taken, fin));
        self.bytes.extend_from_slice(&bytes[..taken]);
        taken
    }
}

/// An application and a network that do the same to either pair.
struct Scenario {
    rng: Rng,
    streams: Vec<StreamId>,
}

/// What happens to datagrams on their way.
#[derive(Clone, Copy)]
struct Fate {
    lost: u64,
    loss: u64,
    /// These two change places.
    swapped: (usize, usize),
    /// This one is forged.
    forged: usize,
    ecn: Ecn,
}

impl Fate {
    fn choose(rng: &mut Rng) -> Fate {
        let any =
            |rng: &mut Rng, most: u64| if rng.below(6) == 0 { rng.below(most) as usize } else { usize::MAX };
        let loss = if rng.below(4) == 0 { rng.below(6) } else { 0 };
        let ecn = [Ecn::Ect0, Ecn::Ect0, Ecn::NotEct, Ecn::Ce][rng.below(4) as usize];
        Fate { lost: rng.next_u64(), loss, swapped: (any(rng, 20), any(rng, 20)), forged: any(rng, 20), ecn }
    }

    /// Delivers datagrams in trains, as a data path does.
    fn deliver(
        self,
        datagrams: Vec<Vec<u8>>,
        now: Instant,
        (connection, ports): (&mut Connection, (u16, u16)),
        sink: &mut impl StreamSink,
    ) {
        let mut datagrams = datagrams;
        if self.swapped.0.max(self.swapped.1) < datagrams.len() {
            datagrams.swap(self.swapped.0, self.swapped.1);
        }
        if let Some(byte) = datagrams.get_mut(self.forged).and_then(|datagram| datagram.last_mut()) {
            *byte ^= 1;
        }
        let is_lost = |index: usize| (self.lost.rotate_left(index as u32 * 7) & 63) < self.loss * 4;
        let left = datagrams.into_iter().enumerate().filter(|(index, _)| !is_lost(*index));
        let left: Vec<_> = left.map(|(_, datagram)| datagram).collect();
        let mut rest = &left[..];
        while let [first, ..] = rest {
            let alike = rest.iter().take_while(|datagram| datagram.len() == first.len()).count();
            let (train, others) = rest.split_at(alike);
            let addresses = addresses(ports.0, ports.1);
            let segment_size = first.len();
            let mut bytes = train.concat();
            let train = Train { bytes: &mut bytes, segment_size, addresses, ecn: self.ecn };
            connection.receive(now, train, sink);
            rest = others;
        }
    }
}

impl Scenario {
    /// Something that the client's application does.
    fn act(&mut self, pairs: &mut [Pair; 2], sinks: &mut [Picky; 2]) {
        let (which, len) = (self.rng.below(16), self.rng.below(120_000) as usize);
        let place = self.rng.below(self.streams.len().max(1) as u64) as usize;
        let id = self.streams.get(place).copied();
        let urgency = 2 + self.rng.below(2) as u8;
        let incremental = self.rng.below(3) == 0;
        let mut opened = None;
        for (which_pair, pair) in pairs.iter_mut().enumerate() {
            let now = pair.now;
            let client = pair.client();
            match (which, id) {
                (0, _) | (_, None) => {
                    opened = client.open(Dir::Bidi).ok();
                    if let Some(id) = opened {
                        client.set_priority(id, Priority { urgency, incremental });
                        client.write(id, Bytes::from(vec![7; len])).expect("writes");
                    }
                }
                (1, Some(id)) => _ = client.finish_stream(id),
                (2, Some(id)) => client.reset(id, 9),
                (3, _) => _ = client.send_datagram(Bytes::from(vec![3; len % 1_000])),
                (4, _) => _ = client.update_keys(now),
                (5, _) => client.spaces.application.skip_after(len as u64 % 60),
                (6, Some(id)) => client.set_priority(id, Priority { urgency, incremental }),
                (7, Some(id)) => _ = client.write(id, Bytes::from(vec![5; len % 3_000])),
                (8 | 9, Some(id)) => {
                    // A writer that goes by the room it finds, and is told when there is more.
                    let room = client.send_capacity(id);
                    _ = client.write(id, Bytes::from(vec![6; room.min(len)]));
                }
                (11, Some(id)) => pair.server().deliver(now, id, &mut sinks[which_pair]),
                (10, Some(id)) => _ = pair.server().write(id, Bytes::from(vec![8; len % 5_000])),
                (_, Some(id)) => _ = client.write(id, Bytes::from(vec![4; len])),
            }
        }
        self.streams.extend(opened);
    }

    /// A millisecond, or much more: what is sent either way is the same, and the same becomes of it.
    fn round(&mut self, pairs: &mut [Pair; 2], sinks: &mut [Picky; 2]) {
        let pause = if self.rng.below(20) == 0 { 300 } else { 1 + self.rng.below(4) };
        let fates = [Fate::choose(&mut self.rng), Fate::choose(&mut self.rng)];
        let mut sinks = sinks.iter_mut();
        let [fast, general] = pairs.each_mut().map(|pair| {
            let sink = sinks.next().expect("a sink");
            pair.now = pair.now + Duration::from_millis(pause);
            let now = pair.now;
            let sent = pair.client.send(now);
            let plain: Vec<_> = sent.iter().map(|datagram| plaintext(pair.server(), datagram)).collect();
            fates[0].deliver(sent, now, (pair.server(), (2, 1)), sink);
            let back = pair.server.send(now);
            let lens: Vec<_> = back.iter().map(Vec::len).collect();
            fates[1].deliver(back, now, (pair.client(), (1, 2)), &mut Sink::default());
            (plain, lens, core::mem::take(&mut pair.client.events))
        });
        assert!(sinks.next().is_none());
        assert!(fast.0 == general.0, "packets differ");
        assert_eq!(fast.1, general.1, "the answers to them");
        assert_eq!(fast.2, general.2, "events");
        let [fast, general] = pairs.each_mut().map(|pair| [state(pair.client()), state(pair.server())]);
        let differ = |(fast, general): (&String, &String)| {
            let at = fast.bytes().zip(general.bytes()).take_while(|(one, other)| one == other).count();
            let from = at.saturating_sub(80);
            (fast != general)
                .then(|| [fast, general].map(|text| text[from..(at + 80).min(text.len())].to_owned()))
        };
        assert_eq!(fast.iter().zip(&general).find_map(differ), None, "the states of client and server");
    }
}

#[test]
fn a_run_is_what_its_packets_are_one_by_one() {
    let (mut in_runs, mut packets, mut updates, mut lost) = ((0, 0), 0, 0, 0);
    for seed in 0..40 {
        let mut rng = Rng::from_u64(seed);
        let mut pairs = pairs(&config(&mut rng));
        let mut scenario = Scenario { rng, streams: Vec::new() };
        let mut sinks = [Picky::default(), Picky::default()];
        for round in 0..ROUNDS {
            for _ in 0..scenario.rng.below(4) {
                scenario.act(&mut pairs, &mut sinks);
            }
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                scenario.round(&mut pairs, &mut sinks)
            }));
            assert!(outcome.is_ok(), "seed {seed}, round {round}");
        }
        let [fast, general] = &mut pairs;
        assert!(sinks[0] == sinks[1], "seed {seed}: the loans of data differ");
        let received = |pair: &mut Pair| pair.server().components.streams.received_in_runs;
        assert_eq!(
            (general.client().components.streams.in_runs, received(general)),
            (0, 0),
            "it does without"
        );
        in_runs.1 += received(fast);
        in_runs.0 += fast.client().components.streams.in_runs;
        packets += fast.client().counters().sent_packets;
        updates += fast.client().counters().key_updates;
        lost += fast.client().counters().lost_packets;
    }
    // The scenarios are worth something.
    assert!(in_runs.0 > packets / 5, "{in_runs:?} of {packets} packets were in runs");
    assert!(in_runs.1 > packets / 10, "{in_runs:?} of {packets} packets were received in runs");
    assert!(updates > 20 && lost > 100, "{updates} key updates, {lost} packets lost");
}

#[test]
fn a_transfer_is_nearly_all_runs() {
    let mut pair = Pair::connected(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    pair.transfer(100_000);
    let before = (pair.client().components.streams.in_runs, pair.client().counters().sent_packets);
    pair.transfer(2_000_000);
    let in_runs = pair.client().components.streams.in_runs - before.0;
    let packets = pair.client().counters().sent_packets - before.1;
    assert!(in_runs > packets * 3 / 4, "{in_runs} of {packets}");
}
