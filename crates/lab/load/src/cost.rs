//! What a run cost: the generator's CPU time, bytes and system calls, and the server's CPU time.

use super::record::Record;
use cpu::times::Times;
use serde::Serialize;

/// What the generator itself cost while measuring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct GeneratorCost {
    /// CPU seconds of its threads.
    pub cpu_s: f64,
    /// The same for each request, in microseconds.
    pub cpu_us_per_request: f64,
    /// The largest share of a core that one of its threads had.
    pub busiest_thread: f64,
    /// The largest share of the time that one of its threads waited for a core.
    pub waited_for_core: f64,
    /// Bytes that it sent: UDP payload, or what TCP sockets took.
    pub sent_bytes: u64,
    /// Bytes that it received.
    pub received_bytes: u64,
    /// UDP datagrams that it sent. Over TCP the kernel divides the bytes and does not tell.
    pub sent_datagrams: Option<u64>,
    /// UDP datagrams that it received.
    pub received_datagrams: Option<u64>,
    /// QUIC packets of its own that were lost, handshakes and warm-up included.
    pub lost_packets: Option<u64>,
    /// Datagrams that the kernel discarded because it was too slow.
    pub overflowed_datagrams: Option<u64>,
    /// System calls that sent or received. Over TCP, reads that found nothing are not known.
    pub data_calls: u64,
    /// System calls that waited.
    pub waits: u64,
    /// System calls, waiting included, for each datagram.
    pub calls_per_datagram: Option<f64>,
    /// System calls, waiting included, for each request.
    pub calls_per_request: f64,
}

/// What the server used while measuring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ServerShare {
    /// CPU seconds of its threads.
    pub cpu_s: f64,
    /// The same for each request, in microseconds.
    pub cpu_us_per_request: f64,
    /// The largest share of a core that one of its threads had.
    pub busiest_thread: f64,
    /// Its threads that were busy for more than a tenth of the time.
    pub busy_threads: usize,
    /// The largest share of the time that one of its threads waited for a core.
    pub waited_for_core: f64,
}

/// The generator's figures.
pub(super) fn generated(record: &Record, requests: u64) -> GeneratorCost {
    let traffic = &record.traffic;
    let datagrams = traffic.datagrams;
    let calls = (traffic.data_calls + traffic.waits) as f64;
    GeneratorCost {
        cpu_s: record.times.cpu_s,
        cpu_us_per_request: record.times.cpu_s * 1e6 / requests.max(1) as f64,
        busiest_thread: record.busiest[0],
        waited_for_core: record.busiest[1],
        sent_bytes: traffic.sent_bytes,
        received_bytes: traffic.received_bytes,
        sent_datagrams: datagrams.map(|datagrams| datagrams.sent),
        received_datagrams: datagrams.map(|datagrams| datagrams.received),
        lost_packets: datagrams.map(|_| record.lost_packets),
        overflowed_datagrams: datagrams.map(|datagrams| datagrams.overflowed),
        data_calls: traffic.data_calls,
        waits: traffic.waits,
        calls_per_datagram: datagrams
            .map(|datagrams| calls / (datagrams.sent + datagrams.received).max(1) as f64),
        calls_per_request: calls / requests.max(1) as f64,
    }
}

/// The server's, from those of its threads.
pub(super) fn server_share(threads: &[Times], requests: u64, seconds: f64) -> ServerShare {
    let cpu_s: f64 = threads.iter().map(|times| times.cpu_s).sum();
    let largest = |figure: fn(&Times) -> f64| threads.iter().map(figure).fold(0.0, f64::max) / seconds;
    ServerShare {
        cpu_s,
        cpu_us_per_request: cpu_s * 1e6 / requests.max(1) as f64,
        busiest_thread: largest(|times| times.cpu_s),
        busy_threads: threads.iter().filter(|times| times.cpu_s > 0.1 * seconds).count(),
        waited_for_core: largest(|times| times.waited_s),
    }
}
