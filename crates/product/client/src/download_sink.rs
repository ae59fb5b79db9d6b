//! A download as its requests share it: the run of downloads asks and ends, the sinks of its requests bring content.
//!
//! One lock for each download. Where the program drives the connections itself, all of it is on one thread.

use crate::answer::Answer;
use crate::download::Download;
use crate::error::shown;
use crate::exchange::Exchange;
use crate::report::PathReport;
use crate::transfer::Transfer;
use crate::{BodySink, Control, Used};
use base::time::Instant;
use core::fmt::Write as _;
use http::{Response, Version};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use tokio::time;

/// A download and its requests under way.
pub(crate) struct SharedState {
    pub(crate) transfer: Transfer,
    /// By number of the request.
    pub(crate) exchanges: Vec<(u64, Exchange)>,
    /// That of the last answer.
    pub(crate) version: Option<Version>,
    /// That of the last request that ended on a connection of QUIC.
    pub(crate) path: Option<PathReport>,
}

impl SharedState {
    /// The download and one of its exchanges.
    #[inline]
    pub(crate) fn exchange(&mut self, number: u64) -> Option<(&mut Download, &mut Exchange)> {
        let (_, exchange) = self.exchanges.iter_mut().find(|(own, _)| *own == number)?;
        Some((&mut self.transfer.download, exchange))
    }

    pub(crate) fn forget(&mut self, number: u64) {
        self.exchanges.retain(|(own, _)| *own != number);
    }
}

/// A download that its sinks share with the run, until that takes it.
#[derive(Clone)]
pub(crate) struct SharedDownload(Arc<Mutex<Option<SharedState>>>);

impl SharedDownload {
    pub(crate) fn new(transfer: Transfer) -> SharedDownload {
        let state = SharedState { transfer, exchanges: Vec::new(), version: None, path: None };
        SharedDownload(Arc::new(Mutex::new(Some(state))))
    }

    /// Acts on it; `None` when the run has taken it.
    #[inline]
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut SharedState) -> R) -> Option<R> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(act)
    }

    /// The download is over.
    pub(crate) fn take(&self) -> Option<SharedState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What the sinks of a run share with it.
pub(crate) struct RunShared {
    began: time::Instant,
    /// Wakes the run.
    waker: Mutex<Option<Waker>>,
}

impl RunShared {
    pub(crate) fn new() -> RunShared {
        RunShared { began: time::Instant::now(), waker: Mutex::new(None) }
    }

    /// The time since the run began.
    pub(crate) fn now(&self) -> Instant {
        Instant::ZERO + self.began.elapsed().into()
    }

    pub(crate) fn set_waker(&self, waker: &Waker) {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
    }

    /// Something beside content has happened: the run looks.
    pub(crate) fn wake(&self) {
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        waker.into_iter().for_each(Waker::wake);
    }
}

/// Takes the answer to one request of a download.
pub(crate) struct DownloadSink {
    pub(crate) download: SharedDownload,
    pub(crate) number: u64,
    pub(crate) run: Arc<RunShared>,
    /// Gives up the answer; the run has the other clone.
    pub(crate) control: Arc<Mutex<Option<Control>>>,
}

impl BodySink for DownloadSink {
    fn on_connection(&mut self, _: &Used, control: Control) {
        let now = self.run.now();
        self.download.with(|state| state.transfer.on_connected(now));
        *self.control.lock().unwrap_or_else(PoisonError::into_inner) = Some(control);
    }

    fn on_head(&mut self, head: &Response<()>) {
        let (now, number) = (self.run.now(), self.number);
        self.download.with(|state| {
            state.version = Some(head.version());
            if let Some((download, exchange)) = state.exchange(number) {
                on_head(download, exchange, head);
            }
            state.transfer.on_turn(now);
        });
        self.run.wake();
    }

    #[inline]
    fn on_body(&mut self, bytes: &[u8]) -> usize {
        let number = self.number;
        let taken = self.download.with(|state| match state.exchange(number) {
            Some((download, exchange)) => download.on_body(exchange, bytes),
            None => Some(bytes.len()),
        });
        if taken == Some(None) {
            // The request is to be given up.
            self.run.wake();
        }
        taken.flatten().unwrap_or(bytes.len())
    }
}

fn on_head(download: &mut Download, exchange: &mut Exchange, head: &Response<()>) {
    let name = format!("{:?}", head.version());
    let mut text = format!("{} {}\n", name.strip_suffix(".0").unwrap_or(&name), head.status().as_u16());
    let mut answer = Answer::default();
    let mut outcome = answer.on_field(b":status", head.status().as_str().as_bytes());
    let is_shown = download.is_head_only();
    for (name, value) in head.headers() {
        outcome = outcome.and_then(|()| answer.on_field(name.as_str().as_bytes(), value.as_bytes()));
        if is_shown {
            let _ = writeln!(text, "{name}: {}", shown(&String::from_utf8_lossy(value.as_bytes())));
        }
    }
    if is_shown {
        download.on_head_text(&text);
    }
    match outcome {
        Ok(()) => download.on_answer(exchange, &answer),
        Err(error) => download.fail(error),
    }
}
