//! Settings of clients and of single requests.

use crate::world::{PATIENCE, Relay, Udp, World};
use axum::Router;
use axum::extract::Request as Incoming;
use axum::routing::get;
use http::header::LINK;
use http::{HeaderMap, Request, StatusCode, Version};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tercel::client::{
    BuildError, DataPath, HttpChoice, Kind, PathReport, Phase, Pool, Timeout, on_informational,
};
use tercel::quic::TransportConfig;
use tercel::{Body, Client, ConnectionInfo};
use tokio::time::{sleep, timeout};

const VERSIONS: [HttpChoice; 3] = [HttpChoice::Http1, HttpChoice::Http2, HttpChoice::Http3];

fn hello() -> Router {
    Router::new().route("/", get(async || "hello"))
}

fn empty(url: String) -> Request<Body> {
    Request::get(url).body(Body::empty()).unwrap()
}

async fn text(client: &Client, request: Request<Body>) -> String {
    let content = client.request(request).await.unwrap().into_body().collect(99).await.unwrap();
    String::from_utf8(content.to_vec()).unwrap()
}

/// Deleted, a program could not preload what a server hints at.
#[tokio::test]
async fn informational_responses_are_told_before_the_response() {
    let hint = async |request: Incoming| {
        let informational = request.extensions().get::<ConnectionInfo>().unwrap().informational();
        let fields = HeaderMap::from_iter([(LINK, "</style.css>".parse().unwrap())]);
        let sent = informational.send(StatusCode::EARLY_HINTS, fields);
        // It leaves while the response is not there.
        sleep(Duration::from_millis(5)).await;
        if sent.is_ok() { "sent" } else { "not sent" }
    };
    let world = World::new(Router::new().route("/", get(hello_redirect)).route("/hint", get(hint)));
    for choice in VERSIONS {
        let client = world.client(choice);
        let told = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&told);
        let mut request = empty(world.url("/"));
        on_informational(&mut request, move |head| {
            notes.lock().unwrap().push((head.status(), head.version(), head.headers().get(LINK).cloned()));
            panic!("what the program does wrong here is its own affair");
        });
        let (version, expected) = match choice {
            HttpChoice::Http3 => (Version::HTTP_3, "sent"),
            HttpChoice::Http1 => (Version::HTTP_11, "sent"),
            _ => (Version::HTTP_2, "not sent"),
        };
        assert_eq!(text(&client, request).await, expected);
        let link = Some("</style.css>".parse().unwrap());
        let all = [(StatusCode::EARLY_HINTS, version, link)];
        let is_sent = usize::from(expected == "sent");
        assert_eq!(*told.lock().unwrap(), all[..is_sent], "{choice:?}");
    }
}

async fn hello_redirect() -> axum::response::Redirect {
    axum::response::Redirect::to("/hint")
}

#[tokio::test]
async fn a_request_has_a_time_limit_of_its_own() {
    let never = get(async || std::future::pending::<&'static str>().await);
    let late = get(async || {
        sleep(Duration::from_millis(400)).await;
        "late"
    });
    let world = World::new(Router::new().route("/never", never).route("/late", late));
    for choice in VERSIONS {
        let client = world.builder(choice).timeout(Some(Duration::from_millis(150))).build().unwrap();
        let mut patient = empty(world.url("/late"));
        patient.extensions_mut().insert(Timeout(PATIENCE));
        assert_eq!(text(&client, patient).await, "late", "{choice:?}");
        let client = world.builder(choice).silence(None).build().unwrap();
        let mut short = empty(world.url("/never"));
        short.extensions_mut().insert(Timeout(Duration::from_millis(50)));
        let error = timeout(PATIENCE, client.request(short)).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), Kind::Timeout(Phase::Whole), "{choice:?}");
    }
}

/// Deleted, a program with many tasks could flood one server.
#[tokio::test]
async fn requests_to_an_origin_wait_for_a_place() {
    let (present, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (inside, peak) = (Arc::clone(&present), Arc::clone(&most));
    let count = get(async move || {
        peak.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        sleep(Duration::from_millis(20)).await;
        inside.fetch_sub(1, Ordering::SeqCst);
        "hello"
    });
    let world = World::new(Router::new().route("/", count));
    for choice in VERSIONS {
        most.store(0, Ordering::SeqCst);
        let limit = Pool::default().requests_per_origin(NonZeroUsize::new(2));
        let client = world.builder(choice).pool(limit).build().unwrap();
        let held = client.get(world.url("/")).await.unwrap();
        let requests: Vec<_> = (0..6)
            .map(|_| {
                let (client, url) = (client.clone(), world.url("/"));
                tokio::spawn(async move { text(&client, empty(url)).await })
            })
            .collect();
        // A response that is dropped gives its place back, as one that is read to its end.
        drop(held);
        for request in requests {
            assert_eq!(timeout(PATIENCE, request).await.unwrap().unwrap(), "hello");
        }
        assert_eq!(most.load(Ordering::SeqCst), 2, "{choice:?}");
        // A request that is given up while it waits leaves no gap.
        let both = [client.get(world.url("/")).await.unwrap(), client.get(world.url("/")).await.unwrap()];
        assert!(timeout(Duration::from_millis(30), client.get(world.url("/"))).await.is_err());
        drop(both);
        assert_eq!(text(&client, empty(world.url("/"))).await, "hello");
    }
}

/// Deleted, the first request of each process would use TCP where HTTP/3 was announced to the last one.
#[tokio::test]
async fn a_later_client_knows_what_was_announced_to_an_earlier_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("alt-svc.json");
    let world = World::new(hello());
    let relay = Relay::new(world.server.local_addr(), Udp::Closed).await;
    for expected in [Version::HTTP_2, Version::HTTP_3] {
        let client = world.builder(HttpChoice::Auto).alt_svc_cache(&path).build().unwrap();
        assert_eq!(client.get(relay.url("/")).await.unwrap().version(), expected);
    }
    std::fs::write(&path, "a letter").unwrap();
    let error = world.builder(HttpChoice::Auto).alt_svc_cache(&path).build().unwrap_err();
    assert!(matches!(&error, BuildError::AltSvcCache(named, _) if *named == path));
    let said = error.to_string();
    assert!(said.contains("alt-svc.json") && said.contains("name another file"), "{said}");
    assert_eq!(std::fs::read(&path).unwrap(), b"a letter");
}

async fn path_of(client: &Client, world: &World) -> PathReport {
    let received = client.request_into(empty(world.url("/")), |bytes: &[u8]| bytes.len()).await.unwrap();
    received.response.extensions().get::<PathReport>().unwrap().clone()
}

#[tokio::test]
async fn settings_of_quic_reach_the_connection_and_its_report_tells_the_window() {
    let world = World::new(hello());
    let mut small = TransportConfig::default();
    small.max_mtu(1_200);
    let client = world.builder(HttpChoice::Http3).quic(small).build().unwrap();
    let path = path_of(&client, &world).await;
    assert_eq!(path.packet_size, 1_200);
    assert!(path.congestion_window >= 2 * 1_200, "RFC 9002 §7.2: {path:?}");
    // What `keep_alive` does not say is what the settings say.
    let mut lively = TransportConfig::default();
    lively.keep_alive_interval(Some(Duration::from_millis(20)));
    let client = world.builder(HttpChoice::Http3).quic(lively).build().unwrap();
    let before = path_of(&client, &world).await.sent_packets;
    let alive = async {
        while path_of(&client, &world).await.sent_packets < before + 6 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, alive).await.unwrap();
}

/// Deleted, a data path could be chosen that is not opened, and secrets or a capture be lost.
#[tokio::test]
async fn datagrams_take_the_path_that_was_chosen_and_can_be_decrypted() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(hello());
    for (name, path) in [("gso", DataPath::gso()), ("mmsg", DataPath::mmsg()), ("plain", DataPath::plain())] {
        let (secrets, capture) = (folder.path().join(format!("{name}.keys")), folder.path().join(name));
        let path = path.receive_buffer(1 << 16).capture(&capture);
        let builder = world.builder(HttpChoice::Http3).data_path(path).key_log(&secrets);
        let client = builder.build().unwrap();
        assert_eq!(text(&client, empty(world.url("/"))).await, "hello", "{name}");
        let stats = client.stats();
        assert!(stats.sent_datagrams > 0 && stats.received_datagrams > 0);
        if name == "plain" {
            assert_eq!(stats.send_calls, stats.sent_datagrams, "a system call for each");
        }
        let secrets = std::fs::read_to_string(secrets).unwrap();
        for label in ["CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_TRAFFIC_SECRET_0"] {
            assert!(secrets.lines().any(|line| line.starts_with(label)), "{name}: {secrets}");
        }
        drop(client);
        // The last datagrams are written when the thread ends.
        let written = async {
            while std::fs::metadata(&capture).map_or(0, |file| file.len()) < 1_200 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, written).await.unwrap_or_else(|_| panic!("{name}: nothing is captured"));
    }
}
