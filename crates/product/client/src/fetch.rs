//! Downloads by [`Client`], over any version of HTTP: `tercel get`.
//!
//! A run is a future that sends requests and ends downloads; content goes from the connection to its download without it
//! (download_sink.rs).
//!
//! ```text
//! Download::next_ask ─▶ Client::request_into ─▶ DownloadSink::on_head, on_body ─▶ Download ─▶ Destination::append
//!     ▲                        └──── complete or failed ──▶ Run ──▶ View
//!     └──────────────────────────────────────────────────────┘
//! ```
//!
//! Each URL gets one request at first, as many URLs at a time as there may be requests; what is left of that number goes to the
//! pieces of large files.

use crate::download::{Download, DownloadState};
use crate::download_sink::{DownloadSink, RunShared, SharedDownload, SharedState};
use crate::error::{GetError, Silence};
use crate::exchange::{Ask, Exchange};
use crate::fault::{self, ConnectionEnd, Fault};
use crate::job::Job;
use crate::migration::PlannedMove;
use crate::report::{Outcome, Progress, View};
use crate::request;
use crate::target::Target;
use crate::transfer::Transfer;
use crate::usage::Usage;
use crate::{Client, Control, Error, Kind, Phase, Received};
use ::body::Body;
use base::time::{Duration, Instant};
use http::request::Parts;
use http::{HeaderMap, Request};
use http3::Code;
use std::error::Error as _;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::time::Sleep;
use transport::CloseReason;

/// How often progress is told and the order to stop is looked for.
const TICK: std::time::Duration = std::time::Duration::from_millis(100);
/// How often what was received is saved.
const CHECKPOINT: Duration = Duration::from_secs(1);

/// How downloads are done.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// Requests at a time, at least 1.
    pub parallel: usize,
    /// Fields of every request.
    pub headers: HeaderMap,
    /// A download gives up when nothing arrived for so long; zero means never.
    pub silence: Duration,
    /// How long a connection may take, and how long QUIC waits in silence: what messages say of it, in seconds.
    pub limits_s: (u64, u64),
    /// The connections move somewhere at some time.
    pub migrate_to: Option<PlannedMove>,
}

/// Downloads by a client, which follow redirects and measure silence by themselves: the client's settings for both should be off.
pub struct Fetcher {
    client: Client,
    options: FetchOptions,
}

impl Fetcher {
    /// Downloads by `client`.
    pub fn new(client: Client, options: FetchOptions) -> Fetcher {
        Fetcher { client, options: FetchOptions { parallel: options.parallel.max(1), ..options } }
    }

    /// Does all `jobs`, or as many as there is time for until `stop` is set, which is looked at ten times a second. What becomes
    /// of each is told to `view`.
    pub async fn run(&self, jobs: &[Job], stop: &AtomicBool, view: &mut dyn View) {
        let shared = Arc::new(RunShared::new());
        let mut run = Run {
            fetcher: self,
            view,
            next_checkpoint: shared.now() + CHECKPOINT,
            tick: Box::pin(self.client.sleep(TICK)),
            moves_at: self.options.migrate_to.as_ref().map(|planned| shared.now() + planned.after.into()),
            shared,
            downloads: Vec::new(),
            asked: Vec::new(),
            heard: Vec::new(),
            next_number: 0,
            next_job: 0,
        };
        poll_fn(|cx| run.poll(jobs, stop, cx)).await;
    }

    /// As [`Fetcher::run`], on this thread. For a client that has threads of its own.
    ///
    /// # Errors
    /// The system gives no runtime.
    pub fn run_blocking(&self, jobs: &[Job], stop: &AtomicBool, view: &mut dyn View) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        runtime.block_on(self.run(jobs, stop, view));
        Ok(())
    }

    fn usage(&self) -> Usage {
        Usage::of_client(&self.client.stats())
    }
}

/// A request under way.
struct Asked {
    number: u64,
    download: SharedDownload,
    control: Arc<Mutex<Option<Control>>>,
    /// It was told to end, and will.
    is_cancelled: bool,
    answer: Pin<Box<dyn Future<Output = Result<Received<DownloadSink>, Error>> + Send>>,
}

/// A run of downloads.
struct Run<'a> {
    fetcher: &'a Fetcher,
    view: &'a mut dyn View,
    shared: Arc<RunShared>,
    tick: Pin<Box<Sleep>>,
    /// In the order in which they began.
    downloads: Vec<SharedDownload>,
    asked: Vec<Asked>,
    /// By server: when something of an answer arrived there last, to the nearest tick.
    heard: Vec<(Target, Instant)>,
    next_number: u64,
    next_job: usize,
    next_checkpoint: Instant,
    moves_at: Option<Instant>,
}

impl Run<'_> {
    fn poll(&mut self, jobs: &[Job], stop: &AtomicBool, cx: &mut Context<'_>) -> Poll<()> {
        self.shared.set_waker(cx.waker());
        loop {
            self.begin_jobs(jobs);
            let has_asked = self.ask();
            let has_answers = self.hear_answers(cx);
            self.settle();
            if self.downloads.is_empty() && self.next_job >= jobs.len() {
                return Poll::Ready(());
            }
            if stop.load(Ordering::Relaxed) && !self.is_interrupted() {
                self.interrupt();
                continue;
            }
            if self.tick.as_mut().poll(cx).is_ready() {
                self.tick = Box::pin(self.fetcher.client.sleep(TICK));
                self.on_tick();
            } else if !has_asked && !has_answers {
                return Poll::Pending;
            }
        }
    }

    fn begin_jobs(&mut self, jobs: &[Job]) {
        // What the other URLs leave: a large file is cut into pieces only where they would be under way at the same time.
        let parallel = self.fetcher.options.parallel;
        let streams = parallel + 1 - jobs.len().clamp(1, parallel);
        while self.downloads.len() < parallel
            && let Some(job) = jobs.get(self.next_job)
        {
            let number = self.next_job;
            self.next_job += 1;
            self.view.on_begin(number);
            match Download::open(number, job, streams) {
                Ok(download) => {
                    let shared = Arc::clone(&self.shared);
                    download.on_news(move || shared.wake());
                    let transfer = Transfer::new(download, self.shared.now(), self.fetcher.usage());
                    self.downloads.push(SharedDownload::new(transfer));
                }
                Err(error) => self.view.on_end(Outcome::not_begun(number, job, error)),
            }
        }
    }

    /// Sends requests as long as there are some to send and not too many under way. Returns whether there were any.
    fn ask(&mut self) -> bool {
        let before = self.next_number;
        let mut place = 0;
        while self.asked.len() < self.fetcher.options.parallel
            && let Some(shared) = self.downloads.get(place).cloned()
        {
            match shared.with(|state| self.fetcher.next_request(&mut state.transfer.download)).flatten() {
                Some((ask, head)) => self.send(shared, &ask, head),
                None => place += 1,
            }
        }
        self.next_number > before
    }

    fn send(&mut self, download: SharedDownload, ask: &Ask, head: Parts) {
        let number = self.next_number;
        self.next_number += 1;
        download.with(|state| state.exchanges.push((number, Exchange::new(ask))));
        let (client, run, control) = (self.fetcher.client.clone(), Arc::clone(&self.shared), Arc::default());
        let sink = DownloadSink { download: download.clone(), number, run, control: Arc::clone(&control) };
        let request = Request::from_parts(head, Body::empty());
        let answer = Box::pin(async move { client.request_into(request, sink).await });
        self.asked.push(Asked { number, download, control, is_cancelled: false, answer });
    }

    /// Takes the requests that are over. Returns whether there were any.
    fn hear_answers(&mut self, cx: &mut Context<'_>) -> bool {
        let before = self.asked.len();
        let fetcher = self.fetcher;
        self.asked.retain_mut(|Asked { number, download, answer, .. }| {
            let Poll::Ready(answer) = answer.as_mut().poll(cx) else { return true };
            download.with(|state| {
                let path = match &answer {
                    Ok(received) => received.response.extensions().get().cloned(),
                    Err(error) => error.path().cloned(),
                };
                state.path = path.or_else(|| state.path.take());
                if let Some((download, exchange)) = state.exchange(*number) {
                    match answer {
                        Ok(_) => download.on_end(exchange),
                        Err(error) => fetcher.on_failed(download, exchange, &error),
                    }
                }
                state.forget(*number);
            });
            false
        });
        self.asked.len() < before
    }

    /// Gives up requests whose content is no longer needed, and ends downloads that are complete or have failed.
    fn settle(&mut self) {
        self.asked.retain_mut(|Asked { number, download, control, is_cancelled, .. }| {
            let goes_on = download.with(|state| {
                let Some((download, exchange)) = state.exchange(*number) else { return false };
                let mut control = control.lock().unwrap_or_else(PoisonError::into_inner);
                if *is_cancelled
                    || download.is_current(exchange) && download.standing() == DownloadState::Running
                {
                    if download.may_resume() {
                        control.iter().for_each(Control::resume);
                    }
                    return true;
                }
                download.on_cut(exchange);
                // Where there is a connection, the end of the request tells what that was like.
                match control.take() {
                    Some(control) if download.has_failed() => control.cancel(),
                    _ => {
                        state.forget(*number);
                        return false;
                    }
                }
                *is_cancelled = true;
                true
            });
            goes_on == Some(true)
        });
        // Who interrupts does not wait for the reader of a pipe.
        let is_interrupted = self.is_interrupted();
        let mut over = Vec::new();
        self.downloads.retain(|shared| {
            let goes_on = shared.with(|state| match state.transfer.download.standing() {
                DownloadState::Running => true,
                DownloadState::Elsewhere => {
                    // The client finds the connection.
                    state.transfer.download.on_moved();
                    true
                }
                DownloadState::Complete | DownloadState::Failed => {
                    !state.exchanges.is_empty() || !is_interrupted && !state.transfer.download.is_written()
                }
            });
            if goes_on == Some(false) {
                over.extend(shared.take());
            }
            goes_on == Some(true)
        });
        over.into_iter().for_each(|state| self.on_over(state));
    }

    fn on_over(&mut self, state: SharedState) {
        let SharedState { transfer, version, path, .. } = state;
        let Transfer { mut download, began, usage, answered, .. } = transfer;
        self.view.on_progress(download.job, &progress(&download));
        let outcome = Outcome {
            job: download.job,
            url: download.target().to_string(),
            status: download.status(),
            bytes: download.transferred(),
            resumed_from: download.resumed_from(),
            elapsed: self.shared.now().saturating_since(began),
            first_answer: answered.map(|at| at.saturating_since(began)),
            usage: self.fetcher.usage().since(&usage),
            path,
            version,
            head: download.take_head(),
            ends_within_line: download.ends_within_line(),
            result: download.finish(),
        };
        self.view.on_end(outcome);
    }

    /// Time has passed.
    fn on_tick(&mut self) {
        let now = self.shared.now();
        self.move_when_due(now);
        let saves = now >= self.next_checkpoint;
        if saves {
            self.next_checkpoint = now + CHECKPOINT;
        }
        // All of them before any is judged: a server may serve its requests one after the other.
        for shared in &self.downloads {
            let advanced = |state: &mut SharedState| {
                let Transfer { download, .. } = &state.transfer;
                let target = download.target().clone();
                state.transfer.has_advanced().then_some(target)
            };
            if let Some(target) = shared.with(advanced).flatten() {
                self.heard.retain(|(server, _)| !server.same_server(&target));
                self.heard.push((target, now));
            }
        }
        let patience = self.fetcher.options.silence;
        for shared in &self.downloads {
            shared.with(|state| {
                let Transfer { download, .. } = &mut state.transfer;
                if saves {
                    download.checkpoint();
                }
                self.view.on_progress(download.job, &progress(download));
                let heard = self.heard.iter().find(|(server, _)| server.same_server(download.target()));
                state.transfer.on_tick(now, heard.map_or(Instant::ZERO, |(_, at)| *at), patience);
            });
        }
    }

    /// Lets connections move when the time for it has come. A place that is not there ends the downloads.
    fn move_when_due(&mut self, now: Instant) {
        let has_answer = |shared: &SharedDownload| shared.with(|state| state.transfer.answered.is_some());
        // A connection may not move before its handshake is confirmed.
        let may_move = self.downloads.iter().any(|shared| has_answer(shared) == Some(true));
        let is_due = self.moves_at.take_if(|at| may_move && now >= *at).is_some();
        let planned = self.fetcher.options.migrate_to.as_ref().filter(|_| is_due);
        let Some(Err(error)) = planned.map(|planned| self.fetcher.client.migrate(&planned.to)) else {
            return;
        };
        let text = format!("cannot move: {error}");
        for shared in &self.downloads {
            shared.with(|state| state.transfer.download.fail(GetError::Usage(text.clone())));
        }
    }

    fn is_interrupted(&self) -> bool {
        self.next_job == usize::MAX
    }

    /// Ends everything that is under way and keeps what is there. No other job begins.
    fn interrupt(&mut self) {
        self.next_job = usize::MAX;
        for shared in &self.downloads {
            shared.with(|state| state.transfer.download.fail(GetError::Interrupted(None)));
        }
    }
}

impl Fetcher {
    /// The next request of a download, if there is something to ask.
    fn next_request(&self, download: &mut Download) -> Option<(Ask, Parts)> {
        let ask = download.next_ask()?;
        match request::head(download.target(), &ask, &self.options.headers) {
            Ok(head) => Some((ask, head)),
            Err(error) => {
                download.fail(error);
                None
            }
        }
    }

    /// A request has failed: the download tries again where that may help, or fails with it.
    fn on_failed(&self, download: &mut Download, exchange: &mut Exchange, error: &Error) {
        if !download.is_current(exchange) {
            return;
        }
        download.on_cut(exchange);
        let fault = error.source().and_then(|source| source.downcast_ref::<Fault>());
        // A server that closes in good order may have crossed our request with it. RFC 9114 §5.2.
        if let Some(Fault::Closed(CloseReason::PeerApplication { code, .. }, _)) = fault
            && *code == Code::NO_ERROR.0
            && download.retry()
        {
            return;
        }
        let host = download.target().host().to_owned();
        download.fail(match (fault, exchange.owed()) {
            (Some(Fault::Closed(_, Some(failure))), Some((expected, received)))
                if fault::is_cut_short(failure) =>
            {
                GetError::Short(expected, received)
            }
            (Some(Fault::Aborted(abort)), owed) => fault::of_abort(*abort, owed),
            (Some(Fault::Network(address, kind)), _) => Fault::of_network(*address, *kind),
            (Some(Fault::Closed(reason, failure)), _) => {
                let (connect_s, silence_s) = self.options.limits_s;
                ConnectionEnd { host: &host, connect_s, silence_s, failure: *failure }.error(reason)
            }
            (None, Some((expected, received))) if error.kind() == Kind::Lost => {
                GetError::Short(expected, received)
            }
            (None, _)
                if error.kind() == Kind::Timeout(Phase::Connect) && self.client.speaks_http3_alone() =>
            {
                GetError::Timeout(Silence::Connecting, self.options.limits_s.0)
            }
            (None, _) => explain(&host, error),
        });
    }
}

fn progress(download: &Download) -> Progress {
    Progress { held: download.held(), resumed_from: download.resumed_from(), size: download.size() }
}

/// The client's error as one of a download, with the exit code that it has over every version.
fn explain(host: &str, error: &Error) -> GetError {
    let text = error.to_string();
    match error.kind() {
        Kind::Resolve => {
            GetError::Resolve(host.to_owned(), text.rsplit(": ").next().unwrap_or(&text).to_owned())
        }
        Kind::Connect => GetError::NoConnection(text),
        Kind::Certificate => {
            let advice = "name its issuer with --cacert FILE, or test with --insecure";
            GetError::Certificate(host.to_owned(), format!("{text}; {advice}"))
        }
        Kind::Tls => fault::of_tls(text),
        Kind::Protocol => GetError::Http(text),
        Kind::Timeout(Phase::Silence) => GetError::Silent(Silence::Transferring, text),
        Kind::Timeout(_) => GetError::Silent(Silence::Connecting, text),
        Kind::Request => GetError::Usage(text),
        _ => GetError::Broken(text),
    }
}
