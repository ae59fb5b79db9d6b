//! A server's certificate and key from files, or made for development, and what clients need to trust them.

use crate::certificate::{self, Development, Validity};
use crate::date::unix_now;
use crypto::Identity;
use std::path::{Path, PathBuf};

/// What happens to certificates that are not valid now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// They are not served.
    Refuse,
    /// They are, with a warning.
    Allow,
}

/// A server's certificate and key.
#[derive(Debug)]
pub struct Credentials {
    /// For [`crate::Builder::identity`].
    pub identity: Identity,
    /// The file of the certificate.
    pub certificate: PathBuf,
    /// The development certificate, if it is that.
    pub development: Option<Development>,
    /// A line about a certificate that is not valid now, or not for long.
    pub warning: Option<String>,
}

impl Credentials {
    /// The certificate chain and the key in these PEM files.
    ///
    /// # Errors
    /// One line: they cannot be used; or the certificate is not valid now, and `expired` refuses such.
    pub fn load(certificate: &Path, key: &Path, expired: Expired) -> Result<Credentials, String> {
        let identity = certificate::Identity::load(certificate, key).map_err(|error| error.to_string())?;
        let validity = identity.validity(unix_now());
        let file = certificate.display();
        let warning = match (validity, expired) {
            (Validity::Good, _) => None,
            (Validity::Expired { .. } | Validity::NotYet { .. }, Expired::Refuse) => {
                return Err(format!(
                    "the certificate in {file} {validity}: clients refuse it; give another one, or serve it all the same with \
                     --allow-expired-certificate"
                ));
            }
            (_, _) => Some(format!("the certificate in {file} {validity}")),
        };
        let certificate = certificate.to_owned();
        Ok(Credentials { identity: to_tls(&identity)?, certificate, development: None, warning })
    }

    /// The development certificate, made if need be. It lies in `state` where the environment names no folder for data, as that of a
    /// service need not.
    ///
    /// # Errors
    /// One line: there is no folder for it, or it cannot be read or written.
    pub fn development(state: Option<&Path>) -> Result<Credentials, String> {
        let text = |error: certificate::CertificateError| error.to_string();
        let named = certificate::default_folder(|name| std::env::var_os(name));
        let folder = named.or_else(|error| state.map(Path::to_owned).ok_or(error)).map_err(text)?;
        let made = Development::load_or_make(&folder, unix_now()).map_err(text)?;
        Ok(Credentials {
            identity: to_tls(&made.identity)?,
            certificate: made.certificate_path.clone(),
            development: Some(made),
            warning: None,
        })
    }
}

fn to_tls(identity: &certificate::Identity) -> Result<Identity, String> {
    let chain = identity.chain.iter().map(|certificate| certificate.to_vec()).collect();
    Identity::from_der(chain, identity.key.secret_der().to_vec()).map_err(|error| error.to_string())
}
