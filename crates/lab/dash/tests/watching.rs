//! Players in front of our own server, over UDP on the loopback interface, on a fast clock. Nothing here depends on how busy the
//! machine is: how much is played follows from the clock, how well does not matter.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use base::time::Duration;
use client::target::Target;
use crypto::{ClientTls, Identity, Roots, ServerTls, TlsOptions};
use dash::player::Settings;
use dash::rule::Rule;
use dash::{Report, WatchPlan, watch};
use datapath::Port as _;
use server::access_log::{AccessLog, Target as Log};
use server::handler::{FileOptions, Files};
use server::http3::Server;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use transport::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TransportConfig};
use udp::{BindOptions, UdpPort, Variant};
use worker::{Config, Worker};

fn port() -> UdpPort {
    UdpPort::bind(&BindOptions::new("127.0.0.1:0".parse().unwrap(), Variant::Gso)).unwrap()
}

fn transport(handshake_s: u64) -> Arc<TransportConfig> {
    let handshake_timeout = Duration::from_secs(handshake_s);
    let config = TransportConfig { handshake_timeout, ..TransportConfig::default() };
    Arc::new(config.build().unwrap())
}

/// Four players who look at a manifest.
fn plan(manifest: &str, address: SocketAddr, transport: Arc<TransportConfig>) -> WatchPlan {
    WatchPlan {
        manifest: Target::parse(manifest).unwrap(),
        address,
        players: 4,
        settings: Settings::default(),
        span: Duration::from_secs(30),
        ramp: Duration::from_secs(2),
        speed: 1.0,
        quic: ClientConfig {
            tls: ClientTls::new(&Roots::Insecure, &TlsOptions::default()).unwrap(),
            transport,
            token: Vec::new(),
        },
        spin: Duration::ZERO,
        server: Some(std::process::id()),
    }
}

/// Four players in front of a server of our own; `span` and `speed` are those of the plan.
fn play(path: &str, rule: Rule, (span, speed): (Duration, f64)) -> Report {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let identity =
        Identity::from_der(vec![made.cert.der().to_vec()], made.signing_key.serialize_der()).unwrap();
    let server_port = port();
    let address = server_port.local_address();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let tls = ServerTls::new(&identity, &TlsOptions::default()).unwrap();
            let log = AccessLog::start(Log::Off).unwrap();
            let app = Server::new(Files::new(FileOptions::default()), log.recorder());
            let endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
            let server = Some(ServerConfig { tls, transport: transport(30) });
            let mut worker = Worker::new(server_port, app, endpoint, server, Config::default());
            while !stop.load(Ordering::Relaxed) {
                let until = worker.now() + Duration::from_millis(5);
                worker.run_turn(Some(until)).unwrap();
            }
        });
        let settings = Settings { rule, ..Settings::default() };
        let manifest = format!("https://localhost:{}{path}", address.port());
        let plan = WatchPlan { settings, span, speed, ..plan(&manifest, address, transport(30)) };
        let report = watch(port().into(), &plan, [2; 32], &AtomicBool::new(false));
        stop.store(true, Ordering::Relaxed);
        report.unwrap()
    })
}

#[test]
fn players_play_and_are_accounted_for() {
    for rule in [Rule::Throughput, Rule::Buffer] {
        let report = play("/dash/2s/manifest.mpd", rule, (Duration::from_secs(60), 20.0));
        assert!(report.is_clean(), "{report:?}");
        assert_eq!((report.started, report.each.len()), (4, 4));
        for player in &report.each {
            let all = player.played_s + player.stalled_s + player.startup_s.unwrap();
            // They came within two seconds of sixty. A busy machine may let them in, or ask them at the end, more than a
            // second late, which is over twenty of theirs.
            assert!((30.0..200.0).contains(&all), "{player:?}");
            assert!(player.qualities_s.iter().sum::<f64>() >= player.played_s, "{player:?}");
            assert!(player.mean_bits_per_second >= 400_000.0 && player.bytes > 100_000, "{player:?}");
        }
        assert!(report.server_cpu_s_per_gbit.is_some_and(|each| each > 0.0), "{report:?}");
    }
}

#[test]
fn what_is_no_manifest_is_said() {
    for (path, words) in [("/nothing.mpd", "status 404"), ("/bytes/1000", "no DASH manifest")] {
        let report = play(path, Rule::Throughput, (Duration::from_secs(30), 1.0));
        assert!(!report.is_clean() && report.started == 0, "{report:?}");
        assert!(
            report.each.iter().all(|player| player.fault.as_ref().unwrap().contains(words)),
            "{report:?}"
        );
    }
}

#[test]
fn a_server_that_does_not_answer_is_said_in_words() {
    // Bound, and never read.
    let silent = port();
    let manifest = "https://localhost/manifest.mpd";
    let plan = WatchPlan { ramp: Duration::ZERO, ..plan(manifest, silent.local_address(), transport(1)) };
    let report = watch(port().into(), &plan, [3; 32], &AtomicBool::new(false)).unwrap();
    let faults: Vec<&str> = report.each.iter().filter_map(|player| player.fault.as_deref()).collect();
    assert!(faults.len() == 4 && faults.iter().all(|fault| fault.contains("1 s")), "{faults:?}");
    let text = report.to_string();
    assert!(text.contains("0 of 4 saw a picture\n") && !text.contains("-0.00"), "{text}");
}
