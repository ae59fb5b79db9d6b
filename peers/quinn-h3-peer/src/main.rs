//! An HTTP/3 server on the published quinn and h3.
//!
//! Settings, by quinn's documentation: GSO and GRO are on by default; `initial_mtu` and `min_mtu` may be raised where the path
//! is known, which spares the search; `send_window` bounds what is kept until it is acknowledged, and is raised so that it
//! never limits; large socket buffers. The runtime has one thread, since each server of a comparison has one core. ring
//! encrypts: quinn's default. Congestion control is CUBIC: quinn's default too.
//!
//! h3 lends content to h3-quinn as slices, which quinn copies once.

use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Connecting, Connection, Endpoint, EndpointConfig, TransportConfig, VarInt};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use site::{Content, Options};
use std::process::ExitCode;
use std::sync::Arc;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Far more than the product of any bandwidth and delay here.
const SEND_WINDOW: u64 = 64 << 20;
/// More than any client here opens.
const STREAMS: u32 = 1_000;
/// Sessions that are kept for clients that resume.
const SESSIONS: usize = 100_000;

fn main() -> ExitCode {
    let options = <Options as clap::Parser>::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map_err(Error::from).and_then(|runtime| runtime.block_on(serve(&options))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quinn-h3-peer: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(options: &Options) -> Result<(), Error> {
    let content = Content::load(options)?;
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(options.payload_size)
        .min_mtu(options.payload_size)
        .mtu_discovery_config(None)
        .send_window(SEND_WINDOW)
        .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS));
    let mut server = quinn::ServerConfig::with_crypto(Arc::new(tls(options)?));
    server.transport_config(Arc::new(transport));
    let socket = site::bind(options.listen)?;
    let runtime = Arc::new(quinn::TokioRuntime);
    let endpoint = Endpoint::new(EndpointConfig::default(), Some(server), socket, runtime)?;
    site::announce(endpoint.local_addr()?, &["quinn", "h3", "h3-quinn"]);
    let (retries, takes_early_data) = (options.retry, options.early_data);
    while let Some(incoming) = endpoint.accept().await {
        if retries && !incoming.remote_address_validated() {
            // Its client comes again, with a token.
            let _ = incoming.retry();
            continue;
        }
        let content = content.clone();
        // How a connection ends is for its client to tell.
        tokio::spawn(async move {
            let connection = established(incoming.accept().ok()?, takes_early_data).await?;
            site::http3::converse(h3_quinn::Connection::new(connection), content).await.ok()
        });
    }
    Ok(())
}

/// The connection: at once where requests may come early, else when its handshake is complete.
async fn established(connecting: Connecting, takes_early_data: bool) -> Option<Connection> {
    if !takes_early_data {
        return connecting.await.ok();
    }
    match connecting.into_0rtt() {
        Ok((connection, _)) => Some(connection),
        Err(connecting) => connecting.await.ok(),
    }
}

fn tls(options: &Options) -> Result<QuicServerConfig, Error> {
    let chain = CertificateDer::pem_file_iter(&options.cert)
        .and_then(Iterator::collect)
        .map_err(|error| format!("{}: {error}", options.cert.display()))?;
    let key = PrivateKeyDer::from_pem_file(&options.key)
        .map_err(|error| format!("{}: {error}", options.key.display()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h3".to_vec()];
    // So that no session is forgotten while its client may still come back.
    config.session_storage = rustls::server::ServerSessionMemoryCache::new(SESSIONS);
    if options.early_data {
        config.max_early_data_size = u32::MAX;
    }
    Ok(QuicServerConfig::try_from(config)?)
}
