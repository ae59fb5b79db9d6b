//! Study E6: can HTTP/3 be as cheap as HTTP/1.1 and HTTP/2? What each technique is worth, by leaving it out, and the same
//! transfer over all three.
//!
//! One large download over one connection. The table of techniques is in [`techniques`]: a name, what was claimed for it, and the
//! flags that leave it out. All rows and the one with everything take turns, so that a machine that becomes slower does so for all;
//! so do other builds of the program (`builds`). Steering and departure times need a place of their own (`steering`, `departures`)
//! and bring the row that has them along. All end in one table (`pairing`).

mod builds;
mod departures;
mod pairing;
mod steering;
mod techniques;
#[cfg(test)]
mod tests;

use std::io;

use bench::method::Method;
use bench::pair::ProgramPair;
use bench::site::Site;
use report::model::{Block, Cell, Row, Study, Table};

use self::builds::{BUILD_TECHNIQUES, Builds};
use self::pairing::Pairing;
use self::techniques::{ELSEWHERE, IN_CONNECTIONS, PAYLOAD, SIZE, TECHNIQUES, Technique};
use crate::ceiling::{self, Ceiling};
use crate::context::Context;
use crate::courses;
use crate::downloads::{Asker, DownloadRun, DownloadSeries};
use crate::profiles::{self, Look};

/// HTTP versions, oldest first: a name and how `tercel load --http` is told.
const VERSIONS: [(&str, &str); 3] = [("HTTP/1.1", "1"), ("HTTP/2", "2"), ("HTTP/3", "3")];
const VERSION_COLUMNS: [&str; 6] = [
    "server CPU, s/GB",
    "over HTTP/1.1",
    "client CPU, s/GB",
    "content, MB/s",
    "share of roofline, %",
    "server CPU, % of a core",
];
/// What was published of HTTP/3's CPU time over that of HTTPS/1.1.
const PUBLISHED: [(&str, f64); 3] =
    [("Google's QUIC at first", 3.5), ("Google's QUIC in 2017", 2.0), ("asked for in 2020", 1.0)];

/// What was measured.
#[derive(Default)]
struct Measured {
    /// With everything.
    everything: Vec<DownloadSeries>,
    /// In the order of [`TECHNIQUES`].
    ablation: Vec<DownloadSeries>,
    /// Of a build for experiments: with everything, then in the order of [`IN_CONNECTIONS`]. Empty without such a build.
    experimental: Vec<DownloadSeries>,
    /// Other builds.
    built: Vec<DownloadSeries>,
    builds: Builds,
    /// With and without: steering, departure times.
    apart: Vec<(&'static str, [DownloadSeries; 2])>,
    /// In the order of [`VERSIONS`].
    versions: Vec<DownloadSeries>,
    ceiling: Ceiling,
    notes: Vec<String>,
}

/// Runs the study.
///
/// # Errors
/// Nothing can be measured at all.
pub fn run(context: &mut Context<'_>) -> io::Result<Study> {
    let began = cpu::clock_seconds();
    let (site, lacking) = match Site::veth(1) {
        Ok(site) => (site, None),
        Err(error) => (Site::Loopback, Some(error.to_string())),
    };
    let bytes = context.scaled(2_000_000_000, 200_000_000);
    let trials = context.scaled(7, 3);
    let mut measured = Measured::default();
    let done = measured.fill(context, &site, (bytes, trials));
    let mut notes: Vec<String> = ELSEWHERE.iter().map(|note| (*note).to_owned()).collect();
    notes.append(&mut measured.notes);
    notes.extend(lacking.map(|why| {
        format!("Measured on loopback, where TCP's segments are as large as 64 KB, because no two namespaces can be made: {why}")
    }));
    let pairings = measured.pairings();
    let mut findings: Vec<String> = between_versions(&measured.versions).into_iter().collect();
    findings.extend(pairing::findings(&pairings));
    let mut study = Study {
        id: "e6".to_owned(),
        title: "Can HTTP/3 be as cheap as HTTP/2 and HTTP/1.1?".to_owned(),
        question: "What is each technique worth, in CPU time of the server for the same transfer, and what is left between HTTP/3 and \
                   the versions over TCP?"
            .to_owned(),
        method: method(bytes, trials, &site),
        findings,
        blocks: vec![
            Block::Table(pairing::table(&pairings, &measured.ceiling)),
            Block::Plot(pairing::plot(&pairings)),
            Block::Table(version_table(&measured.versions, &measured.ceiling)),
        ],
        notes,
        problem: done.err().map(|error| error.to_string()),
        seconds: 0.0,
        raw: serde_json::json!({
            "everything": measured.everything,
            "ablation": measured.ablation,
            "experiments": measured.experimental,
            "builds": measured.built,
            "apart": measured.apart,
            "versions": measured.versions,
            "roofline": measured.ceiling,
        }),
    };
    let contestants = measured.everything.iter().chain(&measured.versions);
    let rounds: Vec<_> = contestants.map(|series| series.rounds(series.name.clone())).collect();
    study.blocks.extend(courses::blocks(&rounds));
    // What is left between the versions is the question.
    let looks = VERSIONS.map(|(name, flag)| Look::at_download(version(name, flag), profiles::veth));
    profiles::add(context, looks.into(), &mut study);
    study.seconds = cpu::clock_seconds() - began;
    Ok(study)
}

impl Measured {
    /// Measures all of it; what there is before an interruption stays.
    fn fill(
        &mut self,
        context: &mut Context<'_>,
        site: &Site,
        (bytes, trials): (u64, usize),
    ) -> io::Result<()> {
        let (program, cores) = (context.program.clone(), context.cores);
        let pair = ProgramPair::new(&program, site, context.stop)?;
        let downloads = DownloadRun { pair: &pair, cores, bytes, trials, place: site.name() };
        self.builds = Builds::beside(&program);
        self.notes.append(&mut self.builds.notes);
        let mut lanes = vec![DownloadSeries::new("everything", Method::Gso, &SIZE)];
        lanes.extend(TECHNIQUES.iter().map(Technique::lane));
        let experimental = experimental(&self.builds);
        let (from, built_from) = (1 + TECHNIQUES.len(), 1 + TECHNIQUES.len() + experimental.len());
        lanes.extend(experimental);
        lanes.extend(self.builds.lanes());
        self.measure_ceiling(context, bytes)?;
        let done = downloads.run(&mut lanes, context);
        self.note_problems(&lanes);
        self.built = lanes.split_off(built_from);
        self.experimental = lanes.split_off(from);
        self.ablation = lanes.split_off(1);
        self.everything = lanes;
        done?;
        self.measure_ceiling(context, bytes)?;
        self.versions = VERSIONS.iter().map(|(name, flag)| version(name, flag)).collect();
        let done = downloads.run(&mut self.versions, context);
        let versions = self.versions.clone();
        self.note_problems(&versions);
        done?;
        self.measure_ceiling(context, bytes)?;
        let steered = steering::lanes(context, trials)?;
        self.add_apart(steering::NAME, steered);
        let departing = departures::lanes(context, (bytes, trials))?;
        self.add_apart(departures::NAME, departing);
        Ok(())
    }

    fn measure_ceiling(&mut self, context: &mut Context<'_>, bytes: u64) -> io::Result<()> {
        self.ceiling.try_measure(context, (PAYLOAD, bytes as f64 / 1e9), &mut self.notes)
    }

    fn add_apart(&mut self, name: &'static str, lanes: Result<[DownloadSeries; 2], String>) {
        match lanes {
            Ok(lanes) => self.apart.push((name, lanes)),
            Err(note) => self.notes.push(note),
        }
    }

    fn note_problems(&mut self, lanes: &[DownloadSeries]) {
        let told = |lane: &DownloadSeries| Some(format!("{}: {}", lane.name, lane.problem.as_ref()?));
        self.notes.extend(lanes.iter().filter_map(told));
    }

    /// The rows of the table.
    fn pairings(&self) -> Vec<Pairing<'_>> {
        let Some(everything) = self.everything.first() else { return Vec::new() };
        let left_out = self.ablation.iter().zip(&TECHNIQUES).map(|(lane, technique)| Pairing {
            name: technique.name,
            published: technique.published,
            with: everything,
            without: lane,
        });
        let in_connections = self.experimental.split_first().into_iter().flat_map(|(with, without)| {
            without.iter().zip(&IN_CONNECTIONS).map(move |(without, technique)| Pairing {
                name: technique.name,
                published: technique.published,
                with,
                without,
            })
        });
        let built = BUILD_TECHNIQUES.iter().filter_map(|technique| {
            let [with, without] = self.builds.pair(technique, everything, &self.built)?;
            Some(Pairing { name: technique.name, published: technique.published, with, without })
        });
        let apart =
            self.apart.iter().map(|(name, [with, without])| Pairing { name, published: None, with, without });
        left_out.chain(in_connections).chain(built).chain(apart).collect()
    }
}

/// The lanes of a build for experiments, if there is one.
fn experimental(builds: &Builds) -> Vec<DownloadSeries> {
    let Some(program) = &builds.experimental else { return Vec::new() };
    let everything = DownloadSeries::new("everything, built for experiments", Method::Gso, &SIZE);
    let lanes = core::iter::once(everything).chain(IN_CONNECTIONS.iter().map(Technique::lane));
    lanes.map(|lane| DownloadSeries { program: Some(program.clone()), ..lane }).collect()
}

fn method(bytes: u64, trials: usize, site: &Site) -> Vec<String> {
    vec![
        format!(
            "One connection downloads {} MB of generated content; {trials} trials of each row in alternating order, after one that is \
             not counted.",
            bytes / 1_000_000
        ),
        format!(
            "Server and client are processes on a core each at the two ends of: {}; both are started anew for each trial. CPU \
             times are the operating system's, handshake included: the server's without start and end of its process, the client's \
             with them.",
            site.name()
        ),
        format!(
            "HTTP/3 in packets of {} bytes, AES-128-GCM, CUBIC; TCP is the kernel's, with {}. Each technique is left out by flags of tercel that users have, too: \
             see tercel serve --help, heading Laboratory.",
            SIZE[1],
            site.tcp_congestion()
        ),
        "Link-time and profile-guided optimisation are other builds of the same sources, at both ends. What a connection does without is \
         compared within a build that can do so, with the feature experiments. Steering is measured with a \
         server of two workers and 16 connections of tercel load whose ports change soon after the beginning, over an emulated link, in CPU \
         seconds for 10^9 bytes as well."
            .to_owned(),
        ceiling::method("before, between and after the first two tables"),
        "The three versions of HTTP are asked by tercel load, one request on one connection; in the other rows the client is tercel \
         get."
            .to_owned(),
    ]
}

fn version(name: &str, flag: &'static str) -> DownloadSeries {
    let mut lane = match flag {
        "3" => DownloadSeries::new(name, Method::Gso, &SIZE),
        _ => DownloadSeries::apart(name, Method::Gso, &SIZE, &["--cipher", "aes128"]),
    };
    lane.asker = Asker::Load(flag);
    lane
}

fn version_table(lanes: &[DownloadSeries], ceiling: &Ceiling) -> Table {
    let oldest = lanes.first();
    let measured = lanes.iter().map(|lane| Row {
        name: lane.name.clone(),
        is_published: false,
        cells: vec![
            lane.cell(3, |trial| trial.server_cpu_s_per_gb),
            oldest.filter(|oldest| oldest.name != lane.name).and_then(|oldest| lane.cost_over(oldest)).into(),
            lane.cell(3, |trial| trial.client_cpu_s_per_gb),
            lane.cell(0, |trial| trial.megabytes_per_second),
            ceiling.share(lane.values(|trial| trial.megabytes_per_second)),
            lane.cell(0, |trial| trial.server_share * 100.0),
        ],
    });
    let published = PUBLISHED.iter().map(|(name, times)| Row {
        name: (*name).to_owned(),
        is_published: true,
        cells: [Cell::Empty, Cell::Number(*times, 1)].into_iter().chain(vec![Cell::Empty; 4]).collect(),
    });
    Table {
        title: "The same download from the same server over three versions of HTTP".to_owned(),
        corner: "version".to_owned(),
        columns: VERSION_COLUMNS.map(str::to_owned).to_vec(),
        rows: measured.chain(ceiling.row(VERSION_COLUMNS.len(), [3, 4, 0])).chain(published).collect(),
    }
}

fn between_versions(versions: &[DownloadSeries]) -> Option<String> {
    let [oldest, second, newest] = versions else { return None };
    let (one, two) = (newest.cost_over(oldest)?, newest.cost_over(second)?);
    Some(format!(
        "The server's CPU time over HTTP/3 was {:.2} times that over HTTP/1.1 (95 % interval: {:.2} to {:.2}) and {:.2} times \
         that over HTTP/2 ({:.2} to {:.2}).",
        one.ratio, one.low, one.high, two.ratio, two.low, two.high
    ))
}
