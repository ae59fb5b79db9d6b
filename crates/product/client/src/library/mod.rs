//! The HTTP client of programs: HTTP/1.1, 2 and 3 behind one type.
//!
//! ```text
//! Client (client.rs): redirects, retries, time ─▶ Connector (connector.rs): pool.rs, or race.rs between
//!     quic/ (HTTP/3, a worker on a thread of its own) and tcp.rs (HTTP/1.1 and 2, hyper on a thread of its own)
//! ```
//!
//! http3.rs has connections of HTTP/3 without the rest, for a program that keeps them itself.
//!
//! What is learnt from responses (Alt-Svc) and attempts is in knowledge.rs.

mod alert;
mod alt_svc;
mod alt_svc_file;
mod builder;
mod client;
mod connection;
mod connector;
mod content;
mod error;
mod holding;
mod http3;
mod hyper_error;
mod informational;
mod knowledge;
mod origin;
mod paths;
mod pool;
mod pump;
mod quic;
mod quota;
mod race;
mod redirect;
mod refused;
mod service;
mod settings;
mod sink;
mod stats;
mod tcp;
mod upload;
mod used;

pub use builder::{BuildError, Builder};
pub use client::Client;
pub use error::{Error, Kind, Phase};
pub use http3::{Http3Connection, Http3Endpoint, Unanswered};
pub use informational::on_informational;
pub use quic::ClientDriver;
pub use settings::{EarlyData, HttpChoice, Pool, Redirects, Timeout};
pub use sink::{BodySink, Control, Received};
pub use stats::Stats;
pub use used::Used;
