//! The HTTP client of programs: HTTP/1.1, 2 and 3 behind one type.
//!
//! ```text
//! Client (client.rs): redirects, retries, time ─▶ Connector (connector.rs): pool.rs, or race.rs between
//!     quic/ (HTTP/3, a worker on a thread of its own) and tcp.rs (HTTP/1.1 and 2, hyper on a thread of its own)
//! ```
//!
//! What is learnt from responses (Alt-Svc) and attempts is in knowledge.rs.

mod alt_svc;
mod builder;
mod client;
mod connection;
mod connector;
mod content;
mod error;
mod knowledge;
mod origin;
mod pool;
mod quic;
mod race;
mod redirect;
mod service;
mod settings;
mod tcp;

pub use builder::{BuildError, Builder};
pub use client::{Client, Used};
pub use error::{Error, Kind, Phase};
pub use settings::{HttpChoice, Pool, Redirects};
