//! The study that the records make.

use super::findings::findings;
use super::plots::plots;
use super::record::Record;
use super::tables::tables;
use report::model::{Block, Study};
use serde_json::{Value, json};

/// Everything but the pictures' files; those are returned with their names. `revision` is that of the program that made the
/// records.
pub fn study(revision: &str, records: &[Record]) -> (Study, Vec<(&'static str, report::model::Plot)>) {
    let plots = plots(records);
    let tables = tables(records).into_iter().map(Block::Table);
    let pictures = plots.iter().map(|(_, plot)| Block::Plot(plot.clone()));
    let study = Study {
        id: "controllers".to_owned(),
        title: "Congestion controllers on links".to_owned(),
        question: "What do NewReno, CUBIC, BBR, Prague and auto, which chooses, make of links from 1 Mbit/s to 10 Gbit/s, alone and beside one \
                   another?"
            .to_owned(),
        method: lines(&METHOD),
        findings: findings(records),
        blocks: pictures.chain(tables).collect(),
        notes: lines(&NOTES),
        problem: None,
        seconds: 0.0,
        raw: json!({
            "revision": revision,
            "records": records.iter().map(Record::to_json).collect::<Vec<Value>>(),
        }),
    };
    (study, plots)
}

/// The revision and the records that [`study`] has put into a study's `raw`; `None` if it is anything else.
pub fn unpack(raw: &Value) -> Option<(String, Vec<Record>)> {
    let revision = raw.get("revision")?.as_str()?.to_owned();
    let records: Option<Vec<Record>> =
        raw.get("records")?.as_array()?.iter().map(Record::from_json).collect();
    Some((revision, records?))
}

fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

const METHOD: [&str; 10] = [
    "Whole endpoints in the simulator: workers, connections, TLS, the pacer, delayed acknowledgements, the search for the \
     packet size, all as by default but for flow control, which is out of the way. Time and the network are virtual, chance \
     comes from a seed: the same program gives the same figures on every machine.",
    "A flow sends without end over one queue, which holds so many bandwidth-delay products (four packets at least), then over \
     half of the round trip; acknowledgements come back over the other half, and nothing holds them up.",
    "A flow alone is measured for 60 s after 20 s up to 10 Mbit/s, 45 s after 15 s at 100 Mbit/s, 8 s after 4 s at 1 Gbit/s, 2 s \
     after 2 s at 10 Gbit/s; two flows for 60 s after 30 s, the second beginning half a second after the first.",
    "Used: payload that arrived in order, over what the link could carry. Headers and tags take 2.3 % of a datagram of 1,452 \
     bytes, so 97.7 % is all of it.",
    "Wait: how long datagrams stood in the queue, as percentiles of those that passed it.",
    "Lost: packets that the sender declared lost, of those sent; what is lost by chance is among them.",
    "An L4S queue marks ECT(1) above 1 ms of wait, or above two full packets where those take longer, and ECT(0) above 15 ms. A \
     classic ECN queue marks both above 15 ms. Both mark every packet above the step, and hold four products.",
    "CoDel (RFC 8289: 5 ms, 100 ms) and PIE (RFC 8033: 15 ms, every 15 ms, a burst of 150 ms; the basic rule) drop early, or mark what \
     says ECT instead, PIE while it would drop a tenth at most.",
    "auto begins as CUBIC and becomes BBR by evidence (docs/decisions/023).",
    "Loss by chance strikes each datagram for itself, on the way of the data only.",
];

const NOTES: [&str; 5] = [
    "Left out: paths whose product is less than four packets (1 Mbit/s below 50 ms, 10 Mbit/s at 1 ms), since no window is that \
     small; 1 Gbit/s above 50 ms and 10 Gbit/s above 10 ms, where NewReno and CUBIC would need minutes to settle.",
    "Where a cycle of NewReno's or Prague's growth is longer than the run (100 Mbit/s from 100 ms on, 1 Gbit/s from 10 ms on), \
     their figures show the part of it after the first slow start.",
    "The queue is one first-in first-out queue; the two queues of RFC 9332, which keep L4S flows apart from others and balance \
     them, are not modelled. So Prague beside others on the L4S queue shows what happens without them.",
    "One seed. Another moves the figures of single flows by a few tenths of a per cent, those of lossy links and of pairs by more.",
    "Both flows of a pair leave from one host, and their acknowledgements are never lost or late.",
];
