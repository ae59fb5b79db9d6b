//! The configurations of docs/migration.md, each served and asked as its reader would. Deleted, the page could promise what tercel does not do.

use crate::http3;
use crate::message::{Ask, Who};
use crate::server::Server;
use crate::sites::{Row, answer_alike, start};
use crate::tcp;
use crate::upstream::{Heard, Then, Upstream, write};
use std::io::Write;
use std::path::Path;
use tempfile::TempDir;

const PAGE: &str = include_str!("../../../../../docs/migration.md");

const FILES: &[(&str, &str)] = &[
    ("srv/www/index.html", "home"),
    ("srv/www/404.html", "not here"),
    ("srv/www/style.css", "css"),
    ("srv/www/articles/a.html", "an article"),
    ("srv/www/staff/list.txt", "staff"),
    ("srv/app/index.html", "application"),
    ("srv/app/logo.svg", "logo"),
    ("srv/app/assets/app.js", "code"),
    ("srv/app/static/a.css", "static"),
    ("srv/net/a.txt", "net"),
];

/// Our file below the heading with `number`, with a folder of its own in place of `/`.
fn configuration(number: &str, place: &Path) -> String {
    let heading = format!("\n## {number}. ");
    let chapter = PAGE.split(&heading).nth(1).and_then(|rest| rest.split("\n## ").next()).expect("a chapter");
    for other in ["nginx", "caddyfile"] {
        assert_eq!(chapter.matches(&format!("```{other}\n")).count(), 1, "{number} has one for {other}");
    }
    let ours = chapter.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("our file");
    let place = place.display();
    ours.replace("\"/srv/", &format!("\"{place}/srv/")).replace("\"/etc/", &format!("\"{place}/etc/"))
}

/// A server of that file. Its certificates are good for all names of the page.
fn served(number: &str) -> (Server, TempDir) {
    served_with(number, &[])
}

/// The same with ports in place of those of the page.
fn served_with(number: &str, ports: &[(u16, u16)]) -> (Server, TempDir) {
    let place = crate::configuration::folder(FILES);
    let text = configuration(number, place.path());
    let text = ports.iter().fold(text, |text, (of_page, port)| {
        text.replace(&format!("127.0.0.1:{of_page}"), &format!("127.0.0.1:{port}"))
    });
    let names = ["example.org", "*.example.org", "*.example.net"].map(str::to_owned).to_vec();
    let table: toml::Table = text.parse().expect("TOML");
    let sites = table["site"].as_array().expect("sites").iter();
    for certificate in sites.flat_map(|site| site["certificate"].as_array().into_iter().flatten()) {
        let path = |name: &str| Path::new(certificate[name].as_str().expect("a path")).to_owned();
        let algorithm = match path("key").ends_with("example.org.rsa.key") {
            true => &rcgen::PKCS_RSA_SHA256,
            false => &rcgen::PKCS_ECDSA_P256_SHA256,
        };
        let key = rcgen::KeyPair::generate_for(algorithm).expect("a key");
        let params = rcgen::CertificateParams::new(names.clone()).expect("names");
        let made = params.self_signed(&key).expect("a certificate");
        std::fs::create_dir_all(path("cert").parent().expect("a folder")).expect("made");
        std::fs::write(path("cert"), made.pem()).expect("written");
        std::fs::write(path("key"), key.serialize_pem()).expect("written");
    }
    (start(place.path(), &text), place)
}

fn judge(number: &str, rows: &[Row]) {
    let (server, _place) = served(number);
    answer_alike(server.port, rows);
    server.stop();
}

const FOR_EVER: &str = "cache-control: public, max-age=31536000, immutable";

#[test]
fn a_static_site() {
    let get = |path: &str| Ask::get(path).of("example.org");
    judge(
        "1",
        &[
            (get("/"), 200, "home", &["strict-transport-security: max-age=31536000", "!cache-control"]),
            (get("/style.css"), 200, "css", &[FOR_EVER, "vary: accept-encoding"]),
            (get("/nothing"), 404, "not here", &["content-type: text/html; charset=utf-8"]),
            (get("/").of("example.net"), 421, "…", &[]),
        ],
    );
}

#[test]
fn an_application_of_one_page() {
    let get = |path: &str| Ask::get(path).of("app.example.org");
    let page: &[&str] = &["cache-control: no-cache", "x-frame-options: DENY"];
    judge(
        "2",
        &[
            (get("/"), 200, "application", page),
            (get("/user/7?tab=2"), 200, "application", page),
            (get("/logo.svg"), 200, "logo", page),
            (get("/assets/app.js"), 200, "code", &[FOR_EVER, "x-frame-options: DENY"]),
            (get("/assets/none.js"), 404, "…", &["!cache-control", "x-frame-options: DENY"]),
        ],
    );
}

#[test]
fn redirects() {
    let get = |path: &str| Ask::get(path).of("example.org");
    let (server, _place) = served("3");
    answer_alike(
        server.port,
        &[
            (get("/a?b=c").of("www.example.org"), 308, "…", &["location: https://example.org/a?b=c"]),
            (get("/").of("www.example.org"), 308, "…", &["location: https://example.org/"]),
            (get("/blog/a.html?x"), 301, "…", &["location: /articles/a.html?x"]),
            (get("/articles/a.html"), 200, "an article", &[]),
            (get("/feed"), 410, "…", &[]),
        ],
    );
    let answer = tcp::run(async {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut stream =
            tokio::net::TcpStream::connect(("127.0.0.1", server.port)).await.expect("a connection");
        stream.write_all(b"GET /a?b HTTP/1.1\r\nhost: www.example.org\r\n\r\n").await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        answer
    });
    assert!(answer.starts_with("HTTP/1.1 308 "), "{answer}");
    assert!(answer.contains("\r\nlocation: https://www.example.org/a?b\r\n"), "{answer}");
    server.stop();
}

#[test]
fn several_hosts() {
    judge(
        "4",
        &[
            (Ask::get("/").of("example.org"), 200, "home", &[]),
            (Ask::get("/").of("a.example.net"), 200, "…a.txt", &[]),
            (Ask::get("/a.txt").of("b.example.net"), 200, "net", &[]),
            (Ask::get("/a.txt").of("example.net"), 421, "…", &[]),
        ],
    );
}

#[test]
fn an_area_with_a_password_and_a_limit() {
    let (server, _place) = served("5");
    let get = |path: &str| Ask::get(path).of("example.org");
    answer_alike(server.port, &[(get("/"), 200, "home", &[])]);
    // The password of the page's hash.
    let signed = get("/staff/list.txt").with("authorization", "Basic Ym9iOmNvcnJlY3QgaG9yc2U=");
    let asks: Vec<Ask> = std::iter::once(get("/staff/list.txt")).chain(vec![signed; 12]).collect();
    let answers = http3::http3_as(&Who::default(), server.port, &asks);
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    // Five at once, and one more in two seconds.
    assert!(statuses.starts_with(&[401, 200, 200, 200, 200]) && statuses.contains(&429), "{statuses:?}");
    assert_eq!(answers[0].field("www-authenticate"), "Basic realm=\"Staff\", charset=\"UTF-8\"");
    assert_eq!(answers[1].content, b"staff");
    server.stop();
}

#[test]
fn an_application_behind_the_server() {
    let gate = Upstream::start(|heard: &Heard, out: &mut dyn Write| {
        assert_eq!(heard.target(), "/api/verify");
        let answer = match heard.field("cookie") {
            "known" => "200 OK\r\nremote-user: alice\r\n",
            _ => "302 Found\r\nlocation: https://login.example.org/\r\n",
        };
        write(out, format!("HTTP/1.1 {answer}content-length: 0\r\n\r\n").as_bytes());
        Then::Keep
    });
    let apps = [Upstream::echo(), Upstream::echo()];
    let (server, _place) = served_with("6", &[(3000, apps[0].port), (3001, apps[1].port), (9091, gate.port)]);
    let ask = |method: &'static str, path: &str| Ask::new(method, path).of("example.org");
    let rows: Vec<Row> = vec![
        (ask("GET", "/static/a.css"), 200, "static", &[]),
        (ask("POST", "/a?b").sending(100), 200, "POST /a?b HTTP/1.1 100", &[]),
        (ask("GET", "/api/users"), 200, "GET /users HTTP/1.1 0", &[]),
        (ask("GET", "/admin/x"), 302, "", &["location: https://login.example.org/"]),
        (ask("GET", "/admin/x").with("cookie", "known"), 200, "GET /admin/x HTTP/1.1 0", &[]),
    ];
    answer_alike(server.port, &rows);
    let mut heard = apps.iter().flat_map(Upstream::take).filter(|heard| heard.target() == "/admin/x");
    assert!(heard.all(|heard| heard.field("remote-user") == "alice" && heard.field("x-forwarded-proto") == "https"));
    let switching = crate::tcp::run(async {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut stream = tcp::connect(server.port, "http/1.1").await;
        let offer = "connection: upgrade\r\nupgrade: websocket\r\n";
        let request = format!("GET /socket HTTP/1.1\r\nhost: example.org\r\n{offer}\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = [0; 1_000];
        let read = stream.read(&mut answer).await.expect("an answer");
        String::from_utf8_lossy(&answer[..read]).into_owned()
    });
    assert!(switching.starts_with("HTTP/1.1 200 "), "{switching}");
    let heard: Vec<Heard> = apps.iter().flat_map(Upstream::take).collect();
    assert!(heard.iter().any(|heard| heard.field("upgrade") == "websocket"), "{heard:?}");
    server.stop();
}
