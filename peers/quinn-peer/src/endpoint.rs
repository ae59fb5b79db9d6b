//! Endpoints with quinn's fastest documented settings: large windows and socket buffers, GSO and GRO (on by default), and
//! for benchmarks a fixed payload size instead of its discovery.

use crate::Error;
use clap::{Args, ValueEnum};
use quinn::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{AckFrequencyConfig, Endpoint, EndpointConfig, IdleTimeout, TransportConfig, VarInt};
use socket2::{Domain, Protocol, Socket, Type};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// What quinn announces by default as the largest payload it takes; it grows with `--payload-size`.
const DEFAULT_MAX_PAYLOAD: u16 = 1472;

#[derive(Args, Clone)]
pub(crate) struct Options {
    /// UDP payload of full packets, in bytes; without, quinn begins with 1200 and discovers more
    #[arg(long, global = true)]
    payload_size: Option<u16>,
    /// Flow-control window of a stream and of the sender's buffer, in bytes
    // Less than the socket buffer, so that a receiver that falls behind loses nothing: measured faster than larger ones.
    #[arg(long, default_value_t = 4 << 20, global = true)]
    window: u32,
    /// Buffer of the UDP socket in each direction, in bytes, which the kernel doubles; the system may cap it, and 0 leaves it
    /// at the system's default
    #[arg(long, default_value_t = 4 << 20, global = true)]
    socket_buffer: usize,
    #[arg(long, value_enum, default_value = "cubic", global = true)]
    congestion: Congestion,
    /// Ask the peer to acknowledge only every this many packets
    #[arg(long, global = true)]
    ack_every: Option<u32>,
    /// Send one datagram per system call, instead of GSO
    #[arg(long, global = true)]
    no_gso: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Congestion {
    Cubic,
    NewReno,
    Bbr,
}

impl Options {
    /// The same with a fixed payload size, unless one was given.
    pub(crate) fn with_payload_size(mut self, size: u16) -> Options {
        self.payload_size.get_or_insert(size);
        self
    }

    fn transport(&self) -> Arc<TransportConfig> {
        let mut transport = TransportConfig::default();
        if let Some(size) = self.payload_size {
            transport.initial_mtu(size).min_mtu(size).mtu_discovery_config(None);
        }
        transport
            .stream_receive_window(VarInt::from_u32(self.window))
            .receive_window(VarInt::MAX)
            .send_window(u64::from(self.window))
            .enable_segmentation_offload(!self.no_gso)
            .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(30_000))))
            .initial_rtt(Duration::from_millis(100));
        if let Some(packets) = self.ack_every {
            let mut acknowledgements = AckFrequencyConfig::default();
            // The draft counts the packets that need no acknowledgement yet.
            acknowledgements.ack_eliciting_threshold(VarInt::from_u32(packets.saturating_sub(1)));
            transport.ack_frequency_config(Some(acknowledgements));
        }
        match self.congestion {
            Congestion::Cubic => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
            Congestion::NewReno => {
                transport.congestion_controller_factory(Arc::new(NewRenoConfig::default()))
            }
            Congestion::Bbr => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
        };
        Arc::new(transport)
    }

    fn endpoint_config(&self) -> Result<EndpointConfig, Error> {
        let mut config = EndpointConfig::default();
        config.max_udp_payload_size(self.payload_size.unwrap_or(0).max(DEFAULT_MAX_PAYLOAD))?;
        Ok(config)
    }

    fn socket(&self, address: SocketAddr) -> Result<std::net::UdpSocket, Error> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if self.socket_buffer > 0 {
            socket.set_send_buffer_size(self.socket_buffer)?;
            socket.set_recv_buffer_size(self.socket_buffer)?;
        }
        socket.bind(&address.into()).map_err(|error| format!("cannot listen on {address}: {error}"))?;
        Ok(socket.into())
    }

    pub(crate) fn server(&self, address: SocketAddr, tls: Arc<QuicServerConfig>) -> Result<Endpoint, Error> {
        let mut server = quinn::ServerConfig::with_crypto(tls);
        server.transport_config(self.transport());
        let runtime = Arc::new(quinn::TokioRuntime);
        Ok(Endpoint::new(self.endpoint_config()?, Some(server), self.socket(address)?, runtime)?)
    }

    /// A client's endpoint, of the same address family as the server.
    pub(crate) fn client(&self, server: SocketAddr, tls: Arc<QuicClientConfig>) -> Result<Endpoint, Error> {
        let any: SocketAddr = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }.parse()?;
        let mut client = quinn::ClientConfig::new(tls);
        client.transport_config(self.transport());
        let runtime = Arc::new(quinn::TokioRuntime);
        let mut endpoint = Endpoint::new(self.endpoint_config()?, None, self.socket(any)?, runtime)?;
        endpoint.set_default_client_config(client);
        Ok(endpoint)
    }
}
