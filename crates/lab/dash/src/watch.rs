//! Some viewers watch a film for some time, on one thread.

use crate::plan::WatchPlan;
use crate::player_connection::{Clock, Outcome, PlayerApp, PlayerConnection};
use crate::report::{self, Report};
use base::slab::Handle;
use base::time::{Duration, Instant};
use client::app::{ClientApp, ClientConnection};
use cpu::times::{ProcessTimes, Times};
use ports::AnyPort;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use transport::{Endpoint, EndpointConfig, IncomingPolicy};
use worker::Worker;

/// How often the clock and the order to stop are looked at.
const TICK: Duration = Duration::from_millis(50);
/// How long the close may take.
const FAREWELL: Duration = Duration::from_millis(50);

/// Lets them watch until the time is over, all have gone, or `stop` is set. `seed` must be secret.
///
/// # Errors
/// Only when the port itself has failed.
pub fn watch(port: AnyPort, plan: &WatchPlan, seed: [u8; 32], stop: &AtomicBool) -> io::Result<Report> {
    let config = EndpointConfig { incoming: IncomingPolicy::Ignore, ..EndpointConfig::default() };
    let speed = if plan.speed.is_finite() && plan.speed > 0.0 { plan.speed } else { 1.0 };
    let audience = PlayerApp {
        manifest: plan.manifest.clone(),
        settings: plan.settings,
        clock: Clock { origin: Instant::ZERO, speed },
        connect_s: plan.quic.transport.handshake_timeout.as_nanos() / 1_000_000_000,
        silence_s: plan.quic.transport.idle_timeout.as_nanos() / 1_000_000_000,
        is_over: false,
        outcomes: Vec::new(),
    };
    let worker_config = worker::Config { spin: plan.spin };
    let mut worker = Worker::new(port, ClientApp(audience), Endpoint::new(config, seed), None, worker_config);
    let began = worker.clock();
    worker.app_mut().clock.origin = began;
    let before = (Times::of_this_thread(), plan.server.and_then(ProcessTimes::of));
    let real = |span: Duration| Duration::from_nanos((span.as_nanos() as f64 / speed) as u64);
    let end = began + real(plan.span);
    let step = real(plan.ramp) / (plan.players.max(1) as u64);
    let http = Arc::new(http3::Config::client());
    let mut seated: Vec<Option<Handle>> = Vec::new();
    loop {
        let now = worker.clock();
        while seated.len() < plan.players && began + step * (seated.len() as u64) <= now {
            let state = PlayerConnection::new(seated.len(), &worker.app_mut().clock, now);
            let state = ClientConnection::new(Arc::clone(&http), state, 1, now);
            let made = worker.connect(&plan.quic, plan.manifest.host(), plan.address, state);
            if let Err(error) = &made {
                let outcome = Outcome { playback_record: None, fault: Some(error.to_string()) };
                worker.app_mut().outcomes.push((seated.len(), outcome));
            }
            seated.push(made.ok());
        }
        let have_left = worker.app_mut().outcomes.len() >= plan.players;
        if now >= end || have_left || stop.load(Ordering::Relaxed) {
            break;
        }
        let next = if seated.len() < plan.players { began + step * (seated.len() as u64) } else { end };
        worker.run_turn(Some(next.min(now + TICK).min(end)))?;
    }
    let (times, server) = (Times::of_this_thread().since(&before.0), plan.server.and_then(ProcessTimes::of));
    let seconds = worker.clock().saturating_since(began).as_secs_f64();
    worker.app_mut().is_over = true;
    worker.activate_all();
    let until = worker.clock() + FAREWELL;
    worker.run_turn(Some(until))?;
    let server =
        before.1.zip(server).map(|(before, after)| after.since(&before).iter().map(|one| one.cpu_s).sum());
    let mut outcomes = core::mem::take(&mut worker.app_mut().outcomes);
    outcomes.sort_by_key(|(number, _)| *number);
    Ok(report::of(plan, seconds, &outcomes, (times.cpu_s, server)))
}
