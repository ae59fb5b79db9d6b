//! The settings of an endpoint, and how it is put together.

use crate::alarm::Alarm;
use crate::app::Application;
use crate::calls::Calls;
use crate::config::ServerConfig;
use crate::driver::{self, Engine, ManualDriver};
use crate::handshakes::{HandshakeStep, Steps};
use crate::hub::Hub;
use datapath::Port;
use ports::{AnyPort, DataPath};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use transport::{EndpointConfig, IncomingPolicy, RetryPolicy};
use worker::Worker;

/// Datagrams of early data that wait for the Initial packet which they have overtaken, at most.
const HELD_DATAGRAMS: usize = 64;

/// Who owns the thread that drives an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Driver {
    /// A thread of its own, which sleeps in poll(2). Handles may be used from any thread and any runtime.
    #[default]
    Thread,
    /// A task on the tokio runtime in which the endpoint is built. Meant for current-thread runtimes: tasks and driver share the
    /// thread, and no call of a handle crosses threads. A task that blocks the thread holds up the connections. When the
    /// runtime ends, so do the connections.
    #[cfg(feature = "tokio")]
    Current,
}

/// When clients must prove their address before the handshake. Source: RFC 9000 §8.1.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retry {
    /// While more than 100 handshakes are under way.
    #[default]
    UnderLoad,
    /// Always: it costs a round trip.
    Always,
    /// Never.
    Never,
}

/// Settings of an [`crate::Endpoint`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// use quic::{DataPath, Endpoint};
/// let endpoint = Endpoint::builder(([127, 0, 0, 1], 0).into()).data_path(DataPath::mmsg()).build()?;
/// assert_ne!(endpoint.local_addr()?.port(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is opened before `build`"]
pub struct EndpointBuilder {
    address: SocketAddr,
    server: Option<ServerConfig>,
    data_path: DataPath,
    driver: Driver,
    steps: Steps,
    transport: EndpointConfig,
}

impl EndpointBuilder {
    pub(crate) fn new(address: SocketAddr) -> EndpointBuilder {
        EndpointBuilder {
            address,
            server: None,
            data_path: DataPath::default(),
            driver: Driver::default(),
            steps: Steps::default(),
            transport: EndpointConfig::default(),
        }
    }

    /// Takes connections. Default: the endpoint only opens some.
    pub fn server(mut self, config: ServerConfig) -> Self {
        if config.takes_early_data() {
            self.transport.held_datagrams = HELD_DATAGRAMS;
        }
        self.server = Some(config);
        self
    }

    /// How datagrams reach the interface. Default: [`DataPath::gso`].
    pub fn data_path(mut self, path: DataPath) -> Self {
        self.data_path = path;
        self
    }

    /// Who owns the thread. Default: [`Driver::Thread`].
    pub fn driver(mut self, driver: Driver) -> Self {
        self.driver = driver;
        self
    }

    /// What takes the steps of clients' handshakes that need a signature of a slow key, RSA for instance, which takes a millisecond. The
    /// driver calls `run` on its thread with each step; `run` has it taken on another one, soon, and does not wait. At most four
    /// steps are out at a time. Default: the driver's thread takes them, and all connections wait meanwhile. Steps with keys for
    /// ECDSA P-256 and Ed25519 are taken there in any case, since they take less time than a thread needs to begin.
    ///
    /// ```
    /// # async fn build() {
    /// use quic::Endpoint;
    /// let runtime = tokio::runtime::Handle::current();
    /// let builder = Endpoint::builder(([0, 0, 0, 0], 443).into()).slow_handshakes(move |step| {
    ///     runtime.spawn_blocking(move || step.run());
    /// });
    /// # drop(builder);
    /// # }
    /// ```
    pub fn slow_handshakes(mut self, run: impl Fn(HandshakeStep) + Send + Sync + 'static) -> Self {
        self.steps = Steps::taken_by(run);
        self
    }

    /// When clients must prove their address. Default: [`Retry::UnderLoad`].
    pub fn retry(mut self, when: Retry) -> Self {
        self.transport.retry = match when {
            Retry::UnderLoad => EndpointConfig::default().retry,
            Retry::Always => RetryPolicy::Always,
            Retry::Never => RetryPolicy::Never,
        };
        self
    }

    /// Connections of clients at a time; others are told CONNECTION_REFUSED. Default: 30,000.
    pub fn max_connections(mut self, count: usize) -> Self {
        self.transport.max_connections = count;
        self
    }

    /// Opens the socket and starts the driver.
    pub(crate) fn start(self) -> io::Result<Arc<Hub>> {
        let driver = self.driver;
        match driver {
            Driver::Thread => {
                let engine = self.engine(|port| Alarm::Port(port.waker()))?;
                let hub = Arc::clone(engine.hub());
                driver::spawn(engine).map(|()| hub)
            }
            #[cfg(feature = "tokio")]
            Driver::Current => {
                let engine = self.engine(|_| Alarm::of_task())?;
                let hub = Arc::clone(engine.hub());
                driver::spawn_task(engine).map(|()| hub)
            }
        }
    }

    /// Opens the socket, for a loop of the program's own.
    pub(crate) fn start_manual(self) -> io::Result<(Arc<Hub>, ManualDriver)> {
        let engine = self.engine(|port| Alarm::Port(port.waker()))?;
        Ok((Arc::clone(engine.hub()), ManualDriver::new(engine)))
    }

    fn engine(self, alarm: impl FnOnce(&AnyPort) -> Alarm) -> io::Result<Engine<AnyPort>> {
        let port = self.data_path.open(self.address)?;
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        let incoming = match self.server {
            Some(_) => IncomingPolicy::Accept,
            None => IncomingPolicy::Ignore,
        };
        let endpoint = transport::Endpoint::new(EndpointConfig { incoming, ..self.transport }, seed);
        let hub = Arc::new(Hub::new(Calls::new(alarm(&port)), port.local_address()));
        let server = self.server.map(|server| server.to_transport());
        let config = worker::Config { spin: self.data_path.spin_span() };
        let app = Application::new(Arc::clone(&hub));
        let worker = Worker::new(port, app, endpoint, server, config);
        Ok(Engine::new(self.steps.apart_from(worker), hub))
    }
}
