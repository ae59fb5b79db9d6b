//! A server of this library, a client that trusts it, and a relay that stands for a server behind a firewall.

use axum::Router;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tercel::client::{Builder, HttpChoice};
use tercel::quic::{Endpoint, ServerConfig};
use tercel::tls::{Identity, Roots};
use tercel::{Client, EarlyData, Running, Server};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

/// The machine may be busy; nothing here takes a second on an idle one.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A server and who trusts it.
pub(crate) struct World {
    pub(crate) server: Running,
    identity: Identity,
    certificate: Vec<u8>,
}

impl World {
    pub(crate) fn new(app: Router) -> World {
        World::with_early_data(app, EarlyData::Off)
    }

    pub(crate) fn with_early_data(app: Router, rule: EarlyData) -> World {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let certificate = made.cert.pem().into_bytes();
        let identity = Identity::from_pem(&certificate, made.signing_key.serialize_pem().as_bytes()).unwrap();
        let builder = Server::builder().listen("127.0.0.1:0".parse().unwrap());
        let server = builder.identity(identity.clone()).early_data(rule).serve(app).unwrap();
        World { server, identity, certificate }
    }

    /// An endpoint of QUIC at `port` that has the server's identity and speaks what it likes.
    pub(crate) fn endpoint(&self, port: u16) -> Endpoint {
        let config = ServerConfig::with_identity(self.identity.clone()).unwrap();
        Endpoint::server(config.alpn_protocols(&[b"h3"]).unwrap(), ([127, 0, 0, 1], port).into()).unwrap()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.server.local_addr().port())
    }

    pub(crate) fn roots(&self) -> Roots {
        Roots::Pem(self.certificate.clone())
    }

    /// Trust in this server and another one.
    pub(crate) fn roots_with(&self, other: &World) -> Roots {
        Roots::Pem([self.certificate.as_slice(), other.certificate.as_slice()].concat())
    }

    /// Trusts the server, and finds it on IPv4.
    pub(crate) fn builder(&self, http: HttpChoice) -> Builder {
        Client::builder().roots(self.roots()).http(http).family(tercel::client::Family::V4)
    }

    pub(crate) fn client(&self, http: HttpChoice) -> Client {
        self.builder(http).build().unwrap()
    }
}

/// What a relay does with datagrams to its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Udp {
    /// The port is closed.
    Closed,
    /// They are lost.
    Silent,
}

/// Forwards TCP to a server.
pub(crate) struct Relay {
    pub(crate) port: u16,
    connections: Arc<AtomicUsize>,
    _silent: Option<UdpSocket>,
}

impl Relay {
    pub(crate) async fn new(to: SocketAddr, udp: Udp) -> Relay {
        let (listener, socket) = requirements::ports::over_tcp_and_udp();
        listener.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let (port, connections) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((mut from, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    let mut to = TcpStream::connect(to).await.unwrap();
                    let _ = copy_bidirectional(&mut from, &mut to).await;
                });
            }
        });
        Relay { port, connections, _silent: (udp == Udp::Silent).then_some(socket) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port)
    }

    /// TCP connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}
