//! Sites of a configuration file over HTTP/1.1, 2 and 3: hosts, routes, and each action with what it changes of responses.

use crate::configuration::folder;
use crate::http3;
use crate::message::{Answer, Ask, Who};
use crate::server::Server;
use crate::tcp;
use std::path::Path;

const FILES: &[(&str, &str)] = &[
    ("site/index.html", "home"),
    ("site/page.html", "page"),
    ("site/missing.html", "not here"),
    ("site/old/a.html", "of old"),
    ("site/new/a.html", "of new"),
    ("site/app/index.html", "app"),
    ("site/app/app.js", "code"),
    ("site/several/second.html", "second"),
    ("site/.secret", "?"),
    ("site/sub/a.txt", "a"),
    ("assets/style.css", "css"),
    ("assets/deep/.dot", "dot"),
    ("other/index.html", "other home"),
    ("other/page.html", "other page"),
    ("other/a.txt", "other text"),
    ("site/cached/app.1a2b.js", "code 1a2b"),
    ("site/cached/app.css", "css"),
    ("site/cached/a.txt", "text"),
];

const CONFIGURATION: &str = r#"
[[site]]
names = ["localhost", "example.org"]
root = "site"
headers = { set = { x-frame-options = "DENY" }, add = { link = "</a>; rel=preload" } }
hsts = { max-age = 60, include-subdomains = true }
error-pages = { 404 = "/missing.html", 410 = "/missing.html" }

[[site.route]]
path = "/assets"
files = { root = "assets", strip-prefix = true, listing = true, dot-files = true }
cache-control = "public, max-age=3600"

[[site.route]]
path = "/cached"
files = { try-files = ["{path}", "/index.html"] }
cache-control = [
    { match = "*.1a2b.*", value = "public, max-age=31536000, immutable" },
    { match = ["*.css", "*.js"], value = "max-age=60" },
]

[[site.route]]
path = "/app"
files = { try-files = ["{path}", "/app/index.html"] }
headers = { remove = ["etag", "link"] }

[[site.route]]
path = "/several"
files = { index = ["first.html", "second.html"] }

[[site.route]]
path = "/gone"
exact = true
respond = { status = 410 }

[[site.route]]
path = "/"
exact = true
methods = ["POST"]
respond = { status = 201, body = "made", content-type = "text/x-made" }

[[site.route]]
path = "/ping"
methods = ["GET"]
respond = { body = "pong\n" }
hsts = false

[[site.route]]
path = "/empty"
respond = { status = 204 }

[[site.route]]
path = "/moved"
redirect = { to = "https://{host}/new/{rest}{query}", status = 308 }

[[site.route]]
path = "/away"
redirect = { to = "/{rest}" }

[[site.route]]
path = "/old"
rewrite = "/new/{rest}"

[[site.route]]
path = "/new/fixed"
respond = { body = "rewritten" }

[[site]]
names = "*.example.org"
root = "other"
headers = { set = { cache-control = "private" } }
cache-control = [{ match = "*.html", value = "no-cache" }, { match = "page.*", value = "never" }]
[[site.route]]
path = "/page.html"
files = true
cache-control = [{ match = "page.html", value = "max-age=1" }]
[[site.route]]
path = "/fixed.html"
respond = { body = "fixed" }
headers = { set = { cache-control = "no-store" } }

[[site]]
names = ["api.example.org"]
[[site.route]]
path = "/v1"
methods = ["GET", "DELETE"]
respond = { body = "v1" }
"#;

/// A request, the status, the content (or the part of it behind `…`), and lines of the head; `!name` is not there.
pub(crate) type Row = (Ask, u16, &'static str, &'static [&'static str]);

fn rows() -> Vec<Row> {
    [own_files(), other_files(), cached(), answers()].concat()
}

fn own_files() -> Vec<Row> {
    let get = Ask::get;
    let ask = Ask::new;
    vec![
        // Files of the site, with what it changes.
        (
            get("/"),
            200,
            "home",
            &[
                "x-frame-options: DENY",
                "link: </a>; rel=preload",
                "strict-transport-security: max-age=60; includeSubDomains",
                "content-type: text/html; charset=utf-8",
                "!cache-control",
            ],
        ),
        (get("/page.html").with("range", "bytes=1-2"), 206, "ag", &["content-range: bytes 1-2/4"]),
        (ask("HEAD", "/page.html"), 200, "", &["content-length: 4"]),
        (ask("OPTIONS", "/page.html"), 204, "", &["allow: GET, HEAD, OPTIONS"]),
        (ask("PUT", "/page.html"), 405, "…Method Not Allowed\n", &["allow: GET, HEAD, OPTIONS"]),
        // A page for an error, with its status.
        (
            get("/nothing"),
            404,
            "not here",
            &[
                "content-type: text/html; charset=utf-8",
                "content-length: 8",
                "x-frame-options: DENY",
                "!etag",
            ],
        ),
        (ask("HEAD", "/nothing"), 404, "", &["content-length: 8"]),
        (get("/.secret"), 404, "not here", &[]),
        (get("/bytes/100"), 404, "not here", &[]),
        (get("/sub/"), 404, "not here", &[]),
        (get("/sub?x=1"), 301, "…Moved Permanently\n", &["location: /sub/?x=1"]),
        (get("/gone"), 410, "not here", &[]),
        (get("/gone/x"), 404, "not here", &[]),
    ]
}

fn other_files() -> Vec<Row> {
    let get = Ask::get;
    vec![
        // Files of another folder, below the path of the route.
        (
            get("/assets/style.css"),
            200,
            "css",
            &["cache-control: public, max-age=3600", "content-type: text/css; charset=utf-8"],
        ),
        (get("/%61ssets//style.css"), 200, "css", &[]),
        (get("/assets"), 301, "…Moved Permanently\n", &["location: /assets/"]),
        (get("/assets/deep?y"), 301, "…", &["location: /assets/deep/?y"]),
        (get("/assets/deep/?json"), 200, "….dot", &["content-type: application/json"]),
        (get("/assets/nothing"), 404, "not here", &["!cache-control"]),
        (get("/assetsx"), 404, "not here", &[]),
        (get("/assets/%2e%2e/site/index.html"), 400, "…", &[]),
        (Ask::get(&format!("/moved/{}", "x".repeat(9_000))), 414, "…URI Too Long", &[]),
        (get("/assets%2Fstyle.css"), 400, "…an encoded slash", &[]),
        // An application of one page, and several indexes.
        (get("/app/app.js"), 200, "code", &["!etag", "!link", "x-frame-options: DENY"]),
        (get("/app/any/where?q"), 200, "app", &["content-type: text/html; charset=utf-8"]),
        (get("/app"), 301, "…", &["location: /app/"]),
        (get("/several/"), 200, "second", &["etag: …"]),
    ]
}

/// The first rule for a name holds, those of a route before those of its site, and none for an error.
fn cached() -> Vec<Row> {
    let get = Ask::get;
    let other = |path: &str| Ask::get(path).of("www.example.org");
    vec![
        (get("/cached/app.1a2b.js?v=1"), 200, "…", &["cache-control: public, max-age=31536000, immutable"]),
        (get("/cached/app%2Ecss"), 200, "css", &["cache-control: max-age=60"]),
        (get("/cached/app.css").with("range", "bytes=0-0"), 206, "c", &["cache-control: max-age=60"]),
        (get("/cached/app.css").with("if-none-match", "*"), 304, "", &["cache-control: max-age=60"]),
        (get("/cached/a.txt"), 200, "text", &["!cache-control"]),
        // What was found counts, not what was asked for.
        (get("/cached/none.js"), 200, "home", &["!cache-control"]),
        (other("/"), 200, "other home", &["cache-control: no-cache"]),
        (other("/a.txt"), 200, "other text", &["cache-control: private"]),
        (other("/page.html"), 200, "other page", &["cache-control: max-age=1"]),
        (other("/fixed.html"), 200, "fixed", &["cache-control: no-store"]),
        (other("/none.html"), 404, "…", &["cache-control: private"]),
    ]
}

fn answers() -> Vec<Row> {
    let get = Ask::get;
    let ask = Ask::new;
    vec![
        // Fixed responses, by path and method.
        (ask("POST", "/"), 201, "made", &["content-type: text/x-made", "content-length: 4"]),
        (
            get("/ping"),
            200,
            "pong\n",
            &["content-type: text/plain; charset=utf-8", "!strict-transport-security"],
        ),
        (ask("HEAD", "/ping"), 200, "", &["content-length: 5"]),
        (ask("POST", "/ping").sending(10), 405, "…", &[]),
        (get("/empty"), 204, "", &["!content-type"]),
        // Elsewhere.
        (
            get("/moved/a/b?c=d").of("Example.org:8443"),
            308,
            "…",
            &["location: https://example.org/new/a/b?c=d"],
        ),
        (get("/moved"), 308, "…", &["location: https://localhost/new/"]),
        (get("/away//evil.example"), 307, "…", &["location: /evil.example"]),
        (get("/old/a.html"), 200, "of new", &[]),
        (get("/old/fixed"), 200, "rewritten", &[]),
        // Other hosts.
        (get("/").of("www.example.org"), 200, "other home", &["!x-frame-options"]),
        (get("/v1/x").of("api.example.org"), 200, "v1", &[]),
        (ask("PUT", "/v1").of("api.example.org"), 405, "…", &["allow: DELETE, GET, HEAD, OPTIONS"]),
        (ask("OPTIONS", "/v1").of("api.example.org"), 204, "", &["allow: DELETE, GET, HEAD, OPTIONS"]),
        (get("/v2").of("api.example.org"), 404, "404 Not Found\n", &[]),
        (get("/").of("a.b.example.org"), 421, "…no site here has this name\n", &[]),
        (get("/").of("evil.example"), 421, "…", &["!x-frame-options"]),
    ]
}

pub(crate) fn judge(row: &Row, answer: &Answer, version: &str) {
    let (ask, status, content, head) = row;
    let what = format!("HTTP/{version} {} {:?} {}: {answer:?}", ask.method, ask.host, ask.target);
    assert_eq!(answer.status, *status, "{what}");
    let text = String::from_utf8_lossy(&answer.content);
    match content.strip_prefix('…') {
        Some(part) => assert!(text.contains(part), "{what}"),
        None => assert_eq!(text, *content, "{what}"),
    }
    for line in *head {
        match (line.strip_prefix('!'), line.split_once(": ")) {
            (Some(name), _) => assert!(!answer.fields.contains_key(name), "{line}: {what}"),
            (None, Some((name, "…"))) => assert!(answer.fields.contains_key(name), "{line}: {what}"),
            (None, Some((name, value))) => assert_eq!(answer.field(name), value, "{what}"),
            (None, None) => unreachable!("{line} is no line of a head"),
        }
    }
}

/// A server of this configuration in `place`.
pub(crate) fn start(place: &Path, configuration: &str) -> Server {
    let file = place.join("tercel.toml");
    std::fs::write(&file, configuration).expect("written");
    Server::start_without_root(&["--config", file.to_str().expect("text")])
}

/// The answers to `ask` over HTTP/1.1, 2 and 3.
pub(crate) fn ask_all(port: u16, ask: &Ask) -> [Answer; 3] {
    let asks = std::slice::from_ref(ask);
    ask_each(&Who::default(), port, asks).map(|mut answers| answers.remove(0))
}

/// The answers to all of `asks` over each of HTTP/1.1, 2 and 3.
pub(crate) fn ask_each(who: &Who, port: u16, asks: &[Ask]) -> [Vec<Answer>; 3] {
    let one = tcp::run(tcp::http1_as(who, port, asks));
    let two = tcp::run(tcp::http2_as(who, port, asks));
    [one, two, http3::http3_as(who, port, asks)]
}

/// Asks a server by each version of HTTP, and judges the answers.
pub(crate) fn answer_alike(port: u16, rows: &[Row]) {
    let asks: Vec<Ask> = rows.iter().map(|(ask, ..)| ask.clone()).collect();
    let [one, two, three] = ask_each(&Who::default(), port, &asks);
    for (version, answers) in [("1.1", one), ("2", two), ("3", three)] {
        assert_eq!(answers.len(), rows.len());
        rows.iter().zip(&answers).for_each(|(row, answer)| judge(row, answer, version));
    }
}

/// Deleted, a route could be another one in one version of HTTP, or for another spelling of a path.
#[test]
fn sites_answer_alike_over_all_versions() {
    let place = folder(FILES);
    let server = start(place.path(), CONFIGURATION);
    answer_alike(server.port, &rows());
    // The log has what was asked for, not what it was rewritten to.
    let (_, log) = server.stop();
    for version in ["1.1", "2", "3"] {
        assert!(log.contains(&format!("\"GET /old/a.html HTTP/{version}\" 200 6 ")), "{log}");
    }
}

/// A certificate for `names` in the files `stem.crt` and `stem.key`. Returns it.
pub(crate) fn certificate(
    place: &Path,
    stem: &str,
    names: &[&str],
    key: &'static rcgen::SignatureAlgorithm,
) -> Vec<u8> {
    let key = rcgen::KeyPair::generate_for(key).expect("a key");
    let made = rcgen::CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        .expect("parameters")
        .self_signed(&key);
    let made = made.expect("a certificate");
    std::fs::write(place.join(format!("{stem}.crt")), made.pem()).expect("written");
    std::fs::write(place.join(format!("{stem}.key")), key.serialize_pem()).expect("written");
    made.der().to_vec()
}

/// Deleted, a client could be shown the certificate of another site, or one of a kind that it cannot check.
#[test]
fn each_site_shows_its_certificates_by_kind_of_key() {
    let place = folder(FILES);
    let of = |stem, names: &[&str], key| certificate(place.path(), stem, names, key);
    let rsa = of("rsa", &["a.example"], &rcgen::PKCS_RSA_SHA256);
    let ecdsa = of("ecdsa", &["a.example"], &rcgen::PKCS_ECDSA_P256_SHA256);
    let below = of("below", &["*.b.example", "b.example"], &rcgen::PKCS_ECDSA_P256_SHA256);
    let any = of("any", &["c.example"], &rcgen::PKCS_ECDSA_P256_SHA256);
    let text = "
        [[site]]
        names = 'a.example'
        root = 'site'
        certificate = [{ cert = 'ecdsa.crt', key = 'ecdsa.key' }, { cert = 'rsa.crt', key = 'rsa.key' }]
        [[site]]
        names = ['*.b.example', 'b.example']
        root = 'site'
        [[site.certificate]]
        cert = 'below.crt'
        key = 'below.key'
        [[site]]
        names = '*'
        root = 'other'
        certificate = [{ cert = 'any.crt', key = 'any.key' }]\n";
    let server = start(place.path(), text);
    let ecdsa_alone = vec![rustls::SignatureScheme::ECDSA_NISTP256_SHA256];
    let rsa_alone = vec![rustls::SignatureScheme::RSA_PSS_SHA256];
    let both = vec![rustls::SignatureScheme::RSA_PSS_SHA256, rustls::SignatureScheme::ECDSA_NISTP256_SHA256];
    for (name, schemes, expected) in [
        ("a.example", &both, &ecdsa),
        ("a.example", &ecdsa_alone, &ecdsa),
        ("a.example", &rsa_alone, &rsa),
        ("www.b.example", &both, &below),
        ("b.example", &both, &below),
        ("a.b.b.example", &both, &any),
        ("localhost", &both, &any),
        ("127.0.0.1", &both, &any),
    ] {
        let shown = tcp::run(tcp::shown(server.port, name, schemes.clone()));
        assert!(shown == *expected, "{name} {schemes:?}");
    }
    // Whichever certificate was shown, the host of a request says whose site it is.
    let ask = Ask::get("/").of("unknown.example");
    let answer = tcp::run(tcp::http1(server.port, &[ask])).remove(0);
    assert_eq!((answer.status, answer.content), (200, b"other home".to_vec()));
    server.stop();
}
