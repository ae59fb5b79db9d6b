//! `perf-serve` and `perf-get`: N bytes over one connection and one stream, nothing else.
//!
//! Raw streams speak the "perf" protocol (draft-banks-quic-performance): the client opens a stream and sends how many
//! bytes it wants, as eight bytes in network order; the server sends as many. The other choice is HTTP/3. The server
//! offers both and takes what the client's ALPN names. Both ends print a measurement when the stream is done.

use crate::usage::Stretch;
use crate::{Error, Listen, endpoint, tls};
use bytes::{Buf, Bytes};
use clap::{Args, ValueEnum};
use quinn::crypto::rustls::HandshakeData;
use std::net::SocketAddr;

const RAW: &[u8] = b"perf";
const HTTP3: &[u8] = b"h3";

/// The UDP payload of a benchmark unless told otherwise, in bytes: what fits into an Ethernet frame over IPv4.
const PAYLOAD_SIZE: u16 = 1_472;
/// Buffers lent or taken in one call.
const CHUNKS: usize = 32;

#[derive(Args)]
pub(crate) struct ServeOptions {
    #[command(flatten)]
    listen: Listen,
    #[command(flatten)]
    identity: tls::Identity,
    /// Exit after this many connections
    #[arg(long)]
    connections: Option<u64>,
}

#[derive(Args)]
pub(crate) struct GetOptions {
    /// How many bytes to ask for
    bytes: u64,
    /// The server
    #[arg(long)]
    connect: SocketAddr,
    #[arg(long, value_enum, default_value = "raw")]
    protocol: Protocol,
    /// This many connections, one after the other; those after the first resume
    #[arg(long, default_value = "1")]
    connections: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Protocol {
    Raw,
    Http3,
}

pub(crate) async fn serve(
    options: ServeOptions,
    quic: endpoint::Options,
    tls: tls::Options,
) -> Result<(), Error> {
    let quic = quic.with_payload_size(PAYLOAD_SIZE);
    let endpoint = quic.server(options.listen.listen, tls.server(&options.identity, &[RAW, HTTP3])?)?;
    options.listen.announce(endpoint.local_addr()?)?;
    let mut left = options.connections;
    while left != Some(0) {
        let Some(incoming) = endpoint.accept().await else { break };
        // One at a time: a benchmark has only one.
        match serve_connection(incoming).await {
            Ok(report) => println!("{report}"),
            Err(error) => eprintln!("connection: {error}"),
        }
        left = left.map(|left| left - 1);
    }
    Ok(())
}

async fn serve_connection(incoming: quinn::Incoming) -> Result<serde_json::Value, Error> {
    let connection = incoming.await?;
    let handshake = connection.handshake_data().and_then(|data| data.downcast::<HandshakeData>().ok());
    let stretch = Stretch::begin();
    let bytes = match handshake.and_then(|data| data.protocol).as_deref() {
        Some(HTTP3) => serve_http3(&connection).await?,
        _ => serve_raw(&connection).await?,
    };
    Ok(stretch.report(bytes, &connection))
}

async fn serve_raw(connection: &quinn::Connection) -> Result<u64, Error> {
    let (mut send, mut receive) = connection.accept_bi().await?;
    let mut wanted = [0; 8];
    receive.read_exact(&mut wanted).await?;
    let wanted = u64::from_be_bytes(wanted);
    let mut body = site::Body::generated(0, wanted);
    while body.left() > 0 {
        let mut chunks: [Bytes; CHUNKS] = std::array::from_fn(|_| body.take());
        send.write_all_chunks(&mut chunks).await?;
    }
    send.finish()?;
    connection.closed().await;
    Ok(wanted)
}

async fn serve_http3(connection: &quinn::Connection) -> Result<u64, Error> {
    let mut http = h3::server::Connection::new(h3_quinn::Connection::new(connection.clone())).await?;
    let resolver = http.accept().await?.ok_or("the client asks for nothing")?;
    let (request, mut stream) = resolver.resolve_request().await?;
    let wanted = site::size_of(request.uri().path()).ok_or("only /bytes/N is served")?;
    stream.send_response(http::Response::builder().header("content-length", wanted).body(())?).await?;
    let mut body = site::Body::generated(0, wanted);
    while body.left() > 0 {
        stream.send_data(body.take()).await?;
    }
    stream.finish().await?;
    // An error here is the client's way to say that it is done.
    while let Ok(Some(_)) = http.accept().await {}
    connection.closed().await;
    Ok(wanted)
}

pub(crate) async fn get(
    options: GetOptions,
    quic: endpoint::Options,
    tls: tls::Options,
) -> Result<(), Error> {
    let alpn = match options.protocol {
        Protocol::Raw => RAW,
        Protocol::Http3 => HTTP3,
    };
    let quic = quic.with_payload_size(PAYLOAD_SIZE);
    let endpoint = quic.client(options.connect, tls.client(None, alpn)?)?;
    for _ in 0..options.connections {
        get_once(&options, &endpoint).await?;
    }
    Ok(())
}

async fn get_once(options: &GetOptions, endpoint: &quinn::Endpoint) -> Result<(), Error> {
    let (connection, accepted) = match endpoint.connect(options.connect, "localhost")?.into_0rtt() {
        Ok((connection, accepted)) => (connection, Some(accepted)),
        Err(connecting) => (connecting.await?, None),
    };
    let stretch = Stretch::begin();
    let received = match options.protocol {
        Protocol::Raw => get_raw(options.bytes, &connection).await?,
        Protocol::Http3 => get_http3(options.bytes, &connection).await?,
    };
    let mut report = stretch.report(received, &connection);
    if let Some(accepted) = accepted {
        report["early_data_accepted"] = accepted.await.into();
    }
    connection.close(quinn::VarInt::from_u32(0), b"done");
    endpoint.wait_idle().await;
    println!("{report}");
    if received == options.bytes {
        Ok(())
    } else {
        Err(format!("{received} of {} bytes arrived", options.bytes).into())
    }
}

async fn get_raw(bytes: u64, connection: &quinn::Connection) -> Result<u64, Error> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&bytes.to_be_bytes()).await?;
    send.finish()?;
    let mut received = 0;
    let mut chunks: [Bytes; CHUNKS] = std::array::from_fn(|_| Bytes::new());
    while let Some(count) = receive.read_chunks(&mut chunks).await? {
        received += chunks.iter().take(count).map(|chunk| chunk.len() as u64).sum::<u64>();
    }
    Ok(received)
}

async fn get_http3(bytes: u64, connection: &quinn::Connection) -> Result<u64, Error> {
    let (mut driver, mut requests) =
        h3::client::new::<_, _>(h3_quinn::Connection::new(connection.clone())).await?;
    let driving = tokio::spawn(async move { driver.wait_idle().await });
    let request = http::Request::get(format!("https://localhost/bytes/{bytes}")).body(())?;
    let mut stream = requests.send_request(request).await?;
    stream.finish().await?;
    let status = stream.recv_response().await?.status();
    if !status.is_success() {
        return Err(format!("status {status}").into());
    }
    let mut received = 0;
    while let Some(mut data) = stream.recv_data().await? {
        received += data.remaining() as u64;
        data.advance(data.remaining());
    }
    drop(requests);
    let _ = driving.await;
    Ok(received)
}
