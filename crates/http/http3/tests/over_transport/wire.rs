//! A client and a server, real transports below them, and a wire that drops what it is told to drop.

use base::net::{Addresses, Ecn, Train};
use base::sink::{PacketSink, TrainPath};
use base::slab::Slab;
use base::time::{Duration, Instant};
use crypto::{ClientTls, Identity, Roots, ServerTls, TlsOptions};
use http3::{Config, Session};
use std::sync::Arc;
use transport::{
    ClientConfig, Connection, Endpoint, EndpointConfig, Route, ServerConfig, Transmitted, TransportConfig,
};
use wire::Side;

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

/// One end: transport, HTTP/3 and application.
pub(crate) struct End<M> {
    endpoint: Endpoint,
    pub(crate) transport: Option<Connection>,
    pub(crate) session: Session<M>,
}

/// Both ends and the time.
pub(crate) struct Pair<M> {
    pub(crate) now: Instant,
    pub(crate) client: End<M>,
    pub(crate) server: End<M>,
    config: ServerConfig,
    datagrams: usize,
    /// Every so-many-th datagram is lost; 0 loses none.
    pub(crate) lose_every: usize,
}

fn addresses(local: u16, peer: u16) -> Addresses {
    let at = |port| core::net::SocketAddr::from(([127, 0, 0, 1], port));
    Addresses { local: at(local), peer: at(peer) }
}

impl<M: http3::MessageSink + Default> Pair<M> {
    pub(crate) fn new(transport: TransportConfig) -> Pair<M> {
        let options = TlsOptions { alpn: vec![b"h3".to_vec()], ..TlsOptions::default() };
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let identity =
            Identity::from_pem(made.cert.pem().as_bytes(), made.signing_key.serialize_pem().as_bytes())
                .unwrap();
        let transport = Arc::new(transport);
        let config = ServerConfig {
            tls: ServerTls::new(&identity, &options).unwrap(),
            transport: Arc::clone(&transport),
        };
        let tls = ClientTls::new(&Roots::Pem(made.cert.pem().into_bytes()), &options).unwrap();
        let now = Instant::from_nanos(1 << 40);
        let end = |side, seed, config: Config| End {
            endpoint: Endpoint::new(EndpointConfig::default(), [seed; 32]),
            transport: None,
            session: Session {
                connection: http3::Connection::new(side, Arc::new(config), now),
                messages: M::default(),
            },
        };
        let mut pair = Pair {
            now,
            client: end(Side::Client, 1, Config::client()),
            server: end(Side::Server, 2, Config::server()),
            config,
            datagrams: 0,
            lose_every: 0,
        };
        let client = ClientConfig { tls, transport, token: Vec::new() };
        let handle = Slab::<()>::new().next_handle();
        let connection = pair.client.endpoint.connect(now, handle, &client, ("localhost", addresses(1, 2)));
        pair.client.transport = Some(connection.unwrap());
        pair
    }

    /// Both ends take their turn, and what they send arrives, but for what is lost.
    pub(crate) fn step(&mut self, mut acts: impl FnMut(&mut End<M>, Instant)) {
        self.now = self.now + Duration::from_millis(1);
        for datagram in self.client.send(self.now, &mut acts) {
            if self.arrives() {
                self.server.receive(self.now, datagram, Some(&self.config));
            }
        }
        self.now = self.now + Duration::from_millis(1);
        for datagram in self.server.send(self.now, &mut acts) {
            if self.arrives() {
                self.client.receive(self.now, datagram, None);
            }
        }
    }

    fn arrives(&mut self) -> bool {
        self.datagrams += 1;
        self.lose_every == 0 || !self.datagrams.is_multiple_of(self.lose_every)
    }
}

impl<M: http3::MessageSink> End<M> {
    fn send(&mut self, now: Instant, acts: &mut impl FnMut(&mut End<M>, Instant)) -> Vec<Vec<u8>> {
        let mut datagrams = Datagrams::default();
        let Some(transport) = &mut self.transport else { return Vec::new() };
        if transport.next_timeout().is_some_and(|at| at <= now) {
            transport.on_timeout(now);
        }
        self.session.on_turn(transport, now);
        acts(self, now);
        if let Some(transport) = &mut self.transport {
            while transport.transmit(now, &mut datagrams) == Transmitted::Paused {}
            self.endpoint.update(Slab::<()>::new().next_handle(), transport);
        }
        datagrams.done
    }

    fn receive(&mut self, now: Instant, mut datagram: Vec<u8>, server: Option<&ServerConfig>) {
        let handle = Slab::<()>::new().next_handle();
        let segment_size = datagram.len();
        let addresses = if server.is_some() { addresses(2, 1) } else { addresses(1, 2) };
        let train = Train { bytes: &mut datagram, segment_size, addresses, ecn: Ecn::Ect0 };
        match (self.endpoint.route(now, &train), server) {
            (Route::Incoming(incoming), Some(config)) => {
                self.transport = Some(self.endpoint.accept(now, handle, incoming, config).unwrap());
            }
            (Route::Connection(_), _) => {}
            _ => return,
        }
        self.transport.as_mut().unwrap().receive(now, train, &mut self.session);
    }
}
