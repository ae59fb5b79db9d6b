//! The processes that are this program again: both ends of a stream by the crate `quic`.
//!
//! The stream speaks draft-banks-quic-performance: the client sends how many bytes it wants, as eight bytes in network order.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use quic::{ClientConfig, Driver, Endpoint, Roots, ServerConfig, TransportConfig};
use serde::{Deserialize, Serialize};

/// Bytes that the sender hands over at a time.
const CHUNK: usize = 64 * 1024;
/// The application protocol of draft-banks-quic-performance.
const PROTOCOL: &[u8] = b"perf";

/// What owns the endpoint of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Way {
    /// A thread.
    Thread,
    /// A task.
    Task,
}

/// What a child does.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Role {
    /// Sends as much as the first connection asks for.
    StreamServer { way: Way, payload: u16 },
    /// Asks for this many bytes, and prints how long they took.
    StreamClient { way: Way, payload: u16, port: u16, bytes: u64 },
}

/// The whole life of a child process that [`super::run`] has started with `role`.
///
/// # Errors
/// The message says what failed.
pub fn child(role: &str) -> io::Result<()> {
    match serde_json::from_str(role)? {
        Role::StreamServer { way, payload } => block_on(send(way, payload)),
        Role::StreamClient { way, payload, port, bytes } => {
            let server = (Ipv4Addr::LOCALHOST, port).into();
            let wall_s = block_on(receive((way, payload), server, bytes))?;
            println!("{}", serde_json::json!({"bytes": bytes, "wall_s": wall_s}));
            Ok(())
        }
    }
}

fn announce(address: SocketAddr) -> io::Result<()> {
    println!("listening on {address}");
    io::stdout().flush()
}

fn identity() -> io::Result<crypto::Identity> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).map_err(io::Error::other)?;
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    crypto::Identity::from_pem(chain.as_bytes(), key.as_bytes()).map_err(io::Error::other)
}

fn block_on<T>(
    future: impl Future<Output = Result<T, Box<dyn std::error::Error + Send + Sync>>>,
) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(future).map_err(io::Error::other)
}

fn transport(payload: u16) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_mtu(payload);
    Arc::new(transport)
}

fn endpoint(way: Way) -> quic::EndpointBuilder {
    let driver = match way {
        Way::Thread => Driver::Thread,
        Way::Task => Driver::Current,
    };
    Endpoint::builder((Ipv4Addr::LOCALHOST, 0).into()).driver(driver)
}

async fn send(way: Way, payload: u16) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut config = ServerConfig::with_identity(identity()?)?.alpn_protocols(&[PROTOCOL])?;
    config.transport_config(transport(payload));
    let endpoint = endpoint(way).server(config).build()?;
    announce(endpoint.local_addr()?)?;
    let connection = endpoint.accept().await.ok_or("the endpoint is closed")?.await?;
    let (mut send, mut recv) = connection.accept_bi().await?;
    let mut wanted = [0; 8];
    recv.read_exact(&mut wanted).await?;
    let mut left = u64::from_be_bytes(wanted);
    let chunk = Bytes::from(vec![7; CHUNK]);
    while left > 0 {
        let len = left.min(CHUNK as u64);
        send.write_chunk(chunk.slice(..len as usize)).await?;
        left -= len;
    }
    send.finish()?;
    connection.closed().await;
    endpoint.wait_idle().await;
    Ok(())
}

/// Returns the seconds from the request to the last byte.
async fn receive(
    (way, payload): (Way, u16),
    server: SocketAddr,
    bytes: u64,
) -> Result<f64, Box<dyn std::error::Error + Send + Sync>> {
    let endpoint = endpoint(way).build()?;
    let mut config = ClientConfig::with_roots(Roots::Insecure)?.alpn_protocols(&[PROTOCOL])?;
    config.transport_config(transport(payload));
    let connection = endpoint.connect_with(config, server, "localhost")?.await?;
    let (mut send, mut recv) = connection.open_bi().await?;
    let began = cpu::clock_seconds();
    send.write_all(&bytes.to_be_bytes()).await?;
    send.finish()?;
    let mut received = 0;
    while let Some(chunk) = recv.read_chunk(usize::MAX).await? {
        received += chunk.len() as u64;
    }
    let took = cpu::clock_seconds() - began;
    connection.close(0_u8.into(), b"done");
    endpoint.wait_idle().await;
    if received == bytes { Ok(took) } else { Err(format!("{received} of {bytes} bytes arrived").into()) }
}
