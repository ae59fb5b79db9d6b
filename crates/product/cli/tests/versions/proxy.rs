//! Routes whose requests go on to other servers, over HTTP/1.1, 2 and 3.

use crate::access::{hash, signed};
use crate::configuration::folder;
use crate::message::{Answer, Ask};
use crate::server::Server;
use crate::sites::{Row, answer_alike, ask_all, start};
use crate::streaming::{ALL, both_ways, hold_back};
use crate::upstream::{Heard, Then, Upstream, echo, write};
use std::io::{BufRead as _, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tercel::Client;
use tercel::client::{Family, HttpChoice};
use tercel::tls::Roots;

/// A server with a route for all paths, whose key "proxy" is this table.
pub(crate) fn proxy(table: &str) -> (tempfile::TempDir, Server) {
    proxy_with(table, "")
}

/// The same with these keys of the server.
pub(crate) fn proxy_with(table: &str, keys: &str) -> (tempfile::TempDir, Server) {
    let place = folder(&[("site/502.html", "sorry")]);
    let text = format!(
        "{keys}\n[[site]]\nnames = '*'\nroot = 'site'\nerror-pages = {{ 502 = '/502.html' }}\n[[site.route]]\npath = '/'\nproxy = {{ {table} }}\n"
    );
    let server = start(place.path(), &text);
    (place, server)
}

/// A port on which nothing listens.
fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

pub(crate) fn statuses(answers: &[Answer; 3]) -> [u16; 3] {
    [0, 1, 2].map(|place| answers[place].status)
}

/// Deleted, a request could reach an upstream as another one than was sent, by one version of HTTP.
#[test]
fn requests_and_responses_go_on_alike_over_all_versions() {
    let upstream = Upstream::echo();
    let place = folder(&[("site/index.html", "home")]);
    let url = upstream.url();
    let configuration = format!(
        "
        [[site]]
        names = '*'
        root = 'site'
        headers = {{ set = {{ x-frame-options = 'DENY' }} }}
        [[site.route]]
        path = '/api'
        proxy = {{ to = '{url}' }}
        headers = {{ remove = 'x-upstream' }}
        [[site.route]]
        path = '/cut'
        proxy = {{ to = '{url}', strip-prefix = true, host = 'app.internal' }}
        [[site.route]]
        path = '/old'
        rewrite = '/api/new/{{rest}}{{query}}'
        "
    );
    // A rewrite leads to the routes below it.
    let configuration = configuration.replace("{query}", "");
    let server = start(place.path(), &configuration);
    let ask = Ask::new;
    let rows: Vec<Row> = vec![
        (Ask::get("/"), 200, "home", &[]),
        (
            Ask::get("/api/a%20b?x=%22y%22&z"),
            200,
            "GET /api/a%20b?x=%22y%22&z HTTP/1.1 0",
            &["x-frame-options: DENY", "!x-upstream", "date: …"],
        ),
        (ask("POST", "/api").sending(40_000), 200, "POST /api HTTP/1.1 40000", &[]),
        (ask("PUT", "/api").sending(1), 200, "PUT /api HTTP/1.1 1", &[]),
        (ask("DELETE", "/api/1"), 200, "DELETE /api/1 HTTP/1.1 0", &[]),
        (ask("PROPFIND", "/api/1"), 200, "PROPFIND /api/1 HTTP/1.1 0", &[]),
        (ask("HEAD", "/api/1"), 200, "", &["content-length: 22"]),
        (Ask::get("/cut/a/b?c"), 200, "GET /a/b?c HTTP/1.1 0", &["x-upstream: yes"]),
        (Ask::get("/cut"), 200, "GET / HTTP/1.1 0", &[]),
        (Ask::get("/cut//evil.example"), 200, "GET /evil.example HTTP/1.1 0", &[]),
        (Ask::get("/api/%2e%2e/x"), 400, "…", &[]),
    ];
    answer_alike(server.port, &rows);
    // Connections are used again.
    let asked = upstream.take().len();
    assert!(asked == 27 && upstream.connections() <= 9, "{asked} {}", upstream.connections());
    let (_, log) = server.stop();
    assert!(log.contains("\"GET /cut/a/b?c HTTP/3\" 200 21 "), "{log}");
}

/// Deleted, an upstream could take a client's word for another client's address, or be sent what concerned another connection.
#[test]
fn an_upstream_hears_of_the_client_what_the_server_knows() {
    let upstream = Upstream::echo();
    let url = upstream.url();
    let forged = |path: &str| {
        Ask::get(path)
            .of("example.org")
            .with("x-forwarded-for", "192.0.2.1")
            .with("x-forwarded-proto", "gopher")
            .with("x_forwarded_for", "192.0.2.2")
            .with("x-real-ip", "192.0.2.3")
            .with("forwarded", "for=192.0.2.4")
            .with("te", "trailers")
            .with("expect", "100-continue")
            .with("cookie", "a=1; b=2")
    };
    let (_place, server) = proxy(&format!("to = '{url}'"));
    assert_eq!(statuses(&ask_all(server.port, &forged("/"))), [200; 3]);
    for (heard, version) in upstream.take().iter().zip(["1.1", "2", "3"]) {
        for (name, value) in [
            ("host", "example.org"),
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "example.org"),
            ("forwarded", "for=127.0.0.1;host=\"example.org\";proto=https"),
            ("via", &format!("{version} tercel")),
            ("cookie", "a=1; b=2"),
            ("x_forwarded_for", ""),
            ("x-real-ip", ""),
            ("te", ""),
            ("expect", ""),
            ("connection", ""),
            ("transfer-encoding", ""),
            ("content-length", ""),
        ] {
            assert_eq!(heard.field(name), value, "{name} over {version}: {:?}", heard.lines);
        }
    }
    server.stop();
    // The word of a proxy that is trusted goes on.
    let (_place, server) = proxy(&format!("to = '{url}', trusted-proxies = ['10.0.0.0/8', '127.0.0.1']"));
    assert_eq!(statuses(&ask_all(server.port, &forged("/"))), [200; 3]);
    for heard in upstream.take() {
        assert_eq!(heard.field("x-forwarded-for"), "192.0.2.1, 127.0.0.1");
        assert_eq!(heard.field("x-forwarded-proto"), "gopher");
        assert_eq!(heard.field("forwarded"), "for=192.0.2.4, for=127.0.0.1;host=\"example.org\";proto=https");
    }
    server.stop();
}

/// Deleted, a proxied route could be open to all, or to as many as like, by one version of HTTP; or the content of a request be lost
/// that arrives while its password is verified.
#[test]
fn proxied_routes_have_their_users_and_limits() {
    let upstream = Upstream::echo();
    let place = folder(&[("site/index.html", "home")]);
    let configuration = format!(
        "
        [[site]]
        names = '*'
        root = 'site'
        [[site.route]]
        path = '/staff'
        proxy = {{ to = '{url}' }}
        auth = {{ users = {{ alice = '{hash}', bob = '{hash}', carol = '{hash}' }} }}
        [[site.route]]
        path = '/three'
        proxy = {{ to = '{url}' }}
        rate-limit = {{ requests = 3, per = 'hour' }}
        [[site.route]]
        path = '/machines'
        proxy = {{ to = '{url}' }}
        client-cert = true
        ",
        url = upstream.url(),
        hash = hash("secret"),
    );
    let configuration = format!("client-ca = 'ca.pem'\nclient-auth = 'optional'\n{configuration}");
    crate::access::authority(place.path());
    let server = start(place.path(), &configuration);
    let post = |target: &str| Ask::new("POST", target).sending(50_000);
    assert_eq!(statuses(&ask_all(server.port, &post("/staff"))), [401; 3]);
    let wrong = |ask: Ask| ask.with("authorization", &signed("/", "alice:guess").fields[0].1);
    assert_eq!(statuses(&ask_all(server.port, &wrong(post("/staff")))), [401; 3]);
    assert_eq!(statuses(&ask_all(server.port, &post("/machines"))), [403; 3]);
    assert!(upstream.take().is_empty(), "nothing of them reached the upstream");
    // The first request of each user waits for Argon2, with its content.
    for (user, ask_one) in [("alice:secret", 0), ("bob:secret", 1), ("carol:secret", 2)] {
        let ask = post("/staff/a").with("authorization", &signed("/", user).fields[0].1);
        let asks = std::slice::from_ref(&ask);
        let answer = match ask_one {
            0 => crate::tcp::run(crate::tcp::http1(server.port, asks)),
            1 => crate::tcp::run(crate::tcp::http2(server.port, asks)),
            _ => crate::http3::http3(server.port, asks),
        };
        let text = String::from_utf8_lossy(&answer[0].content).into_owned();
        assert_eq!((answer[0].status, text.as_str()), (200, "POST /staff/a HTTP/1.1 50000"), "{user}");
    }
    assert!(upstream.take().iter().all(|heard| heard.content == vec![b'x'; 50_000]));
    assert_eq!(statuses(&ask_all(server.port, &post("/three"))), [200; 3]);
    assert_eq!(statuses(&ask_all(server.port, &post("/three"))), [429; 3]);
    server.stop();
}

/// Deleted, an operator could look for a failure in the wrong place.
#[test]
fn failures_are_answered_and_told() {
    let silent = Upstream::start(|_: &Heard, _: &mut dyn Write| {
        std::thread::sleep(Duration::from_secs(30));
        Then::Close
    });
    let broken = Upstream::start(|heard: &Heard, out: &mut dyn Write| {
        write(out, heard.target().as_bytes().get(1..).unwrap_or_default());
        Then::Close
    });
    let place = folder(&[("site/502.html", "sorry")]);
    let closed = closed_port();
    let configuration = format!(
        "
        [[site]]
        names = '*'
        root = 'site'
        error-pages = {{ 502 = '/502.html' }}
        headers = {{ set = {{ x-frame-options = 'DENY' }} }}
        [[site.route]]
        path = '/closed'
        proxy = {{ to = 'http://127.0.0.1:{closed}' }}
        [[site.route]]
        path = '/socket'
        proxy = {{ to = 'unix:nothing.sock' }}
        [[site.route]]
        path = '/silent'
        proxy = {{ to = '{}', response-timeout = 1 }}
        [[site.route]]
        path = '/large'
        proxy = {{ to = '{}', max-content = '1KB' }}
        [[site.route]]
        path = '/'
        proxy = {{ to = '{}' }}
        ",
        silent.url(),
        broken.url(),
        broken.url(),
    );
    let server = start(place.path(), &configuration);
    let page: &[&str] = &["x-frame-options: DENY", "content-type: text/html; charset=utf-8"];
    let rows: Vec<Row> = vec![
        (Ask::get("/closed"), 502, "sorry", page),
        (Ask::new("POST", "/closed").sending(10_000), 502, "sorry", page),
        (Ask::get("/socket"), 502, "sorry", page),
        (Ask::get("/silent"), 504, "…in time", &["x-frame-options: DENY"]),
        (Ask::new("POST", "/large").sending(1_001), 413, "…", &[]),
        (Ask::get("/"), 502, "sorry", page),
        (Ask::get("/nonsense"), 502, "sorry", page),
    ];
    answer_alike(server.port, &rows);
    let closed = format!("http://127.0.0.1:{closed}");
    let told = [
        format!(
            "tercel: warning: proxy: {closed}: GET /closed: no connection: Connection refused (os error 111); answered 502"
        ),
        format!("{}: GET /silent: no response in time: see response-timeout; answered 504", silent.url()),
        format!("{}: GET /: no response: ", broken.url()),
        format!("{closed} gets no requests for a while, if others do"),
    ];
    for line in &told {
        server.wait_for("said", (line, 1));
    }
    server.stop();
}

/// Deleted, an upstream that is down could fail requests while another is up; or a POST be carried out twice.
#[test]
fn what_may_be_repeated_goes_to_another_upstream() {
    let good = Upstream::echo();
    let other = Upstream::start(|_: &Heard, _: &mut dyn Write| Then::Close);
    let table = format!(
        "to = ['http://127.0.0.1:{}', '{}', '{}'], balance = 'round-robin', cool-down = 1, max-failures = 100",
        closed_port(),
        other.url(),
        good.url()
    );
    let (_place, server) = proxy(&table);
    for _ in 0..4 {
        assert_eq!(statuses(&ask_all(server.port, &Ask::get("/"))), [200; 3]);
    }
    good.take();
    // It is not known what became of a POST that the second upstream has read.
    other.take();
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.extend(statuses(&ask_all(server.port, &Ask::new("POST", "/").sending(10))));
    }
    let posts = other.take().len();
    assert!(posts > 0 && seen.iter().filter(|status| **status == 502).count() == posts, "{seen:?}");
    assert_eq!(good.take().len(), seen.len() - posts);
    server.stop();
    // Those that fail are passed over, until they answer again.
    let table = format!(
        "to = ['http://127.0.0.1:{}', '{}'], balance = 'round-robin', retries = 0, max-failures = 1, cool-down = 60",
        closed_port(),
        good.url()
    );
    let (_place, server) = proxy(&table);
    let seen: Vec<u16> = (0..6).flat_map(|_| statuses(&ask_all(server.port, &Ask::get("/")))).collect();
    assert_eq!(seen.iter().filter(|status| **status == 502).count(), 1, "{seen:?}");
    server.stop();
}

#[test]
fn sockets_hashes_and_full_upstreams() {
    let place = folder(&[("site/index.html", "home")]);
    Upstream::start_at(&place.path().join("app.sock"), echo);
    let [one, two] = [Upstream::echo(), Upstream::echo()];
    let slow = Upstream::start(|heard: &Heard, out: &mut dyn Write| {
        std::thread::sleep(Duration::from_millis(1_500));
        echo(heard, out)
    });
    let configuration = format!(
        "
        [[site]]
        names = '*'
        [[site.route]]
        path = '/socket'
        proxy = {{ to = 'unix:app.sock' }}
        [[site.route]]
        path = '/hash'
        proxy = {{ to = ['{}', '{}'], balance = 'hash-path' }}
        [[site.route]]
        path = '/slow'
        proxy = {{ to = '{}', max-connections = 1 }}
        ",
        one.url(),
        two.url(),
        slow.url()
    );
    let server = start(place.path(), &configuration);
    assert_eq!(statuses(&ask_all(server.port, &Ask::get("/socket"))), [200; 3]);
    for path in 0..20 {
        ask_all(server.port, &Ask::get(&format!("/hash/{path}")));
    }
    let targets = |upstream: &Upstream| {
        let mut all: Vec<String> = upstream.take().iter().map(|heard| heard.target().to_owned()).collect();
        all.sort();
        all.dedup();
        all
    };
    let (one, two) = (targets(&one), targets(&two));
    assert!(one.len() + two.len() == 20 && !one.is_empty() && !two.is_empty(), "{one:?} {two:?}");
    let port = server.port;
    let first = std::thread::spawn(move || crate::http3::http3(port, &[Ask::get("/slow")]));
    std::thread::sleep(Duration::from_millis(700));
    let refused = crate::tcp::run(crate::tcp::http2(port, &[Ask::get("/slow")])).remove(0);
    assert!(refused.status == 503 && !first.is_finished(), "{refused:?}");
    assert_eq!(first.join().expect("an answer")[0].status, 200);
    server.stop();
}

/// A client that asks by one version alone.
pub(crate) fn client(http: HttpChoice) -> Client {
    let builder = Client::builder().roots(Roots::Insecure).family(Family::Any);
    builder.http(http).build().expect("a client")
}

pub(crate) const CHOICES: [HttpChoice; 3] = [HttpChoice::Http1, HttpChoice::Http2, HttpChoice::Http3];

/// Says each chunk of a request's content back while the rest is still to come.
fn talking() -> Upstream {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                    line.clear();
                }
                write(
                    &mut stream,
                    b"HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n",
                );
                // Chunks of the request are chunks of the response.
                let _ = std::io::copy(&mut reader, &mut stream);
            });
        }
    });
    Upstream::at(port)
}

/// Deleted, a proxy could wait for the whole of a message that never ends, or fill its memory with it.
#[test]
fn content_streams_both_ways_at_once() {
    let upstream = talking();
    let (_place, server) = proxy(&format!("to = '{}'", upstream.url()));
    both_ways(server.port);
    server.stop();
}

/// Deleted, a slow upstream could fill the memory of the server with what clients send, or a slow client with what upstreams do.
#[test]
fn who_does_not_read_holds_back_who_writes() {
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    // Reads the head alone, and writes without end.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let count = Arc::clone(&count);
            std::thread::spawn(move || {
                let mut reader = BufReader::with_capacity(1_024, stream.try_clone().expect("a descriptor"));
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                    line.clear();
                }
                write(&mut stream, format!("HTTP/1.1 200 OK\r\ncontent-length: {ALL}\r\n\r\n").as_bytes());
                for _ in 0..ALL / 65_536 {
                    if stream.write_all(&[b'x'; 65_536]).is_err() {
                        return;
                    }
                    count.fetch_add(65_536, Ordering::Relaxed);
                }
            });
        }
    });
    let (_place, server) = proxy(&format!("to = 'http://127.0.0.1:{port}'"));
    hold_back(server.port, &written);
    server.stop();
}

/// An upstream of HTTP/2 without TLS. It says what it heard, with the length of the content in a trailer.
pub(crate) fn h2c() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("for tokio");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut connection = h2::server::handshake(stream).await.expect("a preface");
                    while let Some(Ok((request, mut respond))) = connection.accept().await {
                        tokio::spawn(async move {
                            let what =
                                format!("{} {} {:?}", request.method(), request.uri(), request.version());
                            let te = request.headers().get("te").is_some_and(|value| value == "trailers");
                            let has_host = request.headers().contains_key("host");
                            let mut content = request.into_body();
                            let mut bytes = 0;
                            while let Some(Ok(data)) = content.data().await {
                                bytes += data.len();
                                let _ = content.flow_control().release_capacity(data.len());
                            }
                            let mut sender =
                                respond.send_response(http::Response::new(()), false).expect("sent");
                            let text = format!("{what} {te} {has_host}");
                            sender.send_data(text.into(), false).expect("sent");
                            let trailers = http::HeaderMap::from_iter([(
                                http::HeaderName::from_static("x-bytes"),
                                bytes.into(),
                            )]);
                            sender.send_trailers(trailers).expect("sent");
                        });
                    }
                });
            }
        });
    });
    port
}

/// Routes to an upstream of HTTP/2 without TLS, and to two servers with it.
fn secure(two: &Server, one: &Server) -> String {
    let certificate = |server: &Server| server.ready["certificate"].as_str().expect("a path").to_owned();
    format!(
        "
        [[site]]
        names = '*'
        [[site.route]]
        path = '/h2c'
        proxy = {{ to = 'h2c://127.0.0.1:{}' }}
        [[site.route]]
        path = '/two'
        proxy = {{ to = 'https://127.0.0.1:{}', tls-ca = '{}', tls-name = 'localhost', strip-prefix = true }}
        [[site.route]]
        path = '/one'
        proxy = {{ to = 'https://localhost:{}', tls-ca = '{}', strip-prefix = true }}
        [[site.route]]
        path = '/wrong'
        proxy = {{ to = 'https://127.0.0.1:{}', tls-ca = '{}', tls-name = 'other.example' }}
        ",
        h2c(),
        two.port,
        certificate(two),
        one.port,
        certificate(one),
        two.port,
        certificate(two),
    )
}

/// Deleted, requests could be lost or mixed up on a connection that they share, or a server without its certificate be trusted.
#[test]
fn upstreams_speak_http2_and_tls() {
    let site = folder(&[("a.txt", "hello"), ("large", &"x".repeat(3_000_000))]);
    let [two, one] = ["1,2", "1"].map(|versions| Server::start(site.path(), &["--http", versions]));
    let place = folder(&[("site/index.html", "home")]);
    let server = start(place.path(), &secure(&two, &one));
    for http in CHOICES {
        let client = client(http);
        let ask = |path: &str| format!("https://localhost:{}{path}", server.port);
        crate::tcp::run(async {
            for bytes in [0, 100_000] {
                let request =
                    http::Request::post(ask("/h2c/a?b")).body(vec![b'x'; bytes]).expect("a request");
                let mut content = client.request(request).await.expect("a response").into_body();
                let mut text = Vec::new();
                while let Some(chunk) = content.chunk().await.expect("content") {
                    text.extend_from_slice(&chunk);
                }
                let expected = format!("POST http://localhost:{}/h2c/a?b HTTP/2.0 true false", server.port);
                assert_eq!(String::from_utf8_lossy(&text), expected, "{http:?}");
                let trailers = content.trailers().await.expect("the end");
                let told =
                    trailers.and_then(|trailers| Some(trailers.get("x-bytes")?.to_str().ok()?.to_owned()));
                // hyper sends trailers over HTTP/1.1 only to clients that ask for them, and if they were announced.
                if http != HttpChoice::Http1 {
                    assert_eq!(told, Some(bytes.to_string()), "{http:?}");
                }
            }
            for path in ["/two", "/one"] {
                let all = (0..20).map(|number| {
                    let name = if number % 5 == 0 { "large" } else { "a.txt" };
                    let (client, url) = (client.clone(), ask(&format!("{path}/{name}")));
                    tokio::spawn(async move {
                        let response = client.get(url).await.expect("a response");
                        assert_eq!(response.status(), 200);
                        response.into_body().collect(4_000_000).await.expect("content").len()
                    })
                });
                for (number, task) in all.collect::<Vec<_>>().into_iter().enumerate() {
                    let expected = if number % 5 == 0 { 3_000_000 } else { 5 };
                    assert_eq!(task.await.expect("no panic"), expected, "{http:?} {path}");
                }
            }
            assert_eq!(client.get(ask("/wrong/")).await.expect("a response").status(), 502);
        });
    }
    let said = server.wait_for("said", ("/wrong/: no connection: invalid peer certificate", 1));
    assert!(!said.contains("/two/"), "{said}");
    server.stop();
    let (summary, _) = two.stop();
    let connections = summary["http"]["2"]["connections"].as_u64().expect("a number");
    assert!((1..60).contains(&connections), "requests share connections: {summary}");
    one.stop();
}
