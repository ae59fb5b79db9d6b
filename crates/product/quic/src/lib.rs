//! QUIC without HTTP: endpoints, connections and streams as handles for async programs, with the names of quinn 0.11.
//!
//! Handles are `Send + Sync`; they work on every runtime. The worker of an endpoint sends and receives on a thread of its own, as
//! a task beside the program's own, or in a loop of the program's ([`Driver`], [`EndpointBuilder::build_manual`]). A handle and
//! the worker share a mutex for each connection, which the worker takes once for each turn.
//!
//! | dropped | happens |
//! |---|---|
//! | [`SendStream`] | it is finished: what was written is delivered |
//! | [`RecvStream`] before its end | STOP_SENDING with code 0 |
//! | the last handle of a [`Connection`], streams included | closed with code 0: data that is not acknowledged may be lost |
//! | [`Incoming`], or a server's [`Connecting`] | the client is told CONNECTION_REFUSED |
//! | a client's [`Connecting`] | the attempt ends with code 0 |
//! | the last [`Endpoint`] | connections live on; the driver ends after the last |
//! | a future of `open_bi`, `accept_bi`, `read`, `write` | nothing is lost; `write_all` and `write_chunk` may have written a part |
//!
//! # Porting a program from quinn
//!
//! Replace `quinn::` by `tercel::quic::`. What carries data needs no other change: `examples/ported` of the crate `tercel` has a file
//! transfer and remote calls whose source files compile with either library. These differ:
//!
//! | quinn 0.11 | here |
//! |---|---|
//! | `ServerConfig::with_crypto`, `ClientConfig::new`, `with_root_certificates` | [`ServerConfig::with_identity`], [`ClientConfig::with_roots`]; `alpn_protocols` of either |
//! | `EndpointConfig`, `Endpoint::new` with a socket and a runtime | [`Endpoint::builder`]: data path, driver |
//! | ALPN is optional | always negotiated; `tercel` where a configuration names none (RFC 9001 §8.1) |
//! | `Endpoint::set_default_client_config(&mut self)` | takes `&self` |
//! | `TransportConfig::max_idle_timeout(Option<IdleTimeout>)` | `Option<Duration>` |
//! | `congestion_controller_factory` | [`TransportConfig::congestion`] |
//! | `mtu_discovery_config`, `min_mtu` | [`TransportConfig::max_mtu`], [`TransportConfig::initial_mtu`] |
//! | `datagram_receive_buffer_size` | [`TransportConfig::receive_datagrams`] |
//! | `SendStream::set_priority(i32)` | [`Priority`]: urgency and incremental (RFC 9218) |
//! | `RecvStream::read_chunk(max, ordered)` gives a `Chunk` with an offset | `read_chunk(max)` gives `Bytes`, in order |
//! | `handshake_data`, `peer_identity`: `Box<dyn Any>` | [`HandshakeData`]; a list of certificates |
//! | `export_keying_material` | `async`: the driver answers |
//! | `Incoming::retry`, `may_retry`, `ignore`, `accept_with` | [`EndpointBuilder::retry`] decides; a handshake begins before it is accepted |
//! | `StreamId` of quinn, with `index()` | [`StreamId`] |
//! | `ConnectionStats { path, frame_tx, .. }` | one flat [`ConnectionStats`] |
//! | 0-RTT of rustls' configuration | [`ServerConfig::ticket_keys`], [`ClientConfig::session_store`], and `early_data` of both |
//! | `rebind`, `set_server_config`, windows that change during a connection, `congestion_state` | absent |
//! | `TransportConfig::qlog_stream` | [`TransportConfig::qlog`]: a folder with a file for each connection |
//!
//! | file | holds |
//! |---|---|
//! | endpoint.rs, builder.rs, incoming.rs, connecting.rs, connection.rs, send_stream.rs, recv_stream.rs | the handles |
//! | config.rs, transport_config.rs, handshakes.rs | settings |
//! | error.rs, stream_error.rs, datagram_error.rs, varint.rs, stats.rs, facts.rs | values |
//! | shared/ | what handles and worker share for a connection |
//! | hub.rs, calls.rs, alarm.rs, wakers.rs | what they share for an endpoint |
//! | app.rs, presence.rs, arrivals.rs | the worker's side |
//! | driver/ | who owns the thread |
#![forbid(unsafe_code)]

mod alarm;
mod app;
mod arrivals;
mod builder;
mod calls;
mod config;
mod connecting;
mod connection;
mod datagram_error;
mod driver;
mod endpoint;
mod error;
mod facts;
mod handshakes;
mod hub;
mod incoming;
mod presence;
mod recv_stream;
mod send_stream;
mod shared;
mod stats;
mod stream_error;
mod transport_config;
mod varint;
mod wakers;

pub use builder::{Driver, EndpointBuilder, Retry};
pub use config::{ClientConfig, EarlyData, ServerConfig};
pub use connecting::{Connecting, ZeroRttAccepted};
pub use connection::Connection;
pub use crypto::{
    Authorities, ClientAuth, ConfigError as TlsConfigError, EarlyStatus, Ech, EchConfigs, FileSessions,
    Identity, MemorySessions, Roots, ServerKey, SessionFileError, SessionStore, SessionTicket,
    TicketFileError, TicketKeys,
};
pub use datagram_error::{ExportError, SendDatagramError};
pub use driver::{ManualDriver, Progress};
pub use endpoint::Endpoint;
pub use error::{
    ApplicationClose, ConnectError, ConnectionClose, ConnectionError, TlsFailure, TransportError,
};
pub use facts::{HandshakeData, PathEvent};
pub use handshakes::HandshakeStep;
pub use incoming::{Incoming, IncomingFuture};
pub use ports::DataPath;
pub use recv_stream::RecvStream;
pub use send_stream::{SendStream, Written};
pub use stats::{ConnectionStats, EndpointStats, PathStats};
pub use stream_error::{
    ClosedStream, ReadError, ReadExactError, ReadToEndError, ResetAtError, ResetError, StoppedError,
    WriteError,
};
pub use transport::{Dir, OpenPathError, Priority, Scheduler, StreamId};
pub use transport_config::{Congestion, QuicVersion, TransportConfig};
pub use varint::{VarInt, VarIntBoundsExceeded};
pub use wire::Side;
