//! The PROXY protocol to upstreams: what they hear of a client before its request.

use crate::configuration::folder;
use crate::message::Ask;
use crate::proxy::{CHOICES, client, h2c, proxy, statuses};
use crate::server::Server;
use crate::sites::{ask_all, start};
use crate::upstream::Upstream;
use crate::websocket::{connect, head};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
/// Version 2 with the command LOCAL, and PROXY. Source: haproxy.org, doc/proxy-protocol.txt §2.2.
const LOCAL: u8 = 0x20;
pub(crate) const PROXY: u8 = 0x21;

/// A header as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) command: u8,
    /// The client's address, and the one that it has reached.
    pub(crate) addresses: Option<(SocketAddr, SocketAddr)>,
}

/// Reads a header, and no byte more. `None` if the connection begins with something else.
fn read_header(stream: &mut impl Read) -> Option<Told> {
    let mut header = [0; 16];
    stream.read_exact(&mut header).expect("a header");
    if !header.starts_with(b"\r\n\r\n\0\r\nQUIT\n") {
        return None;
    }
    let mut rest = vec![0; usize::from(u16::from_be_bytes([header[14], header[15]]))];
    stream.read_exact(&mut rest).expect("the addresses");
    let of = |ip: IpAddr, port: &[u8]| SocketAddr::new(ip, u16::from_be_bytes([port[0], port[1]]));
    let v4 = |at: usize| IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(&rest[at..at + 4]).expect("four")));
    let v6 = |at: usize| IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(&rest[at..at + 16]).expect("16")));
    let addresses = match (header[13], rest.len()) {
        (0, 0) => None,
        (0x11, 12) => Some((of(v4(0), &rest[8..]), of(v4(4), &rest[10..]))),
        (0x21, 36) => Some((of(v6(0), &rest[32..]), of(v6(16), &rest[34..]))),
        other => panic!("a family of its own: {other:?}"),
    };
    Some(Told { command: header[12], addresses })
}

/// Tells of the header of each connection, and passes on all that follows to `target`. It ends with the test's process.
pub(crate) fn unpack(target: u16) -> (u16, Receiver<Told>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (tell, told) = channel();
    thread::spawn(move || listener.incoming().flatten().for_each(|stream| relay(stream, target, &tell)));
    (port, told)
}

fn relay(mut stream: TcpStream, target: u16, tell: &Sender<Told>) {
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let Some(told) = read_header(&mut stream) else { return };
    tell.send(told).expect("the test waits");
    let mut other = TcpStream::connect(("127.0.0.1", target)).expect("a connection");
    let (mut from, mut to) = (stream.try_clone().expect("a descriptor"), other.try_clone().expect("one"));
    thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    thread::spawn(move || {
        let _ = io::copy(&mut other, &mut stream);
        let _ = stream.shutdown(Shutdown::Write);
    });
}

/// The next connection that the upstream has taken; fails after a while.
pub(crate) fn next(told: &Receiver<Told>) -> Told {
    told.recv_timeout(PATIENCE).expect("a connection")
}

/// Deleted, an upstream could be told of no client, or of another kind of address, by one version or one kind of upstream; or a
/// header could come within TLS, where none expects it.
#[test]
fn an_upstream_is_told_of_the_client_by_the_proxy_protocol() {
    let site = folder(&[("a", "hello")]);
    let by_tls = Server::start(site.path(), &["--http", "1,2"]);
    let certificate = by_tls.ready["certificate"].as_str().expect("a path").to_owned();
    let [plain, by_h2c, secure] = [Upstream::echo().port, h2c(), by_tls.port].map(unpack);
    let place = folder(&[("site/index.html", "home")]);
    let unix = UnixListener::bind(place.path().join("app.sock")).expect("a socket");
    let (tell, by_unix) = channel();
    thread::spawn(move || {
        for mut stream in unix.incoming().flatten() {
            tell.send(read_header(&mut stream).expect("a header")).expect("the test waits");
            assert!(head(&mut stream).starts_with("GET /unix HTTP/1.1\r\n"));
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("sent");
        }
    });
    let route = |path: &str, to: &str| {
        format!("[[site.route]]\npath = '{path}'\nproxy = {{ to = {to}, proxy-protocol = true }}\n")
    };
    let routes = [
        route("/plain", &format!("'http://127.0.0.1:{}'", plain.0)),
        route("/h2c", &format!("'h2c://127.0.0.1:{}'", by_h2c.0)),
        route("/a", &format!("'https://localhost:{}', tls-ca = '{certificate}'", secure.0)),
        route("/unix", "'unix:app.sock'"),
    ];
    let file = place.path().join("tercel.toml");
    std::fs::write(&file, format!("[[site]]\nnames = '*'\n{}", routes.concat())).expect("written");
    let config = file.to_str().expect("text");
    for (listen, family) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "[::1]")] {
        let server = Server::start_without_root_at(listen, &["--config", config]);
        let mut ports = Vec::new();
        for (path, told) in [("plain", &plain.1), ("h2c", &by_h2c.1), ("a", &secure.1), ("unix", &by_unix)] {
            for http in CHOICES {
                let client = client(http);
                let url = format!("https://{family}:{}/{path}", server.port);
                for _ in 0..2 {
                    let status = crate::tcp::run(async {
                        let response = client.get(url.clone()).await.expect("a response");
                        let status = response.status();
                        response.into_body().collect(10_000).await.expect("content");
                        status
                    });
                    assert_eq!(status, 200, "{url} {http:?}");
                    let Told { command: PROXY, addresses: Some((from, to)) } = next(told) else {
                        panic!("{url} {http:?}: no client");
                    };
                    let reached: SocketAddr = format!("{family}:{}", server.port).parse().expect("one");
                    assert_eq!((from.ip(), to), (reached.ip(), reached), "{url} {http:?}");
                    ports.push(from.port());
                }
            }
            assert!(told.try_recv().is_err(), "{path}: each request has one connection");
        }
        assert!(ports.iter().all(|port| *port > 0 && *port != server.port), "{ports:?}");
        server.stop();
    }
    by_tls.stop();
}

/// Deleted, a connection that waits could carry the request of one client in the name of another.
#[test]
fn a_connection_tells_of_the_client_whose_request_it_has() {
    let (port, told) = unpack(Upstream::echo().port);
    let health = "health = { path = '/health', interval = 3600 }";
    let to = format!("to = 'http://127.0.0.1:{port}'");
    let (_place, server) = proxy(&format!("{to}, proxy-protocol = true, {health}"));
    // A check is the server's own.
    assert_eq!(next(&told), Told { command: LOCAL, addresses: None });
    let mut clients = [connect(server.port), connect(server.port)];
    for request in [&b"GET /a HTTP/1.1\r\nhost: localhost\r\n\r\n"[..], crate::websocket::RAW.as_bytes()] {
        for _ in 0..2 {
            for client in &mut clients {
                let from = client.sock.local_addr().expect("an address");
                client.write_all(request).expect("sent");
                let answer = head(client);
                assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
                let length = answer.lines().find_map(|line| line.strip_prefix("content-length: "));
                let mut content = vec![0; length.expect("a length").parse().expect("a number")];
                client.read_exact(&mut content).expect("content");
                let to = client.sock.peer_addr().expect("an address");
                assert_eq!(next(&told), Told { command: PROXY, addresses: Some((from, to)) });
            }
        }
    }
    assert!(told.try_recv().is_err());
    server.stop();
}

/// Deleted, one route's checks could begin as another's, and take out an upstream that is well.
#[test]
fn checks_begin_as_the_requests_of_their_route_do() {
    let (port, told) = unpack(Upstream::echo().port);
    let place = folder(&[("site/index.html", "home")]);
    let health = "health = { path = '/health', interval = 1, timeout = 1, falls = 1 }";
    let route = |path: &str, is_told: bool| {
        format!(
            "[[site.route]]\npath = '{path}'\nproxy = {{ to = 'http://127.0.0.1:{port}', proxy-protocol = {is_told}, {health} }}\n"
        )
    };
    let text = format!("[[site]]\nnames = '*'\n{}{}", route("/told", true), route("/", false));
    let server = start(place.path(), &text);
    // Those of the other route have no header.
    server.wait_for("said", ("is down by its checks", 1));
    assert_eq!(next(&told).command, LOCAL);
    assert_eq!(statuses(&ask_all(server.port, &Ask::get("/told"))), [200; 3]);
    server.stop();
}
