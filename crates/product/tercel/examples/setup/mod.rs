//! Certificates and application protocols for examples: the part of a program in which tercel and quinn differ.

pub(crate) use tercel::quic;

use quic::{ClientConfig, Roots, ServerConfig};
use tercel::tls::Identity;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// A server with a certificate that it has made itself.
pub(crate) fn server(protocol: &str) -> Result<ServerConfig, Error> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let identity = Identity::from_der(vec![made.cert.der().to_vec()], made.signing_key.serialize_der())?;
    Ok(ServerConfig::with_identity(identity)?.alpn_protocols(&[protocol.as_bytes()])?)
}

/// A client that takes such a certificate, so only for examples.
pub(crate) fn client(protocol: &str) -> Result<ClientConfig, Error> {
    Ok(ClientConfig::with_roots(Roots::Insecure)?.alpn_protocols(&[protocol.as_bytes()])?)
}
