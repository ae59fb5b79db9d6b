//! What the records say, in sentences.

use super::grid::{ALL, Part, SHARED};
use super::link_profile::{LinkProfile, Marking};
use super::record::{Record, millis, name};
use super::tables::describe;
use recovery::congestion::Algorithm;

/// Sentences with figures, made from the records.
pub(super) fn findings(records: &[Record]) -> Vec<String> {
    let mut findings = Vec::new();
    findings.extend(clean(records));
    findings.extend(losses(records));
    findings.extend(waits(records));
    findings.extend(marks(records));
    findings.extend(fairness(records));
    findings
}

fn of(records: &[Record], part: Part, kind: Algorithm) -> impl Iterator<Item = &Record> + Clone {
    records.iter().filter(move |record| record.part == part && record.is_of(&[kind]))
}

/// For every controller, what it makes of links that lose nothing by chance.
fn clean(records: &[Record]) -> Vec<String> {
    let sentence = |kind| {
        let clean = of(records, Part::Alone, kind).filter(|record| record.link_profile.loss_ppm == 0);
        let worst =
            clean.clone().min_by(|a, b| a.outcome.utilisation().total_cmp(&b.outcome.utilisation()))?;
        let used: Vec<f64> = clean.map(|record| record.outcome.utilisation()).collect();
        let mean = used.iter().sum::<f64>() / used.len() as f64;
        Some(format!(
            "{} used {:.1} % of the link on average where nothing is lost by chance, and least, {:.1} %, at {}.",
            name(kind),
            mean * 100.0,
            worst.outcome.utilisation() * 100.0,
            describe(&worst.link_profile)
        ))
    };
    ALL.into_iter().filter_map(sentence).collect()
}

fn losses(records: &[Record]) -> Option<String> {
    let at = |kind, ppm| {
        let link_profile = LinkProfile::new(100, 50, 1.0).with_loss(ppm);
        let found = of(records, Part::Alone, kind).find(|record| record.link_profile == link_profile)?;
        Some(found.outcome.utilisation() * 100.0)
    };
    let line = |kind| {
        let figures = (at(kind, 1_000)?, at(kind, 10_000)?, at(kind, 50_000)?);
        Some(format!("{} {:.1}, {:.1} and {:.1} %", name(kind), figures.0, figures.1, figures.2))
    };
    let lines: Option<Vec<String>> = ALL.into_iter().map(line).collect();
    Some(format!(
        "At 100 Mbit/s and 50 ms, of 0.1, 1 and 5 % loss by chance each leaves so much: {}.",
        lines?.join("; ")
    ))
}

fn waits(records: &[Record]) -> Option<String> {
    let at = |kind| {
        let found = of(records, Part::Alone, kind)
            .find(|record| record.link_profile == LinkProfile::new(100, 50, 4.0))?;
        let outcome = &found.outcome;
        Some(format!("{} {:.0} and {:.0} ms", name(kind), millis(outcome.wait_p50), millis(outcome.wait_p95)))
    };
    let lines: Option<Vec<String>> = ALL.into_iter().map(at).collect();
    Some(format!(
        "In a queue of four products (200 ms) half of the packets, and 95 %, wait at most: {}.",
        lines?.join("; ")
    ))
}

fn marks(records: &[Record]) -> Option<String> {
    let marked = of(records, Part::Marked, Algorithm::Prague);
    let marked: Vec<&Record> = marked.filter(|record| record.link_profile.marking == Marking::L4s).collect();
    let least = marked.iter().map(|record| record.outcome.utilisation()).min_by(f64::total_cmp)?;
    let longest = marked.iter().map(|record| millis(record.outcome.wait_p95)).max_by(f64::total_cmp)?;
    Some(format!(
        "On queues that mark as L4S ones do, Prague's packets wait {longest:.1} ms at most (p95 of the worst link), and it uses \
         {:.1} % of the link at least.",
        least * 100.0
    ))
}

fn fairness(records: &[Record]) -> Vec<String> {
    let pairs = records.iter().filter(|record| record.part == Part::Pair);
    let (same, other): (Vec<&Record>, Vec<&Record>) = pairs.partition(|record| {
        let kinds: Vec<Algorithm> = record.outcome.flows.iter().map(|flow| flow.algorithm).collect();
        kinds.windows(2).all(|both| both[0] == both[1])
    });
    let worst = |records: &[&Record]| {
        let record = records.iter().min_by(|a, b| a.outcome.jain().total_cmp(&b.outcome.jain()))?;
        let flows = &record.outcome.flows;
        let flows: Vec<String> = flows
            .iter()
            .map(|flow| format!("{} {:.0} %", name(flow.algorithm), flow.share * 100.0))
            .collect();
        let place = describe(&record.link_profile);
        Some(format!("{} ({place}; Jain's index {:.2})", flows.join(" and "), record.outcome.jain()))
    };
    let links = SHARED.len();
    let same = worst(&same)
        .map(|text| format!("Of two flows of a kind on {links} links, the least even shares: {text}."));
    let other =
        worst(&other).map(|text| format!("Of two flows of different kinds, the least even shares: {text}."));
    same.into_iter().chain(other).collect()
}
