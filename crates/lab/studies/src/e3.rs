//! Study E3: requests per second against latency, over kernel UDP and over AF_XDP.
//!
//! A server and a client of the QUIC perf protocol, at the two ends of a veth pair, on a core each. Rounds go through all variants
//! in turn, so that whatever disturbs the machine disturbs all of them; within a variant's turn the server stays and the number of
//! outstanding requests goes up.
//!
//! Rejected: the loopback interface, which AF_XDP does not reach; a new server for each point, which would cost more time than
//! is measured.

mod plots;
mod series;
mod tables;
mod trial;
mod variant;
mod words;

use std::io;

use bench::estimate::Estimate;
use bench::folder::Folder;
use bench::process::is_interruption;
use bench::site::Site;
use profile::Profile;
use report::model::{Block, Study};

use crate::context::Context;
use crate::courses::{self, Rounds};
use crate::profiles::{self, Look};
use series::VariantTrials;
use trial::{Load, Service, TrialSite};
use variant::Variant;

/// Outstanding requests of the published sweep.
const SWEEP: [usize; 10] = [1, 2, 4, 8, 12, 16, 20, 32, 64, 128];
const QUICK_SWEEP: [usize; 5] = [1, 4, 16, 32, 64];
/// Those of two connections, on each of them.
const PAIRED_SWEEP: [usize; 6] = [1, 4, 8, 16, 32, 64];
const QUICK_PAIRED_SWEEP: [usize; 3] = [1, 8, 32];
/// Those which more rounds than the first measure again: the ones that are compared with an interval.
const REPEATED: [usize; 2] = [1, 4];

/// Outstanding requests of profiles: what one costs alone, and near the peak.
const PROFILED: [usize; 2] = [1, 32];

/// How much is measured.
struct Scope {
    variants: &'static [Variant],
    sweep: &'static [usize],
    /// Rounds in which only [`REPEATED`] is measured.
    repetitions: usize,
    paired: &'static [Variant],
    paired_sweep: &'static [usize],
    seconds: f64,
    warm_up: f64,
}

impl Scope {
    fn of(context: &Context<'_>) -> Scope {
        Scope {
            variants: context.scaled(variant::FULL, variant::QUICK),
            sweep: context.scaled(&SWEEP, &QUICK_SWEEP),
            repetitions: context.scaled(4, 2),
            paired: context.scaled(variant::PAIRED, &[variant::GSO, variant::DRIVER]),
            paired_sweep: context.scaled(&PAIRED_SWEEP, &QUICK_PAIRED_SWEEP),
            seconds: context.scaled(2.5, 0.8),
            warm_up: context.scaled(0.5, 0.2),
        }
    }

    /// What a visit of a variant weighs, in points measured: bare datagrams are one more.
    fn visit(&self, points: usize) -> f64 {
        (points + 1) as f64
    }

    fn estimate(&self) -> Estimate {
        let first = self.visit(self.sweep.len()) * self.variants.len() as f64;
        let others = self.visit(REPEATED.len()) * (self.repetitions * self.variants.len()) as f64;
        let paired = (self.paired.len() * self.paired_sweep.len()) as f64;
        Estimate::new(first + others + paired, first / 4.0)
    }

    fn load<'a>(&self, connections: usize, outstanding: usize, cores: &'a [usize]) -> Load<'a> {
        Load { connections, outstanding, cores, seconds: self.seconds, warm_up: self.warm_up }
    }
}

/// The cores of server and client where there is one connection, and where there are two.
struct Cores {
    one: [usize; 2],
    two: [Vec<usize>; 2],
    /// Whether two workers of the server and two threads of the client have a core each.
    are_enough: bool,
}

impl Cores {
    fn of(context: &Context<'_>) -> Cores {
        let [server, client] = context.cores;
        let others: Vec<usize> =
            cpu::allowed().into_iter().filter(|core| ![server, client].contains(core)).collect();
        match others[..] {
            [third, fourth, ..] => Cores {
                one: context.cores,
                two: [vec![server, third], vec![client, fourth]],
                are_enough: true,
            },
            _ => Cores {
                one: context.cores,
                // Crosswise: the ends of a connection are on different cores, as where there is one.
                two: [vec![server, client], vec![client, server]],
                are_enough: false,
            },
        }
    }
}

/// Runs the study.
///
/// # Errors
/// Nothing can be measured at all: no lab can be made.
pub fn run(context: &mut Context<'_>) -> io::Result<Study> {
    let began = cpu::clock_seconds();
    let (scope, cores) = (Scope::of(context), Cores::of(context));
    let mut single: Vec<VariantTrials> = scope.variants.iter().copied().map(VariantTrials::new).collect();
    let mut paired: Vec<VariantTrials> = scope.paired.iter().copied().map(VariantTrials::new).collect();
    let mut estimate = scope.estimate();
    let measured = measure_single(context, &scope, &cores, (&mut single, &mut estimate))
        .and_then(|()| measure_paired(context, &scope, &cores, (&mut paired, &mut estimate)));
    if let Err(error) = &measured
        && single.iter().all(|lane| lane.points.is_empty())
        && !is_interruption(error, context.stop)
    {
        return Err(io::Error::new(error.kind(), error.to_string()));
    }
    let raw = |lanes: &[VariantTrials]| {
        lanes.iter().map(|lane| serde_json::to_value(lane.raw())).collect::<Result<Vec<_>, _>>()
    };
    let mut study = Study {
        id: "e3".to_owned(),
        title: "Requests per second against latency".to_owned(),
        question: "How many small exchanges a second does one connection carry, how long does each take, and what does AF_XDP \
                   change about it?"
            .to_owned(),
        method: words::method(&scope, &cores),
        findings: words::findings(&single, &paired, &cores),
        blocks: blocks(&scope, &single, &paired, &cores),
        notes: words::notes(&single, &paired, &cores),
        problem: measured.err().map(|error| error.to_string()),
        seconds: 0.0,
        raw: serde_json::json!({ "one_connection": raw(&single)?, "two_connections": raw(&paired)? }),
    };
    profiles::add(context, looks(&scope, &cores, &single), &mut study);
    study.seconds = cpu::clock_seconds() - began;
    Ok(study)
}

/// Paths that sleep: of one that never does, most samples are of looking for work.
fn looks<'a>(scope: &'a Scope, cores: &'a Cores, single: &'a [VariantTrials]) -> Vec<Look<'a>> {
    let measured = single.iter().filter(|lane| !lane.points.is_empty() && !lane.variant.never_sleeps());
    let look = |(variant, outstanding): (Variant, usize)| {
        let name = format!("{}, {outstanding} outstanding", variant.name);
        Look::new(&name, move |context| profile(scope, cores, (variant, outstanding), context))
    };
    measured.flat_map(|lane| PROFILED.map(|outstanding| (lane.variant, outstanding))).map(look).collect()
}

fn profile(
    scope: &Scope,
    cores: &Cores,
    (variant, outstanding): (Variant, usize),
    context: &Context<'_>,
) -> io::Result<Profile> {
    let site = Site::veth(1).map_err(io::Error::other)?;
    let arena =
        TrialSite { program: &context.program, site: &site, stop: context.stop, folder: Folder::make()? };
    let [server, client] = cores.one;
    let perf = arena.serve(variant, Service::Perf, &[server])?;
    let profile = arena.profile(&perf, scope.load(1, outstanding, &[client]), context);
    arena.end(perf)?;
    profile
}

/// One connection, one worker, one thread.
fn measure_single(
    context: &mut Context<'_>,
    scope: &Scope,
    cores: &Cores,
    (lanes, estimate): (&mut [VariantTrials], &mut Estimate),
) -> io::Result<()> {
    let site = Site::veth(1).map_err(io::Error::other)?;
    let program = context.program.clone();
    let arena = TrialSite { program: &program, site: &site, stop: context.stop, folder: Folder::make()? };
    let ([server, client], rounds) = (cores.one, scope.repetitions + 1);
    for round in 0..rounds {
        for lane in lanes.iter_mut().filter(|lane| lane.problem.is_none()) {
            let points: &[usize] = if round == 0 { scope.sweep } else { &REPEATED };
            let mut visit = || {
                let echo = arena.serve(lane.variant, Service::Echo, &[server])?;
                lane.echoes.push(arena.ask(&echo, scope.load(1, 1, &[client]))?);
                arena.end(echo)?;
                let perf = arena.serve(lane.variant, Service::Perf, &[server])?;
                for outstanding in points {
                    let trial = arena.ask(&perf, scope.load(1, *outstanding, &[client]))?;
                    lane.points.entry(*outstanding).or_default().push(trial);
                }
                arena.end(perf)
            };
            let visited = visit();
            excuse(lane, visited, context)?;
            let left = estimate.step(scope.visit(points.len()));
            context.tell(&format!("{}{left}", words::progress(lane, round + 1, rounds)));
        }
    }
    Ok(())
}

/// Two connections on two workers and two threads.
fn measure_paired(
    context: &mut Context<'_>,
    scope: &Scope,
    cores: &Cores,
    (lanes, estimate): (&mut [VariantTrials], &mut Estimate),
) -> io::Result<()> {
    let site = Site::veth(2).map_err(io::Error::other)?;
    let program = context.program.clone();
    let arena = TrialSite { program: &program, site: &site, stop: context.stop, folder: Folder::make()? };
    for lane in lanes {
        let mut visit = || {
            let perf = arena.serve(lane.variant, Service::Perf, &cores.two[0])?;
            for outstanding in scope.paired_sweep {
                let trial = arena.ask_all(&perf, scope.load(2, *outstanding, &cores.two[1]))?;
                lane.points.entry(*outstanding).or_default().push(trial);
            }
            arena.end(perf)
        };
        let visited = visit();
        excuse(lane, visited, context)?;
        let left = estimate.step(scope.paired_sweep.len() as f64);
        context.tell(&format!("two connections: {}{left}", words::progress(lane, 1, 1)));
    }
    Ok(())
}

/// A variant that does not work here is left out from then on; an interruption ends everything.
fn excuse(lane: &mut VariantTrials, visited: io::Result<()>, context: &Context<'_>) -> io::Result<()> {
    let Err(error) = visited else { return Ok(()) };
    if is_interruption(&error, context.stop) {
        return Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted"));
    }
    lane.problem = Some(error.to_string());
    Ok(())
}

fn blocks(scope: &Scope, single: &[VariantTrials], paired: &[VariantTrials], cores: &Cores) -> Vec<Block> {
    let Some(baseline) = single.first() else { return Vec::new() };
    let percentiles = 0..trial::PERCENTILES.len();
    let mut blocks = vec![
        Block::Table(tables::single(single, baseline)),
        Block::Table(tables::costs(single)),
        Block::Table(tables::tails(single)),
        Block::Plot(plots::distribution(single, 1)),
        Block::Table(tables::four(single)),
        Block::Table(tables::sweep("Requests a second on one connection", single, scope.sweep)),
        Block::Plot(plots::rates("Requests a second against outstanding requests, one connection", single)),
    ];
    for which in percentiles {
        blocks.push(Block::Plot(plots::latencies(single, which)));
        blocks.push(Block::Table(tables::latencies(single, scope.sweep, which)));
    }
    let rounds: Vec<Rounds<'_>> = single.iter().map(|lane| lane.rounds(1)).collect();
    blocks.extend(courses::blocks(&rounds));
    if paired.iter().any(|lane| !lane.points.is_empty()) {
        let title = "Requests a second on two connections and two workers";
        blocks.push(Block::Table(tables::sweep(title, paired, scope.paired_sweep)));
        blocks.push(Block::Table(tables::paired(single, paired, cores)));
        blocks.push(Block::Plot(plots::rates("Requests a second, two connections and two workers", paired)));
    }
    blocks
}
