//! What went wrong in a handshake, for a person who may be able to mend it.

use crate::config::is_of_authority;
use rustls::{CertificateError, Error, PeerIncompatible};
use wire::Side;

/// Says what `side` refuses.
pub(crate) fn in_words(error: &Error, side: Side) -> String {
    match (error, side) {
        (Error::NoApplicationProtocol, _) => {
            "the peer speaks none of the application protocols offered".into()
        }
        (Error::NoCertificatesPresented, Side::Server) => {
            "the client shows no certificate, and the server requires one".into()
        }
        (Error::PeerIncompatible(PeerIncompatible::ServerRejectedEncryptedClientHello(_)), Side::Client) => {
            "the server does not know the key of the encrypted ClientHello: take the ECHConfigList from the HTTPS record again".into()
        }
        (Error::InvalidCertificate(why), Side::Client) => of_server(why),
        (Error::InvalidCertificate(why), Side::Server) => of_client(why),
        (other, _) => other.to_string(),
    }
}

fn of_server(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => {
            "the server's certificate is not from a trusted authority: trust its CA, or skip verification in a test".into()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the server's certificate is for another name: connect by a name that it lists".into()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired: renew it, or check this computer's clock".into()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet: check this computer's clock".into()
        }
        other if is_of_authority(other) => "the server's certificate is an authority's (CA:TRUE) and not the one that is \
             trusted: give the server a certificate without CA:TRUE, or trust this very certificate"
            .into(),
        other => format!("the server's certificate cannot be accepted: {other}"),
    }
}

fn of_client(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => {
            "the client's certificate is not from an authority that the server accepts".into()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the client's certificate has expired".into()
        }
        other => format!("the client's certificate cannot be accepted: {other}"),
    }
}
