//! WebSockets through the proxy, over each version of HTTP to each: HTTP/1.1's Upgrade, and an extended CONNECT on a stream of HTTP/2 or 3 (RFC
//! 8441, RFC 9220). What only HTTP/1.1 has is in websocket.rs.

use crate::proxy::{proxy, proxy_with};
use crate::server::Server;
use crate::tunnel::{ALL, BOTH, PATIENCE, Tunnel, Version, open};
use crate::websocket::in_front_of_each_kind;
use crate::websocket_upstream::{self, End, agreeing, agreeing_by_tls, agreeing_when};
use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tokio::time::Instant;
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

pub(crate) const FIELDS: &[(&str, &str)] =
    &[("sec-websocket-version", "13"), ("origin", "https://localhost")];

/// The versions of a client and of an upstream.
type Pair = (Version, Version);

/// Each with each.
fn all() -> Vec<Pair> {
    ALL.into_iter().flat_map(|client| ALL.map(|upstream| (client, upstream))).collect()
}

/// Judges these pairs at a time, each on a thread that has its name.
fn judge(pairs: Vec<Pair>, case: impl Fn(Version, Version) + Sync) {
    let case = &case;
    thread::scope(|scope| {
        for (client, upstream) in pairs {
            let thread = thread::Builder::new().name(format!("{client:?} to {upstream:?}"));
            thread.spawn_scoped(scope, move || case(client, upstream)).expect("a thread");
        }
    });
}

/// A server that has such upstreams behind it.
fn in_front_of(upstream: &websocket_upstream::Upstream) -> (tempfile::TempDir, Server) {
    proxy(&upstream.keys)
}

fn tunnel(version: Version, server: &Server) -> Tunnel {
    let tunnel = open(version, server.port, "/raw", (FIELDS, Vec::new()));
    assert_eq!(tunnel.status, version.agreed(), "{tunnel:?}");
    tunnel
}

fn hello(stream: &mut Tunnel) {
    let mut hello = [0; 5];
    stream.read_exact(&mut hello).expect("a word");
    assert_eq!(&hello, b"hello");
}

/// Sends back what comes, with what the request tells of the client.
fn echo_messages(end: End) {
    let field = |name: &str| end.head.get(name).map_or("", String::as_str);
    let host = if field(":authority").is_empty() { field("host") } else { field(":authority") };
    let (by, via) = (field("x-forwarded-for"), field("via"));
    let told = format!("{host} {by} {via} {}", field("origin"));
    let mut socket = WebSocket::from_raw_socket(end, Role::Server, None);
    socket.send(Message::text(told)).expect("sent");
    while let Ok(message) = socket.read() {
        if message.is_text() || message.is_binary() {
            socket.send(message).expect("sent");
        }
    }
}

/// Has messages sent back on a WebSocket, until both ends have closed it.
fn exchange(tunnel: Tunnel, told: &str) {
    for absent in ["content-length", "connection", "upgrade", "sec-websocket-accept", "sec-websocket-key"] {
        assert!(!tunnel.fields.contains_key(absent), "{absent}: {tunnel:?}");
    }
    assert!(tunnel.fields.contains_key("date"), "{tunnel:?}");
    let mut socket = WebSocket::from_raw_socket(tunnel, Role::Client, None);
    assert_eq!(socket.read().expect("a message").into_text().expect("text").as_str(), told);
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

/// Deleted, no WebSocket could pass between two versions of HTTP, or one could differ by what carries it.
#[test]
fn messages_go_both_ways_between_all_versions() {
    judge(all(), |client, upstream| {
        let upstream = agreeing(upstream, echo_messages);
        let (_place, server) = in_front_of(&upstream);
        let told = format!("localhost:{} 127.0.0.1 {} tercel https://localhost", server.port, client.digit());
        // The second one may share the connection to the upstream.
        for _ in 0..2 {
            exchange(tunnel(client, &server), &told);
        }
        let (_, log) = server.stop();
        let line = match client {
            Version::One => "\"GET /raw HTTP/1.1\" 101 ".to_owned(),
            client => format!("\"CONNECT /raw HTTP/{}\" 200 ", client.digit()),
        };
        assert_eq!(log.replace(".0\"", "\"").matches(&line).count(), 2, "{log}");
    });
}

/// Deleted, an upstream that speaks HTTP/2 over TLS alone could have no WebSocket, or one that prefers it none over HTTP/1.1.
#[test]
fn upstreams_with_tls_are_spoken_with_as_they_can() {
    let upstream = agreeing_by_tls(echo_messages);
    let (_place, server) = in_front_of(&upstream);
    for client in ALL {
        let told = format!("localhost:{} 127.0.0.1 {} tercel https://localhost", server.port, client.digit());
        exchange(tunnel(client, &server), &told);
    }
    server.stop();
}

/// Deleted, a WebSocket over HTTP/2 or 3 could differ by what is behind the server.
#[test]
fn messages_go_both_ways_to_each_kind_of_upstream() {
    let (_place, server) = in_front_of_each_kind();
    for (version, path) in
        BOTH.into_iter().flat_map(|version| ["/tcp", "/tls", "/socket"].map(|path| (version, path)))
    {
        let tunnel = open(version, server.port, path, (FIELDS, Vec::new()));
        assert_eq!((tunnel.status, tunnel.fields.contains_key("x-route")), (200, path == "/tcp"));
        let expected = format!(
            "host=localhost:{};x-forwarded-for=127.0.0.1;x-forwarded-proto=https;via={} tercel;cookie=;connection=upgrade;upgrade=websocket;",
            server.port,
            version.digit()
        );
        exchange(tunnel, &expected);
    }
    server.stop();
}

/// Deleted, a slow end could fill the server's memory, or bytes be lost when it goes on.
#[test]
fn a_slow_end_holds_back_the_other() {
    const MUCH: usize = 64 << 20;
    use Version::{One, Three, Two};
    judge(vec![(One, One), (Two, Two), (Three, Three), (Three, One), (One, Three)], |client, upstream| {
        let (go, wait) = channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        let upstream = agreeing(upstream, move |mut stream| {
            wait.lock().expect("no panic").recv().expect("a word");
            let read =
                io::copy(&mut Read::by_ref(&mut stream).take(MUCH as u64), &mut io::sink()).expect("read");
            stream.write_all(&read.to_be_bytes()).expect("sent");
            stream.set_nonblocking();
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
            stream.finish();
            wait.lock().expect("no panic").recv().expect("a word");
        });
        let (_place, server) = in_front_of(&upstream);
        let mut stream = tunnel(client, &server);
        stream.write_timeout(Duration::from_secs(1));
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
    });
}

/// Deleted, the last words of one end could be lost when the other has said all.
#[test]
fn each_direction_has_its_own_end() {
    judge(all(), |client, version| {
        let upstream = agreeing(version, |mut stream| {
            let mut all = Vec::new();
            stream.read_to_end(&mut all).expect("the end");
            thread::sleep(Duration::from_millis(200));
            all.reverse();
            stream.write_all(&all).expect("sent");
        });
        let (_place, server) = in_front_of(&upstream);
        let mut stream = tunnel(client, &server);
        stream.write_all(b"abc").expect("sent");
        stream.finish();
        assert_eq!(stream.rest(), b"cba");
        // All that is said comes with the request, or nothing is.
        for early in [&b"early"[..], b""] {
            let mut stream = open(client, server.port, "/raw", (FIELDS, early.to_vec()));
            stream.finish();
            let expected: Vec<u8> = early.iter().rev().copied().collect();
            assert_eq!(stream.rest(), expected);
        }
        server.stop();
        // The upstream has said all first.
        let (heard, hears) = channel();
        let heard = Arc::new(Mutex::new(heard));
        let upstream = agreeing(version, move |mut stream| {
            stream.write_all(b"all").expect("sent");
            stream.finish();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).expect("the end");
            heard.lock().expect("no panic").send(all).expect("the test waits");
        });
        let (_place, server) = in_front_of(&upstream);
        let mut stream = tunnel(client, &server);
        assert_eq!(stream.rest(), b"all");
        stream.write_all(b"later").expect("sent");
        stream.finish();
        assert_eq!(hears.recv_timeout(PATIENCE).expect("bytes"), b"later");
        server.stop();
    });
}

/// What an upstream tells of a WebSocket that is over: what came on it, and the code with which it was given up, if it was.
type Over = (Vec<u8>, Option<u64>);

/// How a WebSocket ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    End,
    Break,
}

/// The upstream tells when a WebSocket is over.
fn watched(version: Version, expected: Expected) -> (websocket_upstream::Upstream, Receiver<Over>) {
    let (heard, hears) = channel();
    let heard = Arc::new(Mutex::new(heard));
    let upstream = agreeing(version, move |mut stream| {
        stream.write_all(b"hello").expect("sent");
        let mut all = Vec::new();
        let mut piece = [0; 100];
        while let Ok(bytes @ 1..) = stream.read(&mut piece) {
            all.extend_from_slice(&piece[..bytes]);
        }
        let code = if expected == Expected::Break { stream.broken() } else { None };
        heard.lock().expect("no panic").send((all, code)).expect("the test waits");
    });
    (upstream, hears)
}

/// What an upstream of `version` hears of one that was given up.
fn given_up(version: Version) -> Option<u64> {
    (version != Version::One).then(|| version.cancelled())
}

/// Deleted, WebSockets without use could stay for ever, or those in use be cut.
#[test]
fn a_tunnel_at_rest_ends_and_one_in_use_does_not() {
    judge(all(), |client, version| {
        let (upstream, ends) = watched(version, Expected::Break);
        let (_place, server) = proxy(&format!("{}, tunnel-timeout = 2", upstream.keys));
        let mut stream = tunnel(client, &server);
        hello(&mut stream);
        let began = Instant::now();
        for _ in 0..8 {
            thread::sleep(Duration::from_millis(500));
            stream.write_all(b"x").expect("sent");
        }
        assert!(began.elapsed() > Duration::from_secs(3) && ends.try_recv().is_err());
        assert_eq!(stream.broken(), client.cancelled(), "it was cut");
        assert!(began.elapsed() > Duration::from_millis(5_500) && began.elapsed() < Duration::from_secs(20));
        let over = ends.recv_timeout(PATIENCE).expect("the end");
        assert_eq!(over, (b"xxxxxxxx".to_vec(), given_up(version)));
        server.stop();
    });
}

/// Deleted, a tunnel of which one end has said all could stay for ever.
#[test]
fn a_tunnel_that_goes_on_in_one_direction_and_rests_ends() {
    judge(all(), |client, version| {
        let (heard, hears) = channel();
        let heard = Arc::new(Mutex::new(heard));
        let upstream = agreeing(version, move |mut stream| {
            stream.write_all(b"all").expect("sent");
            stream.finish();
            let _ = stream.read_to_end(&mut Vec::new());
            heard.lock().expect("no panic").send(()).expect("the test waits");
        });
        let (_place, server) = proxy(&format!("{}, tunnel-timeout = 2", upstream.keys));
        let began = Instant::now();
        let mut stream = tunnel(client, &server);
        assert_eq!(stream.rest(), b"all");
        hears.recv_timeout(PATIENCE).expect("the end");
        assert!(began.elapsed() > Duration::from_millis(1_500), "{:?}", began.elapsed());
        server.stop();
    });
}

/// Deleted, a tunnel that says nothing could be cut by the rules for requests and for idle connections, of its client or of the upstream.
#[test]
fn a_quiet_tunnel_outlives_the_idle_timeout_of_its_connection() {
    judge(all(), |client, version| {
        let (upstream, ends) = watched(version, Expected::End);
        let (_place, server) = proxy_with(&upstream.keys, "idle-timeout = 2");
        let mut stream = tunnel(client, &server);
        hello(&mut stream);
        thread::sleep(Duration::from_secs(12));
        assert!(ends.try_recv().is_err(), "it is there");
        stream.write_all(b"still").expect("sent");
        stream.finish();
        assert_eq!(stream.rest(), b"");
        assert_eq!(ends.recv_timeout(PATIENCE).expect("the end").0, b"still");
        server.stop();
    });
}

/// Deleted, a client that has gone could leave its WebSocket at the upstream behind, or one look complete that broke off.
#[test]
fn an_end_that_breaks_off_ends_the_other() {
    judge(all(), |client, version| {
        let (upstream, ends) = watched(version, Expected::Break);
        let (_place, server) = in_front_of(&upstream);
        let mut stream = tunnel(client, &server);
        hello(&mut stream);
        stream.reset();
        let expected = (Vec::new(), given_up(version));
        assert_eq!(ends.recv_timeout(PATIENCE).expect("the end"), expected);
        // The connection is lost.
        let mut stream = tunnel(client, &server);
        hello(&mut stream);
        drop(stream);
        assert_eq!(ends.recv_timeout(PATIENCE).expect("the end"), expected);
        server.stop();
        let upstream = agreeing(version, |mut stream| {
            stream.write_all(b"hello").expect("sent");
            thread::sleep(Duration::from_millis(200));
            stream.read_exact(&mut [0]).expect("a byte");
            stream.break_off();
        });
        let (_place, server) = in_front_of(&upstream);
        let mut stream = tunnel(client, &server);
        hello(&mut stream);
        stream.write_all(&[1; 10_000]).expect("sent");
        assert_eq!(stream.broken(), client.cancelled());
        assert!(server.wait_for("said", ("the connection broke off", 1)).contains("GET /raw"));
        server.stop();
    });
}

/// Deleted, a reload could cut tunnels, or a server that ends wait for them without end.
#[test]
fn a_reload_cuts_nothing_and_the_end_of_the_server_ends_it() {
    judge(all(), |client, version| {
        let (upstream, ends) = watched(version, Expected::End);
        let (_place, mut server) = in_front_of(&upstream);
        let mut stream = tunnel(client, &server);
        hello(&mut stream);
        server.signal("HUP");
        server.wait_for("said", ("tercel: reloaded", 1));
        stream.write_all(b"after").expect("sent");
        thread::sleep(Duration::from_millis(200));
        let began = Instant::now();
        server.ask_to_end();
        assert_eq!(stream.rest(), b"", "the stream ends well");
        assert_eq!(ends.recv_timeout(PATIENCE).expect("the end").0, b"after");
        drop(stream);
        assert!(server.wait().success());
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    });
}

/// Deleted, an upgrade could cut tunnels, or the old process stay when the last of them is over.
#[test]
fn what_is_open_at_an_upgrade_goes_on_in_the_old_process_to_its_end() {
    judge(all(), |client, version| {
        let (upstream, ends) = watched(version, Expected::End);
        let (_place, mut server) = in_front_of(&upstream);
        let mut first = tunnel(client, &server);
        hello(&mut first);
        first.write_all(b"a").expect("sent");
        server.upgrade();
        first.write_all(b"b").expect("sent");
        // The new process has its own.
        let mut second = tunnel(client, &server);
        hello(&mut second);
        server.upgrade();
        thread::sleep(Duration::from_millis(1_500));
        first.write_all(b"c").expect("sent");
        second.write_all(b"x").expect("sent");
        thread::sleep(Duration::from_millis(200));
        assert!(ends.try_recv().is_err(), "both go on");
        first.finish();
        assert_eq!(first.rest(), b"");
        assert_eq!(ends.recv_timeout(PATIENCE).expect("the end").0, b"abc");
        assert!(server.wait().success(), "the first process has nothing left");
        second.write_all(b"y").expect("sent");
        second.finish();
        assert_eq!(second.rest(), b"");
        assert_eq!(ends.recv_timeout(PATIENCE).expect("the end").0, b"xy");
        server.stop();
    });
}

/// Deleted, a tunnel without an end of its own could keep an old process for ever, or the limit end it too early.
#[test]
fn the_drain_timeout_ends_what_is_open_in_the_old_process_and_nothing_else() {
    use Version::{One, Three, Two};
    judge(vec![(One, One), (Two, Three), (Three, Two)], |client, version| {
        let (upstream, ends) = watched(version, Expected::End);
        let (_place, mut server) = proxy_with(&upstream.keys, "drain-timeout = 3");
        let mut old = tunnel(client, &server);
        hello(&mut old);
        let began = Instant::now();
        server.upgrade();
        let mut new = tunnel(client, &server);
        hello(&mut new);
        old.write_all(b"old").expect("sent");
        assert_eq!(ends.recv_timeout(PATIENCE).expect("the end").0, b"old");
        assert!(began.elapsed() >= Duration::from_secs(3), "{:?}", began.elapsed());
        assert!(server.wait().success());
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        new.write_all(b"new").expect("sent");
        new.finish();
        assert_eq!(new.rest(), b"");
        assert_eq!(ends.recv_timeout(PATIENCE).expect("the end").0, b"new");
        server.stop();
    });
}

/// Deleted, what a client sends before the upstream has agreed could be lost, or reach it before that.
#[test]
fn what_a_client_sends_too_early_waits_for_the_upstream() {
    judge(all(), |client, version| {
        let may_agree = || thread::sleep(Duration::from_millis(500));
        let upstream = agreeing_when(version, may_agree, |mut stream| {
            let mut early = [0; 200_000];
            stream.read_exact(&mut early).expect("all of it");
            let is_whole = early.iter().all(|byte| *byte == b'e');
            stream.write_all(if is_whole { b"hello" } else { b"wrong" }).expect("sent");
        });
        let (_place, server) = in_front_of(&upstream);
        let mut stream = open(client, server.port, "/raw", (FIELDS, vec![b'e'; 200_000]));
        hello(&mut stream);
        server.stop();
    });
}
