//! One heat: flows on a course, a while to settle, a while to be measured.

use super::ends::{Receiver, Sender, Sending};
use super::link_profile::LinkProfile;
use crate::lab::{Simulation, StopReason};
use crate::scenario::Scenario;
use base::slab::Handle;
use base::time::Duration;
use link::Node;
use recovery::congestion::{Algorithm, SlowStart};
use std::sync::Arc;
use transport::{StreamConfig, TransportConfig};

/// Windows and send buffers, in bytes: larger than any course's product with its queue, so that nothing but the
/// controller limits a flow.
const AMPLE: u64 = 1 << 30;

/// A flow to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowPlan {
    /// Its controller.
    pub algorithm: Algorithm,
    /// When it begins, from the beginning of the heat.
    pub starts_at: Duration,
}

/// What is run.
#[derive(Clone, Debug, PartialEq)]
pub struct ContestRun {
    /// The link.
    pub link_profile: LinkProfile,
    /// The flows, by the time at which they begin.
    pub entrants: Vec<FlowPlan>,
    /// What happens before is not measured.
    pub warm_up: Duration,
    /// What is measured.
    pub span: Duration,
    /// All chance comes from here.
    pub seed: u64,
}

impl ContestRun {
    /// One flow alone.
    pub fn alone(
        link_profile: LinkProfile,
        algorithm: Algorithm,
        warm_up: Duration,
        span: Duration,
    ) -> ContestRun {
        let entrants = vec![FlowPlan { algorithm, starts_at: Duration::ZERO }];
        ContestRun { link_profile, entrants, warm_up, span, seed: 1 }
    }

    /// Two flows, the second half a second after the first.
    pub fn pair(
        link_profile: LinkProfile,
        both: [Algorithm; 2],
        warm_up: Duration,
        span: Duration,
    ) -> ContestRun {
        ContestRun::crowd(link_profile, &both, warm_up, span)
    }

    /// Some flows, each half a second after the one before.
    pub fn crowd(
        link_profile: LinkProfile,
        flows: &[Algorithm],
        warm_up: Duration,
        span: Duration,
    ) -> ContestRun {
        let starts = (0..).map(|index| Duration::from_millis(500) * index);
        let entrants = flows.iter().zip(starts);
        let entrants = entrants.map(|(algorithm, starts_at)| FlowPlan { algorithm: *algorithm, starts_at });
        ContestRun { link_profile, entrants: entrants.collect(), warm_up, span, seed: 1 }
    }
}

/// What a flow came to while it was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Its controller.
    pub algorithm: Algorithm,
    /// Payload delivered in order, as a share of what the link could carry, headers not counted as payload.
    pub share: f64,
    /// Packets sent, packets declared lost (some of which may have arrived all the same), probe timeouts.
    pub sent: u64,
    /// See `sent`.
    pub lost: u64,
    /// See `sent`.
    pub timeouts: u64,
}

/// What a heat came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// In the order of the entrants.
    pub flows: Vec<Flow>,
    /// What half of the datagrams waited in the queue at most.
    pub wait_p50: Duration,
    /// What nineteen of twenty waited at most.
    pub wait_p95: Duration,
    /// Datagrams that entered the link, those that its queue had no room for, and those that it marked.
    pub entered: u64,
    /// See `entered`.
    pub overflowed: u64,
    /// See `entered`.
    pub marked: u64,
}

impl Outcome {
    /// The payload of all flows, as a share of what the link could carry.
    pub fn utilisation(&self) -> f64 {
        self.flows.iter().map(|flow| flow.share).sum()
    }

    /// Packets declared lost, as a share of those sent.
    pub fn lost(&self) -> f64 {
        let sum = |of: fn(&Flow) -> u64| self.flows.iter().map(of).sum::<u64>() as f64;
        sum(|flow| flow.lost) / sum(|flow| flow.sent).max(1.0)
    }

    /// Datagrams that the queue had no room for, as a share of those that came.
    pub fn overflow(&self) -> f64 {
        self.overflowed as f64 / self.entered.max(1) as f64
    }

    /// How evenly the flows share: 1 is evenly, one over their number is one alone.
    pub fn jain(&self) -> f64 {
        let shares: Vec<f64> = self.flows.iter().map(|flow| flow.share).collect();
        jain(&shares)
    }
}

/// Jain's index of shares; 1 if there is nothing to share.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

/// What is counted at one moment.
#[derive(Clone, Debug, Default)]
struct Account {
    /// Bytes received, packets sent, packets lost, timeouts: for each flow.
    flows: Vec<[u64; 4]>,
    entered: u64,
    overflowed: u64,
    marked: u64,
}

pub(super) type ContestSimulation = Simulation<Receiver, Sender>;

/// Runs a heat.
///
/// # Errors
/// When the lab cannot be built, or a connection ends.
pub fn run(heat: &ContestRun) -> Result<Outcome, String> {
    run_through(heat, &[])
}

/// Runs a heat whose data meet these nodes before the queue.
///
/// # Errors
/// As [`run`].
pub fn run_through(heat: &ContestRun, nodes: &[Node]) -> Result<Outcome, String> {
    let mut scenario = scenario(&heat.link_profile, heat.seed);
    scenario.to_server.splice(0..0, nodes.iter().cloned());
    let mut lab = scenario.build(Receiver::default(), Sender::default())?;
    let mut handles = Vec::new();
    for (index, entrant) in heat.entrants.iter().enumerate() {
        let wait = entrant.starts_at.saturating_sub(lab.age());
        proceed(&mut lab, wait)?;
        let transport = TransportConfig { congestion: entrant.algorithm, ..scenario.client.clone() };
        lab.client_config_mut().transport = Arc::new(transport.build().map_err(|error| error.to_string())?);
        handles.push(lab.connect(Sending::new(index as u8))?);
    }
    let wait = heat.warm_up.saturating_sub(lab.age());
    proceed(&mut lab, wait)?;
    let before = account(&mut lab, &handles);
    let (server, client) = lab.hosts();
    lab.network().borrow_mut().take_waits(client, server);
    proceed(&mut lab, heat.span)?;
    let after = account(&mut lab, &handles);
    let waits = lab.network().borrow_mut().take_waits(client, server);
    let capacity = heat.link_profile.bits_per_second as f64 / 8.0 * heat.span.as_secs_f64();
    let flows = heat.entrants.iter().zip(before.flows.iter().zip(&after.flows));
    let flows = flows.map(|(entrant, (then, now))| {
        let [received, sent, lost, timeouts] = core::array::from_fn(|index| now[index] - then[index]);
        let share = received as f64 / capacity;
        Flow { algorithm: entrant.algorithm, share, sent, lost, timeouts }
    });
    Ok(Outcome {
        flows: flows.collect(),
        wait_p50: waits.percentile(50),
        wait_p95: waits.percentile(95),
        entered: after.entered - before.entered,
        overflowed: after.overflowed - before.overflowed,
        marked: after.marked - before.marked,
    })
}

/// A lab in which one flow has just begun.
pub(super) fn begin(
    link_profile: LinkProfile,
    (algorithm, slow_start): (Algorithm, SlowStart),
    on_return: &[Node],
) -> Result<(ContestSimulation, Handle), String> {
    let mut scenario = scenario(&link_profile, 1);
    scenario.to_client.extend_from_slice(on_return);
    let mut lab = scenario.build(Receiver::default(), Sender::default())?;
    let transport = TransportConfig { congestion: algorithm, slow_start, ..scenario.client.clone() };
    lab.client_config_mut().transport = Arc::new(transport.build().map_err(|error| error.to_string())?);
    let handle = lab.connect(Sending::new(0))?;
    Ok((lab, handle))
}

/// Bytes of the first flow that have arrived in order.
pub(super) fn received(lab: &mut ContestSimulation) -> u64 {
    lab.server().app_mut().received.first().copied().unwrap_or(0)
}

fn scenario(link_profile: &LinkProfile, seed: u64) -> Scenario {
    let mut scenario = Scenario::interop(seed);
    (scenario.to_server, scenario.to_client) = link_profile.nodes();
    let streams = StreamConfig {
        initial_stream_window: AMPLE,
        max_stream_window: AMPLE,
        initial_connection_window: AMPLE,
        max_connection_window: AMPLE,
        send_buffer: AMPLE,
        connection_send_buffer: AMPLE,
        ..StreamConfig::default()
    };
    scenario.client.streams = streams.clone();
    scenario.server.streams = streams;
    scenario
}

pub(super) fn proceed(lab: &mut ContestSimulation, span: Duration) -> Result<(), String> {
    if span.is_zero() {
        return Ok(());
    }
    let halt = lab.run(span, |_| false);
    let failures = &lab.client().app_mut().failures;
    if halt == StopReason::OutOfTime && failures.is_empty() {
        return Ok(());
    }
    Err(format!("{halt:?}: {failures:?}"))
}

fn account(lab: &mut ContestSimulation, handles: &[Handle]) -> Account {
    let received = lab.server().app_mut().received.clone();
    let flows = handles.iter().enumerate().map(|(index, handle)| {
        let received = received.get(index).copied().unwrap_or(0);
        let counters = lab.client().connection(*handle).map(|(connection, _)| *connection.counters());
        let counters = counters.unwrap_or_default();
        [received, counters.sent_packets, counters.lost_packets, counters.probe_timeouts]
    });
    let flows = flows.collect();
    let (server, client) = lab.hosts();
    let link = lab.network().borrow().link_counters(client, server);
    Account { flows, entered: link.entered, overflowed: link.overflowed, marked: link.marked }
}
