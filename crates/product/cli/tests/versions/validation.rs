//! One validation for three versions: each wrong head is sent to all, as raw bytes, and the outcomes are compared.
//!
//! Refused means 400, or a reset of the stream as malformed, which RFC 9113 §8.1.1 and RFC 9114 §4.1.2 permit.

use crate::message::Ask;
use crate::server::Server;
use crate::{http3, raw, site, tcp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Served(u16),
    Refused,
}

use Outcome::{Refused, Served};

/// A head as HTTP/1.1 says it, without its last line; empty when it cannot. The lines of HTTP/2 and 3. What each answers.
type Case = (&'static str, Vec<u8>, Vec<Line>, [Outcome; 3]);
/// A name and a value.
type Line = (Vec<u8>, Vec<u8>);

fn line(name: &str, value: impl AsRef<[u8]>) -> Line {
    (name.as_bytes().to_vec(), value.as_ref().to_vec())
}

/// A request with this scheme, authority (`-`: none) and path, and more fields.
fn lines(target: [&str; 3], more: &[(&str, &[u8])]) -> Vec<Line> {
    let [scheme, authority, path] = target;
    let all = [(":method", "GET"), (":scheme", scheme), (":authority", authority), (":path", path)];
    let pseudo = all.into_iter().filter(|(_, value)| *value != "-").map(|(name, value)| line(name, value));
    pseudo.chain(more.iter().map(|(name, value)| line(name, value))).collect()
}

const PLAIN: [&str; 3] = ["https", "localhost", "/hello.txt"];
const NO_AUTHORITY: [&str; 3] = ["https", "-", "/hello.txt"];

fn get(target: &str, fields: &[(&str, &[u8])]) -> Vec<u8> {
    let mut head = format!("GET {target} HTTP/1.1\r\n").into_bytes();
    for (name, value) in fields {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
    head
}

/// Hosts and fields.
fn fields() -> Vec<Case> {
    let host = ("host", &b"localhost"[..]);
    let one = |fields: &[(&str, &[u8])]| get("/hello.txt", fields);
    let refused = [Refused; 3];
    let mut cases = vec![
        ("plain", one(&[host]), lines(PLAIN, &[]), [Served(200); 3]),
        ("host instead of :authority", one(&[host]), lines(NO_AUTHORITY, &[host]), [Served(200); 3]),
        ("both alike", one(&[host]), lines(PLAIN, &[host]), [Served(200); 3]),
        ("two hosts", one(&[host, host]), lines(NO_AUTHORITY, &[host, host]), refused),
        ("two hosts and :authority", one(&[host, host]), lines(PLAIN, &[host, host]), refused),
        ("no host", one(&[]), lines(NO_AUTHORITY, &[]), refused),
        // RFC 9112 §3.2.2: an absolute target counts instead of the field.
        (
            "another host",
            get("https://localhost/hello.txt", &[("host", b"other.example")]),
            lines(PLAIN, &[("host", b"other.example")]),
            [Served(200), Refused, Refused],
        ),
        // RFC 9112 §5: over HTTP/1.1 blanks are not part of the value.
        (
            "blank before a value",
            one(&[host, ("x", b"  y")]),
            lines(PLAIN, &[("x", b" y")]),
            [Served(200), Refused, Refused],
        ),
        (
            "blank behind a value",
            one(&[host, ("x", b"y\t")]),
            lines(PLAIN, &[("x", b"y\t")]),
            [Served(200), Refused, Refused],
        ),
        (
            "blank behind a range",
            one(&[host, ("range", b"bytes=0-1 ")]),
            lines(PLAIN, &[("range", b"bytes=0-1 ")]),
            [Served(206), Refused, Refused],
        ),
        (
            "lengths",
            one(&[host, ("content-length", b"0"), ("content-length", b"1")]),
            lines(PLAIN, &[("content-length", b"0"), ("content-length", b"0")]),
            refused,
        ),
    ];
    let invalid: [&[u8]; 8] = [b"a b", b"a/b", b"a, b", b"u@h", b"h:abc", b"\xe9", b"[::1", b"h:99999"];
    for value in invalid {
        cases.push(("host value", one(&[("host", value)]), lines(NO_AUTHORITY, &[("host", value)]), refused));
    }
    cases
}

/// Schemes, authorities and paths.
fn targets() -> Vec<Case> {
    let host = ("host", &b"localhost"[..]);
    let refused = [Refused; 3];
    vec![
        (
            "user",
            get("https://u@localhost/hello.txt", &[host]),
            lines(["https", "u@localhost", "/hello.txt"], &[]),
            refused,
        ),
        (
            "port",
            get("https://localhost:abc/hello.txt", &[host]),
            lines(["https", "localhost:abc", "/hello.txt"], &[]),
            refused,
        ),
        // `http::Uri` cuts fragments off before the server sees the path: crates/product/server/src/target.rs.
        (
            "fragment",
            get("/hello.txt#x", &[host]),
            lines(["https", "localhost", "/hello.txt#x"], &[]),
            [Served(200), Served(200), Refused],
        ),
        ("no path", get("*", &[host]), lines(["https", "localhost", "*"], &[]), refused),
        (
            "path beyond ASCII",
            get("/caf\u{e9}", &[host]),
            lines(["https", "localhost", "/caf\u{e9}"], &[]),
            refused,
        ),
        (
            "ftp",
            get("ftp://localhost/hello.txt", &[host]),
            lines(["ftp", "localhost", "/hello.txt"], &[]),
            [Served(421); 3],
        ),
        (
            "http",
            get("http://localhost/hello.txt", &[host]),
            lines(["http", "localhost", "/hello.txt"], &[]),
            [Served(200); 3],
        ),
    ]
}

/// Issue 10: HTTP/2 served what HTTP/3 refuses, and HTTP/1.1 took any Host.
#[test]
fn wrong_heads_are_refused_by_all() {
    let root = site();
    let server = Server::start(root.path(), &[]);
    let cases = [fields(), targets()].concat();
    let asks: Vec<Ask> =
        cases.iter().map(|(_, _, lines, _)| Ask { lines: lines.clone(), ..Ask::default() }).collect();
    let three = http3::http3_or_reset(server.port, &asks);
    for ((what, one, lines, expected), three) in cases.into_iter().zip(three) {
        let text = format!("{what}: {}", one.escape_ascii());
        let one = tcp::run(raw::http1(server.port, &[&one[..], b"\r\n"].concat()));
        let two = match tcp::run(raw::http2(server.port, &lines)) {
            Ok(400) => Refused,
            Ok(status) => Served(status),
            Err(code) => {
                assert_eq!(code, 1, "PROTOCOL_ERROR: {text}");
                Refused
            }
        };
        let judged = |status| if status == 400 { Refused } else { Served(status) };
        assert!(one.field("date").ends_with(" GMT"), "{text}");
        let is_malformed = three.reset.contains("H3_MESSAGE_ERROR");
        assert!(is_malformed || three.field("date").ends_with(" GMT"), "{text}: {three:?}");
        let three = if is_malformed { Refused } else { judged(three.status) };
        assert_eq!([judged(one.status), two, three], expected, "{text}");
    }
    server.stop();
}

/// RFC 9110 §6.6.1: errors that hyper makes are dated too.
#[test]
fn errors_below_the_handler_are_dated() {
    let root = site();
    let server = Server::start(root.path(), &[]);
    let fields: String = (0..400).map(|number| format!("x-{number}: 1\r\n")).collect();
    let table = [
        ("GET / HTTP/1.1\r\nhost: a\r\nbad field\r\n\r\n".to_owned(), 400),
        (format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", "x".repeat(70_000)), 414),
        (format!("GET / HTTP/1.1\r\nhost: a\r\n{fields}\r\n"), 431),
    ];
    for (head, status) in table {
        let answer = tcp::run(raw::http1(server.port, head.as_bytes()));
        assert_eq!(answer.status, status);
        assert!(answer.field("date").ends_with(" GMT"), "{status}");
    }
    let names: Vec<Line> = (0..300).map(|number| line(&format!("x-{number}"), "")).collect();
    let lines = [lines(PLAIN, &[]), names].concat();
    let answer = http3::http3(server.port, &[Ask { lines, ..Ask::default() }]).remove(0);
    assert_eq!(answer.status, 431);
    assert!(answer.field("date").ends_with(" GMT"));
    server.stop();
}
