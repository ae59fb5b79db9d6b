//! How fast one stream is: a server and a client over loopback, each on a thread with a current-thread runtime. The protocol is
//! that of draft-banks-quic-performance: the client sends how many bytes it wants, as eight bytes in network order.
//!
//! ```text
//! cargo run --release --example speed -- 2000000000 current 1472
//! ```

use bytes::Bytes;
use quic::{ClientConfig, Driver, Endpoint, Roots, ServerConfig, TransportConfig};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Bytes that the server hands over at a time.
const CHUNK: usize = 64 * 1024;

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let bytes = arguments.next().map_or(Ok(1_000_000_000), |text| text.parse())?;
    let driver = match arguments.next().as_deref() {
        None | Some("thread") => Driver::Thread,
        Some("current") => Driver::Current,
        Some(other) => return Err(format!("thread or current, not {other}").into()),
    };
    let payload = arguments.next().map_or(Ok(1_472), |text| text.parse())?;
    let took = run(bytes, driver, payload)?;
    let rate = bytes as f64 * 8.0 / took.as_secs_f64() / 1e9;
    println!("{bytes} bytes in {:.3} s: {rate:.2} Gbit/s", took.as_secs_f64());
    Ok(())
}

/// Downloads so many bytes in datagrams of so many bytes of UDP payload. Returns the time from the request to the last byte.
pub(crate) fn run(bytes: u64, driver: Driver, payload: u16) -> Result<Duration, Error> {
    let (announce, announced) = mpsc::channel();
    let server = std::thread::spawn(move || runtime()?.block_on(serve(&announce, driver, payload)));
    let address = announced.recv()?;
    let took = runtime()?.block_on(download(address, bytes, driver, payload))?;
    server.join().map_err(|_| "the server has panicked")??;
    Ok(took)
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn transport(payload: u16) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_mtu(payload);
    Arc::new(transport)
}

async fn serve(announce: &mpsc::Sender<SocketAddr>, driver: Driver, payload: u16) -> Result<(), Error> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let config = ServerConfig::with_single_cert(vec![CertificateDer::from(made.cert)], key)?;
    let mut config = config.alpn_protocols(&[b"perf"])?;
    config.transport_config(transport(payload));
    let endpoint = Endpoint::builder("127.0.0.1:0".parse()?).server(config).driver(driver).build()?;
    announce.send(endpoint.local_addr()?)?;
    let connection = endpoint.accept().await.ok_or("no client")?.await?;
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

#[expect(clippy::disallowed_methods, reason = "a program that measures reads the clock")]
async fn download(address: SocketAddr, bytes: u64, driver: Driver, payload: u16) -> Result<Duration, Error> {
    let endpoint = Endpoint::builder("127.0.0.1:0".parse()?).driver(driver).build()?;
    let mut config = ClientConfig::with_roots(Roots::Insecure)?.alpn_protocols(&[b"perf"])?;
    config.transport_config(transport(payload));
    let connection = endpoint.connect_with(config, address, "localhost")?.await?;
    let (mut send, mut recv) = connection.open_bi().await?;
    let began = Instant::now();
    send.write_all(&bytes.to_be_bytes()).await?;
    send.finish()?;
    let mut received = 0;
    while let Some(chunk) = recv.read_chunk(usize::MAX).await? {
        received += chunk.len() as u64;
    }
    let took = began.elapsed();
    connection.close(0_u8.into(), b"done");
    endpoint.wait_idle().await;
    if received == bytes { Ok(took) } else { Err(format!("{received} of {bytes} bytes").into()) }
}
