//! Two connections and nothing between them: what would break here breaks everywhere. Scenarios with links are in `sim`.

mod ack_frequency;
mod ack_only;
mod choice;
mod components;
mod early;
mod flights;
mod forged;
mod hostile;

use super::{Connection, Transmitted};
use crate::{ClientConfig, CloseReason, Dir, Endpoint, EndpointConfig, Event, Fin, RetryPolicy, Route};
use crate::{ServerConfig, StreamId, StreamSink, TransportConfig};
use base::net::{Addresses, Ecn, Train};
use base::sink::{PacketSink, TrainPath};
use base::slab::Slab;
use base::time::{Duration, Instant};
use bytes::Bytes;
use crypto::{ClientTls, Identity, Roots, ServerTls, SuiteChoice, TlsOptions};
use std::sync::Arc;
use wire::version::Version;

mod hub;
mod keys;
mod lanes;
mod matrix;
mod opening;
mod own_moves;
mod path_summary;
mod paths;
mod repeats;
mod reset_at;
mod rules;
mod runs;
mod silence;
mod timestamps;
mod traces;
mod trains;
mod versions;
mod without;

const ROOM: usize = 65_536;

/// A sink that keeps datagrams.
#[derive(Default)]
struct Wire {
    datagrams: Vec<Vec<u8>>,
    train: Vec<Vec<u8>>,
    room: Vec<u8>,
    size: usize,
    /// When the trains depart.
    departs: Vec<Option<Instant>>,
}

impl PacketSink for Wire {
    fn begin(&mut self, path: TrainPath, segment_size: usize) -> Option<usize> {
        self.departs.push(path.departs);
        self.room.resize(ROOM, 0);
        self.size = segment_size;
        Some(64)
    }
    fn room(&mut self) -> &mut [u8] {
        &mut self.room[..self.size]
    }
    fn push(&mut self, len: usize) {
        self.train.push(self.room[..len].to_vec());
    }
    fn packet(&mut self, index: usize) -> &mut [u8] {
        &mut self.train[index]
    }
    fn end(&mut self) {
        self.datagrams.append(&mut self.train);
    }
}

#[derive(Default)]
struct Sink {
    received: Vec<u8>,
    ended: usize,
}

impl StreamSink for Sink {
    fn on_stream_data(&mut self, _: StreamId, bytes: &[u8], fin: Fin) -> usize {
        self.received.extend_from_slice(bytes);
        self.ended += usize::from(fin == Fin::End);
        bytes.len()
    }
}

struct End {
    endpoint: Endpoint,
    connection: Option<Connection>,
    sink: Sink,
    events: Vec<Event>,
}

/// A client and a server with a perfect wire of 1 ms between them.
struct Pair {
    now: Instant,
    client: End,
    server: End,
    config: ServerConfig,
}

/// Three PTO.
fn closing(connection: &Connection) -> Duration {
    super::close::close_period(&connection.paths, &connection.components)
}

fn addresses(local: u16, peer: u16) -> Addresses {
    let at = |port| core::net::SocketAddr::from(([127, 0, 0, 1], port));
    Addresses { local: at(local), peer: at(peer) }
}

impl Pair {
    fn new(options: &TlsOptions, transport: TransportConfig, retry: RetryPolicy) -> Pair {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("certificate");
        let identity =
            Identity::from_pem(made.cert.pem().as_bytes(), made.signing_key.serialize_pem().as_bytes());
        let tls = ServerTls::new(&identity.expect("identity"), options).expect("server tls");
        let transport = Arc::new(transport);
        let config = ServerConfig { tls, transport: Arc::clone(&transport) };
        let roots = Roots::Pem(made.cert.pem().into_bytes());
        let tls = ClientTls::new(&roots, options).expect("client tls");
        let end = |seed| {
            let config = EndpointConfig { retry, ..EndpointConfig::default() };
            End {
                endpoint: Endpoint::new(config, [seed; 32]),
                connection: None,
                sink: Sink::default(),
                events: vec![],
            }
        };
        let mut pair = Pair { now: Instant::from_nanos(1 << 40), client: end(1), server: end(2), config };
        let client = ClientConfig { tls, transport, token: Vec::new() };
        let handle = Slab::<()>::new().next_handle();
        let connection =
            pair.client.endpoint.connect(pair.now, handle, &client, ("localhost", addresses(1, 2)));
        pair.client.connection = Some(connection.expect("connects"));
        pair
    }

    fn step(&mut self) -> usize {
        self.now = self.now + Duration::from_millis(1);
        let up = self.client.send(self.now);
        let moved = up.len();
        up.into_iter().for_each(|datagram| self.server.receive(self.now, datagram, Some(&self.config)));
        self.now = self.now + Duration::from_millis(1);
        let down = self.server.send(self.now);
        let moved = moved + down.len();
        down.into_iter().for_each(|datagram| self.client.receive(self.now, datagram, None));
        moved
    }

    fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            self.step();
        }
    }

    fn connected(options: &TlsOptions, transport: TransportConfig, retry: RetryPolicy) -> Pair {
        let mut pair = Pair::new(options, transport, retry);
        pair.run(12);
        assert!(pair.client.events.contains(&Event::Connected), "{:?}", pair.client.events);
        assert!(pair.server.events.contains(&Event::Connected), "{:?}", pair.server.events);
        pair
    }

    /// Until either side may update its keys again, in silence.
    fn wait_for_keys(&mut self) {
        let waits = [closing(self.client()), closing(self.server())];
        self.now = self.now + waits[0].max(waits[1]) + Duration::from_millis(1);
    }

    fn client(&mut self) -> &mut Connection {
        self.client.connection.as_mut().expect("client")
    }

    fn server(&mut self) -> &mut Connection {
        self.server.connection.as_mut().expect("server")
    }

    /// Sends `len` bytes on a new stream of the client and checks that the server got them.
    fn transfer(&mut self, len: usize) {
        let id = self.client().open(Dir::Bidi).expect("stream");
        let bytes: Vec<u8> = (0..len).map(|place| (place % 251) as u8).collect();
        self.client().write(id, Bytes::from(bytes.clone())).expect("writes");
        self.client().finish_stream(id).expect("finishes");
        let before = self.server.sink.received.len();
        for _ in 0..10_000 {
            self.step();
            if self.server.sink.received.len() == before + len && self.server.sink.ended > 0 {
                break;
            }
        }
        assert_eq!(self.server.sink.received.len() - before, len);
        assert!(self.server.sink.received[before..] == bytes, "bytes differ");
        self.server.sink.ended = 0;
    }
}

impl End {
    fn send(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let mut wire = Wire::default();
        let Some(connection) = &mut self.connection else { return core::mem::take(&mut wire.datagrams) };
        if connection.next_timeout().is_some_and(|at| at <= now) {
            connection.on_timeout(now);
        }
        while connection.transmit(now, &mut wire) == Transmitted::Paused {}
        self.events.extend(core::iter::from_fn(|| connection.next_event()));
        self.endpoint.update(Slab::<()>::new().next_handle(), connection);
        wire.datagrams
    }

    fn receive(&mut self, now: Instant, mut datagram: Vec<u8>, server: Option<&ServerConfig>) {
        let handle = Slab::<()>::new().next_handle();
        let segment_size = datagram.len();
        let addresses = if server.is_some() { addresses(2, 1) } else { addresses(1, 2) };
        let train = Train { bytes: &mut datagram, segment_size, addresses, ecn: Ecn::Ect0 };
        match self.endpoint.route(now, &train) {
            Route::Incoming(incoming) => {
                let config = server.expect("only servers accept");
                self.connection = Some(self.endpoint.accept(now, handle, incoming, config).expect("accepts"));
            }
            Route::Connection(_) => {}
            Route::Reply => {
                REPLIES.with_borrow_mut(|replies| replies.push(self.endpoint.reply().to_vec()));
                return;
            }
            Route::Drop(reason) => panic!("dropped: {reason:?}"),
            Route::Elsewhere(worker) => panic!("one worker sends to worker {worker}"),
            Route::Predecessor(predecessor) => panic!("sent to {predecessor:?}"),
        }
        self.connection.as_mut().expect("connection").receive(now, train, &mut self.sink);
    }
}

std::thread_local! {
    static REPLIES: core::cell::RefCell<Vec<Vec<u8>>> = const { core::cell::RefCell::new(Vec::new()) };
}

#[test]
fn a_handshake_completes_and_data_arrives() {
    let mut pair = Pair::connected(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    for len in [1, 1_000, 100_000, 3_000_000] {
        pair.transfer(len);
    }
    assert_eq!(pair.client().counters().lost_packets, 0);
    assert_eq!(pair.client().packet_size(), 1_452, "the path was found to carry more");
}

#[test]
fn every_cipher_suite_and_version_carries_data() {
    for suites in [SuiteChoice::All, SuiteChoice::Only(crypto::Suite::ChaCha20Poly1305)] {
        for version in [Version::V1, Version::V2] {
            let options = TlsOptions { suites, ..TlsOptions::default() };
            let transport = TransportConfig { version, ..TransportConfig::default() };
            let mut pair = Pair::connected(&options, transport, RetryPolicy::Never);
            pair.transfer(50_000);
            assert_eq!(pair.server().version(), version);
            let counted = pair.server.endpoint.counters().incoming_v2;
            assert_eq!(counted, u64::from(version == Version::V2), "a server counts what its clients speak");
        }
    }
}

#[test]
fn a_server_that_wants_a_valid_address_gets_one() {
    let mut pair = Pair::new(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Always);
    pair.step();
    let replies = REPLIES.take();
    assert!(!replies.is_empty(), "a Retry was sent");
    for reply in replies {
        let now = pair.now;
        pair.client.receive(now, reply, None);
    }
    pair.run(10);
    assert!(pair.client.events.contains(&Event::Connected), "{:?}", pair.client.events);
    pair.transfer(10_000);
}

#[test]
fn keys_are_updated_by_either_side_and_data_goes_on() {
    let mut pair = Pair::connected(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    for round in 0..4 {
        pair.transfer(20_000);
        pair.wait_for_keys();
        let now = pair.now;
        let updated =
            if round % 2 == 0 { pair.client().update_keys(now) } else { pair.server().update_keys(now) };
        assert!(updated, "round {round}");
        // A phase in which nothing was acknowledged does not end: the server must have sent more than acknowledgements.
        let id = pair.server().open(Dir::Uni).expect("stream");
        pair.server().write(id, Bytes::from_static(b"stir")).expect("writes");
        pair.transfer(20_000);
        // As long as an acknowledgement may be delayed.
        pair.run(15);
        let counted = [pair.client().counters().key_updates, pair.server().counters().key_updates];
        assert_eq!(counted, [round + 1; 2], "either side counts the updates of both");
    }
}

#[test]
fn keys_wear_out_and_are_renewed() {
    let transport = TransportConfig { key_update_after: 50, ..TransportConfig::default() };
    let mut pair = Pair::connected(&TlsOptions::default(), transport, RetryPolicy::Never);
    for _ in 0..5 {
        pair.transfer(200_000);
        pair.wait_for_keys();
    }
    let updates = pair.client().counters().key_updates;
    assert!((4..10).contains(&updates), "{updates}: each after a while only");
}

#[test]
fn a_close_reaches_the_peer_and_state_goes_away() {
    let mut pair = Pair::connected(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    let now = pair.now;
    pair.client().close(now, 7, b"done");
    pair.run(2);
    let closed = Event::Closed(CloseReason::PeerApplication { code: 7, reason: "done".to_owned() });
    assert!(pair.server.events.contains(&closed), "{:?}", pair.server.events);
    for _ in 0..20 {
        pair.now = pair.now + Duration::from_secs(1);
        pair.client.send(pair.now);
        pair.server.send(pair.now);
    }
    assert!(pair.client().is_gone() && pair.server().is_gone());
}

/// Deleted, one lost datagram would leave the peer to its idle timeout when a program ends.
#[test]
fn a_close_that_was_lost_is_sent_again() {
    let mut pair = Pair::connected(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    pair.run(20);
    let now = pair.now;
    pair.client().close(now, 7, b"done");
    let lost = pair.client.send(now);
    assert_eq!(lost.len(), 1);
    pair.run(20);
    assert!(!pair.server().is_closed(), "nothing has told it");
    pair.client().repeat_close();
    pair.run(1);
    let closed = Event::Closed(CloseReason::PeerApplication { code: 7, reason: "done".to_owned() });
    assert!(pair.server.events.contains(&closed), "{:?}", pair.server.events);
    // A connection that drains says nothing.
    pair.server().repeat_close();
    assert!(pair.server.send(pair.now).is_empty());
}

#[test]
fn silence_ends_a_connection() {
    let mut pair = Pair::connected(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    pair.now = pair.now + Duration::from_secs(31);
    pair.client.send(pair.now);
    assert!(pair.client.events.contains(&Event::Closed(CloseReason::IdleTimeout)));
}
