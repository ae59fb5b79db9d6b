//! What clients are shown until there is a certificate.

use crate::settings::Order;
use crypto::Identity;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

/// What it says of itself. It is in the messages of clients that refuse it.
const NAME: &str = "tercel: no certificate yet";

/// A self-signed certificate for the names of an order, which every client refuses that checks certificates. It is kept in memory alone.
///
/// # Errors
/// One line: the system has no randomness, or a name is none.
pub fn placeholder(order: &Order) -> Result<Identity, String> {
    let text = |error: rcgen::Error| format!("cannot make a certificate for {}: {error}", order.title());
    let key = KeyPair::generate().map_err(text)?;
    let mut params = CertificateParams::new(order.names.clone()).map_err(text)?;
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, NAME);
    params.distinguished_name = name;
    let made = params.self_signed(&key).map_err(text)?;
    Identity::from_pem(made.pem().as_bytes(), key.serialize_pem().as_bytes())
        .map_err(|error| error.to_string())
}
