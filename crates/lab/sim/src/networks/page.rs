//! The page of the study: findings, method, and one table for each axis.

use super::record::{ALGORITHMS, Record, name};
use super::run::LIMIT;
use recovery::congestion::Algorithm;
use std::collections::BTreeMap;

/// A controller this near the best of a cell counts as good there.
const NEAR: f64 = 1.1;

/// The page as Markdown, of the records of one run.
pub fn page(revision: &str, seeds: &[u64], records: &[Record]) -> String {
    let mut text = String::from(HEAD);
    text += &format!(
        "Made by `cargo xtask networks` with revision {revision} and the seeds {seeds:?}; it writes this page and \
         `results.json` anew. What the figures have led to is in [reading.md](reading.md).\n\n## What came out\n\n"
    );
    for line in findings(records) {
        text += &format!("- {line}\n");
    }
    text += METHOD;
    let mut axes: Vec<&str> = records.iter().map(|record| record.axis.as_str()).collect();
    axes.dedup();
    for axis in axes {
        let of_axis: Vec<&Record> = records.iter().filter(|record| record.axis == axis).collect();
        text += &table(axis, &of_axis);
    }
    text
}

/// The records of a cell and a work, by both.
pub(super) fn contests<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<Vec<&'a Record>> {
    let mut order: Vec<(&str, &str, &str)> = Vec::new();
    let mut by_key: BTreeMap<(&str, &str, &str), Vec<&Record>> = BTreeMap::new();
    for record in records {
        let key = (record.axis.as_str(), record.cell.as_str(), record.work.as_str());
        let found = by_key.entry(key).or_insert_with(|| {
            order.push(key);
            Vec::new()
        });
        found.push(record);
    }
    order.iter().filter_map(|key| by_key.remove(key)).collect()
}

/// The least time of a contest among the controllers that do not choose; among all where none of those is there.
pub(super) fn best(contest: &[&Record]) -> f64 {
    let least = |records: &mut dyn Iterator<Item = &&Record>| {
        records.map(|record| record.time_ms).fold(f64::INFINITY, f64::min)
    };
    let fixed = least(&mut contest.iter().filter(|record| record.algorithm != name(Algorithm::Auto)));
    if fixed.is_finite() { fixed } else { least(&mut contest.iter()) }
}

fn findings(records: &[Record]) -> Vec<String> {
    let contests = contests(records);
    let mut lines = Vec::new();
    for algorithm in ALGORITHMS {
        let mut ratios: Vec<(f64, &Record)> = Vec::new();
        for contest in &contests {
            let own = contest.iter().filter(|record| record.algorithm == name(algorithm));
            ratios.extend(own.map(|record| (record.time_ms / best(contest), *record)));
        }
        ratios.sort_by(|one, other| one.0.total_cmp(&other.0));
        let near = ratios.iter().filter(|(ratio, _)| *ratio <= NEAR).count();
        let mean = ratios.iter().map(|(ratio, _)| ratio.ln()).sum::<f64>() / ratios.len().max(1) as f64;
        let Some((worst, record)) = ratios.last() else { continue };
        lines.push(format!(
            "{} is within a tenth of the best controller in {near} of {} contests; on the geometric mean it takes {:.2} of \
             the best time, at worst {worst:.1} ({}: {}, {}).",
            name(algorithm),
            ratios.len(),
            mean.exp(),
            record.axis,
            record.cell,
            record.work,
        ));
    }
    let orderly = records.iter().filter(|record| record.loses_nothing);
    if let Some(record) = orderly.max_by(|one, other| one.needless.total_cmp(&other.needless)) {
        lines.push(format!(
            "Where nothing is lost by chance, at most {:.1} % of packets are sent twice for nothing ({}: {}, {}, {}).",
            record.needless * 100.0,
            record.axis,
            record.cell,
            record.work,
            record.algorithm
        ));
    }
    let unfinished: usize = records.iter().map(|record| record.unfinished).sum();
    lines.push(format!("{unfinished} downloads were not there after {} s.", LIMIT.as_secs_f64()));
    lines
}

/// Times by controller, each with its ratio to the best; then what the best one's figures hide.
fn table(axis: &str, records: &[&Record]) -> String {
    let names: Vec<&str> = ALGORITHMS.into_iter().map(name).collect();
    let mut text = format!(
        "\n### {axis}\n\n| cell | work | {} | longest stall, ms | sent twice for nothing, % |\n|---|---|{}\n",
        names.join(" | "),
        "---:|".repeat(names.len() + 2)
    );
    for contest in contests(records.iter().copied()) {
        let Some(first) = contest.first() else { continue };
        let best = best(&contest);
        let in_order = |figure: &dyn Fn(&Record) -> String, between: &str| {
            let cells = names.iter().map(|name| {
                contest
                    .iter()
                    .find(|record| record.algorithm == *name)
                    .map_or_else(String::new, |r| figure(r))
            });
            cells.collect::<Vec<_>>().join(between)
        };
        text += &format!(
            "| {} | {} | {} | {} | {} |\n",
            first.cell,
            first.work,
            in_order(&|record| time(record, best), " | "),
            in_order(&|record| format!("{:.0}", record.stall_ms), " / "),
            in_order(&|record| format!("{:.1}", record.needless * 100.0), " / "),
        );
    }
    text
}

/// Milliseconds, and the ratio to the best; the best in bold.
fn time(record: &Record, best: f64) -> String {
    let ratio = record.time_ms / best;
    let late = if record.unfinished > 0 { " (unfinished)" } else { "" };
    if ratio < 1.005 {
        format!("**{:.0}**{late}", record.time_ms)
    } else {
        format!("{:.0} ×{ratio:.2}{late}", record.time_ms)
    }
}

const HEAD: &str = "\
# Bad networks

How long do downloads take over links that lose, reorder, delay, police, change and fall silent, by each of tercel's controllers?

";

const METHOD: &str = "
## How it was measured

- Whole endpoints in the simulator: HTTP/3, workers, connections, TLS, pacer, delayed acknowledgements, the search for the packet
  size, flow control, all as by default. Time and the network are virtual, chance comes from a seed: the same program gives the
  same figures on every machine.
- A download is one connection: handshake, requests, responses. A page is 30 resources of 600 kB in all, asked for at once; 10 MB
  are downloaded at 10 Mbit/s and more, 100 MB at 500. Times are medians over the seeds, from the client's first packet to its last byte.
- The base is 100 Mbit/s, a round trip of 40 ms, and a queue of one product. Each table varies one thing; the last one has what
  goes wrong together.
- Loss, reordering, jitter and outages strike both directions, each for itself. Queue and policer stand in the way of the data
  only. Datagrams that are late are late by exactly so much, so that others overtake them; jitter keeps the order. Loss in runs
  is Gilbert's model of two states. An outage begins after four round trips.
- Acknowledgements: of datagrams of at most 100 bytes on the way to the server one in 8 passes, and one each 25 ms; those that come
  together wait for the next 10 ms. Rates change on the way to the client: the first row's is 10 Mbit/s from 0.5 to 2.5 s, the second's
  100 from 1 to 1.5 s; in the mobile row it is multiplied by 1/2 to 2 each 100 ms, by chance but alike in each run, with a queue of three products.
- The longest stall is the longest time without content between the first and the last byte, NewReno / CUBIC / BBR / Prague / auto.
- Sent twice for nothing: packets declared lost that were not, of those sent, in the same order.

## Figures

![Time over the best fixed controller's](heat.svg)

The best time of a row is bold; the others have their ratio to it. That of auto, which begins as CUBIC and becomes BBR by evidence
(decision 023), is to the best of the four others: its regret.
";
