//! Who is answered, over HTTP/1.1, 2 and 3: users with passwords, clients with certificates, so many requests.

use crate::configuration::{folder, run};
use crate::http3;
use crate::message::{Ask, Who};
use crate::server::PROGRAM;
use crate::sites::{Row, answer_alike, ask_all, ask_each, start};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) fn signed(target: &str, user: &str) -> Ask {
    Ask::get(target).with("authorization", &format!("Basic {}", BASE64_STANDARD.encode(user)))
}

/// What `tercel hash-password` prints for a password that is piped to it.
pub(crate) fn hash(password: &str) -> String {
    let mut command = Command::new(PROGRAM);
    command.arg("hash-password").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    child.stdin.take().expect("a pipe").write_all(password.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

/// Deleted, a page for some could be there for all, by one version of HTTP, another spelling of its path, or another method.
#[test]
fn users_are_answered_with_their_password_alone() {
    let place = folder(&[
        ("site/index.html", "home"),
        ("site/staff/plan.txt", "the plan"),
        ("site/denied.html", "ask the office"),
        ("users", &format!("# the staff\nbob:{}\n\n", hash("of bob\n"))),
    ]);
    let configuration = format!(
        "
        [[site]]
        names = 'localhost'
        root = 'site'
        error-pages = {{ 401 = '/denied.html' }}
        [[site.route]]
        path = '/staff/open'
        respond = {{ body = 'open' }}
        [[site.route]]
        path = '/staff'
        files = true
        auth = {{ realm = 'Staff', users = {{ alice = '{}' }}, users-file = 'users' }}
        [[site]]
        names = 'closed.example'
        root = 'site'
        auth = {{ users = {{ alice = '{}' }} }}
        [[site.route]]
        path = '/health'
        respond = {{ body = 'ok' }}
        auth = false
        ",
        hash("of alice: é"),
        hash("other"),
    );
    let server = start(place.path(), &configuration);
    let challenge: &[&str] = &["www-authenticate: Basic realm=\"Staff\", charset=\"UTF-8\"", "!etag"];
    let mut put = signed("/staff/plan.txt", "bob:of alice: é");
    put.method = "PUT";
    let rows: Vec<Row> = vec![
        (Ask::get("/"), 200, "home", &["!www-authenticate"]),
        (Ask::get("/staff/plan.txt"), 401, "ask the office", challenge),
        (Ask::get("/%73taff//plan.txt"), 401, "ask the office", challenge),
        (Ask::get("/staff"), 401, "ask the office", challenge),
        (Ask::get("/staff/nothing"), 401, "ask the office", challenge),
        (Ask::new("OPTIONS", "/staff/plan.txt"), 401, "ask the office", challenge),
        (put, 401, "ask the office", challenge),
        (Ask::get("/staff/plan.txt").with("range", "bytes=0-1"), 401, "ask the office", challenge),
        (signed("/staff/plan.txt", "alice:of alice: é"), 200, "the plan", &["!www-authenticate"]),
        (signed("/staff/plan.txt", "bob:of bob"), 200, "the plan", &[]),
        (signed("/staff/plan.txt", "bob:of alice: é"), 401, "ask the office", challenge),
        (signed("/staff/plan.txt", "carol:of bob"), 401, "ask the office", challenge),
        (signed("/staff/plan.txt", "bob:"), 401, "ask the office", challenge),
        (Ask::get("/staff/plan.txt").with("authorization", "Bearer x"), 401, "ask the office", challenge),
        (Ask::get("/staff/open"), 200, "open", &[]),
        // A whole site, and a route of it that is for all. A user of one site is none of another.
        (
            Ask::get("/").of("closed.example"),
            401,
            "401 Unauthorized\n",
            &["www-authenticate: Basic realm=\"restricted\", charset=\"UTF-8\""],
        ),
        (signed("/", "alice:other").of("closed.example"), 200, "home", &[]),
        (signed("/", "alice:of alice: é").of("closed.example"), 401, "…", &[]),
        (Ask::get("/health").of("closed.example"), 200, "ok", &[]),
    ];
    answer_alike(server.port, &rows);
    // What was verified once costs no hash again: a hundred requests would take seconds.
    let asks: Vec<Ask> = (0..100).map(|_| signed("/staff/plan.txt", "bob:of bob")).collect();
    for answers in ask_each(&Who::default(), server.port, &asks) {
        assert!(answers.iter().all(|answer| answer.status == 200));
    }
    let (_, log) = server.stop();
    assert!(!log.contains("of bob") && !log.contains(&BASE64_STANDARD.encode("bob:of bob")), "{log}");
}

/// A certificate of `name` by an authority, as clients show it.
fn client(name: &str, authority: &rcgen::Issuer<'_, rcgen::KeyPair>) -> (crypto::Identity, String) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    let made = params.signed_by(&key, authority).expect("a certificate");
    let identity = crypto::Identity::from_pem(made.pem().as_bytes(), key.serialize_pem().as_bytes());
    let digest: String = {
        use sha2::Digest as _;
        sha2::Sha256::digest(made.der()).iter().map(|byte| format!("{byte:02X}:")).collect()
    };
    (identity.expect("an identity"), digest.trim_end_matches(':').to_owned())
}

pub(crate) fn authority(place: &Path) -> rcgen::Issuer<'static, rcgen::KeyPair> {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, "authority");
    let made = params.self_signed(&key).expect("a certificate");
    std::fs::write(place.join("ca.pem"), made.pem()).expect("written");
    rcgen::Issuer::new(params, key)
}

/// Deleted, a site for clients with certificates could be reached by a connection that was opened for another site.
#[test]
fn a_certificate_is_asked_of_the_site_of_the_request_whichever_name_the_connection_was_opened_for() {
    let place = folder(&[("site/index.html", "home")]);
    let authority = authority(place.path());
    let ((alice, _), (bob, of_bob), (carol, _)) =
        (client("alice", &authority), client("bob", &authority), client("carol", &authority));
    let configuration = format!(
        "
        client-ca = 'ca.pem'
        client-auth = 'optional'
        [[site]]
        names = 'localhost'
        root = 'site'
        [[site]]
        names = 'any.example'
        root = 'site'
        client-cert = true
        [[site.route]]
        path = '/open'
        respond = {{}}
        client-cert = false
        [[site]]
        names = 'some.example'
        root = 'site'
        client-cert = {{ names = 'alice', fingerprints = '{of_bob}' }}
        "
    );
    let server = start(place.path(), &configuration);
    let asks =
        ["localhost", "any.example", "some.example", "Some.Example.:443"].map(|host| Ask::get("/").of(host));
    let open = Ask::get("/open").of("any.example");
    let asks = [&asks[..], &[open]].concat();
    for (identity, name, expected) in [
        // 421: without a certificate, by a connection for another name. The client may have one for this name.
        (None, "localhost", [200, 421, 421, 421, 200]),
        (None, "any.example", [200, 403, 421, 421, 200]),
        (None, "some.example", [200, 421, 403, 403, 200]),
        (Some(&alice), "localhost", [200, 200, 200, 200, 200]),
        (Some(&alice), "some.example", [200, 200, 200, 200, 200]),
        (Some(&bob), "localhost", [200, 200, 200, 200, 200]),
        (Some(&carol), "localhost", [200, 200, 403, 403, 200]),
        (Some(&carol), "some.example", [200, 200, 403, 403, 200]),
    ] {
        let who = Who { name, identity: identity.cloned(), ..Who::default() };
        for (version, answers) in ["1.1", "2", "3"].iter().zip(ask_each(&who, server.port, &asks)) {
            let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
            assert_eq!(
                statuses,
                expected,
                "HTTP/{version} {name} with a certificate: {}",
                identity.is_some()
            );
        }
    }
    server.stop();
}

/// Deleted, a client could ask more often by another version of HTTP, or try passwords without end.
#[test]
fn a_client_is_answered_so_often_over_all_versions_together() {
    let place = folder(&[("site/index.html", "home")]);
    let configuration = format!(
        "
        [[site]]
        names = 'localhost'
        root = 'site'
        [[site.route]]
        path = '/six'
        respond = {{ body = 'six' }}
        rate-limit = {{ requests = 6, per = 'hour' }}
        [[site.route]]
        path = '/login'
        respond = {{ body = 'in' }}
        auth = {{ users = {{ alice = '{}' }} }}
        rate-limit = {{ requests = 1, per = 'hour', burst = 3 }}
        [[site.route]]
        path = '/quick'
        respond = {{ body = 'quick' }}
        rate-limit = {{ requests = 5, burst = 1 }}
        ",
        hash("secret")
    );
    let server = start(place.path(), &configuration);
    let statuses = |asks: &[Ask]| {
        ask_each(&Who::default(), server.port, asks)
            .map(|answers| answers.iter().map(|answer| answer.status).collect::<Vec<u16>>())
    };
    let six = vec![Ask::get("/six"); 3];
    assert_eq!(statuses(&six), [[200, 200, 200], [200, 200, 200], [429, 429, 429]]);
    for answer in ask_all(server.port, &Ask::get("/six")) {
        let wait: u64 = answer.field("retry-after").parse().expect("seconds");
        assert!(answer.status == 429 && (590..=600).contains(&wait), "{answer:?}");
    }
    let wrong = vec![signed("/login", "alice:guess"); 2];
    assert_eq!(statuses(&wrong), [[401, 401], [401, 429], [429, 429]]);
    assert_eq!(ask_all(server.port, &signed("/login", "alice:secret")).map(|answer| answer.status), [429; 3]);
    // Nothing of it concerns other routes; and a limit passes.
    let quick = vec![Ask::get("/quick"); 20];
    let all: Vec<u16> = statuses(&quick).concat();
    assert!(all.contains(&200) && all.contains(&429), "{all:?}");
    std::thread::sleep(std::time::Duration::from_millis(250));
    assert_eq!(http3::http3(server.port, &quick[..1])[0].status, 200);
    assert_eq!(ask_all(server.port, &Ask::get("/")).map(|answer| answer.status), [200; 3]);
    server.stop();
}

/// Deleted, clients behind one address could share a limit that is for each of their keys, by one version of HTTP.
#[test]
fn a_field_tells_clients_apart_over_all_versions() {
    let place = folder(&[("site/index.html", "home")]);
    let server = start(
        place.path(),
        "
        [[site]]
        names = 'localhost'
        root = 'site'
        rate-limit = { requests = 2, per = 'hour', by = 'field:X-Api-Key' }
        [[site.route]]
        path = '/address'
        respond = { status = 204 }
        rate-limit = { requests = 2, per = 'hour', by = 'address' }
        ",
    );
    let statuses = |ask: &Ask| ask_all(server.port, ask).map(|answer| answer.status);
    for key in ["one", "two", "One"] {
        assert_eq!(statuses(&Ask::get("/").with("x-api-key", key)), [200, 200, 429], "{key}");
    }
    // All values together, and those of no other field.
    let both = Ask::get("/").with("x-api-key", "one").with("x-api-key", "two");
    assert_eq!(statuses(&both), [200, 200, 429]);
    assert_eq!(statuses(&Ask::get("/").with("x-other", "one")), [200, 200, 429], "by address");
    assert_eq!(statuses(&Ask::get("/")), [429; 3]);
    assert_eq!(statuses(&Ask::get("/address").with("x-api-key", "one")), [204, 204, 429]);
    server.stop();
}

#[test]
fn a_password_that_is_none_gets_no_hash() {
    let place = folder(&[]);
    // Standard input is empty there.
    let output = run(place.path(), &["hash-password"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && output.stdout.is_empty() && said.contains("the password is empty"),
        "{said}"
    );
}
