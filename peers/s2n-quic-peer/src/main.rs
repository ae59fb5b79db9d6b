//! An HTTP/3 server on the published s2n-quic and h3.
//!
//! Settings, by s2n-quic's documentation: GSO and GRO are on by default; `initial_mtu`, `base_mtu` and `max_mtu` may be raised
//! where the path is known; large socket buffers, and a send buffer per stream that never limits. The runtime has one thread,
//! since each server of a comparison has one core. TLS is s2n-tls and congestion control is CUBIC: its defaults.
//!
//! s2n-quic's own adapter to h3 is not published as a crate, so `adapter` here is a small one.

mod adapter;
mod interop;

use s2n_quic::Server;
use s2n_quic::provider::io::tokio::Builder as Io;
use s2n_quic::provider::limits::Limits;
use site::{Content, Options};
use std::process::ExitCode;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// What s2n-quic keeps of each stream until it is acknowledged, in bytes.
const SEND_BUFFER: u32 = 1 << 20;
/// More than any client here opens.
const STREAMS: u64 = 1_000;
/// s2n-quic counts the headers of IPv4 and UDP into a packet's size.
const HEADERS: u16 = 28;

fn main() -> ExitCode {
    let is_interop = std::env::args_os().nth(1).is_some_and(|first| first == "interop");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::from);
    let outcome = if is_interop {
        let options = <interop::Options as clap::Parser>::parse_from(std::env::args_os().skip(1));
        runtime.and_then(|runtime| runtime.block_on(interop::run(options)))
    } else {
        let options = <Options as clap::Parser>::parse();
        runtime.and_then(|runtime| runtime.block_on(serve(&options)))
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("s2n-quic-peer: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(options: &Options) -> Result<(), Error> {
    let content = Content::load(options)?;
    let mtu = options.payload_size + HEADERS;
    let io = Io::default()
        .with_receive_address(options.listen)?
        .with_send_buffer_size(site::SOCKET_BUFFER)?
        .with_recv_buffer_size(site::SOCKET_BUFFER)?
        .with_max_mtu(mtu)?
        .with_initial_mtu(mtu)?
        .with_base_mtu(mtu)?
        .build()?;
    let limits = Limits::new()
        .with_max_send_buffer_size(SEND_BUFFER)?
        .with_max_open_remote_bidirectional_streams(STREAMS)?;
    // More handshakes under way than this, and clients are sent a Retry.
    let mut endpoint = s2n_quic::provider::endpoint_limits::Default::builder();
    if options.retry {
        endpoint = endpoint.with_inflight_handshake_limit(0)?;
    }
    if options.early_data {
        return Err("s2n-quic takes no early data".into());
    }
    let mut server = Server::builder()
        .with_tls((options.cert.as_path(), options.key.as_path()))?
        .with_io(io)?
        .with_limits(limits)?
        .with_endpoint_limits(endpoint.build()?)?
        .start()?;
    site::announce(server.local_addr()?, &["s2n-quic", "h3"]);
    while let Some(connection) = server.accept().await {
        let content = content.clone();
        // How a connection ends is for its client to tell.
        tokio::spawn(
            async move { site::http3::converse(adapter::Quic::new(connection), content).await.ok() },
        );
    }
    Ok(())
}
