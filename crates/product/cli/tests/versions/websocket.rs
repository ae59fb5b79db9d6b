//! Other protocols than HTTP through the proxy, such as WebSocket: with tungstenite at both ends, and by hand what is hostile.

use crate::configuration::folder;
use crate::message::Who;
use crate::proxy::{proxy, proxy_with};
use crate::server::Server;
use crate::sites::start;
use crate::upstream::Upstream;
use crypto::Roots;
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConnection, ServerConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tokio::time::Instant;
use tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tungstenite::{Message, WebSocket, accept_hdr};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Asks for a protocol that has no messages.
pub(crate) const RAW: &str =
    "GET /raw HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: raw\r\n\r\n";
const AGREED: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: raw\r\n\r\n";

pub(crate) type Client = StreamOwned<ClientConnection, TcpStream>;

/// A connection of HTTP/1.1.
pub(crate) fn connect(port: u16) -> Client {
    let config =
        crypto::tcp_client(&Roots::Insecure, &Who::default().tls("http/1.1")).expect("a configuration");
    let socket = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    socket.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    socket.set_nodelay(true).expect("no delay");
    let name = ServerName::try_from("localhost").expect("a name");
    StreamOwned::new(ClientConnection::new(config, name).expect("TLS"), socket)
}

fn websocket(port: u16, path: &str) -> (WebSocket<Client>, http::Response<Option<Vec<u8>>>) {
    let url = format!("wss://localhost:{port}{path}");
    tungstenite::client(url, connect(port)).expect("a handshake")
}

/// The next head.
pub(crate) fn head(stream: &mut impl Read) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    String::from_utf8(head).expect("text")
}

/// A server for connections. It ends with the test's process.
pub(crate) fn listen(serve: impl Fn(TcpStream) + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            stream.set_nodelay(true).expect("no delay");
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    format!("http://127.0.0.1:{port}")
}

/// One that speaks a protocol without messages; `serve` is called after the 101.
fn raw(serve: impl Fn(TcpStream) + Clone + Send + 'static) -> String {
    listen(move |mut stream| {
        let head = head(&mut stream);
        assert!(head.contains("upgrade: raw\r\n") && head.contains("connection: upgrade\r\n"), "{head}");
        stream.write_all(AGREED).expect("sent");
        serve(stream);
    })
}

/// A connection on which the protocol without messages is spoken.
fn switched(server: &Server) -> Client {
    let mut stream = connect(server.port);
    stream.write_all(RAW.as_bytes()).expect("sent");
    let head = head(&mut stream);
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("upgrade: raw\r\n"), "{head}");
    stream
}

/// Sends back what comes, with the fields of the request that are told of the client. Returns the stream at the end.
pub(crate) fn echo<S: Read + Write>(stream: S) -> Option<S> {
    let mut told = String::new();
    #[expect(clippy::result_large_err, reason = "tungstenite says so")]
    let on_request = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        for name in ["host", "x-forwarded-for", "x-forwarded-proto", "via", "cookie", "connection", "upgrade"]
        {
            let value = request.headers().get(name).map_or("", |value| value.to_str().expect("text"));
            told += &format!("{name}={value};");
        }
        Ok(response)
    };
    let mut socket = accept_hdr(stream, on_request).ok()?;
    let _ = socket.send(Message::text(told));
    while let Ok(message) = socket.read() {
        if message.is_text() || message.is_binary() {
            let _ = socket.send(message);
        }
    }
    Some(socket.into_inner())
}

/// A server of WebSocket over TLS that would rather speak HTTP/2, with its certificate.
pub(crate) fn listen_by_tls() -> (String, String) {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let der = PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()).into();
    let config = rustls::ServerConfig::builder().with_no_client_auth();
    let mut config = config.with_single_cert(vec![key.cert.der().clone()], der).expect("a configuration");
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let config = Arc::new(config);
    let url = listen(move |stream| {
        let session = ServerConnection::new(Arc::clone(&config)).expect("TLS");
        let mut stream = echo(StreamOwned::new(session, stream)).expect("a handshake");
        stream.conn.send_close_notify();
        let _ = stream.flush();
    });
    (url.replace("http://127.0.0.1", "https://localhost"), key.cert.pem())
}

/// Deleted, no WebSocket could pass, or one could differ by what is behind the server.
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
    for path in ["/tcp", "/tls", "/socket"] {
        let (mut socket, response) = websocket(server.port, path);
        assert_eq!(response.status(), 101);
        assert!(
            response.headers().contains_key("date") && !response.headers().contains_key("content-length")
        );
        assert_eq!(response.headers().contains_key("x-route"), path == "/tcp");
        let told = socket.read().expect("a message").into_text().expect("text");
        let expected = format!(
            "host=localhost:{};x-forwarded-for=127.0.0.1;x-forwarded-proto=https;via=1.1 tercel;cookie=;connection=upgrade;upgrade=websocket;",
            server.port
        );
        assert_eq!(told.as_str(), expected);
        for length in [0, 1, 125, 126, 65_535, 65_536, 3_000_000] {
            let message = Message::binary(
                base::pattern::at(0).iter().cycle().take(length).copied().collect::<Vec<u8>>(),
            );
            socket.send(message.clone()).expect("sent");
            assert!(socket.read().expect("a message") == message, "{length} bytes");
        }
        for number in 0..200 {
            socket.send(Message::text(number.to_string())).expect("sent");
        }
        for number in 0..200 {
            assert_eq!(
                socket.read().expect("a message").into_text().expect("text").as_str(),
                number.to_string()
            );
        }
        socket.send(Message::Ping("p".into())).expect("sent");
        assert_eq!(socket.read().expect("a pong"), Message::Pong("p".into()));
        socket.close(None).expect("sent");
        assert!(matches!(socket.read(), Ok(Message::Close(_))));
        assert!(matches!(socket.read(), Err(tungstenite::Error::ConnectionClosed)));
    }
    let (_, log) = server.stop();
    assert_eq!(log.matches(" HTTP/1.1\" 101 ").count(), 3, "{log}");
}

/// Deleted, a slow end could fill the server's memory, or bytes be lost when it goes on.
#[test]
fn a_slow_end_holds_back_the_other() {
    const MUCH: usize = 64 << 20;
    let (go, wait) = channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let url = raw(move |mut stream| {
        wait.lock().expect("no panic").recv().expect("a word");
        let read = io::copy(&mut Read::by_ref(&mut stream).take(MUCH as u64), &mut io::sink()).expect("read");
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
    let mut stream = switched(&server);
    stream.sock.set_write_timeout(Some(Duration::from_secs(1))).expect("a timeout");
    // rustls reads, too, where it cannot write.
    stream.sock.set_read_timeout(Some(Duration::from_secs(1))).expect("a timeout");
    let piece = vec![7; 1 << 16];
    let (mut sent, began) = (0, Instant::now());
    // A socket whose window is all but shut takes a little now and then.
    while began.elapsed() < Duration::from_secs(5)
        && let Ok(bytes) = stream.write(&piece)
    {
        sent += bytes;
        assert!(sent < MUCH, "{sent} bytes are somewhere");
    }
    go.send(()).expect("the upstream waits");
    stream.sock.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    stream.sock.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let rest = vec![7; MUCH - sent];
    stream.write_all(&rest).expect("sent");
    stream.flush().expect("sent");
    let mut read = [0; 8];
    stream.read_exact(&mut read).expect("a number");
    assert_eq!(u64::from_be_bytes(read), MUCH as u64);
    thread::sleep(Duration::from_secs(3));
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("the end");
    assert!(all.len() > 100_000 && all.iter().all(|byte| *byte == 7), "{}", all.len());
    go.send(()).expect("the upstream waits");
    server.stop();
}

/// Deleted, the last words of one end could be lost when the other has said all.
#[test]
fn each_direction_has_its_own_end() {
    let url = raw(|mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).expect("the end");
        thread::sleep(Duration::from_millis(200));
        all.reverse();
        stream.write_all(&all).expect("sent");
    });
    let (_place, server) = proxy(&format!("to = '{url}'"));
    let mut stream = switched(&server);
    stream.write_all(b"abc").expect("sent");
    stream.conn.send_close_notify();
    stream.flush().expect("sent");
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("the end, and TLS says so");
    assert_eq!(all, b"cba");
    server.stop();
    // The upstream has said all first.
    let (heard, hears) = channel();
    let heard = Arc::new(Mutex::new(heard));
    let url = raw(move |mut stream| {
        stream.write_all(b"all").expect("sent");
        stream.shutdown(Shutdown::Write).expect("the end");
        let mut all = Vec::new();
        stream.read_to_end(&mut all).expect("the end");
        heard.lock().expect("no panic").send(all).expect("the test waits");
    });
    let (_place, server) = proxy(&format!("to = '{url}'"));
    let mut stream = switched(&server);
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("the end");
    assert_eq!(all, b"all");
    stream.write_all(b"later").expect("sent");
    stream.conn.send_close_notify();
    stream.flush().expect("sent");
    assert_eq!(hears.recv_timeout(PATIENCE).expect("bytes"), b"later");
    server.stop();
}

/// The upstream tells when a connection is over, and what came on it.
fn watched() -> (String, Receiver<Vec<u8>>) {
    let (heard, hears) = channel();
    let heard = Arc::new(Mutex::new(heard));
    let url = raw(move |mut stream| {
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

fn hello(stream: &mut Client) {
    let mut hello = [0; 5];
    stream.read_exact(&mut hello).expect("a word");
    assert_eq!(&hello, b"hello");
}

/// Deleted, connections without use could stay for ever, or those in use be cut.
#[test]
fn a_connection_at_rest_ends_and_one_in_use_does_not() {
    let (url, ends) = watched();
    let (_place, server) = proxy(&format!("to = '{url}', tunnel-timeout = 2"));
    let mut stream = switched(&server);
    hello(&mut stream);
    let began = Instant::now();
    for _ in 0..8 {
        thread::sleep(Duration::from_millis(500));
        stream.write_all(b"x").expect("sent");
        stream.flush().expect("sent");
    }
    assert!(began.elapsed() > Duration::from_secs(3) && ends.try_recv().is_err());
    let ended = stream.read_to_end(&mut Vec::new());
    assert!(ended.is_err(), "it was cut: {ended:?}");
    assert!(began.elapsed() > Duration::from_millis(5_500) && began.elapsed() < Duration::from_secs(20));
    assert_eq!(ends.recv_timeout(PATIENCE).expect("the end"), b"xxxxxxxx");
    server.stop();
}

/// Deleted, a client that has gone could leave its connection to the upstream behind.
#[test]
fn an_end_that_breaks_off_ends_the_other() {
    let (url, ends) = watched();
    let (_place, server) = proxy(&format!("to = '{url}'"));
    let mut stream = switched(&server);
    hello(&mut stream);
    drop(stream);
    assert_eq!(ends.recv_timeout(PATIENCE).expect("the end"), b"");
    server.stop();
    let url = raw(|mut stream| {
        stream.write_all(b"hello").expect("sent");
        thread::sleep(Duration::from_millis(200));
        // Bytes that are not read make the end a reset.
        stream.read_exact(&mut [0]).expect("a byte");
    });
    let (_place, server) = proxy(&format!("to = '{url}'"));
    let mut stream = switched(&server);
    hello(&mut stream);
    stream.write_all(&[1; 10_000]).expect("sent");
    let ended = stream.read_to_end(&mut Vec::new());
    assert!(ended.is_err(), "TLS does not say that it ended well: {ended:?}");
    assert!(server.wait_for("said", ("the connection broke off", 1)).contains("GET /raw"));
    server.stop();
}

/// Deleted, a reload could cut connections, or a server that ends wait for them without end.
#[test]
fn a_reload_cuts_nothing_and_the_end_of_the_server_ends_it() {
    let (url, ends) = watched();
    let (_place, mut server) = proxy(&format!("to = '{url}'"));
    let mut stream = switched(&server);
    hello(&mut stream);
    server.signal("HUP");
    server.wait_for("said", ("tercel: reloaded", 1));
    stream.write_all(b"after").expect("sent");
    stream.flush().expect("sent");
    thread::sleep(Duration::from_millis(200));
    let began = Instant::now();
    server.ask_to_end();
    stream.read_to_end(&mut Vec::new()).expect("the end, and TLS says so");
    assert_eq!(ends.recv_timeout(PATIENCE).expect("the end"), b"after");
    drop(stream);
    assert!(server.wait().success());
    assert!(began.elapsed() < Duration::from_secs(20));
}

/// Deleted, a reload or an upgrade could cut connections, or the old process stay when the last of them is over.
#[test]
fn what_is_open_at_a_reload_and_an_upgrade_goes_on_in_the_old_process_to_its_end() {
    let (url, ends) = watched();
    let (_place, mut server) = proxy(&format!("to = '{url}'"));
    let mut first = switched(&server);
    hello(&mut first);
    let mut say = |word: &[u8]| {
        first.write_all(word).expect("sent");
        first.flush().expect("sent");
    };
    say(b"a");
    server.signal("HUP");
    server.wait_for("said", ("tercel: reloaded", 1));
    say(b"b");
    server.upgrade();
    say(b"c");
    // The new process has its own, which an upgrade leaves to it.
    let mut second = switched(&server);
    hello(&mut second);
    server.upgrade();
    say(b"d");
    second.write_all(b"x").expect("sent");
    second.flush().expect("sent");
    thread::sleep(Duration::from_millis(500));
    assert!(ends.try_recv().is_err(), "both go on");
    say(b"e");
    first.conn.send_close_notify();
    first.flush().expect("sent");
    first.read_to_end(&mut Vec::new()).expect("the end, and TLS says so");
    assert_eq!(ends.recv_timeout(PATIENCE).expect("the end"), b"abcde");
    assert!(server.wait().success(), "the first process has nothing left");
    second.write_all(b"y").expect("sent");
    second.conn.send_close_notify();
    second.flush().expect("sent");
    second.read_to_end(&mut Vec::new()).expect("the end, and TLS says so");
    assert_eq!(ends.recv_timeout(PATIENCE).expect("the end"), b"xy");
    server.stop();
}

/// Deleted, a connection without an end of its own could keep an old process for ever, or the limit end it too early.
#[test]
fn the_drain_timeout_ends_what_is_open_in_the_old_process_and_nothing_else() {
    let (url, ends) = watched();
    let (_place, mut server) = proxy_with(&format!("to = '{url}'"), "drain-timeout = 3");
    let mut old = switched(&server);
    hello(&mut old);
    let began = Instant::now();
    server.upgrade();
    let mut new = switched(&server);
    hello(&mut new);
    old.write_all(b"old").expect("sent");
    old.flush().expect("sent");
    let _ = old.read_to_end(&mut Vec::new());
    assert!(began.elapsed() >= Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!(ends.recv_timeout(PATIENCE).expect("the end"), b"old");
    assert!(server.wait().success());
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    new.write_all(b"new").expect("sent");
    new.conn.send_close_notify();
    new.flush().expect("sent");
    new.read_to_end(&mut Vec::new()).expect("the end, and TLS says so");
    assert_eq!(ends.recv_timeout(PATIENCE).expect("the end"), b"new");
    server.stop();
}

/// The next response: its head, and its content.
fn answer(stream: &mut Client) -> (String, String) {
    let head = head(stream);
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or("0", str::trim);
    let mut content = vec![0; length.parse().expect("a length")];
    stream.read_exact(&mut content).expect("content");
    (head, String::from_utf8(content).expect("text"))
}

const WEBSOCKET: &str = "connection: upgrade\r\nupgrade: websocket\r\n";

/// Deleted, a client could send an upstream requests that this server has not judged.
#[test]
fn what_no_upstream_agrees_to_is_http_as_before() {
    let upstream = Upstream::echo();
    let (_place, server) = proxy(&format!("to = '{}'", upstream.url()));
    let request = |line: &str, fields: &str| format!("{line} HTTP/1.1\r\nhost: localhost\r\n{fields}\r\n");
    let get = |fields: &str| request("GET /first", fields);
    let post =
        |fields: &str, content: &str| request("POST /first", &format!("{WEBSOCKET}{fields}")) + content;
    for (first, upgrade) in [
        (get(WEBSOCKET), "websocket"),
        (get("connection: upgrade\r\nupgrade: h2c, websocket\r\n"), "websocket"),
        (post("content-length: 0\r\n", ""), "websocket"),
        (
            get(
                "connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n",
            ),
            "",
        ),
        (get("connection: upgrade\r\nupgrade: HTTP/2.0, TLS/1.2\r\n"), ""),
        (get("upgrade: websocket\r\n"), ""),
        (get("connection: keep-alive\r\nupgrade: websocket\r\n"), ""),
        (post("content-length: 3\r\n", "abc"), ""),
        (post("transfer-encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"), ""),
    ] {
        let mut stream = connect(server.port);
        // If the upstream took this for the other protocol, it would not have been judged.
        let second = request("GET /second", "x-forwarded-for: 192.0.2.1\r\n");
        stream.write_all((first.clone() + &second).as_bytes()).expect("sent");
        for path in ["/first", "/second"] {
            let (head, content) = answer(&mut stream);
            assert!(head.starts_with("HTTP/1.1 200 ") && content.contains(path), "{first}: {head}{content}");
        }
        let heard = upstream.take();
        let [one, two] = heard.as_slice() else { panic!("{first}: {heard:?}") };
        let connection = if upgrade.is_empty() { "" } else { "upgrade" };
        assert_eq!((one.field("upgrade"), one.field("connection")), (upgrade, connection), "{first}");
        assert!(one.field("http2-settings").is_empty() && two.field("upgrade").is_empty(), "{heard:?}");
        assert_eq!(two.field("x-forwarded-for"), "127.0.0.1");
    }
    let mut stream = connect(server.port);
    stream.write_all(get(WEBSOCKET).replace("HTTP/1.1", "HTTP/1.0").as_bytes()).expect("sent");
    assert!(answer(&mut stream).0.starts_with("HTTP/1.0 200 "));
    assert_eq!(upstream.take()[0].field("upgrade"), "");
    server.stop();
    let (_place, server) = proxy(&format!("to = '{}', upgrade = false", upstream.url()));
    let mut stream = connect(server.port);
    stream.write_all(get(WEBSOCKET).as_bytes()).expect("sent");
    assert!(answer(&mut stream).0.starts_with("HTTP/1.1 200 "));
    assert_eq!(upstream.take()[0].field("upgrade"), "");
    server.stop();
}

/// Deleted, an upstream could speak a protocol that its client has not named.
#[test]
fn an_upstream_that_agrees_to_something_else_is_refused() {
    const AGREEMENTS: [&str; 5] = [
        "connection: upgrade\r\n",
        "connection: upgrade\r\nupgrade: h2c\r\n",
        "connection: upgrade\r\nupgrade: websocket\r\nupgrade: websocket\r\n",
        "connection: upgrade\r\nupgrade: websocket, h2c\r\n",
        "connection: upgrade\r\nupgrade: raw\r\n",
    ];
    let url = listen(|mut stream| {
        let head = head(&mut stream);
        let number: usize = head.get(5..6).and_then(|digit| digit.parse().ok()).expect("a number");
        let text =
            format!("HTTP/1.1 101 Switching Protocols\r\n{}\r\nHTTP/1.1 200 OK\r\n\r\n", AGREEMENTS[number]);
        stream.write_all(text.as_bytes()).expect("sent");
        let _ = stream.read(&mut [0]);
    });
    let (_place, server) = proxy(&format!("to = '{url}', max-failures = 1000000"));
    let mut stream = connect(server.port);
    for (number, agreement) in AGREEMENTS.iter().enumerate() {
        let request = format!("GET /{number} HTTP/1.1\r\nhost: localhost\r\n{WEBSOCKET}\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let (head, content) = answer(&mut stream);
        assert!(head.starts_with("HTTP/1.1 502 ") && content == "sorry", "{agreement}: {head}{content}");
    }
    server.stop();
}

/// Deleted, what a client sends before the upstream has agreed could be lost, or reach it before that.
#[test]
fn what_a_client_sends_too_early_waits_for_the_upstream() {
    let url = listen(|mut stream| {
        let head = head(&mut stream);
        assert!(head.contains("upgrade: raw\r\n"), "{head}");
        stream.set_read_timeout(Some(Duration::from_millis(500))).expect("a timeout");
        assert!(stream.read(&mut [0]).is_err(), "nothing comes before it has agreed");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.write_all(AGREED).expect("sent");
        let mut early = [0; 200_000];
        stream.read_exact(&mut early).expect("all of it");
        let is_whole = early.iter().all(|byte| *byte == b'e');
        stream.write_all(if is_whole { b"hello" } else { b"wrong" }).expect("sent");
    });
    let (_place, server) = proxy(&format!("to = '{url}'"));
    let mut stream = connect(server.port);
    stream.write_all((RAW.to_owned() + &"e".repeat(200_000)).as_bytes()).expect("sent");
    let head = head(&mut stream);
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    hello(&mut stream);
    server.stop();
}
