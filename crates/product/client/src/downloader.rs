//! The client: a list of jobs, a worker, and what goes on between connections.
//!
//! Each URL gets one request at first, as many URLs at a time as there may be requests; what is left of that number goes to
//! the pieces of large files. A connection is shared by all URLs of its server.
//!
//! ```text
//! jobs ──▶ Server (dial.rs) ──connected──▶ ClientConnection (download_app.rs): requests, answers ──▶ Over ──▶ View
//!             ▲                               │
//!             └────── NeedsConnection: redirects, connections that left ──┘
//! ```

use crate::dial::{Fault, Server, Step};
use crate::download::Download;
use crate::download_app::{ClientConnection, ConnectionNews, DownloadApp};
use crate::error::GetError;
use crate::job::Job;
use crate::report::{Outcome, PathReport, Progress, View};
use crate::resolve::{self, ConnectOverride, Family};
use crate::transfer::Transfer;
use crate::usage::Usage;
use base::slab::Handle;
use base::time::{Duration, Instant};
use datapath::Port;
use http::HeaderMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use transport::{ClientConfig, CloseReason, Endpoint, EndpointConfig, IncomingPolicy};
use worker::Worker;

/// How often progress is told and time is looked at.
const TICK: Duration = Duration::from_millis(100);
/// The same while a connection is being made.
const DIAL_TICK: Duration = Duration::from_millis(20);
/// How often what was received is saved.
const CHECKPOINT: Duration = Duration::from_secs(1);
/// How long the close may take.
const FAREWELL: Duration = Duration::from_millis(20);

/// What a client may be told.
#[derive(Clone)]
pub struct Settings {
    /// Requests at a time, at least 1.
    pub parallel: usize,
    /// Fields of every request.
    pub headers: HeaderMap,
    /// Which addresses may be used.
    pub family: Family,
    /// What to ask instead of the URL's host.
    pub detours: Vec<ConnectOverride>,
    /// A download gives up when nothing arrived for so long; zero means never.
    pub silence: Duration,
    /// TLS and QUIC.
    pub quic: ClientConfig,
    /// How long the worker polls before it sleeps.
    pub spin: Duration,
}

/// Downloads on one port.
pub struct Downloader<P: Port> {
    worker: Worker<P, DownloadApp>,
    settings: Settings,
    http: Arc<http3::Config>,
    servers: Vec<Server>,
    /// Connections that are not closed: those that servers use, and those that still answer what was asked before.
    links: Vec<Handle>,
    /// Jobs that have begun and are not over.
    active: usize,
    next_job: usize,
    next_tick: Instant,
    next_checkpoint: Instant,
}

impl<P: Port> Downloader<P> {
    /// A client on `port`. `seed` is the source of all its randomness and must be secret.
    pub fn new(port: P, settings: Settings, seed: [u8; 32]) -> Downloader<P> {
        let connect_s = settings.quic.transport.handshake_timeout.as_millis() / 1_000;
        let silence_s = settings.quic.transport.idle_timeout.as_millis() / 1_000;
        let download_app =
            DownloadApp::new(settings.parallel.max(1), settings.headers.clone(), connect_s, silence_s);
        let config = EndpointConfig { incoming: IncomingPolicy::Ignore, ..EndpointConfig::default() };
        let endpoint = Endpoint::new(config, seed);
        let worker_config = worker::Config { spin: settings.spin };
        let worker = Worker::new(port, download_app, endpoint, None, worker_config);
        let now = worker.now();
        Downloader {
            worker,
            settings,
            http: Arc::new(http3::Config::client()),
            servers: Vec::new(),
            links: Vec::new(),
            active: 0,
            next_job: 0,
            next_tick: now,
            next_checkpoint: now + CHECKPOINT,
        }
    }

    /// Does all `jobs`, or as many as there is time for until `stop` is set. What becomes of each is told to `view`.
    ///
    /// # Errors
    /// Only when the port itself has failed.
    pub fn run(&mut self, jobs: &[Job], stop: &AtomicBool, view: &mut impl View) -> io::Result<()> {
        loop {
            self.begin_jobs(jobs, view);
            if self.active == 0 {
                break;
            }
            if stop.load(Ordering::Relaxed) {
                self.interrupt(view)?;
                break;
            }
            self.worker.run_turn(Some(self.next_tick))?;
            self.hear_news(view);
            if self.worker.now() >= self.next_tick {
                self.tick(view);
            }
        }
        self.close()
    }

    /// What the port counted so far, and the process used.
    pub fn usage(&self) -> Usage {
        Usage::now(&self.worker.counters())
    }

    fn begin_jobs(&mut self, jobs: &[Job], view: &mut impl View) {
        let parallel = self.settings.parallel.max(1);
        // What the other URLs leave: a large file is cut into pieces only where they would be under way at the same time.
        let streams = parallel + 1 - jobs.len().clamp(1, parallel);
        while self.active < parallel
            && let Some(job) = jobs.get(self.next_job)
        {
            let number = self.next_job;
            self.next_job += 1;
            view.on_begin(number);
            match Download::open(number, job, streams) {
                Ok(download) => {
                    self.active += 1;
                    let transfer = Transfer::new(download, self.worker.now(), self.usage());
                    self.route(transfer, view);
                }
                Err(error) => view.on_end(Outcome::not_begun(number, job, error)),
            }
        }
    }

    /// Brings a download to a connection with its server.
    fn route(&mut self, mut transfer: Transfer, view: &mut impl View) {
        let target = transfer.download.target().clone();
        let now = self.worker.now();
        let index = match self.servers.iter().position(|server| server.is_at(&target)) {
            Some(index) => index,
            None => {
                self.servers.push(Server::new(&target));
                self.servers.len() - 1
            }
        };
        let Some(server) = self.servers.get_mut(index) else { return };
        if let Some(handle) = server.ready
            && let Some((_, connection_state)) = self.worker.connection(handle)
        {
            connection_state.adopt(transfer, now);
            return;
        }
        server.ready = None;
        if server.is_idle() {
            match resolve::resolve(&target, self.settings.family, &self.settings.detours) {
                Ok(addresses) => server.on_resolved(addresses, now),
                Err(error) => {
                    transfer.download.fail(error);
                    return self.on_over(transfer, None, view);
                }
            }
        }
        server.waiting.push(transfer);
        self.advance(index, view);
    }

    /// Does what is due to get a connection to a server.
    fn advance(&mut self, index: usize, view: &mut impl View) {
        let now = self.worker.now();
        let worker = &mut self.worker;
        let Some(server) = self.servers.get_mut(index) else { return };
        loop {
            let step = server.next_step(now, |handle| {
                worker
                    .connection(handle)
                    .is_some_and(|(connection, _)| connection.counters().received_datagrams > 0)
            });
            match step {
                Step::Dial(address) => {
                    let host = server.target().host();
                    let connection_state = ClientConnection::new(host, Arc::clone(&self.http), now);
                    match worker.connect(&self.settings.quic, host, address, connection_state) {
                        Ok(handle) => {
                            if let Some((_, connection_state)) = worker.connection(handle) {
                                connection_state.name(handle);
                            }
                            self.links.push(handle);
                            server.on_dialed(handle, address, now);
                        }
                        Err(error) => {
                            let reason = CloseReason::Tls { alert: error.alert, reason: error.to_string() };
                            server.on_fault(Fault::Closed(reason, None));
                        }
                    }
                }
                Step::Abandon(handle) => close_link(worker, handle, now),
                Step::Nothing => break,
            }
        }
        self.give_up_waiting(index, view);
    }

    /// When there will be no connection, those who wait for one hear why.
    fn give_up_waiting(&mut self, index: usize, view: &mut impl View) {
        let Some(server) = self.servers.get_mut(index) else { return };
        let Some(fault) = server.take_fault() else { return };
        let host = server.target().host().to_owned();
        for mut transfer in core::mem::take(&mut server.waiting) {
            transfer.download.fail(match &fault {
                Fault::Network(address, kind) => Fault::of_network(*address, *kind),
                Fault::Closed(reason, failure) => self.worker.app_mut().error(&host, reason, *failure),
            });
            self.on_over(transfer, None, view);
        }
    }

    fn hear_news(&mut self, view: &mut impl View) {
        let news = self.worker.app_mut().take_news();
        if news.is_empty() {
            return;
        }
        for each in news {
            match each {
                ConnectionNews::Connected(handle) => self.on_connected(handle),
                ConnectionNews::Leaving(handle) => self.on_leaving(handle),
                ConnectionNews::Closed(handle, reason, failure) => {
                    self.on_leaving(handle);
                    self.links.retain(|connection_state| *connection_state != handle);
                    if let Some(index) = self.servers.iter().position(|server| server.tries(handle)) {
                        if let Some(server) = self.servers.get_mut(index) {
                            server.on_failed(handle, Fault::Closed(reason, failure));
                        }
                        self.advance(index, view);
                    }
                }
                ConnectionNews::NeedsConnection(transfer) => self.route(*transfer, view),
                ConnectionNews::Over(transfer, path) => self.on_over(*transfer, Some(path), view),
            }
        }
        // Requests that ended on one connection make room on the others.
        self.worker.activate_all();
    }

    fn on_connected(&mut self, handle: Handle) {
        let now = self.worker.now();
        let Some(server) = self.servers.iter_mut().find(|server| server.tries(handle)) else {
            return close_link(&mut self.worker, handle, now);
        };
        for other in server.on_connected(handle) {
            close_link(&mut self.worker, other, now);
        }
        let waiting = core::mem::take(&mut server.waiting);
        if let Some((_, connection_state)) = self.worker.connection(handle) {
            waiting.into_iter().for_each(|transfer| connection_state.adopt(transfer, now));
        }
    }

    fn on_leaving(&mut self, handle: Handle) {
        for server in self.servers.iter_mut().filter(|server| server.ready == Some(handle)) {
            server.ready = None;
        }
    }

    fn on_over(&mut self, transfer: Transfer, path: Option<PathReport>, view: &mut impl View) {
        self.active = self.active.saturating_sub(1);
        let Transfer { mut download, began, usage, answered, .. } = transfer;
        // Named by what the port says now: the turn's time is that of its beginning.
        let now = self.worker.now();
        view.on_progress(download.job, &progress(&download));
        let outcome = Outcome {
            job: download.job,
            url: download.target().to_string(),
            status: download.status(),
            bytes: download.transferred(),
            resumed_from: download.resumed_from(),
            elapsed: now.saturating_since(began),
            first_answer: answered.map(|at| at.saturating_since(began)),
            usage: self.usage().since(&usage),
            path,
            version: None,
            head: download.take_head(),
            ends_within_line: download.ends_within_line(),
            result: download.finish(),
        };
        view.on_end(outcome);
    }

    /// Time has passed.
    fn tick(&mut self, view: &mut impl View) {
        let now = self.worker.now();
        let saves = now >= self.next_checkpoint;
        if saves {
            self.next_checkpoint = now + CHECKPOINT;
        }
        for index in 0..self.servers.len() {
            self.advance(index, view);
            let Some(server) = self.servers.get_mut(index) else { continue };
            for transfer in &mut server.waiting {
                view.on_progress(transfer.download.job, &progress(&transfer.download));
            }
        }
        for handle in &self.links {
            let Some((_, connection_state)) = self.worker.connection(*handle) else { continue };
            let messages = &mut connection_state.session.messages;
            for (_, transfer) in messages.transfers.iter_mut() {
                if saves {
                    transfer.download.checkpoint();
                }
                view.on_progress(transfer.download.job, &progress(&transfer.download));
            }
            messages.on_tick(now, self.settings.silence);
        }
        let is_dialing = self.servers.iter().any(Server::is_dialing);
        self.next_tick = now + if is_dialing { DIAL_TICK } else { TICK };
    }

    /// Ends everything that is under way and keeps what is there.
    fn interrupt(&mut self, view: &mut impl View) -> io::Result<()> {
        for handle in &self.links {
            let Some((_, connection_state)) = self.worker.connection(*handle) else { continue };
            let messages = &mut connection_state.session.messages;
            for (_, transfer) in messages.transfers.iter_mut() {
                transfer.download.fail(GetError::Interrupted(None));
            }
            messages.needs_attention = true;
        }
        let waiting: Vec<Transfer> =
            self.servers.iter_mut().flat_map(|server| core::mem::take(&mut server.waiting)).collect();
        for mut transfer in waiting {
            transfer.download.fail(GetError::Interrupted(None));
            self.on_over(transfer, None, view);
        }
        // The connections part with their downloads in their turn.
        self.worker.turn(self.worker.now())?;
        self.hear_news(view);
        Ok(())
    }

    /// Tells the servers that nothing more is wanted; does not wait for their consent.
    fn close(&mut self) -> io::Result<()> {
        let now = self.worker.now();
        for handle in core::mem::take(&mut self.links) {
            close_link(&mut self.worker, handle, now);
        }
        self.worker.run_turn(Some(now + FAREWELL)).map(|_| ())
    }
}

fn close_link<P: Port>(worker: &mut Worker<P, DownloadApp>, handle: Handle, now: Instant) {
    if let Some((connection, connection_state)) = worker.connection(handle) {
        connection_state.session.connection.close(connection, now);
    }
}

fn progress(download: &Download) -> Progress {
    Progress { held: download.held(), resumed_from: download.resumed_from(), size: download.size() }
}
