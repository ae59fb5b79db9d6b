//! A server and a client under attack, and an honest conversation between them all the while.

use super::Attacker;
use crate::host::HostOptions;
use crate::lab::StopReason;
use crate::network::HostId;
use crate::read_behaviour::ReadBehaviour;
use crate::scenario::Scenario;
use crate::transfer::{self, Transfer, TransferPlan, TransferSimulation, Workload};
use base::slab::Handle;
use base::time::Duration;
use link::Node;

/// How long and how hard.
#[derive(Clone, Debug)]
pub struct AttackRun {
    /// Datagrams of the attacker in all.
    pub datagrams: u64,
    /// Of those, a second.
    pub per_second: u64,
    /// Virtual time within which every honest connection must be done.
    pub patience: Duration,
}

/// How it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttackReport {
    /// Honest connections that were served.
    pub served: u64,
    /// The attacker's datagrams.
    pub sent: u64,
    /// Handshakes under way at the server at one time, at most.
    pub half_open: usize,
    /// Connections at the server at one time, at most.
    pub connections: usize,
    /// Virtual time.
    pub time: Duration,
}

/// The attacker sends in bursts this far apart.
const SLICE: Duration = Duration::from_millis(5);

/// Conversations that the attacker has heard before.
const REHEARSALS: usize = 4;

/// What an honest client does on each of its connections.
fn client_plan(scenario: &Scenario) -> TransferPlan {
    let lens = [1, 300, 5_000, 40_000];
    TransferPlan::new(ReadBehaviour::new(scenario.app_rng(), 0), lens.map(Transfer::download), 4)
}

impl AttackRun {
    /// Runs it over `scenario`; `watch` is called again and again, with the report so far.
    ///
    /// # Errors
    /// Everything that went wrong for the honest client, in words.
    pub fn run(
        &self,
        scenario: &Scenario,
        mut watch: impl FnMut(&AttackReport),
    ) -> Result<AttackReport, String> {
        let mut lab = transfer::build(scenario, &Workload::downloads([]))?;
        let camp = camp(&lab);
        let mut attacker = self.rehearse(&mut lab, scenario)?;
        let mut report = AttackReport::default();
        while attacker.sent < self.datagrams {
            let handle = lab.connect(client_plan(scenario))?;
            let began = lab.age();
            let done = lab.client().app_mut().done;
            while lab.client().app_mut().done == done {
                self.attack(&mut lab, camp, &mut attacker);
                pass(&mut lab, handle, &mut attacker)?;
                report.sent = attacker.sent;
                report.time = lab.age();
                report.half_open = report.half_open.max(lab.server().endpoint().half_open());
                report.connections = report.connections.max(lab.server().connections());
                watch(&report);
                if report.time.saturating_sub(began) > self.patience {
                    return Err(format!("an honest connection is not served: {report:?}"));
                }
            }
            report.served += 1;
        }
        Ok(report)
    }

    /// The attacker hears some conversations with this very server.
    fn rehearse(&self, lab: &mut TransferSimulation, scenario: &Scenario) -> Result<Attacker, String> {
        lab.network().borrow_mut().start_tap();
        for _ in 0..REHEARSALS {
            let done = lab.client().app_mut().done;
            lab.connect(client_plan(scenario))?;
            let halt = lab.run(self.patience, |lab| lab.client().app_mut().done > done);
            if halt != StopReason::Done {
                return Err(format!("not served in peace: {halt:?} {:?}", lab.client().app_mut().failures));
            }
        }
        let server = lab.hosts().0;
        let mut network = lab.network().borrow_mut();
        let (rng, old) = (network.fork_rng(), network.take_sightings());
        Ok(Attacker::new(rng, old, network.address(server)))
    }

    /// One burst.
    fn attack(&self, lab: &mut TransferSimulation, camp: HostId, attacker: &mut Attacker) {
        let client = lab.hosts().1;
        let mut network = lab.network().borrow_mut();
        let external = network.external_address(client);
        for _ in 0..self.per_second * SLICE.as_micros() / 1_000_000 {
            let datagram = attacker.next_datagram(external);
            network.inject(camp, datagram);
        }
        // What is answered to the camp is of no interest, and what was just sent is nothing to overhear.
        while network.take_arrival(camp).is_some() {}
        network.take_sightings();
    }
}

/// The attacker's host: further from both ends than they are from each other, so that a copy never arrives before what it
/// is a copy of.
fn camp(lab: &TransferSimulation) -> HostId {
    let (server, client) = lab.hosts();
    let mut network = lab.network().borrow_mut();
    let options = HostOptions { coalesce: Duration::from_micros(20) };
    let camp = network.add_host(([203, 0, 113, 7], 5_000).into(), options);
    for host in [server, client] {
        network.add_link(camp, host, vec![Node::Delay(Duration::from_millis(40))]);
        network.add_link(host, camp, vec![Node::Delay(Duration::from_millis(40))]);
    }
    camp
}

/// Lets a slice of time pass; the attacker overhears what is protected by keys.
fn pass(lab: &mut TransferSimulation, handle: Handle, attacker: &mut Attacker) -> Result<(), String> {
    let done = lab.client().app_mut().done;
    let halt = lab.run(SLICE, |lab| lab.client().app_mut().done > done);
    match halt {
        StopReason::Done | StopReason::OutOfTime => {}
        StopReason::Asleep => {
            let then = lab.network().borrow().now() + SLICE;
            lab.network().borrow_mut().advance(then);
        }
        StopReason::BusyLoop(_) | StopReason::Broken(_) => return Err(format!("{halt:?}")),
    }
    let mut failures = core::mem::take(&mut lab.client().app_mut().failures);
    failures.append(&mut lab.server().app_mut().failures);
    if !failures.is_empty() {
        return Err(format!("after {} datagrams: {failures:?}", attacker.sent));
    }
    lab.server().app_mut().reasons.clear();
    lab.client().app_mut().reasons.clear();
    let is_connected =
        lab.client().connection(handle).is_some_and(|(connection, _)| connection.is_connected());
    for sighting in lab.network().borrow_mut().take_sightings() {
        let is_short = sighting.bytes.first().is_some_and(|first| first & 0x80 == 0);
        if is_connected && is_short {
            attacker.overhear(sighting);
        }
    }
    Ok(())
}
