//! What is no WebSocket over HTTP/2 and 3 is refused, and foreign clients have them. RFC 8441, RFC 9220.

use crate::configuration::folder;
use crate::http3::http3_or_reset;
use crate::message::Ask;
use crate::proxy::proxy;
use crate::raw;
use crate::server::Server;
use crate::sites::start;
use crate::tcp::run;
use crate::tunnel::{ALL, BOTH, PATIENCE, Version, open};
use crate::upstream::Upstream;
use crate::websocket::{echo, head, listen};
use crate::websocket_upstream::{End, agreeing};
use crate::websockets::FIELDS;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

fn line(name: &str, value: &str) -> (Vec<u8>, Vec<u8>) {
    (name.into(), value.into())
}

/// The head of an extended CONNECT.
fn connect(path: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    vec![
        line(":method", "CONNECT"),
        line(":protocol", "websocket"),
        line(":scheme", "https"),
        line(":authority", "localhost"),
        line(":path", path),
        line("sec-websocket-version", "13"),
    ]
}

/// What becomes of a request over HTTP/2 and 3: its status, or 0 if the stream was reset.
fn judged(server: &Server, lines: &[(Vec<u8>, Vec<u8>)]) -> [u16; 2] {
    let http2 = run(raw::http2(server.port, lines)).unwrap_or(0);
    let ask = Ask { lines: lines.to_vec(), ..Ask::get("/") };
    let answer = http3_or_reset(server.port, &[ask]).remove(0);
    let http3 = if answer.reset.is_empty() { answer.status } else { 0 };
    [http2, http3]
}

/// Deleted, a client could open a tunnel where none is, or have a response that is none taken for one.
#[test]
fn what_is_no_websocket_is_refused() {
    let upstream = Upstream::echo();
    let place = folder(&[("site/a.txt", "a"), ("site/index.html", "home")]);
    let configuration = format!(
        "
        [[site]]
        names = '*'
        root = 'site'
        [[site.route]]
        path = '/none'
        proxy = {{ to = '{url}' }}
        [[site.route]]
        path = '/off'
        proxy = {{ to = '{url}', upgrade = false }}
        [[site.route]]
        path = '/down'
        proxy = {{ to = 'http://127.0.0.1:1' }}
        [[site.route]]
        path = '/said'
        respond = {{ status = 200, body = 'ok' }}
        [[site.route]]
        path = '/gone'
        respond = {{ status = 410 }}
        [[site.route]]
        path = '/moved'
        redirect = {{ to = '/a.txt', status = 308 }}
        ",
        url = upstream.url(),
    );
    let server = start(place.path(), &configuration);
    let with = |name: &str, value: &str| {
        let mut lines = connect("/none");
        lines.iter_mut().filter(|line| line.0 == name.as_bytes()).for_each(|line| line.1 = value.into());
        judged(&server, &lines)
    };
    assert_eq!(with(":protocol", "connect-udp"), [501, 501], "RFC 9220 §3");
    assert_eq!(with(":protocol", "webtransport"), [501, 501]);
    for method in ["GET", "POST"] {
        assert_eq!(with(":method", method), [0, 0], ":protocol without CONNECT");
    }
    assert_eq!(with(":scheme", "ftp"), [421, 421]);
    for name in [":scheme", ":path", ":authority"] {
        let mut lines = connect("/none");
        lines.retain(|line| line.0 != name.as_bytes());
        let [http2, http3] = judged(&server, &lines);
        assert!(http2 == 0 || http2 == 400, "{name}: {http2}");
        assert_eq!(http3, 0, "{name}");
    }
    assert!(upstream.take().is_empty(), "nothing of that reaches an upstream");
    for (path, status) in [
        ("/a.txt", 405),
        ("/", 405),
        ("/missing", 405),
        ("/said", 405),
        ("/gone", 410),
        ("/moved", 308),
        ("/off", 501),
        ("/down", 502),
    ] {
        assert_eq!(judged(&server, &connect(path)), [status; 2], "{path}");
    }
    assert!(upstream.take().is_empty());
    // It answers a plain request by 200, which would open a tunnel.
    assert_eq!(judged(&server, &connect("/none")), [502; 2]);
    let heard = upstream.take();
    assert!(heard.len() == 2 && heard.iter().all(|heard| heard.field("upgrade") == "websocket"), "{heard:?}");
    let plain = vec![line(":method", "CONNECT"), line(":authority", "localhost:443")];
    assert_eq!(judged(&server, &plain), [400, 400], "no proxy for all");
    server.stop();
    // A server of a folder announces nothing, and knows no such request.
    let files = Server::start(&place.path().join("site"), &[]);
    assert_eq!(judged(&files, &connect("/a.txt")), [0; 2]);
    files.stop();
}

/// Deleted, a client could be told of a WebSocket that the upstream has not agreed to.
#[test]
fn a_refusal_by_the_upstream_is_the_clients_and_a_wrong_key_is_none() {
    const WRONG: &str =
        "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
    let url = listen(|mut stream| {
        let head = head(&mut stream);
        let text = match head.get(5..6) {
            Some("0") => "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\nx-why: so\r\n\r\nno".to_owned(),
            Some("1") => format!("HTTP/1.1 101 Switching Protocols\r\n{WRONG}\r\n"),
            Some("2") => {
                "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
                    .to_owned()
            }
            _ => "HTTP/1.1 426 Upgrade Required\r\nsec-websocket-version: 13\r\ncontent-length: 0\r\n\r\n"
                .to_owned(),
        };
        stream.write_all(text.as_bytes()).expect("sent");
        let _ = stream.read(&mut [0]);
    });
    let (_place, server) = proxy(&format!("to = '{url}', max-failures = 1000000"));
    for version in BOTH {
        let mut refused = open(version, server.port, "/0", (FIELDS, b"too early".to_vec()));
        assert_eq!((refused.status, refused.fields.get("x-why").map(String::as_str)), (403, Some("so")));
        refused.finish();
        assert_eq!(refused.rest(), b"no");
        for path in ["/1", "/2"] {
            let mut refused = open(version, server.port, path, (FIELDS, Vec::new()));
            refused.finish();
            assert_eq!((refused.status, refused.rest()), (502, b"sorry".to_vec()), "{path}");
        }
        let refused = open(version, server.port, "/3", (FIELDS, Vec::new()));
        assert_eq!((refused.status, refused.fields["sec-websocket-version"].as_str()), (426, "13"));
    }
    server.stop();
}

/// What a foreign client of tests/interop tells of WebSockets at `/chat`. `None`: there is none here.
fn foreign(script: &str, server: &Server) -> Option<serde_json::Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let python = root.join("target/tests/venv/bin/python");
    if !python.is_file() {
        requirements::missing("aioquic and h2 are not installed: tests/setup does that");
        return None;
    }
    let output = Command::new(python)
        .arg(root.join("tests/interop").join(script))
        .arg(format!("wss://localhost:{}/chat", server.port))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .output()
        .expect("Python starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = serde_json::from_str(&text);
    Some(told.unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr))))
}

/// Deleted, only our own client might understand the server.
#[test]
fn a_foreign_client_has_a_websocket_over_http3() {
    let (_place, server) = proxy(&format!("to = '{}'", listen(|stream| drop(echo(stream)))));
    let Some(told) = foreign("aioquic_websocket.py", &server) else { return };
    assert_eq!((&told["status"], &told["announced"]), (&200.into(), &true.into()), "{told}");
    assert_eq!((&told["echoed"], &told["ended"]), (&20.into(), &true.into()), "{told}");
    assert!(told["first"].as_str().expect("text").contains("via=3 tercel"), "{told}");
    server.stop();
}

/// Sends text back until the WebSocket ends, and returns how. `break off` has it broken off here.
fn chat(end: End) -> &'static str {
    let via = end.head.get("via").cloned().unwrap_or_default();
    let mut socket = WebSocket::from_raw_socket(end, Role::Server, None);
    socket.send(Message::text(via)).expect("sent");
    loop {
        match socket.read() {
            Ok(Message::Text(text)) if text.as_str() == "break off" => {
                thread::sleep(Duration::from_millis(200));
                socket.into_inner().break_off();
                return "broken off here";
            }
            Ok(message @ Message::Text(_)) => socket.send(message).expect("sent"),
            Ok(_) => {}
            Err(tungstenite::Error::ConnectionClosed) => return "closed",
            Err(_) => return "broken off",
        }
    }
}

/// Deleted, only our own client might understand the server over HTTP/2, or what one end breaks off look complete to the other.
#[test]
fn a_foreign_client_has_websockets_over_http2() {
    for version in ALL {
        let (heard, hears) = channel();
        let heard = Arc::new(Mutex::new(heard));
        let upstream = agreeing(version, move |end| {
            let how = chat(end);
            heard.lock().expect("no panic").send(how).expect("the test waits");
        });
        let (_place, server) = proxy(&upstream.keys);
        let Some(told) = foreign("h2_websocket.py", &server) else { return };
        let expected = serde_json::json!({
            "announced": true, "status": 200, "first": "2 tercel", "echoed": 20, "closed": true, "ended": true,
            "given_up": true, "reset": Version::Two.cancelled(), "again": 20,
        });
        assert_eq!(told, expected, "{version:?}");
        let mut ends: Vec<&str> = (0..4).map(|_| hears.recv_timeout(PATIENCE).expect("an end")).collect();
        ends.sort_unstable();
        assert_eq!(ends, ["broken off", "broken off here", "closed", "closed"], "{version:?}");
        server.stop();
    }
}
