//! Workers as tasks of a current-thread runtime.

use super::*;
use crate::{Config, Next};
use base::net::Train;
use base::sink::{PacketSink, TrainPath};
use core::future::poll_fn;
use core::net::SocketAddr;
use core::time::Duration;
use crypto::{ClientTls, Roots, TlsOptions};
use datapath::{Capabilities, Counters, Rx, Tx};
use rustix::time::{ClockId, clock_gettime};
use std::io::{Read as _, Write as _};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use transport::{
    ClientConfig, Connection, Endpoint, EndpointConfig, Fin, StreamId, StreamSink, TransportConfig,
};

const TURNS: u32 = 100;

/// A program that reads in the root future of its runtime is woken by a turn. Deleted, the runtime could poll the driver 61
/// times before it, and the transport would pause a fast stream meanwhile.
#[test]
fn the_root_future_is_polled_between_turns() {
    let turns = Arc::new(AtomicU32::new(0));
    let reader: Arc<TaskWaker> = Arc::default();
    let (driver_turns, awaited) = (Arc::clone(&turns), Arc::clone(&reader));
    let driver = poll_fn(move |context| {
        awaited.wake();
        if driver_turns.fetch_add(1, Ordering::Relaxed) + 1 >= TURNS {
            return Poll::Ready(());
        }
        yield_now(context);
        Poll::Pending
    });
    let mut polls = 0;
    let root = poll_fn(|context| {
        polls += 1;
        reader.set(context.waker());
        if turns.load(Ordering::Relaxed) < TURNS { Poll::Pending } else { Poll::Ready(()) }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        runtime.spawn(driver);
        root.await;
    });
    assert!(polls >= TURNS - 1, "{polls} polls in {TURNS} turns");
}

/// A port whose socket is full at first. It has room for one train beside what the socket takes.
struct Narrow {
    socket: UnixStream,
    open: Vec<u8>,
    queued: Vec<u8>,
    polls: Arc<AtomicU32>,
}

impl Narrow {
    /// The port, and the other end of its socket.
    fn full(polls: &Arc<AtomicU32>) -> (Narrow, UnixStream) {
        let (mut socket, peer) = UnixStream::pair().unwrap();
        rustix::net::sockopt::set_socket_send_buffer_size(&socket, 4_608).unwrap();
        socket.set_nonblocking(true).unwrap();
        while socket.write(&[0; 100]).is_ok() {}
        (Narrow { socket, open: Vec::new(), queued: vec![0], polls: Arc::clone(polls) }, peer)
    }
}

impl Rx for Narrow {
    fn poll(&mut self) -> io::Result<usize> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        Ok(0)
    }
    fn train(&mut self, _: usize) -> Train<'_> {
        unreachable!("nothing comes in")
    }
}

impl PacketSink for Narrow {
    fn begin(&mut self, _: TrainPath, segment_size: usize) -> Option<usize> {
        self.open = vec![0; segment_size];
        self.queued.is_empty().then_some(1)
    }
    fn room(&mut self) -> &mut [u8] {
        &mut self.open
    }
    fn push(&mut self, len: usize) {
        self.open.truncate(len);
    }
    fn packet(&mut self, _: usize) -> &mut [u8] {
        &mut self.open
    }
    fn end(&mut self) {
        self.queued.append(&mut self.open);
    }
}

impl Tx for Narrow {
    fn flush(&mut self) -> io::Result<()> {
        while !self.queued.is_empty() {
            match self.socket.write(&self.queued) {
                Ok(sent) => drop(self.queued.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Port for Narrow {
    fn now(&mut self) -> Instant {
        let now = clock_gettime(ClockId::Monotonic);
        Instant::from_nanos(now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs())
    }
    fn wait(&mut self, _: Option<Instant>) -> io::Result<()> {
        unreachable!("tokio sleeps")
    }
    fn local_address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 1))
    }
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.socket.as_fd()]
    }
    fn awaits_room(&self) -> u32 {
        u32::from(!self.queued.is_empty())
    }
    fn counters(&self) -> Counters {
        Counters::default()
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "narrow",
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

/// A client that opens a connection through a full socket, as a task. Ends with the error that it meets.
async fn connect_through(port: Narrow) -> io::Result<()> {
    let endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
    let mut worker = Worker::new(port, Idle, endpoint, None, Config::default());
    let tls = ClientTls::new(&Roots::Insecure, &TlsOptions::default()).unwrap();
    // Its first timer is more than three seconds away.
    let transport =
        TransportConfig { initial_rtt: base::time::Duration::from_secs(30), ..TransportConfig::default() };
    let client = ClientConfig { tls, transport: Arc::new(transport), token: Vec::new() };
    worker.connect(&client, "localhost", SocketAddr::from(([127, 0, 0, 1], 2)), Idle).unwrap();
    let mut sleep = TaskSleep::new(&worker)?;
    poll_fn(|context| {
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

/// Deleted, a worker that is a task could look at a full socket every millisecond, or send nothing through it before its next timer.
/// The timer wheel wakes it now and then, at times that depend on the clock: five times in a row it would not in time.
#[test]
fn a_task_sleeps_on_a_full_socket_until_it_has_room() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for round in 0..5 {
        runtime.block_on(connection_goes_on_when_there_is_room(round));
    }
}

async fn connection_goes_on_when_there_is_room(round: u32) {
    let polls: Arc<AtomicU32> = Arc::default();
    let (port, mut peer) = Narrow::full(&polls);
    let task = tokio::spawn(connect_through(port));
    let asleep = Duration::from_millis(50);
    tokio::time::sleep(asleep).await;
    let looked = polls.load(Ordering::Relaxed);
    assert!((1..10).contains(&looked), "round {round}: {looked} turns in {asleep:?} without room");
    peer.set_nonblocking(true).unwrap();
    let (mut bytes, mut initial) = ([0; 1 << 16], 0);
    let arrived = async {
        while initial < 1_000 {
            if let Ok(read) = peer.read(&mut bytes) {
                initial += bytes[..read].iter().filter(|byte| **byte != 0).count();
            }
            tokio::task::yield_now().await;
        }
    };
    let arrived = tokio::time::timeout(Duration::from_secs(1), arrived).await;
    assert!(arrived.is_ok(), "round {round}: nothing is sent though there is room");
    task.abort();
}
