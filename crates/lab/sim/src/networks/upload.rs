//! An upload over a bad link: the client sends, and no one asks it to go on.

use super::link_profile::NetworkProfile;
use super::run::{LIMIT, Progress};
use crate::lab::StopReason;
use crate::read_behaviour::ReadBehaviour;
use crate::requests::{Ask, Client, RequestPlan, Server};
use base::time::Duration;
use http3::Config;
use recovery::congestion::Algorithm;
use std::sync::Arc;

/// Bytes that are sent.
const BYTES: u64 = 10_000_000;

/// What an upload of 10 MB came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Upload {
    /// Until its response is there.
    pub time: Duration,
    /// From the end of the outage until content arrived again.
    pub resumed_after: Option<Duration>,
}

/// Runs an upload; the link's way to the client is the upload's way to the server.
///
/// # Errors
/// When the connection failed or it took too long, in words.
pub fn upload(profile: &NetworkProfile, algorithm: Algorithm, seed: u64) -> Result<Upload, String> {
    let mut scenario = profile.scenario(seed);
    core::mem::swap(&mut scenario.to_client, &mut scenario.to_server);
    scenario.client.congestion = algorithm;
    let behaviour = ReadBehaviour::new(scenario.app_rng().fork(), 0);
    let patient = Config { head_timeout: None, body_timeout: None, ..Config::server() };
    let mut lab = scenario.build(Server::new(behaviour.clone(), Arc::new(patient)), Client::default())?;
    let plan = RequestPlan::new(behaviour, [Ask { up: BYTES, ..Ask::download(0) }], 1, 0);
    let now = lab.network().borrow().now();
    lab.connect(plan.into_session(&Arc::new(Config::client()), now))?;
    let silent_until = profile.silence().map(|(_, to)| to);
    let mut progress = Progress::default();
    let halt = lab.run(LIMIT, |lab| {
        progress.on_received(lab.age(), lab.server().app_mut().received, silent_until);
        let client = lab.client().app_mut();
        client.done > 0 || !client.failures.is_empty()
    });
    let failures = lab.client().app_mut().failures.clone();
    if halt != StopReason::Done || !failures.is_empty() {
        return Err(format!("{halt:?} after {:.3} s: {failures:?}", lab.age().as_secs_f64()));
    }
    let resumed_after = silent_until.and_then(|end| Some(progress.resumed_at?.saturating_sub(end)));
    Ok(Upload { time: lab.age(), resumed_after })
}
