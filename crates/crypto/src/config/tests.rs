//! Each mistake that a user can make with files, and what they are told.

use super::*;
use crate::testing::{Authority, Pair};
use rcgen::{CertificateParams, KeyPair};
use std::path::{Path, PathBuf};
use wire::Version;

/// The one line of an error.
fn line<T>(outcome: Result<T, ConfigError>) -> String {
    let Err(error) = outcome else { panic!("this must not work") };
    let text = error.to_string();
    assert!(!text.contains('\n'));
    text
}

#[test]
fn missing_unreadable_and_empty_files() {
    let missing = Path::new("/nonexistent/cert.pem");
    let text = line(Identity::from_files(missing, missing));
    assert_eq!(text, "certificate file /nonexistent/cert.pem does not exist: check the path");
    let text = line(Identity::from_files(&std::env::temp_dir(), missing));
    assert!(text.starts_with("cannot read certificate file "), "{text}");
    let authority = Authority::new();
    let (certificate, key) = (authority.certificate_pem.as_bytes(), authority.key_pem.as_bytes());
    assert!(line(Identity::from_pem(b"", key)).starts_with("no certificate found"));
    assert!(line(Identity::from_pem(key, key)).starts_with("no certificate found"));
    assert!(line(Identity::from_pem(certificate, certificate)).starts_with("no private key found"));
    assert!(line(Identity::from_der(vec![], vec![])).contains("private key"));
    let damaged = authority.certificate_pem.replace("-----END CERTIFICATE-----", "");
    assert!(line(Identity::from_pem(damaged.as_bytes(), key)).contains("not valid PEM"));
    let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(line(Identity::from_pem(nonsense.as_bytes(), key)).starts_with("the certificate cannot be used"));
    let nonsense = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    assert!(
        line(Identity::from_pem(certificate, nonsense.as_bytes()))
            .starts_with("the private key cannot be used")
    );
}

#[test]
fn a_key_of_another_certificate() {
    let (one, other) = (Authority::new(), Authority::new());
    let outcome = Identity::from_pem(one.certificate_pem.as_bytes(), other.key_pem.as_bytes());
    assert!(matches!(outcome, Err(ConfigError::KeyMismatch)));
    assert!(line(outcome).contains("does not belong to the certificate"));
}

#[test]
fn roots_that_are_none() {
    let options = TlsOptions::default();
    assert!(line(ClientTls::new(&Roots::Pem(vec![]), &options)).starts_with("no certificate found"));
    let nonsense = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec();
    assert!(
        line(ClientTls::new(&Roots::Pem(nonsense), &options)).starts_with("the certificate cannot be used")
    );
}

/// A machine without authorities must say so; most have some.
#[test]
fn system_roots_are_there_or_missed_in_one_line() {
    match ClientTls::new(&Roots::System, &TlsOptions::default()) {
        Ok(_) => {}
        Err(error) => assert!(error.to_string().contains("give a CA file"), "{error}"),
    }
}

#[test]
fn options_that_cannot_work() {
    let none = TlsOptions { alpn: vec![], ..TlsOptions::default() };
    assert!(line(ClientTls::new(&Roots::Insecure, &none)).contains("application protocol"));
    let key_log = KeyLog::File(PathBuf::from("/nonexistent/keys"));
    let unwritable = TlsOptions { key_log, ..TlsOptions::default() };
    assert!(line(ClientTls::new(&Roots::Insecure, &unwritable)).contains("SSLKEYLOGFILE"));
}

/// A development certificate is its own authority: users give the same file to server and client.
#[test]
fn a_self_signed_certificate_is_its_own_authority() {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let identity = Identity::from_der(vec![certificate.der().to_vec()], key.serialize_der()).unwrap();
    let options = TlsOptions::default();
    let server = ServerTls::new(&identity, &options).unwrap();
    let client = ClientTls::new(&Roots::Pem(certificate.pem().into_bytes()), &options).unwrap();
    Pair::new(Version::V1, &client, &server).run(1_000).unwrap();
    let expected = aws_lc_rs::digest::digest(
        &aws_lc_rs::digest::SHA256,
        &rcgen::PublicKeyData::subject_public_key_info(&key),
    );
    assert_eq!(identity.spki_sha256(), expected.as_ref());
}

/// What `openssl req -x509` makes. Deleted, a file that other clients take could be refused by an internal name.
#[test]
fn a_self_signed_certificate_of_an_authority_is_trusted_as_it_is_and_as_nothing_else() {
    let made = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let identity = Identity::from_der(vec![certificate.der().to_vec()], key.serialize_der()).unwrap();
        (ServerTls::new(&identity, &TlsOptions::default()).unwrap(), certificate.pem())
    };
    let run = |server: &ServerTls, trusted: &str| {
        let roots = Roots::Pem(trusted.as_bytes().to_vec());
        let client = ClientTls::new(&roots, &TlsOptions::default()).unwrap();
        Pair::new(Version::V1, &client, server).run(1_000)
    };
    let ((server, pem), (stranger, other_pem)) = (made("localhost"), made("elsewhere.example"));
    run(&server, &pem).unwrap();
    run(&server, &format!("{other_pem}{pem}")).unwrap();
    let refused = run(&server, &other_pem).unwrap_err().to_string();
    assert!(refused.contains("CA:TRUE") && !refused.contains("CaUsed"), "{refused}");
    let refused = run(&stranger, &other_pem).unwrap_err().to_string();
    assert!(refused.contains("is for another name"), "{refused}");
}

/// Certificates with RSA and Ed25519 keys work too.
#[test]
fn other_kinds_of_keys() {
    for algorithm in [&rcgen::PKCS_ED25519, &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_RSA_SHA256] {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let identity =
            Identity::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap();
        let options = TlsOptions::default();
        let server = ServerTls::new(&identity, &options).unwrap();
        let client = ClientTls::new(&Roots::Pem(certificate.pem().into_bytes()), &options).unwrap();
        Pair::new(Version::V1, &client, &server).run(1_000).unwrap();
    }
}
