//! Study E5: a few large files over HTTP/1.1, HTTP/2 and HTTP/3, tercel beside other servers.
//!
//! One server over three protocols is the question; other servers over the same show whether ours is a fair base. Clients over
//! TCP are `tercel load` and the published ones, ab and h2load. A roofline goes with each round: what one core can do that
//! copies, seals and sends, with no protocol at all.

use std::io;

use bench::roofline::Roofline;
use bench::stats::{Ratio, Summary};
use report::model::{Axis, Block, Cell, Plot, PlotKind, Row, Series, Study, Table};

use crate::ceiling::{self, Ceiling};
use crate::contestants::client::{Client, Work};
use crate::contestants::race::{EntryResult, Race, RaceEntry, Trial, contestants};
use crate::contestants::{Contestant, Http, InstalledServers, LARGE, TestSite, look, words};
use crate::context::Context;
use crate::courses;
use crate::profiles;

/// Seconds for 400 requests of 10 MB, and their deviation where it was published.
const PUBLISHED: [(&str, f64, Option<f64>); 6] = [
    ("LiteSpeed, HTTP/1.1, ab", 8.170, Some(0.041)),
    ("LiteSpeed, HTTP/2, h2load", 6.948, Some(0.221)),
    ("LiteSpeed, QUIC", 14.385, Some(0.290)),
    ("proto-quic, QUIC", 49.708, None),
    ("quic-go, QUIC", 86.011, Some(2.650)),
    ("Caddy, QUIC", 82.537, Some(2.555)),
];
/// Requests of the published study.
const REQUESTS: u64 = 400;
/// Files of which none is asked for by two connections at a time: a site's downloads, where the published study has one.
const DIFFERENT: usize = 100;

const COLUMNS: [&str; 9] = [
    "client's time, s",
    "content, MB/s",
    "share of roofline, %",
    "time over tercel's",
    "server CPU, s/GB",
    "server CPU, % of a core",
    "client CPU, % of a core",
    "UDP payload, bytes",
    "who limits",
];
const COLUMNS_OF_DIFFERENT: [&str; 6] = [
    "client's time, s",
    "content, MB/s",
    "time over one file's",
    "server CPU, s/GB",
    "CPU over one file's",
    "who limits",
];

/// Runs the study.
///
/// # Errors
/// Nothing can be measured at all.
pub fn run(context: &mut Context<'_>) -> io::Result<Study> {
    let began = cpu::clock_seconds();
    let ground = TestSite::prepare()?;
    let field = look(&context.program, &Http::ALL);
    let (mut entries, absent) = entries(&field, context);
    let files = context.scaled(DIFFERENT, DIFFERENT / 5);
    ground.multiply(LARGE, files)?;
    let different: Vec<RaceEntry> = entries.iter().filter_map(|entry| different(entry, files)).collect();
    entries.extend(different);
    let race = Race {
        ground: &ground,
        work: Work {
            file: LARGE,
            connections: 10,
            streams: 10,
            requests: context.scaled(REQUESTS, REQUESTS / 10),
        },
        trials: context.scaled(5, 3),
    };
    let mut lanes: Vec<EntryResult> = entries.into_iter().map(EntryResult::new).collect();
    let mut ceiling = Ceiling::default();
    let gigabytes = context.scaled(2.0, 0.4);
    let mut broken = Vec::new();
    let problem = race
        .run(&mut lanes, context, &mut |context| {
            // The servers are what is measured: they go on without it.
            ceiling.try_measure(context, (ground.payload_size, gigabytes), &mut broken)
        })
        .err();
    let mut notes = words::notes(&field, &ground, &lanes, context.cores);
    notes.extend(absent);
    notes.append(&mut broken);
    notes.extend(words::payload_notes(&ground, &lanes));
    if race.work.requests != REQUESTS {
        notes.push(format!(
            "The published times are for {REQUESTS} requests; here there were {}.",
            race.work.requests
        ));
    }
    let (lanes, different): (Vec<_>, Vec<_>) = lanes.into_iter().partition(|lane| lane.files == 1);
    let mut findings = findings(&lanes);
    findings.extend(findings_of_different(&lanes, &different));
    let mut study = Study {
        id: "e5".to_owned(),
        title: "Few large files over HTTP/1.1, HTTP/2 and HTTP/3".to_owned(),
        question: "Is HTTP/3 as fast as HTTP/1.1 and HTTP/2 where large files are served on one core, and how does tercel \
                   compare with other servers?"
            .to_owned(),
        method: method(&race, &lanes, files),
        findings,
        blocks: vec![
            Block::Table(table(&lanes, &ceiling)),
            Block::Table(table_of_different(&lanes, &different)),
            Block::Plot(rates(&lanes, &ceiling)),
            Block::Plot(costs(&lanes)),
        ],
        notes,
        problem: problem.map(words::problem),
        seconds: 0.0,
        raw: serde_json::json!({ "lanes": lanes, "different": different, "roofline": ceiling }),
    };
    study.blocks.extend(courses::blocks(&contestants(&lanes, name)));
    let looks = [&lanes, &different].into_iter().flat_map(|lanes| race.looks(lanes, name_with_files));
    profiles::add(context, looks.collect(), &mut study);
    study.seconds = cpu::clock_seconds() - began;
    Ok(study)
}

/// Every server over every version that it speaks, with every client that speaks it; and who is missing.
fn entries(field: &InstalledServers, context: &Context<'_>) -> (Vec<RaceEntry>, Vec<String>) {
    let (mut entries, mut absent) = (Vec::new(), Vec::new());
    for client in Client::ALL {
        match client.find(&context.program) {
            Err(sentence) => absent.push(sentence),
            Ok(program) => {
                for server in &field.installed {
                    let spoken = server.who.speaks().iter().filter(|http| client.speaks(**http));
                    entries.extend(spoken.map(|&http| RaceEntry {
                        server: server.clone(),
                        http,
                        client,
                        program: program.clone(),
                        files: 1,
                    }));
                }
            }
        }
    }
    entries.sort_by_key(|entry| (entry.http, entry.server.who as u8, entry.client as u8));
    (entries, absent)
}

/// The same entry with several files, of servers that are run for sites.
fn different(entry: &RaceEntry, files: usize) -> Option<RaceEntry> {
    let is_of_sites = matches!(entry.server.who, Contestant::Tercel | Contestant::Nginx);
    (is_of_sites && entry.client == Client::Load).then(|| RaceEntry { files, ..entry.clone() })
}

fn method(race: &Race<'_>, lanes: &[EntryResult], files: usize) -> Vec<String> {
    let Work { file, connections, streams, requests } = &race.work;
    vec![
        format!(
            "{connections} connections, {streams} requests at a time on each (one over HTTP/1.1), {requests} requests in all for a file \
             of {} bytes; {} trials of each row in alternating order, after one that is not counted.",
            file.1, race.trials
        ),
        format!(
            "Server and client are processes on a core each, both started anew for each trial, at the two ends of: {}. CPU times are \
             the operating system's. The client's time is that of its whole process, connections included; MB/s is content over it.",
            race.ground.site().name()
        ),
        format!(
            "All: TLS 1.3 with AES-128-GCM; congestion control: CUBIC in QUIC, {} in TCP, which is the kernel's; full datagrams have {} \
             bytes of UDP payload, which the client's counts must confirm. Over veth TCP's segments fill packets of 1,500 bytes.",
            race.ground.site().tcp_congestion(),
            race.ground.payload_size
        ),
        format!(
            "The second table: {files} different files of that size, each connection from another one on, so that no two read the same at \
             a time. All are in the page cache. Its trials stand in the same rounds as those of one file."
        ),
        words::CLIENT.to_owned(),
        ceiling::method("once in each round"),
        "Published: LiteSpeed's study, on other machines.".to_owned(),
        format!("Versions: {}.", words::versions(lanes)),
    ]
}

fn mb_per_second(trial: &Trial) -> f64 {
    trial.run.content_bytes as f64 / 1e6 / trial.run.seconds
}

fn server_cpu_per_gb(trial: &Trial) -> f64 {
    trial.server_cpu_s * 1e9 / trial.run.content_bytes as f64
}

fn name(lane: &EntryResult) -> String {
    let EntryResult { who, http, client, .. } = lane;
    match client {
        Client::Load => format!("{}, {}", who.name(), http.name()),
        Client::Ab | Client::H2load => format!("{}, {}, {}", who.name(), http.name(), client.name()),
    }
}

fn name_with_files(lane: &EntryResult) -> String {
    if lane.files == 1 { name(lane) } else { format!("{}, {} files", name(lane), lane.files) }
}

fn table(lanes: &[EntryResult], ceiling: &Ceiling) -> Table {
    let mut rows: Vec<Row> = lanes
        .iter()
        .map(|lane| {
            let share = ceiling.share(lane.trials.iter().map(mb_per_second));
            Row {
                name: name(lane),
                is_published: false,
                cells: vec![
                    lane.cell(3, |trial| trial.run.seconds),
                    lane.cell(0, mb_per_second),
                    share,
                    words::time_over_ours(lanes, lane),
                    lane.cell(3, server_cpu_per_gb),
                    lane.cell(0, |trial| trial.server_share * 100.0),
                    lane.cell(0, |trial| trial.run.client_share * 100.0),
                    words::payload(lane),
                    lane.limit().into(),
                ],
            }
        })
        .collect();
    rows.extend(ceiling.row(COLUMNS.len(), [1, 2, 4]).map(|mut row| {
        let busy = |side: fn(&Roofline) -> f64| {
            Cell::Trials(Summary::of(ceiling.trials().iter().map(|run| side(run) * 100.0)), 0)
        };
        row.cells[5] = busy(|run| run.sender.busy);
        row.cells[6] = busy(|run| run.receiver.busy);
        row
    }));
    rows.extend(PUBLISHED.iter().map(|(name, mean, sd)| {
        let mut row = words::published(name, COLUMNS.len(), *mean, *sd);
        row.cells[1] = Cell::Number(REQUESTS as f64 * LARGE.1 as f64 / 1e6 / mean, 0);
        row
    }));
    Table {
        title: "Requests for a file of 10 MB".to_owned(),
        corner: "server, protocol, client".to_owned(),
        columns: COLUMNS.map(str::to_owned).to_vec(),
        rows,
    }
}

/// The same entry with one file.
fn with_one<'a>(lanes: &'a [EntryResult], lane: &EntryResult) -> Option<&'a EntryResult> {
    lanes.iter().find(|one| (one.who, one.http, one.client) == (lane.who, lane.http, lane.client))
}

/// What several files cost the server over what one does.
fn cost_over_one(lanes: &[EntryResult], lane: &EntryResult) -> Option<Ratio> {
    let cost = |lane: &EntryResult| lane.summary(server_cpu_per_gb).values;
    Ratio::by_rounds(&cost(lane), &cost(with_one(lanes, lane)?))
}

fn table_of_different(lanes: &[EntryResult], different: &[EntryResult]) -> Table {
    let row = |lane: &EntryResult| Row {
        name: name(lane),
        is_published: false,
        cells: vec![
            lane.cell(3, |trial| trial.run.seconds),
            lane.cell(0, mb_per_second),
            with_one(lanes, lane).and_then(|one| lane.time_over(one)).into(),
            lane.cell(3, server_cpu_per_gb),
            cost_over_one(lanes, lane).into(),
            lane.limit().into(),
        ],
    };
    let files = different.first().map_or(DIFFERENT, |lane| lane.files);
    Table {
        title: format!("Requests for {files} different files of 10 MB"),
        corner: "server, protocol".to_owned(),
        columns: COLUMNS_OF_DIFFERENT.map(str::to_owned).to_vec(),
        rows: different.iter().map(row).collect(),
    }
}

/// A sentence on where different files cost most, and one on where nothing shows. The table has the figures.
fn findings_of_different(lanes: &[EntryResult], different: &[EntryResult]) -> Vec<String> {
    let known = different.iter().filter_map(|lane| Some((lane, cost_over_one(lanes, lane)?)));
    let (open, clear): (Vec<_>, Vec<_>) = known.partition(|(_, ratio)| ratio.spans_one());
    let mut findings = Vec::new();
    if let Some((lane, Ratio { ratio, low, high })) =
        clear.iter().max_by(|(_, one), (_, other)| one.ratio.total_cmp(&other.ratio))
    {
        findings.push(format!(
            "Different files cost most over one with {}: {} of them {ratio:.2} times the server's CPU time ({low:.2} to {high:.2}).",
            name(lane),
            lane.files
        ));
    }
    if !open.is_empty() {
        let names: Vec<String> = open.iter().map(|(lane, _)| name(lane)).collect();
        findings.push(format!("Different files make no measurable difference with {}.", names.join("; ")));
    }
    findings
}

/// Bars of a figure: a group for each server, a colour for each protocol, by `tercel load`.
fn bars(lanes: &[EntryResult], title: &str, label: &str, figure: fn(&Trial) -> f64) -> Plot {
    let shown: Vec<&EntryResult> =
        lanes.iter().filter(|lane| lane.client == Client::Load && !lane.trials.is_empty()).collect();
    let servers: Vec<Contestant> =
        Contestant::ALL.into_iter().filter(|who| shown.iter().any(|lane| lane.who == *who)).collect();
    let series = Http::ALL.into_iter().filter_map(|http| {
        let points: Vec<_> = shown
            .iter()
            .filter(|lane| lane.http == http)
            .filter_map(|lane| {
                Some(words::bar(servers.iter().position(|who| *who == lane.who)?, &lane.summary(figure)))
            })
            .collect();
        let name = http.name().to_owned();
        (!points.is_empty()).then_some(Series { name, points, ..Series::default() })
    });
    Plot {
        title: title.to_owned(),
        kind: PlotKind::Bars(servers.iter().map(|who| who.name().to_owned()).collect()),
        x: Axis::default(),
        y: Axis { label: label.to_owned(), ..Axis::default() },
        series: series.collect(),
    }
}

fn rates(lanes: &[EntryResult], ceiling: &Ceiling) -> Plot {
    let mut title = "Large files by tercel load".to_owned();
    if !ceiling.trials().is_empty() {
        title.push_str(&format!("; the roofline is {:.0} MB/s", ceiling.mb_per_second().mean));
    }
    bars(lanes, &title, "content, MB/s", mb_per_second)
}

fn costs(lanes: &[EntryResult]) -> Plot {
    bars(lanes, "What large files cost the server", "CPU time of the server, s per GB", server_cpu_per_gb)
}

fn findings(lanes: &[EntryResult]) -> Vec<String> {
    let measured: Vec<&EntryResult> = lanes.iter().filter(|lane| !lane.trials.is_empty()).collect();
    let of_ours = |http: Http| {
        let is_it = |lane: &&&EntryResult| {
            (lane.who, lane.http, lane.client) == (Contestant::Tercel, http, Client::Load)
        };
        measured.iter().find(is_it).copied()
    };
    let mut findings = Vec::new();
    if let Some(third) = of_ours(Http::Three) {
        for other in [Http::One, Http::Two].into_iter().filter_map(of_ours) {
            let mut sentence = words::verdict(
                "tercel over HTTP/3",
                &format!("tercel over {}", other.http.name()),
                third.time_over(other),
            );
            let cost = |lane: &EntryResult| lane.summary(server_cpu_per_gb);
            if let Some(ratio) = Ratio::by_rounds(&cost(third).values, &cost(other).values) {
                let Ratio { ratio, low, high } = ratio;
                sentence.push_str(&format!(
                    " The server used {ratio:.2} times the CPU time ({low:.2} to {high:.2})."
                ));
            }
            findings.push(sentence);
        }
    }
    let others = measured.iter().filter(|lane| lane.who != Contestant::Tercel);
    let beside: Vec<(String, Ratio)> =
        others.filter_map(|lane| Some((name(lane), lane.time_over(words::ours(lanes, lane)?)?))).collect();
    findings.extend(standings(&beside));
    findings
}

/// Who takes longer than tercel over the same version of HTTP, who does not, and of whom neither is shown. The table has the figures.
fn standings(beside: &[(String, Ratio)]) -> Vec<String> {
    let those = |belongs: fn(&Ratio) -> bool| {
        let names = beside.iter().filter(|(_, ratio)| belongs(ratio)).map(|(name, _)| name.as_str());
        names.collect::<Vec<_>>().join("; ")
    };
    let groups = [
        ("Slower than tercel over the same version and with the same client", those(|ratio| ratio.low > 1.0)),
        ("Faster", those(|ratio| ratio.high < 1.0)),
        ("Neither is shown to be faster", those(Ratio::spans_one)),
    ];
    groups
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(head, names)| format!("{head}: {names}."))
        .collect()
}

#[cfg(test)]
mod tests;
