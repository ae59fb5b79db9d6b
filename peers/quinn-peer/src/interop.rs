//! `interop`: one end of a case of the public interoperability tests, by HTTP/0.9 over QUIC or, for `http3`, by the other commands.

use crate::{Error, Listen, endpoint, get, serve, tls};
use clap::{Args, Subcommand};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const ALPN: &[u8] = b"hq-interop";
/// The exit code of a case that is not offered.
const NOT_OFFERED: i32 = 127;
/// Bytes of content after which the client updates its keys, or moves.
const CHANGE_AFTER: u64 = 256 << 10;

#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    end: End,
}

#[derive(Subcommand)]
enum End {
    Server(ServerOptions),
    Client(ClientOptions),
}

#[derive(Args)]
struct ServerOptions {
    #[arg(long)]
    case: String,
    #[command(flatten)]
    listen: Listen,
    #[command(flatten)]
    identity: tls::Identity,
    #[arg(long)]
    root: PathBuf,
}

#[derive(Args, Clone)]
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
    #[arg(long)]
    migrate_to: Option<IpAddr>,
    paths: Vec<String>,
}

/// quinn has no QUIC version 2.
const CASES: &[&str] = &[
    "handshake",
    "transfer",
    "chacha20",
    "retry",
    "resumption",
    "zerortt",
    "http3",
    "keyupdate",
    "ecn",
    "multiconnect",
    "connectionmigration",
];

pub(crate) async fn run(
    options: Options,
    mut quic: endpoint::Options,
    mut tls: tls::Options,
) -> Result<(), Error> {
    let (End::Server(ServerOptions { case, .. }) | End::Client(ClientOptions { case, .. })) = &options.end;
    if !CASES.contains(&case.as_str()) {
        std::process::exit(NOT_OFFERED);
    }
    match case.as_str() {
        "chacha20" => tls.only_chacha20(),
        "zerortt" => {
            tls.early_data = true;
            // The public condition counts all bytes in 1-RTT packets, probes for the packet size included.
            quic = quic.with_payload_size(1200);
        }
        _ => {}
    }
    match options.end {
        End::Server(server) if server.case == "http3" => {
            let options = serve::Options::of_folder(server.root, server.listen, server.identity);
            crate::until_stopped(serve::run(options, quic, tls)).await
        }
        End::Server(server) => crate::until_stopped(listen(server, quic, tls)).await,
        End::Client(client) if client.case == "http3" => {
            let ClientOptions { connect, name, cacert, output, paths, .. } = client;
            get::download(&get::Downloads { server: connect, name, cacert, output, paths }, quic, tls).await
        }
        End::Client(client) => download(Arc::new(client), quic, tls).await,
    }
}

async fn listen(options: ServerOptions, quic: endpoint::Options, tls: tls::Options) -> Result<(), Error> {
    let endpoint = quic.server(options.listen.listen, tls.server(&options.identity, &[ALPN])?)?;
    options.listen.announce(endpoint.local_addr()?)?;
    while let Some(incoming) = endpoint.accept().await {
        if options.case == "retry" && incoming.may_retry() && !incoming.remote_address_validated() {
            // Only a request that was already retried cannot be, and this one was not.
            let _ = incoming.retry();
            continue;
        }
        let Ok(connecting) = incoming.accept() else { continue };
        tokio::spawn(converse(connecting, options.root.clone()));
    }
    Ok(())
}

async fn converse(connecting: quinn::Connecting, root: PathBuf) {
    let connection = match connecting.into_0rtt() {
        Ok((connection, _)) => connection,
        Err(connecting) => match connecting.await {
            Ok(connection) => connection,
            Err(error) => return eprintln!("handshake: {error}"),
        },
    };
    while let Ok((send, recv)) = connection.accept_bi().await {
        let root = root.clone();
        tokio::spawn(async move {
            if let Err(error) = answer(send, recv, &root).await {
                eprintln!("request: {error}");
            }
        });
    }
}

async fn answer(mut send: quinn::SendStream, mut recv: quinn::RecvStream, root: &Path) -> Result<(), Error> {
    let request = String::from_utf8(recv.read_to_end(4096).await?)?;
    let path = request.trim_end().strip_prefix("GET /").ok_or("not a request")?;
    send.write_all(&tokio::fs::read(root.join(path)).await?).await?;
    send.finish()?;
    // Dropped earlier, the stream would still be delivered; its error is for the client to see.
    let _ = send.stopped().await;
    Ok(())
}

async fn download(
    options: Arc<ClientOptions>,
    quic: endpoint::Options,
    tls: tls::Options,
) -> Result<(), Error> {
    let endpoint = quic.client(options.connect, tls.client(Some(&options.cacert), ALPN)?)?;
    match options.case.as_str() {
        "multiconnect" => {
            for path in &options.paths {
                let connection = endpoint.connect(options.connect, &options.name)?.await?;
                fetch_all(&endpoint, &connection, &options, std::slice::from_ref(path)).await?;
            }
        }
        "resumption" | "zerortt" => {
            let (first, others) = options.paths.split_at(1);
            let connection = endpoint.connect(options.connect, &options.name)?.await?;
            fetch_all(&endpoint, &connection, &options, first).await?;
            let connecting = endpoint.connect(options.connect, &options.name)?;
            let connection = match (options.case.as_str(), connecting) {
                ("zerortt", connecting) => match connecting.into_0rtt() {
                    Ok((connection, _)) => connection,
                    Err(connecting) => connecting.await?,
                },
                (_, connecting) => connecting.await?,
            };
            fetch_all(&endpoint, &connection, &options, others).await?;
        }
        _ => {
            let connection = endpoint.connect(options.connect, &options.name)?.await?;
            fetch_all(&endpoint, &connection, &options, &options.paths).await?;
        }
    }
    endpoint.wait_idle().await;
    Ok(())
}

async fn fetch_all(
    endpoint: &quinn::Endpoint,
    connection: &quinn::Connection,
    options: &Arc<ClientOptions>,
    paths: &[String],
) -> Result<(), Error> {
    let received = Arc::new(AtomicU64::new(0));
    let mut fetches = Vec::new();
    for path in paths {
        let (mut send, recv) = connection.open_bi().await?;
        send.write_all(format!("GET /{path}\r\n").as_bytes()).await?;
        send.finish()?;
        let fetch = Fetch {
            endpoint: endpoint.clone(),
            connection: connection.clone(),
            options: options.clone(),
            received: received.clone(),
            path: path.clone(),
        };
        fetches.push(tokio::spawn(fetch.receive(recv)));
    }
    for fetch in fetches {
        fetch.await??;
    }
    // Tickets come behind the handshake, and the server may be a moment late with them.
    tokio::time::sleep(Duration::from_millis(if paths.len() == 1 { 100 } else { 0 })).await;
    connection.close(0_u32.into(), b"done");
    Ok(())
}

/// One download.
struct Fetch {
    endpoint: quinn::Endpoint,
    connection: quinn::Connection,
    options: Arc<ClientOptions>,
    received: Arc<AtomicU64>,
    path: String,
}

impl Fetch {
    async fn receive(self, mut recv: quinn::RecvStream) -> Result<(), Error> {
        let mut content = Vec::new();
        while let Some(chunk) = recv.read_chunk(usize::MAX, true).await? {
            content.extend_from_slice(&chunk.bytes);
            let bytes = chunk.bytes.len() as u64;
            let before = self.received.fetch_add(bytes, Ordering::Relaxed);
            if before < CHANGE_AFTER && before + bytes >= CHANGE_AFTER {
                self.change()?;
            }
        }
        let name = Path::new(&self.path).file_name().ok_or("a path without a name")?;
        Ok(std::fs::write(self.options.output.join(name), content)?)
    }

    /// What the case wants in the middle of the transfer.
    fn change(&self) -> Result<(), Error> {
        match self.options.case.as_str() {
            "keyupdate" => self.connection.force_key_update(),
            "connectionmigration" => {
                let any: IpAddr = match self.options.connect {
                    SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                    SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
                };
                let to = self.options.migrate_to.unwrap_or(any);
                self.endpoint.rebind(std::net::UdpSocket::bind((to, 0))?)?;
            }
            _ => {}
        }
        Ok(())
    }
}
