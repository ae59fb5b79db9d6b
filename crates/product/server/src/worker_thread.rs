//! One worker of HTTP/3 from its first turn to its last: it serves until the order to stop, lets its connections end, and
//! reports. The only place that makes a server's worker.

use crate::access_log::Recorder;
use crate::date::unix_now;
use crate::drain;
use crate::early_data::EarlyData;
use crate::endpoint_warnings::EndpointWarnings;
use crate::http3::{HeadCache, Server, WakeWorker};
use crate::low::{Handler, Shared};
use crate::metrics::board::BoardEntry;
use crate::progress::Progress;
use crate::records::WorkerRecord;
use crate::stop::{Phase, Stop};
use base::time::{Duration, Instant};
use cpu::thread_seconds;
use datapath::{Frames, Intake, Port};
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use transport::{Endpoint, EndpointConfig, ServerConfig};
use worker::task::{Sleep, TaskSleep, TaskWaker, yield_now};
use worker::{HandOffMember, HandshakeExecutor, Worker};

/// How long packets that have been sent may take to leave the interface.
const SETTLE: Duration = Duration::from_millis(200);
/// A worker that is a task looks at the descriptors and timers of others after this many turns without a pause. A look is an
/// `epoll_wait`.
const TURNS_PER_LOOK: u32 = 8;

/// What all workers of a server have in common.
pub(crate) struct SharedConfig {
    /// With keys that all workers share, so that one takes the tokens of another.
    pub(crate) endpoint: EndpointConfig,
    pub(crate) server: ServerConfig,
    pub(crate) worker: worker::Config,
    /// Takes the steps of handshakes that would hold a worker up.
    pub(crate) handshakes: HandshakeExecutor,
    pub(crate) http3: Arc<http3::Config>,
    pub(crate) early_data: EarlyData,
    pub(crate) heads: HeadCache,
    pub(crate) progress: Progress,
    /// How long connections have to finish after the order to stop; none: as long as they take.
    pub(crate) drain: Option<Duration>,
    pub(crate) shared: Shared,
}

/// What one worker is given for itself.
pub(crate) struct WorkerSetup<P> {
    pub(crate) number: u8,
    pub(crate) port: P,
    pub(crate) recorder: Recorder,
    /// Its part in the hand-off of datagrams, when there are several workers.
    pub(crate) member: Option<HandOffMember>,
    /// The core to keep, if any.
    pub(crate) core: Option<usize>,
    pub(crate) stop: Stop,
    pub(crate) board: BoardEntry,
}

/// A worker that serves.
pub(crate) struct ServingWorker<P: Port, H: Handler> {
    number: u8,
    core: Option<usize>,
    /// CPU seconds of the thread when it began.
    began_cpu_s: f64,
    worker: Worker<P, Server<H>>,
    warnings: EndpointWarnings,
    frames_before: Option<Frames>,
    stop: Stop,
    board: BoardEntry,
    drain: Option<Duration>,
    phase: WorkerPhase,
}

/// What the worker does about the order to stop.
#[derive(Clone, Copy)]
enum WorkerPhase {
    Serving,
    /// It takes nothing in.
    Paused,
    /// Until then at most.
    Draining(Option<Instant>),
}

/// Whether a worker goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Go {
    On,
    Over,
}

impl<P: Port, H: Handler> ServingWorker<P, H> {
    /// Makes a worker whose thread does nothing else, on that thread. `handler` is made there too.
    ///
    /// # Errors
    /// The core cannot be kept, or there is no randomness.
    pub(crate) fn alone(
        setup: WorkerSetup<P>,
        config: &SharedConfig,
        handler: impl FnOnce(u8) -> H,
    ) -> io::Result<ServingWorker<P, H>> {
        let wake = setup.port.waker().map(|waker| -> WakeWorker { Box::new(move || waker.wake()) });
        ServingWorker::new(setup, config, handler, wake)
    }

    /// Makes a worker that will be a task, on its thread. `waker` wakes the task.
    ///
    /// # Errors
    /// As [`ServingWorker::alone`].
    pub(crate) fn as_task(
        setup: WorkerSetup<P>,
        config: &SharedConfig,
        handler: impl FnOnce(u8) -> H,
        waker: &Arc<TaskWaker>,
    ) -> io::Result<ServingWorker<P, H>> {
        let waker = Arc::clone(waker);
        ServingWorker::new(setup, config, handler, Some(Box::new(move || waker.wake())))
    }

    fn new(
        mut setup: WorkerSetup<P>,
        config: &SharedConfig,
        handler: impl FnOnce(u8) -> H,
        wake: Option<WakeWorker>,
    ) -> io::Result<ServingWorker<P, H>> {
        let began_cpu_s = thread_seconds();
        if let Some(core) = setup.core {
            cpu::pin(core)?;
        }
        let frames_before = setup.port.frames();
        let handler = handler(setup.number);
        let mut app = Server::with_shared(handler, setup.recorder, config.shared.clone())
            .with_config(Arc::clone(&config.http3))
            .with_early_data(config.early_data)
            .with_head_cache(config.heads)
            .with_progress(config.progress);
        if let Some(wake) = wake {
            app = app.with_wake(wake);
        }
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        // Tokens outlive the process and the machine's uptime: they are dated by the calendar.
        let clock_offset =
            Duration::from_secs(unix_now()).saturating_sub(setup.port.now().saturating_since(Instant::ZERO));
        let endpoint = EndpointConfig { worker: setup.number, clock_offset, ..config.endpoint.clone() };
        let endpoint = Endpoint::new(endpoint, seed);
        let mut worker = Worker::new(setup.port, app, endpoint, Some(config.server.clone()), config.worker)
            .with_handshake_executor(Arc::clone(&config.handshakes));
        if let Some(member) = setup.member {
            worker = worker.with_hand_off(member);
        }
        Ok(ServingWorker {
            number: setup.number,
            core: setup.core,
            began_cpu_s,
            worker,
            warnings: EndpointWarnings::new(&config.shared.warnings),
            frames_before,
            stop: setup.stop,
            board: setup.board,
            drain: config.drain,
            phase: WorkerPhase::Serving,
        })
    }

    /// Serves to the end, on a thread that does nothing else.
    ///
    /// # Errors
    /// The data path has failed.
    pub(crate) fn run(mut self) -> io::Result<WorkerRecord> {
        while self.obey() == Go::On {
            let until = self.next_timeout();
            self.worker.run_turn(until)?;
            self.after_turn();
        }
        self.finish()
    }

    /// Serves to the end, as a task on a tokio runtime whose tasks share the thread. `waker` will wake it.
    ///
    /// # Errors
    /// The data path has failed, or the system has no descriptors left.
    pub(crate) async fn run_as_task(mut self, waker: Arc<TaskWaker>) -> io::Result<WorkerRecord> {
        let mut sleep = TaskSleep::new(&self.worker)?;
        let mut turns = 0;
        while self.obey() == Go::On {
            let mut is_over = false;
            poll_fn(|cx| {
                if core::mem::replace(&mut is_over, true) {
                    return Poll::Ready(Ok(()));
                }
                // Before the turn looks for calls: what comes later wakes this task again.
                waker.set(cx.waker());
                if let Err(error) = self.turn_as_task(&mut sleep, &mut turns, cx) {
                    return Poll::Ready(Err(error));
                }
                Poll::Pending
            })
            .await?;
        }
        self.finish()
    }

    /// One turn, and what has the task polled when the next one is due.
    fn turn_as_task(
        &mut self,
        sleep: &mut TaskSleep,
        turns: &mut u32,
        cx: &mut Context<'_>,
    ) -> io::Result<()> {
        let (now, deadline) = self.worker.turn_once()?;
        self.after_turn();
        let deadline = deadline.into_iter().chain(self.next_timeout()).min();
        if sleep.begin(&mut self.worker, now, deadline, cx)? == Sleep::Sound {
            *turns = 0;
            return Ok(());
        }
        *turns += 1;
        if turns.is_multiple_of(TURNS_PER_LOOK) {
            yield_now(cx);
        } else {
            cx.waker().wake_by_ref();
        }
        Ok(())
    }

    /// One turn in a loop of the program's own, and what that does next.
    ///
    /// # Errors
    /// The data path has failed.
    pub(crate) fn turn_in_loop(&mut self) -> io::Result<quic::Progress> {
        if self.obey() == Go::Over {
            return Ok(quic::Progress::Ended);
        }
        let (now, deadline) = self.worker.turn_once()?;
        self.after_turn();
        let own = deadline.into_iter().chain(self.next_timeout());
        // The program polls for readability only, and knows nothing of the data path.
        let deadline = own.chain(self.worker.retry_at()).chain(self.worker.port_timeout()?).min();
        Ok(quic::Progress::until(deadline, now))
    }

    pub(crate) fn worker(&self) -> &Worker<P, Server<H>> {
        &self.worker
    }

    pub(crate) fn worker_mut(&mut self) -> &mut Worker<P, Server<H>> {
        &mut self.worker
    }

    /// Heeds the order to stop. To be called before each turn.
    #[inline]
    pub(crate) fn obey(&mut self) -> Go {
        match self.phase {
            WorkerPhase::Serving if self.stop.phase() == Phase::Serving => Go::On,
            WorkerPhase::Serving | WorkerPhase::Paused => {
                self.change_phase();
                if matches!(self.phase, WorkerPhase::Draining(_)) { self.obey() } else { Go::On }
            }
            WorkerPhase::Draining(deadline) => {
                let is_late = deadline.is_some_and(|deadline| self.worker.now() >= deadline);
                let is_over = is_late || self.stop.has_reached(Phase::Over);
                if self.stop.is_ended() && self.worker.app_mut().end_tunnels() {
                    self.worker.activate_all();
                }
                if is_over || self.worker.app_mut().open_connections() == 0 { Go::Over } else { Go::On }
            }
        }
    }

    /// Does what the order says.
    #[cold]
    fn change_phase(&mut self) {
        let is_paused = matches!(self.phase, WorkerPhase::Paused);
        match self.stop.phase() {
            Phase::Paused if is_paused => {}
            Phase::Paused => {
                self.worker.set_intake(Intake::Closed);
                self.phase = WorkerPhase::Paused;
                self.stop.on_paused(self.number, self.worker.endpoint().handshakes());
            }
            Phase::Serving => {
                self.worker.set_intake(Intake::Open);
                self.phase = WorkerPhase::Serving;
            }
            Phase::Draining | Phase::Over => {
                if is_paused && !self.stop.is_retired() {
                    self.worker.set_intake(Intake::Open);
                }
                drain::begin(&mut self.worker);
                self.phase = WorkerPhase::Draining(self.drain.map(|drain| self.worker.now() + drain));
            }
        }
    }

    /// When a turn is due beside what the worker knows of.
    fn next_timeout(&mut self) -> Option<Instant> {
        let log_at = self.worker.app_mut().next_timeout();
        let deadline = match self.phase {
            WorkerPhase::Serving | WorkerPhase::Paused => None,
            WorkerPhase::Draining(deadline) => deadline,
        };
        [log_at, self.warnings.next_timeout(), deadline].into_iter().flatten().min()
    }

    /// What is done beside a turn now and then.
    #[inline]
    fn after_turn(&mut self) {
        let now = self.worker.now();
        self.worker.app_mut().on_time(now);
        let is_due = self.warnings.on_turn(now, self.worker.endpoint().counters());
        let asked = self.board.asked();
        if is_due || asked.is_some() {
            self.publish(asked);
        }
    }

    /// Publishes what the thread counts. Connections that are open are looked at only when it is `asked` to.
    #[cold]
    fn publish(&mut self, asked: Option<u64>) {
        let (worker, app) = (&self.worker, self.worker.app());
        let connections = asked.map(|_| app.tally(worker.entries()));
        self.board.publish(|metrics| {
            metrics.requests.copy(app.requests());
            metrics.http3 = app.served();
            metrics.quic_open = app.open_connections() as u64;
            metrics.endpoint = *worker.endpoint().counters();
            metrics.port = worker.counters();
            metrics.hand_offs = worker.hand_off_counters();
            metrics.connections = connections.unwrap_or(metrics.connections);
        });
        if let Some(ask) = asked {
            self.board.answer(ask);
        }
    }

    /// Closes what is left, and reports.
    ///
    /// # Errors
    /// The data path has failed.
    pub(crate) fn finish(mut self) -> io::Result<WorkerRecord> {
        drain::finish(&mut self.worker)?;
        self.warnings.look(self.worker.endpoint().counters());
        let ask = self.board.asked().unwrap_or_default();
        self.publish(Some(ask));
        let frames_after = self.settle()?;
        let ServingWorker { mut worker, number, core, began_cpu_s, frames_before, .. } = self;
        Ok(WorkerRecord {
            number,
            core,
            cpu_s: thread_seconds() - began_cpu_s,
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

    /// Waits until what was sent has left the interface, and tells how many frames are free then.
    fn settle(&mut self) -> io::Result<Option<Frames>> {
        let Some(before) = self.frames_before else { return Ok(None) };
        let worker = &mut self.worker;
        let deadline = worker.now() + SETTLE;
        while worker.port().frames().is_some_and(|now| now.free < before.free) && worker.now() < deadline {
            worker.run_turn(Some(worker.now() + Duration::from_millis(1)))?;
        }
        Ok(worker.port().frames())
    }
}
