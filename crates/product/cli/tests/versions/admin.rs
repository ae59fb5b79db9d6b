//! What an operator sees of a server: metrics, health, readiness, status.

use crate::configuration::{folder, run};
use crate::leaving::Download;
use crate::message::Ask;
use crate::server::{PROGRAM, Server};
use crate::{http3, site, tcp};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

/// Asks for `path` as a program without a library does. Returns the status and what follows the head.
pub(crate) fn ask(
    mut stream: impl std::io::Read + std::io::Write,
    method: &str,
    path: &str,
) -> (u16, String) {
    let request = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, answer.split_once("\r\n\r\n").expect("a head").1.to_owned())
}

pub(crate) fn get(server: &Server, path: &str) -> (u16, String) {
    let address: SocketAddr =
        server.ready["admin"].as_str().and_then(|text| text.parse().ok()).expect("an address");
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    ask(stream, "GET", path)
}

/// The value of a sample.
fn value(metrics: &str, sample: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {sample} in {metrics}"))
}

const SITES: &str = "admin = 'localhost:0'\nworkers = 2\n[[site]]\nnames = ['localhost', 'other']\nroot = 'site'\n\
    [[site]]\nnames = 'busy.org'\n[[site.route]]\npath = '/'\nrespond = { status = 503 }\n";

/// Deleted, a dashboard could show numbers that are not those of the requests.
#[test]
fn each_request_is_counted_by_version_status_and_site() {
    let place = folder(&[("tercel.toml", SITES), ("site/a.txt", "hello")]);
    let server = crate::sites::start(place.path(), SITES);
    let asks = || {
        vec![
            Ask::get("/a.txt"),
            Ask::get("/none"),
            Ask::get("/none"),
            Ask::get("/x").of("busy.org"),
            Ask::get("/").of("none.org"),
        ]
    };
    tcp::run(tcp::http1(server.port, &asks()));
    tcp::run(tcp::http2(server.port, &asks()));
    http3::http3(server.port, &asks());
    let (status, metrics) = get(&server, "/metrics");
    assert_eq!(status, 200);
    for version in ["1", "2", "3"] {
        let of = |status: &str| {
            value(
                &metrics,
                &format!("tercel_http_requests_total{{version=\"{version}\",status=\"{status}\"}}"),
            )
        };
        assert_eq!(
            [of("2xx"), of("3xx"), of("4xx"), of("5xx")],
            [1.0, 0.0, 3.0, 1.0],
            "{version}: {metrics}"
        );
        let count = format!("tercel_http_request_duration_seconds_count{{version=\"{version}\"}}");
        assert_eq!(value(&metrics, &count), 5.0);
        let sum = format!("tercel_http_request_duration_seconds_sum{{version=\"{version}\"}}");
        assert!(value(&metrics, &sum) < 50.0, "{metrics}");
    }
    let of_site = |site: &str, status: &str| {
        value(&metrics, &format!("tercel_site_requests_total{{site=\"{site}\",status=\"{status}\"}}"))
    };
    assert_eq!((of_site("localhost", "2xx"), of_site("localhost", "4xx")), (3.0, 6.0));
    assert_eq!((of_site("busy.org", "5xx"), of_site("", "4xx")), (3.0, 3.0));
    assert_eq!(value(&metrics, "tercel_handshakes_total{transport=\"tcp\",kind=\"full\"}"), 2.0);
    assert_eq!(value(&metrics, "tercel_handshakes_total{transport=\"quic\",kind=\"full\"}"), 1.0);
    assert_eq!(value(&metrics, "tercel_connections_accepted_total{transport=\"quic\"}"), 1.0);
    assert_eq!((value(&metrics, "tercel_threads"), value(&metrics, "tercel_threads_silent")), (4.0, 0.0));
    assert!(value(&metrics, "tercel_quic_packets_sent_total") > 3.0);
    assert!(value(&metrics, "tercel_network_sent_bytes_total{transport=\"tcp\"}") > 1_000.0);
    server.signal("HUP");
    server.wait_for("said", ("tercel: reloaded: ", 1));
    let (_, metrics) = get(&server, "/metrics");
    assert_eq!(value(&metrics, "tercel_reloads_total{result=\"success\"}"), 1.0);
    assert_eq!(value(&metrics, "tercel_site_requests_total{site=\"busy.org\",status=\"5xx\"}"), 3.0);
    server.stop();
}

/// Deleted, a load balancer could send clients to a server that takes none, or a watchdog kill one that drains.
#[test]
fn a_server_that_drains_is_alive_and_not_ready() {
    let root = site();
    let mut server = Server::start(root.path(), &["--admin", "localhost:0"]);
    assert_eq!(get(&server, "/healthz"), (200, "alive\n".to_owned()));
    assert_eq!(get(&server, "/readyz"), (200, "ready\n".to_owned()));
    let mut download = Download::start(&server, "/bytes/50MB");
    let (_, metrics) = get(&server, "/metrics");
    assert_eq!(value(&metrics, "tercel_connections_open{transport=\"quic\"}"), 1.0);
    server.ask_to_end();
    let mut readiness = get(&server, "/readyz");
    for _ in 0..1_000 {
        if readiness.0 == 503 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        readiness = get(&server, "/readyz");
    }
    assert_eq!(readiness, (503, "draining\n".to_owned()));
    assert_eq!(get(&server, "/healthz").0, 200);
    let (_, metrics) = get(&server, "/metrics");
    assert_eq!((value(&metrics, "tercel_ready"), value(&metrics, "tercel_threads_silent")), (0.0, 0.0));
    assert_eq!(download.finish(), (50_000_000, true));
    assert!(server.wait().success());
}

#[test]
fn what_is_asked_wrongly_is_told_so() {
    let root = site();
    let server = Server::start(root.path(), &["--admin", "localhost:0"]);
    assert_eq!(get(&server, "/").0, 200);
    let (status, places) = get(&server, "/metric");
    assert!(status == 404 && places.contains("/metrics\n"), "{places}");
    let address = server.ready["admin"].as_str().expect("an address");
    let (status, _) = ask(TcpStream::connect(address).expect("a connection"), "POST", "/metrics");
    assert_eq!(status, 405);
    let (status, head) = ask(TcpStream::connect(address).expect("a connection"), "HEAD", "/metrics");
    assert_eq!((status, head.as_str()), (200, ""));
    let said = std::fs::read_to_string(server.file("said")).expect("a file");
    assert!(!said.contains("open to other machines"), "{said}");
    server.stop();
}

/// Deleted, metrics could be open to other machines without a word.
#[test]
fn an_address_that_others_reach_is_warned_of() {
    let root = site();
    let server = Server::start(root.path(), &["--admin", "0.0.0.0:0"]);
    server.wait_for("said", ("is open to other machines", 1));
    server.stop();
}

#[test]
fn status_is_read_over_a_socket_by_people_and_programs() {
    let root = site();
    let place = folder(&[]);
    let socket = place.path().join("admin.sock");
    let address = format!("unix:{}", socket.display());
    let server = Server::start(root.path(), &["--admin", &address]);
    assert_eq!(server.ready["admin"], address);
    tcp::run(tcp::http1(server.port, &[Ask::get("/hello.txt"), Ask::get("/none")]));
    let stream = UnixStream::connect(&socket).expect("a connection");
    let (status, json) = ask(stream, "GET", "/status");
    assert_eq!(status, 200);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["requests"]["all"], &json["stage"]), (&2.into(), &"ready".into()));
    let output = run(place.path(), &["status", "--admin", &address]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for part in [
        ", ready, up ",
        "serves       HTTP/1.1, 2 and 3 on 127.0.0.1:",
        "2 in all, 0.0 a second, 1 with 4xx, 0 with 5xx",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let output = run(place.path(), &["status", "--json", "--admin", &address]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["requests"]["by_status"]["4xx"], 1);
    // A second server does not take the place of the first.
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", "60", PROGRAM, "serve", "--listen", "127.0.0.1:0", "--admin", &address]);
    let output = command.env("XDG_DATA_HOME", place.path()).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("--admin: cannot listen on unix:"), "{said}");
    server.stop();
    assert!(!socket.exists());
    let output = run(place.path(), &["status", "--admin", &address]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("no server answers at unix:"), "{said}");
}
