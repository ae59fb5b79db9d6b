//! One fetch from beginning to end, in a process of its own, with what it cost.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use crypto::{ClientTls, KeyLog, Roots, Suite, SuiteChoice, TlsOptions};
use datapath::Port as _;
use serde::{Deserialize, Serialize};
use transport::{ClientConfig, Endpoint, EndpointConfig, TransportConfig};
use udp::{BindOptions, UdpPort, Variant};
use worker::Worker;

use super::{Fetch, Outcome, State};

/// What a fetch did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Content bytes.
    pub bytes: u64,
    /// Seconds from the end of the handshake to the last byte of content.
    pub wall_s: f64,
    /// Datagrams that arrived.
    pub received_datagrams: u64,
    /// Their UDP payload in bytes.
    pub received_bytes: u64,
    /// System calls that received.
    pub receive_calls: u64,
    /// Trains that they arrived in.
    pub received_trains: u64,
    /// Datagrams that the kernel had no room for.
    pub overflowed: u64,
    /// The data path.
    pub datapath: String,
    /// Whether it merges datagrams.
    pub coalesces: bool,
}

/// Fetches `path` from `peer` with AES-128-GCM and packets of up to `packet_size` bytes, whoever the peer says it is.
///
/// # Errors
/// In words: nothing could be bound, or the content did not come.
#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
pub fn run(peer: SocketAddr, path: &str, packet_size: u16) -> Result<Report, String> {
    let suites = SuiteChoice::Only(Suite::Aes128Gcm);
    let options = TlsOptions { suites, key_log: KeyLog::Environment, ..TlsOptions::default() };
    let tls = ClientTls::new(&Roots::Insecure, &options).map_err(text)?;
    let transport = TransportConfig { max_packet_size: packet_size, ..TransportConfig::default() };
    let transport = Arc::new(transport.build().map_err(text)?);
    let client = ClientConfig { tls, transport, token: Vec::new() };
    let local = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let port = UdpPort::bind(&BindOptions::new(local, Variant::Gso)).map_err(text)?;
    // Everything random that a peer could abuse concerns servers; the keys come from the TLS library.
    let endpoint = Endpoint::new(EndpointConfig::default(), seed());
    let mut worker = Worker::new(port, Fetch::default(), endpoint, None, worker::Config::default());
    let state = State::new(peer, path, worker.now()).map_err(text)?;
    worker.connect(&client, "localhost", peer, state).map_err(text)?;
    let mut began = None;
    while worker.app_mut().outcome.is_none() {
        worker.run_turn(None).map_err(text)?;
        if began.is_none() && worker.app_mut().asked {
            began = Some(Instant::now());
        }
    }
    let wall_s = began.map_or(0.0, |began| began.elapsed().as_secs_f64());
    // The good-bye leaves.
    worker.turn().map_err(text)?;
    let rx = worker.counters().rx;
    let capabilities = worker.port().capabilities();
    match worker.app_mut().outcome.take() {
        Some(Outcome::Failed(reason)) => Err(reason),
        _ => Ok(Report {
            bytes: worker.app_mut().received,
            wall_s,
            received_datagrams: rx.datagrams,
            received_bytes: rx.bytes,
            receive_calls: rx.calls,
            received_trains: rx.trains,
            overflowed: rx.overflowed,
            datapath: capabilities.name.to_owned(),
            coalesces: capabilities.coalesces,
        }),
    }
}

/// Different for processes that run at the same time.
fn seed() -> [u8; 32] {
    let mut seed = [0x5a; 32];
    if let Some(place) = seed.first_chunk_mut() {
        *place = std::process::id().to_be_bytes();
    }
    seed
}

fn text(error: impl core::fmt::Display) -> String {
    error.to_string()
}
