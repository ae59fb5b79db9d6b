//! Certificates of clients.

use crate::world::{VERSIONS, World, text};
use http::{Request, Response};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::convert::Infallible;
use tercel::client::{HttpChoice, Kind};
use tercel::tls::{Authorities, ClientAuth, Identity};
use tercel::{Body, ConnectionInfo, service_fn};

/// An authority and what it has issued.
struct Issued {
    authority: Vec<u8>,
    certificate: Vec<u8>,
    identity: Identity,
}

fn issue(name: &str) -> Issued {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["client".to_owned()]).unwrap().signed_by(&key, &authority);
    let certificate = certificate.unwrap();
    let identity = Identity::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes());
    let (authority, certificate) = (authority.pem().into_bytes(), certificate.der().to_vec());
    Issued { authority, certificate, identity: identity.unwrap() }
}

/// Answers by the certificate that the client has shown, in hexadecimal.
async fn shown(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let info = request.extensions().get::<ConnectionInfo>().unwrap();
    let own = info.client_certificates.as_ref().map(|chain| chain[0].to_vec()).unwrap_or_default();
    Ok(Response::new(hex(&own).into()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn asking(rule: ClientAuth) -> World {
    World::by(|builder| builder.client_auth(rule).serve(service_fn(shown)).unwrap())
}

/// RFC 8446 §4.4.2. Deleted, an application could take one client for another over one of the versions.
#[tokio::test]
async fn an_application_sees_who_its_client_is_over_three_versions() {
    let issued = issue("clients");
    let world = asking(ClientAuth::Optional(Authorities::from_pem(&issued.authority).unwrap()));
    for choice in VERSIONS {
        let known = world.builder(choice).identity(issued.identity.clone()).build().unwrap();
        // The second one on each connection too.
        for _ in 0..2 {
            let response = known.get(&world.url("/")).await.unwrap();
            assert_eq!(text(response).await, hex(&issued.certificate), "{choice:?}");
        }
        let unknown = world.client(choice);
        assert_eq!(text(unknown.get(&world.url("/")).await.unwrap()).await, "", "{choice:?}");
    }
}

/// Deleted, a server that requires certificates could answer a request of a client that has none.
#[tokio::test]
async fn a_client_without_a_certificate_that_is_accepted_gets_no_answer() {
    let (issued, other) = (issue("clients"), issue("others"));
    let world = asking(ClientAuth::Required(Authorities::from_pem(&issued.authority).unwrap()));
    for choice in VERSIONS {
        let unknown = world.builder(choice).identity(other.identity.clone()).build().unwrap();
        for (client, words) in [
            (world.client(choice), "requires a client certificate"),
            (unknown, "does not accept the client's certificate"),
        ] {
            let error = client.get(&world.url("/")).await.unwrap_err();
            assert!(error.to_string().contains(words), "{choice:?}: {error}");
            if choice == HttpChoice::Http3 {
                assert_eq!(error.kind(), Kind::Tls);
            }
        }
        let known = world.builder(choice).identity(issued.identity.clone()).build().unwrap();
        assert_eq!(known.get(&world.url("/")).await.unwrap().status(), 200, "{choice:?}");
    }
}
