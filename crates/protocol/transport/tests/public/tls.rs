//! Certificates and settings of the TLS handshake. Ed25519 and a fixed serial number, so that every certificate has the same
//! length in each run.

use crypto::{ClientTls, Identity, Roots, ServerTls, TlsOptions};
use rcgen::{CertificateParams, DnType, KeyPair, SerialNumber, SignatureAlgorithm};
use std::sync::OnceLock;

/// The name that every certificate is for.
pub(crate) const SERVER_NAME: &str = "server.example";

/// A certificate that stands for its own authority.
pub(crate) struct Certificate {
    der: Vec<u8>,
    key: Vec<u8>,
    pem: String,
}

fn make(authority: &str, kind: &'static SignatureAlgorithm) -> Certificate {
    let mut params = CertificateParams::new(vec![SERVER_NAME.to_owned()]).expect("a DNS name");
    params.distinguished_name.push(DnType::CommonName, authority);
    params.serial_number = Some(SerialNumber::from_slice(&[0x42; 8]));
    let key = KeyPair::generate_for(kind).expect("a key");
    let made = params.self_signed(&key).expect("a certificate");
    Certificate { der: made.der().to_vec(), key: key.serialize_der(), pem: made.pem() }
}

/// The server's certificate.
pub(crate) fn servers() -> &'static Certificate {
    static MADE: OnceLock<Certificate> = OnceLock::new();
    MADE.get_or_init(|| make("first", &rcgen::PKCS_ED25519))
}

/// Another certificate for the same name, of another authority.
pub(crate) fn foreign() -> &'static Certificate {
    static MADE: OnceLock<Certificate> = OnceLock::new();
    MADE.get_or_init(|| make("second", &rcgen::PKCS_ED25519))
}

/// The server's certificate with a key whose signatures take long.
pub(crate) fn slow() -> &'static Certificate {
    static MADE: OnceLock<Certificate> = OnceLock::new();
    MADE.get_or_init(|| make("third", &rcgen::PKCS_RSA_SHA256))
}

impl Certificate {
    /// What a client trusts that trusts this certificate alone.
    pub(crate) fn roots(&self) -> Roots {
        Roots::Pem(self.pem.clone().into_bytes())
    }
}

/// A server that shows `made` `chain` times: the first counts, the others are weight.
pub(crate) fn server(made: &Certificate, options: &TlsOptions, chain: usize) -> ServerTls {
    let identity = Identity::from_der(vec![made.der.clone(); chain], made.key.clone()).expect("an identity");
    ServerTls::new(&identity, options).expect("a server's settings")
}

pub(crate) fn client(roots: &Roots, options: &TlsOptions) -> ClientTls {
    ClientTls::new(roots, options).expect("a client's settings")
}
