//! A worker that is a task, on a UDP socket whose tiny send buffer is full.
#![cfg(feature = "tokio")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that meets an error has failed")]

use base::net::{Addresses, Ecn};
use base::sink::{PacketSink as _, TrainPath};
use base::time::Instant;
use core::future::poll_fn;
use core::net::SocketAddr;
use core::task::Poll;
use core::time::Duration;
use crypto::{ClientTls, Roots, TlsOptions};
use datapath::{Port as _, Tx as _};
use netns::{Lab, LabOptions};
use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use transport::{
    ClientConfig, Connection, Endpoint, EndpointConfig, Fin, StreamId, StreamSink, TransportConfig,
};
use udp::{BindOptions, UdpPort, Variant};
use worker::task::{Sleep, TaskSleep, yield_now};
use worker::{App, Config, Next, Worker};

struct Idle;

impl StreamSink for Idle {
    fn on_stream_data(&mut self, _: StreamId, bytes: &[u8], _: Fin) -> usize {
        bytes.len()
    }
}

impl App for Idle {
    type State = Idle;
    fn on_accept(&mut self, _: Instant, _: &mut Connection) -> Idle {
        Idle
    }
    fn on_turn(&mut self, _: Instant, connection: &mut Connection, _: &mut Idle) -> Next {
        while connection.next_event().is_some() {}
        Next::Wait
    }
    fn on_gone(&mut self, _: Instant, _: &Connection, _: Idle) {}
}

/// A port in the client's namespace whose socket is full: of datagrams for an address that has no host. They are given up after
/// three questions for its Ethernet address without an answer, and leave room then.
fn full_port(lab: &Lab) -> UdpPort {
    let client = lab.client();
    client.run(|| {
        let interval = format!("/proc/sys/net/ipv4/neigh/{}/retrans_time_ms", client.interface());
        std::fs::write(interval, "100").unwrap();
        let local = SocketAddr::from((client.ipv4(), 0));
        let options = BindOptions { send_buffer: 2_304, ..BindOptions::new(local, Variant::Plain) };
        let mut port = UdpPort::bind(&options).unwrap();
        let [a, b, c, _] = client.ipv4().octets();
        let absent = SocketAddr::from(([a, b, c, 200], 9));
        let path = TrainPath::new(Addresses { local: port.local_address(), peer: absent }, Ecn::NotEct);
        for _ in 0..100 {
            port.begin(path, 1_200).unwrap();
            port.room().fill(0);
            port.push(1_200);
            port.end();
            port.flush().unwrap();
            if port.awaits_room() > 0 {
                return port;
            }
        }
        panic!("the socket is never full: {:?}", port.buffer_sizes());
    })
}

/// Opens a connection to `peer` as a task, and counts its turns. Ends with the error that it meets.
async fn connect(port: UdpPort, peer: SocketAddr, turns: Arc<AtomicU32>) -> io::Result<()> {
    let mut worker =
        Worker::new(port, Idle, Endpoint::new(EndpointConfig::default(), [1; 32]), None, Config::default());
    let tls = ClientTls::new(&Roots::Insecure, &TlsOptions::default()).unwrap();
    // Its first timer is more than three seconds away.
    let transport =
        TransportConfig { initial_rtt: base::time::Duration::from_secs(30), ..TransportConfig::default() };
    let client = ClientConfig { tls, transport: Arc::new(transport), token: Vec::new() };
    worker.connect(&client, "localhost", peer, Idle).unwrap();
    let mut sleep = TaskSleep::new(&worker)?;
    poll_fn(|context| {
        turns.fetch_add(1, Ordering::Relaxed);
        let turn = worker.turn_once();
        match turn.and_then(|(now, deadline)| sleep.begin(&mut worker, now, deadline, context)) {
            Ok(Sleep::Sound) => {}
            Ok(Sleep::Interrupted) => yield_now(context),
            Err(error) => return Poll::Ready(Err(error)),
        }
        Poll::Pending
    })
    .await
}

/// Deleted, the kernel's word for room could be another than the one that is waited for, and a full socket stay full for its worker.
#[test]
fn a_connection_goes_on_when_the_kernel_has_room_and_not_by_the_clock() {
    if !requirements::root("a full socket in a network namespace") {
        return;
    }
    let lab = Lab::new(&LabOptions::default()).unwrap();
    let server = lab.server().run(|| UdpSocket::bind((lab.server().ipv4(), 0)).unwrap());
    server.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    let (port, to) = (full_port(&lab), server.local_addr().unwrap());
    let turns: Arc<AtomicU32> = Arc::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let _task = tokio::spawn(connect(port, to, Arc::clone(&turns)));
        let arrived = tokio::task::spawn_blocking(move || server.recv(&mut [0; 2_000])).await.unwrap();
        let turns = turns.load(Ordering::Relaxed);
        assert!(arrived.unwrap() >= 1_200, "a packet that opens a connection");
        assert!(turns < 20, "{turns} turns while there was no room");
    });
}
