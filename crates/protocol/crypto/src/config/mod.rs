//! What an endpoint offers in the TLS handshake, who it is, and whom it trusts.

mod client;
mod error;
mod identities;
mod identity;
mod keylog;
mod options;
mod server;
mod spki;
mod verify;

pub use client::{ClientTls, Roots, tcp_client};
pub use error::ConfigError;
pub use identities::Identities;
pub use identity::Identity;
pub use options::{KeyExchange, KeyLog, TlsOptions};
pub use server::{ServerTls, tcp_server};
pub(crate) use verify::is_of_authority;

#[cfg(test)]
mod tests;
