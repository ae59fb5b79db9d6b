//! One whole run of raw transfers, and everything that must hold at its end.

use super::client::{Client, Transfer, TransferPlan};
use super::server::Server;
use super::travels::Travels;
use crate::lab::{Simulation, StopReason};
use crate::qlog_files::QlogFiles;
use crate::read_behaviour::ReadBehaviour;
use crate::scenario::Scenario;
use crate::trace::Trace;
use base::time::Duration;
use transport::{Counters, Dir};

/// What is transferred.
#[derive(Clone, Debug)]
pub struct Workload {
    /// On every connection.
    pub transfers: Vec<Transfer>,
    /// At most this many at a time.
    pub parallel: usize,
    /// Connections, one after the other.
    pub connections: u64,
    /// The same as often again at the same time.
    pub at_once: u64,
    /// DATAGRAM frames that the client sends along on each connection.
    pub datagrams: u32,
    /// How often receivers do not take all they are lent, in millionths.
    pub pause_ppm: u32,
    /// Key updates that the client starts on each connection.
    pub key_updates: u32,
}

impl Workload {
    /// Downloads of these lengths on one connection.
    pub fn downloads(lens: impl IntoIterator<Item = u64>) -> Workload {
        let transfers = lens.into_iter().map(Transfer::download).collect();
        Workload {
            transfers,
            parallel: 1_000,
            connections: 1,
            at_once: 1,
            datagrams: 0,
            pause_ppm: 0,
            key_updates: 0,
        }
    }
}

/// What a run was like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Everything that was sent, as one number.
    pub digest: u64,
    /// Virtual time until the last connection was done.
    pub time: Duration,
    /// Virtual time until the last handshake was complete at the client.
    pub connected: Duration,
    /// Turns of both workers.
    pub turns: u64,
    /// What the last client connection counted.
    pub client: Counters,
    /// What the last server connection counted.
    pub server: Counters,
    /// Connections that the server began.
    pub accepted: u64,
    /// Paths that clients have opened beside the first.
    pub paths_opened: u64,
    /// Connections that were resumed.
    pub resumed: u64,
    /// Connections that the server has moved to the version that it prefers.
    pub moved: u64,
    /// DATAGRAM frames that reached the server.
    pub datagrams: u64,
    /// Events in traces.
    pub events: u64,
}

/// The two ends of raw transfers.
pub type TransferSimulation = Simulation<Server, Client>;

/// Longer than any idle timeout or closing period in use.
const AFTERLIFE: Duration = Duration::from_secs(400);

/// Runs `plan` over `scenario`.
///
/// # Errors
/// Everything that went wrong, in words.
pub fn run(scenario: &Scenario, plan: &Workload) -> Result<Report, String> {
    let (qlog, scenario) = QlogFiles::start(scenario);
    let mut lab = build(&scenario, plan)?;
    let trace = Trace::start(lab.network());
    let outcome = drive(&mut lab, &scenario, plan);
    trace.finish(lab.network())?;
    let report = outcome.and_then(|time| report(&mut lab, plan, time));
    drop(lab);
    let events = qlog.finish();
    let report = report?;
    Ok(Report { events: events?, ..report })
}

/// What the run was like, if all that was asked is done.
fn report(lab: &mut TransferSimulation, plan: &Workload, time: Duration) -> Result<Report, String> {
    verify(lab, plan)?;
    let network = lab.network().borrow().digest();
    let (client, turns) = (lab.client().app_mut().counters, lab.turns());
    let (server, accepted) = (lab.server().app_mut().counters, lab.server().app_mut().accepted);
    let datagrams = lab.server().app_mut().datagrams;
    let counters = *lab.server().endpoint().counters();
    let moved = counters.moved_to_v1 + counters.moved_to_v2;
    let Client { paths_opened, resumed, connected_at, .. } = *lab.client().app_mut();
    let now = lab.network().borrow().now();
    let connected = lab.age().saturating_sub(now.saturating_since(connected_at));
    let digest = network.value();
    let report = Report {
        digest,
        time,
        connected,
        turns,
        client,
        server,
        accepted,
        paths_opened,
        resumed,
        moved,
        datagrams,
        events: 0,
    };
    Ok(report)
}

/// The two ends, ready to run.
///
/// # Errors
/// When the scenario cannot work.
pub fn build(scenario: &Scenario, plan: &Workload) -> Result<TransferSimulation, String> {
    let mut rng = scenario.app_rng();
    scenario.build(Server::new(ReadBehaviour::new(rng.fork(), plan.pause_ppm)), Client::default())
}

/// Runs until all is done and both ends have forgotten each other; returns when all was done.
///
/// # Errors
/// How the run ended instead.
pub fn drive(lab: &mut TransferSimulation, scenario: &Scenario, plan: &Workload) -> Result<Duration, String> {
    let mut rng = scenario.app_rng();
    let read_behaviour = ReadBehaviour::new(rng.fork(), plan.pause_ppm);
    let mut time = Duration::ZERO;
    for round in 1..=plan.connections {
        let mut handles = Vec::new();
        for _ in 0..plan.at_once {
            let mut client_plan =
                TransferPlan::new(read_behaviour.clone(), plan.transfers.iter().copied(), plan.parallel);
            (client_plan.key_updates, client_plan.datagrams) = (plan.key_updates, plan.datagrams);
            client_plan.travels = Travels::new(scenario);
            handles.push(lab.connect(client_plan)?);
        }
        let halt = lab.run(scenario.limit.saturating_sub(time), |lab| {
            if lab.server().app_mut().talked >= round * plan.at_once {
                let client = lab.hosts().1;
                lab.network().borrow_mut().arm_rebinding(client);
            }
            lab.client().app_mut().done == round * plan.at_once || !lab.client().app_mut().failures.is_empty()
        });
        time = lab.age();
        let mut open = String::new();
        for handle in handles {
            open += &lab
                .client()
                .connection(handle)
                .map_or_else(String::new, |(_, client_plan)| client_plan.unfinished());
        }
        expect_done(lab, &halt, &format!("the transfer ({open})"))?;
    }
    // What is left is closing: both ends must forget by themselves.
    let halt = lab.run(AFTERLIFE, |lab| lab.client().connections() == 0 && lab.server().connections() == 0);
    expect_done(lab, &halt, "the end of the connections")?;
    Ok(time)
}

fn expect_done(lab: &mut TransferSimulation, halt: &StopReason, what: &str) -> Result<(), String> {
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

/// What must hold at the end.
///
/// # Errors
/// What does not.
pub fn verify(lab: &mut TransferSimulation, plan: &Workload) -> Result<(), String> {
    let whole = |transfer: &&Transfer| transfer.dir == Dir::Bidi && transfer.cancel_after.is_none();
    let expected = plan.transfers.iter().filter(whole).count() as u64 * plan.connections * plan.at_once;
    let server = lab.server().app_mut();
    if server.completed < expected {
        return Err(format!("the server completed {} of {expected} streams", server.completed));
    }
    Ok(())
}
