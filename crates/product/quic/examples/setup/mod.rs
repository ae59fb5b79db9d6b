//! Certificates and application protocols for examples: the part of a program in which this crate and quinn differ.

use quic::{ClientConfig, Roots, ServerConfig};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// A server with a certificate that it has made itself.
pub(crate) fn server(protocol: &str) -> Result<ServerConfig, Error> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let config = ServerConfig::with_single_cert(vec![CertificateDer::from(made.cert)], key)?;
    Ok(config.alpn_protocols(&[protocol.as_bytes()])?)
}

/// A client that takes such a certificate, so only for examples.
pub(crate) fn client(protocol: &str) -> Result<ClientConfig, Error> {
    Ok(ClientConfig::with_roots(Roots::Insecure)?.alpn_protocols(&[protocol.as_bytes()])?)
}
