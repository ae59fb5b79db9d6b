//! A client and a server of QUIC that take turns, and memory in place of the network between them.
//!
//! The four functions whose names say what an end does are counted with all that they call; what is between them is not.

use crate::certificate::{Certificate, NAME};
use base::net::{Addresses, Ecn, Train};
use base::sink::{PacketSink, TrainPath};
use base::slab::{Handle, Slab};
use base::time::{Duration, Instant};
use crypto::{ClientTls, Roots, ServerTls, TlsOptions};
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use transport::{
    ClientConfig, Connection, Endpoint, EndpointConfig, Route, ServerConfig, StreamSink, Transmitted,
    TransportConfig,
};

/// Half a round trip.
const WAY: Duration = Duration::from_millis(5);
/// Packet memory of an end, in bytes.
const MEMORY: usize = 8 << 20;
/// The longest train, in bytes.
const TRAIN: usize = 65_000;
/// Packets of a train at most.
const PACKETS: usize = 40;

/// What lives on a connection.
pub(crate) trait App {
    /// Receives what arrives.
    type Sink: StreamSink;

    /// A server's end: a client has connected.
    fn on_accept(&mut self, now: Instant, connection: &mut Connection);

    fn sink(&mut self) -> Option<&mut Self::Sink>;

    /// Something happened, or may be done. Returns whether there is more to do.
    fn on_turn(&mut self, now: Instant, connection: &mut Connection) -> bool;
}

/// One end of a connection.
pub(crate) struct End<A> {
    endpoint: Endpoint,
    pub(crate) connection: Option<Connection>,
    pub(crate) app: A,
    /// What it has sent and the other end has not received.
    sent: Trains,
}

/// Both ends.
pub(crate) struct World<C, S> {
    pub(crate) now: Instant,
    pub(crate) client: End<C>,
    pub(crate) server: End<S>,
    client_config: ClientConfig,
    server_config: ServerConfig,
    /// What the server has sent, while the client receives it.
    arriving: Trains,
}

impl<C: App, S: App> World<C, S> {
    /// Two ends without a connection.
    pub(crate) fn new(alpn: &[u8], (client, server): (C, S)) -> Result<World<C, S>, Box<dyn Error>> {
        let certificate = Certificate::new()?;
        let options = TlsOptions { alpn: vec![alpn.to_vec()], ..TlsOptions::default() };
        let client_tls = ClientTls::new(&Roots::Pem(certificate.pem.into_bytes()), &options)?;
        let transport = Arc::new(TransportConfig::default());
        Ok(World {
            now: Instant::from_nanos(1 << 40),
            client: End::new(client, [1; 32]),
            server: End::new(server, [2; 32]),
            client_config: ClientConfig {
                tls: client_tls,
                transport: Arc::clone(&transport),
                token: Vec::new(),
            },
            server_config: ServerConfig { tls: ServerTls::new(&certificate.identity, &options)?, transport },
            arriving: Trains::new(),
        })
    }

    /// The client begins a connection, in place of the one before.
    pub(crate) fn connect(&mut self) -> Result<(), Box<dyn Error>> {
        self.client.reset([1; 32]);
        self.server.reset([2; 32]);
        client_connects(&mut self.client, self.now, &self.client_config)
    }

    /// Both ends are sure of their keys.
    pub(crate) fn is_confirmed(&self) -> bool {
        let is_confirmed = |connection: &Option<Connection>| {
            connection.as_ref().is_some_and(|connection| connection.is_confirmed())
        };
        is_confirmed(&self.client.connection) && is_confirmed(&self.server.connection)
    }

    /// Half a round trip each way. The client has a turn for each train that it receives, as if they came one by one.
    pub(crate) fn step(&mut self) -> Result<(), Box<dyn Error>> {
        self.now = self.now + WAY;
        self.client_turn()?;
        self.now = self.now + WAY;
        server_sends(&mut self.server, self.now);
        std::mem::swap(&mut self.arriving, &mut self.server.sent);
        for number in 0..self.arriving.done.len() {
            client_receives(&mut self.client, self.now, (&mut self.arriving, number));
            self.client_turn()?;
        }
        self.arriving.clear();
        Ok(())
    }

    fn client_turn(&mut self) -> Result<(), Box<dyn Error>> {
        client_sends(&mut self.client, self.now);
        for number in 0..self.client.sent.done.len() {
            let sent = (&mut self.client.sent, number);
            server_receives(&mut self.server, self.now, sent, &self.server_config)?;
        }
        self.client.sent.clear();
        Ok(())
    }

    /// Steps until `done`.
    pub(crate) fn run_until(
        &mut self,
        what: &str,
        mut done: impl FnMut(&mut World<C, S>) -> bool,
    ) -> Result<(), Box<dyn Error>> {
        for _ in 0..1_000_000 {
            if done(self) {
                return Ok(());
            }
            self.step()?;
        }
        Err(format!("{what} does not end").into())
    }
}

impl<A: App> End<A> {
    fn new(app: A, seed: [u8; 32]) -> End<A> {
        let endpoint = Endpoint::new(EndpointConfig::default(), seed);
        End { endpoint, connection: None, app, sent: Trains::new() }
    }

    fn reset(&mut self, seed: [u8; 32]) {
        self.endpoint = Endpoint::new(EndpointConfig::default(), seed);
        self.connection = None;
    }

    #[inline]
    fn send(&mut self, now: Instant) {
        let Some(connection) = &mut self.connection else { return };
        if connection.next_timeout().is_some_and(|at| at <= now) {
            connection.on_timeout(now);
        }
        loop {
            let is_more = self.app.on_turn(now, connection);
            let is_paused = connection.transmit(now, &mut self.sent) == Transmitted::Paused;
            if !is_more && !is_paused {
                break;
            }
        }
        self.endpoint.update(handle(), connection);
    }

    /// A train of the connection has arrived.
    #[inline]
    fn receive(&mut self, now: Instant, train: Train<'_>) {
        let (Some(connection), Some(sink)) = (&mut self.connection, self.app.sink()) else { return };
        if matches!(self.endpoint.route(now, &train), Route::Connection(_)) {
            connection.receive(now, train, sink);
        }
    }

    fn accept(
        &mut self,
        now: Instant,
        train: Train<'_>,
        config: &ServerConfig,
    ) -> Result<(), Box<dyn Error>> {
        let Route::Incoming(incoming) = self.endpoint.route(now, &train) else { return Ok(()) };
        let accepted = self.endpoint.accept(now, handle(), incoming, config);
        let mut connection = accepted.map_err(|error| format!("{error:?}"))?;
        self.app.on_accept(now, &mut connection);
        if let Some(sink) = self.app.sink() {
            connection.receive(now, train, sink);
        }
        self.connection = Some(connection);
        Ok(())
    }
}

#[inline(never)]
fn client_connects<A: App>(
    client: &mut End<A>,
    now: Instant,
    config: &ClientConfig,
) -> Result<(), Box<dyn Error>> {
    let begun = client.endpoint.connect(now, handle(), config, (NAME, addresses(1, 2)));
    client.connection = Some(begun.map_err(|error| format!("{error:?}"))?);
    Ok(())
}

// Each with a number of its own, because the compiler makes one function of two that are the same.

#[inline(never)]
fn client_sends<A: App>(client: &mut End<A>, now: Instant) {
    black_box(1);
    client.send(now);
}

#[inline(never)]
fn server_sends<A: App>(server: &mut End<A>, now: Instant) {
    black_box(2);
    server.send(now);
}

#[inline(never)]
fn client_receives<A: App>(client: &mut End<A>, now: Instant, (trains, number): (&mut Trains, usize)) {
    black_box(3);
    if let Some(train) = trains.train(number, addresses(1, 2)) {
        client.receive(now, train);
    }
}

#[inline(never)]
fn server_receives<A: App>(
    server: &mut End<A>,
    now: Instant,
    (trains, number): (&mut Trains, usize),
    config: &ServerConfig,
) -> Result<(), Box<dyn Error>> {
    let Some(train) = trains.train(number, addresses(2, 1)) else { return Ok(()) };
    if server.connection.is_none() {
        return server.accept(now, train, config);
    }
    server.receive(now, train);
    Ok(())
}

fn handle() -> Handle {
    Slab::<()>::new().next_handle()
}

fn addresses(local: u8, peer: u8) -> Addresses {
    let at = |host: u8| core::net::SocketAddr::from(([192, 0, 2, host], 443));
    Addresses { local: at(local), peer: at(peer) }
}

/// Trains in one piece of memory.
struct Trains {
    memory: Vec<u8>,
    /// Where each begins and ends, and the length of its packets.
    done: Vec<(usize, usize, usize)>,
    begin: usize,
    end: usize,
    segment_size: usize,
}

impl Trains {
    fn new() -> Trains {
        Trains { memory: vec![0; MEMORY], done: Vec::with_capacity(1_024), begin: 0, end: 0, segment_size: 1 }
    }

    #[inline]
    fn train(&mut self, number: usize, addresses: Addresses) -> Option<Train<'_>> {
        let (begin, end, segment_size) = *self.done.get(number)?;
        let bytes = self.memory.get_mut(begin..end)?;
        Some(Train { bytes, segment_size, addresses, ecn: Ecn::Ect0 })
    }

    fn clear(&mut self) {
        self.done.clear();
        (self.begin, self.end) = (0, 0);
    }
}

impl PacketSink for Trains {
    fn begin(&mut self, _: TrainPath, segment_size: usize) -> Option<usize> {
        let capacity = (TRAIN / segment_size).clamp(1, PACKETS);
        self.segment_size = segment_size;
        self.begin = self.end;
        (self.end + capacity * segment_size <= self.memory.len()).then_some(capacity)
    }

    fn room(&mut self) -> &mut [u8] {
        self.memory.get_mut(self.end..self.end + self.segment_size).unwrap_or_default()
    }

    fn push(&mut self, len: usize) {
        self.end += len;
    }

    fn packet(&mut self, index: usize) -> &mut [u8] {
        let begin = self.begin + index * self.segment_size;
        self.memory.get_mut(begin..(begin + self.segment_size).min(self.end)).unwrap_or_default()
    }

    fn end(&mut self) {
        self.done.push((self.begin, self.end, self.segment_size));
    }
}
