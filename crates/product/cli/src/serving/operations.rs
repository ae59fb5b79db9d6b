//! What an operator sees of a server that runs: the admin address, and what it asks.

use super::log;
use super::reload::Reloader;
use admin::{Address, Listener, Order, Orders, Reload, Serving, Snapshot, Source, Stage, Upstream};
use clap::Args;
use proxy::UpstreamReport;
use server::sites::LiveSites;
use server::{Handle, Report};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::sleep;
use std::time::Duration;
use traces::Qlog;

/// How long threads have to give a sign of life.
const PATIENCE: Duration = Duration::from_secs(1);

/// Flags about what an operator sees.
#[derive(Args)]
pub(crate) struct AdminArgs {
    /// Where metrics, health and status are told to the operator's programs: PORT of this machine, ADDRESS:PORT or unix:PATH.
    ///
    /// See tercel status, tercel reload, and docs/metrics.md: /metrics for Prometheus, /healthz, /readyz, /status, /reload.
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    pub(crate) admin: Option<Address>,
}

impl AdminArgs {
    /// Opens the address, if there is one, unless the process before has left its socket. Until [`Operations::begin`] it says that the
    /// server is starting; one that was left is that of the process before until then.
    ///
    /// # Errors
    /// One line: it cannot be opened.
    pub(crate) fn open(&self, left: Option<OwnedFd>) -> Result<Operations, String> {
        let Some(address) = &self.admin else { return Ok(Operations::default()) };
        let fails = |error| format!("--admin: cannot listen on {address}: {error}");
        let left =
            left.map(|socket| Listener::inherit(socket, address)).transpose().map_err(fails)?.flatten();
        let is_left = left.is_some();
        let listener = left.map_or_else(|| Listener::bind(address), Ok).map_err(fails)?;
        let place = listener.address().clone();
        if !place.is_local() {
            log::warn(&format!(
                "the admin address {place} is open to other machines, which read the metrics without a password: \
                 --admin with a port alone is for this machine"
            ));
        }
        let operations = Operations {
            place: Some(place),
            copy: Some(listener.copy().map_err(fails)?),
            socket: Mutex::new(AdminSocket::Waits(listener)),
            ..Operations::default()
        };
        if !is_left {
            operations.answer().map_err(fails)?;
        }
        Ok(operations)
    }
}

/// What becomes of the socket of the admin address.
#[derive(Default)]
enum AdminSocket {
    /// There is none, or another process has it.
    #[default]
    Gone,
    Waits(Listener),
    Serves(Serving),
}

/// The admin address of a server, which may have none.
#[derive(Default)]
pub(crate) struct Operations {
    running: Arc<Running>,
    place: Option<Address>,
    /// Of the socket, for a process that takes the place of this one.
    copy: Option<OwnedFd>,
    socket: Mutex<AdminSocket>,
}

impl Operations {
    /// Where it is, with the port that the system chose.
    pub(crate) fn place(&self) -> Option<&Address> {
        self.place.as_ref()
    }

    /// The server serves.
    ///
    /// # Errors
    /// One line: the system has no thread left.
    pub(crate) fn begin(&self, server: Observed) -> Result<(), String> {
        // It begins once.
        let _ = self.running.0.set(server);
        self.answer().map_err(|error| format!("--admin: {error}"))
    }

    /// The socket, for a process that takes the place of this one.
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.copy.as_ref().map(OwnedFd::as_fd)
    }

    /// Another process answers at the address from now on.
    pub(crate) fn leave(&self) {
        if let AdminSocket::Serves(serving) = std::mem::take(&mut *self.lock()) {
            serving.leave();
        }
    }

    /// Answers no more, at the end of the server.
    pub(crate) fn end(&self) {
        drop(std::mem::take(&mut *self.lock()));
    }

    fn answer(&self) -> io::Result<()> {
        let mut socket = self.lock();
        *socket = match std::mem::take(&mut *socket) {
            AdminSocket::Waits(listener) => {
                AdminSocket::Serves(listener.serve(Arc::<Running>::clone(&self.running))?)
            }
            other => other,
        };
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, AdminSocket> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server that serves, and what is known of it.
pub(crate) struct Observed {
    pub(crate) handle: Handle,
    pub(crate) report: Report,
    pub(crate) sites: Option<LiveSites>,
    pub(crate) reloader: Arc<Reloader>,
    pub(crate) qlog: Option<Qlog>,
}

/// The server, once it serves.
#[derive(Default)]
struct Running(OnceLock<Observed>);

impl Source for Running {
    fn stage(&self) -> Stage {
        match self.0.get() {
            None => Stage::Starting,
            Some(server) if server.handle.is_ending() => Stage::Draining,
            Some(_) => Stage::Ready,
        }
    }

    fn silent(&self) -> usize {
        self.0.get().map_or(0, |server| silent(&server.handle, PATIENCE))
    }

    fn snapshot(&self) -> Snapshot {
        let (stage, version) = (self.stage(), env!("CARGO_PKG_VERSION"));
        let Some(server) = self.0.get() else { return Snapshot { stage, version, ..Snapshot::default() } };
        let Observed { handle, report, sites, reloader, qlog } = server;
        let budget = handle.budget();
        Snapshot {
            stage,
            version,
            http: report.versions.to_string(),
            addresses: report.places.clone(),
            data_path: report.data_path,
            threads: handle.threads(),
            silent: silent(handle, PATIENCE),
            metrics: handle.metrics(),
            sites: sites.as_ref().map_or_else(|| vec![String::new()], LiveSites::counted),
            memory_held: budget.held(),
            memory_limit: Some(budget.limit()).filter(|limit| *limit < u64::MAX),
            traces: qlog.as_ref().map(Qlog::progress),
            certificates: reloader.expiries(),
            orders: reloader.orders().map(orders).unwrap_or_default(),
            reloads: reloader.reloads(),
            lost_log_lines: handle.lost_log_lines(),
            upstreams: proxy::upstreams().into_iter().map(upstream).collect(),
        }
    }

    fn reload(&self) -> Reload {
        match self.0.get() {
            Some(server) => server.reloader.reload(),
            None => Reload::Fault("the server is starting, and reads its files anyway".to_owned()),
        }
    }
}

/// An upstream, for those who ask.
fn upstream(of: UpstreamReport) -> Upstream {
    let UpstreamReport { name, is_healthy, active, classes, durations, failures, failed_checks, connections } =
        of;
    Upstream { name, is_healthy, active, classes, durations, failures, failed_checks, connections }
}

/// What is ordered, for those who ask.
fn orders(manager: &acme::Manager) -> Orders {
    let acme::Totals { issued, failed } = manager.totals();
    let of = |status: acme::Status| Order {
        names: status.names.join(", "),
        authority: status.authority,
        is_there: status.expires_s.is_some(),
        next_s: status.next_s,
        failures: status.failures,
        error: status.error,
    };
    Orders { issued, failed, all: manager.status().into_iter().map(of).collect() }
}

/// How many threads of a server give no sign of life within `patience`.
pub(crate) fn silent(handle: &Handle, patience: Duration) -> usize {
    let ask = handle.ask();
    let (mut step, mut waited) = (Duration::from_micros(100), Duration::ZERO);
    loop {
        let silent = handle.silent(ask);
        if silent == 0 || waited >= patience {
            return silent;
        }
        sleep(step);
        waited += step;
        step = (step * 2).min(patience / 10);
    }
}
