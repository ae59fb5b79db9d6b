//! A scenario: two short lists of nodes, a seed, and how the two ends are set up. What is transferred is the application's.

use crate::host::HostOptions;
use crate::lab::Simulation;
use crate::network::{HostId, Network};
use crate::port::{PortOptions, VirtualPort};
use crate::protection::Protection;
use crate::tls::{self, TlsChoice};
use base::rng::Rng;
use base::time::Duration;
use core::net::{IpAddr, SocketAddr};
use link::Node;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use transport::{
    ClientConfig, Endpoint, EndpointConfig, IncomingPolicy, RetryPolicy, ServerConfig, TransportConfig,
};
use worker::{App, Worker};

/// The family of the addresses in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Everything that decides a run besides the applications.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// All chance comes from here.
    pub seed: u64,
    /// What happens on the way from client to server.
    pub to_server: Vec<Node>,
    /// What happens on the way from server to client.
    pub to_client: Vec<Node>,
    /// What is done against losses beside what the ends do, both ways.
    pub protection: Option<Protection>,
    /// The addresses.
    pub family: Family,
    /// Cipher suites, key exchange, chain.
    pub tls: TlsChoice,
    /// The client's transport.
    pub client: TransportConfig,
    /// The server's transport.
    pub server: TransportConfig,
    /// When the server demands a Retry.
    pub retry: RetryPolicy,
    /// How both ports behave.
    pub port: PortOptions,
    /// How both hosts are attached.
    pub host: HostOptions,
    /// How often the client of raw transfers moves.
    pub moves: Moves,
    /// What the traces of all connections keep, if there are any. They change nothing of what is sent.
    pub traced: Option<qlog::Keep>,
    /// Virtual time after which the run has failed.
    pub limit: Duration,
}

/// Moves of a client from one of its addresses to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// How many.
    pub times: u32,
    /// From the handshake to the first, and from each to the next.
    pub every: Duration,
}

impl Scenario {
    /// The network of the QUIC interop runner: 15 ms each way, 10 Mbit/s, room for 25 packets.
    pub fn interop(seed: u64) -> Scenario {
        let nodes = || {
            vec![
                Node::Rate { bits_per_second: 10_000_000, queue_bytes: 25 * 1_500 },
                Node::Delay(Duration::from_millis(15)),
            ]
        };
        Scenario {
            seed,
            to_server: nodes(),
            to_client: nodes(),
            protection: None,
            family: Family::V4,
            tls: TlsChoice::default(),
            client: TransportConfig::default(),
            server: TransportConfig::default(),
            retry: RetryPolicy::Never,
            port: PortOptions::default(),
            host: HostOptions { coalesce: Duration::from_micros(20) },
            moves: Moves::default(),
            traced: None,
            limit: Duration::from_secs(60),
        }
    }

    /// The same with one more node at the sender's edge of each direction.
    #[must_use]
    pub fn both_ways(mut self, node: &Node) -> Scenario {
        self.to_server.insert(0, node.clone());
        self.to_client.insert(0, node.clone());
        self
    }

    /// Builds the network, the two hosts, and a worker on each.
    ///
    /// # Errors
    /// When the settings cannot work, in words.
    pub fn build<S: App, C: App>(&self, server: S, client: C) -> Result<Simulation<S, C>, String> {
        let [server_address, client_address] = self.addresses();
        let mut network = Network::new(self.seed);
        let server_host = network.add_host(server_address, self.host);
        let client_host = network.add_host(client_address, self.host);
        for address in &self.client_addresses()[1..] {
            network.add_address(client_host, *address);
        }
        network.add_address(server_host, self.preferred_address());
        network.add_link(client_host, server_host, self.to_server.clone());
        network.add_link(server_host, client_host, self.to_client.clone());
        if let Some(plan) = self.protection {
            network.protect(client_host, server_host, plan);
            network.protect(server_host, client_host, plan);
        }
        let mut rng = network.fork_rng();
        let network = Rc::new(RefCell::new(network));
        let server_worker = self.server_worker(&network, server_host, server, rng.bytes())?;
        let asking = EndpointConfig { incoming: IncomingPolicy::Ignore, ..EndpointConfig::default() };
        let (_, client_tls) = tls::configure(&self.tls).map_err(|error| error.to_string())?;
        let client_config =
            ClientConfig { tls: client_tls, transport: checked(&self.client)?, token: Vec::new() };
        let port = VirtualPort::new(&network, client_host, self.port);
        let endpoint = Endpoint::new(asking, rng.bytes());
        let client_worker = Worker::new(port, client, endpoint, None, worker::Config::default());
        Ok(Simulation::new(
            network,
            (server_host, server_worker),
            (client_host, client_worker),
            client_config,
        ))
    }

    /// The server process dies without a word and another starts in its place, which knows no connection but can reset
    /// those of the earlier one.
    ///
    /// # Errors
    /// When the settings cannot work, in words.
    pub fn restart_server<S: App, C: App>(&self, lab: &mut Simulation<S, C>, app: S) -> Result<(), String> {
        let seed = lab.network().borrow_mut().fork_rng().bytes();
        lab.replace_server(|network, host| self.server_worker(network, host, app, seed))
    }

    fn server_worker<S: App>(
        &self,
        network: &Rc<RefCell<Network>>,
        host: HostId,
        app: S,
        seed: [u8; 32],
    ) -> Result<Worker<VirtualPort, S>, String> {
        let (tls, _) = tls::configure(&self.tls).map_err(|error| error.to_string())?;
        let config = ServerConfig { tls, transport: checked(&self.server)? };
        let endpoint = EndpointConfig {
            retry: self.retry,
            // A client that is cut off after the Retry may take as long as its whole handshake may.
            retry_token_lifetime: self.server.handshake_timeout,
            reset_key: Some([0x72; 32]),
            held_datagrams: 16,
            ..EndpointConfig::default()
        };
        let port = VirtualPort::new(network, host, self.port);
        Ok(Worker::new(port, app, Endpoint::new(endpoint, seed), Some(config), worker::Config::default()))
    }

    fn addresses(&self) -> [SocketAddr; 2] {
        match self.family {
            Family::V4 => [([192, 0, 2, 1], 443).into(), ([198, 51, 100, 1], 50_000).into()],
            Family::V6 => {
                let host = |net, port| ([0x2001, 0xdb8, 0, 0, 0, 0, net, 1], port).into();
                [host(1, 443), host(2, 50_000)]
            }
        }
    }

    /// All addresses of the client: the first is the one that it begins with.
    pub fn client_addresses(&self) -> [SocketAddr; 3] {
        let [_, client] = self.addresses();
        [client, beside(client, 201), beside(client, 202)]
    }

    /// An address at which the server may be reached as well, and prefer to be.
    pub fn preferred_address(&self) -> SocketAddr {
        let [server, _] = self.addresses();
        beside(server, 200)
    }

    /// Randomness for the applications of the run.
    pub fn app_rng(&self) -> Rng {
        Rng::from_u64(self.seed ^ 0x6170_7073)
    }
}

/// Another address of the same network, and another port.
fn beside(address: SocketAddr, number: u8) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) => {
            let [a, b, c, _] = ip.octets();
            IpAddr::from([a, b, c, number])
        }
        IpAddr::V6(ip) => {
            let mut segments = ip.segments();
            segments[7] = u16::from(number);
            IpAddr::from(segments)
        }
    };
    SocketAddr::new(ip, address.port() + u16::from(number))
}

fn checked(config: &TransportConfig) -> Result<Arc<TransportConfig>, String> {
    config.clone().build().map(Arc::new).map_err(|error| error.to_string())
}
