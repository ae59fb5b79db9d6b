//! A report in which nothing happened, for tests of what is made of reports.

use super::cost::GeneratorCost;
use super::kinds::HandshakeKinds;
use super::latency::Latency;
use super::limit::Limit;
use super::report::Report;
use crate::PerFailure;
use std::collections::BTreeMap;

/// The report.
pub(super) fn report() -> Report {
    Report {
        protocol: "HTTP/3",
        address: ([127, 0, 0, 1], 1).into(),
        connections: 1,
        streams: 1,
        new_connections: false,
        threads: 1,
        target_rate: None,
        interrupted: false,
        seconds: 1.0,
        requests: 0,
        succeeded: 0,
        failed: 0,
        failures: PerFailure::default(),
        warm_up_failures: 0,
        connection_failures: PerFailure::default(),
        first_fault: None,
        unfinished: 0,
        oldest_unfinished_s: 0.0,
        not_begun: 0,
        statuses: BTreeMap::new(),
        requests_per_second: 0.0,
        content_bytes: 0,
        content_bytes_per_second: 0.0,
        latency: Latency::default(),
        handshake: Latency::default(),
        handshake_kinds: HandshakeKinds::default(),
        key_exchange: None,
        first_byte: Latency::default(),
        handshakes_per_second: None,
        generator: GeneratorCost::default(),
        server: None,
        limit: Limit::Outstanding,
        slice_s: None,
        series: Vec::new(),
    }
}
