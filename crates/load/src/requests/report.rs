//! The figures of a run, as machines read them; `Display` is for people.

use super::failure::PerFailure;
use super::plan::{Bound, Pace, Plan};
use super::record::{Record, Slice, Spans};
use super::times::Times;
use core::fmt;
use serde::Serialize;
use std::collections::BTreeMap;

/// A generator thread above this share of a core cannot ask for more.
const GENERATOR_BUSY: f64 = 0.95;
/// A server thread below this share of a core could answer more.
const SERVER_BUSY: f64 = 0.90;
/// A thread that waits for a core for a larger share of the time than this is held back by others on the machine.
const CROWDED: f64 = 0.10;

/// Percentiles of spans of time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// How many spans there are.
    pub count: u64,
    /// The shortest.
    pub min_us: f64,
    /// The mean.
    pub mean_us: f64,
    /// Half are not longer.
    pub p50_us: f64,
    /// 90 % are not longer.
    pub p90_us: f64,
    /// 99 % are not longer.
    pub p99_us: f64,
    /// 99.9 % are not longer.
    pub p99_9_us: f64,
    /// 99.99 % are not longer.
    pub p99_99_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl Latency {
    /// Of these spans; all zero when there are none.
    pub fn of(spans: &Spans) -> Latency {
        if spans.count() == 0 {
            return Latency::default();
        }
        let us = |span: base::time::Duration| span.as_nanos() as f64 / 1e3;
        Latency {
            count: spans.count(),
            min_us: us(spans.shortest()),
            mean_us: us(spans.mean()),
            p50_us: us(spans.quantile(0.5)),
            p90_us: us(spans.quantile(0.9)),
            p99_us: us(spans.quantile(0.99)),
            p99_9_us: us(spans.quantile(0.999)),
            p99_99_us: us(spans.quantile(0.9999)),
            max_us: us(spans.longest()),
        }
    }
}

/// What the generator itself cost while measuring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Generated {
    /// CPU seconds of its threads.
    pub cpu_s: f64,
    /// The same for each request, in microseconds.
    pub cpu_us_per_request: f64,
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
    /// System calls that sent or received.
    pub data_calls: u64,
    /// System calls that waited.
    pub waits: u64,
    /// System calls, waiting included, for each datagram.
    pub calls_per_datagram: f64,
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

/// What kept the rate from being higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The generator: more threads or another machine would give more.
    Generator,
    /// The generator seems to be; nobody knows how busy the server was.
    PerhapsGenerator,
    /// The server.
    Server,
    /// Threads waited for cores: this machine is too small for both.
    Cores,
    /// Nobody was busy: the number of requests at a time, the pace, or the network.
    Outstanding,
}

impl Limit {
    /// One line for people.
    pub const fn words(self) -> &'static str {
        match self {
            Limit::Generator => {
                "the generator: its thread was busy all the time and the server was not; use more threads (-t) or another machine"
            }
            Limit::PerhapsGenerator => {
                "perhaps the generator: its thread was busy all the time; --server-pid tells whether the server was too"
            }
            Limit::Server => "the server: it was busy all the time",
            Limit::Cores => {
                "the cores: threads that could run had to wait for one; the server alone could answer more"
            }
            Limit::Outstanding => {
                "neither side was busy: the pace, the requests at a time (-c, -m), or the network"
            }
        }
    }
}

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Connections that were to be made.
    pub connections: usize,
    /// Requests at a time on each.
    pub streams: usize,
    /// Threads of the generator.
    pub threads: usize,
    /// Requests a second that were to begin; none in a closed loop.
    pub target_rate: Option<f64>,
    /// Whether it was ended early.
    pub interrupted: bool,
    /// How long was measured.
    pub seconds: f64,
    /// Requests that were answered with a status below 400, or failed.
    pub requests: u64,
    /// Those that were answered with a status below 400.
    pub succeeded: u64,
    /// Those that failed.
    pub failed: u64,
    /// By kind.
    pub failures: PerFailure,
    /// Requests that failed in the warm-up.
    pub warm_up_failures: u64,
    /// Connections that could not be made, by kind.
    pub connection_failures: PerFailure,
    /// The first thing that went wrong with a connection, in words.
    pub first_fault: Option<String>,
    /// Requests that were outstanding (or overdue, in an open loop) when time was over.
    pub unfinished: u64,
    /// How long the oldest of them had waited.
    pub oldest_unfinished_s: f64,
    /// Requests that never began.
    pub not_begun: u64,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests with a status below 400 a second.
    pub requests_per_second: f64,
    /// Content that arrived.
    pub content_bytes: u64,
    /// The same a second.
    pub content_bytes_per_second: f64,
    /// From the intended beginning of a request to the end of its answer.
    pub latency: Latency,
    /// From a connection's first datagram to the end of its handshake.
    pub handshake: Latency,
    /// What the generator used.
    pub generator: Generated,
    /// What the server used, if it was to be looked at and was there all the time.
    pub server: Option<ServerShare>,
    /// What kept the rate from being higher.
    pub limit: Limit,
    /// The length of the series' slices in seconds, if there is one.
    pub slice_s: Option<f64>,
    /// The series.
    pub series: Vec<Slice>,
}

impl Report {
    /// Whether every request was made and answered well.
    pub fn is_clean(&self) -> bool {
        self.failed == 0
            && self.warm_up_failures == 0
            && self.not_begun == 0
            && self.connection_failures.total() == 0
            && self.succeeded > 0
    }
}

/// Makes the report of what all threads recorded.
pub(super) fn of(
    plan: &Plan,
    threads: usize,
    record: &Record,
    server: Option<&[Times]>,
    interrupted: bool,
) -> Report {
    let seconds = record.elapsed().as_secs_f64();
    let failed = record.failures.total();
    let requests = record.succeeded + failed;
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let generator = generated(record, requests);
    let server = server.filter(|_| seconds > 0.0).map(|threads| server_share(threads, requests, seconds));
    Report {
        connections: plan.connections,
        streams: plan.streams,
        threads,
        target_rate: match plan.pace {
            Pace::Closed => None,
            Pace::Open(rate) => Some(rate),
        },
        interrupted,
        seconds,
        requests,
        succeeded: record.succeeded,
        failed,
        failures: record.failures,
        warm_up_failures: record.warm_up_failures,
        connection_failures: record.connection_failures,
        first_fault: record.first_fault.clone(),
        unfinished: record.unfinished,
        oldest_unfinished_s: record.oldest_unfinished.as_secs_f64(),
        // Whoever ends a run early does not want the rest.
        not_begun: if interrupted && matches!(plan.bound, Bound::Requests(_)) { 0 } else { record.not_begun },
        statuses: record.statuses.iter().collect(),
        requests_per_second: per_second(record.succeeded),
        content_bytes: record.content_bytes,
        content_bytes_per_second: per_second(record.content_bytes),
        latency: Latency::of(&record.latency),
        handshake: Latency::of(&record.handshake),
        generator,
        server,
        limit: limit(&generator, server.as_ref()),
        slice_s: plan.series.map(|length| length.as_secs_f64()),
        series: record.series.clone(),
    }
}

fn generated(record: &Record, requests: u64) -> Generated {
    let usage = &record.usage;
    let datagrams = usage.sent_datagrams + usage.received_datagrams;
    Generated {
        cpu_s: record.times.cpu_s,
        cpu_us_per_request: record.times.cpu_s * 1e6 / requests.max(1) as f64,
        busiest_thread: record.busiest[0],
        waited_for_core: record.busiest[1],
        sent_datagrams: usage.sent_datagrams,
        received_datagrams: usage.received_datagrams,
        lost_packets: record.lost_packets,
        overflowed_datagrams: usage.overflowed,
        data_calls: usage.send_calls + usage.receive_calls,
        waits: usage.waits,
        calls_per_datagram: usage.calls() as f64 / datagrams.max(1) as f64,
    }
}

fn server_share(threads: &[Times], requests: u64, seconds: f64) -> ServerShare {
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

fn limit(generator: &Generated, server: Option<&ServerShare>) -> Limit {
    let is_generator_busy = generator.busiest_thread > GENERATOR_BUSY;
    match server {
        None if is_generator_busy => Limit::PerhapsGenerator,
        Some(server) if is_generator_busy && server.busiest_thread < SERVER_BUSY => Limit::Generator,
        Some(server) if server.busiest_thread >= SERVER_BUSY => Limit::Server,
        Some(server) if generator.waited_for_core.max(server.waited_for_core) > CROWDED => Limit::Cores,
        None if generator.waited_for_core > CROWDED => Limit::Cores,
        _ => Limit::Outstanding,
    }
}

/// A span of time with a fitting unit.
fn span(us: f64) -> String {
    match us {
        us if us < 999.5 => format!("{us:.0} µs"),
        us if us < 9_995.0 => format!("{:.2} ms", us / 1e3),
        us if us < 999_500.0 => format!("{:.0} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

fn counts(failures: &PerFailure) -> String {
    let each: Vec<String> = failures.iter().map(|(kind, count)| format!("{} {count}", kind.name())).collect();
    each.join(", ")
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = [self.p50_us, self.p90_us, self.p99_us, self.p99_9_us, self.p99_99_us, self.max_us];
        for (name, us) in ["p50", "p90", "p99", "p99.9", "p99.99", "max"].into_iter().zip(figures) {
            write!(f, "{name} {}  ", span(us))?;
        }
        write!(f, "mean {}", span(self.mean_us))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let early = if self.interrupted { ", interrupted" } else { "" };
        writeln!(
            f,
            "{} requests in {:.2} s on {} connections x {} streams, {} threads{early}",
            self.requests, self.seconds, self.connections, self.streams, self.threads
        )?;
        writeln!(
            f,
            "rate        {:.0} requests/s, {:.2} MB/s of content",
            self.requests_per_second,
            self.content_bytes_per_second / 1e6
        )?;
        writeln!(f, "latency     {}", self.latency)?;
        writeln!(f, "handshakes  {}: {}", self.handshake.count, self.handshake)?;
        let statuses: Vec<String> =
            self.statuses.iter().map(|(status, count)| format!("{status} x {count}")).collect();
        writeln!(
            f,
            "statuses    {}",
            if statuses.is_empty() { "none".to_owned() } else { statuses.join(", ") }
        )?;
        self.write_failures(f)?;
        let generator = &self.generator;
        writeln!(
            f,
            "generator   {:.2} CPU s, {:.2} µs per request, busiest thread {:.0} % of a core, waited for one {:.0} %",
            generator.cpu_s,
            generator.cpu_us_per_request,
            generator.busiest_thread * 100.0,
            generator.waited_for_core * 100.0
        )?;
        writeln!(
            f,
            "datagrams   {} sent, {} received, {} packets lost, {:.3} system calls per datagram",
            generator.sent_datagrams,
            generator.received_datagrams,
            generator.lost_packets,
            generator.calls_per_datagram
        )?;
        if let Some(server) = &self.server {
            writeln!(
                f,
                "server      {:.2} CPU s, {:.2} µs per request, busiest thread {:.0} % of a core, waited for one {:.0} %",
                server.cpu_s,
                server.cpu_us_per_request,
                server.busiest_thread * 100.0,
                server.waited_for_core * 100.0
            )?;
        }
        write!(f, "limit       {}", self.limit.words())
    }
}

impl Report {
    fn write_failures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.failed > 0 {
            writeln!(f, "failed      {}: {}", self.failed, counts(&self.failures))?;
        }
        if self.warm_up_failures > 0 {
            writeln!(f, "failed      {} more in the warm-up", self.warm_up_failures)?;
        }
        if self.connection_failures.total() > 0 {
            writeln!(
                f,
                "connections {} failed: {}",
                self.connection_failures.total(),
                counts(&self.connection_failures)
            )?;
        }
        if let Some(fault) = &self.first_fault {
            writeln!(f, "fault       {fault}")?;
        }
        if self.not_begun > 0 {
            writeln!(f, "not begun   {}", self.not_begun)?;
        }
        // In a closed loop each place has one outstanding; only old ones are news.
        if self.oldest_unfinished_s > 1.0 {
            let (count, seconds) = (self.unfinished, self.oldest_unfinished_s);
            writeln!(f, "unfinished  {count} at the end, the oldest for {seconds:.1} s")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a slow generator could be taken for a slow server.
    #[test]
    fn whoever_limits_is_named() {
        let generator = |busiest_thread, waited_for_core| Generated {
            busiest_thread,
            waited_for_core,
            ..Generated::default()
        };
        let server = |busiest_thread, waited_for_core| {
            Some(ServerShare { busiest_thread, waited_for_core, ..ServerShare::default() })
        };
        let table = [
            (generator(0.97, 0.0), server(0.5, 0.0), Limit::Generator),
            (generator(0.97, 0.0), server(0.93, 0.0), Limit::Server),
            (generator(0.97, 0.0), None, Limit::PerhapsGenerator),
            (generator(0.5, 0.0), server(0.95, 0.0), Limit::Server),
            (generator(0.5, 0.3), server(0.5, 0.4), Limit::Cores),
            (generator(0.5, 0.3), None, Limit::Cores),
            (generator(0.5, 0.0), server(0.5, 0.0), Limit::Outstanding),
        ];
        for (generator, server, expected) in table {
            assert_eq!(limit(&generator, server.as_ref()), expected, "{generator:?} {server:?}");
        }
    }

    #[test]
    fn spans_have_fitting_units() {
        let table =
            [(0.0, "0 µs"), (999.0, "999 µs"), (1_500.0, "1.50 ms"), (99_000.0, "99 ms"), (2e6, "2.00 s")];
        table.into_iter().for_each(|(us, text)| assert_eq!(span(us), text));
    }
}
