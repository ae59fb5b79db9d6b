//! An endpoint: where connections begin.

use crate::builder::EndpointBuilder;
use crate::config::{ClientConfig, ServerConfig};
use crate::connecting::Connecting;
use crate::driver::ManualDriver;
use crate::error::ConnectError;
use crate::facts::Facts;
use crate::hub::{Connect, EndpointPhase, Hub};
use crate::incoming::Incoming;
use crate::shared::{Guard, Shared};
use crate::stats::EndpointStats;
use crate::varint::VarInt;
use bytes::Bytes;
use core::future::poll_fn;
use rustls_pki_types::ServerName;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use wire::Side;

/// A UDP socket and all QUIC connections on it. Clones are handles of the same endpoint.
///
/// When the last handle is dropped, no connection begins any more; those that exist go on, and the driver ends after the last.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use rustls_pki_types::{CertificateDer, PrivateKeyDer};
/// # let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
/// # let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
/// # let chain = vec![CertificateDer::from(made.cert)];
/// use quic::{ClientConfig, Endpoint, Roots, ServerConfig};
/// let server = Endpoint::server(ServerConfig::with_single_cert(chain, key)?, "127.0.0.1:0".parse()?)?;
/// let address = server.local_addr()?;
/// tokio::spawn(async move {
///     let connection = server.accept().await?.await.ok()?;
///     let (mut send, mut recv) = connection.accept_bi().await.ok()?;
///     send.write_all(&recv.read_to_end(1_000).await.ok()?).await.ok()?;
///     send.finish().ok()?;
///     Some(connection.closed().await)
/// });
///
/// let client = Endpoint::client("127.0.0.1:0".parse()?)?;
/// client.set_default_client_config(ClientConfig::with_roots(Roots::Insecure)?);
/// let connection = client.connect(address, "localhost")?.await?;
/// let (mut send, mut recv) = connection.open_bi().await?;
/// send.write_all(b"hello").await?;
/// send.finish()?;
/// assert_eq!(recv.read_to_end(1_000).await?, b"hello");
/// connection.close(0_u8.into(), b"done");
/// client.wait_idle().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Endpoint {
    last: Arc<Last>,
}

/// What all handles hold.
struct Last(Arc<Hub>);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.set_phase(EndpointPhase::Abandoned);
    }
}

impl Endpoint {
    /// An endpoint that only opens connections, with a driver of the default kind. Port 0 is a free one, and an unspecified IP
    /// address all of its family; `[::]` reaches both families.
    ///
    /// # Errors
    /// The address cannot be used, or the system has no descriptors or threads left.
    pub fn client(address: SocketAddr) -> io::Result<Endpoint> {
        Endpoint::builder(address).build()
    }

    /// An endpoint that takes connections, and may open some when it has a [`ClientConfig`].
    ///
    /// # Errors
    /// As [`Endpoint::client`].
    pub fn server(config: ServerConfig, address: SocketAddr) -> io::Result<Endpoint> {
        Endpoint::builder(address).server(config).build()
    }

    /// An endpoint with other settings than the defaults.
    pub fn builder(address: SocketAddr) -> EndpointBuilder {
        EndpointBuilder::new(address)
    }

    pub(crate) fn new(hub: Arc<Hub>) -> Endpoint {
        Endpoint { last: Arc::new(Last(hub)) }
    }

    fn hub(&self) -> &Arc<Hub> {
        &self.last.0
    }

    /// What [`Endpoint::connect`] uses from now on.
    pub fn set_default_client_config(&self, config: ClientConfig) {
        self.hub().set_default_client(config);
    }

    /// Opens a connection to the server at `address`, whose certificate must be for `server_name`: a host name, or an IP
    /// address without brackets.
    ///
    /// # Errors
    /// Nothing can be sent: see [`ConnectError`]. How the handshake goes is said by the future.
    pub fn connect(&self, address: SocketAddr, server_name: &str) -> Result<Connecting, ConnectError> {
        let config = self.hub().default_client().ok_or(ConnectError::NoDefaultClientConfig)?;
        self.connect_with(config, address, server_name)
    }

    /// As [`Endpoint::connect`], with a configuration of its own.
    ///
    /// # Errors
    /// As [`Endpoint::connect`].
    pub fn connect_with(
        &self,
        config: ClientConfig,
        address: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        let hub = self.hub();
        if ServerName::try_from(server_name).is_err() {
            return Err(ConnectError::InvalidServerName(server_name.to_owned()));
        }
        let is_reached = hub.local.is_ipv6() || address.is_ipv4();
        if address.port() == 0 || address.ip().is_unspecified() || !is_reached {
            return Err(ConnectError::InvalidRemoteAddress(address));
        }
        let facts = Facts::new(address, hub.local);
        let shared = Arc::new(Shared::new(Side::Client, facts, Arc::clone(&hub.calls)));
        let guard = Arc::new(Guard(Arc::clone(&shared)));
        let early_data = config.offered_early_data(server_name, address.port());
        let connect = Connect { config, peer: address, server_name: server_name.to_owned(), shared };
        if hub.connect(connect) {
            Ok(Connecting::new(guard, address, early_data))
        } else {
            Err(ConnectError::EndpointStopping)
        }
    }

    /// The next client that connects; `None` once the endpoint is closed. Dropping the future loses none.
    pub async fn accept(&self) -> Option<Incoming> {
        poll_fn(|context| self.hub().poll_accept(context)).await.map(Incoming::new)
    }

    /// Closes all connections with this code and reason, cut to 256 bytes, and takes no others. [`Endpoint::wait_idle`] waits
    /// until the peers had the chance to hear of it. Source: RFC 9000 §10.2.
    pub fn close(&self, code: VarInt, reason: &[u8]) {
        self.hub().set_phase(EndpointPhase::Closed { code, reason: Bytes::copy_from_slice(reason) });
    }

    /// Waits until no connection has state: each keeps some for three probe timeouts after its end. Source: RFC 9000 §10.2.
    pub async fn wait_idle(&self) {
        poll_fn(|context| self.hub().poll_idle(context)).await;
    }

    /// Where the endpoint is bound: with the port that the system has chosen.
    ///
    /// # Errors
    /// None at present.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.hub().local)
    }

    /// Counts of handshakes.
    pub fn stats(&self) -> EndpointStats {
        self.hub().stats()
    }

    /// Connections that have state, closed ones included.
    pub fn open_connections(&self) -> usize {
        self.hub().connections()
    }
}

impl EndpointBuilder {
    /// Opens the socket and starts the driver.
    ///
    /// # Errors
    /// The address cannot be used, the system has no descriptors or threads left, or there is no tokio runtime for
    /// `Driver::Current`.
    pub fn build(self) -> io::Result<Endpoint> {
        self.start().map(Endpoint::new)
    }

    /// Opens the socket, and leaves it to the program to drive the endpoint: nothing is sent or received unless it calls
    /// [`ManualDriver::turn`]. The setting of [`EndpointBuilder::driver`] does not matter.
    ///
    /// # Errors
    /// As [`EndpointBuilder::build`].
    pub fn build_manual(self) -> io::Result<(Endpoint, ManualDriver)> {
        self.start_manual().map(|(hub, driver)| (Endpoint::new(hub), driver))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Endpoint").field("local", &self.hub().local).finish_non_exhaustive()
    }
}
