//! The certificates that a server is made with.

use crate::bind_error::BindError;
use crypto::{Identities, Identity};

/// Certificates with their keys.
#[derive(Debug, Default)]
pub(crate) struct Certificates {
    /// For clients that ask for no other name; `None`: the development certificate.
    pub(crate) default: Option<Identity>,
    /// For the same clients, with other kinds of keys.
    pub(crate) additional: Vec<Identity>,
    /// For names of their own.
    pub(crate) named: Vec<(String, Identity)>,
}

impl Certificates {
    /// All of them, by the names that clients ask for.
    ///
    /// # Errors
    /// `development` has none, or a name is none.
    pub(crate) fn identities(
        &self,
        development: impl FnOnce() -> Result<Identity, BindError>,
    ) -> Result<Identities, BindError> {
        let default = self.default.clone().map_or_else(development, Ok)?;
        let mut identities = Identities::from(&default);
        self.additional.iter().for_each(|identity| identities.insert_default(identity));
        for (name, identity) in &self.named {
            identities.insert(name, identity).map_err(|error| BindError::Identity(error.to_string()))?;
        }
        Ok(identities)
    }
}
