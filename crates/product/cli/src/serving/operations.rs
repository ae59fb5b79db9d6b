//! What an operator sees of a server that runs: the admin address, and what it asks.

use super::log;
use super::reload::Reloader;
use admin::{Address, Listener, Place, Serving, Snapshot, Source, Stage};
use clap::Args;
use server::sites::LiveSites;
use server::{Handle, Report};
use std::sync::{Arc, OnceLock};
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
    /// See tercel status, and docs/metrics.md: /metrics for Prometheus, /healthz, /readyz, /status.
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    pub(crate) admin: Option<Address>,
}

impl AdminArgs {
    /// Opens the address, if there is one. Until [`Operations::begin`] it says that the server is starting.
    ///
    /// # Errors
    /// One line: it cannot be opened.
    pub(crate) fn open(&self) -> Result<Operations, String> {
        let running = Arc::<Running>::default();
        let Some(address) = &self.admin else {
            return Ok(Operations { running, place: None, _serving: None });
        };
        let fails = |error| format!("--admin: cannot listen on {address}: {error}");
        let listener = Listener::bind(address, Place::Free).map_err(fails)?;
        let place = listener.address().clone();
        if !place.is_local() {
            log::warn(&format!(
                "the admin address {place} is open to other machines, which read the metrics without a password: \
                 --admin with a port alone is for this machine"
            ));
        }
        let serving = listener.serve(Arc::<Running>::clone(&running)).map_err(fails)?;
        Ok(Operations { running, place: Some(place), _serving: Some(serving) })
    }
}

/// The admin address of a server, which may have none.
pub(crate) struct Operations {
    running: Arc<Running>,
    place: Option<Address>,
    _serving: Option<Serving>,
}

impl Operations {
    /// Where it is, with the port that the system chose.
    pub(crate) fn place(&self) -> Option<&Address> {
        self.place.as_ref()
    }

    /// The server serves.
    pub(crate) fn begin(&self, server: Observed) {
        // It begins once.
        let _ = self.running.0.set(server);
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
            places: report.places.clone(),
            data_path: report.data_path,
            threads: handle.threads(),
            silent: silent(handle, PATIENCE),
            metrics: handle.metrics(),
            sites: sites.as_ref().map_or_else(|| vec![String::new()], LiveSites::counted),
            memory_held: budget.held(),
            memory_limit: Some(budget.limit()).filter(|limit| *limit < u64::MAX),
            traces: qlog.as_ref().map(Qlog::progress),
            certificates: reloader.expiries(),
            reloads: reloader.reloads(),
            lost_log_lines: handle.lost_log_lines(),
        }
    }
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
