//! In steady state an exchange costs neither side an allocation.
//!
//! Client and server are in this process, over the real port on loopback, and an allocator counts what all threads ask of it: a
//! long run must not ask for more than a short one. Deleted, an allocation per request could creep in unseen, in any layer
//! from the socket to the client's table.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use base::time::Duration;
use crypto::{ClientTls, Identity, Roots, ServerTls, TlsOptions};
use datapath::Port as _;
use load::Bound;
use load::perf::server::Server;
use load::perf::{Amount, PerfPlan, Run, Task, ThreadSetup, protocol};
use std::alloc::{GlobalAlloc, Layout, System};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use transport::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TransportConfig};
use udp::{BindOptions, UdpPort, Variant};
use worker::{Config, Worker};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is passed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps `System`'s contract, which is ours.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `System`'s contract, which is ours.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps `System`'s contract, which is ours.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn port() -> UdpPort {
    UdpPort::bind(&BindOptions::new("127.0.0.1:0".parse().unwrap(), Variant::Gso)).unwrap()
}

fn options() -> TlsOptions {
    TlsOptions { alpn: vec![protocol::ALPN.to_vec()], ..TlsOptions::default() }
}

fn serve(port: UdpPort, stop: &AtomicBool) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let identity =
        Identity::from_der(vec![made.cert.der().to_vec()], made.signing_key.serialize_der()).unwrap();
    let tls = ServerTls::new(&identity, &options()).unwrap();
    let transport = Arc::new(TransportConfig::default().build().unwrap());
    let endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
    let server = Some(ServerConfig { tls, transport });
    let mut worker = Worker::new(port, Server::default(), endpoint, server, Config::default());
    while !stop.load(Ordering::Relaxed) {
        let until = worker.now() + Duration::from_millis(5);
        worker.run_turn(Some(until)).unwrap();
    }
}

/// Allocations of both sides for this many exchanges, handshake and all.
fn allocations(server: SocketAddr, count: u64, outstanding: usize) -> u64 {
    let plan = PerfPlan {
        server_name: "localhost".to_owned(),
        address: server,
        task: Task::Exchanges { request: Amount::Bytes(512), response: Amount::Bytes(8_192) },
        connections: 1,
        handshakes: load::HANDSHAKES_AT_A_TIME,
        outstanding,
        bound: Bound::Requests(count),
        // In which windows, tables and queues grow.
        warm_up: Duration::from_millis(200),
        quic: ClientConfig {
            tls: ClientTls::new(&Roots::Insecure, &options()).unwrap(),
            transport: Arc::new(TransportConfig::default().build().unwrap()),
            token: Vec::new(),
        },
        spin: Duration::ZERO,
    };
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let thread_setup = ThreadSetup { port: port().into(), seed: [count as u8; 32], member: None };
    let crew = Run { thread_setups: vec![thread_setup], server: None, prepare: &|_| Ok(()) };
    let report = crew.run(&plan, &AtomicBool::new(false)).unwrap();
    assert_eq!(report.completed, count, "{report:?}");
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

#[test]
fn an_exchange_costs_no_allocation() {
    let port = port();
    let address = port.local_address();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| serve(port, &stop));
        let measured = std::panic::catch_unwind(|| {
            [1, 16].map(|outstanding| {
                let short = allocations(address, 101, outstanding);
                let long = allocations(address, 5_102, outstanding);
                (outstanding, short, long)
            })
        });
        stop.store(true, Ordering::Relaxed);
        for (outstanding, short, long) in measured.unwrap() {
            let more = long.saturating_sub(short) as f64 / 5.0;
            println!("{outstanding} outstanding: {short} and {long}, {more:.2} more per 1,000 exchanges");
            assert!(more < 20.0, "{outstanding} outstanding: {more:.2} allocations per 1,000 exchanges");
        }
    });
}
