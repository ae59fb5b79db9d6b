//! When an authority wants a certificate renewed: ACME Renewal Information. RFC 9773.

use crate::exchange::account;
use crate::failure::Failure;
use crate::http::Http;
use crate::settings::Order;
use crate::store::Store;
use instant_acme::{CertificateIdentifier, Error};
use rustls_pki_types::Der;
use server::certificate::Identity;
use std::time::Duration;

/// What an authority says of a certificate's renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// It does not say.
    None,
    /// Within these times, in seconds since 1970.
    Within {
        window_s: (u64, u64),
        /// Until when to ask again.
        again: Duration,
    },
}

/// How authorities name a certificate. RFC 9773 §4.1.
pub(crate) fn identifier(of: &Identity) -> Option<CertificateIdentifier<'static>> {
    let (issuer, serial) = of.issuer_and_serial()?;
    Some(CertificateIdentifier::new(Der::from(issuer), Der::from(serial)).into_owned())
}

/// Asks when to renew the certificate of an order.
pub(crate) async fn ask(order: &Order, store: &Store, http: &Http) -> Result<Wish, Failure> {
    let Some(identifier) = store.certificate_of(order).as_ref().and_then(identifier) else {
        return Ok(Wish::None);
    };
    let account = account(&order.authority, store, http).await?;
    match account.renewal_info(&identifier).await {
        Ok((info, again)) => {
            let seconds = |at: i64| u64::try_from(at).unwrap_or(0);
            let window = info.suggested_window;
            let window_s = (seconds(window.start.unix_timestamp()), seconds(window.end.unix_timestamp()));
            Ok(Wish::Within { window_s, again })
        }
        Err(Error::Unsupported(_)) => Ok(Wish::None),
        Err(error) => Err(Failure::of("the authority does not say when to renew", &error)),
    }
}
