//! The threads of a server that a program starts: one for HTTP/3, one for HTTP/1.1 and 2, one that waits for both.

use crate::access_log::{AccessLog, Recorder};
use crate::drain::drain;
use crate::http3;
use crate::low::{Handler, Shared};
use crate::running::{Phase, Stop};
use crate::service::ServiceHandler;
use crate::tcp::{self, ApplicationSetup, Limits};
use ::http::{Request, Response};
use base::time::{Duration, Instant};
use body::Body;
use bytes::Bytes;
use crypto::ServerTls;
use datapath::Port as _;
use std::fmt::Display;
use std::io;
use std::net::TcpListener;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::{Builder, Scope, ScopedJoinHandle};
use tokio::runtime::Handle;
use tokio::sync::oneshot::{self, Receiver};
use tower_service::Service;
use transport::{Endpoint, EndpointConfig, ServerConfig, TransportConfig};
use udp::UdpPort;
use worker::Worker;

/// How often the worker of a server that is told to close looks up, without a packet or a timer.
const LOOK: Duration = Duration::from_millis(100);

/// What the thread of HTTP/3 is given.
pub(crate) struct Quic<S> {
    pub(crate) port: UdpPort,
    pub(crate) tls: ServerTls,
    pub(crate) service: S,
    pub(crate) recorder: Recorder,
    pub(crate) shared: Shared,
}

/// What the thread of HTTP/1.1 and 2 is given.
pub(crate) struct Tcp<S> {
    pub(crate) listener: TcpListener,
    pub(crate) tls: Arc<rustls::ServerConfig>,
    pub(crate) service: S,
    pub(crate) recorder: Recorder,
    pub(crate) shared: Shared,
}

/// A server that has begun.
pub(crate) struct Begun {
    pub(crate) stop: Stop,
    pub(crate) result: Receiver<io::Result<()>>,
}

/// Starts the threads. The log ends with the last of them.
///
/// # Errors
/// The system gives no thread.
pub(crate) fn start<S, B>(
    quic: Quic<S>,
    tcp: Tcp<S>,
    stop: Stop,
    drain: Option<std::time::Duration>,
    log: AccessLog,
) -> io::Result<Begun>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Display,
    S::Future: 'static,
    B: http_body::Body<Data = Bytes> + 'static,
    B::Error: Display,
{
    let (told, result) = oneshot::channel();
    let ours = stop.clone();
    let around = Handle::try_current().ok();
    let drain = drain.map(Duration::from);
    Builder::new().name("tercel".to_owned()).spawn(move || {
        let result = std::thread::scope(|scope| run(scope, (quic, tcp), &ours, drain, around));
        drop(log);
        // The program may have dropped the server.
        let _ = told.send(result);
    })?;
    Ok(Begun { stop, result })
}

/// Runs both threads to their ends. One that fails ends the other.
fn run<'scope, 'env, S, B>(
    scope: &'scope Scope<'scope, 'env>,
    (quic, tcp): (Quic<S>, Tcp<S>),
    stop: &'scope Stop,
    drain: Option<Duration>,
    around: Option<Handle>,
) -> io::Result<()>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Display,
    S::Future: 'static,
    B: http_body::Body<Data = Bytes> + 'static,
    B::Error: Display,
{
    let (over, ended) = oneshot::channel::<()>();
    let (runtime, clock) = match around {
        Some(around) => (around, None),
        None => start_runtime(scope, ended).map(|(handle, thread)| (handle, Some(thread)))?,
    };
    let first = named(scope, "tercel-http3", move || {
        let _last = Last(stop);
        let _entered = runtime.enter();
        serve_quic(quic, stop, drain)
    });
    let second = named(scope, "tercel-tcp", move || {
        let _last = Last(stop);
        serve_tcp(tcp, stop, drain)
    });
    if first.is_err() || second.is_err() {
        stop.order(Phase::Over);
    }
    let results = [first, second].map(|thread| thread.and_then(joined));
    drop(over);
    clock.into_iter().try_for_each(joined)?;
    results.into_iter().collect()
}

/// A runtime of tokio on a thread of its own, for programs that have none.
fn start_runtime<'scope>(
    scope: &'scope Scope<'scope, '_>,
    ended: Receiver<()>,
) -> io::Result<(Handle, ScopedJoinHandle<'scope, io::Result<()>>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let handle = runtime.handle().clone();
    let thread = named(scope, "tercel-tokio", move || {
        // Until the other end is dropped.
        let _ = runtime.block_on(ended);
        Ok(())
    })?;
    Ok((handle, thread))
}

fn named<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    job: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().name(name.to_owned()).spawn_scoped(scope, job)
}

fn joined(thread: ScopedJoinHandle<'_, io::Result<()>>) -> io::Result<()> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread has panicked")))
}

/// Ends the other threads in good order when one goes.
struct Last<'a>(&'a Stop);

impl Drop for Last<'_> {
    fn drop(&mut self) {
        self.0.order(Phase::Draining);
    }
}

fn serve_tcp<S, B>(tcp: Tcp<S>, stop: &Stop, drain: Option<Duration>) -> io::Result<()>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + 'static,
    S::Error: Display,
    S::Future: 'static,
    B: http_body::Body<Data = Bytes> + 'static,
    B::Error: Display,
{
    let Tcp { listener, tls, service, recorder, shared } = tcp;
    let port = listener.local_addr()?.port();
    let setup = ApplicationSetup {
        tls,
        service,
        shared,
        recorder,
        limits: Limits { drain, ..Limits::default() },
        alt_svc: Some(tcp::alt_svc(port)),
        shutdown_signal: stop.shutdown_signal(),
    };
    tcp::serve_application(listener, setup).map(drop)
}

fn serve_quic<S, B>(quic: Quic<S>, stop: &Stop, timeout: Option<Duration>) -> io::Result<()>
where
    S: Service<Request<Body>, Response = Response<B>> + 'static,
    S::Error: Display,
    S::Future: 'static,
    B: http_body::Body<Data = Bytes> + 'static,
{
    let Quic { port, tls, service, recorder, shared } = quic;
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(io::Error::other)?;
    let endpoint = Endpoint::new(EndpointConfig::default(), seed);
    let mut app = http3::Server::new(ServiceHandler::new(service, shared), recorder);
    if let Some(waker) = port.waker() {
        app = app.with_wake(Box::new(move || waker.wake()));
    }
    let config = ServerConfig { tls, transport: Arc::new(TransportConfig::default()) };
    let mut worker = Worker::new(port, app, endpoint, Some(config), worker::Config::default());
    while !stop.is_ordered(Phase::Draining) {
        turn(&mut worker, None)?;
    }
    drain(&mut worker, timeout, |worker, until| {
        let look = worker.now() + LOOK;
        turn(worker, Some(until.map_or(look, |until| until.min(look))))?;
        Ok(if stop.is_ordered(Phase::Over) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })
}

/// One turn, which sleeps until `until` at most. The log writes what it holds back when its time has come.
fn turn<H: Handler>(
    worker: &mut Worker<UdpPort, http3::Server<H>>,
    until: Option<Instant>,
) -> io::Result<()> {
    let log_at = worker.app_mut().next_timeout();
    worker.run_turn([log_at, until].into_iter().flatten().min())?;
    let now = worker.now();
    worker.app_mut().on_time(now);
    Ok(())
}
