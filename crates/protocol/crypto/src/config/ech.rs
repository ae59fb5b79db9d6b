//! How a client hides the name of the server that it asks for: Encrypted Client Hello. Source: RFC 9849.

use super::error::ConfigError;
use rustls::client::{EchConfig, EchGreaseConfig, EchMode};
use rustls::crypto::aws_lc_rs::hpke::{ALL_SUPPORTED_SUITES, DH_KEM_P256_HKDF_SHA256_AES_128};
use rustls::crypto::hpke::Hpke;
use rustls::pki_types::EchConfigListBytes;
use rustls::{EncryptedClientHelloError, Error};

/// Whether a client encrypts what its first message says: the server's name and the application protocols. Source: RFC 9849.
#[derive(Clone, Debug, Default)]
pub enum Ech {
    /// It does not, and a ClientHello names the server in the clear.
    #[default]
    Off,
    /// It does not, but each ClientHello looks as if it did. Source: RFC 9849 §6.2.
    Grease,
    /// It does, by the keys of these configurations.
    Configs(EchConfigs),
}

impl Ech {
    pub(super) fn mode(&self) -> Result<Option<EchMode>, ConfigError> {
        match self {
            Ech::Off => Ok(None),
            Ech::Grease => {
                let suite = DH_KEM_P256_HKDF_SHA256_AES_128;
                let (placeholder, _) =
                    suite.generate_key_pair().map_err(|error| ConfigError::Refused(error.to_string()))?;
                Ok(Some(EchGreaseConfig::new(suite, placeholder).into()))
            }
            Ech::Configs(configs) => Ok(Some(configs.0.clone().into())),
        }
    }
}

/// The keys by which the servers of a name open what a client encrypts for them, and the public name, which stands in the clear instead.
///
/// They are for connections to that name only. A server that does not know the key refuses the handshake.
#[derive(Clone, Debug)]
pub struct EchConfigs(EchConfig);

impl EchConfigs {
    /// Reads an ECHConfigList, which the parameter `ech` of the name's HTTPS record in DNS holds. Source: RFC 9848 §3, RFC 9849 §4.
    ///
    /// # Errors
    /// The list is malformed, or holds no configuration with a version, key and cipher suite that are known here.
    pub fn from_list(list: &[u8]) -> Result<EchConfigs, ConfigError> {
        let config = EchConfig::new(EchConfigListBytes::from(list), ALL_SUPPORTED_SUITES);
        config.map(EchConfigs).map_err(|error| match error {
            Error::InvalidEncryptedClientHello(EncryptedClientHelloError::InvalidConfigList) => {
                ConfigError::Ech("it is malformed".into())
            }
            Error::InvalidEncryptedClientHello(EncryptedClientHelloError::NoCompatibleConfig) => {
                ConfigError::Ech("it has no key of a kind that is known here".into())
            }
            other => ConfigError::Ech(other.to_string()),
        })
    }
}
