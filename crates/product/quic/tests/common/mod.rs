//! Endpoints on loopback for tests.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panics")]

use quic::{
    ClientConfig, Connection, Driver, Endpoint, EndpointBuilder, Roots, ServerConfig, TransportConfig,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::cell::Cell;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// Longer than this no test waits for anything.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn server_config() -> ServerConfig {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    ServerConfig::with_single_cert(vec![CertificateDer::from(made.cert)], key).unwrap()
}

pub(crate) fn client_config() -> ClientConfig {
    ClientConfig::with_roots(Roots::Insecure).unwrap()
}

pub(crate) fn server(transport: TransportConfig) -> Endpoint {
    let mut config = server_config();
    config.transport_config(Arc::new(transport));
    server_by(config)
}

pub(crate) fn server_by(config: ServerConfig) -> Endpoint {
    build(|builder| builder.server(config))
}

/// An endpoint on loopback, with the driver of this test.
pub(crate) fn build(set: impl FnOnce(EndpointBuilder) -> EndpointBuilder) -> Endpoint {
    set(Endpoint::builder("127.0.0.1:0".parse().unwrap()).driver(DRIVER.get())).build().unwrap()
}

pub(crate) fn client(transport: TransportConfig) -> Endpoint {
    let endpoint = build(|builder| builder);
    let mut config = client_config();
    config.transport_config(Arc::new(transport));
    endpoint.set_default_client_config(config);
    endpoint
}

/// Two ends of a connection, and the endpoints that keep them going.
pub(crate) struct Pair {
    pub(crate) client: Connection,
    pub(crate) server: Connection,
    pub(crate) endpoints: (Endpoint, Endpoint),
}

pub(crate) async fn pair_with(of_client: TransportConfig, of_server: TransportConfig) -> Pair {
    let (server, client) = (server(of_server), client(of_client));
    let connecting = client.connect(server.local_addr().unwrap(), "localhost").unwrap();
    let (client_end, server_end) =
        tokio::join!(connecting, async { server.accept().await.unwrap().await.unwrap() });
    Pair { client: client_end.unwrap(), server: server_end, endpoints: (client, server) }
}

pub(crate) async fn pair() -> Pair {
    pair_with(TransportConfig::default(), TransportConfig::default()).await
}

thread_local! {
    /// What drives the endpoints of this test.
    static DRIVER: Cell<Driver> = const { Cell::new(Driver::Thread) };
}

/// Runs a test with each driver; it fails rather than hangs.
pub(crate) fn run<F: Future<Output = ()>>(test: impl Fn() -> F) {
    for driver in [Driver::Thread, Driver::Current] {
        DRIVER.set(driver);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let outcome = runtime.block_on(async { tokio::time::timeout(PATIENCE, test()).await });
        outcome.unwrap_or_else(|_| panic!("the test takes too long with {driver:?}"));
    }
}
