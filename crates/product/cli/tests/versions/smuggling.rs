//! Hostile upstreams and clients of the proxy: what is not valid ends there, and what breaks off looks so, over HTTP/1.1, 2 and 3.

use crate::message::Ask;
use crate::proxy::{CHOICES, client, proxy, statuses};
use crate::sites::ask_all;
use crate::tcp;
use crate::upstream::{Heard, Then, Upstream, echo, write};
use std::io::Write;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Responses that are none, or ambiguous: none of them is sent on.
const INVALID: &[&str] = &[
    "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
    "HTTP/1.1 200 OK\r\ncontent-length: 3, 4\r\n\r\nabcd",
    "HTTP/1.1 200 OK\r\ncontent-length: +3\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\nx-folded: a\r\n b\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nx-space : a\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\n x-first: a\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nx-nul: a\0b\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nno-colon\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    "HTTP/1.1 2OO OK\r\ncontent-length: 0\r\n\r\n",
    "HTTP/2.0 200 OK\r\ncontent-length: 0\r\n\r\n",
    "SSH-2.0-OpenSSH\r\n\r\n",
    "<html>no head at all</html>",
    "HTTP/1.1 200 OK\r\nx-half: ",
];

/// Responses whose content is not complete.
const CUT: &[&str] = &[
    "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n9\r\nabc",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\nabc\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n-1\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nfffffffffffffffff\r\nabc",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-half: ",
];

/// The response that a target asks for by its number.
fn of(list: &'static [&'static str]) -> Upstream {
    Upstream::start(move |heard: &Heard, out: &mut dyn Write| {
        let number: usize = heard.target().trim_start_matches('/').parse().unwrap_or_default();
        write(out, list[number % list.len()].as_bytes());
        Then::Close
    })
}

/// Deleted, a response that two readers understand differently could go on to a client.
#[test]
fn a_response_that_is_not_valid_is_not_sent_on() {
    let upstream = of(INVALID);
    let (_place, server) = proxy(&format!("to = '{}', max-failures = 1000000", upstream.url()));
    for (number, text) in INVALID.iter().enumerate() {
        let answers = ask_all(server.port, &Ask::get(&format!("/{number}")));
        assert_eq!(statuses(&answers), [502; 3], "{text:?}: {answers:?}");
    }
    server.stop();
}

/// Deleted, half a file could look like a whole one.
#[test]
fn a_response_that_breaks_off_does_not_look_complete() {
    let upstream = of(CUT);
    let (_place, server) = proxy(&format!("to = '{}'", upstream.url()));
    for http in CHOICES {
        let client = client(http);
        for (number, text) in CUT.iter().enumerate() {
            tcp::run(async {
                let response = client.get(format!("https://localhost:{}/{number}", server.port)).await;
                // The head may be lost with the rest.
                let Ok(response) = response else { return };
                assert_eq!(response.status(), 200, "{text:?}");
                let content = response.into_body().collect(1_000).await;
                assert!(content.is_err(), "{http:?} {text:?} looks complete: {content:?}");
            });
        }
    }
    let said = server.wait_for("said", ("the response broke off", 1));
    assert!(said.contains("GET /"), "{said}");
    server.stop();
}

/// Deleted, what an upstream sends after a response could be the answer to another client's request.
#[test]
fn what_follows_a_response_answers_no_other_request() {
    let upstream = Upstream::start(|heard: &Heard, out: &mut dyn Write| {
        if heard.target() == "/more" {
            write(
                out,
                b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil",
            );
            return Then::Keep;
        }
        if heard.target() == "/both" {
            // RFC 9112 §6.3: the chunks count.
            write(
                out,
                b"HTTP/1.1 200 OK\r\ncontent-length: 40\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            );
            return Then::Keep;
        }
        echo(heard, out)
    });
    let (_place, server) = proxy(&format!("to = '{}'", upstream.url()));
    for http in CHOICES {
        let client = client(http);
        for _ in 0..20 {
            tcp::run(async {
                for (path, expected) in [
                    ("more", "ok"),
                    ("own", "GET /own HTTP/1.1 0"),
                    ("both", "ok"),
                    ("own", "GET /own HTTP/1.1 0"),
                ] {
                    let response = client.get(format!("https://localhost:{}/{path}", server.port)).await;
                    let response = response.expect("a response");
                    assert_ne!(
                        response.headers().get("content-length").map(|value| value.as_bytes()),
                        Some(&b"40"[..])
                    );
                    let content = response.into_body().collect(1_000).await.expect("content");
                    assert_eq!(content, expected.as_bytes(), "{http:?}");
                }
            });
        }
    }
    server.stop();
}

/// Requests of a hostile client over HTTP/1.1, each followed by the end of the client's half; and what of them may reach an upstream.
const REQUESTS: &[(&str, Option<(&str, &str)>)] = &[
    ("POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd", None),
    ("POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 3, 3\r\n\r\nabc", None),
    ("POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: +3\r\n\r\nabc", None),
    ("POST /a HTTP/1.1\r\nhost: a\r\ncontent-length : 3\r\n\r\nabc", None),
    ("POST /a HTTP/1.1\r\nhost: a\r\ntransfer-encoding : chunked\r\n\r\n0\r\n\r\n", None),
    ("POST /a HTTP/1.1\r\nhost: a\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n", None),
    ("POST /a HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n", None),
    ("POST /a HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", None),
    ("GET /a HTTP/1.1\r\nhost: a\r\nx-folded: a\r\n content-length: 3\r\n\r\n", None),
    ("GET /a HTTP/1.1\r\nhost: a\r\n x: a\r\n\r\n", None),
    ("GET /a HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", None),
    ("GET /a b HTTP/1.1\r\nhost: a\r\n\r\n", None),
    ("GET /a HTTP/1.1\r\nhost: a\r\nx: a\0b\r\n\r\n", None),
    ("GET /a HTTP/1.1\r\nhost: a\r\nx: a\rb\r\n\r\n", None),
    ("GET /../a HTTP/1.1\r\nhost: a\r\n\r\n", None),
    // The chunks count, and what follows them is a request of its own; the upstream hears of no other length.
    (
        "POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        Some(("POST /a HTTP/1.1", "abc")),
    ),
    ("GET /a HTTP/1.1\r\nhost: a\r\nconnection: x-b\r\nx-b: c\r\n\r\n", Some(("GET /a HTTP/1.1", ""))),
];

/// Deleted, an upstream could see another request than the server has judged.
#[test]
fn a_request_that_is_not_valid_is_not_sent_on() {
    let upstream = Upstream::echo();
    let (_place, server) = proxy(&format!("to = '{}'", upstream.url()));
    for (text, expected) in REQUESTS {
        tcp::run(async {
            let mut stream = tcp::connect(server.port, "http/1.1").await;
            stream.write_all(text.as_bytes()).await.expect("sent");
            let mut answer = vec![0; 1_000];
            let read = stream.read(&mut answer).await.unwrap_or_default();
            let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
            let status = if expected.is_some() { "HTTP/1.1 200 " } else { "HTTP/1.1 400 " };
            assert!(answer.starts_with(status) || expected.is_none() && read == 0, "{text:?}: {answer}");
        });
        let heard = upstream.take();
        match expected {
            None => assert!(heard.is_empty(), "{text:?}: {heard:?}"),
            Some((first, content)) => {
                let [one] = heard.as_slice() else { panic!("{text:?}: {heard:?}") };
                assert_eq!(
                    (one.first_line(), one.content.as_slice()),
                    (*first, content.as_bytes()),
                    "{text:?}"
                );
                assert!(one.field("x-b").is_empty() && one.field("connection").is_empty(), "{heard:?}");
                let lengths = ["content-length", "transfer-encoding"].map(|name| !one.field(name).is_empty());
                assert!(lengths != [true, true], "{heard:?}");
            }
        }
    }
    // Content that breaks off: the upstream does not take it for whole.
    for text in [
        "POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nabc",
        "POST /a HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "POST /a HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n\r\n0\r\n\r\n",
        "POST /a HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
    ] {
        tcp::run(async {
            let mut stream = tcp::connect(server.port, "http/1.1").await;
            stream.write_all(text.as_bytes()).await.expect("sent");
            stream.shutdown().await.expect("the end");
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
            assert!(!rest.starts_with(b"HTTP/1.1 200"), "{text:?}");
        });
    }
    assert!(upstream.take().is_empty(), "the upstream took half a request for a whole one");
    server.stop();
}

/// The same over HTTP/2 and 3, where fields of HTTP/1.1 have no meaning. RFC 9113 §8.2, RFC 9114 §4.2.
#[test]
fn fields_of_http1_do_not_go_on_from_other_versions() {
    let upstream = Upstream::echo();
    let (_place, server) = proxy(&format!("to = '{}'", upstream.url()));
    let hostile: [(&str, &str); 7] = [
        ("transfer-encoding", "chunked"),
        ("connection", "keep-alive"),
        ("x-split", "a\r\ncontent-length: 3"),
        ("x-split: a\r\nx", "b"),
        ("x space", "a"),
        ("content-length", "3"),
        ("host", "b"),
    ];
    let asks: Vec<Ask> = hostile
        .iter()
        .map(|(name, value)| {
            let lines = [
                (":method", "POST"),
                (":scheme", "https"),
                (":authority", "localhost"),
                (":path", "/"),
                (name, value),
            ];
            let line = |(name, value): &(&str, &str)| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
            Ask { lines: lines.iter().map(line).collect(), ..Ask::default() }
        })
        .collect();
    for (answer, (name, value)) in crate::http3::http3_or_reset(server.port, &asks).iter().zip(hostile) {
        assert!(!answer.reset.is_empty() || answer.status == 400, "{name:?} {value:?}: {answer:?}");
    }
    assert!(upstream.take().is_empty(), "nothing of it reached the upstream");
    server.stop();
}
