//! The figures of a run, as machines read them; text.rs is for people.

use super::cost::{GeneratorCost, ServerShare, generated, server_share};
use super::failure::PerFailure;
use super::kinds::HandshakeKinds;
use super::latency::Latency;
use super::limit::{Limit, limit};
use super::plan::{Bound, LoadPlan, Pace, Reuse};
use super::record::Record;
use super::series::Slice;
use cpu::times::Times;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A slice of the time series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SliceReport {
    /// When it began, in seconds since measuring did.
    pub from_s: f64,
    /// Requests that were answered with a status below 400.
    pub succeeded: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Content that arrived, in bytes.
    pub content_bytes: u64,
    /// Half of the latencies are not longer, in microseconds; this and the next are true to a hundredth.
    pub p50_us: f64,
    /// 99 % are not longer.
    pub p99_us: f64,
    /// The longest.
    pub max_us: f64,
}

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was spoken.
    pub protocol: &'static str,
    /// The address that was asked.
    pub address: SocketAddr,
    /// Connections that were to be made; with a new one for each request, those at a time.
    pub connections: usize,
    /// Requests at a time on each.
    pub streams: usize,
    /// Whether each request had a connection of its own.
    pub new_connections: bool,
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
    /// The first thing that went wrong, in words.
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
    /// From a connection's first packet to the end of its handshake.
    pub handshake: Latency,
    /// Handshakes by kind.
    pub handshake_kinds: HandshakeKinds,
    /// The key exchange of the last connection over HTTP/3, as IANA names it.
    pub key_exchange: Option<&'static str>,
    /// From the intended beginning of a request to the head of its answer, where each has a connection of its own.
    pub first_byte: Latency,
    /// Handshakes a second, where each request had its own.
    pub handshakes_per_second: Option<f64>,
    /// What the generator used.
    pub generator: GeneratorCost,
    /// What the server used, if it was to be looked at and was there all the time.
    pub server: Option<ServerShare>,
    /// What kept the rate from being higher.
    pub limit: Limit,
    /// The length of the series' slices in seconds, if there is one.
    pub slice_s: Option<f64>,
    /// The series.
    pub series: Vec<SliceReport>,
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

/// What is known beside the record: threads of the generator and of the server, and whether the user ended the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunContext<'a> {
    pub(super) threads: usize,
    pub(super) server: Option<&'a [Times]>,
    pub(super) interrupted: bool,
}

/// Makes the report of what all threads recorded.
pub(super) fn of(plan: &LoadPlan, record: &Record, around: RunContext<'_>) -> Report {
    let RunContext { threads, server, interrupted } = around;
    let seconds = record.elapsed().as_secs_f64();
    let failed = record.failures.total();
    let requests = record.succeeded + failed;
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let generator = generated(record, requests);
    let server = server.filter(|_| seconds > 0.0).map(|threads| server_share(threads, requests, seconds));
    let new_connections = plan.reuse == Reuse::Never;
    Report {
        protocol: plan.protocol.name(),
        address: plan.address,
        connections: plan.connections,
        streams: plan.streams,
        new_connections,
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
        // A run that ends early reports no later slices.
        not_begun: if interrupted && matches!(plan.bound, Bound::Requests(_)) { 0 } else { record.not_begun },
        statuses: record.statuses.iter().collect(),
        requests_per_second: per_second(record.succeeded),
        content_bytes: record.content_bytes,
        content_bytes_per_second: per_second(record.content_bytes),
        latency: Latency::of(&record.latency),
        handshake: Latency::of(&record.handshake),
        handshake_kinds: record.kinds,
        key_exchange: record.key_exchange,
        first_byte: Latency::of(&record.first_byte),
        handshakes_per_second: new_connections.then(|| per_second(record.handshake.count())),
        generator,
        server,
        limit: limit(&generator, server.as_ref()),
        slice_s: plan.series.map(|length| length.as_secs_f64()),
        series: series(plan, record.series.slices(), seconds),
    }
}

fn series(plan: &LoadPlan, slices: &[Slice], seconds: f64) -> Vec<SliceReport> {
    let length = plan.series.map_or(0.0, |length| length.as_secs_f64());
    let report = |(index, slice): (usize, &Slice)| {
        let latency = Latency::of(&slice.latency());
        SliceReport {
            from_s: index as f64 * length,
            succeeded: slice.succeeded,
            failed: slice.failed,
            content_bytes: slice.content_bytes,
            p50_us: latency.p50_us,
            p99_us: latency.p99_us,
            max_us: slice.longest_ns as f64 / 1e3,
        }
    };
    without_sliver(slices, length, seconds).iter().enumerate().map(report).collect()
}

/// A run ends a little later than it should: what came in less than a twentieth of a slice belongs to the slice before, or its rate
/// would be one of chance.
fn without_sliver(slices: &[Slice], length: f64, seconds: f64) -> Vec<Slice> {
    let mut slices = slices.to_vec();
    let began = slices.len().saturating_sub(1) as f64 * length;
    if slices.len() > 1
        && seconds - began < length / 20.0
        && let Some(sliver) = slices.pop()
        && let Some(last) = slices.last_mut()
    {
        last.add(&sliver);
    }
    slices
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, the last line of a series could show a rate that never was: one answer in some microseconds.
    #[test]
    fn a_sliver_belongs_to_the_slice_before() {
        let slice = |succeeded| {
            let mut slice = Slice::default();
            slice.succeeded = succeeded;
            slice
        };
        let counts = |slices: &[Slice], seconds| -> Vec<u64> {
            without_sliver(slices, 0.5, seconds).iter().map(|slice| slice.succeeded).collect()
        };
        let three = [slice(10), slice(20), slice(3)];
        assert_eq!(counts(&three, 1.001), [10, 23]);
        assert_eq!(counts(&three, 1.03), [10, 20, 3]);
        assert_eq!(counts(&three[..1], 0.001), [10]);
        assert!(counts(&[], 0.0).is_empty());
    }
}
