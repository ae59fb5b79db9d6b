//! Other protocols than HTTP through the proxy by HTTP/1.1, such as WebSocket: with tungstenite at both ends, and by hand what is hostile.
//! WebSockets over each version of HTTP are in websockets.rs.

use crate::configuration::folder;
use crate::message::Who;
use crate::proxy::proxy;
use crate::server::Server;
use crate::sites::start;
use crate::upstream::Upstream;
use crypto::Roots;
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConnection, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
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

/// A server with an upstream behind `/tcp`, `/tls` and `/socket` each, which echo.
pub(crate) fn in_front_of_each_kind() -> (TempDir, Server) {
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
    (place, server)
}

/// Deleted, no WebSocket could pass, or one could differ by what is behind the server.
#[test]
fn messages_go_both_ways_to_each_kind_of_upstream() {
    let (_place, server) = in_front_of_each_kind();
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

fn hello(stream: &mut Client) {
    let mut hello = [0; 5];
    stream.read_exact(&mut hello).expect("a word");
    assert_eq!(&hello, b"hello");
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
