//! Study E7: what handshakes cost a server: full, resumed and 0-RTT, with and without the post-quantum key exchange and Retry.
//!
//! Each request has a connection of its own. The generator is `tercel load` for all, on a core of its own; a client's handshake costs
//! about as much as a server's, so where its core is the busier one the server's CPU time is the figure to compare. Beside the servers
//! stands the floor: the key exchange and the signature alone. On a link of 20 ms the study shows in which round trip the first byte
//! of the answer comes.

mod first_byte;
mod floor;
mod row;
#[cfg(test)]
mod tests;
mod trial;
mod words;

use std::io;

use bench::estimate::Estimate;
use bench::process::is_interruption;
use report::model::{Block, Study};

use crate::contestants::{Contestant, Http, Installed, InstalledServers, TestSite, look};
use crate::context::Context;
use crate::courses::{self, Rounds};
use crate::profiles::{self, Look};
use first_byte::FirstBytes;
use floor::Floor;
use row::{HYBRID, HandshakeRow, Validation};

/// What the study has measured so far.
#[derive(Default)]
struct Measured {
    rows: Vec<HandshakeRow>,
    floor: Floor,
    first_bytes: FirstBytes,
    notes: Vec<String>,
}

/// Runs the study.
///
/// # Errors
/// Nothing can be measured at all.
pub fn run(context: &mut Context<'_>) -> io::Result<Study> {
    let began = cpu::clock_seconds();
    let ground = TestSite::prepare()?;
    let mut field = look(&context.program, &[Http::One, Http::Three]);
    // Caddy brings another release of quic-go, and nothing else that is compared here.
    field.installed.retain(|server| server.who != Contestant::Caddy);
    field.absent.retain(|line| !line.starts_with(Contestant::Caddy.name()));
    let mut measured = Measured::default();
    let problem = measure(&field, &ground, &mut measured, context).err();
    measured.notes.splice(0..0, words::notes(&field, &ground, &measured.rows, context.cores));
    let Measured { rows, floor, first_bytes, notes } = measured;
    let mut study = Study {
        id: "e7".to_owned(),
        title: "Handshakes: full, resumed, 0-RTT".to_owned(),
        question: "How many handshakes a second does a server make on one core, what does each cost it, and what do tickets spare?"
            .to_owned(),
        method: words::method(&ground, context),
        findings: words::findings(&rows, &floor, &first_bytes),
        blocks: vec![
            Block::Table(words::table(&rows, &floor)),
            Block::Table(first_bytes.table()),
            Block::Plot(words::costs(&rows, &floor)),
        ],
        notes,
        problem: problem.map(crate::contestants::words::problem),
        seconds: 0.0,
        raw: serde_json::json!({ "rows": rows, "floor": floor, "first_bytes": first_bytes }),
    };
    let rounds: Vec<Rounds<'_>> = rows.iter().map(HandshakeRow::rounds).collect();
    study.blocks.extend(courses::shares(&rounds));
    profiles::add(context, looks(&rows, &ground), &mut study);
    study.seconds = cpu::clock_seconds() - began;
    Ok(study)
}

/// tercel's kinds of handshake without Retry: of others the ledger knows no functions.
fn looks<'a>(rows: &'a [HandshakeRow], ground: &'a TestSite) -> Vec<Look<'a>> {
    let look = |row: &'a HandshakeRow| {
        let scenario = row.scenario;
        let server = row.server.as_ref().filter(|_| !row.trials.is_empty())?;
        let is_one = scenario.who == Contestant::Tercel && scenario.validation == Validation::Handshake;
        let name = format!("{}, {}", scenario.name(), scenario.exchange.name());
        is_one.then(|| Look::new(&name, move |context| trial::profile((server, scenario), ground, context)))
    };
    rows.iter().filter_map(look).collect()
}

fn measure(
    field: &InstalledServers,
    ground: &TestSite,
    measured: &mut Measured,
    context: &mut Context<'_>,
) -> io::Result<()> {
    let home = cpu::allowed();
    cpu::pin(context.cores[0])?;
    let floor = Floor::measure(ground, context.scaled(2_000, 200));
    cpu::pin_to(&home)?;
    measured.floor = floor?;
    for server in &field.installed {
        prepare(server, ground, measured, context)?;
    }
    rounds(&mut measured.rows, ground, context)?;
    measured.first_bytes.measure(field, context)
}

/// Finds out which rows a server has.
fn prepare(
    server: &Installed,
    ground: &TestSite,
    measured: &mut Measured,
    context: &mut Context<'_>,
) -> io::Result<()> {
    let who = server.who;
    let mut has_hybrid = false;
    if !row::kinds(who).is_empty() {
        match trial::key_exchange(server, ground, context) {
            Ok(chosen) if chosen == HYBRID => has_hybrid = true,
            Ok(chosen) => measured.notes.push(format!(
                "{} chooses {chosen} where {HYBRID} is offered as well, so it has no rows of that.",
                who.name()
            )),
            Err(error) if is_interruption(&error, context.stop) => {
                return Err(io::ErrorKind::Interrupted.into());
            }
            Err(error) => {
                measured.notes.push(format!("{} is left out: {error}", who.name()));
                return Ok(());
            }
        }
    }
    let rows = row::scenarios(who, has_hybrid);
    measured.rows.extend(rows.into_iter().map(|row| HandshakeRow::new(row, Some(server.clone()))));
    Ok(())
}

/// All rows once in each round, every other round in the opposite order. The first round is not counted.
fn rounds(rows: &mut [HandshakeRow], ground: &TestSite, context: &mut Context<'_>) -> io::Result<()> {
    let (trials, seconds) = context.scaled((5, 1.2), (2, 0.5));
    let mut estimate = Estimate::of_rounds(rows.len(), trials + 1);
    for round in 0..=trials {
        for row in rows.iter_mut() {
            if context.is_stopped() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            turn(row, (round, trials), (ground, seconds), (context, &mut estimate))?;
        }
        rows.reverse();
    }
    if trials % 2 == 0 {
        rows.reverse();
    }
    Ok(())
}

fn turn(
    row: &mut HandshakeRow,
    (round, trials): (usize, usize),
    (ground, seconds): (&TestSite, f64),
    (context, estimate): (&mut Context<'_>, &mut Estimate),
) -> io::Result<()> {
    let Some(server) = row.server.as_ref().filter(|_| row.problem.is_none()) else { return Ok(()) };
    let name = format!("{:42} {:14}", row.scenario.name(), row.scenario.exchange.name());
    match trial::run((server, row.scenario), ground, seconds, context) {
        Ok(trial) => {
            let counted = if round == 0 { "warm-up".to_owned() } else { format!("{round}/{trials}") };
            let [client, server] = trial.busy().map(|share| share * 100.0);
            context.tell(&format!(
                "{name} {counted:8} {:6.0}/s  server {:4.0} µs, {server:3.0} %  client {:4.0} µs, {client:3.0} %{}",
                trial.rate,
                trial.server_us,
                trial.client_us,
                estimate.step(1.0)
            ));
            row.trials.extend((round > 0).then_some(trial));
        }
        Err(error) if is_interruption(&error, context.stop) => {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Err(error) => {
            context.tell(&format!("{name} {error}"));
            row.problem = Some(error.to_string());
        }
    }
    Ok(())
}
