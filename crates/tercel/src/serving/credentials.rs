//! Who the server is, and what clients need to believe it.

use crypto::Identity;
use server::certificate::{self, Development};
use std::path::{Path, PathBuf};

/// A server's certificate and key.
pub(crate) struct Credentials {
    pub(crate) tls: Identity,
    /// Where clients find the certificate.
    pub(crate) certificate: PathBuf,
    pub(crate) development: Option<Development>,
}

impl Credentials {
    /// The certificate and key that were given.
    pub(crate) fn given(certificate: &Path, key: &Path) -> Result<Credentials, String> {
        let identity = certificate::Identity::load(certificate, key).map_err(|error| error.to_string())?;
        Credentials::new(&identity, certificate.to_owned(), None)
    }

    /// The development certificate, made if need be.
    pub(crate) fn development() -> Result<Credentials, String> {
        let text = |error: &dyn core::fmt::Display| error.to_string();
        let folder =
            certificate::default_folder(|name| std::env::var_os(name)).map_err(|error| text(&error))?;
        let made = Development::load_or_make(&folder, server::date::unix_now());
        let made = made.map_err(|error| text(&error))?;
        Credentials::new(&made.identity.clone(), made.certificate_path.clone(), Some(made))
    }

    fn new(
        identity: &certificate::Identity,
        certificate: PathBuf,
        development: Option<Development>,
    ) -> Result<Credentials, String> {
        let chain = identity.chain.iter().map(|certificate| certificate.to_vec()).collect();
        let tls = Identity::from_der(chain, identity.key.secret_der().to_vec());
        Ok(Credentials { tls: tls.map_err(|error| error.to_string())?, certificate, development })
    }
}
