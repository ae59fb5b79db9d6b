//! The PROXY protocol from balancers in front: clients are known by the addresses in the header, and by nothing else.

use crate::configuration::folder;
use crate::message::{Ask, Who};
use crate::proxy_protocol::{PROXY, Told, next, unpack};
use crate::server::Server;
use crate::sites::{ask_each, start};
use crate::tcp;
use crate::upstream::Upstream;
use server::proxy_protocol::{Sender, header};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(60);

/// The header of a client at `from` that has reached `to`.
fn of(from: &str, to: &str) -> Vec<u8> {
    header(Sender::Client { from: from.parse().expect("one"), to: to.parse().expect("one") })
}

fn version1(line: &str) -> Vec<u8> {
    format!("PROXY {line}\r\n").into_bytes()
}

fn behind(header: Vec<u8>) -> Who {
    Who { header, ..Who::default() }
}

/// Headers, and the client that the server must see.
fn headers() -> Vec<(Vec<u8>, &'static str)> {
    let with_extensions = |mut header: Vec<u8>, bytes: u16| {
        let length = u16::from_be_bytes([header[14], header[15]]) + bytes;
        header[14..16].copy_from_slice(&length.to_be_bytes());
        header.resize(header.len() + usize::from(bytes), 0x20);
        header
    };
    let v4 = of("192.0.2.7:1234", "198.51.100.1:443");
    let mut unix = v4.clone();
    unix[13] = 0x31;
    let mut unspecified = v4.clone();
    unspecified[13] = 0;
    vec![
        (with_extensions(v4.clone(), 1_000), "192.0.2.7"),
        (v4, "192.0.2.7"),
        (of("[2001:db8::7]:1234", "[2001:db8::1]:443"), "2001:db8::7"),
        (version1("TCP4 192.0.2.9 198.51.100.1 1234 443"), "192.0.2.9"),
        (version1("TCP6 2001:db8::9 2001:db8::1 1234 443"), "2001:db8::9"),
        (version1("UNKNOWN"), "127.0.0.1"),
        (header(Sender::Local), "127.0.0.1"),
        (with_extensions(unix, 204), "127.0.0.1"),
        (unspecified, "127.0.0.1"),
    ]
}

/// A server that expects headers from its own machine.
fn expecting(words: &[&str]) -> (tempfile::TempDir, Server) {
    let site = folder(&[("a", "hello")]);
    let server = Server::start(site.path(), &[&["--proxy-protocol-from", "127.0.0.1"], words].concat());
    (site, server)
}

/// Deleted, all clients of a balancer could have one address, in the log, for a limit, or for an upstream.
#[test]
fn a_client_behind_a_balancer_is_known_by_its_own_address() {
    let upstream = Upstream::echo();
    let (port, told) = unpack(Upstream::echo().port);
    let place = folder(&[("site/index.html", "home")]);
    let url = upstream.url();
    let server = start(
        place.path(),
        &format!(
            "
            proxy-protocol-from = ['127.0.0.0/8', '10.0.0.0/8']
            [[site]]
            names = '*'
            root = 'site'
            [[site.route]]
            path = '/limited'
            respond = {{ status = 204 }}
            rate-limit = {{ requests = 1, per = 'hour' }}
            [[site.route]]
            path = '/asked'
            respond = {{ status = 204 }}
            forward-auth = {{ to = '{url}', path = '/verify' }}
            [[site.route]]
            path = '/told'
            proxy = {{ to = 'http://127.0.0.1:{port}', proxy-protocol = true }}
            [[site.route]]
            path = '/'
            proxy = {{ to = '{url}' }}
            "
        ),
    );
    let asks = [Ask::get("/a"), Ask::get("/asked")];
    let mut seen = Vec::new();
    for (header, client) in headers() {
        let [one, two, three] = ask_each(&behind(header), server.port, &asks);
        for answers in [&one, &two, &three] {
            assert_eq!(
                answers.iter().map(|answer| answer.status).collect::<Vec<_>>(),
                [200, 204],
                "{client}"
            );
        }
        for (heard, client) in upstream.take().chunks(2).zip([client, client, "127.0.0.1"]) {
            assert!(heard.iter().all(|heard| heard.field("x-forwarded-for") == client), "{heard:?}");
            seen.push(client);
        }
    }
    assert_eq!(seen.len(), 27);
    // Both versions over TCP share the limit of a client, and no other client has it.
    let limited = |header: Vec<u8>| {
        let all = ask_each(&behind(header), server.port, &[Ask::get("/limited")]);
        all.map(|answers| answers[0].status)
    };
    assert_eq!(limited(of("192.0.2.7:1", "198.51.100.1:443")), [204, 429, 204], "HTTP/3 comes from here");
    assert_eq!(limited(version1("TCP4 192.0.2.8 198.51.100.1 1 2")), [204, 429, 429]);
    // The whole of it goes on.
    let (from, to) = ("192.0.2.7:1234", "198.51.100.1:443");
    let _ = ask_each(&behind(of(from, to)), server.port, &[Ask::get("/told")]);
    let addresses = Some((from.parse().expect("one"), to.parse().expect("one")));
    for _ in 0..2 {
        assert_eq!(next(&told), Told { command: PROXY, addresses });
    }
    let (_, log) = server.stop();
    for (client, lines) in [("192.0.2.7", 12), ("2001:db8::9", 4), ("192.0.2.9", 4), ("192.0.2.8", 2)] {
        let found = log.lines().filter(|line| line.starts_with(&format!("{client} - - ["))).count();
        assert_eq!(found, lines, "{client}: {log}");
    }
}

/// Sends `bytes` and no more. Returns what comes until the end of the connection.
fn say(port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    // The server may have closed it before all is sent.
    let _ = stream.write_all(bytes);
    let mut heard = Vec::new();
    match stream.read_to_end(&mut heard) {
        Ok(_) => heard,
        Err(error) if error.kind() == ErrorKind::ConnectionReset => heard,
        Err(error) => panic!("the connection stays open: {error}"),
    }
}

/// A connection that begins with `header`.
async fn begin(port: u16, header: &[u8]) -> tokio::net::TcpStream {
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
    stream.set_nodelay(true).expect("no delay");
    stream.write_all(header).await.expect("sent");
    stream
}

/// What clients of TLS begin with.
const HELLO: &[u8] = b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03";

/// Deleted, anyone could say to be any client, or a balancer that is not configured go unnoticed.
#[test]
fn what_is_no_header_and_who_is_no_proxy_is_not_believed() {
    let (_site, server) = expecting(&[]);
    let right = of("192.0.2.7:1234", "198.51.100.1:443");
    let mut long = right.clone();
    long[14..16].copy_from_slice(&5_000_u16.to_be_bytes());
    let mut version = right.clone();
    version[12] = 0x31;
    let wrong = [
        HELLO.to_vec(),
        b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec(),
        [b"PROXY TCP4 ".as_slice(), &[b'1'; 200]].concat(),
        version1("TCP4 192.0.2.7 198.51.100.1 1234"),
        long,
        version,
        right[1..].to_vec(),
    ];
    for bytes in &wrong {
        assert_eq!(say(server.port, bytes), b"", "{bytes:?}");
    }
    // Half of one, and then nothing; and one that says nothing at all, as a balancer's check, which is no fault.
    for bytes in [&right[..20], b""] {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("a connection");
        stream.write_all(bytes).expect("sent");
        stream.shutdown(Shutdown::Write).expect("ended");
        assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0);
    }
    let said = server.wait_for("said", ("connections from proxies were closed: they began without", 1));
    let count = |line: &str| line.strip_prefix("tercel: warning: ")?.split(' ').next()?.parse::<usize>().ok();
    let told: usize = said.lines().filter(|line| line.contains("from proxies")).filter_map(count).sum();
    assert!((1..=wrong.len() + 1).contains(&told), "{said}");
    // It serves as before.
    let answers = tcp::run(tcp::http1_as(&behind(right.clone()), server.port, &[Ask::get("/a")]));
    assert_eq!(answers[0].status, 200);
    server.stop();
    // From anyone else a header is no header.
    let site = folder(&[("a", "hello")]);
    let server = Server::start(site.path(), &["--proxy-protocol-from", "192.0.2.0/24"]);
    let refused =
        String::from_utf8(say(server.port, &version1("TCP4 192.0.2.7 198.51.100.1 1 2\r\n"))).expect("text");
    assert!(refused.starts_with("HTTP/1.1 400 "), "{refused}");
    let alert = say(server.port, &[right.as_slice(), HELLO].concat());
    assert!(alert.is_empty() || alert.starts_with(b"\x15\x03"), "{alert:?}");
    assert_eq!(tcp::run(tcp::http1(server.port, &[Ask::get("/a")]))[0].status, 200);
    let (_, log) = server.stop();
    assert!(log.starts_with("127.0.0.1 - - [") && !log.contains("192.0.2.7"), "{log}");
}

/// Deleted, a header could be lost where the network tears it, or bytes of TLS be taken for it.
#[test]
fn a_header_may_come_in_any_pieces_and_not_late() {
    let (_site, server) = expecting(&[]);
    let port = server.port;
    let begun = Instant::now();
    let half = thread::spawn(move || {
        let half = of("192.0.2.7:1234", "198.51.100.1:443");
        (say(port, &half[..27]), begun.elapsed())
    });
    for (header, _) in headers() {
        let asked = tcp::run(async {
            let mut socket = begin(port, &[]).await;
            for byte in &header {
                socket.write_all(&[*byte]).await.expect("sent");
                // So that it leaves alone.
                tokio::task::yield_now().await;
            }
            let mut stream = tcp::secure(&Who::default(), socket, "http/1.1").await;
            stream.write_all(b"GET /a HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("sent");
            tcp::read_answer(&mut BufReader::new(stream), "GET").await
        });
        assert_eq!((asked.status, asked.content.as_slice()), (200, &b"hello"[..]));
    }
    // One that does not end is given up.
    let (heard, elapsed) = half.join().expect("no panic");
    assert!(heard.is_empty() && elapsed >= Duration::from_secs(9) && elapsed < PATIENCE, "{elapsed:?}");
    server.stop();
}

/// Deleted, a balancer would be cut off as a client that has too many connections, or its clients have no limit.
#[test]
fn clients_behind_a_balancer_have_the_limits_of_their_own_addresses() {
    let (_site, server) = expecting(&["--max-connections-per-address", "1", "--workers", "1"]);
    let who = |last: u8| behind(of(&format!("192.0.2.{last}:1234"), "198.51.100.1:443"));
    tcp::run(async {
        let mut open = Vec::new();
        for last in 1..=4 {
            open.push(tcp::connect_as(&who(last), server.port, "http/1.1").await);
        }
        for last in 1..=4 {
            let mut stream = begin(server.port, &who(last).header).await;
            assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0, "a second one is closed");
        }
        drop(open);
        // Its place is free again.
        for _ in 0..100 {
            let mut stream = begin(server.port, &who(1).header).await;
            let read = tokio::time::timeout(Duration::from_millis(100), stream.read(&mut [0; 1])).await;
            if read.is_err() {
                return;
            }
        }
        panic!("the place of a connection that has ended stays taken");
    });
    server.stop();
}
