//! `tercel reload`, as operators and their scripts run it, and who else may ask for a reload.

use crate::admin::ask;
use crate::configuration::{folder, run};
use crate::message::Ask;
use crate::server::Server;
use crate::site;
use crate::sites::{ask_all, start};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Output;

fn configuration(admin: &str, pong: &str, more: &str) -> String {
    format!(
        "admin = '{admin}'\n{more}\n[[site]]\nnames = '*'\nroot = 'site'\n\
         [[site.route]]\npath = '/ping'\nrespond = {{ body = '{pong}' }}\n"
    )
}

fn said(output: &Output) -> (String, String, Option<i32>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

/// Deleted, a script could take a reload for done that was refused, or its operator look for the reason in a journal.
#[test]
fn an_operator_is_told_whether_the_file_was_taken_and_what_is_wrong_with_it() {
    let place = folder(&[("site/index.html", "")]);
    let socket = place.path().join("admin.sock");
    let address = format!("unix:{}", socket.display());
    for at in ["localhost:0", &address] {
        let server = start(place.path(), &configuration(at, "one", ""));
        let write = |text: &str| std::fs::write(place.path().join("tercel.toml"), text).expect("written");
        let admin = server.ready["admin"].as_str().expect("an address").to_owned();
        let reload =
            |more: &[&str]| said(&run(place.path(), &[&["reload", "--admin", &admin], more].concat()));
        let pongs = || {
            let answers = ask_all(server.port, &Ask::get("/ping"));
            answers.map(|answer| String::from_utf8(answer.content).expect("text"))
        };
        write(&configuration(at, "two", ""));
        let done = "reloaded: new requests and handshakes go by what the files say now\n";
        assert_eq!(reload(&[]), (done.to_owned(), String::new(), Some(0)));
        assert_eq!(pongs(), ["two"; 3], "the command returns when it is done");
        write(&configuration(at, "three", "workers = 2"));
        let warning = "tercel: warning: these take effect with a restart only: \"workers\"\n";
        assert_eq!(reload(&[]), (done.to_owned(), warning.to_owned(), Some(0)));
        let (json, _, code) = reload(&["--json"]);
        let json: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!((json, code), (json!({ "reloaded": true, "with_restart": ["workers"] }), Some(0)));
        // The same words as those of the check, and nothing changes.
        write(&configuration(at, "four", "").replace("respond", "respnd"));
        let file = place.path().join("tercel.toml");
        let (_, checked, _) = said(&run(place.path(), &["check", file.to_str().expect("text")]));
        assert!(checked.contains("tercel.toml:8:1: there is no key \"respnd\": did you mean \"respond\"?"));
        let kept = "tercel: nothing is reloaded, and what was in use stays\n";
        assert_eq!(reload(&[]), (String::new(), format!("{checked}{kept}"), Some(1)));
        let (json, error, code) = reload(&["--json"]);
        let json: Value = serde_json::from_str(&json).expect("JSON");
        let fault = checked.trim_end().strip_prefix("tercel: ");
        assert_eq!((&json["reloaded"], json["fault"].as_str()), (&Value::Bool(false), fault));
        assert_eq!((error.as_str(), code), ("", Some(1)));
        assert_eq!(pongs(), ["three"; 3]);
        let told = server.wait_for("said", ("nothing is reloaded", 2));
        assert!(told.contains("tercel.toml:8:1: "), "the journal has it, too: {told}");
        server.stop();
    }
}

#[test]
fn an_operator_is_told_what_to_do_where_nothing_can_be_asked() {
    let place = folder(&[]);
    let nowhere = format!("unix:{}", place.path().join("none.sock").display());
    let (_, error, code) = said(&run(place.path(), &["reload", "--admin", &nowhere]));
    assert!(
        error.starts_with(&format!("tercel: no server answers at {nowhere}: say with --admin where")),
        "{error}"
    );
    assert!(error.contains("(admin = 9433)") && error.contains("kill -HUP PID"), "{error}");
    assert_eq!(code, Some(1));
    // Where other machines can ask no one may, and another program is no tercel.
    let root = site();
    let server = Server::start(root.path(), &["--admin", "0.0.0.0:0"]);
    let port = server.ready["admin"].as_str().and_then(|at| at.rsplit(':').next()).expect("a port");
    let (_, error, code) = said(&run(place.path(), &["reload", "--admin", port]));
    let expected = format!("tercel: no reload by 127.0.0.1:{port}: other machines reach this admin address");
    assert!(error.starts_with(&expected) && error.contains("kill -HUP PID"), "{error}");
    assert_eq!(code, Some(1));
    assert!(!server.wait_for("said", ("is open to other machines", 1)).contains("reloaded"));
    server.stop();
}

/// The status of the answer to a request with these lines.
fn status(address: &str, lines: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.write_all(format!("{lines}\r\nconnection: close\r\n\r\n").as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer.split(' ').nth(1).expect("a status").to_owned()
}

/// Deleted, a page that an operator looks at could reload the server, or a robot that follows links.
#[test]
fn pages_and_links_have_nothing_reloaded() {
    let root = site();
    let server = Server::start(root.path(), &["--admin", "localhost:0"]);
    let address = server.ready["admin"].as_str().expect("an address");
    for (lines, expected) in [
        ("GET /reload HTTP/1.1\r\nhost: localhost", "405"),
        ("HEAD /reload HTTP/1.1\r\nhost: localhost", "405"),
        ("OPTIONS /reload HTTP/1.1\r\nhost: localhost\r\norigin: http://a.org", "405"),
        ("POST /reload HTTP/1.1\r\nhost: localhost\r\norigin: http://a.org\r\ncontent-length: 0", "403"),
        ("POST /reload HTTP/1.1\r\nhost: a.org\r\ncontent-length: 0", "403"),
        ("POST /status HTTP/1.1\r\nhost: localhost", "405"),
    ] {
        assert_eq!(status(address, lines), expected, "{lines}");
    }
    let text = std::fs::read_to_string(server.file("said")).expect("a file");
    assert!(!text.contains("reloaded"), "{text}");
    assert_eq!(status(address, "POST /reload HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0"), "200");
    server.wait_for("said", ("tercel: reloaded: ", 1));
    server.stop();
}

/// Deleted, an operator who asks the process that serves could reach the one that ends, after an upgrade.
#[test]
fn the_process_that_serves_is_asked_after_an_upgrade() {
    let place = folder(&[("site/index.html", "")]);
    let socket = place.path().join("admin.sock");
    let address = format!("unix:{}", socket.display());
    let mut server = start(place.path(), &configuration(&address, "one", ""));
    server.upgrade();
    write_and_reload(place.path(), &configuration(&address, "two", ""), &address);
    let (_, json) = ask(UnixStream::connect(&socket).expect("a connection"), "GET", "/status");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["reloads"]["succeeded"], 1);
    let answers = ask_all(server.port, &Ask::get("/ping"));
    assert_eq!(answers.map(|answer| answer.content), [b"two"; 3]);
    server.stop();
}

fn write_and_reload(place: &Path, text: &str, address: &str) {
    std::fs::write(place.join("tercel.toml"), text).expect("written");
    let output = run(place, &["reload", "--admin", address]);
    assert!(output.status.success(), "{output:?}");
}
