//! In steady state neither side of a transfer allocates per packet.
//!
//! A server and a client take turns on one thread, over the real port on loopback, and a counting allocator books what is
//! asked of it to the side whose turn it is. Deleted, an allocation per packet could creep in unseen, in any layer from the socket
//! to HTTP/3.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use base::time::Duration;
use bench::fetch::{self, Fetch, Outcome};
use crypto::{ClientTls, Identity, Roots, ServerTls, TlsOptions};
use datapath::Port as _;
use server::access_log::{AccessLog, Target};
use server::handler::{FileOptions, Files};
use server::http3::Server;
use transport::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TransportConfig};
use udp::{BindOptions, UdpPort, Variant};
use worker::{Config, Worker};

/// The content of the transfer, and how much of it passes before counting begins: windows grow until then.
const TOTAL: u64 = 200_000_000;
const WARM: u64 = 20_000_000;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    ALLOCATIONS.with(|count| count.set(count.get() + 1));
}

#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is passed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps `System`'s contract, which is ours.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `System`'s contract, which is ours.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps `System`'s contract, which is ours.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn port() -> UdpPort {
    UdpPort::bind(&BindOptions::new("127.0.0.1:0".parse().unwrap(), Variant::Gso)).unwrap()
}

fn server() -> Worker<UdpPort, Server> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let identity =
        Identity::from_der(vec![made.cert.der().to_vec()], made.signing_key.serialize_der()).unwrap();
    let tls = ServerTls::new(&identity, &TlsOptions::default()).unwrap();
    let transport = Arc::new(TransportConfig::default().build().unwrap());
    let log = AccessLog::start(Target::Off).unwrap();
    let app = Server::new(Files::new(FileOptions::default()), log.recorder());
    let endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
    Worker::new(port(), app, endpoint, Some(ServerConfig { tls, transport }), Config::default())
}

fn client(peer: std::net::SocketAddr) -> Worker<UdpPort, Fetch> {
    let tls = ClientTls::new(&Roots::Insecure, &TlsOptions::default()).unwrap();
    let transport = Arc::new(TransportConfig::default().build().unwrap());
    let endpoint = Endpoint::new(EndpointConfig::default(), [2; 32]);
    let mut worker = Worker::new(port(), Fetch::default(), endpoint, None, Config::default());
    let state = fetch::connection(peer, &format!("/bytes/{TOTAL}"), worker.now()).unwrap();
    let config = ClientConfig { tls, transport, token: Vec::new() };
    worker.connect(&config, "localhost", peer, state).unwrap();
    worker
}

/// What happened on one side since counting began.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    allocations: u64,
    turns_with_allocations: u64,
}

impl Tally {
    fn book<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let before = ALLOCATIONS.with(Cell::get);
        let result = work();
        let asked = ALLOCATIONS.with(Cell::get) - before;
        self.allocations += asked;
        self.turns_with_allocations += u64::from(asked > 0);
        result
    }
}

#[test]
fn a_packet_costs_no_allocation() {
    let mut server = server();
    let mut client = client(server.port().local_address());
    let (mut at_server, mut at_client) = (Tally::default(), Tally::default());
    let mut warm = None;
    while client.app_mut().outcome.is_none() {
        let now = server.now();
        // Neither sleeps long: the other one's turn is what it waits for.
        at_server.book(|| server.run_turn(Some(now + Duration::from_micros(50)))).unwrap();
        let now = client.now();
        at_client.book(|| client.run_turn(Some(now + Duration::from_micros(50)))).unwrap();
        if warm.is_none() && client.app_mut().received >= WARM {
            (at_server, at_client) = (Tally::default(), Tally::default());
            warm = Some((server.counters(), client.counters()));
        }
    }
    assert_eq!(client.app_mut().outcome, Some(Outcome::Complete));
    let Some((sent, taken)) = warm else { panic!("the transfer was over too soon") };
    let sent = server.counters().tx.datagrams - sent.tx.datagrams;
    let taken = client.counters().rx.datagrams - taken.rx.datagrams;
    assert!(sent.min(taken) > (TOTAL - WARM) / 1_452);
    for (side, packets, tally) in [("server", sent, at_server), ("client", taken, at_client)] {
        let per_thousand = tally.allocations as f64 * 1e3 / packets as f64;
        println!("{side}: {packets} packets, {tally:?}, {per_thousand:.3} allocations per 1,000 packets");
        assert!(per_thousand < 1.0, "{side}: {per_thousand:.3} allocations per 1,000 packets");
    }
}
