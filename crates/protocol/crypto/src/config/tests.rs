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
    let ((server, pem), (other_server, other_pem)) = (made("localhost"), made("elsewhere.example"));
    run(&server, &pem).unwrap();
    run(&server, &format!("{other_pem}{pem}")).unwrap();
    let refused = run(&server, &other_pem).unwrap_err().to_string();
    assert!(refused.contains("CA:TRUE") && !refused.contains("CaUsed"), "{refused}");
    let refused = run(&other_server, &other_pem).unwrap_err().to_string();
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

/// A certificate as it would be in X.509 version 1: without a version and without extensions. Its own signature is no
/// longer right. A client that does not verify certificates does not check it.
fn version_1(certificate: &[u8]) -> Vec<u8> {
    fn element(bytes: &[u8]) -> (&[u8], &[u8]) {
        let (header, len) = match bytes[1] {
            0x82 => (4, usize::from(bytes[2]) << 8 | usize::from(bytes[3])),
            0x81 => (3, usize::from(bytes[2])),
            len => (2, usize::from(len)),
        };
        (&bytes[header..header + len], &bytes[header + len..])
    }
    fn sequence(content: &[u8]) -> Vec<u8> {
        [&[0x30, 0x82][..], &(content.len() as u16).to_be_bytes(), content].concat()
    }
    let (outer, _) = element(certificate);
    let (mut tbs, signature) = element(outer);
    let mut kept = Vec::new();
    while !tbs.is_empty() {
        let (_, rest) = element(tbs);
        if ![0xa0, 0xa3].contains(&tbs[0]) {
            kept.extend_from_slice(&tbs[..tbs.len() - rest.len()]);
        }
        tbs = rest;
    }
    sequence(&[&sequence(&kept)[..], signature].concat())
}

/// MsQuic's self-signed certificate is one, as are those of simple scripts; every other client takes them.
#[test]
fn a_client_that_trusts_everybody_takes_certificates_of_version_1() {
    let authority = Authority::new();
    let genuine = identity::certificates("test", authority.certificate_pem.as_bytes()).unwrap().remove(0);
    let old = rustls::pki_types::CertificateDer::from(version_1(&genuine));
    assert!(rustls::server::ParsedCertificate::try_from(&old).is_err(), "webpki does not take it");
    let identity = authority.identity().unwrap().showing(vec![old.clone()]);
    let options = TlsOptions::default();
    let server = ServerTls::new(&identity, &options).unwrap();
    let client = ClientTls::new(&Roots::Insecure, &options).unwrap();
    Pair::new(Version::V1, &client, &server).run(1_000).unwrap();
    // The key must still be the one that signs, and a client with authorities still refuses.
    let other_key = Authority::new().identity().unwrap().showing(vec![old]);
    let other_server = ServerTls::new(&other_key, &options).unwrap();
    assert!(Pair::new(Version::V1, &client, &other_server).run(1_000).is_err());
    let strict = ClientTls::new(&authority.roots(), &options).unwrap();
    assert!(Pair::new(Version::V1, &strict, &server).run(1_000).is_err());
}

/// Over TCP the same, in both versions of TLS.
#[test]
fn so_does_one_over_tcp() {
    let authority = Authority::new();
    let genuine = identity::certificates("test", authority.certificate_pem.as_bytes()).unwrap().remove(0);
    let old = vec![rustls::pki_types::CertificateDer::from(version_1(&genuine))];
    let options = TlsOptions::default();
    for (holder, is_fine) in [(&authority, true), (&Authority::new(), false)] {
        let resolver =
            rustls::sign::SingleCertAndKey::from(holder.identity().unwrap().showing(old.clone()).certified());
        let resolver = std::sync::Arc::new(resolver);
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let server = rustls::ServerConfig::builder_with_provider(options.tcp_provider())
                .with_protocol_versions(&[version])
                .unwrap()
                .with_no_client_auth()
                .with_cert_resolver(resolver.clone());
            let client =
                tcp_client(&Roots::Insecure, &TlsOptions { alpn: vec![], ..options.clone() }).unwrap();
            let mut server = rustls::ServerConnection::new(std::sync::Arc::new(server)).unwrap();
            let mut client = rustls::ClientConnection::new(client, "localhost".try_into().unwrap()).unwrap();
            let mut outcome = Ok(());
            for _ in 0..4 {
                let mut bytes = Vec::new();
                client.write_tls(&mut bytes).unwrap();
                server.read_tls(&mut &bytes[..]).unwrap();
                let _ = server.process_new_packets();
                bytes.clear();
                while server.wants_write() {
                    server.write_tls(&mut bytes).unwrap();
                }
                let mut unread = &bytes[..];
                while !unread.is_empty() && outcome.is_ok() {
                    client.read_tls(&mut unread).unwrap();
                    outcome = client.process_new_packets().map(|_| ());
                }
            }
            assert_eq!(outcome.is_ok() && !client.is_handshaking(), is_fine, "{version:?}: {outcome:?}");
        }
    }
}

/// RFC 8446 §4.3.2, §4.4.2.4, §6.2. Deleted, a server could serve a client that shows nothing, or what it must not accept.
#[test]
fn a_server_that_asks_for_certificates_serves_the_clients_that_its_rule_names() {
    const BAD_CERTIFICATES: [u8; 2] = [42, 48];
    const CERTIFICATE_REQUIRED: u8 = 116;
    let (site, clients, other) = (Authority::new(), Authority::new(), Authority::new());
    let accepted = || Authorities::from_pem(clients.ca_pem.as_bytes()).unwrap();
    let run = |rule: ClientAuth, shown: Option<&Authority>| {
        let options = TlsOptions { client_auth: rule, ..TlsOptions::default() };
        let server = ServerTls::new(&site.identity().unwrap(), &options).unwrap();
        let client_identity = shown.map(|shown| shown.identity().unwrap());
        let options = TlsOptions { client_identity, ..TlsOptions::default() };
        let client = ClientTls::new(&site.roots(), &options).unwrap();
        let mut pair = Pair::new(Version::V1, &client, &server);
        let outcome = pair.run(1_000).map_err(|error| error.alert);
        outcome.map(|()| pair.server.tls.peer_certificates().map(|chain| chain[0].to_vec()))
    };
    let own = identity::certificates("test", clients.certificate_pem.as_bytes()).unwrap()[0].to_vec();
    assert_eq!(
        run(ClientAuth::Off, Some(&clients)),
        Ok(None),
        "it is not shown to a server that does not ask"
    );
    assert_eq!(run(ClientAuth::Optional(accepted()), None), Ok(None));
    assert_eq!(run(ClientAuth::Optional(accepted()), Some(&clients)), Ok(Some(own.clone())));
    assert_eq!(run(ClientAuth::Required(accepted()), Some(&clients)), Ok(Some(own)));
    assert_eq!(run(ClientAuth::Required(accepted()), None), Err(CERTIFICATE_REQUIRED));
    for rule in [ClientAuth::Optional(accepted()), ClientAuth::Required(accepted())] {
        let refused = run(rule, Some(&other)).unwrap_err();
        assert!(BAD_CERTIFICATES.contains(&refused), "alert {refused}");
    }
}

#[test]
fn authorities_of_clients_that_are_none() {
    let line = |text: &[u8]| Authorities::from_pem(text).unwrap_err().to_string();
    assert!(line(b"").starts_with("no certificate found"));
    assert!(
        line(b"-----BEGIN CERTIFICATE-----\nAA!A\n-----END CERTIFICATE-----\n")
            .contains("client CA file is not valid PEM")
    );
    let missing =
        Authorities::from_file(std::path::Path::new("/nonexistent/ca.pem")).unwrap_err().to_string();
    assert_eq!(missing, "client CA file /nonexistent/ca.pem does not exist: check the path");
}

/// Deleted, an operator would learn from clients that a site has the certificate of another.
#[test]
fn a_certificate_is_for_its_names_as_clients_read_them() {
    let names = ["a.org", "*.b.org", "192.0.2.1"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let identity =
        Identity::from_pem(made.cert.pem().as_bytes(), made.signing_key.serialize_pem().as_bytes()).unwrap();
    for name in ["a.org", "A.org", "x.b.org", "*.b.org", "192.0.2.1"] {
        assert!(identity.is_for(name), "{name}");
    }
    for name in ["*.a.org", "b.org", "x.y.b.org", "c.org", "192.0.2.2", "", "a b"] {
        assert!(!identity.is_for(name), "{name}");
    }
}
