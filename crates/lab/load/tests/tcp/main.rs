//! The generator over HTTP/1.1 and HTTP/2 against a server whose behaviour is known: exact counts, true latencies, and every
//! kind of failure under its own name. Each run ends by itself or the test fails by its deadline.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod server;

use base::time::Duration;
use crypto::{Roots, TlsOptions, tcp_client};
use load::{Bound, Failure, HANDSHAKES_AT_A_TIME, LoadPlan, Pace, Protocol, Report, Reuse, Run, Tcp};
use server::{Serving, Speaks};
use std::sync::atomic::{AtomicBool, Ordering};

const MANY: Bound = Bound::Requests(100_000_000);
const BOTH: [Speaks; 2] = [Speaks::One, Speaks::Two];

fn plan(serving: &Serving, (speaks, roots): (Speaks, Option<Roots>), paths: &[&str]) -> LoadPlan {
    let scheme = if roots.is_some() { "https" } else { "http" };
    let head = |path: &&str| {
        let uri = format!("{scheme}://localhost:{}{path}", serving.address.port());
        http::Request::get(uri).body(()).unwrap().into_parts().0
    };
    let tls = roots.map(|roots| {
        let options = TlsOptions { alpn: Vec::new(), ..TlsOptions::default() };
        tcp_client(&roots, &options).unwrap()
    });
    let tcp = Tcp { tls, handshake_timeout: Duration::from_secs(10) };
    LoadPlan {
        server_name: "localhost".to_owned(),
        address: serving.address,
        requests: paths.iter().map(head).collect(),
        content: 0,
        connections: 4,
        handshakes: HANDSHAKES_AT_A_TIME,
        streams: if speaks == Speaks::One { 1 } else { 8 },
        bound: Bound::Requests(1_000),
        warm_up: Duration::ZERO,
        pace: Pace::Closed,
        timeout: Duration::from_secs(20),
        series: None,
        protocol: match speaks {
            Speaks::One => Protocol::Http1(tcp),
            Speaks::Two => Protocol::Http2(tcp),
        },
        reuse: Reuse::Always,
    }
}

/// In the clear.
fn clear(serving: &Serving, speaks: Speaks, paths: &[&str]) -> LoadPlan {
    plan(serving, (speaks, None), paths)
}

fn secure(serving: &Serving, speaks: Speaks, paths: &[&str]) -> LoadPlan {
    let roots = Roots::Pem(serving.certificate.clone().into_bytes());
    plan(serving, (speaks, Some(roots)), paths)
}

fn run(plan: &LoadPlan) -> Report {
    run_until(plan, 0, |_| {})
}

/// Runs a plan on two threads; `order` is given after this many milliseconds.
fn run_until(plan: &LoadPlan, after: u64, order: impl FnOnce(&AtomicBool) + Send) -> Report {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(after));
            order(&stop);
        });
        Run { plan, server: None, stop: &stop }.over_tcp(2, None).unwrap()
    })
}

#[test]
fn every_request_is_counted_once() {
    for speaks in BOTH {
        for is_secure in [false, true] {
            let serving = Serving::start(speaks, is_secure);
            let paths = ["/bytes/600", "/bytes/200000", "/bytes/0"];
            let plan =
                if is_secure { secure(&serving, speaks, &paths) } else { clear(&serving, speaks, &paths) };
            let plan =
                LoadPlan { bound: Bound::Requests(1_001), series: Some(Duration::from_millis(20)), ..plan };
            let report = run(&plan);
            assert!(report.is_clean() && report.first_fault.is_none(), "{speaks:?} {is_secure} {report}");
            assert_eq!((report.requests, report.succeeded, report.latency.count), (1_001, 1_001, 1_001));
            assert_eq!(report.statuses.iter().collect::<Vec<_>>(), [(&200, &1_001)]);
            assert_eq!((report.handshake.count, report.unfinished), (4, 0));
            assert_eq!(serving.orders.connections.load(Ordering::Relaxed), 4);
            let mean = report.content_bytes as f64 / 1_001.0;
            assert!((mean - 200_600.0 / 3.0).abs() < 3_000.0, "{mean}");
            assert_eq!(report.series.iter().map(|slice| slice.succeeded).sum::<u64>(), 1_001);
            let generator = &report.generator;
            assert!(generator.received_bytes > report.content_bytes && generator.sent_bytes > 1_001 * 20);
            assert!(
                generator.data_calls > 1_000 && generator.waits > 0 && generator.sent_datagrams.is_none()
            );
        }
    }
}

/// Deleted, a bound of handshakes at a time could leave connections out, or wait for ever.
#[test]
fn all_connections_are_made_a_few_at_a_time() {
    for speaks in BOTH {
        let serving = Serving::start(speaks, false);
        let plan = LoadPlan { connections: 60, handshakes: 3, ..clear(&serving, speaks, &["/bytes/10"]) };
        let report = run(&plan);
        assert_eq!((report.handshake.count, report.succeeded, report.failed), (60, 1_000, 0), "{report}");
    }
}

#[test]
fn content_of_requests_arrives() {
    for speaks in BOTH {
        let serving = Serving::start(speaks, false);
        for (content, count) in [(512, 200), (100_000, 100), (3_000_000, 12)] {
            let mut plan =
                LoadPlan { content, bound: Bound::Requests(count), ..clear(&serving, speaks, &["/bytes/9"]) };
            for head in &mut plan.requests {
                head.headers.insert(http::header::CONTENT_LENGTH, content.into());
            }
            let report = run(&plan);
            assert!(report.is_clean() && report.succeeded == count, "{speaks:?} {report}");
            let arrived = serving.orders.content.swap(0, Ordering::Relaxed);
            assert_eq!((arrived, report.content_bytes), (content * count, 9 * count));
        }
    }
}

/// The generator against the truth. Nothing can be answered before its delay; how much later depends on who else uses the
/// machine, so the other bound is loose here: `requests::proof` has the exact one, by a clock of its own.
#[test]
fn known_delays_are_recovered() {
    for speaks in BOTH {
        let serving = Serving::start(speaks, false);
        // Two of three answers take 50 ms, one 200.
        let report = run(&LoadPlan {
            bound: Bound::Requests(60),
            connections: 2,
            streams: 1,
            ..clear(&serving, speaks, &["/delay/50", "/delay/50", "/delay/200"])
        });
        let latency = report.latency;
        assert!(report.is_clean() && latency.min_us >= 49_900.0, "{report}");
        assert!((49_900.0..190_000.0).contains(&latency.p50_us), "{report}");
        assert!((199_900.0..600_000.0).contains(&latency.p90_us), "{report}");
        assert!(latency.mean_us >= 94_900.0, "{report}");
    }
}

/// Deleted, a stall could hide: a closed loop asks nothing meanwhile, an open one owes an answer for each moment of it.
#[test]
fn an_open_loop_shows_a_stall_that_a_closed_one_hides() {
    for speaks in BOTH {
        let serving = Serving::start(speaks, false);
        let bound = Bound::Span(Duration::from_millis(2_500));
        let closed = LoadPlan { bound, ..clear(&serving, speaks, &["/bytes/10"]) };
        let open = LoadPlan { pace: Pace::Open(200.0), ..closed.clone() };
        let stall = |plan: &LoadPlan| {
            run_until(plan, 500, |_| {
                serving.orders.stalls.store(true, Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(1_000));
                serving.orders.stalls.store(false, Ordering::Relaxed);
            })
        };
        let (closed, open) = (stall(&closed), stall(&open));
        // One answer for each place was late, among thousands.
        assert!(
            closed.latency.max_us > 900_000.0 && closed.latency.p90_us < open.latency.p90_us / 2.0,
            "{closed}{open}"
        );
        // 1,000 of 2,500 ms: the requests of that time waited 500 ms on average.
        assert!(open.latency.max_us > 900_000.0 && open.latency.p90_us > 400_000.0, "{open}");
    }
}

#[test]
fn an_open_loop_keeps_its_rate() {
    for speaks in BOTH {
        let serving = Serving::start(speaks, false);
        let bound = Bound::Span(Duration::from_millis(1_000));
        let plan = LoadPlan { bound, pace: Pace::Open(1_000.0), ..clear(&serving, speaks, &["/bytes/10"]) };
        let report = run(&plan);
        assert!(report.is_clean() && (500..=1_010).contains(&report.requests), "{report}");
        let report = run(&LoadPlan { bound: Bound::Requests(300), ..plan });
        assert!(report.is_clean() && report.requests == 300 && report.seconds > 0.25, "{report}");
    }
}

#[test]
fn each_request_may_have_a_connection_of_its_own() {
    for speaks in BOTH {
        let serving = Serving::start(speaks, true);
        let plan = LoadPlan {
            reuse: Reuse::Never,
            streams: 1,
            bound: Bound::Requests(100),
            ..secure(&serving, speaks, &["/bytes/100"])
        };
        let report = run(&plan);
        assert!(report.is_clean() && report.requests == 100, "{speaks:?} {report}");
        assert_eq!((report.handshake.count, serving.orders.connections.load(Ordering::Relaxed)), (100, 100));
        assert!(
            report.latency.p50_us > report.handshake.p50_us,
            "a handshake is part of its request: {report}"
        );
        let report = run(&LoadPlan { pace: Pace::Open(200.0), ..plan });
        assert!(report.is_clean() && report.requests == 100 && report.seconds > 0.4, "{report}");
    }
}

/// Deleted, a failure could have the other's name: in the clear it is told by the system, through TLS by rustls.
#[test]
fn every_failure_has_its_name() {
    let table = [
        (Speaks::One, "/missing", Failure::Status),
        (Speaks::Two, "/missing", Failure::Status),
        (Speaks::One, "/short", Failure::ShortBody),
        (Speaks::Two, "/short", Failure::ShortBody),
        (Speaks::One, "/cut", Failure::ShortBody),
        (Speaks::One, "/reset", Failure::Reset),
        (Speaks::Two, "/reset", Failure::Reset),
        (Speaks::One, "/eof", Failure::Closed),
        (Speaks::One, "/nonsense", Failure::Protocol),
        (Speaks::One, "/slow", Failure::Timeout),
        (Speaks::Two, "/slow", Failure::Timeout),
        (Speaks::One, "/never", Failure::Timeout),
        (Speaks::Two, "/never", Failure::Timeout),
    ];
    for ((speaks, path, failure), is_secure) in table.into_iter().flat_map(|row| [(row, false), (row, true)])
    {
        if is_secure && (speaks, path) == (Speaks::One, "/reset") {
            // The server resets connections in the clear only.
            continue;
        }
        let serving = Serving::start(speaks, is_secure);
        let paths = ["/bytes/10", path];
        let plan = if is_secure { secure(&serving, speaks, &paths) } else { clear(&serving, speaks, &paths) };
        let timeout = Duration::from_millis(if failure == Failure::Timeout { 200 } else { 20_000 });
        let report = run(&LoadPlan { timeout, bound: Bound::Requests(40), ..plan });
        assert!(
            report.requests == 40 && report.failed == report.failures.of(failure),
            "{path} {speaks:?} secure: {is_secure} {report}"
        );
        assert!(report.failed > 0 && report.succeeded > 0, "{path} {speaks:?} secure: {is_secure} {report}");
    }
}

/// Deleted, a server that ends connections after this many requests could be counted as failing.
#[test]
fn a_server_that_ends_connections_in_good_order_is_asked_on_others() {
    for speaks in BOTH {
        let serving = Serving::start(speaks, false);
        let paths = ["/bytes/10", "/bytes/20", "/bytes/30", "/bytes/40", "/last"];
        let report = run(&LoadPlan { bound: Bound::Requests(200), ..clear(&serving, speaks, &paths) });
        assert!(report.is_clean() && report.requests == 200, "{speaks:?} {report}");
        assert!(serving.orders.connections.load(Ordering::Relaxed) > 8, "{speaks:?}");
    }
}

#[test]
fn a_port_where_nobody_listens_refuses() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for speaks in BOTH {
        let serving = Serving::start(speaks, false);
        let plan = LoadPlan { address: closed, ..clear(&serving, speaks, &["/"]) };
        let report = run(&plan);
        assert_eq!((report.requests, report.not_begun), (0, 1_000), "{report}");
        assert_eq!(report.connection_failures.of(Failure::Refused), 4, "{report}");
        assert!(report.first_fault.as_ref().unwrap().contains("nothing listens"), "{report}");
        let report = run(&LoadPlan { reuse: Reuse::Never, streams: 1, ..plan });
        assert!(report.failed > 0 && report.failed == report.failures.of(Failure::Refused), "{report}");
        assert_eq!(report.failed + report.not_begun, 1_000, "{report}");
    }
}

#[test]
fn a_certificate_that_is_not_trusted_is_told() {
    for speaks in BOTH {
        let serving = Serving::start(speaks, true);
        let good = secure(&serving, speaks, &["/"]);
        let report = run(&LoadPlan { server_name: "elsewhere.example".to_owned(), ..good.clone() });
        assert_eq!(report.connection_failures.of(Failure::Certificate), 4, "{report}");
        assert_eq!((report.requests, report.not_begun, report.handshake.count), (0, 1_000, 0));
        let report = run(&LoadPlan {
            server_name: "elsewhere.example".to_owned(),
            ..plan(&serving, (speaks, Some(Roots::Insecure)), &["/"])
        });
        assert!(report.is_clean(), "{report}");
    }
    // A server of the other version only.
    let serving = Serving::start(Speaks::Two, true);
    let report = run(&secure(&serving, Speaks::One, &["/"]));
    assert!(report.requests == 0 && report.connection_failures.total() == 4, "{report}");
    assert!(report.first_fault.is_some(), "{report}");
}

#[test]
fn a_server_that_dies_in_the_middle_ends_the_run() {
    for speaks in BOTH {
        let serving = Serving::start(speaks, true);
        let plan = LoadPlan { bound: MANY, ..secure(&serving, speaks, &["/bytes/100"]) };
        let report = run_until(&plan, 500, |_| serving.orders.dies.store(true, Ordering::Relaxed));
        assert!(report.succeeded > 0 && !report.is_clean(), "{report}");
        // All that were outstanding, and nothing else.
        let named = report.failures.of(Failure::Closed) + report.failures.of(Failure::Reset);
        let at_most = plan.connections * plan.streams;
        assert!(report.failed == named && named <= at_most as u64, "{speaks:?} {report}");
        assert!(report.connection_failures.of(Failure::Refused) > 0, "it was tried again: {report}");
        assert_eq!(report.requests + report.not_begun, 100_000_000, "{report}");
    }
}

#[test]
fn an_interruption_keeps_what_was_measured() {
    for speaks in BOTH {
        for reuse in [Reuse::Always, Reuse::Never] {
            let serving = Serving::start(speaks, false);
            let plan =
                LoadPlan { bound: MANY, reuse, streams: 1, ..clear(&serving, speaks, &["/bytes/100"]) };
            let report = run_until(&plan, 400, |stop| stop.store(true, Ordering::Relaxed));
            assert!(report.interrupted && report.is_clean() && report.succeeded > 0, "{report}");
            assert!(report.seconds < 5.0 && report.requests_per_second > 0.0, "{report}");
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let serving = Serving::start(Speaks::One, false);
    let several = LoadPlan { streams: 2, ..clear(&serving, Speaks::One, &["/"]) };
    assert!(several.check(1).unwrap_err().to_string().contains("-c"));
    let stop = AtomicBool::new(false);
    assert!(Run { plan: &several, server: None, stop: &stop }.over_tcp(1, None).is_err());
}
