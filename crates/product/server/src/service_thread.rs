//! One thread of a server of services: a worker of HTTP/3, and HTTP/1.1 and 2, as tasks of one current-thread runtime of tokio's.
//!
//! Tasks, timers and sockets of handlers run on this thread too, so that a wake crosses no threads. What handlers have spawned and
//! has not ended is dropped when the connections have ended; work of `spawn_blocking` is not waited for.

use crate::application::{Application, ThreadIndex, ThreadSetups};
use crate::records::{TcpRecord, ThreadRecord, WorkerRecord};
use crate::service::{HttpService, ServiceHandler};
use crate::stop::Stop;
use crate::tcp;
use crate::tcp_thread::TcpSetup;
use crate::threads::Job;
use crate::worker_thread::{ServingWorker, SharedConfig, WorkerSetup};
use datapath::Port;
use std::io;
use std::sync::Arc;
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::{JoinError, JoinHandle, spawn_local};
use worker::task::TaskWaker;

/// Services, of which each thread makes one.
pub(crate) struct Services<M>(pub(crate) M);

impl<M, S> Application for Services<M>
where
    M: Fn(ThreadIndex) -> S + Send + Sync + 'static,
    S: HttpService,
{
    fn jobs<P: Port + Send + 'static>(self, setups: ThreadSetups<P>) -> Vec<Job<Vec<ThreadRecord>>> {
        let ThreadSetups { config, workers, tcp, stop } = setups;
        let make = Arc::new(self.0);
        let threads = workers.len().max(tcp.len());
        let (mut workers, mut tcp) = (workers.into_iter(), tcp.into_iter());
        let job = |thread: ThreadIndex| {
            let (make, config, stop) = (Arc::clone(&make), Arc::clone(&config), stop.clone());
            let (worker, tcp) = (workers.next(), tcp.next());
            let serve = move || ServiceThread { worker, tcp, stop }.run(&config, || make(thread));
            Job::new(format!("worker {thread}"), serve)
        };
        (0..threads).map(job).collect()
    }
}

/// What one thread is given for itself.
struct ServiceThread<P> {
    worker: Option<WorkerSetup<P>>,
    tcp: Option<TcpSetup>,
    stop: Stop,
}

impl<P: Port + 'static> ServiceThread<P> {
    /// Serves until the order to stop, and to the end of the connections.
    fn run<S: HttpService>(
        self,
        config: &SharedConfig,
        service: impl FnOnce() -> S,
    ) -> io::Result<Vec<ThreadRecord>> {
        let ServiceThread { worker, tcp, stop } = self;
        if let Some(core) = tcp.as_ref().and_then(|tcp| tcp.core) {
            cpu::pin(core)?;
        }
        let runtime =
            Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default())?;
        let (worker, tcp) = runtime.block_on(async {
            let service = service();
            let worker = worker.map(|setup| start_worker(setup, config, service.clone(), stop.clone()));
            let worker = worker.transpose()?;
            let tcp = match tcp {
                Some(TcpSetup { number, core, listeners, setup }) => {
                    let _others = StopOthers(stop);
                    let served = tcp::serve_application_here(listeners, setup, service).await;
                    Some((number, core, served))
                }
                None => None,
            };
            let worker = match worker {
                Some(worker) => Some(worker.await),
                None => None,
            };
            io::Result::Ok((worker, tcp))
        })?;
        // What is still open ends now.
        runtime.shutdown_background();
        let worker = worker.map(resume).transpose()?;
        let mut records: Vec<_> =
            worker.into_iter().map(|record| ThreadRecord::Worker(Box::new(record))).collect();
        if let Some((number, core, served)) = tcp {
            // The thread's CPU time is in the worker's record, if there is one.
            let cpu_s = if records.is_empty() { cpu::thread_seconds() } else { 0.0 };
            records.push(ThreadRecord::Tcp(TcpRecord { number, core, cpu_s, counters: served?.finish() }));
        }
        Ok(records)
    }
}

/// Starts a worker as a task beside those of the runtime.
fn start_worker<P: Port + 'static>(
    setup: WorkerSetup<P>,
    config: &SharedConfig,
    service: impl HttpService,
    stop: Stop,
) -> io::Result<JoinHandle<io::Result<WorkerRecord>>> {
    let waker = Arc::new(TaskWaker::default());
    let handler = |_| ServiceHandler::new(service, config.shared.clone());
    let worker = ServingWorker::as_task(setup, config, handler, &waker)?;
    Ok(spawn_local(async move {
        let _others = StopOthers(stop);
        worker.run_as_task(waker).await
    }))
}

/// The worker's report. A panic of the worker goes on on its thread.
fn resume(ended: Result<io::Result<WorkerRecord>, JoinError>) -> io::Result<WorkerRecord> {
    ended.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(error) => Err(io::Error::other(error)),
    })
}

/// Stops the rest of the server when a part has ended, for whatever reason.
struct StopOthers(Stop);

impl Drop for StopOthers {
    fn drop(&mut self) {
        self.0.drain();
    }
}
