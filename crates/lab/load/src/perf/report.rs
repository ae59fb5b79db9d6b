//! The figures of a run, as machines read them; `Display` is for people.

use super::plan::{PerfPlan, Task};
use crate::cost::{generated, server_share};
use crate::latency::Latency;
use crate::record::Record;
use crate::spans::Spans;
use core::fmt;
use cpu::times::Times;
use serde::Serialize;

/// What the client cost while measuring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// CPU seconds of its threads.
    pub cpu_s: f64,
    /// The same for each exchange or handshake, in microseconds.
    pub cpu_us_per_exchange: f64,
    /// The largest share of a core that one of its threads had.
    pub busiest_thread: f64,
    /// The largest share of the time that one of its threads waited for a core.
    pub waited_for_core: f64,
    /// UDP datagrams that it sent.
    pub sent_datagrams: u64,
    /// UDP datagrams that it received.
    pub received_datagrams: u64,
    /// Packets of its own that were lost, handshakes and warm-up included.
    pub lost_packets: u64,
    /// Datagrams that the kernel discarded because it was too slow.
    pub overflowed_datagrams: u64,
    /// System calls that sent or received; of AF_XDP, looks at its rings as well.
    pub data_calls: u64,
    /// System calls that waited.
    pub waits: u64,
}

/// What the server used while measuring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ServerCost {
    /// CPU seconds of its threads.
    pub cpu_s: f64,
    /// The same for each exchange or handshake, in microseconds.
    pub cpu_us_per_exchange: f64,
    /// The largest share of a core that one of its threads had.
    pub busiest_thread: f64,
    /// The largest share of the time that one of its threads waited for a core.
    pub waited_for_core: f64,
    /// Its threads that were busy for more than a tenth of the time.
    pub busy_threads: usize,
}

/// A run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// What was done: `exchanges` or `handshakes`.
    pub task: &'static str,
    /// Bytes of each request; none where they were as many as time allowed.
    pub request_bytes: Option<u64>,
    /// Bytes of each answer, likewise.
    pub response_bytes: Option<u64>,
    /// Connections; of handshakes, how many were under way at a time.
    pub connections: usize,
    /// Exchanges at a time on each connection.
    pub outstanding: usize,
    /// Threads of the client.
    pub threads: usize,
    /// The client's data path.
    pub datapath: String,
    /// Whether it was ended early.
    pub interrupted: bool,
    /// How long was measured.
    pub seconds: f64,
    /// Exchanges, or handshakes, that ended as they should.
    pub completed: u64,
    /// Those that did not.
    pub failed: u64,
    /// Those that were under way at the end.
    pub unfinished: u64,
    /// Connections that could not be made.
    pub unconnected: u64,
    /// The first thing that went wrong, in words.
    pub first_fault: Option<String>,
    /// Completed exchanges, or handshakes, a second.
    pub per_second: f64,
    /// Bytes of answers that arrived.
    pub received_bytes: u64,
    /// The same in 10^9 bits a second.
    pub received_gbit_per_second: f64,
    /// Bytes of requests that were acknowledged.
    pub sent_bytes: u64,
    /// The same in 10^9 bits a second.
    pub sent_gbit_per_second: f64,
    /// From the beginning of an exchange to the end of its answer.
    pub latency: Latency,
    /// The distribution of the latency: percentiles, and how many microseconds so large a share did not exceed.
    pub curve: Vec<[f64; 2]>,
    /// From the first datagram to the end of the handshake.
    pub handshake: Latency,
    /// The largest packet that a connection sent at the end, in bytes of UDP payload.
    pub packet_bytes: u16,
    /// The smoothed round-trip time at the end, in microseconds.
    pub rtt_us: f64,
    /// What the client cost.
    pub client: Cost,
    /// What the server cost, if its process was named.
    pub server: Option<ServerCost>,
}

/// What exchanges of more bytes than this cost is told by the byte.
const LARGE: u64 = 1_000_000;

/// The percentiles of [`Report::curve`].
const CURVE: [f64; 17] = [
    0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99, 99.995,
    99.999,
];

/// As far as this many spans tell a percentile from the longest.
pub(super) fn curve(spans: &Spans) -> Vec<[f64; 2]> {
    let count = spans.count() as f64;
    let tells = |percent: &f64| count * (1.0 - percent / 100.0) >= 1.0;
    let at = |percent: f64| [percent, spans.quantile(percent / 100.0).as_nanos() as f64 / 1e3];
    CURVE.into_iter().filter(tells).map(at).collect()
}

/// The report of `threads` threads that have measured `record` in all.
pub(super) fn of(plan: &PerfPlan, threads: usize, record: &Record, server: Option<&[Times]>) -> Report {
    let seconds = record.elapsed().as_secs_f64();
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let (task, amounts, latency) = match plan.task {
        Task::Handshakes => ("handshakes", [None; 2], Latency::default()),
        Task::Exchanges { request, response } => {
            ("exchanges", [request.bytes(), response.bytes()], Latency::of(&record.latency))
        }
    };
    Report {
        task,
        request_bytes: amounts[0],
        response_bytes: amounts[1],
        connections: plan.connections,
        outstanding: plan.outstanding,
        threads,
        datapath: String::new(),
        interrupted: false,
        seconds,
        completed: record.succeeded,
        failed: record.failures.total(),
        unfinished: record.unfinished,
        unconnected: record.connection_failures.total(),
        first_fault: record.first_fault.clone(),
        per_second: per_second(record.succeeded),
        received_bytes: record.content_bytes,
        received_gbit_per_second: per_second(record.content_bytes) * 8e-9,
        sent_bytes: record.uploaded_bytes,
        sent_gbit_per_second: per_second(record.uploaded_bytes) * 8e-9,
        latency,
        curve: curve(if plan.task == Task::Handshakes { &record.handshake } else { &record.latency }),
        handshake: Latency::of(&record.handshake),
        packet_bytes: record.packet_size,
        rtt_us: record.rtt.as_nanos() as f64 / 1e3,
        client: cost(record),
        server: server.map(|threads| server_cost(threads, record.succeeded, seconds)),
    }
}

fn cost(record: &Record) -> Cost {
    let generated = generated(record, record.succeeded);
    Cost {
        cpu_s: generated.cpu_s,
        cpu_us_per_exchange: generated.cpu_us_per_request,
        busiest_thread: generated.busiest_thread,
        waited_for_core: generated.waited_for_core,
        sent_datagrams: generated.sent_datagrams.unwrap_or(0),
        received_datagrams: generated.received_datagrams.unwrap_or(0),
        lost_packets: record.lost_packets,
        overflowed_datagrams: generated.overflowed_datagrams.unwrap_or(0),
        data_calls: generated.data_calls,
        waits: generated.waits,
    }
}

fn server_cost(threads: &[Times], completed: u64, seconds: f64) -> ServerCost {
    let share = server_share(threads, completed, seconds.max(1e-9));
    ServerCost {
        cpu_s: share.cpu_s,
        cpu_us_per_exchange: share.cpu_us_per_request,
        busiest_thread: share.busiest_thread,
        waited_for_core: share.waited_for_core,
        busy_threads: share.busy_threads,
    }
}

impl Report {
    /// Whether everything ended as it should.
    pub fn is_clean(&self) -> bool {
        self.failed == 0
            && self.unconnected == 0
            && (self.completed > 0 || self.received_bytes + self.sent_bytes > 0)
    }

    fn is_bulk(&self) -> bool {
        self.task == "exchanges" && (self.request_bytes.is_none() || self.response_bytes.is_none())
    }

    /// CPU time, for each exchange or, where those are large or have no end, for what was carried.
    fn cpu(&self, cpu_s: f64, us_each: f64) -> String {
        let bytes = self.received_bytes + self.sent_bytes;
        let each = match self.completed {
            completed if bytes > 0 && bytes >= completed.saturating_mul(LARGE) => {
                format!(" ({:.3} s per GB)", cpu_s / (bytes as f64 * 1e-9))
            }
            0 => String::new(),
            _ => format!(" ({us_each:.1} µs each)"),
        };
        format!("{cpu_s:.2} s of CPU{each}")
    }
}

/// Percentiles of spans in microseconds on one line.
pub(super) fn line(latency: &Latency) -> String {
    let spans = [
        ("p50", latency.p50_us),
        ("p90", latency.p90_us),
        ("p99", latency.p99_us),
        ("p99.9", latency.p99_9_us),
        ("p99.99", latency.p99_99_us),
        ("max", latency.max_us),
    ];
    spans.map(|(name, us)| format!("{name} {}", span(us))).join("  ")
}

/// A span of time with a fitting unit.
fn span(us: f64) -> String {
    match us {
        us if us < 99.95 => format!("{us:.1} µs"),
        us if us < 999.5 => format!("{us:.0} µs"),
        us if us < 9_995.0 => format!("{:.2} ms", us / 1e3),
        us if us < 999_500.0 => format!("{:.0} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount =
            |bytes: Option<u64>| bytes.map_or("without end".to_owned(), |bytes| format!("of {bytes} bytes"));
        match self.task {
            "handshakes" => writeln!(f, "task        handshakes, {} at a time", self.connections)?,
            _ => writeln!(
                f,
                "task        requests {}, answers {}; {} connections, {} at a time on each",
                amount(self.request_bytes),
                amount(self.response_bytes),
                self.connections,
                self.outstanding
            )?,
        }
        writeln!(
            f,
            "time        {:.2} s, {} threads, datapath {}",
            self.seconds, self.threads, self.datapath
        )?;
        if !self.is_bulk() {
            writeln!(f, "rate        {:.0}/s ({} completed)", self.per_second, self.completed)?;
        }
        if self.task == "exchanges" && self.packet_bytes > 0 {
            let (down, up) = (self.received_gbit_per_second, self.sent_gbit_per_second);
            writeln!(
                f,
                "throughput  {down:.3} Gbit/s down, {up:.3} Gbit/s up, packets of {} bytes",
                self.packet_bytes
            )?;
        }
        if self.latency.count > 0 {
            writeln!(f, "latency     {}", line(&self.latency))?;
        }
        if self.handshake.count > 0 {
            writeln!(f, "handshake   {}", line(&self.handshake))?;
        }
        if self.failed + self.unconnected > 0 {
            writeln!(f, "failed      {}, and {} connections were not made", self.failed, self.unconnected)?;
        }
        if let Some(fault) = &self.first_fault {
            writeln!(f, "fault       {fault}")?;
        }
        let client = &self.client;
        write!(
            f,
            "client      {}, busiest thread {:.0} % of a core; {} datagrams out, {} in, {} lost; \
             {} calls, {} waits",
            self.cpu(client.cpu_s, client.cpu_us_per_exchange),
            client.busiest_thread * 100.0,
            client.sent_datagrams,
            client.received_datagrams,
            client.lost_packets,
            client.data_calls,
            client.waits
        )?;
        if let Some(server) = &self.server {
            write!(
                f,
                "\nserver      {}, busiest thread {:.0} % of a core",
                self.cpu(server.cpu_s, server.cpu_us_per_exchange),
                server.busiest_thread * 100.0
            )?;
        }
        if self.interrupted {
            write!(f, "\ninterrupted: this is what was measured until then")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, what a download without end cost would be told for each of no downloads.
    #[test]
    fn cost_is_told_for_what_was_carried() {
        let client = Cost { cpu_s: 0.5, cpu_us_per_exchange: 500_000.0, ..Cost::default() };
        let endless = Report {
            task: "exchanges",
            request_bytes: Some(8),
            received_bytes: 2_000_000_000,
            packet_bytes: 1_452,
            client,
            ..Report::default()
        };
        let text = endless.to_string();
        assert!(text.contains("0.50 s of CPU (0.250 s per GB), busiest"), "{text}");
        assert!(text.contains("requests of 8 bytes, answers without end;"), "{text}");
        let small = Report { completed: 10_000, response_bytes: Some(200_000), ..endless.clone() };
        assert!(small.to_string().contains("(500000.0 µs each)"), "{small}");
        let nothing = Report { received_bytes: 0, packet_bytes: 0, ..endless }.to_string();
        assert!(nothing.contains("0.50 s of CPU, busiest") && !nothing.contains("throughput"), "{nothing}");
    }
}
