//! HTTP/1.1, HTTP/2 and HTTP/3 of one server: the same answers, the same log, the same bounds.
//!
//! The clients are not the server's code: HTTP/1.1 is written out by hand, HTTP/2 is h2; HTTP/3 is ours.

#![expect(clippy::expect_used, clippy::panic, reason = "a test ends where something is not as it should be")]

mod access;
mod acme;
mod admin;
mod compression;
mod configuration;
mod early;
mod faults;
mod forward_auth;
mod hints;
mod http2_upstreams;
mod http3;
mod http3_upstream;
mod http3_upstreams;
mod leaving;
mod logs;
mod message;
mod migration;
mod pages;
mod proxied;
mod proxy;
mod proxy_protocol;
mod raw;
mod reload;
mod reload_command;
mod server;
mod sites;
mod smuggling;
mod streaming;
mod systemd;
mod tcp;
mod tunnel;
mod upgrade;
mod uploads;
mod upstream;
mod upstreams;
mod validation;
mod websocket;
mod websocket_refusals;
mod websocket_upstream;
mod websockets;

use message::{Answer, Ask};
use server::{PROGRAM, Server};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};

/// A folder with one of each kind.
pub(crate) fn site() -> TempDir {
    let root = TempDir::new().expect("a folder");
    let file = |name: &str, bytes: &[u8]| {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, bytes).expect("written");
    };
    file("hello.txt", b"hello, world");
    file("index.html", b"<p>home");
    file("sub/index.html", b"<p>sub");
    file("empty", b"");
    file("bare/one", b"1");
    file(".hidden", b"?");
    file("large.bin", &base::pattern::at(0).iter().cycle().take(3_000_000).copied().collect::<Vec<u8>>());
    root
}

/// All kinds of requests. `etag` and `modified` are those of hello.txt.
fn asks(etag: &str, modified: &str) -> Vec<Ask> {
    let hello = || Ask::get("/hello.txt");
    vec![
        hello().with("user-agent", "a \"quoted\" name\\").with("referer", "https://example.org/?a=b"),
        Ask::get("/"),
        Ask::get("/sub"),
        Ask::get("/sub/"),
        Ask::get("/sub?x=1"),
        Ask::get("/empty"),
        Ask::get("/large.bin"),
        Ask::get("/large.bin").with("range", "bytes=100000-2000000"),
        Ask::get("/bare"),
        Ask::get("/bare/"),
        Ask::get("/bare/?sort=size&order=desc"),
        Ask::get("/bare/").with("accept", "application/json"),
        Ask::new("HEAD", "/bare/?json"),
        Ask::get("/nothing"),
        Ask::get("/nothing/"),
        Ask::get("/.hidden"),
        Ask::get("/%2e%2e/hello.txt"),
        Ask::get("/sub%2Findex.html"),
        Ask::get("/hello%2"),
        Ask::get("/hello.txt?a=%22b%22&c"),
        Ask::get(&format!("/{}", "x".repeat(9_000))),
        Ask::new("HEAD", "/hello.txt"),
        Ask::new("HEAD", "/large.bin"),
        Ask::new("HEAD", "/bytes/1GB"),
        Ask::new("HEAD", "/nothing"),
        hello().with("if-none-match", etag),
        hello().with("if-none-match", "\"other\", \"another\""),
        hello().with("if-match", "\"other\""),
        hello().with("if-modified-since", modified),
        hello().with("if-modified-since", "nonsense"),
        hello().with("range", "bytes=1-4"),
        hello().with("range", "bytes=-5"),
        hello().with("range", "bytes=7-"),
        hello().with("range", "bytes=0-1,4-5,-1"),
        hello().with("range", "bytes=12-"),
        hello().with("range", "lines=1-2"),
        hello().with("range", "bytes=0-3").with("if-range", etag),
        hello().with("range", "bytes=0-3").with("if-range", "\"other\""),
        Ask::get("/bytes/0"),
        Ask::get("/bytes/100000"),
        Ask::get("/bytes/1MB").with("range", "bytes=999990-"),
        Ask::get("/bytes/1MB").sending(1_000),
        Ask::new("POST", "/bytes/8KiB").sending(512),
        Ask::new("POST", "/bytes/8KiB"),
        Ask::new("POST", "/bytes/300kB").sending(40_000),
        Ask::new("POST", "/hello.txt").sending(10),
        Ask::new("PUT", "/bytes/8KiB"),
        Ask::new("DELETE", "/hello.txt"),
        Ask::new("PROPFIND", "/"),
        Ask::new("OPTIONS", "/hello.txt"),
        Ask::new("OPTIONS", "/bytes/1"),
    ]
}

/// Lines of the log, without the time, the version and the duration.
fn lines(log: &str, version: &str) -> Vec<String> {
    let protocol = format!(" HTTP/{version}\" ");
    let of_version = log.lines().filter(|line| line.contains(&protocol));
    of_version
        .map(|line| {
            let (who, rest) = line.split_once('[').expect("a time");
            let (_, rest) = rest.split_once(']').expect("a time");
            let (rest, duration) = rest.rsplit_once(' ').expect("a duration");
            assert!(duration.parse::<f64>().is_ok(), "{line}");
            format!("{who}{}", rest.replace(&protocol, " HTTP\" "))
        })
        .collect()
}

#[test]
fn the_three_versions_answer_and_log_alike() {
    let root = site();
    let server = Server::start(root.path(), &[]);
    let first = tcp::run(tcp::http1(server.port, &[Ask::get("/hello.txt")])).remove(0);
    let asks = asks(first.field("etag"), first.field("last-modified"));
    let one = tcp::run(tcp::http1(server.port, &asks));
    let two = tcp::run(tcp::http2(server.port, &asks));
    let three = http3::http3(server.port, &asks);

    let announced = format!("h3=\":{}\"; ma=86400", server.port);
    let is_announced = |answer: &Answer| answer.field("alt-svc") == announced;
    assert!(one.iter().chain(&two).all(is_announced), "every response over TCP names HTTP/3");
    assert!(!three.iter().any(is_announced), "over HTTP/3 there is nothing to announce");
    for (ask, ((one, two), three)) in asks.iter().zip(one.into_iter().zip(two).zip(three)) {
        let what = format!("{} {:.40} {:?}", ask.method, ask.target, ask.fields);
        let (one, two, three) = (one.essence(), two.essence(), three.essence());
        let head = |answer: &Answer| format!("{} {:?}", answer.status, answer.fields);
        assert_eq!(head(&one), head(&three), "1.1 and 3: {what}");
        assert_eq!(head(&two), head(&three), "2 and 3: {what}");
        assert!(one.content == three.content && two.content == three.content, "{what}");
    }

    let (summary, log) = server.stop();
    let logged = lines(&log, "3");
    assert_eq!(logged.len(), asks.len());
    // The first line of HTTP/1.1 is that of the first question of all.
    assert_eq!(lines(&log, "1.1")[1..], logged);
    assert_eq!(lines(&log, "2"), logged);
    let http = &summary["http"];
    for (version, more) in [("1", 1), ("2", 0), ("3", 0)] {
        assert_eq!(http[version]["requests"].as_u64(), Some(asks.len() as u64 + more), "{summary}");
        assert!(http[version]["connections"].as_u64() >= Some(1), "{summary}");
    }
    assert_eq!(http["1"]["content_bytes"].as_u64(), http["3"]["content_bytes"].as_u64().map(|sum| sum + 12));
    assert_eq!(http["2"]["content_bytes"], http["3"]["content_bytes"]);
}

/// The bounds are the server's, not a version's.
#[test]
fn what_is_too_large_is_refused_by_all() {
    let root = site();
    let server = Server::start(root.path(), &[]);
    let flood = || {
        let announced = Ask::new("POST", "/bytes/1");
        announced.with("content-length", "99999999999")
    };
    let one = tcp::run(tcp::http1(server.port, &[flood(), Ask::get("/hello.txt")]));
    assert_eq!((one[0].status, one[1].status), (413, 200));
    let cookies = Ask::get("/hello.txt").with("cookie", &"x".repeat(70_000));
    for answers in [
        tcp::run(tcp::http1(server.port, std::slice::from_ref(&cookies))),
        tcp::run(tcp::http2(server.port, std::slice::from_ref(&cookies))),
    ] {
        assert_eq!(answers[0].status, 431);
    }
    // Heads without an end are cut off: an answer, or the end of the connection.
    tcp::run(async {
        let mut stream = tcp::connect(server.port, "http/1.1").await;
        let mut sent = 0;
        while stream.write_all(&[b'x'; 65_536]).await.is_ok() {
            sent += 65_536;
            assert!(sent < 64 << 20, "a line without end is read for ever");
        }
    });
    tcp::run(async {
        let mut stream = BufReader::new(tcp::connect(server.port, "http/1.1").await);
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("sent");
        assert_eq!(tcp::read_answer(&mut stream, "GET").await.status, 400, "no host");
    });
    server.stop();
}

/// Deleted, a browser that was given http:// by mistake could wait for nothing.
#[test]
fn plain_http_is_sent_to_https_or_told_why_not() {
    let root = site();
    let server = Server::start(root.path(), &[]);
    let ask = |head: &str| {
        tcp::run(async {
            let mut stream =
                tokio::net::TcpStream::connect(("127.0.0.1", server.port)).await.expect("a connection");
            // In two parts, as a slow client sends it.
            let (first, rest) = head.split_at(3);
            for part in [first, rest] {
                stream.write_all(part.as_bytes()).await.expect("sent");
                stream.flush().await.expect("sent");
                tokio::task::yield_now().await;
            }
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("an answer and the end");
            answer
        })
    };
    let redirected = ask("GET /a?b HTTP/1.1\r\nHost: localhost:1\r\n\r\n");
    assert!(redirected.starts_with("HTTP/1.1 308 "), "{redirected}");
    assert!(redirected.contains("\r\nlocation: https://localhost:1/a?b\r\n"), "{redirected}");
    let refused = ask("POST /a HTTP/1.1\r\nHost: localhost\r\ncontent-length: 3\r\n\r\nabc");
    assert!(refused.starts_with("HTTP/1.1 400 ") && refused.contains("https://"), "{refused}");
    let answer = tcp::run(tcp::http1(server.port, &[Ask::get("/hello.txt")])).remove(0);
    assert_eq!(answer.status, 200);
    let (summary, _) = server.stop();
    assert_eq!(summary["tcp"]["handshakes_failed"].as_u64(), Some(2), "{summary}");
}

#[test]
fn the_versions_that_were_chosen_are_served_on_one_port() {
    let root = site();
    let tcp_is_open = |port: u16| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
    let server = Server::start(root.path(), &["--http", "3"]);
    assert!(server.ready["tcp_port"].is_null() && !tcp_is_open(server.port), "{}", server.ready);
    assert_eq!(http3::http3(server.port, &[Ask::get("/hello.txt")])[0].status, 200);
    server.stop();

    let server = Server::start(root.path(), &["--http", "1", "--workers", "2", "--pin"]);
    assert_eq!(server.ready["tcp_port"], server.ready["port"]);
    assert!(requirements::ports::is_free_over_udp(([127, 0, 0, 1], server.port).into()));
    let hello = Ask::get("/hello.txt");
    for _ in 0..8 {
        let answer = tcp::run(tcp::http1(server.port, std::slice::from_ref(&hello))).remove(0);
        assert_eq!((answer.status, answer.field("alt-svc")), (200, ""), "there is no HTTP/3 to announce");
    }
    let (summary, _) = server.stop();
    assert_eq!(summary["http"]["1"]["requests"].as_u64(), Some(8), "{summary}");
    assert_eq!(summary["tcp_threads"].as_array().map(Vec::len), Some(2), "{summary}");
    assert_eq!(summary["tcp"]["connections"].as_u64(), Some(8), "{summary}");

    let server = Server::start(root.path(), &["--no-alt-svc"]);
    let answer = tcp::run(tcp::http2(server.port, &[hello])).remove(0);
    assert_eq!((answer.status, answer.field("alt-svc")), (200, ""));
    server.stop();
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    let data = TempDir::new().expect("a folder");
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--listen", &address.to_string()]).env("XDG_DATA_HOME", data.path());
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let expected = format!("TCP port {} on 127.0.0.1 is in use by another program", address.port());
    assert!(said.contains(&expected) && said.contains("--http 3") && said.lines().count() == 1, "{said}");
}

/// Without descriptors the server neither spins nor gives up.
#[test]
fn accepting_without_descriptors_waits_and_recovers() {
    let root = site();
    let server = Server::start_with_descriptors(root.path(), 64);
    let crowd: Vec<_> = (0..100)
        .map(|_| std::net::TcpStream::connect(("127.0.0.1", server.port)).expect("the kernel takes it"))
        .collect();
    std::thread::sleep(std::time::Duration::from_millis(500));
    drop(crowd);
    let answer = tcp::run(tcp::http1(server.port, &[Ask::get("/hello.txt")])).remove(0);
    assert_eq!(answer.status, 200);
    let (summary, _) = server.stop();
    let failures = summary["tcp"]["accept_failures"].as_u64().expect("a number");
    assert!((1..2_000).contains(&failures), "one each tenth of a second: {summary}");
}

/// A response under way is finished, a connection that rests is closed, and then the server ends.
#[test]
fn the_end_is_orderly() {
    let root = site();
    let server = Server::start(root.path(), &[]);
    tcp::run(async {
        let mut idle = BufReader::new(tcp::connect(server.port, "http/1.1").await);
        idle.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("sent");
        assert_eq!(tcp::read_answer(&mut idle, "GET").await.status, 200);
        let mut busy = tcp::connect(server.port, "http/1.1").await;
        busy.write_all(b"GET /bytes/30MB HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("sent");
        let mut all = vec![0; 100];
        busy.read_exact(&mut all).await.expect("the beginning");
        server.ask_to_end();
        let mut rest = Vec::new();
        idle.read_to_end(&mut rest).await.expect("a clean end");
        assert!(rest.is_empty());
        busy.read_to_end(&mut all).await.expect("all of it");
        let head = all.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
        assert_eq!(all.len() - head - 4, 30_000_000);
        assert_eq!(base::pattern::first_difference(0, &all[head + 4..]), None);
    });
    let (summary, log) = server.ended();
    assert_eq!(summary["http"]["1"]["requests"].as_u64(), Some(2), "{summary}");
    assert!(log.contains("\"GET /bytes/30MB HTTP/1.1\" 200 30000000 "), "{log}");
}

/// A file that shrinks while it is sent must not look complete.
#[test]
fn a_response_that_cannot_be_completed_breaks_off() {
    let root = site();
    let server = Server::start(root.path(), &[]);
    tcp::run(async {
        let mut stream = tcp::connect(server.port, "http/1.1").await;
        grow(&root.path().join("large.bin"), 2_000_000_000);
        stream.write_all(b"GET /large.bin HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("sent");
        let mut start = [0; 100];
        stream.read_exact(&mut start).await.expect("the beginning");
        grow(&root.path().join("large.bin"), 1_000);
        let mut rest = Vec::new();
        let end = stream.read_to_end(&mut rest).await;
        assert!(rest.len() < 2_000_000_000, "{end:?}");
        assert!(end.is_err(), "no close_notify after half a response");
    });
    server.stop();
}

fn grow(path: &Path, length: u64) {
    let file = std::fs::File::options().write(true).open(path).expect("the file");
    file.set_len(length).expect("its length");
}
