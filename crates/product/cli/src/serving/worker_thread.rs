//! One worker on its thread: made, run until the order to stop, seen off.

use super::endpoint_warnings::EndpointWarnings;
use super::threads::ThreadName;
use base::time::{Duration, Instant};
use cpu::thread_seconds;
use datapath::{Capabilities, Counters, Frames, Port};
use server::access_log::Recorder;
use server::date::unix_now;
use server::handler::{Files, Options};
use server::http3::{HeadCache, Server};
use server::packet_sizes::PacketSizes;
use server::served::Served;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use transport::{Endpoint, EndpointConfig, EndpointCounters, ServerConfig};
use worker::{HandOffCounters, HandOffMember, Worker};

/// How long packets that have been sent may take to leave the interface.
const DRAIN: Duration = Duration::from_millis(200);

/// What all workers of a server have in common.
pub(crate) struct SharedConfig {
    pub(crate) handler: Options,
    /// With keys that all workers share, so that one takes the tokens of another.
    pub(crate) endpoint: EndpointConfig,
    pub(crate) server: ServerConfig,
    pub(crate) config: worker::Config,
    pub(crate) heads: HeadCache,
    /// How long connections have to finish after the order to stop; none: as long as they take.
    pub(crate) drain_timeout: Option<Duration>,
}

/// What one worker is given for itself.
pub(crate) struct WorkerSetup<P> {
    pub(crate) number: u8,
    pub(crate) port: P,
    pub(crate) recorder: Recorder,
    /// Its part in a crew, when there are several workers.
    pub(crate) member: Option<HandOffMember>,
    /// The core to keep, if any.
    pub(crate) core: Option<usize>,
}

impl<P> ThreadName for WorkerSetup<P> {
    fn name(&self) -> String {
        format!("worker {}", self.number)
    }
}

/// What a worker did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) number: u8,
    pub(crate) core: Option<usize>,
    /// CPU seconds of its thread.
    pub(crate) cpu_s: f64,
    pub(crate) counters: Counters,
    pub(crate) hand_offs: HandOffCounters,
    /// What its endpoint took, refused and dropped.
    pub(crate) endpoint: EndpointCounters,
    /// What it did over HTTP/3.
    pub(crate) served: Served,
    /// How large the packets of those were that have closed.
    pub(crate) packet_sizes: PacketSizes,
    /// Its data path as it was at the end.
    pub(crate) capabilities: Capabilities,
    pub(crate) xdp_mode: Option<&'static str>,
    /// Packet frames before the first packet and after the last.
    pub(crate) frames: Option<[Frames; 2]>,
}

/// Runs a worker until `stop`.
///
/// # Errors
/// The core cannot be kept, there is no randomness, or the data path has failed.
pub(crate) fn work<P: Port>(
    mut worker_setup: WorkerSetup<P>,
    shared_config: &SharedConfig,
    stop: &AtomicBool,
) -> io::Result<Record> {
    let began = thread_seconds();
    if let Some(core) = worker_setup.core {
        cpu::pin(core)?;
    }
    let frames_before = worker_setup.port.frames();
    let mut app = Server::new(Files::new(shared_config.handler.clone()), worker_setup.recorder)
        .with_head_cache(shared_config.heads);
    if let Some(waker) = worker_setup.port.waker() {
        app = app.with_wake(Box::new(move || waker.wake()));
    }
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(io::Error::other)?;
    // Tokens outlive the process and the machine's uptime: they are dated by the calendar.
    let clock_offset = Duration::from_secs(unix_now())
        .saturating_sub(worker_setup.port.now().saturating_since(Instant::ZERO));
    let config =
        EndpointConfig { worker: worker_setup.number, clock_offset, ..shared_config.endpoint.clone() };
    let endpoint = Endpoint::new(config, seed);
    let mut worker = Worker::new(
        worker_setup.port,
        app,
        endpoint,
        Some(shared_config.server.clone()),
        shared_config.config,
    );
    if let Some(member) = worker_setup.member {
        worker = worker.with_hand_off(member);
    }
    let mut endpoint_warnings = EndpointWarnings::new(&shared_config.handler.warnings);
    serve(&mut worker, &mut endpoint_warnings, stop)?;
    server::drain(&mut worker, shared_config.drain_timeout, |worker, until| {
        turn(worker, &mut endpoint_warnings, until).map(ControlFlow::Continue)
    })?;
    endpoint_warnings.look(worker.endpoint().counters());
    let frames_after = settle(&mut worker, frames_before)?;
    Ok(Record {
        number: worker_setup.number,
        core: worker_setup.core,
        cpu_s: thread_seconds() - began,
        counters: worker.counters(),
        hand_offs: worker.hand_off_counters(),
        endpoint: *worker.endpoint().counters(),
        served: worker.app_mut().served(),
        packet_sizes: worker.app_mut().packet_sizes(),
        capabilities: worker.port().capabilities(),
        xdp_mode: worker.port().xdp_mode(),
        frames: frames_before.zip(frames_after).map(|(before, after)| [before, after]),
    })
}

fn serve<P: Port>(
    worker: &mut Worker<P, Server>,
    endpoint_warnings: &mut EndpointWarnings,
    stop: &AtomicBool,
) -> io::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        turn(worker, endpoint_warnings, None)?;
    }
    Ok(())
}

/// One turn, and what is done beside it now and then. Sleeps until `until` at most.
fn turn<P: Port>(
    worker: &mut Worker<P, Server>,
    endpoint_warnings: &mut EndpointWarnings,
    until: Option<Instant>,
) -> io::Result<()> {
    let log_at = worker.app_mut().next_timeout();
    worker.run_turn([log_at, endpoint_warnings.next_timeout(), until].into_iter().flatten().min())?;
    let now = worker.now();
    worker.app_mut().on_time(now);
    endpoint_warnings.on_turn(now, worker.endpoint().counters());
    Ok(())
}

/// Waits until what was sent has left the interface, and tells how many frames are free then.
fn settle<P: Port>(worker: &mut Worker<P, Server>, before: Option<Frames>) -> io::Result<Option<Frames>> {
    let Some(before) = before else { return Ok(None) };
    let deadline = worker.now() + DRAIN;
    while worker.port().frames().is_some_and(|now| now.free < before.free) && worker.now() < deadline {
        worker.run_turn(Some(worker.now() + Duration::from_millis(1)))?;
    }
    Ok(worker.port().frames())
}
