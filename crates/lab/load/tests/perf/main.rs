//! Client and server over UDP on the loopback interface: exact counts, and every end that is not a good one under its name.
//! Each run ends by itself, whatever the other side does.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod draft;
#[path = "../shared/mod.rs"]
mod shared;

use base::time::Duration;
use crypto::{ClientTls, Identity, Roots, ServerTls, TlsOptions};
use datapath::Port as _;
use load::Bound;
use load::perf::server::Server;
use load::perf::{Amount, PerfPlan, Report, Run, Task, ThreadSetup, protocol};
use shared::{port, seed};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use transport::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TransportConfig};
use worker::{Config, Worker};

fn tls(alpn: &[u8]) -> TlsOptions {
    TlsOptions { alpn: vec![alpn.to_vec()], ..TlsOptions::default() }
}

fn transport(streams: u64) -> Arc<TransportConfig> {
    let mut config =
        TransportConfig { handshake_timeout: Duration::from_secs(20), ..TransportConfig::default() };
    config.streams.max_bidi_streams = streams;
    Arc::new(config.build().unwrap())
}

/// A server on a thread of its own, which ends with it.
struct Serving {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    /// Datagrams that it has heard.
    heard: Arc<AtomicU64>,
    /// The most handshakes that it had under way at a time.
    half_open: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    fn start(alpn: &[u8]) -> Serving {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let identity =
            Identity::from_der(vec![made.cert.der().to_vec()], made.signing_key.serialize_der()).unwrap();
        let server = Some(ServerConfig {
            tls: ServerTls::new(&identity, &tls(alpn)).unwrap(),
            // Fewer than some plans want at a time.
            transport: transport(16),
        });
        let port = port();
        let address = port.local_address();
        let stop = Arc::new(AtomicBool::new(false));
        let heard = Arc::new(AtomicU64::new(0));
        let half_open = Arc::new(AtomicU64::new(0));
        let (order, count, under_way) = (Arc::clone(&stop), Arc::clone(&heard), Arc::clone(&half_open));
        let thread = std::thread::spawn(move || {
            let endpoint = Endpoint::new(EndpointConfig::default(), [0; 32]);
            let mut worker = Worker::new(port, Server::default(), endpoint, server, Config::default());
            while !order.load(Ordering::Relaxed) {
                let until = worker.now() + Duration::from_millis(5);
                worker.run_turn(Some(until)).unwrap();
                count.store(worker.counters().rx.datagrams, Ordering::Relaxed);
                under_way.fetch_max(worker.endpoint().half_open() as u64, Ordering::Relaxed);
            }
            worker.app_mut().stop();
            worker.activate_all();
            let now = worker.clock();
            worker.turn(now).unwrap();
        });
        Serving { address, stop, heard, half_open, thread: Some(thread) }
    }

    fn plan(&self, task: Task, bound: Bound) -> PerfPlan {
        let tls = ClientTls::new(&Roots::Insecure, &tls(protocol::ALPN)).unwrap();
        PerfPlan {
            server_name: "localhost".to_owned(),
            address: self.address,
            task,
            connections: 3,
            handshakes: load::HANDSHAKES_AT_A_TIME,
            outstanding: 20,
            bound,
            warm_up: Duration::ZERO,
            quic: ClientConfig { tls, transport: transport(100), token: Vec::new() },
            spin: Duration::ZERO,
        }
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Runs a plan on two threads.
fn run(plan: &PerfPlan) -> Report {
    let thread_setup = || ThreadSetup { port: port().into(), seed: seed(), member: None };
    let crew = Run {
        thread_setups: vec![thread_setup(), thread_setup()],
        server: Some(std::process::id()),
        prepare: &|_| Ok(()),
    };
    crew.run(plan, &AtomicBool::new(false)).unwrap()
}

fn exchanges(request: u64, response: u64) -> Task {
    Task::Exchanges { request: Amount::Bytes(request), response: Amount::Bytes(response) }
}

/// Deleted, exchanges could be lost, counted twice, or be of other sizes than was asked for.
#[test]
fn every_exchange_is_counted_once_and_has_its_size() {
    let serving = Serving::start(protocol::ALPN);
    // Shorter than a packet, in several packets, nothing back, and longer than a turn's share and any window at first.
    for (request, response, count) in
        [(8, 1, 500), (512, 8_192, 2_000), (5_000, 0, 200), (3_000_000, 5_000_000, 6)]
    {
        let report = run(&serving.plan(exchanges(request, response), Bound::Requests(count)));
        assert!(report.is_clean(), "{report:?}");
        assert_eq!((report.completed, report.latency.count), (count, count));
        assert_eq!(report.received_bytes, count * response);
        assert!(report.sent_bytes <= count * request, "{report:?}");
        assert_eq!(report.handshake.count, 3);
        assert!(report.server.is_some_and(|server| server.cpu_s > 0.0) && report.client.sent_datagrams > 0);
    }
}

#[test]
fn what_has_no_end_ends_with_the_time() {
    let serving = Serving::start(protocol::ALPN);
    let span = Bound::Span(Duration::from_millis(500));
    let down = Task::Exchanges { request: Amount::Bytes(8), response: Amount::UntilOver };
    let up = Task::Exchanges { request: Amount::UntilOver, response: Amount::Bytes(0) };
    let (down, up) = (run(&serving.plan(down, span)), run(&serving.plan(up, span)));
    assert!(down.is_clean() && down.received_bytes > 10_000 && down.completed == 0, "{down:?}");
    assert!(up.is_clean() && up.sent_bytes > 10_000 && up.received_bytes == 0, "{up:?}");
    assert!(down.unfinished > 0 && (0.4..20.0).contains(&down.seconds), "{down:?}");
}

#[test]
fn handshakes_are_counted_and_timed() {
    let serving = Serving::start(protocol::ALPN);
    let report = run(&serving.plan(Task::Handshakes, Bound::Requests(40)));
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.completed, report.handshake.count, report.latency.count), (40, 40, 0));
    // Those of the warm-up are not among them.
    let plan = PerfPlan {
        warm_up: Duration::from_millis(20),
        ..serving.plan(Task::Handshakes, Bound::Requests(200))
    };
    let report = run(&plan);
    assert!(report.is_clean() && report.completed == 200, "{report:?}");
    // Deleted, clients could leave before the server has heard the end of their handshake: it would keep each as one that is
    // under way, and soon demand Retries.
    let most = serving.half_open.load(Ordering::Relaxed);
    assert!(most <= 12, "{most} handshakes were under way");
}

/// Deleted, thousands of connections would be begun at once, and a server that cannot answer them in time has them time out.
#[test]
fn few_connections_are_made_at_a_time() {
    let serving = Serving::start(protocol::ALPN);
    let good = serving.plan(exchanges(512, 8_192), Bound::Requests(1_000));
    let report = run(&PerfPlan { connections: 300, handshakes: 4, ..good });
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.handshake.count, report.unconnected, report.completed), (300, 0, 1_000));
    // The server has to hear the end of those that the client has done with.
    let most = serving.half_open.load(Ordering::Relaxed);
    assert!((1..=40).contains(&most), "{most} handshakes were under way");
}

#[test]
fn a_server_of_another_protocol_is_named_as_such() {
    let serving = Serving::start(b"h3");
    for task in [exchanges(512, 8_192), Task::Handshakes] {
        let report = run(&serving.plan(task, Bound::Span(Duration::from_secs(20))));
        assert!(!report.is_clean() && report.unconnected > 0 && report.seconds < 10.0, "{report:?}");
        assert!(report.first_fault.unwrap().contains("does not speak the perf protocol"));
    }
}

#[test]
fn a_server_that_leaves_ends_the_run() {
    let mut serving = Serving::start(protocol::ALPN);
    let plan = serving.plan(exchanges(512, 8_192), Bound::Span(Duration::from_secs(60)));
    let report = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&plan));
        // Many requests have come by then; a machine that is too busy for them lets the test fail below.
        for _ in 0..4_000 {
            if serving.heard.load(Ordering::Relaxed) > 500 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        serving.end();
        running.join().unwrap()
    });
    // What was under way has failed, if anything was at that moment.
    assert!(report.completed > 0 && report.seconds < 30.0, "{report:?}");
    assert!(report.first_fault.unwrap().contains("closed the connection"));
}

#[test]
fn plans_that_cannot_be_carried_out_are_refused() {
    let serving = Serving::start(protocol::ALPN);
    let good = serving.plan(exchanges(512, 8_192), Bound::Requests(1));
    assert!(good.check(3).is_ok());
    let endless = Task::Exchanges { request: Amount::UntilOver, response: Amount::Bytes(0) };
    let bad = [
        PerfPlan { outstanding: 0, ..good.clone() },
        PerfPlan { bound: Bound::Requests(0), ..good.clone() },
        PerfPlan { task: exchanges(7, 1), ..good.clone() },
        PerfPlan { task: exchanges(8, u64::MAX), ..good.clone() },
        PerfPlan { task: endless, ..good.clone() },
    ];
    assert!(bad.iter().all(|plan| plan.check(1).is_err()) && good.check(4).is_err());
}
