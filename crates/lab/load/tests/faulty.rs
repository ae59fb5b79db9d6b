//! The generator over HTTP/3 against a server that answers as it should not: each failure under its own name, and no run hangs.
//!
//! [`server`] cannot be that wrong, so this one is made here, of [`http3`] alone. HTTP/1.1 and 2 have theirs in tests/tcp.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use base::time::{Duration, Instant};
use bytes::Bytes;
use crypto::{ClientTls, Identity, Roots, ServerTls, TlsOptions};
use datapath::Port as _;
use http3::{Abort, BodyLength, Code, MessageSink, RequestHead, Session};
use load::{
    Bound, Failure, HANDSHAKES_AT_A_TIME, Handshakes, LoadPlan, Member, Pace, Protocol, Quic, Report, Reuse,
    Run,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use transport::{
    ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, StreamId, TransportConfig,
};
use udp::{BindOptions, UdpPort, Variant};
use wire::Side;
use worker::{App, Config, Next, Worker};

fn port() -> UdpPort {
    UdpPort::bind(&BindOptions::new("127.0.0.1:0".parse().unwrap(), Variant::Gso)).unwrap()
}

/// Paths that were asked for and not answered.
#[derive(Default)]
struct Asked(Vec<(StreamId, Vec<u8>)>);

impl MessageSink for Asked {
    fn on_request(&mut self, id: StreamId, head: &RequestHead<'_>) {
        let path = head.lines().find(|line| line.name == b":path").map(|line| line.value.to_vec());
        self.0.push((id, path.unwrap()));
    }

    fn on_body(&mut self, _: StreamId, bytes: &[u8]) -> usize {
        bytes.len()
    }

    fn on_end(&mut self, _: StreamId) {}

    fn on_abort(&mut self, _: StreamId, _: Abort) {}
}

/// Answers as the path says.
struct Faulty;

impl App for Faulty {
    type State = Session<Asked>;

    fn on_accept(&mut self, now: Instant, _: &mut Connection) -> Session<Asked> {
        let config = Arc::new(http3::Config::server());
        let connection = http3::Connection::new(Side::Server, config, now);
        Session { connection, messages: Asked::default() }
    }

    fn on_turn(&mut self, now: Instant, connection: &mut Connection, session: &mut Session<Asked>) -> Next {
        session.on_turn(connection, now);
        for (id, path) in core::mem::take(&mut session.messages.0) {
            let http = &mut session.connection;
            let content = match path.as_slice() {
                b"/never" => continue,
                b"/reset" => {
                    http.cancel(connection, id, Code::INTERNAL_ERROR);
                    continue;
                }
                b"/gone" => {
                    http.close(connection, now);
                    break;
                }
                b"/short" | b"/slow" => b"01234".as_slice(),
                _ => b"0123456789".as_slice(),
            };
            let fields = [(b"content-length".as_slice(), b"10".as_slice())];
            http.respond_with(connection, id, 200, fields, BodyLength::Unknown).unwrap();
            http.write_body(connection, id, Bytes::from_static(content)).unwrap();
            if path != b"/slow" {
                http.finish(connection, id).unwrap();
            }
        }
        session.connection.next_timeout().map_or(Next::Wait, Next::At)
    }

    fn on_gone(&mut self, _: Instant, _: &Connection, _: Session<Asked>) {}
}

/// The server, on a thread of its own.
struct Serving {
    address: SocketAddr,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    fn start() -> Serving {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let identity =
            Identity::from_der(vec![made.cert.der().to_vec()], made.signing_key.serialize_der()).unwrap();
        let tls = ServerTls::new(&identity, &TlsOptions::default()).unwrap();
        let transport = Arc::new(TransportConfig::default().build().unwrap());
        let port = port();
        let address = port.local_address();
        let end = Arc::new(AtomicBool::new(false));
        let order = Arc::clone(&end);
        let thread = std::thread::spawn(move || {
            let endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
            let server = Some(ServerConfig { tls, transport });
            let mut worker = Worker::new(port, Faulty, endpoint, server, Config::default());
            while !order.load(Ordering::Relaxed) {
                let until = worker.now() + Duration::from_millis(5);
                worker.run_turn(Some(until)).unwrap();
            }
        });
        Serving { address, end, thread: Some(thread) }
    }

    fn run(&self, path: &str, timeout: Duration) -> Report {
        let head = |path: &str| {
            let uri = format!("https://localhost:{}{path}", self.address.port());
            http::Request::get(uri).body(()).unwrap().into_parts().0
        };
        let config = ClientConfig {
            tls: ClientTls::new(&Roots::Insecure, &TlsOptions::default()).unwrap(),
            transport: Arc::new(TransportConfig::default().build().unwrap()),
            token: Vec::new(),
        };
        let plan = LoadPlan {
            server_name: "localhost".to_owned(),
            address: self.address,
            requests: vec![head("/good"), head(path)],
            content: 0,
            connections: 2,
            handshakes: HANDSHAKES_AT_A_TIME,
            streams: 4,
            bound: Bound::Requests(40),
            warm_up: Duration::ZERO,
            pace: Pace::Closed,
            timeout,
            series: None,
            protocol: Protocol::Http3(Quic { config, spin: Duration::ZERO, handshakes: Handshakes::Full }),
            reuse: Reuse::Always,
        };
        let stop = AtomicBool::new(false);
        let members = vec![Member { port: port().into(), seed: [7; 32] }];
        Run { plan: &plan, server: None, stop: &stop }.over_quic(members, None).unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Deleted, a truncated answer could count as a good one, a slow one could hang the run, and each could have the other's name.
#[test]
fn every_failure_has_its_name() {
    let table = [
        ("/short", Failure::ShortBody),
        ("/reset", Failure::Reset),
        ("/slow", Failure::Timeout),
        ("/never", Failure::Timeout),
        ("/gone", Failure::Closed),
    ];
    for (path, failure) in table {
        let serving = Serving::start();
        let timeout = Duration::from_millis(if failure == Failure::Timeout { 300 } else { 20_000 });
        let report = serving.run(path, timeout);
        assert!(report.failed > 0 && report.failed == report.failures.of(failure), "{path} {report}");
        assert_eq!(report.requests + report.not_begun, 40, "{path} {report}");
        // A connection that the server closes takes good answers with it.
        assert!(report.succeeded > 0 || path == "/gone", "{path} {report}");
    }
}
