//! Downloads by [`Client`], over any version of HTTP: `tercel get --http 1`, `2` and `auto`.
//!
//! Each request is a task that reads its response and sends what comes through one bounded channel; all downloads are on the thread
//! that calls, which takes from the channel. So a disk that is slow holds up the connections.
//!
//! ```text
//! Download::next_ask ─▶ task: Client::request ─▶ Event: head, content, end ─▶ Download ─▶ Destination::append
//! ```

use crate::answer::Answer;
use crate::download::{Download, DownloadState};
use crate::error::{GetError, Silence, shown};
use crate::exchange::Exchange;
use crate::job::Job;
use crate::report::{Outcome, Progress, View};
use crate::request;
use crate::transfer::Transfer;
use crate::usage::Usage;
use crate::{Client, Error, Kind, Phase};
use ::body::BodyError;
use base::time::{Duration, Instant};
use bytes::Bytes;
use core::fmt::Write as _;
use datapath::Counters;
use http::{HeaderMap, Request, StatusCode, Version};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::AbortHandle;

/// How often progress is told and the order to stop is looked for.
const TICK: std::time::Duration = std::time::Duration::from_millis(100);
/// How often what was received is saved.
const CHECKPOINT: Duration = Duration::from_secs(1);
/// Events that wait, at most. A chunk has some 16 KiB.
const EVENTS: usize = 64;

/// What became of a request.
enum Event {
    Head(StatusCode, Version, HeaderMap),
    Content(Bytes),
    End,
    Failed(Error),
}

/// A request under way.
struct Asked {
    job: usize,
    exchange: Exchange,
    task: AbortHandle,
}

/// Downloads by a client. Its redirects should be off: a download follows them by itself.
pub struct Fetcher {
    client: Client,
    parallel: usize,
    headers: HeaderMap,
}

impl Fetcher {
    /// At most `parallel` requests at a time, each with these fields.
    pub fn new(client: Client, parallel: usize, headers: HeaderMap) -> Fetcher {
        Fetcher { client, parallel: parallel.max(1), headers }
    }

    /// Does all `jobs`, or as many as there is time for until `stop` is set. What becomes of each is told to `view`.
    ///
    /// # Errors
    /// The system gives no timer.
    pub fn run(&self, jobs: &[Job], stop: &AtomicBool, view: &mut impl View) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let (tell, mut events) = channel(EVENTS);
        let mut run = Run {
            fetcher: self,
            view,
            tell,
            began: tokio::time::Instant::now(),
            transfers: BTreeMap::new(),
            asked: BTreeMap::new(),
            next_number: 0,
            next_job: 0,
            next_checkpoint: Instant::ZERO + CHECKPOINT,
            version: BTreeMap::new(),
        };
        runtime.block_on(run.all(jobs, stop, &mut events));
        Ok(())
    }
}

/// A run of downloads.
struct Run<'a, V> {
    fetcher: &'a Fetcher,
    view: &'a mut V,
    tell: Sender<(u64, Event)>,
    began: tokio::time::Instant,
    /// By job.
    transfers: BTreeMap<usize, Transfer>,
    /// By number of the request.
    asked: BTreeMap<u64, Asked>,
    next_number: u64,
    next_job: usize,
    next_checkpoint: Instant,
    /// By job: that of its last response.
    version: BTreeMap<usize, Version>,
}

impl<V: View> Run<'_, V> {
    fn now(&self) -> Instant {
        Instant::ZERO + self.began.elapsed().into()
    }

    async fn all(&mut self, jobs: &[Job], stop: &AtomicBool, events: &mut Receiver<(u64, Event)>) {
        let mut next_tick = tokio::time::Instant::now() + TICK;
        loop {
            self.begin_jobs(jobs);
            self.ask();
            self.settle();
            if self.transfers.is_empty() && self.next_job >= jobs.len() {
                return;
            }
            if stop.load(Ordering::Relaxed) {
                self.interrupt();
                return;
            }
            if let Ok(Some((number, event))) = tokio::time::timeout_at(next_tick, events.recv()).await {
                self.on_event(number, event);
            }
            if tokio::time::Instant::now() >= next_tick {
                next_tick = tokio::time::Instant::now() + TICK;
                self.tick();
            }
        }
    }

    fn begin_jobs(&mut self, jobs: &[Job]) {
        // What the other URLs leave: a large file is cut into pieces only where they would be under way at the same time.
        let parallel = self.fetcher.parallel;
        let streams = parallel + 1 - jobs.len().clamp(1, parallel);
        while self.transfers.len() < parallel
            && let Some(job) = jobs.get(self.next_job)
        {
            let number = self.next_job;
            self.next_job += 1;
            self.view.on_begin(number);
            match Download::open(number, job, streams) {
                Ok(download) => {
                    let transfer = Transfer::new(download, self.now(), Usage::now(&Counters::default()));
                    self.transfers.insert(number, transfer);
                }
                Err(error) => self.view.on_end(Outcome::not_begun(number, job, error)),
            }
        }
    }

    /// Sends requests as long as there are some to send and not too many under way.
    fn ask(&mut self) {
        while self.asked.len() < self.fetcher.parallel {
            let wanting = self.transfers.values_mut().find(|transfer| transfer.download.wants_stream());
            let Some(Transfer { download, .. }) = wanting else { break };
            let Some(ask) = download.next_ask() else { break };
            let exchange = Exchange::new(&ask);
            let head = match request::head(download.target(), &ask, &self.fetcher.headers) {
                Ok(head) => head,
                Err(error) => {
                    download.fail(error);
                    continue;
                }
            };
            let (number, job) = (self.next_number, download.job);
            self.next_number += 1;
            let (client, tell) = (self.fetcher.client.clone(), self.tell.clone());
            let task = tokio::spawn(read(client, Request::from_parts(head, ()), number, tell));
            self.asked.insert(number, Asked { job, exchange, task: task.abort_handle() });
        }
    }

    fn on_event(&mut self, number: u64, event: Event) {
        let now = self.now();
        let Some(Asked { job, exchange, .. }) = self.asked.get_mut(&number) else { return };
        let Some(transfer) = self.transfers.get_mut(job) else { return };
        let download = &mut transfer.download;
        match event {
            Event::Head(status, version, fields) => {
                self.version.insert(*job, version);
                on_head(download, exchange, (status, version), &fields);
                transfer.on_turn(now);
                return;
            }
            Event::Content(bytes) => return download.on_body(exchange, &bytes),
            Event::End => download.on_end(exchange),
            Event::Failed(error) => {
                if download.is_current(exchange) {
                    download.on_cut(exchange);
                    let host = download.target().host().to_owned();
                    let error = match exchange.owed() {
                        Some((expected, received)) if error.kind() == Kind::Lost => {
                            GetError::Short(expected, received)
                        }
                        _ => explain(&host, &error),
                    };
                    download.fail(error);
                }
            }
        }
        self.asked.remove(&number);
    }

    /// Gives up requests whose content is no longer needed, and ends downloads that are complete or have failed.
    fn settle(&mut self) {
        let transfers = &mut self.transfers;
        self.asked.retain(|_, Asked { job, exchange, task }| {
            let Some(Transfer { download, .. }) = transfers.get_mut(job) else { return false };
            let is_wanted = download.is_current(exchange) && download.standing() == DownloadState::Running;
            if !is_wanted {
                download.on_cut(exchange);
                task.abort();
            }
            is_wanted
        });
        let mut over = Vec::new();
        for (job, transfer) in &mut self.transfers {
            match transfer.download.standing() {
                DownloadState::Running => {}
                // The client finds the connection.
                DownloadState::Elsewhere => transfer.download.on_moved(),
                DownloadState::Complete | DownloadState::Failed => over.push(*job),
            }
        }
        for job in over {
            if let Some(transfer) = self.transfers.remove(&job) {
                self.on_over(transfer);
            }
        }
    }

    fn on_over(&mut self, transfer: Transfer) {
        let Transfer { mut download, began, usage, answered, .. } = transfer;
        self.view.on_progress(download.job, &progress(&download));
        let outcome = Outcome {
            job: download.job,
            url: download.target().to_string(),
            status: download.status(),
            bytes: download.transferred(),
            resumed_from: download.resumed_from(),
            elapsed: self.now().saturating_since(began),
            first_answer: answered.map(|at| at.saturating_since(began)),
            usage: Usage::now(&Counters::default()).since(&usage),
            path: None,
            version: Some(self.version.remove(&download.job).unwrap_or_default()),
            head: download.take_head(),
            ends_within_line: download.ends_within_line(),
            result: download.finish(),
        };
        self.view.on_end(outcome);
    }

    /// Time has passed.
    fn tick(&mut self) {
        let now = self.now();
        let saves = now >= self.next_checkpoint;
        if saves {
            self.next_checkpoint = now + CHECKPOINT;
        }
        for Transfer { download, .. } in self.transfers.values_mut() {
            if saves {
                download.checkpoint();
            }
            self.view.on_progress(download.job, &progress(download));
        }
    }

    /// Ends everything that is under way and keeps what is there.
    fn interrupt(&mut self) {
        for Transfer { download, .. } in self.transfers.values_mut() {
            download.fail(GetError::Interrupted(None));
        }
        self.settle();
    }
}

fn progress(download: &Download) -> Progress {
    Progress { held: download.held(), resumed_from: download.resumed_from(), size: download.size() }
}

/// Sends a request and tells what comes of it.
async fn read(client: Client, request: Request<()>, number: u64, tell: Sender<(u64, Event)>) {
    let event = match client.request(request.map(|()| ::body::Body::empty())).await {
        Err(error) => Event::Failed(error),
        Ok(response) => {
            let (head, mut content) = response.into_parts();
            if tell.send((number, Event::Head(head.status, head.version, head.headers))).await.is_err() {
                return;
            }
            loop {
                match content.chunk().await {
                    Ok(Some(bytes)) => {
                        if tell.send((number, Event::Content(bytes))).await.is_err() {
                            return;
                        }
                    }
                    Ok(None) => break Event::End,
                    Err(error) => break Event::Failed(of_content(error)),
                }
            }
        }
    };
    // The run may be over.
    let _ = tell.send((number, event)).await;
}

fn of_content(error: BodyError) -> Error {
    match error {
        BodyError::Source(source) => match source.downcast::<Error>() {
            Ok(error) => *error,
            Err(source) => Error::caused(Kind::Lost, "the response is not complete", source),
        },
        error => Error::caused(Kind::Lost, "the response is not complete", error),
    }
}

fn on_head(
    download: &mut Download,
    exchange: &mut Exchange,
    (status, version): (StatusCode, Version),
    fields: &HeaderMap,
) {
    let name = format!("{version:?}");
    let mut text = format!("{} {}\n", name.strip_suffix(".0").unwrap_or(&name), status.as_u16());
    let mut answer = Answer::default();
    let mut outcome = answer.on_field(b":status", status.as_str().as_bytes());
    for (name, value) in fields {
        outcome = outcome.and_then(|()| answer.on_field(name.as_str().as_bytes(), value.as_bytes()));
        let _ = writeln!(text, "{name}: {}", shown(&String::from_utf8_lossy(value.as_bytes())));
    }
    if download.is_head_only() {
        download.on_head_text(&text);
    }
    match outcome {
        Ok(()) => download.on_answer(exchange, &answer),
        Err(error) => download.fail(error),
    }
}

/// The client's error as one of a download, with the exit code that it has over HTTP/3.
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
        Kind::Tls => GetError::Tls(text),
        Kind::Protocol => GetError::Http(text),
        Kind::Timeout(Phase::Silence) => GetError::Silent(Silence::Transferring, text),
        Kind::Timeout(_) => GetError::Silent(Silence::Connecting, text),
        Kind::Request => GetError::Usage(text),
        _ => GetError::Broken(text),
    }
}
