//! `tquic-peer interop`: one end of a case of the public interoperability tests, by HTTP/0.9 over QUIC.
//!
//! tquic brings no I/O: an endpoint takes datagrams, calls a handler, and hands packets to a sender. This program is one thread that
//! does so until its work is over.
//!
//! Not offered, because the published crate has no way to it: migration and key updates on a client's order, a choice of cipher suites, ECN,
//! QUIC version 2. Its multipath is that of draft-ietf-quic-multipath-05.

mod client;
mod server;
mod socket;

use clap::{Parser, Subcommand};
use std::fs::{File, OpenOptions};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use tquic::{Config, TlsConfig};

type Error = Box<dyn std::error::Error + Send + Sync>;

const ALPN: &[u8] = b"hq-interop";
const SERVER: &[&str] =
    &["handshake", "transfer", "chacha20", "retry", "resumption", "zerortt", "keyupdate", "multiconnect"];
const CLIENT: &[&str] = &["handshake", "transfer", "retry", "resumption", "zerortt", "multiconnect"];
/// Bytes of a UDP payload that is sent.
const PAYLOAD: usize = 1_350;
const WINDOW: u64 = 10_000_000;

/// The command line.
#[derive(Parser)]
#[command(version, about = "An end of the public interoperability cases on the published tquic")]
enum Command {
    /// One end of a case
    Interop {
        #[command(subcommand)]
        end: End,
    },
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

fn main() -> ExitCode {
    let Command::Interop { end } = Command::parse();
    let (offered, case) = match &end {
        End::Server(server) => (SERVER, &server.case),
        End::Client(client) => (CLIENT, &client.case),
    };
    if !offered.contains(&case.as_str()) {
        return ExitCode::from(127);
    }
    let outcome = match &end {
        End::Server(options) => server::run(options),
        End::Client(options) => client::run(options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tquic-peer: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What both ends agree on.
fn config(case: &str, tls: TlsConfig) -> Result<Config, Error> {
    let mut config = Config::new()?;
    config.set_max_idle_timeout(60_000);
    config.set_recv_udp_payload_size(1_500);
    config.set_send_udp_payload_size(PAYLOAD);
    // Probes are packets, which some cases count.
    config.enable_dplpmtud(false);
    config.set_initial_max_data(WINDOW);
    config.set_initial_max_stream_data_bidi_local(WINDOW);
    config.set_initial_max_stream_data_bidi_remote(WINDOW);
    config.set_initial_max_streams_bidi(100);
    config.set_active_connection_id_limit(4);
    config.enable_retry(case == "retry");
    // 30 % of the packets are lost there.
    config.set_max_handshake_timeout(60_000);
    config.set_tls_config(tls);
    Ok(config)
}

/// Where secrets go.
fn key_log() -> Option<File> {
    let path = std::env::var_os("SSLKEYLOGFILE")?;
    OpenOptions::new().create(true).append(true).open(path).ok()
}
