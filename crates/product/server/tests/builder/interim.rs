//! Informational responses over HTTP/1.1, on the wire.

use crate::builder;
use crate::client::{ask, connect};
use body::Body;
use http::{HeaderMap, Request, Response, StatusCode};
use server::ConnectionInfo;
use server::service::service_fn;
use std::convert::Infallible;
use std::io::{Read as _, Write as _};

/// Hints, and answers with what became of that and with the content.
async fn app(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let informational = request.extensions().get::<ConnectionInfo>().unwrap().informational();
    let fields = HeaderMap::from_iter([(http::header::LINK, "</style.css>".parse().unwrap())]);
    let sent = informational.send(StatusCode::EARLY_HINTS, fields);
    if request.uri().path() == "/twice" {
        let more = informational.send(StatusCode::PROCESSING, HeaderMap::new());
        return Ok(Response::new(format!("{more:?} 0").into()));
    }
    if request.uri().path() == "/refused" {
        return Ok(Response::builder().status(403).body(format!("{sent:?}").into()).unwrap());
    }
    let content = request.into_body().collect(100).await.unwrap();
    Ok(Response::new(format!("{sent:?} {}", content.len()).into()))
}

/// The status lines of a text, and its last line.
fn lines(text: &str) -> (Vec<&str>, &str) {
    let statuses = text.lines().filter_map(|line| line.strip_prefix("HTTP/1.")).collect();
    (statuses, text.lines().last().unwrap_or_default())
}

/// RFC 9110 §15.2. Deleted, hints could be lost, come behind the response, or reach a client that does not know them.
#[test]
fn hints_leave_before_the_response_over_http_1_1_and_never_over_1_0() {
    let server = builder().serve(service_fn(app)).unwrap();
    let address = server.local_addr();
    let get = |version: &str| format!("GET / HTTP/{version}\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let (text, _) = ask(address, "localhost", &get("1.1"));
    assert_eq!(lines(&text), (vec!["1 103 Early Hints", "1 200 OK"], "Ok(()) 0"), "{text}");
    assert!(
        text.starts_with("HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\nHTTP/1.1 200 OK\r\n"),
        "{text}"
    );
    let (text, _) = ask(address, "localhost", &get("1.1").replace("/ ", "/twice "));
    assert_eq!(
        lines(&text),
        (vec!["1 103 Early Hints", "1 102 Processing", "1 200 OK"], "Ok(()) 0"),
        "{text}"
    );
    let (text, _) = ask(address, "localhost", &get("1.0"));
    assert_eq!(lines(&text), (vec!["0 200 OK"], "Err(Unsupported) 0"), "{text}");
    // Two requests at once: the second one's hints do not come into the first one's response.
    let pipelined = format!("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n{}", get("1.1"));
    let (text, _) = ask(address, "localhost", &pipelined);
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2, "{text}");
    assert!(text.matches("Ok(()) 0").count() == 2 && text.ends_with("Ok(()) 0"), "{text}");
}

/// RFC 9110 §10.1.1: 100 (Continue) leaves when the handler reads, and not if it answers without.
#[test]
fn a_client_that_waits_is_told_to_go_on_when_the_handler_reads() {
    let server = builder().serve(service_fn(app)).unwrap();
    let address = server.local_addr();
    let head = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n"
        )
    };
    let mut stream = connect(address, "localhost");
    stream.write_all(head("/").as_bytes()).unwrap();
    let mut text = String::new();
    while !text.contains("100 Continue") {
        let mut some = [0; 1_000];
        let count = stream.read(&mut some).unwrap();
        assert!(count > 0, "{text}");
        text.push_str(std::str::from_utf8(&some[..count]).unwrap());
    }
    assert!(!text.contains("200"), "{text}");
    stream.write_all(b"abc").unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    text.push_str(std::str::from_utf8(&rest).unwrap());
    let expected = vec!["1 103 Early Hints", "1 100 Continue", "1 200 OK"];
    let (mut found, last) = lines(&text);
    found[..2].sort_unstable_by(|one, other| other.cmp(one));
    assert_eq!((found, last), (expected, "Ok(()) 3"), "{text}");
    let (text, _) = ask(address, "localhost", &head("/refused"));
    assert_eq!(lines(&text).0, ["1 103 Early Hints", "1 403 Forbidden"], "{text}");
}
