//! The study's method, table, plot and sentences.

use bench::stats::Ratio;
use report::model::{Axis, Cell, Plot, PlotKind, Point, Row, Series, Table};

use super::first_byte::{FirstBytes, ROUND_TRIP_MS};
use super::floor::Floor;
use super::row::{Exchange, HYBRID, HandshakeRow, Kind, Scenario, Trial, Validation, find};
use super::trial::CONNECTIONS;
use crate::contestants::client::limit;
use crate::contestants::{Contestant, Http, InstalledServers, SMALL, TestSite, words};
use crate::context::Context;

/// How many times a full handshake's rate a resumed one shall have.
const RESUMED_AIM: f64 = 3.0;
/// How many times quinn's rate a full handshake shall have.
const QUINN_AIM: f64 = 1.3;

const COLUMNS: [&str; 8] = [
    "key exchange",
    "handshakes/s",
    "server CPU, µs",
    "of it key exchange and signature, %",
    "rate over tercel's",
    "of this kind, %",
    "client CPU, µs",
    "who limits",
];

pub(super) fn method(ground: &TestSite, context: &Context<'_>) -> Vec<String> {
    let (trials, seconds) = context.scaled((5, 1.2), (2, 0.5));
    vec![
        format!(
            "{CONNECTIONS} connections at a time, each for one request for a file of {} bytes, for {seconds} s after 0.3 s that are not \
             counted; {trials} trials of each row in alternating order, after one that is not counted.",
            SMALL.1
        ),
        format!(
            "Server and client are processes on a core each, both started anew for each trial, at the two ends of: {}. CPU times are \
             the operating system's, whole processes, the request included.",
            ground.site().name()
        ),
        format!(
            "TLS_AES_128_GCM_SHA256, a certificate for ECDSA on P-256, the key exchange by the client's offer: {HYBRID} before X25519, or \
             X25519 alone. A trial with another key exchange, or with less than half of its handshakes of the row's kind, is none."
        ),
        "The client is tercel load --new-connections for all servers; it verifies no certificate. A resumed connection uses a ticket of a \
         connection before it; each uses a ticket of its own."
            .to_owned(),
        "Key exchange and signature alone: the server's part, by rustls' provider (AWS-LC) in a loop, without the rest of TLS. Other \
         servers have other libraries, so the share is tercel's floor."
            .to_owned(),
        format!(
            "First bytes: one connection after the other on a link that delays each datagram by half of {ROUND_TRIP_MS} ms; the median \
             from the intended beginning of the connection to the head of the answer."
        ),
    ]
}

pub(super) fn notes(
    field: &InstalledServers,
    ground: &TestSite,
    rows: &[HandshakeRow],
    cores: [usize; 2],
) -> Vec<String> {
    let mut notes = words::notes(field, ground, &[], cores);
    for row in rows {
        if let Some(problem) = &row.problem {
            notes.push(format!(
                "{} with {} was left out after {} trials: {problem}",
                row.scenario.name(),
                row.scenario.exchange.name(),
                row.trials.len()
            ));
        }
    }
    notes.push(
        "s2n-quic has no early data, and its published crate resumes by an unstable feature only; the program of quiche sends no Retry. The \
         client has no early data over TCP."
            .to_owned(),
    );
    notes
}

/// The cost that no server of this kind of handshake avoids, in microseconds.
fn floor_us(floor: &Floor, scenario: Scenario) -> f64 {
    let signature = if scenario.kind == Kind::Full { floor.signature_us } else { 0.0 };
    floor.exchange_us(scenario.exchange) + signature
}

pub(super) fn table(rows: &[HandshakeRow], floor: &Floor) -> Table {
    let rows = rows.iter().map(|row| {
        let scenario = row.scenario;
        let ours = Scenario { who: Contestant::Tercel, ..scenario };
        let base = find(rows, ours).filter(|_| scenario.who != Contestant::Tercel);
        let server_us = row.summary(|trial| trial.server_us).mean;
        let share = match row.trials.is_empty() {
            true => Cell::Empty,
            false => Cell::Number(floor_us(floor, scenario) / server_us * 100.0, 0),
        };
        Row {
            name: scenario.name(),
            is_published: false,
            cells: vec![
                scenario.exchange.name().into(),
                row.cell(0, |trial| trial.rate),
                row.cell(0, |trial| trial.server_us),
                share,
                base.and_then(|base| row.over(base, |trial| trial.rate)).into(),
                row.cell(0, |trial| trial.of_kind * 100.0),
                row.cell(0, |trial| trial.client_us),
                limits(row).into(),
            ],
        }
    });
    Table {
        title: "Handshakes with a small request each".to_owned(),
        corner: "server, handshake".to_owned(),
        columns: COLUMNS.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

fn limits(row: &HandshakeRow) -> &'static str {
    if row.trials.is_empty() {
        return "";
    }
    let [client, server] = [0, 1].map(|end| row.summary(|trial| trial.busy()[end]).mean);
    limit(client, server)
}

pub(super) fn costs(rows: &[HandshakeRow], floor: &Floor) -> Plot {
    let measured: Vec<&HandshakeRow> = rows.iter().filter(|row| !row.trials.is_empty()).collect();
    let names = measured
        .iter()
        .map(|row| format!("{}, {}", row.scenario.name(), row.scenario.exchange.name()))
        .collect();
    let bars = measured
        .iter()
        .enumerate()
        .map(|(place, row)| words::bar(place, &row.summary(|trial| trial.server_us)));
    let floors = measured.iter().enumerate().map(|(place, row)| Point {
        x: place as f64,
        y: floor_us(floor, row.scenario),
        interval: None,
    });
    Plot {
        title: "What a handshake with a small request costs the server".to_owned(),
        kind: PlotKind::Bars(names),
        x: Axis::default(),
        y: Axis { label: "CPU time of the server, µs".to_owned(), ..Axis::default() },
        series: vec![
            Series { name: "measured".to_owned(), points: bars.collect(), ..Series::default() },
            Series {
                name: "key exchange and signature alone".to_owned(),
                points: floors.collect(),
                ..Series::default()
            },
        ],
    }
}

pub(super) fn findings(rows: &[HandshakeRow], floor: &Floor, first_bytes: &FirstBytes) -> Vec<String> {
    let mut findings = Vec::new();
    for exchange in Exchange::ALL {
        let ours = |kind| Scenario {
            who: Contestant::Tercel,
            http: Http::Three,
            kind,
            exchange,
            validation: Validation::Handshake,
        };
        let Some(full) = find(rows, ours(Kind::Full)) else { continue };
        for kind in [Kind::Resumed, Kind::Early] {
            if let Some(row) = find(rows, ours(kind)) {
                findings.push(tickets(full, row));
            }
        }
        let parts = (floor.exchange_us(exchange), floor.signature_us);
        findings.push(format!(
            "{} alone costs {:.0} µs and the signature {:.0} µs: were all else free, a resumed handshake would be {:.2} times as cheap as \
             a full one.",
            exchange.name(),
            parts.0,
            parts.1,
            (parts.0 + parts.1) / parts.0
        ));
        let quinn = Scenario { who: Contestant::Quinn, ..ours(Kind::Full) };
        if let Some(ratio) = find(rows, quinn).and_then(|quinn| full.over(quinn, |trial| trial.rate)) {
            findings.push(format!(
                "tercel's full handshakes with {}: {} times quinn's rate; the aim is {QUINN_AIM}: {}.",
                exchange.name(),
                shown(ratio),
                verdict(ratio, QUINN_AIM)
            ));
        }
    }
    for found in first_bytes.found.iter().filter(|found| found.who == Contestant::Tercel) {
        findings.push(format!(
            "tercel, {}: the first byte of the answer came after {:.1} ms, {:.2} round trips.",
            found.kind.name(),
            found.ms,
            found.round_trips()
        ));
    }
    findings.extend(first_bytes.problems.iter().cloned());
    findings
}

/// What a ticket spares, by rate and by CPU time.
fn tickets(full: &HandshakeRow, row: &HandshakeRow) -> String {
    let (kind, exchange) = (row.scenario.kind.name(), row.scenario.exchange.name());
    let cpu: fn(&Trial) -> f64 = |trial| trial.server_us;
    match (row.over(full, |trial| trial.rate), full.over(row, cpu)) {
        (Some(rate), Some(cost)) => format!(
            "tercel, {kind} with {exchange}: {} times the rate of full handshakes, and a full one costs the server {} times as much. The \
             aim for resumed ones is {RESUMED_AIM}: {}.",
            shown(rate),
            shown(cost),
            verdict(rate, RESUMED_AIM)
        ),
        _ => format!("tercel, {kind} with {exchange}: fewer than two trials."),
    }
}

fn shown(ratio: Ratio) -> String {
    let Ratio { ratio, low, high } = ratio;
    format!("{ratio:.2} ({low:.2} to {high:.2})")
}

fn verdict(ratio: Ratio, aim: f64) -> &'static str {
    match ratio {
        Ratio { low, .. } if low >= aim => "reached",
        Ratio { high, .. } if high < aim => "missed",
        Ratio { .. } => "not shown",
    }
}
