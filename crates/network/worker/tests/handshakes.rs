//! Signatures that take long are out while their worker serves others. No test here looks at a clock: what is out comes back when the test
//! says so.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that meets an error has failed")]

use base::slab::Handle;
use base::time::{Duration, Instant};
use core::net::SocketAddr;
use crypto::{ClientTls, Identities, Identity, Roots, ServerTls, TlsOptions};
use datapath::Port as _;
use rcgen::{CertificateParams, KeyPair, SignatureAlgorithm};
use std::sync::{Arc, Mutex};
use transport::{
    ClientConfig, Connection, Endpoint, EndpointConfig, Event, Fin, IncomingPolicy, RetryPolicy,
    ServerConfig, StreamId, StreamSink, TransportConfig,
};
use udp::{BindOptions, UdpPort, Variant};
use worker::{App, Config, HandshakeTask, MOST_OUT, Next, Worker};

/// Notes what becomes of connections.
#[derive(Default)]
struct Notes {
    connected: usize,
    ended: usize,
}

#[derive(Default)]
struct State {
    is_connected: bool,
}

impl StreamSink for State {
    fn on_stream_data(&mut self, _: StreamId, bytes: &[u8], _: Fin) -> usize {
        bytes.len()
    }
}

impl App for Notes {
    type State = State;
    fn on_accept(&mut self, _: Instant, _: &mut Connection) -> State {
        State::default()
    }
    fn on_turn(&mut self, _: Instant, connection: &mut Connection, state: &mut State) -> Next {
        while let Some(event) = connection.next_event() {
            match event {
                Event::Connected => {
                    self.connected += 1;
                    state.is_connected = true;
                }
                Event::Closed(_) => self.ended += 1,
                _ => {}
            }
        }
        Next::Wait
    }
    fn on_gone(&mut self, _: Instant, _: &Connection, _: State) {}
}

fn identity(kind: &'static SignatureAlgorithm) -> Identity {
    let key = KeyPair::generate_for(kind).unwrap();
    let made = CertificateParams::new(vec!["slow.example".to_owned()]).unwrap().self_signed(&key).unwrap();
    Identity::from_pem(made.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap()
}

fn port() -> UdpPort {
    UdpPort::bind(&BindOptions::new(([127, 0, 0, 1], 0).into(), Variant::Plain)).unwrap()
}

/// A server with a slow certificate and a fast one, a client, and the steps that are out.
struct World {
    server: Worker<UdpPort, Notes>,
    client: Worker<UdpPort, Notes>,
    config: ClientConfig,
    address: SocketAddr,
    out: Arc<Mutex<Vec<HandshakeTask>>>,
}

impl World {
    fn new() -> World {
        let mut identities = Identities::from(&identity(&rcgen::PKCS_RSA_SHA256));
        identities.insert("fast.example", &identity(&rcgen::PKCS_ECDSA_P256_SHA256)).unwrap();
        let tls = ServerTls::new(&identities, &TlsOptions::default()).unwrap();
        // What is over is soon gone.
        let initial_rtt = Duration::from_millis(20);
        let transport = Arc::new(TransportConfig { initial_rtt, ..TransportConfig::default() });
        let server = ServerConfig { tls, transport: Arc::clone(&transport) };
        let taking = EndpointConfig { retry: RetryPolicy::Never, ..EndpointConfig::default() };
        let out: Arc<Mutex<Vec<HandshakeTask>>> = Arc::default();
        let queue = Arc::clone(&out);
        let endpoint = Endpoint::new(taking, [1; 32]);
        let server = Worker::new(port(), Notes::default(), endpoint, Some(server), Config::default())
            .with_handshake_executor(Arc::new(move |task| queue.lock().unwrap().push(task)));
        let asking = EndpointConfig { incoming: IncomingPolicy::Ignore, ..EndpointConfig::default() };
        let endpoint = Endpoint::new(asking, [2; 32]);
        let client = Worker::new(port(), Notes::default(), endpoint, None, Config::default());
        let tls = ClientTls::new(&Roots::Insecure, &TlsOptions::default()).unwrap();
        let config = ClientConfig { tls, transport, token: Vec::new() };
        let address = server.port().local_address();
        World { server, client, config, address, out }
    }

    fn connect(&mut self, name: &str) -> Handle {
        self.client.connect(&self.config, name, self.address, State::default()).unwrap()
    }

    /// Both turn until it is `done`.
    fn run_until(&mut self, what: &str, done: impl Fn(&mut World) -> bool) {
        for _ in 0..20_000 {
            for worker in [&mut self.server, &mut self.client] {
                let soon = worker.clock() + Duration::from_millis(1);
                worker.run_turn(Some(soon)).unwrap();
            }
            if done(self) {
                return;
            }
        }
        panic!("{what}: does not come");
    }

    fn out(&self) -> usize {
        self.out.lock().unwrap().len()
    }

    fn is_connected(&mut self, handle: Handle) -> bool {
        self.client.connection(handle).is_some_and(|(_, state)| state.is_connected)
    }

    /// The oldest step that is out.
    fn oldest(&self) -> HandshakeTask {
        self.out.lock().unwrap().remove(0)
    }
}

/// Deleted, every connection of a worker could wait for each signature again, or the hand-over be made for a key that signs fast.
#[test]
fn a_worker_serves_others_while_a_signature_is_out_and_signs_fast_ones_itself() {
    let mut world = World::new();
    let slow = world.connect("slow.example");
    world.run_until("a step", |world| world.out() == 1);
    for _ in 0..3 {
        let fast = world.connect("fast.example");
        world.run_until("another connection", |world| world.is_connected(fast));
        assert!(!world.is_connected(slow));
    }
    assert_eq!(world.out(), 1, "the slow one alone");
    let step = world.oldest();
    std::thread::spawn(move || step.run()).join().unwrap();
    world.run_until("the handshake", |world| world.is_connected(slow));
    world.run_until("it at the server", |world| world.server.app().connected == 4);
    assert_eq!((world.server.app().ended, world.out()), (0, 0));
}

/// The worker sleeps without a limit: only the thread that has taken the step can end that.
#[test]
fn a_step_that_comes_back_ends_the_sleep_of_its_worker() {
    let mut world = World::new();
    world.connect("slow.example");
    world.run_until("a step", |world| world.out() == 1);
    let sent = world.server.counters().tx.datagrams;
    let step = world.oldest();
    let thread = std::thread::spawn(move || step.run());
    while world.server.counters().tx.datagrams == sent {
        world.server.run_turn(None).unwrap();
    }
    thread.join().unwrap();
}

/// Deleted, clients could fill what takes the steps with as many as they like, or be left in line for ever.
#[test]
fn so_many_are_out_at_a_time_and_the_others_follow_in_order() {
    let mut world = World::new();
    let connections: Vec<Handle> = (0..3 * MOST_OUT).map(|_| world.connect("slow.example")).collect();
    world.run_until("all hellos", |world| world.server.connections() == 3 * MOST_OUT);
    world.run_until("steps", |world| world.out() == MOST_OUT);
    for done in 0..connections.len() {
        let left = connections.len() - done;
        world.run_until("more steps", |world| world.out() == left.min(MOST_OUT));
        world.oldest().run();
        world.run_until("a handshake", |world| world.server.app().connected == done + 1);
    }
    world.run_until("all", |world| world.client.app().connected == connections.len());
}

/// Deleted, a client could hold its place in line, and what is kept for it, after its end; or a late step meet another connection.
#[test]
fn connections_may_end_while_their_steps_are_out_or_in_line() {
    let mut world = World::new();
    let connections: Vec<Handle> = (0..2 * MOST_OUT).map(|_| world.connect("slow.example")).collect();
    world.run_until("all hellos", |world| world.server.connections() == 2 * MOST_OUT);
    world.run_until("steps", |world| world.out() == MOST_OUT);
    for handle in connections {
        let now = world.client.now();
        world.client.connection(handle).unwrap().0.close(now, 0, b"");
    }
    world.run_until("their end", |world| world.server.connections() == 0);
    assert_eq!((world.out(), world.server.endpoint().half_open()), (MOST_OUT, 0));
    let next = world.connect("slow.example");
    world.run_until("the next hello", |world| world.server.connections() == 1);
    (0..MOST_OUT).for_each(|_| world.oldest().run());
    // None of those in line that have gone goes out: the step of the one that is there does.
    world.run_until("its step", |world| world.out() == 1);
    world.oldest().run();
    world.run_until("its handshake", |world| world.is_connected(next) && world.server.app().connected == 1);
    assert_eq!(world.server.connections(), 1);
}

/// Deleted, a thread that fails would leave its client waiting, and take a place for good.
#[test]
fn a_step_that_is_dropped_ends_its_connection_alone() {
    let mut world = World::new();
    for _ in 0..2 * MOST_OUT {
        let given_up = world.connect("slow.example");
        world.run_until("a step", |world| world.out() == 1);
        drop(world.oldest());
        world.run_until("the end", |world| {
            world.client.connection(given_up).is_none_or(|(connection, _)| connection.is_closed())
        });
    }
    let next = world.connect("slow.example");
    world.run_until("a step", |world| world.out() == 1);
    world.oldest().run();
    world.run_until("the handshake", |world| world.is_connected(next));
}
