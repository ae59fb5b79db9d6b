//! How long the search for the packet size takes, and what a transfer suffers when its path begins to eat large packets: in the
//! simulator, where time is exact and every run is the same.
//!
//! A server sends to a client over 100 Mbit/s and 20 ms. The path carries all sizes, or eats those above a limit without a word,
//! from the beginning or from the middle of the transfer on. What the server's search did is asked of the server.

use std::io;

use base::time::Duration;
use report::model::{Axis, Block, Cell, Plot, PlotKind, Point, Row, Scale, Series, Table};
use serde_json::{Value, json};
use sim::transfer::{Transfer, TransferPlan, Workload, build};
use sim::{Node, ReadBehaviour, Scenario, StopReason};
use transport::{MtuConfig, MtuMode, MtuReport};

const RTT: Duration = Duration::from_millis(20);
/// The client's delay of acknowledgements, which is part of the server's probe timeout.
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);
const BITS_PER_SECOND: u64 = 100_000_000;
/// Enough for the slowest search to come to its end: 24 s.
const LONG: u64 = 300_000_000;
/// Enough for a path that changes after a second.
const SHORT: u64 = 40_000_000;
const CHANGES_AT: Duration = Duration::from_secs(1);

/// The largest size that is tried, and the largest that passes; both of UDP payload, in bytes.
const PATHS: [(u16, Option<u16>); 6] = [
    (1_472, None),
    (65_507, None),
    (1_472, Some(1_400)),
    (1_472, Some(1_300)),
    (65_507, Some(9_000)),
    (9_000, Some(1_472)),
];
/// The same for paths that change.
const CHANGES: [(u16, u16); 4] = [(1_472, 1_400), (1_472, 1_300), (65_507, 9_000), (9_000, 1_472)];
const MODES: [(&str, MtuMode); 2] = [("classic", MtuMode::Classic), ("fast", MtuMode::Fast)];

/// What a download was like.
struct Download {
    seconds: f64,
    /// The longest time without a new byte at the client, in probe timeouts of the server when it began, counted without the
    /// variation of round trips, so rather too many.
    stall_ptos: f64,
    mtu: MtuReport,
}

/// The two tables, the picture, findings, and all figures.
pub(super) struct Outcome {
    pub(super) blocks: Vec<Block>,
    pub(super) findings: Vec<String>,
    pub(super) raw: Value,
}

/// Runs all of it.
///
/// # Errors
/// A transfer has not come to its end, which is what the simulator is there to show.
pub(super) fn run(is_stopped: &dyn Fn() -> bool) -> io::Result<Outcome> {
    let mut raw = Vec::new();
    let mut rows = Vec::new();
    let mut bars: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for (cap, limit) in PATHS {
        let mut cells = Vec::new();
        for (bars, (name, mode)) in bars.iter_mut().zip(MODES) {
            stop_if(is_stopped)?;
            let node = Node::Mtu(limit.unwrap_or(u16::MAX).into());
            let download = download(mode, cap, &node, LONG)?;
            bars.push(download.mtu.took.map_or(0.0, |took| took.as_secs_f64() * 1e3));
            cells.extend(search_cells(&download));
            raw.push(line(&path(cap, limit), name, &download));
        }
        rows.push(Row { name: path(cap, limit), is_published: false, cells });
    }
    let mut stalls = Vec::new();
    let mut worst = 0.0_f64;
    for (cap, limit) in CHANGES {
        let mut cells = Vec::new();
        for (name, mode) in MODES {
            stop_if(is_stopped)?;
            let download =
                download(mode, cap, &Node::MtuFrom { at: CHANGES_AT, limit: limit.into() }, SHORT)?;
            worst = worst.max(download.stall_ptos);
            cells.push(Cell::Number(download.stall_ptos, 1));
            cells.push(Cell::Number(download.seconds, 2));
            cells.push(Cell::Number(download.mtu.size.into(), 0));
            raw.push(line(&change(cap, limit), name, &download));
        }
        stalls.push(Row { name: change(cap, limit), is_published: false, cells });
    }
    let findings = vec![
        finding(&bars),
        format!(
            "No transfer whose path began to eat large packets stood still for more than {worst:.1} probe timeouts; all came to their end."
        ),
    ];
    let blocks = vec![Block::Table(searches(rows)), Block::Plot(plot(&bars)), Block::Table(changes(stalls))];
    Ok(Outcome { blocks, findings, raw: Value::Array(raw) })
}

fn stop_if(is_stopped: &dyn Fn() -> bool) -> io::Result<()> {
    if is_stopped() { Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted")) } else { Ok(()) }
}

/// A download by a server that may send `cap` bytes, with `node` at both ends.
fn download(mode: MtuMode, cap: u16, node: &Node, bytes: u64) -> io::Result<Download> {
    let mut scenario = Scenario::interop(3);
    scenario.limit = Duration::from_secs(120);
    let nodes = || {
        let rate = Node::Rate { bits_per_second: BITS_PER_SECOND, queue_bytes: 250_000 };
        vec![node.clone(), rate, Node::Delay(RTT / 2)]
    };
    (scenario.to_server, scenario.to_client) = (nodes(), nodes());
    for transport in [&mut scenario.server, &mut scenario.client] {
        transport.max_packet_size = cap;
        // As published: without a ceiling the classic search ends at what Ethernet takes.
        let ceiling = (cap > 1_472).then_some(cap);
        transport.mtu = MtuConfig { mode, ceiling, ..MtuConfig::default() };
    }
    let plan = Workload::downloads([bytes]);
    let mut lab = build(&scenario, &plan).map_err(io::Error::other)?;
    let mood = ReadBehaviour::new(scenario.app_rng(), 0);
    lab.connect(TransferPlan::new(mood, [Transfer::download(bytes)], 1)).map_err(io::Error::other)?;
    let (mut received, mut stall_ptos) = (0, 0.0_f64);
    let mut progress: Option<(Duration, Duration)> = None;
    let halt = lab.run(scenario.limit, |lab| {
        let (age, now) = (lab.age(), lab.client().app_mut().received);
        if now > received {
            if let Some((at, pto)) = progress {
                stall_ptos = stall_ptos.max(age.saturating_sub(at).as_secs_f64() / pto.as_secs_f64());
            }
            (received, progress) = (now, Some((age, lab.server().app_mut().rtt + MAX_ACK_DELAY)));
        }
        lab.client().app_mut().done == 1
    });
    let seconds = lab.age().as_secs_f64();
    let failures = &lab.client().app_mut().failures;
    if halt != StopReason::Done || !failures.is_empty() {
        let what = format!(
            "{halt:?} after {seconds} s with {received} bytes, {mode:?} {cap} {node:?}: {failures:?}"
        );
        return Err(io::Error::other(what));
    }
    lab.run(scenario.limit, |lab| lab.server().connections() == 0);
    Ok(Download { seconds, stall_ptos, mtu: lab.server().app_mut().mtu })
}

fn path(cap: u16, limit: Option<u16>) -> String {
    match limit {
        Some(limit) => format!("eats above {limit}, up to {cap} tried"),
        None => format!("clean, up to {cap} tried"),
    }
}

fn change(cap: u16, limit: u16) -> String {
    format!("carries {cap}, from the middle on {limit}")
}

fn search_cells(download: &Download) -> [Cell; 4] {
    let took = download.mtu.took.map(|took| took.as_secs_f64());
    let rtts = took.map(|took| took / RTT.as_secs_f64());
    [
        took.map_or_else(|| "not done".into(), |took| Cell::Number(took * 1e3, 0)),
        rtts.map_or(Cell::Empty, |rtts| Cell::Number(rtts, 1)),
        Cell::Number(download.mtu.probes_sent.into(), 0),
        Cell::Number(download.mtu.size.into(), 0),
    ]
}

fn line(path: &str, mode: &str, download: &Download) -> Value {
    let MtuReport { size, took, probes_sent, probes_lost, black_holes } = download.mtu;
    json!({
        "path": path,
        "mode": mode,
        "seconds": download.seconds,
        "longest_stall_ptos": download.stall_ptos,
        "packet_size": size,
        "search_ms": took.map(|took| took.as_secs_f64() * 1e3),
        "probes_sent": probes_sent,
        "probes_lost": probes_lost,
        "black_holes": black_holes,
    })
}

fn searches(rows: Vec<Row>) -> Table {
    let columns = MODES.iter().flat_map(|(mode, _)| {
        ["ms", "round trips", "probes", "size found"].map(|what| format!("{mode}: {what}"))
    });
    Table {
        title: "The search for the packet size, classic and fast, in the simulator".into(),
        corner: "path (UDP payload in bytes)".into(),
        columns: columns.collect(),
        rows,
    }
}

fn changes(rows: Vec<Row>) -> Table {
    let columns = MODES.iter().flat_map(|(mode, _)| {
        ["longest stall, PTO", "transfer, s", "size at the end"].map(|what| format!("{mode}: {what}"))
    });
    Table {
        title: "40 MB over a path that begins to eat large packets after one second, in the simulator".into(),
        corner: "path (UDP payload in bytes)".into(),
        columns: columns.collect(),
        rows,
    }
}

fn plot(bars: &[Vec<f64>; 2]) -> Plot {
    let names =
        PATHS.map(|(cap, limit)| limit.map_or(format!("clean, {cap}"), |limit| format!("{limit} of {cap}")));
    let series = MODES.iter().zip(bars).map(|((name, _), values)| Series {
        name: (*name).to_owned(),
        is_published: false,
        points: (0..).zip(values).map(|(x, y)| Point { x: f64::from(x), y: *y, interval: None }).collect(),
    });
    Plot {
        title: "How long the search takes".into(),
        kind: PlotKind::Bars(names.to_vec()),
        x: Axis { label: "path".into(), ..Axis::default() },
        y: Axis { label: "ms".into(), scale: Scale::Logarithmic },
        series: series.collect(),
    }
}

fn finding(bars: &[Vec<f64>; 2]) -> String {
    let [classic, fast] = bars;
    let both = classic.iter().zip(fast).filter(|(classic, fast)| **classic > 0.0 && **fast > 0.0);
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for (classic, fast) in both {
        (least, most) = (least.min(classic / fast), most.max(classic / fast));
    }
    let slowest = fast.iter().copied().fold(0.0_f64, f64::max);
    format!(
        "The fast search takes {slowest:.0} ms at most, {:.1} round trips of 20 ms; the classic one {least:.1} to {most:.0} times as long.",
        slowest / (RTT.as_secs_f64() * 1e3),
    )
}
