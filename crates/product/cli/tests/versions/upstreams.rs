//! Upstreams of the proxy as an operator sees them: checks, metrics, and what of them outlives a reload.

use crate::admin::get;
use crate::configuration::folder;
use crate::message::Ask;
use crate::proxy::{proxy, statuses};
use crate::server::Server;
use crate::sites::{ask_all, start};
use crate::upstream::{Heard, Then, Upstream, echo, write};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The value of a sample; `None` without it.
fn value(server: &Server, sample: &str) -> Option<f64> {
    let (_, metrics) = get(server, "/metrics");
    metrics.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok())
}

fn wait_for(server: &Server, sample: &str, expected: f64) {
    for _ in 0..600 {
        if value(server, sample) == Some(expected) {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{sample} is {:?}, not {expected}", value(server, sample));
}

fn healthy(upstream: &Upstream) -> String {
    format!("tercel_upstream_healthy{{upstream=\"{}\"}}", upstream.url())
}

/// A server with a route for all paths, which has these keys.
fn serve(place: &Path, proxy: &str) -> Server {
    start(place, &configuration(proxy))
}

fn configuration(proxy: &str) -> String {
    format!(
        "admin = 'localhost:0'\n[[site]]\nnames = '*'\nroot = 'site'\n[[site.route]]\npath = '/'\nproxy = {{ {proxy} }}\n"
    )
}

/// An upstream that answers requests, and checks as long as it is well.
fn checked() -> (Upstream, Arc<AtomicBool>) {
    let is_well = Arc::new(AtomicBool::new(true));
    let well = Arc::clone(&is_well);
    let upstream = Upstream::start(move |heard: &Heard, out: &mut dyn Write| {
        if heard.target() != "/health?x" {
            return echo(heard, out);
        }
        assert_eq!((heard.field("host"), heard.field("via")), ("check.internal", ""), "{:?}", heard.lines);
        let status = if well.load(Ordering::Relaxed) { "204 No Content" } else { "200 OK" };
        write(out, format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes());
        Then::Keep
    });
    (upstream, is_well)
}

/// Deleted, clients could be sent to an upstream that says itself that it is not well, or never again to one that is.
#[test]
fn an_upstream_whose_checks_fail_gets_no_requests_until_they_succeed() {
    let place = folder(&[("site/index.html", "home")]);
    let ((one, is_well), other) = (checked(), Upstream::echo());
    let health = "health = { path = '/health?x', host = 'check.internal', interval = 1, timeout = 1, status = ['204', '301-302'], rises = 2, falls = 2 }";
    let to = format!("to = ['{}', '{}'], balance = 'round-robin'", one.url(), other.url());
    let server = serve(place.path(), &format!("{to}, {health}"));
    // The other one answers 200, which is not what is expected: the first check alone takes it out.
    wait_for(&server, &healthy(&other), 0.0);
    wait_for(&server, &healthy(&one), 1.0);
    for _ in 0..3 {
        assert_eq!(statuses(&ask_all(server.port, &Ask::get("/a"))), [200; 3]);
    }
    assert!(other.take().iter().all(|heard| heard.target() == "/health?x"));
    is_well.store(false, Ordering::Relaxed);
    wait_for(&server, &healthy(&one), 0.0);
    let said = server.wait_for("said", ("is down by its checks", 2));
    assert!(said.contains("the check /health?x fails: the status 200 OK"), "{said}");
    // Where none is well, all are tried.
    assert_eq!(statuses(&ask_all(server.port, &Ask::get("/a"))), [200; 3]);
    is_well.store(true, Ordering::Relaxed);
    wait_for(&server, &healthy(&one), 1.0);
    server.wait_for("said", ("is well again", 1));
    let (_, status) = get(&server, "/status");
    assert!(status.contains(&format!("\"name\": \"{}\"", one.url())), "{status}");
    server.stop();
}

/// Deleted, a reload could send clients to what is known to be down, or forget what was counted.
#[test]
fn a_reload_keeps_what_is_known_of_upstreams() {
    let place = folder(&[("site/index.html", "home"), ("tercel.toml", "")]);
    let (up, down) = (Upstream::echo(), Upstream::start(|_: &Heard, _: &mut dyn Write| Then::Close));
    let to = format!("to = ['{}', '{}'], balance = 'round-robin', cool-down = 3600", up.url(), down.url());
    let server = serve(place.path(), &to);
    for _ in 0..4 {
        assert_eq!(statuses(&ask_all(server.port, &Ask::get("/a"))), [200; 3]);
    }
    let failures = format!("tercel_upstream_failures_total{{upstream=\"{}\"}}", down.url());
    assert_eq!((value(&server, &healthy(&down)), value(&server, &failures)), (Some(0.0), Some(3.0)));
    let reload = |text: &str, times| {
        std::fs::write(place.path().join("tercel.toml"), configuration(text)).expect("written");
        server.signal("HUP");
        server.wait_for("said", ("tercel: reloaded: ", times));
    };
    down.take();
    reload(&to, 1);
    for _ in 0..4 {
        assert_eq!(statuses(&ask_all(server.port, &Ask::get("/a"))), [200; 3]);
    }
    assert!(down.take().is_empty(), "it is known to be down");
    assert_eq!((value(&server, &healthy(&down)), value(&server, &failures)), (Some(0.0), Some(3.0)));
    // Without it in the file it is not told of, but for what was counted.
    reload(&format!("to = '{}'", up.url()), 2);
    assert_eq!(statuses(&ask_all(server.port, &Ask::get("/a"))), [200; 3]);
    assert_eq!((value(&server, &healthy(&down)), value(&server, &failures)), (None, Some(3.0)));
    server.stop();
}

/// Deleted, a dashboard could show numbers that are not those of the upstreams.
#[test]
fn upstreams_are_counted() {
    let place = folder(&[("site/index.html", "home")]);
    let upstream = Upstream::start(|heard: &Heard, out: &mut dyn Write| match heard.target() {
        "/none" => {
            write(out, b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
            Then::Keep
        }
        "/close" => Then::Close,
        _ => echo(heard, out),
    });
    let server = serve(place.path(), &format!("to = '{}'", upstream.url()));
    for (path, status) in [("/a", 200), ("/a", 200), ("/none", 404), ("/close", 502)] {
        assert_eq!(statuses(&ask_all(server.port, &Ask::get(path))), [status; 3], "{path}");
    }
    let url = upstream.url();
    let of = |name: &str| value(&server, &format!("tercel_upstream_{name}{{upstream=\"{url}\"}}"));
    let by_status = |status| {
        value(&server, &format!("tercel_upstream_requests_total{{upstream=\"{url}\",status=\"{status}\"}}"))
    };
    assert_eq!(["1xx", "2xx", "4xx", "5xx"].map(by_status), [Some(0.0), Some(6.0), Some(3.0), Some(0.0)]);
    assert_eq!((of("failures_total"), of("response_seconds_count")), (Some(3.0), Some(9.0)));
    assert!(of("response_seconds_sum").is_some_and(|sum| sum > 0.0 && sum < 30.0));
    assert_eq!((of("requests_active"), of("checks_failed_total")), (Some(0.0), Some(0.0)));
    assert!(of("connections_opened_total").is_some_and(|opened| opened as usize == upstream.connections()));
    server.stop();
}

/// Deleted, a secret between the server and an upstream could be missing, or be one that a client says.
#[test]
fn an_operator_changes_what_upstreams_hear() {
    let upstream = Upstream::echo();
    let edit = "request-headers = { set = { x-api-key = 's3cret' }, add = { via = '1.0 added' }, remove = ['cookie', 'x-forwarded-host'] }";
    let (_place, server) = proxy(&format!("to = '{}', {edit}", upstream.url()));
    let ask = Ask::get("/").with("x-api-key", "guess").with("cookie", "a=1").with("accept", "text/x-a");
    assert_eq!(statuses(&ask_all(server.port, &ask)), [200; 3]);
    for heard in upstream.take() {
        assert_eq!((heard.field("x-api-key"), heard.field("accept")), ("s3cret", "text/x-a"));
        assert_eq!((heard.field("cookie"), heard.field("x-forwarded-host")), ("", ""));
        assert!(heard.lines.contains(&"via: 1.0 added".to_owned()), "{:?}", heard.lines);
        assert_eq!(heard.field("x-forwarded-for"), "127.0.0.1");
    }
    server.stop();
}
