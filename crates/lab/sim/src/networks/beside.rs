//! Small requests beside a bulk download of the same connection.

use super::link_profile::NetworkProfile;
use super::run::LIMIT;
use crate::lab::StopReason;
use crate::read_behaviour::ReadBehaviour;
use crate::requests::{Ask, Client, RequestPlan, Server};
use base::time::Duration;
use http3::Config;
use recovery::congestion::Algorithm;
use std::sync::Arc;

/// Bytes of a small response.
pub const SMALL: u64 = 1_000;
/// The time from one small request to the next.
pub const APART: Duration = Duration::from_millis(50);
/// How many there are.
pub const COUNT: usize = 100;

/// What is downloaded meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Nothing.
    Nothing,
    /// A response of so many bytes, which is asked for first.
    Bulk(u64),
}

/// How long the small responses took, sorted.
///
/// # Errors
/// When the connection failed or it took too long, in words.
pub fn beside_bulk(
    profile: &NetworkProfile,
    beside: Beside,
    algorithm: Algorithm,
    seed: u64,
) -> Result<Vec<Duration>, String> {
    let mut scenario = profile.scenario(seed);
    scenario.server.congestion = algorithm;
    let behaviour = ReadBehaviour::new(scenario.app_rng().fork(), 0);
    let patient = Config { head_timeout: None, body_timeout: None, ..Config::server() };
    let mut lab = scenario.build(Server::new(behaviour.clone(), Arc::new(patient)), Client::default())?;
    let bulk = match beside {
        Beside::Nothing => None,
        Beside::Bulk(bytes) => Some(Ask::download(bytes)),
    };
    let asks = bulk.into_iter().chain([Ask::download(SMALL); COUNT]);
    let plan = RequestPlan::new(behaviour, asks, COUNT, 0).apart(APART);
    let now = lab.network().borrow().now();
    lab.connect(plan.into_session(&Arc::new(Config::client()), now))?;
    let small = |client: &Client| client.answered.iter().filter(|(bytes, _)| *bytes == SMALL).count();
    let halt = lab.run(LIMIT, |lab| {
        let client = lab.client().app_mut();
        small(client) == COUNT || !client.failures.is_empty()
    });
    let client = lab.client().app_mut();
    if halt != StopReason::Done || !client.failures.is_empty() {
        return Err(format!("{halt:?}: {:?}", client.failures));
    }
    let mut times: Vec<Duration> =
        client.answered.iter().filter(|(bytes, _)| *bytes == SMALL).map(|(_, time)| *time).collect();
    times.sort();
    Ok(times)
}
