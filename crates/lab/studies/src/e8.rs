//! Study E8: downloads over bad networks by real processes, tercel's controllers beside other implementations and the kernel's TCP.
//!
//! The simulator's study (`cargo xtask networks`, docs/networks) has tercel alone, and virtual time. This one takes 38 of its
//! cells into network namespaces that an emulated link joins (docs/decisions/004), with the same model of the link. One client for
//! all: what differs is who sends. Rounds go over all cells, so that an interrupted run has every cell less often, not half of
//! them. Nearly all of the time is waiting, so several downloads run at a time, each on a link of its own.

mod answers;
mod lane;
mod plan;
mod requests;
mod second;
mod sender;
mod simulated;
#[cfg(test)]
mod tests;
mod trial;
mod words;

use std::io;
use std::sync::mpsc::{Sender as Channel, channel};
use std::sync::{Mutex, PoisonError};

use bench::estimate::Estimate;
use bench::process::is_interruption;
use bench::site::Site;
use netns::emulator::LinkOptions;
use report::model::{Block, Study};
use sim::networks::Work;

use crate::contestants::{Http, TestSite, look};
use crate::context::Context;
use crate::courses::{self, Rounds};
use lane::{CellResult, Lane};
use plan::{HUNDRED, MEGABYTE, PAGE, Plan, PlannedCell, RESPONSE};
use sender::{Sender, senders};
use simulated::Compared;
use trial::Surroundings;

/// The kernel's controllers of TCP.
const KERNEL_HAS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Cells whose downloads last for seconds, and whose senders differ: late packets, a deep queue, jitter.
const DRAWN: [&str; 3] = ["30 % by 20 ms; 10 MB", "10 products; 10 MB", "up to 20 ms; 10 MB"];

/// Runs the study.
///
/// # Errors
/// Nothing can be measured at all.
pub fn run(context: &mut Context<'_>) -> io::Result<Study> {
    let began = cpu::clock_seconds();
    let plan = Plan::new(context.effort, &context.cells);
    if plan.cells.is_empty() {
        return Err(io::Error::other("no cell has all of these words in its name"));
    }
    // Without the right to make links there is nothing to measure.
    let cable = LinkOptions::default();
    drop(Site::linked(&cable, &cable).map_err(io::Error::other)?);
    let ground = TestSite::on(Site::Loopback, None)?;
    PAGE.into_iter().chain([MEGABYTE, RESPONSE]).try_for_each(|file| ground.add(file))?;
    let large = TestSite::on(Site::Loopback, None)?;
    if plan.cells.iter().any(|cell| cell.work == Work::Large) {
        large.add(HUNDRED)?;
    }
    let kernel = std::fs::read_to_string(KERNEL_HAS).unwrap_or_default();
    let (senders, absent) = senders(&look(&context.program, &Http::ALL), &kernel);
    let mut results: Vec<CellResult> = plan.cells.iter().map(|cell| empty(cell, &senders)).collect();
    let problem = rounds(&plan, &senders, &mut results, ([&ground, &large], context)).err();
    let compared = match problem {
        None => simulated::compare(&plan, &results, context),
        Some(_) => Vec::new(),
    };
    let again = second::visits(&results);
    let mut notes = absent;
    notes.extend(words::notes(results.iter().chain(&again)));
    let mut findings = words::findings(&senders, &results, &compared);
    findings.extend(second::findings(&senders, &results, &again));
    Ok(Study {
        id: "e8".to_owned(),
        title: "Bad networks, with real processes".to_owned(),
        question: "How long do downloads take over bad networks, by whom they are sent, and does the simulator say the same?".to_owned(),
        method: words::method(&plan),
        findings,
        blocks: blocks(&senders, &results, (&again, &compared)),
        notes,
        problem: problem.map(crate::contestants::words::problem),
        seconds: cpu::clock_seconds() - began,
        raw: serde_json::json!({ "seeds": plan.seeds, "cells": results, "simulated": compared }),
    })
}

/// Tables and plots in the order in which they are read; what nothing is known of is left out.
fn blocks(
    senders: &[Sender],
    results: &[CellResult],
    (again, compared): (&[CellResult], &[Compared]),
) -> Vec<Block> {
    let tables = [
        words::times(senders, results),
        words::ratios(senders, results),
        second::table(senders, again),
        words::requests(senders, results),
        words::queues(senders, results),
        words::standings("How the senders stand", senders, results),
        second::standings(senders, results, again),
        words::beside_simulator(compared),
    ];
    let tables = tables.into_iter().filter(|table| !table.rows.is_empty()).map(Block::Table);
    let plots = [words::heat(senders, results), words::near(senders, results)].map(Block::Plot);
    tables.chain(plots).chain(drawn(results)).collect()
}

/// A plot of the rate of each sender over the cells that [`DRAWN`] names.
fn drawn(results: &[CellResult]) -> Vec<Block> {
    let of_cell = |cell: &CellResult| {
        let contestants: Vec<Rounds<'_>> = cell
            .lanes
            .iter()
            .map(|lane| Rounds {
                name: lane.sender.clone(),
                courses: lane.attempts.iter().map(|attempt| &attempt.course[..]).collect(),
            })
            .collect();
        courses::sent(&format!("What left each sender, headers included; {}", cell.name), &contestants)
    };
    let is_drawn = |cell: &&CellResult| DRAWN.iter().any(|name| cell.name.ends_with(name));
    results.iter().filter(is_drawn).filter_map(of_cell).collect()
}

/// A cell in which nothing has happened.
fn empty(cell: &PlannedCell, senders: &[Sender]) -> CellResult {
    let lanes = senders.iter().map(|sender| Lane::new(&sender.name)).collect();
    CellResult { name: cell.name(), lanes }
}

/// All cells once in each round, with all senders: each cell begins with another one, and every other round has the opposite order.
fn rounds(
    plan: &Plan,
    senders: &[Sender],
    results: &mut [CellResult],
    ([ground, large], context): ([&TestSite; 2], &mut Context<'_>),
) -> io::Result<()> {
    let program = context.program.clone();
    let around = Surroundings { ground, large, program: &program, cores: context.cores, stop: context.stop };
    let mut estimate = Estimate::of_rounds(plan.cells.len(), plan.seeds.len());
    for (round, seed) in plan.seeds.iter().enumerate() {
        for (place, (cell, result)) in plan.cells.iter().zip(results.iter_mut()).enumerate() {
            let times = cell.times(plan.seeds.len());
            let open = result.lanes.iter_mut().zip(senders);
            let open = open.filter(|(lane, _)| cell.is_due(round) && lane.is_open(times));
            let mut due: Vec<(&mut Lane, &Sender)> = open.collect();
            if round % 2 == 0 {
                // They are taken from the end.
                due.reverse();
            }
            // No sender is always among the first, which start together.
            let ahead = place % due.len().max(1);
            due.rotate_right(ahead);
            visit((cell, *seed), due, around, context)?;
            let counted = format!("{}/{}", round + 1, plan.seeds.len());
            context.tell(&format!("{}: round {counted}{}", cell.name(), estimate.step(1.0)));
        }
    }
    Ok(())
}

/// Downloads over a cell by each sender that is due, some at a time.
fn visit(
    (cell, seed): (&PlannedCell, u64),
    due: Vec<(&mut Lane, &Sender)>,
    around: Surroundings<'_>,
    context: &mut Context<'_>,
) -> io::Result<()> {
    let due = Mutex::new(due);
    let (says, lines) = channel();
    std::thread::scope(|scope| {
        for _ in 0..cell.at_once() {
            let (says, due) = (says.clone(), &due);
            scope.spawn(move || {
                while let Some(next) = take(due) {
                    turn((cell, seed), next, around, &says);
                }
            });
        }
        drop(says);
        for line in lines {
            context.tell(&line);
        }
    });
    if context.is_stopped() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
}

fn take<T>(due: &Mutex<Vec<T>>) -> Option<T> {
    due.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

/// One download, noted in its lane.
fn turn(
    (cell, seed): (&PlannedCell, u64),
    (lane, sender): (&mut Lane, &Sender),
    around: Surroundings<'_>,
    says: &Channel<String>,
) {
    let line = match around.download(cell, sender, seed) {
        Ok(attempt) => {
            let line = words::line(&attempt, cell.limit());
            lane.attempts.push(attempt);
            line
        }
        Err(error) if is_interruption(&error, around.stop) => return,
        Err(error) => {
            lane.problem = Some(error.to_string());
            error.to_string()
        }
    };
    // There is no listener after a panic of the study.
    let _ = says.send(format!("{:60} {:14} {line}", cell.name(), sender.name));
}
