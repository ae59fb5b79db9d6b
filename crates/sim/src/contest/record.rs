//! What is kept of a heat: what was run and what it came to, in one flat piece that a file can hold.

use super::course::{Course, Marking};
use super::grid::{Item, Part};
use super::run::Outcome;
use base::time::Duration;
use recovery::congestion::Algorithm;
use serde_json::{Value, json};

/// One heat.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The table.
    pub part: Part,
    /// The link.
    pub course: Course,
    /// When measuring began, and for how long.
    pub times: [Duration; 2],
    /// What came out.
    pub outcome: Outcome,
}

impl Record {
    /// Of a heat that has been run.
    pub fn new(item: &Item, outcome: Outcome) -> Record {
        let times = [item.heat.warm_up, item.heat.span];
        Record { part: item.part, course: item.heat.course, times, outcome }
    }

    /// Whether these flows ran, in this order.
    pub(super) fn is_of(&self, algorithms: &[Algorithm]) -> bool {
        self.outcome.flows.iter().map(|flow| flow.algorithm).eq(algorithms.iter().copied())
    }

    /// All of it.
    pub(super) fn to_json(&self) -> Value {
        let Record { course, outcome, .. } = self;
        let flows: Vec<Value> = outcome
            .flows
            .iter()
            .map(|flow| {
                json!({
                    "controller": name(flow.algorithm),
                    "share": rounded(flow.share),
                    "sent_packets": flow.sent,
                    "lost_packets": flow.lost,
                    "probe_timeouts": flow.timeouts,
                })
            })
            .collect();
        json!({
            "part": format!("{:?}", self.part).to_lowercase(),
            "bits_per_second": course.bits_per_second,
            "rtt_ms": millis(course.rtt),
            "loss_ppm": course.loss_ppm,
            "queue_products": course.queue,
            "queue_bytes": course.queue_bytes(),
            "marking": marking(course.marking),
            "warm_up_s": self.times[0].as_secs_f64(),
            "span_s": self.times[1].as_secs_f64(),
            "utilisation": rounded(outcome.utilisation()),
            "jain": rounded(outcome.jain()),
            "wait_p50_ms": rounded(millis(outcome.wait_p50)),
            "wait_p95_ms": rounded(millis(outcome.wait_p95)),
            "datagrams": outcome.entered,
            "overflowed": outcome.overflowed,
            "marked": outcome.marked,
            "flows": flows,
        })
    }
}

/// Five digits after the point are more than a run is good for.
fn rounded(value: f64) -> f64 {
    (value * 1e5).round() / 1e5
}

pub(super) fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// What people call a controller.
pub(super) const fn name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::NewReno => "NewReno",
        Algorithm::Cubic => "CUBIC",
        Algorithm::Bbr => "BBR",
        Algorithm::Prague => "Prague",
    }
}

pub(super) const fn marking(marking: Marking) -> &'static str {
    match marking {
        Marking::None => "none",
        Marking::L4s => "L4S",
        Marking::Classic => "classic ECN",
    }
}
