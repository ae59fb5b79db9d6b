//! Informational responses of upstreams on their way through the proxy. RFC 9110 §15.2, RFC 8297.

use crate::configuration::folder;
use crate::http2_upstreams::by_h2;
use crate::http3_upstream::Http3Upstream;
use crate::proxy::{CHOICES, client, proxy};
use crate::sites::start;
use crate::tcp::run;
use crate::upstream::{Heard, Then, Upstream, write};
use crate::websocket;
use http::{HeaderMap, HeaderName, StatusCode};
use std::convert::Infallible;
use std::io::{Read as _, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tercel::client::{HttpChoice, on_informational};
use tercel::{Body, ConnectionInfo, service_fn};

/// What comes before a response of either upstream: with fields that concern the upstream alone.
const HINTS: [(u16, &[(&str, &str)]); 3] = [
    (
        103,
        &[("link", "</a.css>"), ("link", "</b.css>"), ("alt-svc", "h3=\":1\""), ("keep-alive", "timeout=1")],
    ),
    (100, &[]),
    (102, &[("x-done", "half")]),
];

/// Hints, and then answers, over HTTP/1.1.
fn by_http1() -> Upstream {
    Upstream::start(|heard: &Heard, out: &mut dyn Write| {
        let mut text = String::new();
        for (status, fields) in HINTS {
            text += &format!("HTTP/1.1 {status} Hint\r\n");
            fields.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
            text += "\r\n";
        }
        text +=
            &format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{}", heard.target().len(), heard.target());
        write(out, text.as_bytes());
        Then::Keep
    })
}

/// The same over HTTP/2, by h2. Returns the port.
fn by_http2() -> u16 {
    by_h2(|request, mut answer| {
        for (status, fields) in HINTS {
            // h2 sends no field that concerns a connection.
            let fields = fields.iter().filter(|(name, _)| *name != "keep-alive");
            let mut hint = http::Response::builder().status(status);
            for (name, value) in fields {
                hint = hint.header(*name, *value);
            }
            answer.send_informational(hint.body(()).expect("a hint")).expect("it leaves");
        }
        let mut content = answer.send_response(http::Response::new(()), false).expect("sent");
        content.send_data(request.uri().path().to_owned().into(), true).expect("sent");
    })
}

/// The same over HTTP/3.
fn by_http3() -> Http3Upstream {
    Http3Upstream::start(service_fn(async |request: http::Request<Body>| {
        let informational =
            request.extensions().get::<ConnectionInfo>().expect("a connection").informational();
        for (status, fields) in HINTS {
            let mut map = HeaderMap::new();
            for (name, value) in fields {
                map.append(HeaderName::from_static(name), value.parse().expect("a value"));
            }
            informational.send(StatusCode::from_u16(status).expect("a status"), map).expect("it leaves");
        }
        // They leave before a response that is there at once.
        Ok::<_, Infallible>(http::Response::new(Body::from(request.uri().path().to_owned())))
    }))
}

/// Deleted, hints of an upstream could be lost, reach the wrong request, or tell clients what concerns the upstream.
#[test]
fn hints_go_on_from_all_versions_to_http1_and_http3() {
    let (one, three) = (by_http1(), by_http3());
    let place = folder(&[("site/index.html", "home")]);
    let route = |path: &str, keys: &str| format!("[[site.route]]\npath = '{path}'\nproxy = {{ {keys} }}\n");
    let text = format!(
        "[[site]]\nnames = '*'\n{}{}{}",
        route("/one", &format!("to = '{}'", one.url())),
        route("/two", &format!("to = 'h2c://127.0.0.1:{}'", by_http2())),
        route("/three", &three.keys())
    );
    let server = start(place.path(), &text);
    for http in CHOICES {
        let client = client(http);
        // On the same connections once more, so that hints of one response are not another one's.
        for path in ["/one", "/two", "/three", "/one", "/two", "/three"] {
            let seen = Arc::new(Mutex::new(Vec::new()));
            let mut request = http::Request::get(format!("https://localhost:{}{path}", server.port));
            let mut request = std::mem::take(&mut request).body(Body::empty()).expect("a request");
            let see = Arc::clone(&seen);
            on_informational(&mut request, move |head| {
                let fields = head.headers().iter();
                let fields = fields.map(|(name, value)| format!("{name}: {}", value.to_str().expect("text")));
                see.lock().expect("no panic").push((head.status().as_u16(), fields.collect::<Vec<_>>()));
            });
            let (status, content) = run(async {
                let response = client.request(request).await.expect("a response");
                let status = response.status();
                (status, response.into_body().collect(100).await.expect("content"))
            });
            assert_eq!((status.as_u16(), &*content), (200, path.as_bytes()));
            let seen = std::mem::take(&mut *seen.lock().expect("no panic"));
            let expected = [
                (103, vec!["link: </a.css>".to_owned(), "link: </b.css>".to_owned()]),
                (102, vec!["x-done: half".to_owned()]),
            ];
            // hyper sends none over HTTP/2.
            let expected = if http == HttpChoice::Http2 { &[][..] } else { &expected[..] };
            assert_eq!(seen, expected, "{http:?} {path}");
        }
    }
    // By hand: a client of HTTP/1.0 knows none.
    for (version, hints) in [("1.1", 1), ("1.0", 0)] {
        let mut stream = websocket::connect(server.port);
        let request = format!("GET /one HTTP/{version}\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("the end");
        let hint = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\nlink: </b.css>\r\n\r\n";
        assert_eq!((text.matches(hint).count(), text.matches(" 200 OK\r\n").count()), (hints, 1), "{text}");
        assert!(text.ends_with("\r\n\r\n/one"), "{text}");
    }
    server.stop();
}

/// Deleted, an upstream could fill the memory of the server with hints, or hold a request for ever without an answer.
#[test]
fn an_upstream_that_only_hints_does_not_answer() {
    let upstream = Upstream::start(|heard: &Heard, out: &mut dyn Write| {
        let hint = b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n";
        if heard.target() == "/many" {
            write(out, &hint.repeat(10_000));
            write(out, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
            return Then::Keep;
        }
        while out.write_all(hint).and_then(|()| out.flush()).is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
        Then::Close
    });
    let (_place, server) =
        proxy(&format!("to = '{}', response-timeout = 1, max-failures = 1000000", upstream.url()));
    for http in CHOICES {
        let client = client(http);
        for (path, expected) in [("/many", 200), ("/only", 504)] {
            let url = format!("https://localhost:{}{path}", server.port);
            let status = run(async { client.get(url).await.expect("a response").status() });
            assert_eq!(status.as_u16(), expected, "{http:?} {path}");
        }
    }
    server.stop();
}
