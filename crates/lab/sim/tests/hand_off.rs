//! Several workers on one address: datagrams that come in at the wrong one.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a helper of a test may panic as the test itself may"
)]

use base::net::Train;
use base::rng::Rng;
use base::sink::{PacketSink, TrainPath};
use base::time::{Duration, Instant};
use core::net::SocketAddr;
use crypto::KeyExchange;
use datapath::{Capabilities, Counters, Port, Rx, Tx};
use sim::tls::{self, SERVER_NAME, TlsChoice};
use sim::transfer::{Client, Server, Transfer, TransferPlan};
use sim::{HostId, HostOptions, Network, Node, PortOptions, ReadBehaviour, VirtualPort};
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use transport::{
    ClientConfig, Endpoint, EndpointConfig, IncomingPolicy, RetryPolicy, ServerConfig, TransportConfig,
};
use worker::{Config, HandOff, HandOffCounters, Worker};

/// Who gets what arrives at a host that several workers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Steering {
    /// The worker of this number.
    To(usize),
    /// The worker of this number now, the other one next, and so on, by chance as far as they know.
    InTurns(usize),
    /// The same, and they know that they share a socket.
    Shared(usize),
}

/// A port of a host that several workers share.
struct Steered {
    port: VirtualPort,
    number: usize,
    steering: Rc<Cell<Steering>>,
}

impl Rx for Steered {
    fn poll(&mut self) -> io::Result<usize> {
        let steering = self.steering.get();
        let (Steering::To(chosen) | Steering::InTurns(chosen) | Steering::Shared(chosen)) = steering;
        let trains = if chosen == self.number { self.port.poll()? } else { 0 };
        if trains > 0 {
            self.steering.set(match steering {
                Steering::To(_) => steering,
                Steering::InTurns(_) => Steering::InTurns(1 - chosen),
                Steering::Shared(_) => Steering::Shared(1 - chosen),
            });
        }
        Ok(trains)
    }
    fn train(&mut self, index: usize) -> Train<'_> {
        self.port.train(index)
    }
}

impl PacketSink for Steered {
    fn begin(&mut self, path: TrainPath, segment_size: usize) -> Option<usize> {
        self.port.begin(path, segment_size)
    }
    fn room(&mut self) -> &mut [u8] {
        self.port.room()
    }
    fn push(&mut self, len: usize) {
        self.port.push(len);
    }
    fn packet(&mut self, index: usize) -> &mut [u8] {
        self.port.packet(index)
    }
    fn end(&mut self) {
        self.port.end();
    }
}

impl Tx for Steered {
    fn flush(&mut self) -> io::Result<()> {
        self.port.flush()
    }
}

impl Port for Steered {
    fn now(&mut self) -> Instant {
        self.port.now()
    }
    fn wait(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        self.port.wait(deadline)
    }
    fn local_address(&self) -> SocketAddr {
        self.port.local_address()
    }
    fn is_shared(&self) -> bool {
        matches!(self.steering.get(), Steering::Shared(_))
    }
    fn counters(&self) -> Counters {
        self.port.counters()
    }
    fn capabilities(&self) -> Capabilities {
        self.port.capabilities()
    }
}

/// Two workers at one address, and a client.
struct World {
    network: Rc<RefCell<Network>>,
    server_host: HostId,
    client_host: HostId,
    steering: Rc<Cell<Steering>>,
    workers: Vec<Worker<Steered, Server>>,
    client: Worker<VirtualPort, Client>,
    config: ClientConfig,
}

const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 443);

impl World {
    /// `numbers` are what the workers think they are, and of how many.
    fn new(seed: u64, numbers: [(u8, u8); 2]) -> World {
        let mut network = Network::new(seed);
        let host = HostOptions { coalesce: Duration::from_micros(20) };
        let server_host = network.add_host(SERVER.into(), host);
        let client_host = network.add_host(([198, 51, 100, 1], 50_000).into(), host);
        let nodes = || {
            vec![
                Node::Rate { bits_per_second: 100_000_000, queue_bytes: 200_000 },
                Node::Delay(Duration::from_millis(5)),
            ]
        };
        network.add_link(client_host, server_host, nodes());
        network.add_link(server_host, client_host, nodes());
        let network = Rc::new(RefCell::new(network));
        // A ClientHello of two datagrams.
        let key_exchange = KeyExchange::PostQuantum;
        let choice = TlsChoice { key_exchange, ..TlsChoice::default() };
        let (server_tls, client_tls) = tls::configure(&choice).expect("tls");
        let transport = Arc::new(TransportConfig::default());
        let steering = Rc::new(Cell::new(Steering::To(0)));
        let group = HandOff::group(vec![None, None]);
        let mut rng = Rng::from_u64(seed);
        let mut read_behaviour = || ReadBehaviour::new(rng.fork(), 0);
        let workers = group.into_iter().zip(numbers).map(|(member, (worker, workers))| {
            let port = VirtualPort::new(&network, server_host, PortOptions::default());
            let port = Steered { port, number: member.number(), steering: Rc::clone(&steering) };
            let config =
                EndpointConfig { worker, workers, retry: RetryPolicy::Never, ..EndpointConfig::default() };
            let endpoint = Endpoint::new(config, [worker + 1; 32]);
            let server = ServerConfig { tls: server_tls.clone(), transport: Arc::clone(&transport) };
            Worker::new(port, Server::new(read_behaviour()), endpoint, Some(server), Config::default())
                .with_hand_off(member)
        });
        let workers = workers.collect();
        let port = VirtualPort::new(&network, client_host, PortOptions::default());
        let asking = EndpointConfig { incoming: IncomingPolicy::Ignore, ..EndpointConfig::default() };
        let client =
            Worker::new(port, Client::default(), Endpoint::new(asking, [9; 32]), None, Config::default());
        let config = ClientConfig { tls: client_tls, transport, token: Vec::new() };
        World { network, server_host, client_host, steering, workers, client, config }
    }

    fn connect(&mut self, bytes: u64) {
        let client_plan =
            TransferPlan::new(ReadBehaviour::new(Rng::from_u64(1), 0), [Transfer::download(bytes)], 1);
        self.client.connect(&self.config, SERVER_NAME, SERVER.into(), client_plan).expect("connects");
    }

    /// Everybody turns until nothing is due, then time moves on; until `done` or for ten virtual seconds.
    fn run(&mut self, mut done: impl FnMut(&mut World) -> bool) -> bool {
        let end = self.network.borrow().now() + Duration::from_secs(10);
        loop {
            let now = self.network.borrow().now();
            for _ in 0..1_000 {
                let mut is_quiet = true;
                for worker in &mut self.workers {
                    let turn = worker.turn(now).expect("the port works");
                    is_quiet &= turn.trains == 0 && worker.next_deadline().is_none_or(|due| due > now);
                }
                let turn = self.client.turn(now).expect("the port works");
                is_quiet &= turn.trains == 0 && self.client.next_deadline().is_none_or(|due| due > now);
                if is_quiet {
                    break;
                }
            }
            if done(self) {
                return true;
            }
            let deadlines = self.workers.iter().map(Worker::next_deadline);
            let others = [self.network.borrow().next_event_at(), self.client.next_deadline()];
            let next = deadlines.chain(others).flatten().min();
            match next.filter(|next| *next < end) {
                Some(next) => self.network.borrow_mut().advance(next.max(now)),
                None => return false,
            }
        }
    }

    fn hand_off(&self) -> [HandOffCounters; 2] {
        [self.workers[0].hand_off_counters(), self.workers[1].hand_off_counters()]
    }

    fn is_done(&mut self) -> bool {
        assert_eq!(self.client.app_mut().failures, Vec::<String>::new());
        self.client.app_mut().done == 1
    }
}

/// What a client without a steering program does to a server when its port changes: all its packets come in at another
/// worker, which has never heard of it.
#[test]
fn a_connection_whose_packets_come_to_the_wrong_worker_completes() {
    let mut world = World::new(1, [(0, 2), (1, 2)]);
    world.connect(5_000_000);
    assert!(world.run(|world| world.workers[0].app_mut().talked == 1), "the handshake");
    assert_eq!(world.hand_off(), [HandOffCounters::default(); 2], "nothing crosses without need");
    world.steering.set(Steering::To(1));
    assert!(world.run(World::is_done), "the transfer");
    let [first, second] = world.hand_off();
    assert_eq!(world.workers[1].app_mut().accepted, 0);
    assert!(second.handed_out > 100, "{second:?}");
    assert_eq!((first.handed_in, first.hand_off_dropped), (second.handed_out, 0));
    assert_eq!((first.handed_out, second.handed_in, second.hand_off_dropped), (0, 0, 0));
    assert_eq!(world.workers[1].endpoint().counters().stateless_resets, 0);
    assert!(world.workers[1].endpoint().counters().elsewhere > 0);
}

/// The packets of a handshake cross too, as soon as they bear a connection ID of ours.
#[test]
fn the_second_half_of_a_handshake_may_come_to_the_wrong_worker() {
    let mut world = World::new(2, [(0, 2), (1, 2)]);
    world.connect(100_000);
    assert!(world.run(|world| world.workers[0].app_mut().accepted == 1), "the first packet");
    world.steering.set(Steering::To(1));
    assert!(world.run(World::is_done), "the transfer");
    let [first, second] = world.hand_off();
    assert!(first.handed_in > 0 && second.hand_off_dropped == 0, "{first:?} {second:?}");
}

/// Both begin a connection with what they have. The client goes on with the first that answers, whose other half it sends again: to
/// that one's connection ID, and to the wrong worker. Deleted, its handshake never completes.
#[test]
fn the_halves_of_a_client_hello_may_come_to_two_workers() {
    for last in [0, 1] {
        let mut world = World::new(5, [(0, 2), (1, 2)]);
        world.steering.set(Steering::InTurns(1 - last));
        world.connect(100_000);
        assert!(world.run(|world| world.workers.iter_mut().all(|worker| worker.app_mut().accepted == 1)));
        world.steering.set(Steering::To(last));
        assert!(world.run(World::is_done), "the transfer");
        let hand_off = world.hand_off();
        assert!(hand_off[last].handed_out > 0, "{hand_off:?}");
        assert_eq!(world.workers[1 - last].app_mut().talked, 1);
    }
}

/// Deleted, a client would wait for a probe where the datagrams of its ClientHello come to two workers, and one of them for the rest.
#[test]
fn workers_that_share_a_socket_begin_one_connection_for_a_client() {
    for first in [0, 1] {
        let mut world = World::new(6, [(0, 2), (1, 2)]);
        world.steering.set(Steering::Shared(first));
        world.connect(100_000);
        assert!(world.run(World::is_done), "the transfer");
        let accepted: u64 = world.workers.iter_mut().map(|worker| worker.app_mut().accepted).sum();
        let hand_off = world.hand_off();
        assert_eq!(accepted, 1, "{hand_off:?}");
        assert!(hand_off.iter().any(|of| of.handed_in > 10), "{hand_off:?}");
    }
}

fn short(worker: u8, counter: u64) -> Vec<u8> {
    let mut datagram = vec![0x5a; 1_200];
    datagram[..5].copy_from_slice(&[0x40, 0xe7, 1, 2, worker]);
    datagram[5..9].copy_from_slice(&(counter as u32).to_be_bytes());
    datagram
}

impl World {
    /// The client's host sends datagrams as any host may.
    fn flood(&mut self, worker: u8, datagrams: u64) {
        for counter in 0..datagrams {
            let datagram = short(worker, counter);
            self.network.borrow_mut().send(
                self.client_host,
                SERVER.into(),
                base::net::Ecn::NotEct,
                &datagram,
            );
        }
        let then = self.network.borrow().now() + Duration::from_secs(1);
        self.network.borrow_mut().advance(then);
        assert!(self.network.borrow().has_arrivals(self.server_host));
    }
}

/// Datagrams for a worker that does not read them must not cost memory without bound.
#[test]
fn a_flood_for_a_busy_worker_is_bounded_and_counted() {
    let mut world = World::new(3, [(0, 2), (1, 2)]);
    let rounds = 40;
    for _ in 0..rounds {
        world.flood(1, 160);
        let now = world.network.borrow().now();
        for _ in 0..1_000 {
            world.workers[0].turn(now).expect("the port works");
        }
    }
    let [first, second] = world.hand_off();
    assert_eq!(first.handed_out + first.hand_off_dropped, world.workers[0].counters().rx.datagrams);
    assert!(first.handed_out <= worker::hand_off::MAX_BYTES as u64 / 1_200, "{first:?}");
    assert!(first.hand_off_dropped > first.handed_out, "{first:?}");
    assert_eq!(second.handed_in, 0);
    let now = world.network.borrow().now();
    assert_eq!(
        world.workers[1].next_deadline(),
        Some(world.workers[1].now()),
        "handed-over datagrams are due at once"
    );
    world.workers[1].turn(now).expect("the port works");
    let [_, second] = world.hand_off();
    assert_eq!(second.handed_in, first.handed_out);
    assert!(world.workers[1].next_deadline().is_none(), "and then there is rest");
}

/// Two workers that each believe that the other one is meant, as after a mistake in their configuration.
#[test]
fn nothing_is_handed_over_twice() {
    let mut world = World::new(4, [(0, 2), (1, 3)]);
    world.flood(3, 50); // 3 % 2 is 1, and 3 % 3 is 0
    for _ in 0..100 {
        let now = world.network.borrow().now();
        for worker in &mut world.workers {
            worker.turn(now).expect("the port works");
        }
    }
    let [first, second] = world.hand_off();
    let datagrams = world.workers[0].counters().rx.datagrams;
    assert!(datagrams > 0);
    assert_eq!(
        (first.handed_out, second.handed_in, second.hand_off_dropped),
        (datagrams, datagrams, datagrams)
    );
    assert_eq!((second.handed_out, first.handed_in), (0, 0));
    assert!(world.workers.iter().all(|worker| worker.next_deadline().is_none()));
    let resets = world.workers.iter().map(|worker| worker.endpoint().counters().stateless_resets);
    assert_eq!(resets.sum::<u64>(), 0, "no worker answers for the connections of another");
}
