//! What an endpoint offers in the TLS handshake, who it is, and whom it trusts.

mod client;
mod client_auth;
mod compression;
mod ech;
mod error;
mod identities;
mod identity;
mod key_lines;
mod keylog;
mod options;
mod server;
mod shared;
mod spki;
mod verify;

/// Application protocols in one row of bytes, each behind its length.
fn protocols(names: &[Vec<u8>]) -> Vec<u8> {
    let with_len =
        |name: &Vec<u8>| core::iter::once(name.len() as u8).chain(name.iter().copied()).collect::<Vec<_>>();
    names.iter().flat_map(with_len).collect()
}

pub use client::{ClientTls, Roots, tcp_client};
pub use client_auth::{Authorities, ClientAuth};
pub use ech::{Ech, EchConfigs};
pub use error::ConfigError;
pub use identities::Identities;
pub use identity::Identity;
pub use key_lines::KeyLines;
pub use options::{KeyExchange, KeyLog, TlsOptions};
pub use server::{ServerTls, tcp_server};
pub use shared::SharedIdentities;
pub(crate) use verify::is_of_authority;

#[cfg(test)]
mod tests;
