//! What a running server takes from its files again, while connections and downloads go on.

use crate::configuration::folder;
use crate::http3;
use crate::leaving::Download;
use crate::message::Ask;
use crate::server::{PROGRAM, Server};
use crate::sites::{certificate, start};
use crate::tcp;
use std::path::Path;
use std::process::Command;
use tokio::io::{AsyncWriteExt as _, BufReader};

const SIZE: usize = 50_000_000;

fn configuration(pong: &str, more: &str) -> String {
    format!(
        "{more}\n[[site]]\nnames = '*'\nroot = 'site'\n\
         [[site.route]]\npath = '/ping'\nrespond = {{ body = '{pong}' }}\n"
    )
}

/// What all versions of HTTP answer for `/ping`.
fn pongs(server: &Server) -> [String; 3] {
    let asks = [Ask::get("/ping")];
    let of = |answers: Vec<crate::message::Answer>| {
        String::from_utf8_lossy(answers.first().map_or(b"", |answer| &answer.content)).into_owned()
    };
    [
        of(tcp::run(tcp::http1(server.port, &asks))),
        of(tcp::run(tcp::http2(server.port, &asks))),
        of(http3::http3(server.port, &asks)),
    ]
}

/// Deleted, a change of a route could cost a restart, or cut what is under way.
#[test]
fn sighup_replaces_routes_and_cuts_nothing() {
    let place = folder(&[]);
    std::fs::create_dir(place.path().join("site")).expect("made");
    std::fs::write(place.path().join("site/big"), vec![b'x'; SIZE]).expect("written");
    let server = start(place.path(), &configuration("one", ""));
    let write = |text: &str| std::fs::write(place.path().join("tercel.toml"), text).expect("written");
    assert_eq!(pongs(&server), ["one"; 3]);
    let mut download = Download::start(&server, "/big");
    tcp::run(async {
        let mut kept = BufReader::new(tcp::connect(server.port, "http/1.1").await);
        let mut pong = async || {
            kept.write_all(b"GET /ping HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("taken");
            kept.flush().await.expect("sent");
            String::from_utf8(tcp::read_answer(&mut kept, "GET").await.content).expect("text")
        };
        assert_eq!(pong().await, "one");
        write(&configuration("two", "workers = 2\nmax-connections = 9"));
        server.signal("HUP");
        let said = server.wait_for("said", ("tercel: reloaded: ", 1));
        assert_eq!(pong().await, "two", "the connection goes on");
        server.wait_for("said", ("with a restart only: ", 1));
        assert!(!said.contains("\"listen\""), "what was typed wins as before: {said}");
    });
    let said = server.wait_for("said", ("\"workers\"", 1));
    assert!(said.contains("\"max-connections\""), "{said}");
    assert_eq!(pongs(&server), ["two"; 3]);
    // A file with a mistake changes nothing.
    write(&configuration("three", "").replace("respond", "respnd"));
    server.signal("HUP");
    let said = server.wait_for("said", ("nothing is reloaded", 1));
    assert!(
        said.contains("tercel.toml:7:1: there is no key \"respnd\": did you mean \"respond\"?"),
        "{said}"
    );
    assert_eq!(pongs(&server), ["two"; 3]);
    // One without sites, too.
    write("");
    server.signal("HUP");
    server.wait_for("said", ("needs a restart to serve without them", 1));
    assert_eq!(pongs(&server), ["two"; 3]);
    assert_eq!(download.finish(), (SIZE, true));
    server.stop();
}

/// Whether a client of HTTP/3 that trusts this certificate alone is content.
fn is_shown(server: &Server, certificate: &Path) -> bool {
    let url = format!("https://localhost:{}/bytes/10", server.port);
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", "60", PROGRAM, "get", "--discard", "--cacert"]).arg(certificate).arg(url);
    command.output().expect("it runs").status.success()
}

/// Deleted, a certificate that was renewed could be shown after a restart only, and the old one until it has expired.
#[test]
fn certificates_are_loaded_again_by_sighup_and_when_their_files_change() {
    let place = folder(&[]);
    let file = |name: &str| place.path().join(name);
    let make = |stem: &str| certificate(place.path(), stem, &["localhost"], &rcgen::PKCS_ECDSA_P256_SHA256);
    let renew = |stem: &str| {
        std::fs::copy(file(&format!("{stem}.key")), file("key.pem")).expect("copied");
        std::fs::copy(file(&format!("{stem}.crt")), file("cert.pem")).expect("copied");
    };
    let made = ["one", "two", "three"].map(make);
    let shown = |server: &Server| {
        let schemes = vec![rustls::SignatureScheme::ECDSA_NISTP256_SHA256];
        let certificate = tcp::run(tcp::shown(server.port, "localhost", schemes));
        made.iter().position(|of| *of == certificate)
    };
    renew("one");
    let (certificate, key) = (file("cert.pem"), file("key.pem"));
    let words = ["--cert", certificate.to_str().expect("text"), "--key", key.to_str().expect("text")];
    let server = Server::start_without_root(&words);
    assert!(shown(&server) == Some(0) && is_shown(&server, &file("one.crt")));
    renew("two");
    server.signal("HUP");
    server.wait_for("said", ("tercel: reloaded: new requests", 1));
    assert!(shown(&server) == Some(1) && is_shown(&server, &file("two.crt")));
    assert!(!is_shown(&server, &file("one.crt")));
    // A pair that does not match is told, and the one in use stays.
    std::fs::copy(file("three.key"), &key).expect("copied");
    server.signal("HUP");
    server.wait_for("said", ("nothing is reloaded", 1));
    assert_eq!(shown(&server), Some(1));
    renew("three");
    server.wait_for("said", ("reloaded: certificates, whose files have changed", 1));
    assert!(shown(&server) == Some(2) && is_shown(&server, &file("three.crt")));
    server.stop();
}
