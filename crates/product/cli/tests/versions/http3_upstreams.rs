//! Routes whose requests go on by HTTP/3, over HTTP/1.1, 2 and 3.

use crate::admin::get;
use crate::configuration::folder;
use crate::http3_upstream::{Certificate, End, Http3Upstream, echo, frame, raw, section};
use crate::message::Ask;
use crate::proxy::{CHOICES, client, proxy, proxy_with, statuses};
use crate::server::Server;
use crate::sites::{Row, answer_alike, ask_all, start};
use crate::streaming::{ALL, both_ways, hold_back};
use crate::tcp;
use std::convert::Infallible;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tercel::client::HttpChoice;
use tercel::{Body, service_fn};

/// Deleted, a request could reach an upstream of HTTP/3 as another one than was sent, or its response come back changed.
#[test]
fn requests_go_on_by_http3_alike_over_all_versions() {
    let upstream = Http3Upstream::start(service_fn(echo));
    let (_place, server) = proxy(&upstream.keys());
    let ask = Ask::new;
    let rows: Vec<Row> = vec![
        (
            Ask::get("/a%20b?x=%22y%22&z"),
            200,
            "GET /a%20b?x=%22y%22&z HTTP/3.0 0",
            &["x-upstream: yes", "date: …", "content-length: 33"],
        ),
        (ask("POST", "/").sending(40_000), 200, "POST / HTTP/3.0 40000", &[]),
        (ask("PUT", "/").sending(1), 200, "PUT / HTTP/3.0 1", &[]),
        (ask("DELETE", "/1"), 200, "DELETE /1 HTTP/3.0 0", &[]),
        (ask("PROPFIND", "/1"), 200, "PROPFIND /1 HTTP/3.0 0", &[]),
        (ask("HEAD", "/1"), 200, "", &["content-length: 18", "x-upstream: yes"]),
    ];
    answer_alike(server.port, &rows);
    let told = ask_all(
        server.port,
        &Ask::get("/fields")
            .of("example.org")
            .with("te", "trailers")
            .with("x-forwarded-for", "192.0.2.1")
            .with("cookie", "a=1; b=2"),
    );
    for (answer, (version, announced)) in told.iter().zip([("1.1", true), ("2", true), ("3", false)]) {
        let text = String::from_utf8_lossy(&answer.content).into_owned();
        let expected = format!(
            "GET /fields HTTP/3.0 0 Some(\"example.org\") te=trailers x-forwarded-for=127.0.0.1 x-forwarded-proto=https \
             x-forwarded-host=example.org via={version} tercel cookie=a=1; b=2 connection= x-b="
        );
        assert_eq!(text, expected);
        let own = if announced { format!("h3=\":{}\"; ma=86400", server.port) } else { String::new() };
        assert_eq!(answer.field("alt-svc"), own, "the upstream's is not sent on");
    }
    server.stop();
}

/// Deleted, trailers could be lost, or requests be mixed up on a connection that they share.
#[test]
fn many_requests_share_a_connection_of_http3() {
    let upstream = Http3Upstream::start(service_fn(echo));
    let place = folder(&[("site/index.html", "home")]);
    let server = start(place.path(), &with_admin(&upstream.keys()));
    for http in CHOICES {
        let client = client(http);
        tcp::run(async {
            let all = (0..100_usize).map(|number| {
                let url = format!("https://localhost:{}/{number}", server.port);
                let request = http::Request::post(url).body(vec![b'x'; number * 1_000]).expect("a request");
                let client = client.clone();
                tokio::spawn(async move {
                    let mut content = client.request(request).await.expect("a response").into_body();
                    let mut text = Vec::new();
                    while let Some(chunk) = content.chunk().await.expect("content") {
                        text.extend_from_slice(&chunk);
                    }
                    let expected = format!("POST /{number} HTTP/3.0 {}", number * 1_000);
                    assert_eq!(String::from_utf8_lossy(&text), expected);
                    let trailers = content.trailers().await.expect("the end");
                    // hyper sends trailers over HTTP/1.1 only to clients that ask for them, and if they were announced.
                    if http != HttpChoice::Http1 {
                        let bytes = trailers.and_then(|trailers| trailers.get("x-bytes").cloned());
                        assert_eq!(bytes, Some((number * 1_000).into()));
                    }
                })
            });
            for task in all.collect::<Vec<_>>() {
                task.await.expect("no panic");
            }
        });
    }
    let (_, metrics) = get(&server, "/metrics");
    let of = |name: &str| {
        let sample = format!("tercel_upstream_{name}{{upstream=\"{}\"", upstream.url());
        let line = metrics.lines().find(|line| line.starts_with(&sample) && !line.contains("status=\"1xx\""));
        line.and_then(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
    };
    assert_eq!((of("requests_total"), of("failures_total")), (Some(300.0), Some(0.0)), "{metrics}");
    assert!(of("connections_opened_total").is_some_and(|opened| (1.0..60.0).contains(&opened)), "{metrics}");
    let (_, status) = get(&server, "/status");
    assert!(status.contains(&format!("\"name\": \"{}\"", upstream.url())), "{status}");
    server.stop();
}

fn with_admin(keys: &str) -> String {
    format!(
        "admin = 'localhost:0'\n[[site]]\nnames = '*'\n[[site.route]]\npath = '/'\nproxy = {{ {keys} }}\n"
    )
}

async fn talk(request: http::Request<Body>) -> Result<http::Response<Body>, Infallible> {
    Ok(http::Response::new(request.into_body()))
}

/// Deleted, a proxy could wait for the whole of a message that never ends.
#[test]
fn content_streams_both_ways_by_http3() {
    let upstream = Http3Upstream::start(service_fn(talk));
    let (_place, server) = proxy(&upstream.keys());
    both_ways(server.port);
    server.stop();
}

/// A service that reads nothing and writes [`ALL`].
fn flood(written: &Arc<AtomicUsize>) -> Http3Upstream {
    let written = Arc::clone(written);
    Http3Upstream::start(service_fn(move |request: http::Request<Body>| {
        let written = Arc::clone(&written);
        async move {
            let (mut sender, content) = Body::channel(1_000);
            tokio::spawn(async move {
                let _unread = request.into_body();
                for _ in 0..ALL / 65_536 {
                    if sender.send(vec![b'x'; 65_536].into()).await.is_err() {
                        return;
                    }
                    written.fetch_add(65_536, Ordering::Relaxed);
                }
                sender.finish(None);
            });
            let response = http::Response::builder().header("content-length", ALL);
            Ok::<_, Infallible>(response.body(content).expect("a response"))
        }
    }))
}

/// Deleted, a slow upstream of HTTP/3 could fill the memory of the server with what clients send, or a slow client with what it sends.
#[test]
fn who_does_not_read_holds_back_who_writes_by_http3() {
    let written = Arc::default();
    let upstream = flood(&written);
    let (_place, server) = proxy(&upstream.keys());
    hold_back(server.port, &written);
    server.stop();
}

/// Deleted, clients that do not read could stop all others whose requests share the connection to the upstream.
#[test]
fn clients_that_do_not_read_hold_up_no_others() {
    let upstream = flood(&Arc::default());
    let (_place, server) = proxy(&upstream.keys());
    let reader = client(HttpChoice::Http3);
    tcp::run(async {
        let ask = || reader.get(format!("https://localhost:{}/", server.port));
        // Each holds a stream's window and the queues behind it, but on one connection they would hold each other up here already.
        let mut held = Vec::new();
        for _ in 0..40 {
            let client = client(HttpChoice::Http3);
            let response = client.get(format!("https://localhost:{}/", server.port)).await;
            held.push((client, response.expect("a response")));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let mut content = ask().await.expect("a response").into_body();
        let mut read = 0;
        while read < 8 << 20 {
            read += content.chunk().await.expect("content").expect("more of it").len();
        }
        assert_eq!(held.len(), 40);
    });
    server.stop();
}

/// Deleted, all that goes on to upstreams would share a core with the worker that has asked first, and others would be idle.
#[test]
fn threads_that_all_workers_share_have_all_cores() {
    let upstream = Http3Upstream::start(service_fn(echo));
    let (_place, server) = proxy_with(&upstream.keys(), "workers = 1\npin = true");
    let answers = ask_all(server.port, &Ask::get("/"));
    assert!(answers.iter().all(|answer| answer.status == 200));
    let process = format!("/proc/{}", server.ready["pid"]);
    let cores = |place: &Path| {
        let status = std::fs::read_to_string(place.join("status")).expect("a thread's status");
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line for each");
            line.trim().to_owned()
        };
        (value("Name:"), value("Cpus_allowed_list:"))
    };
    let (_, all) = cores(Path::new(&process));
    let threads = std::fs::read_dir(format!("{process}/task")).expect("its threads");
    let threads: Vec<_> = threads.map(|thread| cores(&thread.expect("a thread").path())).collect();
    let shared = |name: &str| threads.iter().filter(|(found, _)| found == name).collect::<Vec<_>>();
    for name in ["proxy", "tercel-client-3"] {
        let shared = shared(name);
        assert!(!shared.is_empty() && shared.iter().all(|(_, cores)| *cores == all), "{threads:?}");
    }
    let one = all.chars().all(|digit| digit.is_ascii_digit());
    assert!(one || threads.iter().any(|(_, cores)| *cores != all), "a worker is pinned: {threads:?}");
    server.stop();
}

/// Counts itself when it is dropped.
struct Unfinished(Option<Arc<AtomicUsize>>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.0.iter().for_each(|counter| _ = counter.fetch_add(1, Ordering::Relaxed));
    }
}

/// Deleted, an upstream could go on to work for clients that have gone, or take half an upload for a whole one.
#[test]
fn what_a_client_gives_up_ends_at_the_upstream() {
    let (aborted, unread) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (of_uploads, of_downloads) = (Arc::clone(&aborted), Arc::clone(&unread));
    let upstream = Http3Upstream::start(service_fn(move |request: http::Request<Body>| {
        let (aborted, unread) = (Arc::clone(&of_uploads), Arc::clone(&of_downloads));
        async move {
            if request.method() == http::Method::POST {
                // A request that is given up is dropped with its future.
                let mut unfinished = Unfinished(Some(aborted));
                let mut content = request.into_body();
                loop {
                    match content.chunk().await {
                        Ok(Some(_)) => {}
                        Ok(None) => break unfinished.0 = None,
                        Err(_) => break,
                    }
                }
                return Ok(http::Response::new(Body::empty()));
            }
            let (mut sender, content) = Body::channel(1_000);
            tokio::spawn(async move {
                while sender.send(vec![b'x'; 1_000].into()).await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                unread.fetch_add(1, Ordering::Relaxed);
            });
            Ok::<_, Infallible>(http::Response::new(content))
        }
    }));
    let (_place, server) = proxy(&upstream.keys());
    let wait = async |counter: &AtomicUsize, expected, what: &str| {
        for _ in 0..400 {
            if counter.load(Ordering::Relaxed) == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{what}: {} instead of {expected}", counter.load(Ordering::Relaxed));
    };
    for (number, http) in CHOICES.into_iter().enumerate() {
        tcp::run(async {
            let url = format!("https://localhost:{}/", server.port);
            let client = client(http);
            let mut response = client.get(&url).await.expect("a response");
            assert!(response.body_mut().chunk().await.expect("content").is_some());
            drop(response);
            wait(&unread, number + 1, "downloads").await;
            let (mut sender, content) = Body::channel(1_000);
            let asked = tokio::spawn(async move {
                let request = http::Request::post(url).body(content).expect("a request");
                client.request(request).await.map(|response| response.status())
            });
            sender.send("half".into()).await.expect("room");
            tokio::time::sleep(Duration::from_millis(200)).await;
            sender.abort("on purpose");
            let _ = asked.await;
            wait(&aborted, number + 1, "uploads").await;
        });
    }
    server.stop();
}

/// Field sections with `:status`, spelled out, in a HEADERS frame.
fn head(fields: &[(&str, &str)]) -> Vec<u8> {
    frame(1, &section(fields))
}

fn ok(fields: &[(&str, &str)]) -> Vec<u8> {
    head(&[&[(":status", "200")], fields].concat())
}

/// Deleted, half a file could look like a whole one behind an upstream of HTTP/3.
#[test]
fn a_response_by_http3_that_breaks_off_does_not_look_complete() {
    let certificate = Certificate::new();
    let data = |text: &str| frame(0, text.as_bytes());
    let cut: Vec<(Vec<u8>, End)> = vec![
        ([ok(&[]), data("abc")].concat(), End::Reset),
        ([ok(&[]), data("abc")].concat(), End::Close),
        ([ok(&[("content-length", "10")]), data("abc")].concat(), End::Fin),
        ([ok(&[("content-length", "10")]), data("abc")].concat(), End::Reset),
        ([ok(&[("content-length", "2")]), data("abc")].concat(), End::Fin),
        // A frame that is longer than what comes of it.
        ([ok(&[]), vec![0, 10], b"abc".to_vec()].concat(), End::Fin),
        // A frame that has no place there.
        ([ok(&[]), data("abc"), frame(7, &[0])].concat(), End::Fin),
        ([ok(&[]), data("abc"), head(&[(":status", "200")])].concat(), End::Fin),
    ];
    let (_place, server) = routes(&certificate, &cut);
    for http in CHOICES {
        let client = client(http);
        for (number, (bytes, end)) in cut.iter().enumerate() {
            tcp::run(async {
                let response = client.get(format!("https://localhost:{}/{number}", server.port)).await;
                // The head may be lost with the rest.
                let Ok(response) = response else { return };
                if response.status() == 502 {
                    return;
                }
                assert_eq!(response.status(), 200, "{bytes:?}");
                let content = response.into_body().collect(1_000).await;
                assert!(content.is_err(), "{http:?} {bytes:?} {end:?} looks complete: {content:?}");
            });
        }
    }
    server.stop();
}

/// A server whose route `/N` leads to the upstream that answers with the bytes of that number.
fn routes(certificate: &Certificate, answers: &[(Vec<u8>, End)]) -> (tempfile::TempDir, Server) {
    let mut text = "[[site]]\nnames = '*'\n".to_owned();
    for (number, (bytes, end)) in answers.iter().enumerate() {
        let keys = certificate.keys(raw(certificate, bytes.clone(), *end));
        text += &format!(
            "[[site.route]]\npath = '/{number}'\nproxy = {{ {keys}, max-failures = 1000, response-timeout = 5 }}\n"
        );
    }
    let place = folder(&[("site/index.html", "home")]);
    let server = start(place.path(), &text);
    (place, server)
}

/// Deleted, a response that is not valid could go on to a client of another version, where it means something else.
#[test]
fn a_response_by_http3_that_is_not_valid_is_not_sent_on() {
    let certificate = Certificate::new();
    let invalid: Vec<(Vec<u8>, End)> = [
        ok(&[("content-length", "3"), ("content-length", "4")]),
        ok(&[("content-length", "+3")]),
        ok(&[("content-length", "-1")]),
        ok(&[("transfer-encoding", "chunked")]),
        ok(&[("connection", "close")]),
        ok(&[("x-split", "a\r\nx: b")]),
        ok(&[("x-nul", "a\0b")]),
        ok(&[("X-Upper", "a")]),
        ok(&[("x space", "a")]),
        ok(&[(":path", "/")]),
        ok(&[(":status", "200")]),
        head(&[("x-no-status", "a")]),
        head(&[(":status", "2OO")]),
        head(&[(":status", "101")]),
        head(&[(":status", "99")]),
        frame(0, b"content first"),
        b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
    ]
    .map(|bytes| (bytes, End::Fin))
    .into();
    let (_place, server) = routes(&certificate, &invalid);
    for (number, (bytes, _)) in invalid.iter().enumerate() {
        let answers = ask_all(server.port, &Ask::get(&format!("/{number}")));
        assert_eq!(statuses(&answers), [502; 3], "{}: {answers:?}", bytes.escape_ascii());
    }
    server.stop();
}

/// Deleted, an upstream without the right certificate could be trusted, or an operator look for a failure in the wrong place.
#[test]
fn failures_of_http3_upstreams_are_answered_and_told() {
    let upstream = Http3Upstream::start(service_fn(async |_: http::Request<Body>| {
        tokio::time::sleep(Duration::from_secs(30)).await;
        Ok::<_, Infallible>(http::Response::new(Body::empty()))
    }));
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let closed =
        UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let silent_port = silent.local_addr().expect("an address").port();
    let (certificate, untrusted) = (&upstream.certificate, Certificate::new());
    let place = folder(&[("site/index.html", "home")]);
    let route = |path: &str, keys: &str| format!("[[site.route]]\npath = '{path}'\nproxy = {{ {keys} }}\n");
    let text = [
        "[[site]]\nnames = '*'\n".to_owned(),
        route("/closed", &certificate.keys(closed)),
        route("/silent", &format!("{}, connect-timeout = 1", certificate.keys(silent_port))),
        route("/late", &format!("{}, response-timeout = 1", upstream.keys())),
        // Other rules, so that its failures are told by themselves.
        route(
            "/name",
            &format!("{}, max-failures = 11", upstream.keys().replace("'localhost'", "'other.example'")),
        ),
        route("/trust", &format!("{}, max-failures = 12", untrusted.keys(upstream.port))),
        route("/large", &format!("{}, max-content = '1KB'", upstream.keys())),
    ];
    let server = start(place.path(), &text.concat());
    for (path, status) in
        [("/closed", 502), ("/silent", 504), ("/late", 504), ("/name", 502), ("/trust", 502)]
    {
        assert_eq!(statuses(&ask_all(server.port, &Ask::get(path))), [status; 3], "{path}");
    }
    assert_eq!(statuses(&ask_all(server.port, &Ask::new("POST", "/large").sending(1_001))), [413; 3]);
    for line in [
        format!(
            "h3://127.0.0.1:{closed}: GET /closed: no connection: cannot connect to UDP 127.0.0.1:{closed}: Connection refused"
        ),
        format!(
            "h3://127.0.0.1:{silent_port}: GET /silent: no connection in time: see connect-timeout; answered 504"
        ),
        format!("{}: GET /late: no response in time: see response-timeout; answered 504", upstream.url()),
        "GET /name: no connection: ".to_owned(),
        "GET /trust: no connection: ".to_owned(),
    ] {
        server.wait_for("said", (&line, 1));
    }
    server.stop();
}

/// Deleted, a restart of an upstream could fail requests, or one that is down be asked while another is there.
#[test]
fn an_upstream_of_http3_may_restart_or_fail_beside_another() {
    let mut upstream = Http3Upstream::start(service_fn(echo));
    let place = folder(&[("site/index.html", "home")]);
    let server = start(place.path(), &with_admin(&upstream.keys()));
    for _ in 0..3 {
        assert_eq!(statuses(&ask_all(server.port, &Ask::get("/"))), [200; 3]);
        upstream.restart(service_fn(echo));
    }
    assert_eq!(statuses(&ask_all(server.port, &Ask::new("POST", "/").sending(1_000))), [200; 3]);
    server.stop();
    let down = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let to = format!("to = ['h3://127.0.0.1:{down}', '{}'", upstream.url());
    let keys = upstream.keys().replacen(&format!("to = '{}'", upstream.url()), &format!("{to}]"), 1);
    let health = "health = { path = '/health', interval = 1, timeout = 1, rises = 1, falls = 1 }, balance = 'round-robin'";
    let server = start(place.path(), &with_admin(&format!("{keys}, {health}")));
    for _ in 0..4 {
        assert_eq!(statuses(&ask_all(server.port, &Ask::get("/"))), [200; 3]);
    }
    server.wait_for("said", ("is down by its checks", 1));
    let (_, metrics) = get(&server, "/metrics");
    let healthy = |url: &str| metrics.contains(&format!("tercel_upstream_healthy{{upstream=\"{url}\"}} 1"));
    assert!(healthy(&upstream.url()) && !healthy(&format!("h3://127.0.0.1:{down}")), "{metrics}");
    server.stop();
}

/// Deleted, only our own server might be understood as an upstream.
#[test]
fn a_foreign_server_of_http3_is_an_upstream() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let python = root.join("target/tests/venv/bin/python");
    if !python.is_file() {
        return requirements::missing("aioquic is not installed: tests/setup does that");
    }
    let large = "x".repeat(3_000_000);
    let site = folder(&[("a.txt", "hello"), ("large", &large)]);
    let certificate = Certificate::new();
    let ready = site.path().join("ready");
    let mut child = Command::new(python)
        .arg(root.join("tests/interop/aioquic_serve.py"))
        .arg(site.path())
        .arg("--ready-file")
        .arg(&ready)
        .arg("--cert")
        .arg(certificate.file.path())
        .arg("--key")
        .arg(certificate.key.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .spawn()
        .expect("aioquic starts");
    for _ in 0..600 {
        if ready.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let text = std::fs::read_to_string(&ready).expect("it is ready");
    let told: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let port = told["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port");
    let (_place, server) = proxy(&certificate.keys(port));
    for ask in [
        Ask::get("/a.txt"),
        Ask::get("/large"),
        Ask::get("/large").with("range", "bytes=5-104"),
        Ask::get("/none"),
    ] {
        let answers = ask_all(server.port, &ask);
        let expected = match (ask.target.as_str(), ask.fields.is_empty()) {
            ("/a.txt", _) => (200, 5),
            ("/large", true) => (200, 3_000_000),
            ("/large", false) => (206, 100),
            _ => (404, 0),
        };
        for answer in &answers {
            assert_eq!((answer.status, answer.content.len()), expected, "{}", ask.target);
        }
    }
    server.stop();
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}
