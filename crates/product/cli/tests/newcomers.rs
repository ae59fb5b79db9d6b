//! One address begins handshakes by the thousand, passes Retry and never ends them. Clients at other addresses must hardly notice.
//!
//! Deleted, one machine could keep all others away from a server: with 1,500 such handshakes a second good clients waited 7.55 s.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test ends where something is not as it should be"
)]

use base::net::{Addresses, Ecn, Train};
use base::sink::{PacketSink, TrainPath};
use base::slab::Slab;
use base::time::Instant;
use core::net::SocketAddr;
use crypto::{ClientTls, KeyExchange, Roots, TlsOptions};
use serde_json::Value;
use std::fs;
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use transport::{
    ClientConfig, Connection, Endpoint, EndpointConfig, Fin, Route, StreamId, StreamSink, TransportConfig,
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tercel");

/// A process that does not outlive its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Keeps what is sent.
#[derive(Default)]
struct Datagrams {
    all: Vec<Vec<u8>>,
    room: Vec<u8>,
}

impl PacketSink for Datagrams {
    fn begin(&mut self, _: TrainPath, segment_size: usize) -> Option<usize> {
        self.room.resize(segment_size, 0);
        Some(1)
    }
    fn room(&mut self) -> &mut [u8] {
        &mut self.room
    }
    fn push(&mut self, len: usize) {
        self.all.push(self.room[..len].to_vec());
    }
    fn packet(&mut self, _: usize) -> &mut [u8] {
        self.all.last_mut().expect("one was pushed")
    }
    fn end(&mut self) {}
}

struct Nothing;

impl StreamSink for Nothing {
    fn on_stream_data(&mut self, _: StreamId, bytes: &[u8], _: Fin) -> usize {
        bytes.len()
    }
}

/// Handshakes that are begun together.
const BATCH: usize = 100;

/// Begins handshakes from one address until it is told to stop: each answers a Retry, and is forgotten.
fn flood(server: SocketAddr, is_over: &AtomicBool, begun: &AtomicUsize) {
    let socket = UdpSocket::bind("127.0.0.77:0").expect("all of 127/8 is this machine");
    socket.connect(server).expect("connects");
    socket.set_read_timeout(Some(Duration::from_millis(3))).expect("a timeout");
    let options = TlsOptions { key_exchange: KeyExchange::X25519, ..TlsOptions::default() };
    let tls = ClientTls::new(&Roots::Insecure, &options).expect("tls");
    let config = ClientConfig { tls, transport: Arc::new(TransportConfig::default()), token: Vec::new() };
    let mut endpoint = Endpoint::new(EndpointConfig::default(), [7; 32]);
    let addresses = Addresses { local: socket.local_addr().expect("bound"), peer: server };
    let now = Instant::from_nanos(1 << 40);
    let mut bytes = [0; 2_048];
    while !is_over.load(Ordering::Relaxed) {
        let mut connections = Slab::new();
        for _ in 0..BATCH {
            let handle = connections.next_handle();
            let connection = endpoint.connect(now, handle, &config, ("localhost", addresses));
            let mut connection = connection.expect("a name");
            send(&socket, now, &mut connection);
            connections.insert(connection);
        }
        // Retry packets, and first flights of the server, of which no notice is taken.
        while let Ok(len) = socket.recv(&mut bytes) {
            let train = Train { bytes: &mut bytes[..len], segment_size: len, addresses, ecn: Ecn::NotEct };
            let is_retry = train.bytes[0] & 0xf0 == 0xf0;
            let Route::Connection(handle) = endpoint.route(now, &train) else { continue };
            if let Some(connection) = connections.entry_mut(handle).filter(|_| is_retry) {
                connection.receive(now, train, &mut Nothing);
                send(&socket, now, connection);
            }
        }
        connections.handles().for_each(|handle| endpoint.forget(handle));
        begun.fetch_add(BATCH, Ordering::Relaxed);
    }
}

fn send(socket: &UdpSocket, now: Instant, connection: &mut Connection) {
    let mut out = Datagrams::default();
    connection.transmit(now, &mut out);
    out.all.iter().for_each(|datagram| drop(socket.send(datagram)));
}

/// Tells the flood to end, also when the test has failed.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn newcomers_are_served_while_one_address_begins_handshakes_without_end() {
    let place = TempDir::new().expect("a folder");
    let file = |name: &str| place.path().join(name);
    let mut command = Command::new(PROGRAM);
    command.args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--http",
        "3",
        "--access-log",
        "off",
        "--workers",
        "1",
    ]);
    command.arg("--ready-file").arg(file("ready")).env("XDG_DATA_HOME", file("data"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _server = Process(command.spawn().expect("the program starts"));
    let ready = (0..6_000).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        serde_json::from_str::<Value>(&fs::read_to_string(file("ready")).ok()?).ok()
    });
    let ready = ready.expect("the server starts");
    let port = ready["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port");
    let (is_over, begun) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let _stop = Stop(&is_over);
        scope.spawn(|| flood(([127, 0, 0, 1], port).into(), &is_over, &begun));
        // More than there are places, so that without shares all of them are taken.
        for _ in 0..6_000 {
            if begun.load(Ordering::Relaxed) > 4_500 {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        for _ in 0..10 {
            let mut get = Command::new(PROGRAM);
            get.args(["get", &format!("https://localhost:{port}/bytes/1000"), "--insecure", "--output"]);
            get.arg(file("out")).args(["--connect-timeout", "5"]);
            let status = get.stdin(Stdio::null()).stderr(Stdio::null()).status().expect("it runs");
            assert!(
                status.success(),
                "{status} while {} handshakes were begun",
                begun.load(Ordering::Relaxed)
            );
        }
    });
}
