//! The shared state beside a model of what handles and the transport do, with random programs.
//!
//! What would break without it: a byte lost, doubled or swapped between handle and transport; a task that sleeps although it
//! could go on; a change that the worker never looks at; a part of a stream that is never removed.

use super::{Guard, Reset, Shared, Verbs};
use crate::alarm::Alarm;
use crate::arrivals::{Arrivals, STREAM_LIMIT};
use crate::calls::Calls;
use crate::error::ConnectionError;
use crate::facts::Facts;
use crate::stream_error::{ReadError, WriteError};
use crate::varint::VarInt;
use base::slab::Slab;
use bytes::Bytes;
use core::task::{Context, Poll, Waker};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;
use transport::{CloseReason, DatagramRoom, Dir, Event, Fin, Priority, StreamId, StreamSink};
use wire::Side;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// What the peer has sent on a stream.
#[derive(Default)]
struct In {
    /// Not taken yet.
    held: Vec<u8>,
    fin: bool,
    is_paused: bool,
    is_over: bool,
}

/// What the transport was given for a stream.
#[derive(Default)]
struct Out {
    bytes: Vec<u8>,
    room: usize,
    is_waiting: bool,
    is_finished: bool,
    is_over: bool,
}

/// A transport without a network.
#[derive(Default)]
struct Fake {
    events: VecDeque<Event>,
    permitted: [u64; 2],
    opened: [u64; 2],
    streams: BTreeMap<StreamId, (Out, In)>,
    released: u64,
}

impl In {
    fn lend(&mut self, id: StreamId, arrivals: &mut Arrivals) {
        while !self.is_over && !self.is_paused && (!self.held.is_empty() || self.fin) {
            // In slices, as packets are.
            let len = self.held.len().min(1_200);
            let is_last = self.fin && len == self.held.len();
            let fin = if is_last { Fin::End } else { Fin::Open };
            let taken = arrivals.on_stream_data(id, &self.held[..len], fin);
            self.held.drain(..taken);
            self.is_paused = taken < len;
            self.is_over = is_last && !self.is_paused;
        }
    }
}

impl Verbs for Fake {
    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
    fn is_early(&self) -> bool {
        false
    }
    fn open(&mut self, dir: Dir) {
        let index = self.opened[dir.index()];
        if index < self.permitted[dir.index()] {
            self.opened[dir.index()] += 1;
            let id = StreamId::new(Side::Client, dir, index);
            self.streams.entry(id).or_default().0.room = 1_000;
        }
    }
    fn permitted(&self, dir: Dir) -> u64 {
        self.permitted[dir.index()]
    }
    fn write(&mut self, id: StreamId, bytes: Bytes) {
        let out = &mut self.streams.get_mut(&id).expect("opened before it is written to").0;
        assert!(!out.is_finished, "bytes behind the end");
        out.room = out.room.saturating_sub(bytes.len());
        out.bytes.extend_from_slice(&bytes);
    }
    fn finish(&mut self, id: StreamId) {
        self.streams.get_mut(&id).expect("opened").0.is_finished = true;
    }
    fn reset(&mut self, id: StreamId, _: Reset) {
        self.streams.get_mut(&id).expect("opened").0.is_over = true;
    }
    fn stop(&mut self, id: StreamId, _: VarInt) {
        self.streams.get_mut(&id).expect("known").1.is_over = true;
    }
    fn set_priority(&mut self, _: StreamId, _: Priority) {}
    fn room(&mut self, id: StreamId) -> usize {
        let out = &mut self.streams.get_mut(&id).expect("opened").0;
        out.is_waiting = out.room == 0;
        out.room
    }
    fn deliver(&mut self, id: StreamId, arrivals: &mut Arrivals) {
        let part = &mut self.streams.get_mut(&id).expect("known").1;
        part.is_paused = false;
        part.lend(id, arrivals);
    }
    fn release(&mut self, _: Dir) {
        self.released += 1;
    }
    fn send_datagram(&mut self, _: Bytes) {}
    fn datagram_room(&self) -> DatagramRoom {
        DatagramRoom::default()
    }
    fn export(&self, _: usize, _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
    fn update_keys(&mut self) {}
    fn open_path(&mut self, _: std::net::IpAddr) -> Result<(), transport::OpenPathError> {
        Err(transport::OpenPathError::Unsupported)
    }

    fn migrate(&mut self, _: std::net::IpAddr) -> Result<(), transport::MigrateError> {
        Ok(())
    }
}

/// What a program does with a stream, and what it should see.
#[derive(Default)]
struct Program {
    written: Vec<u8>,
    sent_by_peer: Vec<u8>,
    read: Vec<u8>,
    has_send: bool,
    has_recv: bool,
    /// The peer has stopped or reset it, or the program has: what arrives is a part.
    is_cut: (bool, bool),
    has_ended: bool,
    writer: Option<Arc<Count>>,
    reader: Option<Arc<Count>>,
}

struct Model {
    shared: Arc<Shared>,
    calls: Arc<Calls>,
    arrivals: Arrivals,
    fake: Fake,
    programs: BTreeMap<StreamId, Program>,
    /// Streams that the peer has opened.
    theirs: [u64; 2],
    woken: Vec<Waker>,
}

#[derive(Clone, Debug)]
enum Op {
    Open(Dir),
    Accept(Dir),
    Write(usize, usize),
    Finish(usize),
    Reset(usize),
    Read(usize, usize),
    Stop(usize),
    DropSend(usize),
    DropRecv(usize),
    PeerOpens(Dir, usize),
    PeerSends(usize, usize, bool),
    PeerResets(usize),
    PeerStops(usize),
    PeerAcknowledges(usize),
    Room(usize, usize),
    Permit(Dir),
    Turn,
}

fn op() -> impl Strategy<Value = Op> {
    let dir = prop_oneof![Just(Dir::Bidi), Just(Dir::Uni)];
    let stream = 0..6_usize;
    let len = prop_oneof![4 => 1..3_000_usize, 1 => Just(0_usize), 1 => Just(STREAM_LIMIT / 3)];
    prop_oneof![
        2 => dir.clone().prop_map(Op::Open),
        2 => dir.clone().prop_map(Op::Accept),
        6 => (stream.clone(), len.clone()).prop_map(|(stream, len)| Op::Write(stream, len)),
        1 => stream.clone().prop_map(Op::Finish),
        1 => stream.clone().prop_map(Op::Reset),
        6 => (stream.clone(), len.clone()).prop_map(|(stream, len)| Op::Read(stream, len)),
        1 => stream.clone().prop_map(Op::Stop),
        1 => stream.clone().prop_map(Op::DropSend),
        1 => stream.clone().prop_map(Op::DropRecv),
        2 => (dir.clone(), len.clone()).prop_map(|(dir, len)| Op::PeerOpens(dir, len)),
        6 => (stream.clone(), len.clone(), proptest::bool::weighted(0.1))
            .prop_map(|(stream, len, fin)| Op::PeerSends(stream, len, fin)),
        1 => stream.clone().prop_map(Op::PeerResets),
        1 => stream.clone().prop_map(Op::PeerStops),
        2 => stream.clone().prop_map(Op::PeerAcknowledges),
        3 => (stream, len).prop_map(|(stream, len)| Op::Room(stream, len)),
        1 => dir.prop_map(Op::Permit),
        9 => Just(Op::Turn),
    ]
}

fn bytes(place: usize, len: usize) -> Vec<u8> {
    (place..place + len).map(|place| (place ^ (place >> 8).wrapping_mul(29)) as u8).collect()
}

fn waker() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (Arc::clone(&count), Waker::from(count))
}

impl Model {
    fn new() -> Model {
        let calls = Arc::new(Calls::new(Alarm::Port(None)));
        let nowhere = "127.0.0.1:1".parse().unwrap();
        let shared = Arc::new(Shared::new(Side::Client, Facts::new(nowhere, nowhere), Arc::clone(&calls)));
        shared.set_slot(Slab::new().insert(()));
        let mut model = Model {
            shared,
            calls,
            arrivals: Arrivals::new(),
            fake: Fake { permitted: [1, 1], ..Fake::default() },
            programs: BTreeMap::new(),
            theirs: [0; 2],
            woken: Vec::new(),
        };
        model.fake.events.push_back(Event::Connected);
        model.turn();
        model
    }

    fn turn(&mut self) {
        let mut called = Vec::new();
        self.calls.take(&mut called);
        assert!(called.len() <= 1, "called once");
        let Model { shared, arrivals, fake, woken, .. } = self;
        shared.change_in_turn(woken, |state| state.exchange(fake, arrivals));
        self.check_sleepers();
    }

    fn nth(&self, number: usize) -> Option<StreamId> {
        self.programs.keys().copied().cycle().take(self.programs.len() * 6).nth(number)
    }

    fn program(&mut self, id: StreamId) -> &mut Program {
        self.programs.entry(id).or_default()
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Turn => self.turn(),
            Op::Permit(dir) => self.fake.permitted[dir.index()] += 1,
            Op::Open(dir) => {
                let context = Context::from_waker(Waker::noop());
                if let Poll::Ready(id) = self.shared.change(|state| state.poll_open(dir, &context)) {
                    let program = self.program(id.unwrap());
                    (program.has_send, program.has_recv) = (true, dir == Dir::Bidi);
                }
            }
            Op::Accept(dir) => {
                let context = Context::from_waker(Waker::noop());
                if let Poll::Ready(id) = self.shared.change(|state| state.poll_accept(dir, &context)) {
                    let program = self.program(id.unwrap());
                    assert!(!program.has_recv, "accepted once");
                    (program.has_send, program.has_recv) = (dir == Dir::Bidi, true);
                }
            }
            Op::PeerOpens(dir, len) => {
                let id = StreamId::new(Side::Server, dir, self.theirs[dir.index()]);
                self.theirs[dir.index()] += 1;
                self.fake.streams.entry(id).or_default().0.room = 1_000;
                self.peer_sends(id, len.max(1), false);
            }
            Op::Write(number, len) => self.on_stream(number, |model, id| model.write(id, len)),
            Op::Read(number, len) => self.on_stream(number, |model, id| model.read(id, len)),
            Op::PeerSends(number, len, fin) => {
                self.on_stream(number, |model, id| model.peer_sends(id, len, fin));
            }
            ref other => {
                let (Op::Finish(number)
                | Op::Reset(number)
                | Op::Stop(number)
                | Op::DropSend(number)
                | Op::DropRecv(number)
                | Op::PeerResets(number)
                | Op::PeerStops(number)
                | Op::PeerAcknowledges(number)
                | Op::Room(number, _)) = other
                else {
                    unreachable!("the others are above")
                };
                self.on_stream(*number, |model, id| model.end(id, other));
            }
        }
        self.check_calls();
    }

    fn on_stream(&mut self, number: usize, act: impl FnOnce(&mut Model, StreamId)) {
        if let Some(id) = self.nth(number) {
            act(self, id);
        }
    }

    fn write(&mut self, id: StreamId, len: usize) {
        if !self.program(id).has_send || len == 0 {
            return;
        }
        let (count, waker) = waker();
        let context = Context::from_waker(&waker);
        let place = self.program(id).written.len();
        match self.shared.change(|state| state.poll_room(id, &context)) {
            Poll::Pending => self.program(id).writer = Some(count),
            Poll::Ready(Ok(room)) => {
                let piece = bytes(place, len.min(room));
                self.shared.change(|state| state.write(id, Bytes::from(piece.clone()))).unwrap();
                self.program(id).written.extend(piece);
                self.program(id).writer = None;
            }
            Poll::Ready(Err(WriteError::Stopped(_) | WriteError::ClosedStream)) => {
                self.program(id).writer = None;
            }
            Poll::Ready(Err(error)) => panic!("{error:?}"),
        }
    }

    fn read(&mut self, id: StreamId, len: usize) {
        if !self.program(id).has_recv {
            return;
        }
        let (count, waker) = waker();
        let context = Context::from_waker(&waker);
        let outcome = self.shared.change(|state| state.poll_chunk(id, len.max(1), &context));
        let program = self.program(id);
        program.reader = None;
        match outcome {
            Poll::Pending => program.reader = Some(count),
            Poll::Ready(Ok(Some(chunk))) => {
                assert!(!program.has_ended && !chunk.is_empty());
                program.read.extend_from_slice(&chunk);
                assert!(program.sent_by_peer.starts_with(&program.read));
            }
            Poll::Ready(Ok(None)) => {
                program.has_ended = true;
                assert_eq!(program.read.len(), program.sent_by_peer.len());
            }
            Poll::Ready(Err(ReadError::Reset(_) | ReadError::ClosedStream)) => assert!(program.is_cut.1),
            Poll::Ready(Err(error)) => panic!("{error:?}"),
        }
    }

    fn peer_sends(&mut self, id: StreamId, len: usize, fin: bool) {
        let is_ours = id.initiator() == Side::Client;
        let Some((_, part)) = self.fake.streams.get_mut(&id) else { return };
        if part.fin || part.is_over || (is_ours && id.dir() == Dir::Uni) {
            return;
        }
        let program = self.programs.entry(id).or_default();
        let sent = bytes(program.sent_by_peer.len(), len);
        program.sent_by_peer.extend_from_slice(&sent);
        part.held.extend(sent);
        part.fin = fin;
        part.lend(id, &mut self.arrivals);
    }

    fn end(&mut self, id: StreamId, op: &Op) {
        let Some((out, part)) = self.fake.streams.get_mut(&id) else { return };
        let program = self.programs.get_mut(&id).expect("known");
        let shared = &self.shared;
        let code = VarInt::from_u32(5);
        match *op {
            Op::Finish(_) if program.has_send => {
                // The handle is borrowed by one future at a time: nothing waits to write while it is finished.
                program.writer = None;
                let _ = shared.change(|state| state.finish(id));
            }
            Op::Reset(_) if program.has_send => {
                program.is_cut.0 |= shared.change(|state| state.reset(id, code)).is_ok();
            }
            Op::DropSend(_) if program.has_send => {
                program.has_send = false;
                program.writer = None;
                shared.change(|state| {
                    let _ = state.finish(id);
                    state.leave_send(id);
                });
            }
            Op::Stop(_) if program.has_recv => {
                program.is_cut.1 = true;
                let _ = shared.change(|state| state.stop(id, code));
            }
            Op::DropRecv(_) if program.has_recv => {
                program.has_recv = false;
                program.reader = None;
                shared.change(|state| state.leave_recv(id));
            }
            Op::PeerResets(_) if !part.is_over && part.fin.then_some(()).is_none() => {
                if id.initiator() == Side::Client && id.dir() == Dir::Uni {
                    return;
                }
                program.is_cut.1 = true;
                part.is_over = true;
                self.fake.events.push_back(Event::StreamReset { id, code: 6 });
            }
            Op::PeerStops(_) if !out.is_over && (id.initiator() == Side::Client || id.dir() == Dir::Bidi) => {
                program.is_cut.0 = true;
                out.is_over = true;
                self.fake.events.push_back(Event::StopSending { id, code: 7 });
            }
            Op::PeerAcknowledges(_) if out.is_finished && !out.is_over => {
                out.is_over = true;
                assert!(program.is_cut.0 || out.bytes == program.written, "all that was written");
                self.fake.events.push_back(Event::Finished { id });
            }
            Op::Room(_, len) if !out.is_over => {
                out.room = len;
                if len > 0 && core::mem::take(&mut out.is_waiting) {
                    self.fake.events.push_back(Event::Writable { id });
                }
            }
            _ => {}
        }
    }

    /// The worker hears of everything that it has to look at.
    fn check_calls(&self) {
        self.shared.change(|state| {
            let is_due = !state.dirty_sends.is_empty() || !state.dirty_recvs.is_empty();
            assert!(state.is_called || !is_due, "the worker does not know of a change");
        });
    }

    /// A task that sleeps has a reason to.
    fn check_sleepers(&mut self) {
        for (&id, program) in &mut self.programs {
            let context = Context::from_waker(Waker::noop());
            let is_asleep = |count: &Arc<Count>| count.0.load(Ordering::Relaxed) == 0;
            if program.writer.as_ref().is_some_and(is_asleep) {
                let (count, waker) = waker();
                let again = Context::from_waker(&waker);
                let ready = self.shared.change(|state| state.poll_room(id, &again)).is_ready();
                assert!(!ready, "a writer was not woken");
                program.writer = Some(count);
            }
            if program.reader.as_ref().is_some_and(is_asleep) {
                let (count, waker) = waker();
                let again = Context::from_waker(&waker);
                let ready = self.shared.change(|state| state.poll_reset(id, &context)).is_ready();
                let has_bytes = self.shared.change(|state| state.poll_chunk(id, 1, &again)).is_ready();
                assert!(!ready && !has_bytes, "a reader was not woken");
                program.reader = Some(count);
            }
        }
    }

    /// All programs end, and so does the peer: nothing may be left.
    fn end_all(&mut self) {
        for _ in 0..1 + self.theirs[0] + self.theirs[1] {
            self.apply(&Op::Accept(Dir::Bidi));
            self.apply(&Op::Accept(Dir::Uni));
            self.turn();
        }
        let ids: Vec<StreamId> = self.programs.keys().copied().collect();
        for id in &ids {
            self.end(*id, &Op::DropSend(0));
            self.end(*id, &Op::DropRecv(0));
        }
        self.turn();
        for id in &ids {
            self.end(*id, &Op::PeerAcknowledges(0));
        }
        self.turn();
        self.turn();
        let theirs = self.theirs[0] + self.theirs[1];
        assert_eq!(self.fake.released, theirs, "the peer may open as many streams as before");
        self.shared.change(|state| {
            assert_eq!((state.sends.len(), state.recvs.len(), state.unread), (0, 0, 0));
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn handles_and_transport_agree_whatever_the_order(ops in proptest::collection::vec(op(), 1..150)) {
        let mut model = Model::new();
        for op in &ops {
            model.apply(op);
        }
        model.turn();
        model.end_all();
    }
}

#[test]
fn the_end_of_a_connection_wakes_all_that_wait() {
    let mut model = Model::new();
    model.apply(&Op::Open(Dir::Bidi));
    let id = StreamId::new(Side::Client, Dir::Bidi, 0);
    let (count, waker) = waker();
    let context = Context::from_waker(&waker);
    model.shared.change(|state| {
        assert!(state.poll_chunk(id, 1, &context).is_pending());
        assert!(state.poll_accept(Dir::Uni, &context).is_pending());
        assert!(state.poll_open(Dir::Bidi, &context).is_pending());
        assert!(state.poll_stopped(id, &context).is_pending());
        assert!(state.poll_closed(&context).is_pending());
    });
    model.fake.events.push_back(Event::Closed(CloseReason::IdleTimeout));
    model.turn();
    assert_eq!(count.0.load(Ordering::Relaxed), 5);
    let lost = ConnectionError::TimedOut;
    let read = model.shared.change(|state| state.poll_chunk(id, 1, &context));
    assert_eq!(read, Poll::Ready(Err(ReadError::ConnectionLost(lost))));
}

/// Deleted, a program that forgets a connection would keep it until it times out.
#[test]
fn the_last_guard_orders_the_end_and_calls_the_worker_once() {
    let model = Model::new();
    drop(Guard(Arc::clone(&model.shared)));
    model.shared.change(|state| state.wants_call = true);
    let mut called = Vec::new();
    model.calls.take(&mut called);
    assert_eq!(called.len(), 1);
    assert!(model.shared.change(|state| state.take_ending()).is_some());
}
