//! Certificates that the server orders by itself, as an operator configures it.

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../../../acme/tests/authority/mod.rs"]
mod authority;

use crate::admin::get;
use crate::configuration::{folder, run};
use crate::server::{PROGRAM, Server};
use crate::sites::start;
use crate::tcp;
use authority::{Authority, Fault};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The folder of a server of `localhost` with an authority, and the text of its configuration.
fn configured(authority: &Authority, challenge: &str) -> (TempDir, String) {
    let place = folder(&[("site/index.html", "home"), ("root.pem", authority.root())]);
    let text = format!(
        "admin = 'localhost:0'\nstate-dir = 'state'\n\
         [acme]\nterms-agreed = true\ncontact = 'a@example.org'\ndirectory = '{}'\ntls-ca = 'root.pem'\n\
         challenge = '{challenge}'\n\
         [[site]]\nnames = ['localhost', '*']\nroot = 'site'\n",
        authority.directory()
    );
    (place, text)
}

/// Whether clients of each version that trust the authority are answered.
fn is_trusted(server: &Server, place: &Path) -> [bool; 3] {
    ["1", "2", "3"].map(|http| {
        let url = format!("https://localhost:{}/", server.port);
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", "60", PROGRAM, "get", "--discard", "--http", http, "--cacert"]);
        command.arg(place.join("root.pem")).arg(url).output().expect("it runs").status.success()
    })
}

/// The files of certificates in a state folder.
fn certificates(place: &Path) -> Vec<PathBuf> {
    let below = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    let authorities: Vec<PathBuf> = below(&place.join("state/acme")).collect();
    let files = authorities.iter().flat_map(|folder| below(folder));
    files.filter(|file| file.extension().is_some_and(|extension| extension == "pem")).collect()
}

/// Deleted, an operator could have a server without a certificate, one that waits for an authority before it serves, or one that orders
/// with each start.
#[test]
fn a_server_gets_its_certificate_by_itself_and_keeps_it() {
    for challenge in ["tls-alpn-01", "http-01"] {
        let authority = Authority::start();
        let (place, text) = configured(&authority, challenge);
        let server = start(place.path(), &text);
        // The authority waits with the proof: clients are answered, and do not trust what they are shown.
        assert_eq!(is_trusted(&server, place.path()), [false; 3], "{challenge}");
        assert_eq!(
            crate::http3::http3(server.port, &[crate::message::Ask::get("/")]).remove(0).content,
            b"home"
        );
        authority.plan(|plan| plan.port = Some(server.port));
        let said = server.wait_for(
            "said",
            ("tercel: acme: a certificate for localhost by localhost was issued, until ", 1),
        );
        assert!(said.contains("acme: authorities ask at port ") && said.contains(challenge), "{said}");
        assert_eq!(is_trusted(&server, place.path()), [true; 3], "{challenge}: {said}");
        let kept = certificates(place.path());
        let mode = fs::metadata(&kept[0]).expect("a file").permissions().mode() & 0o777;
        assert_eq!((kept.len(), mode, authority.issued()), (1, 0o600, 1));
        let (_, status) = get(&server, "/status");
        let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
        let order = &status["orders"]["all"][0];
        assert_eq!(
            (order["names"].as_str(), order["failures"].as_u64()),
            (Some("localhost"), Some(0)),
            "{status}"
        );
        assert_eq!(status["certificates"][0]["file"].as_str(), kept[0].to_str(), "{status}");
        let (_, metrics) = get(&server, "/metrics");
        assert!(metrics.contains("tercel_acme_orders_total{result=\"issued\"} 1\n"), "{metrics}");
        assert!(
            metrics.contains("tercel_acme_next_order_timestamp_seconds{names=\"localhost\"} "),
            "{metrics}"
        );
        // What the proof needed is over: plain text leads to https, and the protocol is not known.
        let plain = tcp::run(plain(server.port));
        assert!(plain.starts_with("HTTP/1.1 308 "), "{plain}");
        server.stop();
        let again = start(place.path(), &text);
        assert_eq!(is_trusted(&again, place.path()), [true; 3]);
        assert_eq!((authority.ordered(), authority.accounts()), (1, 1));
        again.stop();
    }
}

async fn plain(port: u16) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
    let request = b"GET /.well-known/acme-challenge/token0-0 HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(request).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

/// Deleted, a site that is added to a server that runs would have no certificate until a restart, and one that is mended would wait.
#[test]
fn a_reload_orders_what_is_new_and_what_has_failed() {
    let authority = Authority::start();
    let (place, text) = configured(&authority, "tls-alpn-01");
    let without = text.split("[acme]").next().expect("a part").to_owned();
    let mut server = start(place.path(), &format!("{without}[[site]]\nnames = '*'\nroot = 'site'\n"));
    authority.plan(|plan| (plan.port, plan.fault) = (Some(server.port), Some(Fault::Invalid)));
    fs::write(place.path().join("tercel.toml"), &text).expect("written");
    server.signal("HUP");
    let said = server.wait_for(
        "said",
        ("warning: acme: no certificate for localhost: localhost is not proven by tls-alpn-01: ", 1),
    );
    assert!(said.contains("; the next attempt is in 1"), "{said}");
    assert_eq!((is_trusted(&server, place.path()), authority.issued()), ([false; 3], 0));
    authority.plan(|plan| plan.fault = None);
    server.signal("HUP");
    server.wait_for("said", ("tercel: acme: a certificate for localhost by ", 1));
    assert_eq!(is_trusted(&server, place.path()), [true; 3]);
    // The process that takes the place of this one has it, too.
    server.upgrade();
    assert_eq!((is_trusted(&server, place.path()), authority.issued()), ([true; 3], 1));
    server.stop();
}

/// Deleted, `tercel check` could order certificates, or find no fault with what can never be certified.
#[test]
fn a_check_writes_nothing_and_asks_nobody() {
    let authority = Authority::start();
    let (place, text) = configured(&authority, "http-01");
    fs::write(place.path().join("tercel.toml"), &text).expect("written");
    let output = run(place.path(), &["check", "tercel.toml"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!place.path().join("state").exists() && authority.accounts() == 0);
    let output = run(place.path(), &["check", "tercel.toml"]);
    assert!(output.status.success());
    fs::write(place.path().join("tercel.toml"), format!("http = '3'\n{text}")).expect("written");
    let output = run(place.path(), &["check", "tercel.toml"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("authorities ask for proofs by TCP"), "{said}");
}
