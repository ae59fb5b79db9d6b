//! `interop`: one end of a case of the public interoperability tests, by HTTP/0.9 over QUIC; for `http3` the server of main.rs.
//!
//! Not offered, because the published crate has no way to it: resumption and 0-RTT, key updates and migration on a client's order, a choice of
//! cipher suites at the client, a client of HTTP/3, QUIC version 2.

use crate::Error;
use bytes::Bytes;
use clap::{Parser, Subcommand};
use s2n_quic::client::{Client, Connect};
use s2n_quic::provider::endpoint_limits::Default as Limits;
use s2n_quic::provider::tls::default as tls;
use s2n_quic::stream::{BidirectionalStream, ReceiveStream, SendStream};
use s2n_quic::{Connection, Server};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const ALPN: &[&[u8]] = &[b"hq-interop"];
const SERVER: &[&str] =
    &["handshake", "transfer", "chacha20", "retry", "http3", "keyupdate", "ecn", "multiconnect"];
const CLIENT: &[&str] = &["handshake", "transfer", "retry", "ecn", "multiconnect"];

/// The command line.
#[derive(Parser)]
pub(crate) struct Options {
    #[command(subcommand)]
    end: End,
}

#[derive(Subcommand)]
enum End {
    Server(ServerOptions),
    Client(ClientOptions),
}

#[derive(Parser)]
struct ServerOptions {
    #[arg(long)]
    case: String,
    #[arg(long)]
    listen: SocketAddr,
    #[arg(long)]
    cert: PathBuf,
    #[arg(long)]
    key: PathBuf,
    #[arg(long)]
    root: PathBuf,
    #[arg(long)]
    ready_file: PathBuf,
}

#[derive(Parser)]
struct ClientOptions {
    #[arg(long)]
    case: String,
    #[arg(long)]
    connect: SocketAddr,
    #[arg(long)]
    name: String,
    #[arg(long)]
    cacert: PathBuf,
    #[arg(long)]
    output: PathBuf,
    /// Not used: the crate's client does not move
    #[arg(long)]
    migrate_to: Option<IpAddr>,
    paths: Vec<String>,
}

/// Does one end's part; the process ends with 127 where that is not offered.
pub(crate) async fn run(options: Options) -> Result<(), Error> {
    let (offered, case) = match &options.end {
        End::Server(server) => (SERVER, &server.case),
        End::Client(client) => (CLIENT, &client.case),
    };
    if !offered.contains(&case.as_str()) {
        std::process::exit(127);
    }
    match options.end {
        End::Server(server) if server.case == "http3" => {
            let ServerOptions { listen, cert, key, root, ready_file, .. } = server;
            std::fs::write(&ready_file, "{}")?;
            let (listen, text) = (listen.to_string(), |path: PathBuf| path.to_string_lossy().into_owned());
            let (cert, key, root) = (text(cert), text(key), text(root));
            let words = ["serve", "--listen", &listen, "--cert", &cert, "--key", &key, "--root", &root];
            crate::serve(&<site::Options as Parser>::parse_from(words)).await
        }
        End::Server(server) => serve(server).await,
        End::Client(client) => download(Arc::new(client)).await,
    }
}

async fn serve(options: ServerOptions) -> Result<(), Error> {
    let tls = tls::Server::builder()
        .with_certificate(options.cert.as_path(), options.key.as_path())?
        .with_application_protocols(ALPN.iter())?
        .with_key_logging()?
        .build()?;
    // Above the limit the server answers by Retry.
    let limit = if options.case == "retry" { 0 } else { 100 };
    let limits = Limits::builder().with_inflight_handshake_limit(limit)?.build()?;
    let mut server =
        Server::builder().with_tls(tls)?.with_endpoint_limits(limits)?.with_io(options.listen)?.start()?;
    let unfinished = options.ready_file.with_extension("unfinished");
    std::fs::write(&unfinished, format!("{{\"port\":{}}}", options.listen.port()))?;
    std::fs::rename(unfinished, &options.ready_file)?;
    let root: Arc<Path> = options.root.into();
    while let Some(connection) = server.accept().await {
        tokio::spawn(converse(connection, root.clone()));
    }
    Ok(())
}

async fn converse(mut connection: Connection, root: Arc<Path>) {
    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
        let root = root.clone();
        tokio::spawn(async move {
            if let Err(error) = answer(stream, &root).await {
                eprintln!("request: {error}");
            }
        });
    }
}

async fn answer(stream: BidirectionalStream, root: &Path) -> Result<(), Error> {
    let (mut receive, mut send): (ReceiveStream, SendStream) = stream.split();
    let mut request = Vec::new();
    while let Some(piece) = receive.receive().await? {
        request.extend_from_slice(&piece);
    }
    let request = String::from_utf8(request)?;
    let path = request.trim_end().strip_prefix("GET /").ok_or("not a request")?;
    send.send(Bytes::from(std::fs::read(root.join(path))?)).await?;
    send.finish()?;
    Ok(())
}

async fn download(options: Arc<ClientOptions>) -> Result<(), Error> {
    let tls = tls::Client::builder()
        .with_certificate(options.cacert.as_path())?
        .with_application_protocols(ALPN.iter())?
        .with_key_logging()?
        .build()?;
    let any = if options.connect.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let client = Client::builder().with_tls(tls)?.with_io(any)?.start()?;
    let all = options.paths.as_slice();
    let size = if options.case == "multiconnect" { 1 } else { all.len() };
    for paths in all.chunks(size.max(1)) {
        let connect = Connect::new(options.connect).with_server_name(options.name.as_str());
        let mut connection = client.connect(connect).await?;
        let mut fetches = Vec::new();
        for path in paths {
            let stream = connection.open_bidirectional_stream().await?;
            fetches.push(tokio::spawn(fetch(stream, options.clone(), path.clone())));
        }
        for fetch in fetches {
            fetch.await??;
        }
        connection.close(0_u32.into());
    }
    // What is left to send, the close included.
    let mut client = client;
    client.wait_idle().await?;
    Ok(())
}

async fn fetch(stream: BidirectionalStream, options: Arc<ClientOptions>, path: String) -> Result<(), Error> {
    let (mut receive, mut send) = stream.split();
    send.send(Bytes::from(format!("GET /{path}\r\n"))).await?;
    send.finish()?;
    let mut content = Vec::new();
    while let Some(piece) = receive.receive().await? {
        content.extend_from_slice(&piece);
    }
    let name = Path::new(&path).file_name().ok_or("a path without a name")?;
    Ok(std::fs::write(options.output.join(name), content)?)
}
