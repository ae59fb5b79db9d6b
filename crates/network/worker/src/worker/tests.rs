//! A worker on a port that has no room, or little.

use super::*;
use base::net::Train;
use base::sink::PacketSink;
use crypto::{ClientTls, Roots, TlsOptions};
use datapath::{Capabilities, Counters, Rx, Tx};
use std::sync::Arc;
use transport::{EndpointConfig, Fin, StreamId, StreamSink, TransportConfig};

/// Nothing comes in, what goes out is counted, and time passes only in `wait`.
#[derive(Default)]
struct Full {
    now: Instant,
    waits: u64,
    awaits_room: u32,
    /// Packets for which a flush makes room.
    taken_by_flush: usize,
    /// Packets for which there is room.
    free: usize,
    memory: Vec<u8>,
    sent: usize,
}

impl Full {
    fn at(now: Instant) -> Full {
        Full { now, ..Full::default() }
    }
}

impl Rx for Full {
    fn poll(&mut self) -> io::Result<usize> {
        Ok(0)
    }
    fn train(&mut self, _: usize) -> Train<'_> {
        unreachable!("nothing comes in")
    }
}

impl PacketSink for Full {
    fn begin(&mut self, _: TrainPath, size: usize) -> Option<usize> {
        self.memory.resize(size, 0);
        (self.free > 0).then_some(1)
    }
    fn room(&mut self) -> &mut [u8] {
        &mut self.memory
    }
    fn push(&mut self, _: usize) {
        self.free -= 1;
        self.sent += 1;
    }
    fn packet(&mut self, _: usize) -> &mut [u8] {
        &mut self.memory
    }
    fn end(&mut self) {}
}

impl Tx for Full {
    fn flush(&mut self) -> io::Result<()> {
        self.free = self.taken_by_flush;
        Ok(())
    }
}

impl Port for Full {
    fn now(&mut self) -> Instant {
        self.now
    }
    fn wait(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        self.waits += 1;
        self.now = self.now.max(deadline.expect("something is to be sent"));
        Ok(())
    }
    fn local_address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 1))
    }
    fn awaits_room(&self) -> u32 {
        self.awaits_room
    }
    fn counters(&self) -> Counters {
        Counters::default()
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "full",
            train_segments: 1,
            train_bytes: 1_200,
            segments_offloaded: false,
            coalesces: false,
            ecn: false,
            departure_times: false,
        }
    }
}

struct Idle;

impl StreamSink for Idle {
    fn on_stream_data(&mut self, _: StreamId, bytes: &[u8], _: Fin) -> usize {
        bytes.len()
    }
}

impl App for Idle {
    type State = Idle;
    fn on_accept(&mut self, _: Instant, _: &mut Connection) -> Idle {
        Idle
    }
    fn on_turn(&mut self, _: Instant, connection: &mut Connection, _: &mut Idle) -> Next {
        while connection.next_event().is_some() {}
        Next::Wait
    }
    fn on_gone(&mut self, _: Instant, _: &Connection, _: Idle) {}
}

/// A worker on `port` with a connection that has its first packets to send.
fn connecting(port: Full) -> Worker<Full, Idle> {
    let endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
    let mut worker = Worker::new(port, Idle, endpoint, None, Config::default());
    let tls = ClientTls::new(&Roots::Insecure, &TlsOptions::default()).expect("client tls");
    let client = ClientConfig { tls, transport: Arc::new(TransportConfig::default()), token: Vec::new() };
    let peer = SocketAddr::from(([127, 0, 0, 1], 2));
    worker.connect(&client, "localhost", peer, Idle).expect("connects");
    worker
}

/// Deleted, a connection that fills the port's memory twice in a turn could wait a millisecond for room that there is.
#[test]
fn a_port_with_room_for_little_is_not_waited_for() {
    let port = Full { taken_by_flush: 1, ..Full::at(Instant::from_nanos(1 << 40)) };
    let mut worker = connecting(port);
    let turn = worker.turn(worker.now()).expect("the port works");
    assert_eq!((worker.port().sent, worker.is_idle(&turn)), (1, false), "the first of two packets");
    let turn = worker.turn(worker.now()).expect("the port works");
    assert_eq!((worker.port().sent, worker.is_idle(&turn)), (2, true), "the second");
}

#[test]
fn a_full_port_is_waited_for_and_not_spun_upon() {
    let mut worker = connecting(Full::at(Instant::from_nanos(1 << 40)));
    let start = worker.now();
    for _ in 0..100 {
        worker.run_turn(None).expect("the port works");
    }
    assert_eq!(worker.port().waits, 100, "every turn sleeps");
    assert!(worker.now() >= start + HELD_UP * 99, "and not for nothing");
    assert_eq!(
        (worker.held_up, worker.turn_once().expect("the port works").1),
        (1, Some(worker.now() + HELD_UP))
    );
    // A port that knows when it has room: its wait ends then, and only loops without such a wait look by themselves.
    worker.port.awaits_room = 1;
    let next = worker.wheel.next_expiry().expect("the probe timeout");
    assert_eq!(worker.turn_once().expect("the port works").1, Some(next));
    assert_eq!(worker.next_deadline(), Some(worker.now() + HELD_UP));
}

/// A loop of the caller's own: it asks when the next turn is due, and says what time it is.
#[test]
fn the_owner_of_the_thread_says_what_time_it_is() {
    let start = Instant::from_nanos(1 << 40);
    let endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
    let port = Full::at(start);
    let mut worker = Worker::new(port, Idle, endpoint, None, Config::default());
    assert_eq!(worker.next_deadline(), None, "nothing is due ever");
    let later = start + Duration::from_secs(3);
    worker.turn(later).expect("the port works");
    assert_eq!((worker.now(), worker.clock()), (later, start));
    worker.turn(start).expect("the port works");
    assert_eq!(worker.now(), later, "time does not step back");
    assert_eq!(worker.port().waits, 0, "a turn never sleeps");
    assert!(worker.descriptors().is_empty() && worker.waker().is_none());
    worker.on_woken();
}

/// Deleted, a worker that is a task or in a program's own loop could sleep at once, whatever span it is to poll for.
#[test]
fn a_turn_is_due_at_once_until_the_span_of_polling_has_passed() {
    let start = Instant::from_nanos(1 << 40);
    let endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
    let port = Full::at(start);
    let span = Duration::from_millis(5);
    let mut worker = Worker::new(port, Idle, endpoint, None, Config { spin: span });
    let due_after = |worker: &mut Worker<Full, Idle>, passed: Duration| {
        worker.port.now = start + passed;
        worker.turn_once().expect("the port works").1
    };
    assert_eq!(due_after(&mut worker, Duration::ZERO), Some(start), "it has begun just now");
    let before = span.saturating_sub(Duration::from_nanos(1));
    assert_eq!(due_after(&mut worker, before), Some(start + before));
    assert_eq!(due_after(&mut worker, span), None, "nothing is due ever");
}

/// A datagram that was handed over is a reason to turn at once, and is read in the turn.
#[test]
fn a_datagram_that_was_handed_over_is_due_at_once() {
    let mut hand_off_group = crate::HandOff::group(vec![None, None]);
    let (second, first) = (hand_off_group.pop().expect("two"), hand_off_group.pop().expect("two"));
    let config = EndpointConfig { worker: 1, workers: 2, ..EndpointConfig::default() };
    let port = Full::at(Instant::from_nanos(1 << 40));
    let mut worker = Worker::new(port, Idle, Endpoint::new(config, [1; 32]), None, Config::default())
        .with_hand_off(second);
    let local = SocketAddr::from(([127, 0, 0, 1], 1));
    let mut bytes = [0x40, 0xe7, 9, 9, 1, 9, 9, 9, 9, 0, 0];
    let segment_size = bytes.len();
    let addresses = Addresses { local, peer: local };
    first.send(1, &Train { bytes: &mut bytes, segment_size, addresses, ecn: Ecn::NotEct });
    assert_eq!(worker.next_deadline(), Some(worker.now()));
    let turn = worker.turn(worker.now()).expect("the port works");
    assert_eq!((turn.trains, worker.hand_off_counters().handed_in), (1, 1));
    assert_eq!(worker.next_deadline(), None);
}

/// Another process, which may have ended.
#[derive(Default)]
struct Others {
    has_ended: core::sync::atomic::AtomicBool,
    taken: core::sync::atomic::AtomicU64,
}

impl crate::OtherProcesses for Others {
    fn hand_over(&self, to: transport::Predecessor, train: &Train<'_>) -> Option<u64> {
        use core::sync::atomic::Ordering::Relaxed;
        assert_eq!((to.generation, to.worker), (0, 0));
        assert_eq!(train.bytes.len(), 40);
        self.taken.fetch_add(1, Relaxed);
        (!self.has_ended.load(Relaxed)).then_some(1)
    }
}

/// Deleted, clients of a process that has ended would hear nothing, or those of one that runs be reset.
#[test]
fn a_datagram_of_another_processs_connection_goes_there_for_as_long_as_it_runs() {
    use core::sync::atomic::Ordering::Relaxed;
    let others = Arc::new(Others::default());
    let member = crate::HandOff::group(vec![None]).pop().expect("one");
    let bringer = member.bringer();
    let member = member.with_others(Arc::<Others>::clone(&others));
    let predecessors = Arc::new(transport::Predecessors::new(vec![0], []));
    let config = EndpointConfig { generation: 1, predecessors, ..EndpointConfig::default() };
    let mut endpoint = Endpoint::new(config, [1; 32]);
    let (mut app, mut slab, mut active) = (Idle, Slab::new(), Vec::new());
    let mut counters = HandOffCounters::default();
    let mut context = ReceiveContext {
        app: &mut app,
        endpoint: &mut endpoint,
        server: None,
        slab: &mut slab,
        active: &mut active,
        hand_off_group: Some(&member),
        counters: &mut counters,
        now: Instant::from_nanos(1 << 40),
        holds_trains: false,
    };
    let local = SocketAddr::from(([127, 0, 0, 1], 1));
    let addresses = Addresses { local, peer: SocketAddr::from(([127, 0, 0, 1], 5_000)) };
    let mut bytes = [0x40; 40];
    bytes[1 + transport::CID_WORKER_OFFSET] = 0;
    let mut receive = |origin| {
        let train = Train { bytes: &mut bytes, segment_size: 40, addresses, ecn: Ecn::NotEct };
        context.receive(train, origin)
    };
    assert_eq!(receive(Origin::Port), None);
    assert_eq!(others.taken.load(Relaxed), 1);
    assert!(receive(Origin::Worker).is_some(), "what was handed over is judged here: a reset");
    assert_eq!(others.taken.load(Relaxed), 1);
    others.has_ended.store(true, Relaxed);
    assert!(receive(Origin::Port).is_some(), "the connection has gone with its process: a reset");
    assert_eq!(others.taken.load(Relaxed), 2);
    assert_eq!((counters.handed_out, counters.hand_off_dropped), (1, 0));
    // And what comes from another process reaches the worker.
    let train = Train { bytes: &mut bytes, segment_size: 40, addresses, ecn: Ecn::NotEct };
    assert_eq!(bringer.send(0, &train), 1);
}
