//! The model: random applications on both ends, a network that loses, repeats and reorders, and a recovery that
//! declares losses rightly and wrongly. Every byte must arrive intact and once (the reader checks each loan), every
//! sum must come out, and nothing may be left behind.

use super::*;
use proptest::prelude::*;

/// What the application meant for one sending part.
#[derive(Clone, Debug, Default)]
struct Script {
    written: u64,
    finished: bool,
    reset: bool,
    stopped: bool,
    /// So many bytes must arrive although the stream is reset.
    reliable: Option<u64>,
}

struct Flying {
    from: usize,
    sent: Sent,
    arrived: bool,
    declared_lost: bool,
}

struct World {
    ends: [End; 2],
    /// By sending end and stream.
    scripts: BTreeMap<(usize, StreamId), Script>,
    network: Vec<Flying>,
}

impl World {
    fn new(appetites: [Vec<usize>; 2]) -> World {
        let config = StreamConfig {
            initial_stream_window: 300,
            max_stream_window: 1_200,
            initial_connection_window: 500,
            max_connection_window: 2_000,
            max_bidi_streams: 3,
            max_uni_streams: 2,
            send_buffer: 2_000,
            connection_send_buffer: 3_000,
        };
        let mut ends = pair(&config);
        for (end, appetite) in ends.iter_mut().zip(appetites) {
            end.reader.appetite = appetite;
        }
        World { ends, scripts: BTreeMap::new(), network: Vec::new() }
    }

    /// The sending parts that `end` may write to, opened by it or seen by it.
    fn writable(&mut self, end: usize) -> Vec<StreamId> {
        let streams = &mut self.ends[end].streams;
        let slots: Vec<_> = streams.slots.all().collect();
        let ids = slots.into_iter().map(|slot| streams.slots[slot].id);
        let ids: BTreeSet<StreamId> = ids.chain(streams.slots.resting()).collect();
        ids.into_iter()
            .filter(|id| {
                streams
                    .slots
                    .find(id.as_u64())
                    .is_some_and(|slot| streams.slots[slot].send.check_writable().is_ok())
            })
            .collect()
    }

    fn script(&mut self, end: usize, id: StreamId) -> &mut Script {
        self.scripts.entry((end, id)).or_default()
    }

    fn step(&mut self, (action, end, a, b): (u8, usize, usize, usize)) {
        self.ends[end].now = self.ends[end].now + Duration::from_millis(1);
        let writable = self.writable(end);
        let chosen = writable.get(a % writable.len().max(1)).copied();
        match (action, chosen) {
            (0, _) => {
                let dir = Dir::ALL[a % 2];
                if let Ok(id) = self.ends[end].streams.open(dir) {
                    self.script(end, id);
                }
            }
            (1..=3, Some(id)) => {
                let start = self.script(end, id).written;
                let len = (b % 400).min(self.ends[end].streams.send_capacity(id));
                if action == 3 {
                    self.ends[end].streams.write_slice(id, &bytes_of(id, start, len)).unwrap();
                } else {
                    self.ends[end].write(id, start, len);
                }
                self.script(end, id).written += len as u64;
            }
            (4, Some(id)) => {
                self.ends[end].streams.finish(id).unwrap();
                self.script(end, id).finished = true;
            }
            (5, Some(id)) if b % 4 == 0 => {
                self.ends[end].streams.reset(id, 1);
                self.script(end, id).reset = true;
            }
            (21, _) if b % 3 == 0 => self.reset_one_at(end, a, b),
            (6, _) if b % 4 == 0 => self.stop_one(end, a),
            (7..=11, _) => self.transmit(end, 30 + b % 300),
            (12..=15, _) => self.arrive(a),
            (16..=17, _) => self.hear(a, b % 3 == 0),
            (18, _) => self.read_on(end),
            (19, _) => drop(self.ends[end].take_events()),
            (22, _) => self.ends[end].streams.release_memory(),
            (20, Some(id)) => {
                let priority = Priority { urgency: (b % 10) as u8, incremental: a % 2 == 0 };
                self.ends[end].streams.set_priority(id, priority);
            }
            _ => {}
        }
    }

    /// The writer at `end` gives up a stream but for its first bytes: one that it may write to, or one that it has ended or reset so.
    fn reset_one_at(&mut self, end: usize, choice: usize, size: usize) {
        let ids: Vec<StreamId> =
            self.scripts.keys().filter(|(writer, _)| *writer == end).map(|(_, id)| *id).collect();
        let Some(&id) = ids.get(choice % ids.len().max(1)) else { return };
        let Script { written, reliable, .. } = self.script(end, id).clone();
        let size = reliable.unwrap_or(written).min(size as u64 % 700);
        if self.ends[end].streams.reset_at(id, 1, size).is_ok() {
            self.script(end, id).reliable = Some(size);
        }
    }

    /// The reader at `end` gives up on a stream.
    fn stop_one(&mut self, end: usize, choice: usize) {
        let ids: Vec<StreamId> = self.ends[end].reader.taken.keys().copied().collect();
        if let Some(&id) = ids.get(choice % ids.len().max(1))
            && !self.ends[end].reader.ended.contains(&id)
        {
            self.ends[end].streams.stop_sending(id, 2);
            self.script(1 - end, id).stopped = true;
        }
    }

    fn transmit(&mut self, end: usize, size: usize) {
        if let Some(sent) = self.ends[end].packet(size) {
            self.network.push(Flying { from: end, sent, arrived: false, declared_lost: false });
        }
    }

    /// A packet arrives, perhaps again.
    fn arrive(&mut self, choice: usize) {
        let count = self.network.len();
        if let Some(flying) = self.network.get_mut(choice % count.max(1)) {
            flying.arrived = true;
            self.ends[1 - flying.from].receive_packet(&flying.sent);
        }
    }

    /// The sender hears of a packet: acknowledged if it arrived, or lost, perhaps wrongly, and then perhaps both.
    fn hear(&mut self, choice: usize, declare_lost: bool) {
        let index = choice % self.network.len().max(1);
        let Some(flying) = self.network.get_mut(index) else { return };
        let streams = &mut self.ends[flying.from].streams;
        if flying.arrived && !declare_lost {
            flying.sent.frames.iter().for_each(|frame| streams.on_frame_acked(frame));
            self.network.swap_remove(index);
        } else if !flying.declared_lost {
            flying.declared_lost = true;
            flying.sent.frames.iter().for_each(|frame| streams.on_frame_lost(frame));
        }
    }

    fn read_on(&mut self, end: usize) {
        for id in core::mem::take(&mut self.ends[end].reader.paused) {
            self.ends[end].deliver(id);
        }
    }

    /// Whatever is still open ends well, on a network that has become kind.
    fn wind_up(&mut self) {
        for _ in 0..2_000 {
            for end in 0..2 {
                self.ends[end].reader.appetite = Vec::new();
                for id in self.writable(end) {
                    self.ends[end].streams.finish(id).unwrap();
                    self.script(end, id).finished = true;
                }
                self.read_on(end);
                self.ends[end].take_events();
                self.transmit(end, 200);
            }
            for index in (0..self.network.len()).rev() {
                self.arrive(index);
                self.hear(index, false);
            }
            let silent = self.network.is_empty() && self.ends.iter().all(|end| end.streams.count() == 0);
            if silent {
                return;
            }
        }
        panic!("streams are left over: {:?}", self.ends.each_ref().map(|end| end.streams.count()));
    }

    fn check_sums(&self) {
        for end in &self.ends {
            let streams = &end.streams;
            let live: Vec<_> = streams.slots.all().map(|slot| &streams.slots[slot]).collect();
            assert_eq!(
                streams.unsent,
                live.iter()
                    .filter(|stream| stream.send.wants_send())
                    .map(|stream| stream.send.unsent())
                    .sum::<u64>()
            );
            assert_eq!(streams.retained, live.iter().map(|stream| stream.send.retained()).sum::<u64>());
            assert_eq!(streams.held.bytes, live.iter().map(|stream| stream.recv.held().bytes).sum::<usize>());
            assert_eq!(
                streams.held.pieces,
                live.iter().map(|stream| stream.recv.held().pieces).sum::<usize>()
            );
            assert!(streams.held.bytes as u64 <= 2_000, "never more than the connection's window");
            for slot in streams.slots.all() {
                let send = &streams.slots[slot].send;
                assert_eq!(streams.resend.contains(slot), send.wants_resend());
                assert_eq!(streams.fresh.contains(slot), send.wants_send() && send.credit.available() > 0);
            }
        }
    }

    fn check_end(&self) {
        for ((end, id), script) in &self.scripts {
            let reader = &self.ends[1 - end].reader;
            let taken = reader.taken.get(id).copied().unwrap_or(0);
            if script.reset || script.stopped {
                assert!(taken <= script.written);
            } else if let Some(reliable) = script.reliable {
                assert!((reliable..=script.written).contains(&taken), "{id:?}: {taken} of {script:?}");
            } else {
                assert_eq!((taken, reader.ended.contains(id)), (script.written, true), "{id:?} of end {end}");
            }
        }
        for (end, other) in [(0, 1), (1, 0)] {
            let (streams, peer) = (&self.ends[end].streams, &self.ends[other].streams);
            assert_eq!(streams.credit.whole.used(), peer.received, "both ends count the same");
            assert_eq!((streams.unsent, streams.retained_bytes()), (0, 0));
            assert!(streams.resend.is_empty() && streams.fresh.is_empty());
            assert!(peer.window.limit() - peer.received >= peer.window.size() / 2, "all credit came back");
        }
    }
}

proptest! {
    #[test]
    fn every_byte_arrives_intact_and_once(
        steps in prop::collection::vec((0u8..23, 0usize..2, 0usize..1_000, 0usize..1_000), 0..600),
        appetites in [prop::collection::vec(0usize..300, 0..5), prop::collection::vec(0usize..300, 0..5)],
    ) {
        let mut world = World::new(appetites);
        for step in steps {
            world.step(step);
            world.check_sums();
        }
        world.wind_up();
        world.check_sums();
        world.check_end();
    }
}
