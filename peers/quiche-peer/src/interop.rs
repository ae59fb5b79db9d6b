//! `quiche-peer interop`: one end of a case of the public interoperability tests, by HTTP/0.9 over QUIC, in the plain manner of quiche's own
//! examples: one datagram a call. For `http3` the server of main.rs.
//!
//! Not offered, because the published crate has no way to it: key updates on a client's order, a choice of cipher suites, ECN, QUIC version 2.

mod client;
mod server;

use crate::Error;
use clap::{Parser, Subcommand};
use quiche::{Config, ConnectionId};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const ALPN: &[u8] = b"hq-interop";
const SERVER: &[&str] = &[
    "handshake",
    "transfer",
    "chacha20",
    "retry",
    "resumption",
    "zerortt",
    "http3",
    "keyupdate",
    "multiconnect",
];
const CLIENT: &[&str] =
    &["handshake", "transfer", "retry", "resumption", "zerortt", "multiconnect", "connectionmigration"];
/// Bytes of a UDP payload that is sent.
const PAYLOAD: usize = 1_350;
const WINDOW: u64 = 10_000_000;

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
    #[arg(long)]
    migrate_to: Option<IpAddr>,
    paths: Vec<String>,
}

/// Does one end's part; the process ends with 127 where that is not offered.
pub(crate) fn run(options: &Options) -> Result<(), Error> {
    let (offered, case) = match &options.end {
        End::Server(server) => (SERVER, &server.case),
        End::Client(client) => (CLIENT, &client.case),
    };
    if !offered.contains(&case.as_str()) {
        std::process::exit(127);
    }
    match &options.end {
        End::Server(server) if server.case == "http3" => {
            let text = |path: &PathBuf| path.to_string_lossy().into_owned();
            let (cert, key, root) = (text(&server.cert), text(&server.key), text(&server.root));
            let (listen, ready) = (server.listen.to_string(), text(&server.ready_file));
            let words = ["serve", "--listen", &listen, "--cert", &cert, "--key", &key, "--root", &root];
            let words = words.into_iter().chain(["--ready-file", &ready]);
            let serve = <crate::Serve as Parser>::parse_from(words);
            crate::Server::new(&serve).and_then(|mut server| server.serve())
        }
        End::Server(server) => server::run(server),
        End::Client(client) => client::run(client),
    }
}

/// What both ends agree on.
fn config(case: &str) -> Result<Config, Error> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(&[ALPN])?;
    config.set_max_idle_timeout(60_000);
    config.set_max_recv_udp_payload_size(1_500);
    config.set_max_send_udp_payload_size(PAYLOAD);
    config.set_initial_max_data(WINDOW);
    config.set_initial_max_stream_data_bidi_local(WINDOW);
    config.set_initial_max_stream_data_bidi_remote(WINDOW);
    config.set_initial_max_streams_bidi(100);
    config.set_active_connection_id_limit(4);
    config.enable_pacing(false);
    config.log_keys();
    if case == "zerortt" {
        config.enable_early_data();
    }
    Ok(config)
}

/// Where secrets go.
fn key_log() -> Option<File> {
    let path = std::env::var_os("SSLKEYLOGFILE")?;
    OpenOptions::new().create(true).append(true).open(path).ok()
}

/// A connection ID that no other has.
fn fresh_id() -> Result<ConnectionId<'static>, Error> {
    use std::io::Read as _;
    let mut bytes = vec![0; crate::ID_LENGTH];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(ConnectionId::from_vec(bytes))
}

/// Waits for a datagram until a time; `None` when that has come.
fn receive(
    socket: &UdpSocket,
    buffer: &mut [u8],
    until: Option<Instant>,
) -> Result<Option<(usize, SocketAddr)>, Error> {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    // Zero would mean forever.
    socket.set_read_timeout(Some(
        left.unwrap_or(Duration::from_secs(1)).clamp(Duration::from_micros(1), Duration::from_secs(1)),
    ))?;
    receive_now(socket, buffer)
}

/// The next datagram, if there is one within the socket's time.
fn receive_now(socket: &UdpSocket, buffer: &mut [u8]) -> Result<Option<(usize, SocketAddr)>, Error> {
    match socket.recv_from(buffer) {
        Ok(received) => Ok(Some(received)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(None),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(None),
        Err(error) => Err(error.into()),
    }
}
