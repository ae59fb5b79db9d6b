//! Certificates and application protocols: the part of the programs in which quinn and `tercel::quic` differ.

pub(crate) use quinn as quic;

use crate::{Error, tls};
use quic::{ClientConfig, ServerConfig};

pub(crate) fn server(protocol: &str) -> Result<ServerConfig, Error> {
    let tls = tls::Options::usual().server(&tls::Identity::default(), &[protocol.as_bytes()])?;
    Ok(ServerConfig::with_crypto(tls))
}

pub(crate) fn client(protocol: &str) -> Result<ClientConfig, Error> {
    Ok(ClientConfig::new(tls::Options::usual().client(None, protocol.as_bytes())?))
}
