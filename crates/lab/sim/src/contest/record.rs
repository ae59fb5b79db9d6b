//! What is kept of a heat: what was run and what it came to, in one flat piece that a file can hold.

use super::grid::{ALL, Item, Part};
use super::link_profile::{Dropping, LinkProfile, Marking};
use super::run::{Flow, Outcome};
use base::time::Duration;
use recovery::congestion::Algorithm;
use serde_json::{Value, json};

/// One heat.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The table.
    pub part: Part,
    /// The link.
    pub link_profile: LinkProfile,
    /// When measuring began, and for how long.
    pub times: [Duration; 2],
    /// What came out.
    pub outcome: Outcome,
}

impl Record {
    /// Of a heat that has been run.
    pub fn new(item: &Item, mut outcome: Outcome) -> Record {
        // As the file will have it: or else a page made from the file would differ in last digits.
        outcome.flows.iter_mut().for_each(|flow| flow.share = rounded(flow.share));
        for wait in [&mut outcome.wait_p50, &mut outcome.wait_p95] {
            *wait = Duration::from_nanos((rounded(millis(*wait)) * 1e6).round() as u64);
        }
        let times = [item.heat.warm_up, item.heat.span];
        Record { part: item.part, link_profile: item.heat.link_profile, times, outcome }
    }

    /// Whether the item was run.
    pub fn is_for(&self, item: &Item) -> bool {
        let flows: Vec<Algorithm> = item.heat.entrants.iter().map(|flow| flow.algorithm).collect();
        let what = (self.part, self.link_profile, self.times);
        what == (item.part, item.heat.link_profile, [item.heat.warm_up, item.heat.span]) && self.is_of(&flows)
    }

    /// Whether these flows ran, in this order.
    pub(super) fn is_of(&self, algorithms: &[Algorithm]) -> bool {
        self.outcome.flows.iter().map(|flow| flow.algorithm).eq(algorithms.iter().copied())
    }

    /// What `Record::to_json` has written; `None` if it is anything else.
    pub fn from_json(value: &Value) -> Option<Record> {
        let number = |key: &str| value.get(key)?.as_f64();
        let count = |key: &str| value.get(key)?.as_u64();
        let span = |key: &str, unit: f64| Some(Duration::from_nanos((number(key)? * unit).round() as u64));
        let text = |key: &str| value.get(key)?.as_str();
        let link_profile = LinkProfile {
            bits_per_second: count("bits_per_second")?,
            rtt: span("rtt_ms", 1e6)?,
            loss_ppm: u32::try_from(count("loss_ppm")?).ok()?,
            queue: number("queue_products")?,
            marking: *MARKINGS.iter().find(|kind| Some(marking(**kind)) == text("marking"))?,
            // Records from before there was a choice have none.
            dropping: text("dropping").map_or(Some(Dropping::Tail), |name| {
                DROPPINGS.into_iter().find(|kind| dropping(*kind) == name)
            })?,
        };
        let flows: Option<Vec<Flow>> = value.get("flows")?.as_array()?.iter().map(flow_from_json).collect();
        let outcome = Outcome {
            flows: flows?,
            wait_p50: span("wait_p50_ms", 1e6)?,
            wait_p95: span("wait_p95_ms", 1e6)?,
            entered: count("datagrams")?,
            overflowed: count("overflowed")?,
            marked: count("marked")?,
        };
        let part = *PARTS.iter().find(|part| Some(part_name(**part)) == text("part"))?;
        Some(Record { part, link_profile, times: [span("warm_up_s", 1e9)?, span("span_s", 1e9)?], outcome })
    }

    /// All of it.
    pub(super) fn to_json(&self) -> Value {
        let Record { link_profile, outcome, .. } = self;
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
            "part": part_name(self.part),
            "bits_per_second": link_profile.bits_per_second,
            "rtt_ms": millis(link_profile.rtt),
            "loss_ppm": link_profile.loss_ppm,
            "queue_products": link_profile.queue,
            "queue_bytes": link_profile.queue_bytes(),
            "marking": marking(link_profile.marking),
            "dropping": dropping(link_profile.dropping),
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

fn flow_from_json(value: &Value) -> Option<Flow> {
    let count = |key: &str| value.get(key)?.as_u64();
    Some(Flow {
        algorithm: *ALL
            .iter()
            .find(|kind| value.get("controller").is_some_and(|text| text == name(**kind)))?,
        share: value.get("share")?.as_f64()?,
        sent: count("sent_packets")?,
        lost: count("lost_packets")?,
        timeouts: count("probe_timeouts")?,
    })
}

const PARTS: [Part; 4] = [Part::Alone, Part::Marked, Part::Start, Part::Pair];
const MARKINGS: [Marking; 4] = [Marking::None, Marking::L4s, Marking::Classic, Marking::Early];
const DROPPINGS: [Dropping; 3] = [Dropping::Tail, Dropping::CoDel, Dropping::Pie];

const fn part_name(part: Part) -> &'static str {
    match part {
        Part::Alone => "alone",
        Part::Marked => "marked",
        Part::Start => "start",
        Part::Pair => "pair",
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
        Algorithm::Auto => "auto",
    }
}

pub(super) const fn marking(marking: Marking) -> &'static str {
    match marking {
        Marking::None => "none",
        Marking::L4s => "L4S",
        Marking::Classic => "classic ECN",
        Marking::Early => "instead of drops",
    }
}

pub(super) const fn dropping(dropping: Dropping) -> &'static str {
    match dropping {
        Dropping::Tail => "tail",
        Dropping::CoDel => "CoDel",
        Dropping::Pie => "PIE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Or else a page made from a file would show something else than the page of the run.
    #[test]
    fn a_record_survives_its_file() {
        for (part, kind) in PARTS.into_iter().zip(MARKINGS) {
            let flow = Flow { algorithm: Algorithm::Bbr, share: 0.25, sent: 7, lost: 1, timeouts: 2 };
            let outcome = Outcome {
                flows: vec![flow, Flow { algorithm: Algorithm::Prague, ..flow }],
                wait_p50: Duration::from_micros(1_250),
                wait_p95: Duration::from_millis(3),
                entered: 10,
                overflowed: 1,
                marked: 4,
            };
            let link_profile = LinkProfile::new(10, 30, 0.25)
                .with_loss(1_000)
                .with_marking(kind)
                .with_dropping(Dropping::Pie);
            let times = [Duration::from_secs(3), Duration::from_secs(60)];
            let record = Record { part, link_profile, times, outcome };
            assert_eq!(Record::from_json(&record.to_json()), Some(record));
        }
        assert_eq!(Record::from_json(&json!({"part": "alone"})), None);
    }
}
