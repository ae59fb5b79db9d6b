//! The server's HTTP/3 and a client, real transports below them, and a wire without faults: no sockets, no clock.

use base::net::{Addresses, Ecn, Train};
use base::sink::{PacketSink, TrainPath};
use base::slab::Slab;
use base::time::{Duration, Instant};
use crypto::{ClientTls, Identity, Roots, ServerTls, TlsOptions};
use http3::Session;
use server::handler::Files;
use server::http3::{Server, State};
use server::low::Handler;
use std::sync::Arc;
use transport::{
    ClientConfig, Connection, Endpoint, EndpointConfig, Route, ServerConfig, StreamSink, TransportConfig,
};
use wire::Side;
use worker::{App as _, Next};

/// A sink that keeps datagrams.
#[derive(Default)]
struct Datagrams {
    done: Vec<Vec<u8>>,
    train: Vec<Vec<u8>>,
    room: Vec<u8>,
    size: usize,
}

impl PacketSink for Datagrams {
    fn begin(&mut self, _: TrainPath, segment_size: usize) -> Option<usize> {
        self.room.resize(65_536, 0);
        self.size = segment_size;
        Some(40)
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
        self.done.append(&mut self.train);
    }
}

/// Half the round trip.
const WAY: Duration = Duration::from_millis(5);

/// One connection of a client to a server.
pub(crate) struct World<M, H: Handler = Files> {
    pub(crate) now: Instant,
    pub(crate) client: Session<M>,
    pub(crate) client_transport: Connection,
    client_endpoint: Endpoint,
    client_config: ClientConfig,
    http3: Arc<http3::Config>,
    pub(crate) server: Server<H>,
    state: Option<State<H>>,
    server_transport: Option<Connection>,
    server_endpoint: Endpoint,
    config: ServerConfig,
}

fn addresses(local: u16, peer: u16) -> Addresses {
    let at = |port| core::net::SocketAddr::from(([127, 0, 0, 1], port));
    Addresses { local: at(local), peer: at(peer) }
}

/// A client's endpoint and a connection that it has begun.
fn begin(now: Instant, config: &ClientConfig) -> (Endpoint, Connection) {
    let mut endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
    let connection = endpoint.connect(now, handle(), config, ("localhost", addresses(1, 2))).unwrap();
    (endpoint, connection)
}

fn handle() -> base::slab::Handle {
    Slab::<()>::new().next_handle()
}

impl<M: http3::MessageSink, H: Handler> World<M, H> {
    /// A client that keeps `http3`, and its connection under way.
    pub(crate) fn new(server: Server<H>, http3: http3::Config, messages: M) -> World<M, H> {
        World::with_tls(server, http3, messages, |server, client| (server, client))
    }

    /// The same with other configurations of TLS.
    pub(crate) fn with_tls(
        server: Server<H>,
        http3: http3::Config,
        messages: M,
        tls: impl FnOnce(ServerTls, ClientTls) -> (ServerTls, ClientTls),
    ) -> World<M, H> {
        let options = TlsOptions { alpn: vec![b"h3".to_vec()], ..TlsOptions::default() };
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        let transport = Arc::new(TransportConfig::default());
        let client = ClientTls::new(&Roots::Pem(certificate.into_bytes()), &options).unwrap();
        let (server_tls, client_tls) = tls(ServerTls::new(&identity, &options).unwrap(), client);
        let config = ServerConfig { tls: server_tls, transport: Arc::clone(&transport) };
        let client_config = ClientConfig { tls: client_tls, transport, token: Vec::new() };
        let (now, http3) = (Instant::from_nanos(1 << 40), Arc::new(http3));
        let (client_endpoint, client_transport) = begin(now, &client_config);
        World {
            now,
            client_transport,
            client: Session {
                connection: http3::Connection::new(Side::Client, Arc::clone(&http3), now),
                messages,
            },
            client_endpoint,
            client_config,
            http3,
            server,
            state: None,
            server_transport: None,
            server_endpoint: Endpoint::new(EndpointConfig::default(), [2; 32]),
            config,
        }
    }

    /// The client leaves and begins another connection.
    pub(crate) fn connect_again(&mut self, messages: M) {
        (self.client_endpoint, self.client_transport) = begin(self.now, &self.client_config);
        let connection = http3::Connection::new(Side::Client, Arc::clone(&self.http3), self.now);
        self.client = Session { connection, messages };
        (self.state, self.server_transport) = (None, None);
        self.server_endpoint = Endpoint::new(EndpointConfig::default(), [2; 32]);
    }

    /// Half a round trip each way; each end takes its turns until it has no more to do at once.
    pub(crate) fn step(&mut self) {
        self.now = self.now + WAY;
        let datagrams = self.client_turn();
        datagrams.into_iter().for_each(|datagram| self.deliver(datagram));
        self.now = self.now + WAY;
        for datagram in self.server_turn() {
            let endpoint = &mut self.client_endpoint;
            receive(
                endpoint,
                &mut self.client_transport,
                &mut self.client,
                datagram,
                (addresses(1, 2), self.now),
            );
        }
    }

    /// Steps until `done`, at most a given time.
    pub(crate) fn run_until(
        &mut self,
        most: Duration,
        mut done: impl FnMut(&mut World<M, H>) -> bool,
    ) -> bool {
        let end = self.now + most;
        while !done(self) {
            if self.now >= end {
                return false;
            }
            self.step();
        }
        true
    }

    /// Both ends know each other's settings.
    pub(crate) fn connect(&mut self) {
        let is_up = |world: &mut World<M, H>| world.client.connection.peer_settings().is_some();
        assert!(self.run_until(Duration::from_secs(1), is_up));
        self.step();
        self.step();
    }

    fn client_turn(&mut self) -> Vec<Vec<u8>> {
        let mut datagrams = Datagrams::default();
        let transport = &mut self.client_transport;
        if transport.next_timeout().is_some_and(|at| at <= self.now) {
            transport.on_timeout(self.now);
        }
        self.client.on_turn(transport, self.now);
        transport.transmit(self.now, &mut datagrams);
        self.client_endpoint.update(handle(), transport);
        datagrams.done
    }

    fn server_turn(&mut self) -> Vec<Vec<u8>> {
        let mut datagrams = Datagrams::default();
        let (Some(transport), Some(state)) = (&mut self.server_transport, &mut self.state) else {
            return Vec::new();
        };
        if transport.next_timeout().is_some_and(|at| at <= self.now) {
            transport.on_timeout(self.now);
        }
        while self.server.on_turn(self.now, transport, state) == Next::Again {
            transport.transmit(self.now, &mut datagrams);
        }
        transport.transmit(self.now, &mut datagrams);
        self.server_endpoint.update(handle(), transport);
        datagrams.done
    }

    fn deliver(&mut self, mut datagram: Vec<u8>) {
        if let (Some(transport), Some(state)) = (&mut self.server_transport, &mut self.state) {
            let place = (addresses(2, 1), self.now);
            receive(&mut self.server_endpoint, transport, state, datagram, place);
            return;
        }
        let train = train(&mut datagram, addresses(2, 1));
        let Route::Incoming(incoming) = self.server_endpoint.route(self.now, &train) else { return };
        let mut transport = self.server_endpoint.accept(self.now, handle(), incoming, &self.config).unwrap();
        let mut state = self.server.on_accept(self.now, &mut transport);
        transport.receive(self.now, train, &mut state);
        (self.server_transport, self.state) = (Some(transport), Some(state));
    }
}

fn train(datagram: &mut Vec<u8>, addresses: Addresses) -> Train<'_> {
    let segment_size = datagram.len();
    Train { bytes: datagram, segment_size, addresses, ecn: Ecn::Ect0 }
}

fn receive(
    endpoint: &mut Endpoint,
    transport: &mut Connection,
    sink: &mut impl StreamSink,
    mut datagram: Vec<u8>,
    (addresses, now): (Addresses, Instant),
) {
    let train = train(&mut datagram, addresses);
    if matches!(endpoint.route(now, &train), Route::Connection(_)) {
        transport.receive(now, train, sink);
    }
}
