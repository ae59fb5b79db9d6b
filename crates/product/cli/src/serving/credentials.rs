//! The server's certificate and key, and what clients need to verify it.

use crypto::Identity;
use server::certificate::{self, Development, Validity};
use server::date::unix_now;
use std::path::{Path, PathBuf};

/// What happens to certificates that are not valid now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    /// They are not served.
    Refuse,
    /// They are, with a warning.
    Allow,
}

/// A server's certificate and key.
pub(crate) struct Credentials {
    pub(crate) tls: Identity,
    /// Where clients find the certificate.
    pub(crate) certificate: PathBuf,
    pub(crate) development: Option<Development>,
}

impl Credentials {
    /// The certificate and key that were given.
    ///
    /// # Errors
    /// One line: they cannot be used; or the certificate is not valid now, and `expired` refuses such.
    pub(crate) fn given(certificate: &Path, key: &Path, expired: Expired) -> Result<Credentials, String> {
        let identity = certificate::Identity::load(certificate, key).map_err(|error| error.to_string())?;
        let validity = identity.validity(unix_now());
        let file = certificate.display();
        match (validity, expired) {
            (Validity::Good, _) => {}
            (Validity::Expired { .. } | Validity::NotYet { .. }, Expired::Refuse) => {
                return Err(format!(
                    "the certificate in {file} {validity}: clients refuse it; give another one, or serve it all the same with \
                     --allow-expired-certificate"
                ));
            }
            (_, _) => eprintln!("tercel: warning: the certificate in {file} {validity}"),
        }
        Credentials::new(&identity, certificate.to_owned(), None)
    }

    /// The development certificate, made if need be.
    pub(crate) fn development() -> Result<Credentials, String> {
        let text = |error: &dyn core::fmt::Display| error.to_string();
        let folder =
            certificate::default_folder(|name| std::env::var_os(name)).map_err(|error| text(&error))?;
        let made = Development::load_or_make(&folder, unix_now());
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
