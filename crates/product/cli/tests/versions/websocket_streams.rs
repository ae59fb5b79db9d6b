//! WebSockets over HTTP/2 and 3 through the proxy: an extended CONNECT on a stream, and HTTP/1.1's Upgrade at the upstream. RFC 8441, RFC
//! 9220. What passes by is what passes over HTTP/1.1 (websocket.rs).

use crate::configuration::folder;
use crate::http3::http3_or_reset;
use crate::message::Ask;
use crate::proxy::{proxy, proxy_with};
use crate::raw;
use crate::server::Server;
use crate::sites::start;
use crate::tcp::run;
use crate::tunnel::{BOTH, Tunnel, Version, open};
use crate::upstream::Upstream;
use crate::websocket::{PATIENCE, echo, head, listen, listen_by_tls};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tokio::time::Instant;
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

const FIELDS: &[(&str, &str)] = &[("sec-websocket-version", "13"), ("origin", "https://localhost")];

/// Speaks a protocol without messages by the name of WebSocket; `serve` is called after the 101.
fn agreeing(serve: impl Fn(TcpStream) + Clone + Send + 'static) -> String {
    listen(move |mut stream| {
        let agreed = agreement(&head(&mut stream));
        stream.write_all(&agreed).expect("sent");
        serve(stream);
    })
}

/// The response 101 to a request by `head`, which is as RFC 6455 §4.1 has it.
fn agreement(head: &str) -> Vec<u8> {
    assert!(head.starts_with("GET /"), "{head}");
    assert!(head.contains("upgrade: websocket\r\n") && head.contains("connection: upgrade\r\n"), "{head}");
    assert!(head.contains("sec-websocket-version: 13\r\n"), "{head}");
    let mut keys = head.lines().filter_map(|line| line.strip_prefix("sec-websocket-key: "));
    let (Some(key), None) = (keys.next(), keys.next()) else { panic!("one key: {head}") };
    let accept = derive_accept_key(key.as_bytes());
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {accept}\r\n\r\n"
    )
    .into_bytes()
}

fn tunnel(version: Version, server: &Server) -> Tunnel {
    let tunnel = open(version, server.port, "/raw", (FIELDS, Vec::new()));
    assert_eq!(tunnel.status, 200, "{tunnel:?}");
    tunnel
}

/// Deleted, no WebSocket could pass over HTTP/2 or 3, or one could differ by what is behind the server.
#[test]
fn messages_go_both_ways_to_each_kind_of_upstream() {
    let (by_tls, certificate) = listen_by_tls();
    let place = folder(&[("site/index.html", "home"), ("ca.pem", &certificate)]);
    let listener = UnixListener::bind(place.path().join("app.sock")).expect("a socket");
    thread::spawn(move || listener.incoming().flatten().for_each(|stream| drop(echo(stream))));
    let configuration = format!(
        "
        [[site]]
        names = '*'
        root = 'site'
        [[site.route]]
        path = '/tcp'
        methods = ['GET']
        proxy = {{ to = '{}' }}
        headers = {{ set = {{ x-route = 'tcp' }} }}
        [[site.route]]
        path = '/tls'
        proxy = {{ to = '{by_tls}', tls-ca = 'ca.pem' }}
        [[site.route]]
        path = '/socket'
        proxy = {{ to = 'unix:app.sock' }}
        ",
        listen(|stream| drop(echo(stream))),
    );
    let server = start(place.path(), &configuration);
    for (version, path) in
        BOTH.into_iter().flat_map(|version| ["/tcp", "/tls", "/socket"].map(|path| (version, path)))
    {
        let tunnel = open(version, server.port, path, (FIELDS, Vec::new()));
        assert_eq!(tunnel.status, 200);
        for absent in ["content-length", "connection", "upgrade", "sec-websocket-accept", "sec-websocket-key"]
        {
            assert!(!tunnel.fields.contains_key(absent), "{absent}: {tunnel:?}");
        }
        assert!(tunnel.fields.contains_key("date"), "{tunnel:?}");
        assert_eq!(tunnel.fields.contains_key("x-route"), path == "/tcp");
        let mut socket = WebSocket::from_raw_socket(tunnel, Role::Client, None);
        let told = socket.read().expect("a message").into_text().expect("text");
        let expected = format!(
            "host=localhost:{};x-forwarded-for=127.0.0.1;x-forwarded-proto=https;via={} tercel;cookie=;connection=upgrade;upgrade=websocket;",
            server.port,
            version.digit()
        );
        assert_eq!(told.as_str(), expected);
        for length in [0, 1, 125, 126, 65_535, 65_536, 3_000_000] {
            let bytes: Vec<u8> = base::pattern::at(0).iter().cycle().take(length).copied().collect();
            let message = Message::binary(bytes);
            socket.send(message.clone()).expect("sent");
            assert!(socket.read().expect("a message") == message, "{length} bytes");
        }
        socket.send(Message::Ping("p".into())).expect("sent");
        assert_eq!(socket.read().expect("a pong"), Message::Pong("p".into()));
        socket.close(None).expect("sent");
        assert!(matches!(socket.read(), Ok(Message::Close(_))));
        socket.get_ref().finish();
        assert_eq!(socket.get_mut().rest(), b"", "the stream ends well");
    }
    let (_, log) = server.stop();
    for version in BOTH {
        let line = format!("\"CONNECT /tls HTTP/{}.0\" 200 ", version.digit()).replace(".0\"", "\"");
        let is_logged = log.lines().any(|it| it.replace(".0\"", "\"").contains(&line));
        assert!(is_logged, "{line}: {log}");
    }
}

/// Deleted, a slow end could fill the server's memory, or bytes be lost when it goes on.
#[test]
fn a_slow_end_holds_back_the_other() {
    const MUCH: usize = 64 << 20;
    for version in BOTH {
        let (go, wait) = channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        let url = agreeing(move |mut stream| {
            wait.lock().expect("no panic").recv().expect("a word");
            let read =
                io::copy(&mut Read::by_ref(&mut stream).take(MUCH as u64), &mut io::sink()).expect("read");
            stream.write_all(&read.to_be_bytes()).expect("sent");
            stream.set_nonblocking(true).expect("set");
            let (piece, mut sent, began) = (vec![7; 1 << 16], 0_u64, Instant::now());
            let mut idle = Duration::ZERO;
            while idle < Duration::from_secs(1) && began.elapsed() < Duration::from_secs(10) {
                match stream.write(&piece) {
                    Ok(bytes) => (sent, idle) = (sent + bytes as u64, Duration::ZERO),
                    Err(_) => {
                        thread::sleep(Duration::from_millis(10));
                        idle += Duration::from_millis(10);
                    }
                }
            }
            assert!(sent < MUCH as u64, "{sent} bytes are somewhere");
            let _ = stream.shutdown(Shutdown::Write);
            wait.lock().expect("no panic").recv().expect("a word");
        });
        let (_place, server) = proxy(&format!("to = '{url}'"));
        let mut stream = tunnel(version, &server);
        stream.write_timeout(Duration::from_secs(1));
        let piece = vec![7; 1 << 16];
        let (mut sent, began) = (0, Instant::now());
        while began.elapsed() < Duration::from_secs(5)
            && let Ok(bytes) = stream.write(&piece)
        {
            sent += bytes;
            assert!(sent < MUCH, "{sent} bytes are somewhere");
        }
        go.send(()).expect("the upstream waits");
        stream.write_timeout(PATIENCE);
        stream.write_all(&vec![7; MUCH - sent]).expect("sent");
        let mut read = [0; 8];
        stream.read_exact(&mut read).expect("a number");
        assert_eq!(u64::from_be_bytes(read), MUCH as u64);
        thread::sleep(Duration::from_secs(3));
        let all = stream.rest();
        assert!(all.len() > 100_000 && all.iter().all(|byte| *byte == 7), "{}", all.len());
        go.send(()).expect("the upstream waits");
        server.stop();
    }
}

/// Deleted, the last words of one end could be lost when the other has said all.
#[test]
fn each_direction_has_its_own_end() {
    for version in BOTH {
        let url = agreeing(|mut stream| {
            let mut all = Vec::new();
            stream.read_to_end(&mut all).expect("the end");
            thread::sleep(Duration::from_millis(200));
            all.reverse();
            stream.write_all(&all).expect("sent");
        });
        let (_place, server) = proxy(&format!("to = '{url}'"));
        let mut stream = tunnel(version, &server);
        stream.write_all(b"abc").expect("sent");
        stream.finish();
        assert_eq!(stream.rest(), b"cba");
        // All that is said comes with the request, or nothing is.
        for early in [&b"early"[..], b""] {
            let mut stream = open(version, server.port, "/raw", (FIELDS, early.to_vec()));
            stream.finish();
            let expected: Vec<u8> = early.iter().rev().copied().collect();
            assert_eq!(stream.rest(), expected);
        }
        server.stop();
        // The upstream has said all first.
        let (heard, hears) = channel();
        let heard = Arc::new(Mutex::new(heard));
        let url = agreeing(move |mut stream| {
            stream.write_all(b"all").expect("sent");
            stream.shutdown(Shutdown::Write).expect("the end");
            let mut all = Vec::new();
            stream.read_to_end(&mut all).expect("the end");
            heard.lock().expect("no panic").send(all).expect("the test waits");
        });
        let (_place, server) = proxy(&format!("to = '{url}'"));
        let mut stream = tunnel(version, &server);
        assert_eq!(stream.rest(), b"all");
        stream.write_all(b"later").expect("sent");
        stream.finish();
        assert_eq!(hears.recv_timeout(PATIENCE).expect("bytes"), b"later", "{version:?}");
        server.stop();
    }
}

/// The upstream tells when a connection is over, and what came on it.
fn watched() -> (String, Receiver<Vec<u8>>) {
    let (heard, hears) = channel();
    let heard = Arc::new(Mutex::new(heard));
    let url = agreeing(move |mut stream| {
        stream.write_all(b"hello").expect("sent");
        let mut all = Vec::new();
        let mut piece = [0; 100];
        while let Ok(bytes @ 1..) = stream.read(&mut piece) {
            all.extend_from_slice(&piece[..bytes]);
        }
        heard.lock().expect("no panic").send(all).expect("the test waits");
    });
    (url, hears)
}

fn hello(stream: &mut Tunnel) {
    let mut hello = [0; 5];
    stream.read_exact(&mut hello).expect("a word");
    assert_eq!(&hello, b"hello");
}

/// Deleted, connections without use could stay for ever, or those in use be cut.
#[test]
fn a_tunnel_at_rest_ends_and_one_in_use_does_not() {
    for version in BOTH {
        let (url, ends) = watched();
        let (_place, server) = proxy(&format!("to = '{url}', tunnel-timeout = 2"));
        let mut stream = tunnel(version, &server);
        hello(&mut stream);
        let began = Instant::now();
        for _ in 0..8 {
            thread::sleep(Duration::from_millis(500));
            stream.write_all(b"x").expect("sent");
        }
        assert!(began.elapsed() > Duration::from_secs(3) && ends.try_recv().is_err());
        assert_eq!(stream.broken(), version.cancelled(), "it was cut");
        assert!(began.elapsed() > Duration::from_millis(5_500) && began.elapsed() < Duration::from_secs(20));
        assert_eq!(ends.recv_timeout(PATIENCE).expect("the end"), b"xxxxxxxx");
        server.stop();
    }
}

/// Deleted, a tunnel that says nothing could be cut by the rules for requests and for idle connections.
#[test]
fn a_quiet_tunnel_outlives_the_idle_timeout_of_its_connection() {
    let (url, ends) = watched();
    let (_place, server) = proxy_with(&format!("to = '{url}'"), "idle-timeout = 2");
    let mut streams = BOTH.map(|version| tunnel(version, &server));
    streams.iter_mut().for_each(hello);
    thread::sleep(Duration::from_secs(7));
    assert!(ends.try_recv().is_err(), "both are there");
    for stream in &mut streams {
        stream.write_all(b"still").expect("sent");
        stream.finish();
        assert_eq!(stream.rest(), b"");
        assert_eq!(ends.recv_timeout(PATIENCE).expect("the end"), b"still");
    }
    server.stop();
}

/// Deleted, a client that has gone could leave its connection to the upstream behind, or a stream look complete that broke off.
#[test]
fn an_end_that_breaks_off_ends_the_other() {
    for version in BOTH {
        let (url, ends) = watched();
        let (_place, server) = proxy(&format!("to = '{url}'"));
        let mut stream = tunnel(version, &server);
        hello(&mut stream);
        stream.reset();
        assert_eq!(ends.recv_timeout(PATIENCE).expect("the end"), b"", "{version:?}");
        // The connection is lost.
        let mut stream = tunnel(version, &server);
        hello(&mut stream);
        drop(stream);
        assert_eq!(ends.recv_timeout(PATIENCE).expect("the end"), b"", "{version:?}");
        server.stop();
        let url = agreeing(|mut stream| {
            stream.write_all(b"hello").expect("sent");
            thread::sleep(Duration::from_millis(200));
            // Bytes that are not read make the end a reset.
            stream.read_exact(&mut [0]).expect("a byte");
        });
        let (_place, server) = proxy(&format!("to = '{url}'"));
        let mut stream = tunnel(version, &server);
        hello(&mut stream);
        stream.write_all(&[1; 10_000]).expect("sent");
        assert_eq!(stream.broken(), version.cancelled());
        server.wait_for("said", ("the connection broke off", 1));
        server.stop();
    }
}

/// Deleted, a reload could cut tunnels, or a server that ends wait for them without end.
#[test]
fn a_reload_cuts_nothing_and_the_end_of_the_server_ends_it() {
    for version in BOTH {
        let (url, ends) = watched();
        let (_place, mut server) = proxy(&format!("to = '{url}'"));
        let mut stream = tunnel(version, &server);
        hello(&mut stream);
        server.signal("HUP");
        server.wait_for("said", ("tercel: reloaded", 1));
        stream.write_all(b"after").expect("sent");
        thread::sleep(Duration::from_millis(200));
        let began = Instant::now();
        server.ask_to_end();
        assert_eq!(stream.rest(), b"", "the stream ends well");
        assert_eq!(ends.recv_timeout(PATIENCE).expect("the end"), b"after");
        assert!(server.wait().success());
        assert!(began.elapsed() < Duration::from_secs(20), "{version:?}: {:?}", began.elapsed());
    }
}

/// Deleted, an upgrade could cut tunnels, or the old process stay when the last of them is over.
#[test]
fn what_is_open_at_an_upgrade_goes_on_in_the_old_process_to_its_end() {
    for version in BOTH {
        let (url, ends) = watched();
        let (_place, mut server) = proxy(&format!("to = '{url}'"));
        let mut first = tunnel(version, &server);
        hello(&mut first);
        first.write_all(b"a").expect("sent");
        server.upgrade();
        first.write_all(b"b").expect("sent");
        // The new process has its own.
        let mut second = tunnel(version, &server);
        hello(&mut second);
        thread::sleep(Duration::from_millis(1_500));
        first.write_all(b"c").expect("sent");
        thread::sleep(Duration::from_millis(200));
        assert!(ends.try_recv().is_err(), "both go on");
        first.finish();
        assert_eq!(first.rest(), b"");
        assert_eq!(ends.recv_timeout(PATIENCE).expect("the end"), b"abc");
        assert!(server.wait().success(), "the first process has nothing left");
        second.write_all(b"x").expect("sent");
        second.finish();
        assert_eq!(second.rest(), b"");
        assert_eq!(ends.recv_timeout(PATIENCE).expect("the end"), b"x");
        server.stop();
    }
}

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

/// Deleted, what a client sends before the upstream has agreed could be lost, or reach it before that.
#[test]
fn what_a_client_sends_too_early_waits_for_the_upstream() {
    let url = listen(|mut stream| {
        let head = head(&mut stream);
        stream.set_read_timeout(Some(Duration::from_millis(500))).expect("a timeout");
        assert!(stream.read(&mut [0]).is_err(), "nothing comes before it has agreed");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.write_all(&agreement(&head)).expect("sent");
        let mut early = [0; 200_000];
        stream.read_exact(&mut early).expect("all of it");
        let is_whole = early.iter().all(|byte| *byte == b'e');
        stream.write_all(if is_whole { b"hello" } else { b"wrong" }).expect("sent");
    });
    let (_place, server) = proxy(&format!("to = '{url}'"));
    for version in BOTH {
        let mut stream = open(version, server.port, "/raw", (FIELDS, vec![b'e'; 200_000]));
        hello(&mut stream);
    }
    server.stop();
}

/// Deleted, only our own client might understand the server.
#[test]
fn a_foreign_client_has_a_websocket_over_http3() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let python = root.join("target/tests/venv/bin/python");
    if !python.is_file() {
        return requirements::missing("aioquic is not installed: tests/setup does that");
    }
    let (_place, server) = proxy(&format!("to = '{}'", listen(|stream| drop(echo(stream)))));
    let output = Command::new(python)
        .arg(root.join("tests/interop/aioquic_websocket.py"))
        .arg(format!("wss://localhost:{}/chat", server.port))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .output()
        .expect("aioquic starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let told: serde_json::Value = serde_json::from_str(&text)
        .unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!((&told["status"], &told["announced"]), (&200.into(), &true.into()), "{told}");
    assert_eq!((&told["echoed"], &told["ended"]), (&20.into(), &true.into()), "{told}");
    assert!(told["first"].as_str().expect("text").contains("via=3 tercel"), "{told}");
    server.stop();
}
