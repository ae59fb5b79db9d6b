//! Routes of which another server says who may have them, over HTTP/1.1, 2 and 3.

use crate::configuration::folder;
use crate::message::Ask;
use crate::proxy::statuses;
use crate::sites::{ask_all, start};
use crate::upstream::{Heard, Then, Upstream, write};
use std::io::Write;
use std::time::Duration;

/// A server that lets those in who have its cookie, and says who they are.
fn gate() -> Upstream {
    Upstream::start(|heard: &Heard, out: &mut dyn Write| {
        let response = match heard.field("cookie") {
            "session=alice" => {
                "200 OK\r\nremote-user: alice\r\nset-cookie: fresh=1\r\ncontent-length: 2\r\n\r\nok"
            }
            "session=nameless" => "204 No Content\r\n\r\n",
            "session=odd" => "101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
            "session=none" => return Then::Close,
            "session=slow" => {
                std::thread::sleep(Duration::from_secs(3));
                "200 OK\r\ncontent-length: 0\r\n\r\n"
            }
            "session=forbidden" => "403 Forbidden\r\nx-why: because\r\ncontent-length: 3\r\n\r\nno!",
            "session=known" => "304 Not Modified\r\n\r\n",
            "session=broken" => "500 Internal Server Error\r\ncontent-length: 0\r\n\r\n",
            _ => {
                "302 Found\r\nlocation: https://login.example.org/?then=here\r\ncontent-length: 5\r\n\r\nlogin"
            }
        };
        write(out, format!("HTTP/1.1 {response}").as_bytes());
        Then::Keep
    })
}

/// Deleted, a route could be open to those whom the other server does not know, by one version of HTTP, or a client say who it is.
#[expect(clippy::too_many_lines, reason = "a table")]
#[test]
fn what_another_server_says_decides() {
    let (gate, app) = (gate(), Upstream::echo());
    let place =
        folder(&[("site/index.html", "home"), ("site/private/a.txt", "secret"), ("site/502.html", "sorry")]);
    let configuration = format!(
        "
        [[site]]
        names = '*'
        root = 'site'
        error-pages = {{ 502 = '/502.html' }}
        forward-auth = {{ to = '{gate}', path = '/verify?a=b', copy = ['Remote-User', 'Remote-Groups'], timeout = 1 }}
        [[site.route]]
        path = '/app'
        proxy = {{ to = '{app}', strip-prefix = true }}
        [[site.route]]
        path = '/private'
        files = true
        headers = {{ set = {{ x-route = 'private' }} }}
        [[site.route]]
        path = '/open'
        proxy = {{ to = '{app}' }}
        forward-auth = false
        [[site.route]]
        path = '/'
        files = true
        forward-auth = false
        ",
        gate = gate.url(),
        app = app.url(),
    );
    let server = start(place.path(), &configuration);
    let of = |session: &str, ask: Ask| {
        let ask = ask.with("cookie", &format!("session={session}"));
        ask.with("remote-user", "root").with("remote_user", "root").with("remote-groups", "wheel")
    };
    // The client goes on with its content, and as the one that the other server knows.
    for ask in [Ask::get("/app/x?y"), Ask::new("POST", "/app/x?y").sending(300_000)] {
        let (method, length) = (ask.method, ask.content.len());
        let answers =
            ask_all(server.port, &of("alice", ask).with("if-none-match", "\"1\"").with("range", "bytes=0-1"));
        for answer in &answers {
            let text = String::from_utf8_lossy(&answer.content);
            assert_eq!((answer.status, &*text), (200, &*format!("{method} /x?y HTTP/1.1 {length}")));
            assert_eq!(answer.field("set-cookie"), "", "it is between the two servers");
        }
        for heard in app.take() {
            assert_eq!(
                (heard.field("remote-user"), heard.field("cookie")),
                ("alice", "session=alice"),
                "{heard:?}"
            );
            assert_eq!((heard.field("remote_user"), heard.field("remote-groups")), ("", ""), "{heard:?}");
            assert_eq!((heard.field("if-none-match"), heard.field("range")), ("\"1\"", "bytes=0-1"));
        }
        let asked = gate.take();
        assert_eq!(asked.len(), 3);
        for heard in asked {
            assert_eq!(heard.first_line(), "GET /verify?a=b HTTP/1.1");
            assert_eq!(
                (heard.field("x-forwarded-method"), heard.field("x-forwarded-uri")),
                (method, "/app/x?y")
            );
            assert_eq!(
                (heard.field("x-forwarded-for"), heard.field("x-forwarded-proto")),
                ("127.0.0.1", "https")
            );
            assert_eq!(heard.field("x-forwarded-host"), format!("localhost:{}", server.port));
            for name in ["content-length", "transfer-encoding", "content-type", "if-none-match", "range"] {
                assert_eq!(heard.field(name), "", "{heard:?}");
            }
            assert!(heard.content.is_empty());
        }
    }
    assert_eq!(statuses(&ask_all(server.port, &of("nameless", Ask::get("/app")))), [200; 3]);
    assert!(
        app.take().iter().all(|heard| heard.field("remote-user").is_empty()),
        "without it no user has a name"
    );
    for answer in ask_all(server.port, &of("alice", Ask::get("/private/a.txt"))) {
        assert_eq!(
            (answer.status, &*answer.content, answer.field("x-route")),
            (200, &b"secret"[..], "private")
        );
    }
    // Other responses are the client's.
    for path in ["/app", "/private/a.txt", "/private/nothing"] {
        for (session, status, content, name, value) in [
            ("", 302, "login", "location", "https://login.example.org/?then=here"),
            ("forbidden", 403, "no!", "x-why", "because"),
            ("broken", 500, "", "x-why", ""),
            ("known", 304, "", "x-why", ""),
            // And without a response nothing is.
            ("none", 502, "sorry", "x-why", ""),
            ("odd", 502, "sorry", "x-why", ""),
        ] {
            for answer in ask_all(server.port, &of(session, Ask::get(path))) {
                assert_eq!(
                    (answer.status, &*answer.content),
                    (status, content.as_bytes()),
                    "{session} {path}"
                );
                assert_eq!(answer.field(name), value, "{session} {path}");
            }
        }
    }
    assert_eq!(statuses(&ask_all(server.port, &of("slow", Ask::new("POST", "/app").sending(10)))), [504; 3]);
    assert_eq!(
        statuses(&ask_all(server.port, &of("forbidden", Ask::new("POST", "/app").sending(500_000)))),
        [403; 3]
    );
    assert_eq!(statuses(&ask_all(server.port, &of("forbidden", Ask::new("HEAD", "/app")))), [403; 3]);
    assert!(app.take().is_empty(), "nothing of them reached the application");
    gate.take();
    assert_eq!(statuses(&ask_all(server.port, &Ask::get("/open"))), [200; 3]);
    assert_eq!(statuses(&ask_all(server.port, &Ask::get("/"))), [200; 3]);
    assert!(gate.take().is_empty(), "it was not asked");
    let (_, log) = server.stop();
    assert!(
        log.contains("\"GET /app/x?y HTTP/3\" 200 ") && log.contains("\"GET /app HTTP/2\" 302 "),
        "{log}"
    );
}

/// Deleted, a route could be open while there is no server to say who may have it.
#[test]
fn a_route_is_shut_while_the_other_server_cannot_be_reached() {
    let app = Upstream::echo();
    let place = folder(&[("site/index.html", "home")]);
    let server = start(
        place.path(),
        &format!(
            "[[site]]\nnames = '*'\nroot = 'site'\n[[site.route]]\npath = '/'\nproxy = {{ to = '{}' }}\n\
             forward-auth = {{ to = 'unix:nothing.sock', path = '/', copy = 'remote-user' }}\n",
            app.url()
        ),
    );
    for ask in [Ask::get("/a"), Ask::new("POST", "/a").sending(100_000)] {
        assert_eq!(statuses(&ask_all(server.port, &ask.with("remote-user", "root"))), [502; 3]);
    }
    assert!(app.take().is_empty());
    let said = server.wait_for("said", ("nothing.sock", 1));
    assert!(said.contains("GET / for GET /a"), "{said}");
    server.stop();
}
