//! What the threads of a server did from beginning to end.

use crate::counters::Counters;
use crate::packet_sizes::PacketSizes;
use crate::served::Served;
use crate::tcp::ThreadCounters;
use datapath::{Capabilities, Counters as PortCounters, Frames};
use transport::EndpointCounters;
use worker::HandOffCounters;

/// What one worker of HTTP/3 did.
#[derive(Clone, Copy, Debug)]
pub struct WorkerRecord {
    /// Its number, from 0.
    pub number: u8,
    /// The core that it kept, if any.
    pub core: Option<usize>,
    /// CPU seconds of its thread.
    pub cpu_s: f64,
    /// What its port sent and received.
    pub counters: PortCounters,
    /// Datagrams that came to the wrong worker.
    pub hand_offs: HandOffCounters,
    /// What its endpoint took, refused and dropped.
    pub endpoint: EndpointCounters,
    /// What it did over HTTP/3.
    pub served: Served,
    /// The packet sizes of the connections that have closed.
    pub packet_sizes: PacketSizes,
    /// Its data path as it was at the end.
    pub capabilities: Capabilities,
    /// How its AF_XDP sockets shared packets with the driver.
    pub xdp_mode: Option<&'static str>,
    /// Packet frames before the first packet and after the last, of AF_XDP.
    pub frames: Option<[Frames; 2]>,
}

/// What one thread of HTTP/1.1 and 2 did.
#[derive(Clone, Copy, Debug)]
pub struct TcpRecord {
    /// Its number, from 0.
    pub number: usize,
    /// The core that it kept, if any.
    pub core: Option<usize>,
    /// CPU seconds of the thread; 0 if it is that of a worker, whose record has them.
    pub cpu_s: f64,
    /// What it did.
    pub counters: ThreadCounters,
}

/// What one thread did.
#[derive(Debug)]
pub(crate) enum ThreadRecord {
    Worker(Box<WorkerRecord>),
    Tcp(TcpRecord),
}

/// What a server did from its beginning to its end.
#[derive(Debug, Default)]
pub struct Summary {
    workers: Vec<WorkerRecord>,
    tcp_threads: Vec<TcpRecord>,
}

impl Summary {
    pub(crate) fn new(records: impl Iterator<Item = ThreadRecord>) -> Summary {
        let mut summary = Summary::default();
        for record in records {
            match record {
                ThreadRecord::Worker(record) => summary.workers.push(*record),
                ThreadRecord::Tcp(record) => summary.tcp_threads.push(record),
            }
        }
        summary
    }

    /// Sums over all threads.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.workers.iter().for_each(|record| sum += Counters::of_worker(record.served, &record.endpoint));
        self.tcp_threads.iter().for_each(|record| sum += record.counters.sums());
        sum
    }

    /// The workers of HTTP/3. Outside semver.
    #[doc(hidden)]
    pub fn workers(&self) -> &[WorkerRecord] {
        &self.workers
    }

    /// The threads of HTTP/1.1 and 2. Outside semver.
    #[doc(hidden)]
    pub fn tcp_threads(&self) -> &[TcpRecord] {
        &self.tcp_threads
    }
}
