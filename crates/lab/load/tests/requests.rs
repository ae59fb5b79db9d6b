//! The generator against our own server, both in this process, over UDP on the loopback interface: exact counts, and every
//! kind of failure under its own name. Nothing here may hang: each run ends by itself or the test fails by its deadline.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod shared;

use base::time::Duration;
use crypto::{ClientTls, Identity, Roots, ServerTls, TicketKeys, TicketOptions, TlsOptions};
use datapath::Port as _;
use load::{
    Bound, Failure, HANDSHAKES_AT_A_TIME, Handshakes, LoadPlan, Member, Pace, Protocol, Quic, Report, Reuse,
    Run,
};
use server::EarlyData;
use server::access_log::{AccessLog, Target};
use server::handler::{FileOptions, Files};
use server::http3::Server;
use shared::{port, seed};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use transport::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TransportConfig};
use worker::{Config, Worker};

/// A server on a thread of its own.
struct Serving {
    address: SocketAddr,
    /// Its certificate, PEM.
    certificate: String,
    end: Arc<End>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct End {
    /// Close, then end.
    leaves: AtomicBool,
    /// Go without a word.
    dies: AtomicBool,
    /// Do nothing, but keep the socket.
    stalls: AtomicBool,
}

impl Serving {
    fn start() -> Serving {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let identity =
            Identity::from_der(vec![made.cert.der().to_vec()], made.signing_key.serialize_der()).unwrap();
        let keys = Arc::new(TicketKeys::in_memory(TicketKeys::DEFAULT_LIFETIME_S));
        let tickets = TicketOptions { early_data: Some(Arc::default()), ..TicketOptions::new(keys) };
        let tls = ServerTls::new(&identity, &TlsOptions::default()).unwrap().with_tickets(tickets);
        let transport = Arc::new(TransportConfig::default().build().unwrap());
        let port = port();
        let address = port.local_address();
        let end = Arc::new(End::default());
        let orders = Arc::clone(&end);
        let thread = std::thread::spawn(move || {
            let log = AccessLog::start(Target::Off).unwrap();
            let app = Server::new(Files::new(FileOptions::default()), log.recorder());
            let app = app.with_early_data(EarlyData::SafeMethods);
            let endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
            let server = Some(ServerConfig { tls, transport });
            let mut worker = Worker::new(port, app, endpoint, server, Config::default());
            let is_set = |order: &AtomicBool| order.load(Ordering::Relaxed);
            while !is_set(&orders.dies) {
                if is_set(&orders.stalls) {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    continue;
                }
                if is_set(&orders.leaves) {
                    worker.app_mut().stop();
                    worker.refuse_incoming();
                    worker.activate_all();
                }
                let until = worker.now() + Duration::from_millis(5);
                worker.run_turn(Some(until)).unwrap();
                if is_set(&orders.leaves) && worker.open_connections() == 0 {
                    return;
                }
            }
        });
        Serving { address, certificate: made.cert.pem(), end, thread: Some(thread) }
    }

    fn plan(&self, roots: &Roots, paths: &[&str]) -> LoadPlan {
        let head = |path: &&str| {
            http::Request::get(format!("https://localhost:{}{path}", self.address.port()))
                .body(())
                .unwrap()
                .into_parts()
                .0
        };
        let transport = TransportConfig { handshake_timeout: Duration::from_secs(5), ..Default::default() };
        let config = ClientConfig {
            tls: ClientTls::new(roots, &TlsOptions::default()).unwrap(),
            transport: Arc::new(transport.build().unwrap()),
            token: Vec::new(),
        };
        LoadPlan {
            server_name: "localhost".to_owned(),
            address: self.address,
            requests: paths.iter().map(head).collect(),
            content: 0,
            connections: 4,
            handshakes: HANDSHAKES_AT_A_TIME,
            streams: 8,
            bound: Bound::Requests(2_000),
            warm_up: Duration::ZERO,
            pace: Pace::Closed,
            timeout: Duration::from_secs(20),
            series: None,
            protocol: Protocol::Http3(Quic { config, spin: Duration::ZERO, handshakes: Handshakes::Full }),
            reuse: Reuse::Always,
        }
    }

    fn trusting(&self, paths: &[&str]) -> LoadPlan {
        self.plan(&Roots::Pem(self.certificate.clone().into_bytes()), paths)
    }

    /// Runs a plan on two threads; `after` has passed when `order` is given.
    fn run_until(
        &self,
        plan: &LoadPlan,
        after: u64,
        order: impl FnOnce(&Serving, &AtomicBool) + Send,
    ) -> Report {
        let members = [(); 2].map(|()| Member { port: port().into(), seed: seed() }).into();
        let stop = AtomicBool::new(false);
        let run = Run { plan, server: None, stop: &stop };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(after));
                order(self, &stop);
            });
            run.over_quic(members, None).unwrap()
        })
    }

    fn run(&self, plan: &LoadPlan) -> Report {
        self.run_until(plan, 0, |_, _| {})
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.end.dies.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

const MANY: Bound = Bound::Requests(100_000_000);

#[test]
fn every_request_is_counted_once() {
    let serving = Serving::start();
    let plan = LoadPlan {
        bound: Bound::Requests(2_001),
        series: Some(Duration::from_millis(10)),
        ..serving.trusting(&["/bytes/600", "/bytes/20000", "/bytes/0"])
    };
    let report = serving.run(&plan);
    assert!(report.is_clean(), "{report}");
    assert_eq!((report.requests, report.succeeded, report.latency.count), (2_001, 2_001, 2_001));
    assert_eq!(report.statuses.into_iter().collect::<Vec<_>>(), [(200, 2_001)]);
    assert_eq!((report.handshake.count, report.unfinished), (4, 0));
    // Each connection asks in turn, beginning at another one; so each is asked for a third, to within a few.
    let mean = report.content_bytes as f64 / 2_001.0;
    assert!((mean - 20_600.0 / 3.0).abs() < 100.0, "{mean}");
    let in_series: u64 = report.series.iter().map(|slice| slice.succeeded).sum();
    assert_eq!(in_series, 2_001);
    assert!(report.latency.p50_us > 0.0 && report.latency.max_us >= report.latency.p99_us);
    assert!(report.generator.cpu_s > 0.0 && report.generator.sent_datagrams > Some(0));
}

/// Deleted, a bound of handshakes at a time could leave connections out, or wait for ever.
#[test]
fn all_connections_are_made_a_few_at_a_time() {
    let serving = Serving::start();
    let report =
        serving.run(&LoadPlan { connections: 101, handshakes: 3, ..serving.trusting(&["/bytes/10"]) });
    assert_eq!((report.handshake.count, report.succeeded, report.failed), (101, 2_000, 0), "{report}");
}

#[test]
fn a_warm_up_is_not_counted_and_a_number_is_still_exact() {
    let serving = Serving::start();
    let plan = LoadPlan { warm_up: Duration::from_millis(300), ..serving.trusting(&["/bytes/10"]) };
    let report = serving.run(&plan);
    assert!(report.is_clean() && report.requests == 2_000, "{report}");
    let span = Bound::Span(Duration::from_millis(500));
    let report = serving.run(&LoadPlan { bound: span, ..plan });
    assert!(report.is_clean() && (report.seconds - 0.5).abs() < 0.1, "{report}");
    assert!(report.latency.count == report.requests && report.unfinished <= 32, "{report}");
}

#[test]
fn content_of_requests_arrives() {
    let serving = Serving::start();
    for (content, count) in [(512, 500), (3_000_000, 20)] {
        let mut plan =
            LoadPlan { content, bound: Bound::Requests(count), ..serving.trusting(&["/bytes/8KiB"]) };
        for head in &mut plan.requests {
            head.headers.insert(http::header::CONTENT_LENGTH, content.into());
        }
        let report = serving.run(&plan);
        assert!(report.is_clean() && report.succeeded == count, "{report}");
        assert_eq!(report.content_bytes, 8_192 * count);
    }
}

#[test]
fn bad_statuses_are_failures() {
    let serving = Serving::start();
    let report = serving.run(&serving.trusting(&["/bytes/10", "/no/such/file"]));
    let failed = report.failures.of(Failure::Status);
    assert!(!report.is_clean() && report.failed == failed, "{report}");
    assert_eq!(
        (report.requests, report.statuses[&404], report.statuses[&200]),
        (2_000, failed, report.succeeded)
    );
    assert!((failed as i64 - 1_000).abs() < 10, "{report}");
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let serving = Serving::start();
    let bound = Bound::Span(Duration::from_millis(1_000));
    let plan = LoadPlan { bound, pace: Pace::Open(1_000.0), ..serving.trusting(&["/bytes/10"]) };
    let report = serving.run(&plan);
    assert!(report.is_clean() && (900..=1_010).contains(&report.requests), "{report}");
    let plan = LoadPlan { bound: Bound::Requests(300), ..plan };
    let report = serving.run(&plan);
    assert!(report.is_clean() && report.requests == 300 && report.seconds > 0.25, "{report}");
}

/// Deleted, a stall could hide: a closed loop asks nothing meanwhile, an open one owes an answer for each moment of it.
#[test]
fn an_open_loop_shows_a_stall_that_a_closed_one_hides() {
    let serving = Serving::start();
    let bound = Bound::Span(Duration::from_millis(2_000));
    let closed = LoadPlan { bound, ..serving.trusting(&["/bytes/10"]) };
    let open = LoadPlan { pace: Pace::Open(500.0), ..closed.clone() };
    let stall = |plan: &LoadPlan| {
        serving.run_until(plan, 500, |serving, _| {
            serving.end.stalls.store(true, Ordering::Relaxed);
            std::thread::sleep(std::time::Duration::from_millis(600));
            serving.end.stalls.store(false, Ordering::Relaxed);
        })
    };
    let (closed, open) = (stall(&closed), stall(&open));
    assert!(closed.latency.max_us > 400_000.0, "{closed}");
    // 600 of 2,000 ms: the requests of that time waited 300 ms on average. The closed loop's late answers are a few of thousands,
    // however busy the machine is.
    assert!(
        open.latency.p90_us > 200_000.0 && closed.latency.p90_us < open.latency.p90_us / 2.0,
        "{closed}{open}"
    );
}

#[test]
fn a_port_where_nobody_listens_refuses() {
    let serving = Serving::start();
    let closed = port().local_address();
    let report = serving.run(&LoadPlan { address: closed, ..serving.trusting(&["/"]) });
    assert_eq!((report.requests, report.not_begun), (0, 2_000), "{report}");
    assert_eq!(report.connection_failures.of(Failure::Refused), 4, "{report}");
    assert!(report.first_fault.as_ref().unwrap().contains("nothing listens"), "{report}");
    assert!(!report.is_clean());
}

#[test]
fn a_certificate_that_is_not_trusted_is_told() {
    let serving = Serving::start();
    let plan = serving.trusting(&["/"]);
    let report = serving.run(&LoadPlan { server_name: "elsewhere.example".to_owned(), ..plan });
    assert_eq!(report.connection_failures.of(Failure::Certificate), 4, "{report}");
    assert_eq!((report.requests, report.not_begun, report.handshake.count), (0, 2_000, 0));
    assert!(report.first_fault.as_ref().unwrap().contains("not trusted"), "{report}");
}

#[test]
fn a_server_that_dies_in_the_middle_ends_the_run() {
    let serving = Serving::start();
    let plan = LoadPlan { bound: MANY, ..serving.trusting(&["/bytes/100"]) };
    let report = serving.run_until(&plan, 500, |serving, _| serving.end.dies.store(true, Ordering::Relaxed));
    let refused = report.failures.of(Failure::Refused);
    assert!(report.succeeded > 0 && !report.is_clean(), "{report}");
    // All that were outstanding, and nothing else.
    assert!(refused == report.failed && (1..=32).contains(&refused), "{report}");
    assert!(report.connection_failures.of(Failure::Refused) > 0, "it was tried again: {report}");
    assert_eq!(report.requests + report.not_begun, 100_000_000, "{report}");
}

#[test]
fn a_server_that_leaves_in_good_order_is_told_from_one_that_dies() {
    let serving = Serving::start();
    let plan = LoadPlan { bound: MANY, ..serving.trusting(&["/bytes/100"]) };
    let report =
        serving.run_until(&plan, 500, |serving, _| serving.end.leaves.store(true, Ordering::Relaxed));
    assert!(report.succeeded > 0 && !report.is_clean() && report.handshake.count == 4, "{report}");
    let named = report.failures.of(Failure::Reset) + report.failures.of(Failure::Closed);
    assert!(report.failed == named && named <= 32, "{report}");
    assert_eq!(report.requests + report.not_begun, 100_000_000, "{report}");
}

#[test]
fn a_server_that_falls_silent_times_out() {
    let serving = Serving::start();
    let timeout = Duration::from_millis(300);
    let plan = LoadPlan { bound: MANY, timeout, ..serving.trusting(&["/bytes/100"]) };
    let Protocol::Http3(mut quic) = plan.protocol.clone() else { unreachable!("this is the test of HTTP/3") };
    quic.config.transport = Arc::new(TransportConfig {
        handshake_timeout: Duration::from_millis(500),
        ..TransportConfig::default()
    });
    let plan = LoadPlan { protocol: Protocol::Http3(quic), ..plan };
    let report =
        serving.run_until(&plan, 300, |serving, _| serving.end.stalls.store(true, Ordering::Relaxed));
    assert!(report.succeeded > 0, "{report}");
    assert!(report.failed == report.failures.of(Failure::Timeout) && report.failed >= 32, "{report}");
    assert!(report.latency.max_us >= 300_000.0, "a request that timed out has waited: {report}");
    assert!(report.connection_failures.of(Failure::Timeout) > 0, "{report}");
}

#[test]
fn an_interruption_keeps_what_was_measured() {
    let serving = Serving::start();
    let plan = LoadPlan { bound: MANY, ..serving.trusting(&["/bytes/100"]) };
    let report = serving.run_until(&plan, 400, |_, stop| stop.store(true, Ordering::Relaxed));
    assert!(report.interrupted && report.is_clean() && report.succeeded > 0, "{report}");
    assert!(report.seconds < 5.0 && report.requests_per_second > 0.0, "{report}");
}

#[test]
fn each_request_may_have_a_connection_of_its_own() {
    let serving = Serving::start();
    let plan = LoadPlan {
        reuse: Reuse::Never,
        connections: 8,
        streams: 1,
        bound: Bound::Requests(100),
        ..serving.trusting(&["/bytes/100", "/bytes/200"])
    };
    let report = serving.run(&plan);
    assert!(report.is_clean() && report.requests == 100 && report.first_fault.is_none(), "{report}");
    assert_eq!((report.handshake.count, report.content_bytes), (100, 15_000), "{report}");
    assert!(report.latency.p50_us > report.handshake.p50_us, "a handshake is part of its request: {report}");
    let open = LoadPlan { pace: Pace::Open(200.0), ..plan.clone() };
    let report = serving.run(&open);
    assert!(report.is_clean() && report.requests == 100 && report.seconds > 0.4, "{report}");
    let closed = port().local_address();
    let report = serving.run(&LoadPlan { address: closed, ..plan });
    assert_eq!(report.failures.of(Failure::Refused), report.failed, "{report}");
    assert!(report.failed > 0 && report.failed + report.not_begun == 100, "{report}");
}

/// Deleted, `--resume` and `--early-data` could measure full handshakes.
#[test]
fn connections_of_their_own_have_the_kind_of_handshake_that_is_asked_for() {
    let serving = Serving::start();
    for asked in [Handshakes::Full, Handshakes::Resumed, Handshakes::Early] {
        let mut plan = serving.trusting(&["/bytes/100"]);
        (plan.reuse, plan.streams, plan.bound) = (Reuse::Never, 1, Bound::Requests(60));
        if let Protocol::Http3(quic) = &mut plan.protocol {
            quic.handshakes = asked;
        }
        let report = serving.run(&plan);
        assert_eq!((report.succeeded, report.handshake.count, report.first_byte.count), (60, 60, 60));
        assert_eq!(report.key_exchange, Some("X25519MLKEM768"));
        let kinds = report.handshake_kinds;
        // The first on each of four places have no ticket.
        match asked {
            Handshakes::Full => assert_eq!(kinds.full, 60),
            Handshakes::Resumed => assert!(kinds.resumed >= 56 && kinds.early == 0, "{kinds:?}"),
            Handshakes::Early => assert!(kinds.early >= 56 && kinds.resumed == 0, "{kinds:?}"),
        }
        plan.content = 5;
        let is_refused = plan.check(2).is_err();
        assert_eq!(is_refused, asked == Handshakes::Early, "content must not go early");
    }
}
