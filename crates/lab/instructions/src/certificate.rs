//! The certificate of the servers, made anew in each run.

use crypto::Identity;
use rcgen::CertifiedKey;
use std::error::Error;

/// The name that it is for.
pub(crate) const NAME: &str = "localhost";

/// A certificate and its key.
pub(crate) struct Certificate {
    pub(crate) der: Vec<u8>,
    pub(crate) pem: String,
    pub(crate) identity: Identity,
}

impl Certificate {
    pub(crate) fn new() -> Result<Certificate, Box<dyn Error>> {
        let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(vec![NAME.to_owned()])?;
        let identity = Identity::from_der(vec![cert.der().to_vec()], signing_key.serialize_der())?;
        Ok(Certificate { der: cert.der().to_vec(), pem: cert.pem(), identity })
    }
}
