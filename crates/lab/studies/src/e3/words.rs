//! What the study says in words; every sentence is made from the figures.

use report::stats::Ratio;

use super::series::{VariantTrials, lower};
use super::trial::Trial;
use super::variant::{self, Variant};
use super::{Cores, REPEATED, Scope};

/// How many times the median the 99.99th percentile may be.
const NEAR: f64 = 10.0;
/// A thread that waits for a core for a larger share of the time than this is held back by others.
const CROWDED: f64 = 0.10;

/// A line while measuring goes on.
pub(super) fn progress(lane: &VariantTrials, round: usize, rounds: usize) -> String {
    let name = lane.variant.name;
    if let Some(problem) = &lane.problem {
        return format!("{name}: left out: {problem}");
    }
    let last = |outstanding: usize| lane.rates(outstanding).last().copied();
    let one = last(1).unwrap_or_default();
    let p50 = lane.percentile(1, 0).unwrap_or_default();
    let peak = lane.peak().map_or(0.0, |(rate, _)| rate);
    format!(
        "round {round} of {rounds}  {name:32} {one:7.0} requests/s one at a time, p50 {p50:.1} µs; peak {peak:.0} requests/s"
    )
}

/// How it was measured.
pub(super) fn method(scope: &Scope, cores: &Cores) -> Vec<String> {
    let [server, client] = cores.one;
    vec![
        "tercel perf serve and tercel perf client (draft-banks-quic-performance) in two network namespaces that a veth pair joins, \
         with Ethernet's MTU of 1,500 bytes; requests of 512 bytes, answers of 8,192, each on a stream of its own; \
         TLS_AES_128_GCM_SHA256; packets of at most 1,452 bytes of UDP payload."
            .to_owned(),
        format!(
            "Server on core {server}, client on core {client}, both on the path that the row names. Closed loop: an answer makes \
             room for the next request."
        ),
        "Latency is from the turn in which a request is written to the turn in which the last byte of its answer arrives, by the \
         client's clock, in an HDR histogram of three digits. A percentile is the median of the trials', and is left out where \
         fewer than two requests lie beyond it."
            .to_owned(),
        format!(
            "Each point is measured for {} s after {} s of warm-up; {REPEATED:?} outstanding in {} rounds, which go through all \
             paths in turn, the other points in the first round only.",
            scope.seconds,
            scope.warm_up,
            scope.repetitions + 1
        ),
        "interrupt: a worker without work sleeps until the kernel wakes it. spinning: it never sleeps. busy-polling: it never \
         sleeps, and the driver's part of receiving runs within its own system calls. In every mode transport and application \
         share one thread: nothing switches between them."
            .to_owned(),
        "Trains are cut before they cross the veth pair, as on a wire, but where the row says whole. Bare datagrams are the same \
         exchange through the same port without QUIC (tercel perf serve --echo), once in each round: what remains of the latency is the \
         protocol's, and a tail that they have too is the machine's."
            .to_owned(),
    ]
}

fn find(lanes: &[VariantTrials], variant: Variant) -> Option<&VariantTrials> {
    lanes.iter().find(|lane| lane.variant == variant && !lane.points.is_empty())
}

/// What came out.
pub(super) fn findings(single: &[VariantTrials], paired: &[VariantTrials], cores: &Cores) -> Vec<String> {
    let mut said = Vec::new();
    let comparisons = [
        (variant::DRIVER, variant::PLAIN),
        (variant::DRIVER, variant::GSO),
        (variant::DRIVER_SPIN, variant::PLAIN),
        (variant::DRIVER_SPIN, variant::GSO_SPIN),
    ];
    for (xdp, udp) in comparisons {
        said.extend(find(single, xdp).zip(find(single, udp)).and_then(|(xdp, udp)| compared(xdp, udp)));
    }
    said.extend(floors(single));
    said.extend(tails(single));
    said.extend(four(single));
    said.extend(flattening(single));
    if cores.are_enough {
        said.extend(doubling(single, paired));
    }
    said
}

/// (a)
fn compared(xdp: &VariantTrials, udp: &VariantTrials) -> Option<String> {
    let ratio = Ratio::by_rounds(&xdp.rates(1), &udp.rates(1))?;
    let (lower, of) = lower(xdp, udp, 1);
    let verdict = match ratio {
        _ if ratio.spans_one() => "which is no difference",
        Ratio { low, .. } if low >= 2.0 => "as published, more than twice as many",
        Ratio { low, high, .. } if low > 1.0 && high >= 2.0 => "and the published factor of 2 is within that",
        Ratio { low, .. } if low > 1.0 => "less than the published factor of 2",
        _ => "against what was published",
    };
    Some(format!(
        "One outstanding request: {} answers {:.2} times as many requests as {} ({:.2} to {:.2}), {verdict}; its latency is lower \
         at {lower} of {of} percentiles.",
        xdp.variant.name, ratio.ratio, udp.variant.name, ratio.low, ratio.high
    ))
}

/// What the protocol adds to bare datagrams.
fn floors(single: &[VariantTrials]) -> Option<String> {
    let parts = single
        .iter()
        .filter_map(|lane| Some((lane.variant.name, lane.percentile(1, 0)?, lane.bare_percentile(0)?)));
    let (name, ours, floor) = parts.min_by(|one, other| one.1.total_cmp(&other.1))?;
    Some(format!(
        "The shortest median is that of {name}: {ours:.1} µs, of which {floor:.1} µs are the same exchange in bare datagrams and \
         {:.1} µs the protocol's: encrypting and decrypting on both sides, streams, acknowledgements.",
        ours - floor
    ))
}

/// Whether the tail is near the median, and if not, whether that is the protocol's doing or the machine's.
fn tails(single: &[VariantTrials]) -> Option<String> {
    let known: Vec<(f64, f64)> = single
        .iter()
        .filter_map(|lane| {
            let [ours, bare] = lane.tails();
            ours.zip(bare)
        })
        .collect();
    let far: Vec<&(f64, f64)> = known.iter().filter(|(ours, _)| *ours > NEAR).collect();
    let machine = far.iter().filter(|(_, bare)| *bare > NEAR).count();
    let near = known.len() - far.len();
    let mut said =
        format!("p99.99 with one outstanding is within {NEAR} times p50 on {near} of {} paths", known.len());
    if !far.is_empty() {
        said.push_str(&format!(
            "; on {machine} of the other {} bare datagrams are not either, so there the machine alone has such a tail",
            far.len()
        ));
    }
    (!known.is_empty()).then(|| said + ".")
}

/// (b)
fn four(single: &[VariantTrials]) -> Option<String> {
    let lane =
        find(single, variant::DRIVER_SPIN).or_else(|| single.iter().find(|lane| !lane.points.is_empty()))?;
    let rate = lane.rate(4)? / lane.rate(1)?;
    let rises: Vec<f64> = (0..5)
        .filter_map(|which| Some((lane.percentile(4, which)? / lane.percentile(1, which)? - 1.0) * 100.0))
        .collect();
    let least = rises.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rises.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(format!(
        "Four outstanding instead of one, {}: {rate:.2} times the requests, and latency changes by {least:+.0} % to {most:+.0} %, \
         depending on the percentile. Published: more than twice the requests, latency more than 100 % higher at each.",
        lane.variant.name
    ))
}

/// (c)
fn flattening(single: &[VariantTrials]) -> Option<String> {
    let peaks: Vec<(&str, f64, usize)> = single
        .iter()
        .filter_map(|lane| lane.peak().map(|(rate, at)| (lane.variant.name, rate, at)))
        .collect();
    let (name, rate, _) = peaks.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let fewest = || peaks.iter().map(|(.., at)| at);
    let (least, most) = (fewest().min()?, fewest().max()?);
    Some(format!(
        "One connection carries most over {name}, {rate:.0} requests/s; paths reach 95 % of their peak with {least} to {most} outstanding. \
         Published: flat from about 20 on."
    ))
}

/// (d)
fn doubling(single: &[VariantTrials], paired: &[VariantTrials]) -> Option<String> {
    let ratios: Vec<String> = paired
        .iter()
        .filter_map(|two| {
            let one = find(single, two.variant)?;
            Some(format!("{} {:.2} times", two.variant.name, two.peak()?.0 / one.peak()?.0))
        })
        .collect();
    (!ratios.is_empty()).then(|| {
        format!(
            "Two connections on two workers, over the peak of one: {}. Published, on cores of their own: almost twice, with lower \
             latency.",
            ratios.join(", ")
        )
    })
}

/// Where two connections found the same worker in spite of all repetitions.
fn idle(lane: &VariantTrials) -> Option<String> {
    let (of, count) = (lane.points.values().flatten(), |trial: &&Trial| trial.busy_threads < 2);
    let (all, few) = (of.clone().count(), of.filter(count).count());
    (few > 0).then(|| {
        let name = lane.variant.name;
        format!("{name}, two connections: in {few} of {all} trials a single thread of the server did all the work.")
    })
}

/// What makes figures doubtful.
pub(super) fn notes(single: &[VariantTrials], paired: &[VariantTrials], cores: &Cores) -> Vec<String> {
    let mut notes = vec![
        "A veth pair is no card: the kernel's path from one end to the other runs on the sender's CPU time, and AF_XDP's sends \
         go through the kernel's ordinary transmit path. What AF_XDP saves here is the receiving network stack and the wake-ups; on \
         a card with zero-copy it saves more. The published study used real cards at both ends."
            .to_owned(),
    ];
    if !cores.are_enough && !paired.is_empty() {
        notes.push(
            "Two workers of the server and two threads of the client share two cores here, and one connection's two ends had a core \
             each before: nothing that was idle is put to work. Where two connections still carry more, it is because a core that \
             serves both a worker and a client's thread need not sleep and be woken across cores. Kernel UDP gives a connection to a \
             worker by a hash, so its two ends may share a core. Paths that never sleep take the core from each other. Four cores \
             are needed to judge the published claim."
                .to_owned(),
        );
    }
    for lane in single.iter().chain(paired) {
        let name = lane.variant.name;
        if let Some(problem) = &lane.problem {
            notes.push(format!("{name} could not be measured, or not to the end: {problem}"));
        }
        if lane.failed() > 0 {
            notes.push(format!("{name}: {} requests failed.", lane.failed()));
        }
    }
    notes.extend(paired.iter().filter_map(idle));
    let crowded: Vec<&str> = single
        .iter()
        .filter(|lane| {
            lane.mean(1, |trial| Some(trial.waited[0].max(trial.waited[1])))
                .is_some_and(|waited| waited > CROWDED)
        })
        .map(|lane| lane.variant.name)
        .collect();
    if !crowded.is_empty() {
        notes.push(format!(
            "Other work on this machine held these back, a tenth of the time and more: {}.",
            crowded.join("; ")
        ));
    }
    if single.iter().any(|lane| lane.variant.never_sleeps()) {
        notes.push(
            "A path that never sleeps takes its whole core whatever there is to do; its CPU time for each request says nothing at \
             low rates."
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::tables;
    use super::*;
    use report::model::Cell;

    fn lane(rate: f64, busy_threads: u64) -> VariantTrials {
        let mut lane = VariantTrials::new(variant::GSO);
        lane.points.insert(1, vec![Trial { rate, busy_threads, ..Trial::default() }]);
        lane
    }

    /// Deleted, two cores that four threads share could pass for a judgement of what was published for four.
    #[test]
    fn nothing_is_said_of_doubling_without_the_cores_for_it() {
        let (single, paired) = ([lane(10.0, 1)], [lane(19.0, 2)]);
        for are_enough in [false, true] {
            let cores = Cores { one: [0, 1], two: [vec![0, 1], vec![1, 0]], are_enough };
            let findings = findings(&single, &paired, &cores);
            assert_eq!(findings.iter().any(|said| said.starts_with("Two connections")), are_enough);
            let table = tables::paired(&single, &paired, &cores);
            assert_eq!(table.rows[0].cells[2] != Cell::Empty, are_enough);
        }
    }

    /// Deleted, a tail that bare datagrams have as well could be taken for the protocol's, or the other way round.
    #[test]
    fn a_tail_is_the_machines_where_bare_datagrams_have_it_too() {
        let trial = |last: f64| Trial {
            count: 50_000,
            latency_us: [10.0, 11.0, 12.0, 20.0, last],
            ..Trial::default()
        };
        let with = |ours: f64, bare: f64| {
            let mut lane = VariantTrials::new(variant::GSO);
            lane.points.insert(1, vec![trial(ours)]);
            lane.echoes.push(trial(bare));
            lane
        };
        let said = tails(&[with(90.0, 80.0), with(2_000.0, 1_500.0), with(2_000.0, 80.0)]).unwrap();
        assert!(
            said.starts_with("p99.99 with one outstanding is within 10 times p50 on 1 of 3 paths"),
            "{said}"
        );
        assert!(said.contains("on 1 of the other 2 bare datagrams are not either"), "{said}");
        assert!(tails(&[with(90.0, 80.0)]).unwrap().ends_with("on 1 of 1 paths."));
        assert_eq!(tails(&[lane(10.0, 1)]), None, "without bare datagrams nothing is said");
        let table = tables::tails(&[with(2_000.0, 80.0)]);
        let cells = [(10.0, 1), (2_000.0, 1), (200.0, 1), (10.0, 1), (80.0, 1), (8.0, 1)];
        assert_eq!(table.rows[0].cells, cells.map(|(value, digits)| Cell::Number(value, digits)));
        assert_eq!(table.columns.len(), table.rows[0].cells.len());
    }

    #[test]
    fn a_worker_without_work_is_told() {
        assert_eq!(idle(&lane(1.0, 2)), None);
        assert!(idle(&lane(1.0, 1)).unwrap().contains("in 1 of 1 trials"));
    }
}
