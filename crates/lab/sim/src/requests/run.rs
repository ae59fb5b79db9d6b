//! One whole run of requests, and everything that must hold at its end.

use super::ask::Ask;
use super::client::{Client, RequestPlan};
use super::server::Server;
use crate::lab::{Simulation, StopReason};
use crate::qlog_files::QlogFiles;
use crate::read_behaviour::ReadBehaviour;
use crate::scenario::Scenario;
use crate::trace::Trace;
use base::time::Duration;
use http3::Config;
use std::sync::Arc;
use transport::Counters;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Workload {
    /// On every connection.
    pub asks: Vec<Ask>,
    /// At most this many at a time.
    pub parallel: usize,
    /// Connections, one after the other.
    pub connections: u64,
    /// How often receivers do not take all they are lent, in millionths.
    pub pause_ppm: u32,
    /// Key updates that the client starts on each connection.
    pub key_updates: u32,
}

impl Workload {
    /// Downloads of these lengths on one connection.
    pub fn downloads(lens: impl IntoIterator<Item = u64>) -> Workload {
        let asks = lens.into_iter().map(Ask::download).collect();
        Workload { asks, parallel: 1_000, connections: 1, pause_ppm: 0, key_updates: 0 }
    }
}

/// What a run was like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Everything that was sent, as one number.
    pub digest: u64,
    /// Virtual time until the last connection was done.
    pub time: Duration,
    /// Turns of both workers.
    pub turns: u64,
    /// What the last client connection counted.
    pub client: Counters,
    /// What the last server connection counted.
    pub server: Counters,
    /// Events in traces.
    pub events: u64,
}

/// Longer than any idle timeout or closing period in use.
const AFTERLIFE: Duration = Duration::from_secs(400);

/// Runs `plan` over `scenario`.
///
/// # Errors
/// Everything that went wrong, in words.
pub fn run(scenario: &Scenario, plan: &Workload) -> Result<Report, String> {
    let mut rng = scenario.app_rng();
    let read_behaviour = ReadBehaviour::new(rng.fork(), plan.pause_ppm);
    // Networks that are cut off for seconds are slower than a server on the internet has patience.
    let patient = Config { head_timeout: None, body_timeout: None, ..Config::server() };
    let (qlog, scenario) = QlogFiles::start(scenario);
    let mut lab =
        scenario.build(Server::new(read_behaviour.clone(), Arc::new(patient)), Client::default())?;
    let trace = Trace::start(lab.network());
    let outcome = drive(&mut lab, &scenario, plan, &read_behaviour);
    trace.finish(lab.network())?;
    let report = outcome.and_then(|time| report(&mut lab, plan, time));
    drop(lab);
    let events = qlog.finish();
    let report = report?;
    Ok(Report { events: events?, ..report })
}

/// What the run was like, if all that was asked is done.
fn report(lab: &mut Simulation<Server, Client>, plan: &Workload, time: Duration) -> Result<Report, String> {
    let whole = plan.asks.iter().filter(|ask| !ask.is_cancelled).count() as u64 * plan.connections;
    let completed = lab.server().app_mut().completed;
    if completed < whole {
        return Err(format!("the server completed {completed} of {whole} requests"));
    }
    let digest = lab.network().borrow().digest().value();
    let (client, server) = (lab.client().app_mut().counters, lab.server().app_mut().counters);
    Ok(Report { digest, time, turns: lab.turns(), client, server, events: 0 })
}

/// Runs until all is done and both ends have forgotten each other; returns when all was done.
fn drive(
    lab: &mut Simulation<Server, Client>,
    scenario: &Scenario,
    plan: &Workload,
    read_behaviour: &ReadBehaviour,
) -> Result<Duration, String> {
    let config = Arc::new(Config::client());
    let mut time = Duration::ZERO;
    for connection in 1..=plan.connections {
        let client_plan = RequestPlan::new(
            read_behaviour.clone(),
            plan.asks.iter().copied(),
            plan.parallel,
            plan.key_updates,
        );
        let now = lab.network().borrow().now();
        let handle = lab.connect(client_plan.into_session(&config, now))?;
        let halt = lab.run(scenario.limit.saturating_sub(time), |lab| {
            if lab.server().app_mut().talked > 0 {
                let client = lab.hosts().1;
                lab.network().borrow_mut().arm_rebinding(client);
            }
            lab.client().app_mut().done == connection || !lab.client().app_mut().failures.is_empty()
        });
        time = lab.age();
        let open = lab.client().connection(handle).map(|(_, session)| session.messages.unfinished());
        expect_done(lab, &halt, &format!("the requests ({})", open.unwrap_or_default()))?;
    }
    // What is left is closing: both ends must forget by themselves.
    let halt = lab.run(AFTERLIFE, |lab| lab.client().connections() == 0 && lab.server().connections() == 0);
    expect_done(lab, &halt, "the end of the connections")?;
    Ok(time)
}

fn expect_done(lab: &mut Simulation<Server, Client>, halt: &StopReason, what: &str) -> Result<(), String> {
    let mut failures = lab.client().app_mut().failures.clone();
    failures.extend(lab.server().app_mut().failures.iter().cloned());
    if *halt == StopReason::Done && failures.is_empty() {
        return Ok(());
    }
    let age = lab.age().as_secs_f64();
    failures.truncate(5);
    let reasons = lab.server().app_mut().reasons.clone();
    Err(format!(
        "{what}: {halt:?} after {age:.3} s; {failures:?}; the server's connections ended by {reasons:?}"
    ))
}
