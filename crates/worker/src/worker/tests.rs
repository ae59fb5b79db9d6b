//! A worker on a port that has no room.

use super::*;
use base::net::Train;
use base::sink::PacketSink;
use crypto::{ClientTls, Roots, TlsOptions};
use datapath::{Capabilities, Rx, Tx};
use std::sync::Arc;
use transport::{EndpointConfig, Fin, StreamId, StreamSink, TransportConfig};

/// Nothing comes in, nothing goes out, and time passes only in `wait`.
#[derive(Default)]
struct Full {
    now: Instant,
    waits: u64,
}

impl Rx for Full {
    fn poll(&mut self) -> io::Result<usize> {
        Ok(0)
    }
    fn train(&mut self, _: usize) -> Train<'_> {
        unreachable!("nothing comes in")
    }
}

impl PacketSink for Full {
    fn begin(&mut self, _: TrainPath, _: usize) -> Option<usize> {
        None
    }
    fn room(&mut self) -> &mut [u8] {
        &mut []
    }
    fn push(&mut self, _: usize) {}
    fn packet(&mut self, _: usize) -> &mut [u8] {
        &mut []
    }
    fn end(&mut self) {}
}

impl Tx for Full {
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Port for Full {
    fn now(&mut self) -> Instant {
        self.now
    }
    fn wait(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        self.waits += 1;
        self.now = self.now.max(deadline.expect("something is to be sent"));
        Ok(())
    }
    fn local_address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 1))
    }
    fn counters(&self) -> Counters {
        Counters::default()
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "full",
            train_segments: 1,
            train_bytes: 1_200,
            segments_offloaded: false,
            coalesces: false,
            ecn: false,
            departure_times: false,
        }
    }
}

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

#[test]
fn a_full_port_is_waited_for_and_not_spun_upon() {
    let port = Full { now: Instant::from_nanos(1 << 40), waits: 0 };
    let endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
    let mut worker = Worker::new(port, Idle, endpoint, None, Config::default());
    let tls = ClientTls::new(&Roots::Insecure, &TlsOptions::default()).expect("client tls");
    let client = ClientConfig { tls, transport: Arc::new(TransportConfig::default()), token: Vec::new() };
    let peer = SocketAddr::from(([127, 0, 0, 1], 2));
    worker.connect(&client, "localhost", peer, Idle).expect("connects");
    let start = worker.now();
    for _ in 0..100 {
        worker.run_turn(None).expect("the port works");
    }
    assert_eq!(worker.port().waits, 100, "every turn sleeps");
    assert!(worker.now() >= start + HELD_UP * 99, "and not for nothing");
}
