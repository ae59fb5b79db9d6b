//! The certificate with which a server proves who it is: given by the operator, or made for development.

mod der;
mod development;
mod error;
mod identity;
#[cfg(test)]
mod tests;

pub(crate) use der::subject_names;
#[doc(hidden)]
pub use development::write as replace_file;
pub use development::{Development, default_folder};
pub(crate) use error::brief;
pub use error::{CertificateError, Role};
pub use identity::{Identity, Validity, expiry};
