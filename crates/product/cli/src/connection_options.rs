//! Whom to trust and how to reach them: the flags that clients share.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clap::Args;
use client::error::GetError;
use client::resolve::Family;
use client::target::Target;
#[cfg(feature = "lab")]
use crypto::{ClientTls, TlsOptions};
use crypto::{ConfigError, Ech, EchConfigs, Identity, Roots};
use std::path::PathBuf;

/// What a client may be told about its connections, whatever it speaks.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionArgs {
    /// Do not check the server's certificate. For tests: every host in between can read and change everything.
    #[arg(short = 'k', long, conflicts_with = "cacert")]
    insecure: bool,
    /// Trust the certificates in this PEM file, and no others.
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Show the certificate chain in this PEM file to servers that ask for one.
    #[arg(long, value_name = "FILE", requires = "key", hide_short_help = true)]
    cert: Option<PathBuf>,
    /// The private key of --cert, PEM.
    #[arg(long, value_name = "FILE", requires = "cert", hide_short_help = true)]
    key: Option<PathBuf>,
    /// Encrypt the server's name in the handshake (Encrypted Client Hello, RFC 9849).
    ///
    /// The value is ech= of the name's HTTPS record in DNS (dig NAME HTTPS), in base64. All URLs must be of that name. With grease
    /// a handshake looks as if it had an encrypted name.
    #[arg(long, value_name = "BASE64|grease", value_parser = ech, hide_short_help = true)]
    ech: Option<Ech>,
    /// Use IPv4 addresses only.
    #[arg(short = '4', long, conflicts_with = "ipv6", hide_short_help = true)]
    ipv4: bool,
    /// Use IPv6 addresses only.
    #[arg(short = '6', long, hide_short_help = true)]
    ipv6: bool,
}

impl ConnectionArgs {
    /// Which addresses may be used.
    pub(crate) fn family(&self) -> Family {
        match (self.ipv4, self.ipv6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Any,
        }
    }

    /// Says once on standard error that a proxy of the environment is not used.
    pub(crate) fn tell_of_proxy(command: &str, targets: &[Target]) {
        if let Some(variable) = client::proxy::ignored(|name| std::env::var(name).ok(), targets) {
            eprintln!("tercel {command}: {variable} is ignored: tercel connects directly and uses no proxy");
        }
    }

    /// TLS for QUIC.
    ///
    /// # Errors
    /// The file of `--cacert` is no use, there are no trusted roots, or the options cannot work.
    #[cfg(feature = "lab")]
    pub(crate) fn quic_tls(&self, options: &TlsOptions) -> Result<ClientTls, GetError> {
        let options = self.with_identity(options)?;
        ClientTls::new(&self.roots()?, &options).map_err(|error| self.explain(error))
    }

    /// TLS for TCP.
    ///
    /// # Errors
    /// The same.
    #[cfg(feature = "lab")]
    pub(crate) fn tcp_tls(
        &self,
        options: &TlsOptions,
    ) -> Result<std::sync::Arc<rustls::ClientConfig>, GetError> {
        let options = self.with_identity(options)?;
        crypto::tcp_client(&self.roots()?, &options).map_err(|error| self.explain(error))
    }

    #[cfg(feature = "lab")]
    fn with_identity(&self, options: &TlsOptions) -> Result<TlsOptions, GetError> {
        Ok(TlsOptions { client_identity: self.identity()?, ech: self.ech(), ..options.clone() })
    }

    /// Whether the server's name is encrypted in the handshake.
    pub(crate) fn ech(&self) -> Ech {
        self.ech.clone().unwrap_or_default()
    }

    /// What is shown to servers that ask for a certificate.
    ///
    /// # Errors
    /// The files of `--cert` and `--key` are no use.
    pub(crate) fn identity(&self) -> Result<Option<Identity>, GetError> {
        let (Some(certificate), Some(key)) = (&self.cert, &self.key) else { return Ok(None) };
        let identity = Identity::from_files(certificate, key);
        identity.map(Some).map_err(|error| GetError::Usage(format!("--cert and --key: {error}")))
    }

    /// Whom to trust.
    ///
    /// # Errors
    /// The file of `--cacert` cannot be read.
    pub(crate) fn roots(&self) -> Result<Roots, GetError> {
        match &self.cacert {
            _ if self.insecure => Ok(Roots::Insecure),
            None => Ok(Roots::System),
            Some(path) => match std::fs::read(path) {
                Ok(text) => Ok(Roots::Pem(text)),
                Err(error) => Err(GetError::Roots(path.clone(), error.to_string())),
            },
        }
    }

    /// What is wrong with the settings of TLS, in terms of the flags.
    pub(crate) fn explain(&self, error: ConfigError) -> GetError {
        match (error, &self.cacert) {
            (
                error @ (ConfigError::NoCertificate
                | ConfigError::BadPem { .. }
                | ConfigError::BadCertificate(_)),
                Some(path),
            ) => {
                let text = error.to_string();
                let what = text.split(": ").next().unwrap_or(&text);
                GetError::Roots(path.clone(), what.into())
            }
            (error, _) => GetError::Usage(error.to_string()),
        }
    }
}

/// Reads the value of `--ech`.
fn ech(text: &str) -> Result<Ech, String> {
    if text == "grease" {
        return Ok(Ech::Grease);
    }
    let list = BASE64_STANDARD.decode(text).map_err(|error| {
        format!("no base64 ({error}): take the value of ech= in the name's HTTPS record, or say grease")
    })?;
    EchConfigs::from_list(&list).map(Ech::Configs).map_err(|error| error.to_string())
}
